"""What every encoder that is a torch network for images does the same way."""

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32, UInt8

from privkit.models import _pixels
from privkit.models._base import AbstractEncoder

if TYPE_CHECKING:
    from privkit.models._backbone import Backbone

BATCH = 16  # larger batches leave the processor's cache and are slower


class TorchImageEncoder(AbstractEncoder):
    """A frozen torch network for images, with gradients, whose blocks can be opened."""

    @property
    @abstractmethod
    def reading(self) -> _pixels.Reading:
        """Return how the network wants its images."""

    @abstractmethod
    def module(self) -> "Backbone":
        """Return a new network in evaluation mode, float32 on the CPU."""

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Return channels, height and width."""
        return self.reading.image_shape

    def staged(self) -> "Backbone":
        """Return a new network that is frozen, block by block."""
        return self.module().requires_grad_(False)

    def pixels(self, records: np.ndarray) -> UInt8[np.ndarray, "N channels height width"]:
        """Return images, grey or in colour, of whatever size, as the network reads them, times 255.

        Raises:
            InputError: they are no images.
        """
        return self.reading.pixels(records, reader=self.name)

    def encode(self, records: np.ndarray) -> Float32[np.ndarray, "N dim"]:
        """Return one vector per image; no image gives an array of no rows.

        Args:
            records: images, uint8, grey or in colour, of any size.

        Raises:
            InputError: they are no images, or the weights are missing, damaged or not what the settings say.
        """
        import torch

        records = _pixels.only_images(records, reader=self.name)
        net, reading = self.module(), self.reading
        vectors = np.empty((len(records), self.dim), np.float32)
        with torch.inference_mode():
            for start in range(0, len(records), BATCH):
                batch = torch.from_numpy(reading.pixels(records[start : start + BATCH], reader=self.name))
                # convolutions are several times faster with the channels last in memory
                given = batch.to(memory_format=torch.channels_last).float() / 255
                vectors[start : start + BATCH] = net(given).numpy()
        return vectors
