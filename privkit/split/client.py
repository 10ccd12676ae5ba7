"""A client of split learning: its layers, its images, and an optimizer that trusts the gradients it gets."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attacks.split._base import AbstractSplitServer
from privkit.errors import InputError

_BLOCK = 512


class SplitClient:
    """Trains its layers on its own images, batch by batch, with whatever gradient the server answers."""

    def __init__(
        self,
        net: nn.Module,
        images: Float[Tensor, "N c height width"],
        labels: Int64[Tensor, " N"],
        *,
        learning_rate: float,
        seed: int,
    ) -> None:
        """Take layers to train and private images, pixels in [0, 1]; the seed decides the batches."""
        self.net, self._images, self._labels = net, images, labels
        self._optimizer = torch.optim.Adam(net.parameters(), lr=learning_rate)
        self._rows = torch.Generator().manual_seed(seed)

    def train(
        self,
        server: AbstractSplitServer,
        *,
        steps: int,
        batch_size: int,
        after_step: Callable[[int], None] = lambda step: None,
    ) -> None:
        """Send the features of some random batches, and follow the answers.

        Raises:
            InputError: an answer is no gradient of what was sent.
        """
        for step in range(1, steps + 1):
            batch = torch.randperm(len(self._images), generator=self._rows)[:batch_size]
            z = self.net(self._images[batch])
            gradient = server.answer(z.detach(), self._labels[batch])
            if gradient.shape != z.shape or not gradient.isfinite().all():
                raise InputError(
                    f"step {step}: the server answered {tuple(gradient.shape)} to {tuple(z.shape)}, or numbers that "
                    "are not finite; lower the learning rates, or give it images of the client's size."
                )
            self._optimizer.zero_grad()
            z.backward(gradient)
            self._optimizer.step()
            after_step(step)

    @torch.no_grad()
    def sent(self) -> Float[Tensor, "N k height width"]:
        """Return the features of all its images, as a last pass over them sends them."""
        return torch.cat([self.net(block) for block in self._images.split(_BLOCK)])
