"""What to cite: privkit itself, and every method, defense, data set, encoder and attack that was used."""

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from privkit import __version__, plug
from privkit.plug import Plugin

REFERENCES = Path(__file__).parent / "references.bib"
_NOT_PLUGINS = ("statistics",)
_KEY = re.compile(r"@\w+\{([^,\s]+),")


def entries(bibtex: str) -> dict[str, str]:
    r"""Return the entries of a BibTeX text by their key; an entry starts with an @ at the start of a line.

    >>> entries("@misc{a,\n  year = {2001}\n}\n\n@misc{b,\n}")["a"]
    '@misc{a,\n  year = {2001}\n}'
    """
    parts = [part.strip() for part in re.split(r"^(?=@)", bibtex, flags=re.MULTILINE)]
    found = {}
    for part in parts:
        if part.startswith("@"):
            key = _KEY.match(part)
            if key is None:
                raise ValueError(f"{part.splitlines()[0]!r} names no key; write @kind{{key, on one line.")
            found[key[1]] = part
    return found


def references() -> dict[str, str]:
    """Return every entry that plug-ins may cite, by key."""
    return entries(REFERENCES.read_text(encoding="utf-8"))


def cited(plugin: type[Plugin]) -> dict[str, str]:
    """Return the entries that a plug-in cites: by keys, comma between, or as BibTeX of its own.

    Raises:
        ValueError: a key is not in ``references.bib``.
    """
    if "@" in plugin.citation:
        return entries(plugin.citation)
    known = references()
    keys = [key.strip() for key in plugin.citation.split(",") if key.strip()]
    missing = [key for key in keys if key not in known]
    if missing:
        raise ValueError(f"{plugin.__module__} cites {missing[0]!r}; add that entry to {REFERENCES.name}.")
    return {key: known[key] for key in keys}


def bibtex(plugins: Iterable[type[Plugin]]) -> str:
    """Return what these plug-ins cite as BibTeX, each entry once, privkit's own first."""
    found = {"privkit": _own()}
    for plugin in plugins:
        found |= cited(plugin)
    return "\n\n".join(found.values()) + "\n"


def packages() -> list[str]:
    """Return every package that holds plug-ins."""
    lab = ("methods", "prototypes", "defenses", "partitions", "servers", "data", "models")
    tuned = ("backbones", "tuning", "defenses")
    attacks = importlib.import_module("attacks")
    kinds = [info.name for info in pkgutil.iter_modules(attacks.__path__) if info.ispkg]
    ours = [f"privkit.{kind}" for kind in lab] + [f"privkit.finetune.{kind}" for kind in tuned]
    return ours + [f"attacks.{k}" for k in kinds if k not in _NOT_PLUGINS]


def every_plugin() -> Iterator[type[Plugin]]:
    """Yield every plug-in there is."""
    for package in packages():
        for _, plugin in plug.every(package):
            yield plugin


def named(names: Iterable[str]) -> Iterator[type[Plugin]]:
    """Yield the plug-ins of these names, whatever their kind, in the order of kinds."""
    wanted = set(names)
    for package in packages():
        for name in plug.names(package):
            if name in wanted:
                yield plug.find(package, name)


def used(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of every plug-in that a run of this configuration uses.

    The encoder of a mixed federation is that of each architecture; the one for all is not used then.

    >>> list(used({"encoder": {"name": "usps_cnn"}, "mixed": [{"encoder": {"name": "onnx"}}]}))
    ['onnx']
    """
    unused = ("encoder", "model") if config.get("mixed") else ()
    yield from names_in({key: value for key, value in config.items() if key not in unused})


def names_in(settings: Any) -> Iterator[str]:
    """Yield every ``name`` that a configuration gives, at any depth.

    >>> list(names_in({"defense": {"name": "vpp", "partition": {"name": "laplace"}}, "rounds": 3}))
    ['vpp', 'laplace']
    """
    if isinstance(settings, dict):
        if isinstance(settings.get("name"), str):
            yield settings["name"]
        for value in settings.values():
            yield from names_in(value)
    elif isinstance(settings, list):
        for value in settings:
            yield from names_in(value)


def _own() -> str:
    lines = (
        "@software{privkit,",
        "  author = {{The privkit authors}},",
        "  title = {privkit: what a federated release promises, what can be taken from it, and what it cost},",
        f"  version = {{{__version__}}},",
        "  year = {2026}",
        "}",
    )
    return "\n".join(lines)
