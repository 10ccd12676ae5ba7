"""MedMNIST: small medical pictures over many clients with label skew; PathMNIST unless said, from your file.

Every subset with one class per picture is read: two-dimensional, 28 x 28 or larger, in colour or grey.
"""

from pathlib import Path
from typing import ClassVar
from zipfile import BadZipFile

import numpy as np
from pydantic import Field

from privkit.data import _labels
from privkit.data._base import Labelled
from privkit.data._published import Published
from privkit.data._skew import AbstractSkewedData
from privkit.errors import InputError

PUBLISHED = Published(
    title="MedMNIST",
    layout="<subset>.npz, such as pathmnist.npz",
    source="Yang et al., MedMNIST v2, Scientific Data 2023",
    twin="digits",
)


class MedMnist(AbstractSkewedData):
    """A subset of MedMNIST: pictures for training, and others for testing; those for validation are not read."""

    root: Path = Field(description="folder that holds the subset's file, or one named medmnist that does")
    subset: str = Field(
        default="pathmnist",
        pattern="^[a-z0-9_]+$",
        description="name of the file without its ending, such as pathmnist, bloodmnist or pathmnist_64",
    )

    citation: ClassVar[str] = "yang2023medmnist, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return the largest label of the pictures for training, plus 1."""
        return int(self._labels("train").max(initial=0)) + 1

    def files(self) -> dict[str, Path]:
        """Return the one file by its name."""
        path = self._located()
        return {path.name: path}

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the training and the test pictures, uint8 of shape [N, side, side] or [N, side, side, 3]."""
        train, test = (self._part(name) for name in ("train", "test"))
        return train, test

    def _part(self, name: str) -> Labelled:
        path, images = self._located(), self._array(f"{name}_images")
        if images.dtype != np.uint8 or images.shape[3:] not in ((), (3,)) or images.ndim < 3:
            raise InputError(
                f"{path} holds {images.dtype} of shape {list(images.shape)} under '{name}_images'; take a subset of "
                "pictures of two dimensions."
            )
        labels = self._labels(name)
        _labels.refuse_odd(labels, count=len(images), classes=self.num_classes, path=path)
        return Labelled(images, labels)

    def _labels(self, name: str) -> np.ndarray:
        path, found = self._located(), self._array(f"{name}_labels")
        if found.ndim != 2 or found.shape[1] != 1:
            raise InputError(
                f"{path} holds labels of shape {list(found.shape)}, and one class per picture is [N, 1]; take another "
                "subset, such as pathmnist."
            )
        return _labels.whole(found, path=path, what=f"{name}_labels")

    def _array(self, name: str) -> np.ndarray:
        path = self._located()
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
                if name in held.files:
                    return held[name]
        except (OSError, ValueError, EOFError, AttributeError, TypeError, BadZipFile) as error:
            said = " ".join(str(error).split()).rstrip(".")
            raise InputError(f"{path} cannot be read as a .npz file ({said}); get it again.") from None
        raise InputError(f"{path} holds nothing under {name!r}; it is no file of MedMNIST, get it again.")

    def _located(self) -> Path:
        root, name = PUBLISHED.folder(self.root), f"{self.subset}.npz"
        for folder in (root, root / "medmnist"):
            if (folder / name).is_file():
                return folder / name
        raise PUBLISHED.missing(f"root={str(self.root)!r} holds no {name}")
