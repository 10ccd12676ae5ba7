"""What every frozen encoder gives: one vector per image, and what it was trained on."""

from abc import abstractmethod
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from jaxtyping import Float32, UInt8

from privkit.errors import InputError
from privkit.plug import Plugin

if TYPE_CHECKING:
    from torch.nn import Module


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

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Return the channels, height and width that :meth:`module` reads.

        Raises:
            InputError: it is a black box, or reads no images.
        """
        self._refuse_gradients()

    def module(self) -> "Module":
        """Return a new torch module that gives what ``encode`` gives, with gradients.

        It maps pixels in [0, 1], shape [N, channels, height, width], to shape [N, dim], each image
        independent of the rest of the batch.

        Raises:
            InputError: it is a black box, or reads no images.
        """
        self._refuse_gradients()

    def _refuse_gradients(self) -> NoReturn:
        raise InputError(
            f"encoder {self.name} gives no gradients from image to embedding; inversion needs an encoder with "
            "a torch module, such as usps_cnn"
        )
