"""Sections of a configuration as a reader reads them, each in one line."""

from typing import Any

_SECTIONS = (
    "data", "encoder", "backbone", "model", "tuning", "mixed", "method", "defense", "split", "canaries",
)  # fmt: skip


def setting(config: dict[str, Any], seeds: list[int | None]) -> str:
    """Return one configuration in one line."""
    count = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    if not config:
        return f"recorded by other code, {count}"
    parts = [f"{section} {named(config[section])}" for section in _SECTIONS if section in config]
    return f"{count}, {config.get('rounds')} rounds; {'; '.join(parts)}"


def named(section: Any) -> str:
    """Return one section of a configuration in one line."""
    if isinstance(section, list):
        return " | ".join(map(named, section))
    if not isinstance(section, dict):
        return str(section)
    inner = ", ".join(f"{key} {named(value)}".rstrip() for key, value in section.items() if key != "name")
    return f"{section['name']} ({inner})" if "name" in section and inner else section.get("name") or inner
