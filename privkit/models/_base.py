"""What every frozen encoder gives: one vector per image, and what it was trained on."""

from abc import abstractmethod

import numpy as np
from jaxtyping import Float32, UInt8

from privkit.plug import Plugin


class AbstractEncoder(Plugin):
    """A frozen map from image to vector. It never sees private data, so its outputs can be cached."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Return the width of its output."""

    @property
    @abstractmethod
    def trained_on(self) -> str:
        """Return, in words, the public data it was trained on."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Return the sha256 of its weights, in hexadecimal."""

    @abstractmethod
    def encode(self, images: UInt8[np.ndarray, "N height width"]) -> Float32[np.ndarray, "N dim"]:
        """Return one vector per image, independent of the rest of the batch up to rounding."""
