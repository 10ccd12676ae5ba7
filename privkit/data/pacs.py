"""PACS: the same seven kinds of objects as photographs, paintings, cartoons and sketches, from your folder.

Any pictures in this layout are read, whatever their class folders are called. ``docs/folders.md`` has the layouts.

The papers draw a fifth of each domain for testing and keep 30 % of the rest: ``test_share: 0.2, keep: 0.3``. Their
resize is bilinear, ours bicubic; see :func:`privkit.data._unread.read`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from privkit.data._folders import spelling
from privkit.data._listed_folder_data import AbstractListedFolderData
from privkit.data._lists import Listed
from privkit.data._published import Published
from privkit.errors import InputError

_NUMBER = re.compile(r"[0-9]{1,9}")
DOMAINS = ("photo", "art_painting", "cartoon", "sketch")


class Pacs(AbstractListedFolderData):
    """PACS, or any pictures in its layout: four domains, one folder per class."""

    domains: tuple[str, ...] = Field(
        default=DOMAINS, min_length=1, description="domains to load, in this order; client i holds the i-th"
    )

    known: ClassVar[tuple[str, ...]] = DOMAINS
    titles: ClassVar[tuple[str, ...]] = ("PACS", "kfold", "images")
    published: ClassVar[Published] = Published(
        title="PACS",
        layout="PACS/{photo,art_painting,cartoon,sketch}[/{train,test}]/<class>/<picture>",
        source="Li et al., Deeper, Broader and Artier Domain Generalization, ICCV 2017",
        twin="objects",
    )
    list_names: ClassVar[tuple[str, ...]] = (
        "{}_train_kfold.txt",
        "{}_crossval_kfold.txt",
        "{}_test_kfold.txt",
    )
    citation: ClassVar[str] = "li2017pacs"

    def entries(self, path: Path, domain: str, classes: tuple[str, ...]) -> Iterator[Listed]:
        """Yield the lines of a list, such as ``photo/dog/056_0001.jpg 1``: a picture and its class, from 1."""
        for number, line in enumerate(_text(path).splitlines(), start=1):
            if not line.strip():
                continue
            name, _, label = line.strip().rpartition(" ")
            folder, _, below = name.partition("/")
            if spelling(folder) != spelling(domain) or not below or not _NUMBER.fullmatch(label):
                raise InputError(
                    f"{path}, line {number}: {line[:200]!r} is no picture and number such as {domain}/dog/1.jpg 1."
                )
            yield Listed(below, int(label) - 1, said=f"{label} of 1 to {len(classes)}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as UTF-8 ({error}); get the list again.") from None
