"""What a server of split learning does: it gets features and labels, and answers with a gradient of the features."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attacks.split._nets import Shape


@dataclass(frozen=True, eq=False, kw_only=True)
class Public:
    """What a server owns before the first message.

    Attributes:
        images: pixels in [0, 1], shape [N, c, height, width]; no client holds one of them.
        labels: class of each.
        classes: number of classes.
        channels: of the features that clients send.
    """

    images: Float[Tensor, "N c height width"]
    labels: Int64[Tensor, " N"]
    classes: int
    channels: int

    @property
    def shape(self) -> Shape:
        """Return channels, height and width of an image."""
        _, colours, height, width = self.images.shape
        return colours, height, width

    def some(self, count: int, rows: torch.Generator) -> Tensor:
        """Return the row numbers of a random batch, no image twice."""
        return torch.randperm(len(self.images), generator=rows)[:count]


class AbstractSplitServer(ABC):
    """The other half of split learning. A client cannot see which one it talks to."""

    @abstractmethod
    def answer(
        self, z: Float[Tensor, "B k height width"], labels: Int64[Tensor, " B"]
    ) -> Float[Tensor, "B k height width"]:
        """Return the gradient that the client goes on with, after one step of the server's own training."""


def pictures(images: Tensor) -> np.ndarray:
    """Return images as float64 pixels."""
    return images.detach().double().numpy()
