"""What every frozen encoder gives: one vector per record, and what it was trained on."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32, UInt8

from privkit.errors import InputError
from privkit.plug import Plugin

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn import Module


@runtime_checkable
class Staged(Protocol):
    """A frozen network as a row of blocks, after each of which something may be put.

    Attributes:
        widths: channels after each block.
    """

    widths: tuple[int, ...]

    def to(self, device: "torch.device") -> "Staged":
        """Return the network on a device."""
        ...

    def adapted(self, pixels: "Tensor", after: "Callable[[int, Tensor], Tensor]") -> "Tensor":
        """Return one vector per image, float of shape [N, dim].

        Args:
            pixels: in [0, 1], shape [N, channels, height, width]; each image independent of the rest.
            after: called as ``after(i, h)`` with the output of block ``i``, shape [N, positions, widths[i]]; what it
                returns, of the same shape, goes on.
        """
        ...


class AbstractEncoder(Plugin):
    """A frozen map from record to vector. It never sees private data, so its outputs can be cached."""

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
    def encode(self, records: np.ndarray) -> Float32[np.ndarray, "N dim"]:
        """Return one vector per record, independent of the rest of the batch up to rounding.

        Args:
            records: images or sentences, as :data:`privkit.data._base.Records` says.

        Raises:
            InputError: it does not read such records.
        """

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Return the channels, height and width that :meth:`module` reads.

        Raises:
            InputError: it is a black box, or reads no images.
        """
        self._refuse_gradients()

    def pixels(self, records: np.ndarray) -> UInt8[np.ndarray, "N channels height width"]:
        """Return images as :meth:`module` and :meth:`staged` read them, times 255: resized, grey or in colour.

        Raises:
            InputError: it is a black box, or reads no such images.
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

    def staged(self) -> Staged:
        """Return the same network block by block, for adapters inside it; frozen, float32, on the CPU.

        Raises:
            InputError: it is a black box, reads no images, or has no blocks.
        """
        raise InputError(
            f"encoder {self.name} does not open its blocks, so no adapter fits inside; put adapters after it "
            "(model.inside: false), or take an encoder such as usps_cnn."
        )

    def _refuse_gradients(self) -> NoReturn:
        raise InputError(
            f"encoder {self.name} gives no gradients from image to embedding; that needs an encoder with "
            "a torch module, such as usps_cnn"
        )
