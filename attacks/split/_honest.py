"""The honest server of split learning, and what it can rebuild if it is curious.

It trains the layers behind the client's on the labels that come along, and answers with the gradient of the loss. A
curious one keeps what it was sent, and decodes it with a decoder trained on its own images, through an encoder that
depends on what it knows: the weights that were broadcast, a shadow client trained from them on its own images by the
same protocol, or (an upper bound) the client's own.

Source: Gupta and Raskar (2018), "Distributed learning of deep neural network over multiple agents", Algorithm 1.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from attacks.split._base import AbstractSplitServer, Public
from attacks.split._nets import classifier_net, decoder_net, drawn


class HonestSplitServer(AbstractSplitServer):
    """Answers with the gradient of its cross-entropy."""

    def __init__(self, public: Public, *, learning_rate: float, seed: int) -> None:
        """Start from weights that the seed decides; nothing of the public images is used."""
        self.net = drawn(lambda: classifier_net(public.shape, public.channels, public.classes), seed)
        self._optimizer = torch.optim.Adam(self.net.parameters(), lr=learning_rate)

    def answer(self, z: Tensor, labels: Tensor) -> Tensor:
        z = z.detach().requires_grad_(True)
        self._optimizer.zero_grad()
        functional.cross_entropy(self.net(z), labels).backward()
        self._optimizer.step()
        assert z.grad is not None
        return z.grad


def passive_decoder(
    public: Public, encoder: nn.Module, *, steps: int, batch_size: int, learning_rate: float, seed: int
) -> nn.Module:
    """Return a decoder of what an encoder gives, trained on public images with the squared error of pixels.

    Args:
        public: images that the server owns.
        encoder: that it takes for the client's; it is not changed.
        steps: Adam steps.
        batch_size: images per step.
        learning_rate: step size.
        seed: of the initial weights and the batches.
    """
    net = drawn(lambda: decoder_net(public.shape, public.channels), seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=learning_rate)
    rows = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        images = public.images[public.some(batch_size, rows)]
        with torch.no_grad():
            z = encoder(images)
        optimizer.zero_grad()
        functional.mse_loss(net(z), images).backward()
        optimizer.step()
    return net.requires_grad_(False)
