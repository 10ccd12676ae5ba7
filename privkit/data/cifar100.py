"""CIFAR-100 over many clients with label skew."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from privkit.data import _cifar
from privkit.data._base import Labelled
from privkit.data._published import Published
from privkit.data._skew import AbstractSkewedData

PUBLISHED = Published(
    title="CIFAR-100",
    layout="cifar-100-python/{train,test} or cifar-100-binary/{train,test}.bin",
    source="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    twin="digits",
)
Read = Callable[[Path], Labelled]


class Labels(StrEnum):
    """Which of the two labels of a picture is its class."""

    FINE = "fine"
    COARSE = "coarse"


@dataclass(frozen=True)
class Kind:
    """How one of the two labels is stored.

    Attributes:
        classes: how many it has.
        key: where the Python version has it.
        column: which byte of a record it is in the binary version.
    """

    classes: int
    key: str
    column: int


KINDS = {Labels.FINE: Kind(100, "fine_labels", 1), Labels.COARSE: Kind(20, "coarse_labels", 0)}


class Cifar100(AbstractSkewedData):
    """CIFAR-100: 50,000 training and 10,000 test pictures of 100 classes in 20 groups, 32 x 32 in colour."""

    root: Path = Field(
        description="folder that holds cifar-100-python or cifar-100-binary, or one of these itself"
    )
    labels: Labels = Field(default=Labels.FINE, description="fine: the 100 classes; coarse: their 20 groups")

    citation: ClassVar[str] = "krizhevsky2009cifar, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 100, or 20 for the groups."""
        return KINDS[self.labels].classes

    def files(self) -> dict[str, Path]:
        """Return the two files by their names."""
        paths, _ = self._located()
        return {path.name: path for path in paths}

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the training and the test pictures, uint8 of shape [N, 32, 32, 3]."""
        (train, test), read = self._located()
        return read(train), read(test)

    def _located(self) -> tuple[tuple[Path, Path], Read]:
        """Return the two files, and what reads one; the Python version is taken where both are there."""
        kind = KINDS[self.labels]
        versions: dict[str, tuple[str, Read]] = {
            "cifar-100-python": ("", partial(_cifar.pickled, key=kind.key, classes=kind.classes)),
            "cifar-100-binary": (
                ".bin",
                partial(_cifar.binary, before=2, column=kind.column, classes=kind.classes),
            ),
        }
        root = PUBLISHED.folder(self.root)
        for name, (ending, read) in versions.items():
            for folder in (root, root / name):
                train, test = folder / f"train{ending}", folder / f"test{ending}"
                if train.is_file() and test.is_file():
                    return (train, test), read
        raise PUBLISHED.missing(f"root={str(self.root)!r} lacks train or test")
