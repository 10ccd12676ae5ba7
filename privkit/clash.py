"""Our import names are generic; somebody else's package may have replaced one of them.

``privkit``, ``accountant`` and ``reports`` are other people's projects on PyPI. pip lets such a package
overwrite our files without a word, and removing it again does not bring ours back.
"""

from importlib.util import find_spec
from pathlib import Path

from privkit.errors import InputError

NAMES = ("privkit", "accountant", "attacks", "reports")
DISTRIBUTION = "privkit-audit"


def replaced() -> list[str]:
    """Return which of our import names do not lead to our own packages (each says so in its first line)."""
    home = Path(__file__).resolve().parent.parent
    return [name for name in NAMES if not _ours(name, home)]


def owners() -> dict[str, list[str]]:
    """Map each of our import names to the other distributions that ship it too; reads every installed one."""
    from importlib.metadata import packages_distributions

    found = packages_distributions()
    return {n: o for n in NAMES if (o := sorted(set(found.get(n, ())) - {DISTRIBUTION}))}


def refuse_clash() -> None:
    """Raise if one of our import names leads elsewhere."""
    bad = replaced()
    if bad:
        others = (
            ", ".join(sorted({d for n, ds in owners().items() if n in bad for d in ds})) or "another folder"
        )
        raise InputError(
            f"the package {bad[0]} that Python finds is not privkit's (it comes from {others}); "
            f"uninstall that, then run: pip install --force-reinstall {DISTRIBUTION}"
        )


def _ours(name: str, home: Path) -> bool:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return False
    origin = Path(spec.origin).resolve()
    return origin.parent.parent == home and b"privkit" in origin.read_bytes()[:400]
