"""Kvasir-Capsule: findings of a camera that was swallowed, over many clients with label skew, from your folder.

The published lists divide the pictures in two, videos whole: one half is trained on, the other tested on. What no list
names is not read.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from privkit.data import _unread
from privkit.data._base import Labelled
from privkit.data._folders import Picture, classes_in, pictures_in, spelling
from privkit.data._per_class import first_of_each_class
from privkit.data._published import Published
from privkit.data._skew import AbstractSkewedData
from privkit.errors import InputError

PUBLISHED = Published(
    title="Kvasir-Capsule",
    layout="labelled_images/<class>/<picture> with split_0.csv and split_1.csv beside labelled_images or in "
    "official_splits",
    source="Smedsrud et al., Kvasir-Capsule, Scientific Data 2021",
    twin="objects",
)
LISTS = ("split_0.csv", "split_1.csv")
_SHOWN = 3


class KvasirCapsule(AbstractSkewedData):
    """Kvasir-Capsule, or any pictures in its layout: one folder per class, two lists."""

    root: Path = Field(description="folder that holds labelled_images")
    side: int = Field(
        default=224,
        ge=1,
        le=2048,
        description="pixels; every picture is resized to side x side (proportions not kept)",
    )
    trained_on: int = Field(default=0, ge=0, le=1, description="number of the list that is trained on")

    citation: ClassVar[str] = "smedsrud2021, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return the number of class folders."""
        return len(self.class_names)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Return the names of the class folders; class i is the i-th."""
        return classes_in([self._home()])

    def files(self) -> dict[str, Path]:
        """Return every picture and both lists, by its path below the data set's folder."""
        return {p.name: p.path for p in self._pictures()} | {path.name: path for path in self._lists()}

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the pictures of both lists, uint8 of shape [N, side, side, 3]; more per class are not decoded."""
        first, second = self._lists()
        trained, tested = (first, second) if self.trained_on == 0 else (second, first)
        return self._part(trained, self.per_class), self._part(tested, self.test_per_class)

    def _part(self, path: Path, per_class: int | None) -> Labelled:
        own = {picture.path.name: picture for picture in self._pictures()}
        if len(own) < len(self._pictures()):
            raise InputError(
                f"{self._home()} has two pictures of one name; the lists cannot tell them apart, rename one."
            )
        classes = [spelling(name) for name in self.class_names]
        records = _unread.of_pictures(self._listed(path, own, classes))
        if not len(records.labels):
            raise InputError(f"{path} names no pictures; get it again.")
        chosen = np.arange(len(records.labels))
        if per_class is not None:
            chosen = first_of_each_class(records.labels, per_class)
        found, wrong = _unread.read(records, chosen, side=self.side)
        if wrong:
            said = "; ".join(f"{name} ({why})" for name, why in list(wrong.items())[:_SHOWN])
            raise InputError(f"{len(wrong):,} pictures of {path} cannot be used: {said}; get them again.")
        return found

    def _listed(self, path: Path, own: dict[str, Picture], classes: list[str]) -> Iterator[Picture]:
        """Yield the pictures of a list, in its order; those that are not there or of another class are refused."""
        for number, name, label in _rows(path):
            picture = own.get(name)
            if picture is None or classes[picture.label] != spelling(label):
                there = "is not there" if picture is None else f"is in {picture.name.split('/')[0]!r}"
                raise InputError(
                    f"{path}, line {number}: {name!r} of class {label!r} {there}; get the data set again."
                )
            yield picture

    def _pictures(self) -> list[Picture]:
        home = self._home()
        return pictures_in(home, classes_in([home]), home=home)

    def _home(self) -> Path:
        root = PUBLISHED.folder(self.root)
        for folder in (root / "labelled_images", root / "kvasir-capsule" / "labelled_images"):
            if folder.is_dir():
                return folder
        raise PUBLISHED.missing(f"root={str(self.root)!r} holds no labelled_images")

    def _lists(self) -> tuple[Path, Path]:
        above = self._home().parent
        for folder in (above, above / "official_splits"):
            first, second = (folder / name for name in LISTS)
            if first.is_file() and second.is_file():
                return first, second
        raise PUBLISHED.missing(f"{above} holds no {' and '.join(LISTS)}")


def _rows(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line number, file name and class of every picture of a list."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if not {"filename", "label"} <= set(reader.fieldnames or ()):
                raise InputError(f"{path} has no columns filename and label; get it again.")
            for row in reader:
                yield reader.line_num, row["filename"] or "", row["label"] or ""
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as a table ({error}); get it again.") from None
