"""One folder per domain, in it one per class, between them perhaps ``train`` and ``test``."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from privkit.data._folders import Picture, classes_in, picture_files, pictures_in, spelling, subfolders
from privkit.data._published import Published
from privkit.errors import InputError

DEPTH = 2
"""How many folders deep, of the given names, domains are looked for."""


@dataclass(frozen=True, eq=False)
class DomainFolder:
    """The pictures of one domain; ``test`` is what its folder ``test`` holds, if it has one."""

    pictures: list[Picture]
    test: list[Picture] | None


@dataclass(frozen=True, eq=False)
class DomainFolders:
    """The domains that are there.

    Attributes:
        home: the folder that holds them.
        classes: names of the class folders of all domains together; class i is the i-th.
        domains: by their usual name.
    """

    home: Path
    classes: tuple[str, ...]
    domains: dict[str, DomainFolder]


def walk(root: Path, known: tuple[str, ...], *, titles: Iterable[str], published: Published) -> DomainFolders:
    """Return the domains in a folder, or in one of its subfolders of a given name.

    Args:
        root: the folder of the domains, or one that holds it.
        known: usual names of the domains, any spelling of which is found.
        titles: names of the folders that are looked into, in any spelling, inside one another too.
        published: for messages.

    Raises:
        InputError: there is no domain, there are two of one, or what is in one is not class folders.
    """
    home, folders = _home(published.folder(root), known, titles={*map(spelling, titles)}, published=published)
    parts = {name: _parts(folder) for name, folder in folders.items()}
    classes = classes_in(part for both in parts.values() for part in both if part is not None)
    if len(classes) < 2:
        raise published.missing(
            f"{home} has {len(classes)} class folders in {', '.join(folders)}, not 2 or more"
        )
    domains = {
        name: DomainFolder(
            pictures_in(train, classes, home=home),
            None if test is None else pictures_in(test, classes, home=home),
        )
        for name, (train, test) in parts.items()
    }
    return DomainFolders(home, classes, domains)


def _home(
    root: Path, known: tuple[str, ...], *, titles: set[str], published: Published
) -> tuple[Path, dict[str, Path]]:
    """Return the one folder that holds domains, and these."""
    homes = {}
    for folder in _candidates(root, titles):
        found = _domains(folder, known)
        if found:
            homes[folder] = found
    if not homes:
        raise published.missing(f"root={str(root)!r} holds none of {', '.join(known)}")
    if len(homes) > 1:
        first, second = list(homes)[:2]
        raise InputError(
            f"{first} and {second} both hold domains of {published.title}; give one of them as root."
        )
    return next(iter(homes.items()))


def _candidates(root: Path, titles: set[str], depth: int = DEPTH) -> list[Path]:
    inside = [folder for folder in subfolders(root) if spelling(folder.name) in titles] if depth else []
    return [root, *(deeper for folder in inside for deeper in _candidates(folder, titles, depth - 1))]


def _domains(folder: Path, known: tuple[str, ...]) -> dict[str, Path]:
    """Return the domain folders in a folder, in their usual order; two spellings of one are refused."""
    usual = {spelling(name): name for name in known}
    found: dict[str, Path] = {}
    for path in subfolders(folder):
        name = usual.get(spelling(path.name))
        if name in found:
            raise InputError(
                f"{found[name]} and {path} are two spellings of domain {name}; merge them or remove one."
            )
        if name is not None:
            found[name] = path
    return {name: found[name] for name in known if name in found}


def _parts(domain: Path) -> tuple[Path, Path | None]:
    """Return the folder of a domain's class folders, and that of those for testing if they are apart."""
    inside = {path.name.casefold(): path for path in subfolders(domain)}
    apart = {
        name: path for name, path in inside.items() if name in ("train", "test") and not picture_files(path)
    }
    if not apart:
        return domain, None
    if apart.keys() != {"train", "test"} or len(inside) > 2:
        raise InputError(
            f"{domain} holds {', '.join(path.name for path in inside.values())}; keep either class folders in it, "
            "or exactly train and test with class folders in each."
        )
    stray = picture_files(domain)
    if stray:
        raise InputError(f"{stray[0]} lies beside folders train and test; put it into one, or move it away.")
    return inside["train"], inside["test"]
