"""Folders of pictures: one folder per class, read in the order that people count in."""

import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from privkit.errors import InputError

PICTURES = frozenset({".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"})
_LITTER = frozenset({"__MACOSX", "Thumbs.db", "desktop.ini"})


@dataclass(frozen=True)
class Picture:
    """A picture file.

    Attributes:
        name: its path below the data set's folder, with ``/``.
        path: the file.
        label: number of its class, from 0.
        wrong: why it is not read, whatever is in it; nothing if it is.
    """

    name: str
    path: Path
    label: int
    wrong: str = ""


def composed(name: str) -> str:
    """Return a name in Unicode's composed form (NFC): the same on disks that keep ``é`` as one character or as two."""
    return unicodedata.normalize("NFC", name)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that counts: ``pic_2`` before ``pic_10``; case decides last.

    >>> sorted(["pic_10.jpg", "pic_2.jpg", "Pic_3.jpg"], key=natural)
    ['pic_2.jpg', 'Pic_3.jpg', 'pic_10.jpg']
    """
    parts = re.split(r"(\d+)", composed(name).casefold())
    counted = tuple((int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in parts)
    return (*counted, (-1, name))


def spelling(name: str) -> str:
    """Return a name, composed, without case, spaces, dots, ``-`` and ``_``: what two spellings of it share.

    >>> spelling("Office-Caltech_10")
    'officecaltech10'
    """
    return re.sub(r"[\s._-]", "", composed(composed(name).casefold()))


def visible(folder: Path) -> list[Path]:
    """Return what a folder holds, in counting order, without hidden files and what file managers leave behind.

    Raises:
        InputError: it cannot be listed.
    """
    try:
        inside = list(folder.iterdir())
    except OSError as error:
        raise InputError(
            f"{folder} cannot be listed ({error.strerror}); make it readable, or move it away."
        ) from None
    found = (path for path in inside if not path.name.startswith(".") and path.name not in _LITTER)
    return sorted(found, key=lambda path: natural(path.name))


def subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder, in counting order."""
    return [path for path in visible(folder) if path.is_dir()]


def picture_files(folder: Path) -> list[Path]:
    """Return what is called as a picture in a folder, in counting order, endings in any case, readable or not."""
    return [path for path in visible(folder) if _called_picture(path)]


def _called_picture(path: Path) -> bool:
    return path.suffix.lower() in PICTURES


def _class_folders(folder: Path) -> list[Path]:
    """Return the folders in a folder; what may be one but cannot be looked at is refused."""
    return [path for path in visible(folder) if not _called_picture(path) and _is_folder(path)]


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        raise InputError(
            f"{path} may be a class folder but cannot be looked at ({error.strerror}); restore it, or move it away."
        ) from None


def classes_in(folders: Iterable[Path]) -> tuple[str, ...]:
    """Return the names of all class folders in some folders, in counting order: class i is the i-th.

    Raises:
        InputError: pictures lie outside of any class folder, a class is spelled in two ways, or a folder cannot be
            listed.
    """
    first: dict[str, str] = {}
    for folder in folders:
        stray = picture_files(folder)
        if stray:
            raise InputError(
                f"{stray[0]} lies outside of any class folder; put every picture of {folder} into a folder "
                "named after its class."
            )
        for found in _class_folders(folder):
            _refuse_unwritable(found)
            known = first.setdefault(spelling(found.name), found.name)
            if known != found.name:
                shown = ascii if composed(known) == composed(found.name) else repr
                raise InputError(
                    f"class folders {shown(known)} and {shown(found.name)} (in {folder}) differ only in spelling; "
                    "rename one."
                )
    return tuple(sorted(map(composed, first.values()), key=natural))


def pictures_in(folder: Path, classes: tuple[str, ...], *, home: Path) -> list[Picture]:
    """Return the pictures of a folder of class folders: class by class, each in counting order.

    Args:
        folder: holds a folder for each class it has pictures of.
        classes: all class names.
        home: the data set's folder, below which pictures are named.

    Raises:
        InputError: a folder cannot be listed, or two names are the same or cannot be written.
    """
    folders = {composed(path.name): path for path in _class_folders(folder)}
    found = [
        Picture(composed(path.relative_to(home).as_posix()), path, label, wrong)
        for label, name in enumerate(classes)
        if name in folders
        for path, wrong in _pictures(folders[name])
    ]
    first: dict[str, Path] = {}
    for picture in found:
        _refuse_unwritable(picture.path)
        if first.setdefault(picture.name, picture.path) != picture.path:
            raise InputError(
                f"{str(first[picture.name])!a} and {str(picture.path)!a} differ only in spelling; rename one."
            )
    return found


def _pictures(
    folder: Path, wrong: str = "", above: frozenset[Path] = frozenset()
) -> Iterator[tuple[Path, str]]:
    """Yield what is called as a picture in a class folder and any folder in it, and why it is not read."""
    for path in visible(folder):
        if _called_picture(path):
            yield path, wrong
        elif path.is_dir() and path.resolve() not in above:
            deeper = above | {folder.resolve(), path.resolve()}
            yield from _pictures(path, "it lies in a folder inside its class folder", deeper)


def _refuse_unwritable(path: Path) -> None:
    """Refuse names that are no text: nothing could be written of them, nor chosen by them."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(path)!r} is no name in UTF-8; rename it.") from None
