"""Folders of pictures: one folder per class, read in the order that people count in."""

import re
from collections.abc import Iterable
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
    """

    name: str
    path: Path
    label: int


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that counts: ``pic_2`` before ``pic_10``; case decides last.

    >>> sorted(["pic_10.jpg", "pic_2.jpg", "Pic_3.jpg"], key=natural)
    ['pic_2.jpg', 'Pic_3.jpg', 'pic_10.jpg']
    """
    parts = re.split(r"(\d+)", name.casefold())
    counted = tuple((int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in parts)
    return (*counted, (-1, name))


def spelling(name: str) -> str:
    """Return a name without case, spaces, dots, ``-`` and ``_``: what two spellings of it share.

    >>> spelling("Office-Caltech_10")
    'officecaltech10'
    """
    return re.sub(r"[\s._-]", "", name.casefold())


def visible(folder: Path) -> list[Path]:
    """Return what a folder holds, in counting order, without hidden files and what file managers leave behind."""
    found = (path for path in folder.iterdir() if not path.name.startswith(".") and path.name not in _LITTER)
    return sorted(found, key=lambda path: natural(path.name))


def subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder, in counting order."""
    return [path for path in visible(folder) if path.is_dir()]


def picture_files(folder: Path) -> list[Path]:
    """Return the pictures in a folder, in counting order; endings in any case."""
    return [path for path in visible(folder) if path.suffix.lower() in PICTURES and path.is_file()]


def classes_in(folders: Iterable[Path]) -> tuple[str, ...]:
    """Return the names of all class folders in some folders, in counting order: class i is the i-th.

    Raises:
        InputError: pictures lie outside of any class folder, or a class is spelled in two ways.
    """
    first: dict[str, str] = {}
    for folder in folders:
        stray = picture_files(folder)
        if stray:
            raise InputError(
                f"{stray[0]} lies outside of any class folder; put every picture of {folder} into a folder "
                "named after its class."
            )
        for found in subfolders(folder):
            known = first.setdefault(spelling(found.name), found.name)
            if known != found.name:
                raise InputError(
                    f"class folders {known!r} and {found.name!r} (in {folder}) differ only in spelling; rename one."
                )
    return tuple(sorted(first.values(), key=natural))


def pictures_in(folder: Path, classes: tuple[str, ...], *, home: Path) -> list[Picture]:
    """Return the pictures of a folder of class folders: class by class, each in counting order.

    Args:
        folder: holds a folder for each class it has pictures of.
        classes: all class names.
        home: the data set's folder, below which pictures are named.
    """
    return [
        Picture(path.relative_to(home).as_posix(), path, label)
        for label, name in enumerate(classes)
        if (folder / name).is_dir()
        for path in picture_files(folder / name)
    ]
