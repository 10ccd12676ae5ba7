"""Fashion-MNIST over many clients with label skew: ten kinds of clothes, 28 x 28 grey.

Debian's package ``dataset-fashion-mnist`` puts the four files where ``root`` looks by default.
"""

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from privkit.data import _idx
from privkit.data._base import Labelled
from privkit.data._published import Published
from privkit.data._skew import AbstractSkewedData

CLASSES = 10
PUBLISHED = Published(
    title="Fashion-MNIST",
    layout="{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]",
    source="Xiao et al., Fashion-MNIST, 2017, arXiv:1708.07747",
    twin="digits",
    package="on Debian run `apt install dataset-fashion-mnist`, which fills /usr/share/datasets/fashion-mnist",
)
SHA256 = {  # of the images and labels, unpacked
    "train": (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    ),
    "test": (
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
}


class FashionMnist(AbstractSkewedData):
    """Fashion-MNIST: 60,000 training and 10,000 test images of ten classes, as many of each."""

    root: Path = Field(
        default=Path("/usr/share/datasets/fashion-mnist"), description="folder that holds the four idx files"
    )
    only_published: bool = Field(
        default=True,
        description="refuse files that are not, unpacked, the published bytes: MNIST has the same file names",
    )

    citation: ClassVar[str] = "xiao2017fashion, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 10."""
        return CLASSES

    def files(self) -> dict[str, Path]:
        """Return the four files by their names."""
        return {path.name: path for pair in self._located().values() for path in pair}

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the training and the test images, uint8 of shape [N, 28, 28]."""
        found = self._located()
        return self._part("train", found["train"]), self._part("test", found["test"])

    def _part(self, name: str, files: tuple[Path, Path]) -> Labelled:
        sha256 = SHA256[name] if self.only_published else None
        return Labelled(*_idx.pair(*files, classes=CLASSES, sha256=sha256))

    def _located(self) -> dict[str, tuple[Path, Path]]:
        root = PUBLISHED.folder(self.root)
        for folder in (root, root / "FashionMNIST" / "raw", root / "fashion-mnist"):
            found = _idx.located(folder)
            if found is not None:
                return found
        raise PUBLISHED.missing(f"root={str(self.root)!r} lacks one of the four idx files")
