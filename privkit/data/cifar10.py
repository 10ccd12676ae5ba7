"""CIFAR-10 over many clients with label skew: what the label-skew tables of the papers use."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from privkit.data import _cifar
from privkit.data._base import Labelled
from privkit.data._published import Published
from privkit.data._skew import AbstractSkewedData

CLASSES = 10
PUBLISHED = Published(
    title="CIFAR-10",
    layout="cifar-10-batches-py/{data_batch_1..5,test_batch} or cifar-10-batches-bin/{data_batch_1..5,test_batch}.bin",
    source="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    twin="digits",
)
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = "test_batch"

Read = Callable[[Path], Labelled]
READERS: dict[str, tuple[str, Read]] = {
    "cifar-10-batches-py": ("", partial(_cifar.pickled, key="labels", classes=CLASSES)),
    "cifar-10-batches-bin": (".bin", partial(_cifar.binary, before=1, column=0, classes=CLASSES)),
}
"""Per usual folder, the ending of its files and what reads one; the first that is there is taken."""


class Cifar10(AbstractSkewedData):
    """CIFAR-10: 50,000 training and 10,000 test pictures of ten classes, 32 x 32 in colour."""

    root: Path = Field(description="folder that holds cifar-10-batches-py or -bin, or one of these itself")

    citation: ClassVar[str] = "krizhevsky2009cifar, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 10."""
        return CLASSES

    def files(self) -> dict[str, Path]:
        """Return the six batches by their names."""
        paths, _ = self._located()
        return {path.name: path for path in paths}

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the training and the test pictures, uint8 of shape [N, 32, 32, 3]."""
        (*train, test), read = self._located()
        return _cifar.joined(read(path) for path in train), read(test)

    def _located(self) -> tuple[list[Path], Read]:
        """Return the batches, the test batch last, and what reads one."""
        root = PUBLISHED.folder(self.root)
        for name, (ending, read) in READERS.items():
            for folder in (root, root / name):
                paths = [folder / f"{batch}{ending}" for batch in (*TRAIN, TEST)]
                if all(path.is_file() for path in paths):
                    return paths, read
        raise PUBLISHED.missing(f"root={str(self.root)!r} lacks one of the six batches")
