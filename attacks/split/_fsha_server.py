"""The server behind ``fsha``, apart from its settings because it needs torch to be defined."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from attacks.split._base import AbstractSplitServer, Public
from attacks.split._nets import client_net, critic_net, decoder_net, drawn

if TYPE_CHECKING:
    from attacks.split.fsha import Fsha


class FshaServer(AbstractSplitServer):
    """Answers with the gradient that makes a client's features look like those of its own encoder."""

    def __init__(self, settings: "Fsha", public: Public, *, batch_size: int, seed: int) -> None:
        """Start from weights that the seed decides; the client's are unknown."""
        shape, channels = public.shape, public.channels
        self._public, self._batch_size, self._penalty = public, batch_size, settings.penalty
        self._draws = torch.Generator().manual_seed(seed)
        self.encoder = drawn(lambda: client_net(shape, channels), seed)
        self.decoder = drawn(lambda: decoder_net(shape, channels), seed + 1)
        self.critic = drawn(lambda: critic_net(shape, channels), seed + 2)
        own = [*self.encoder.parameters(), *self.decoder.parameters()]
        self._own_step = torch.optim.Adam(own, lr=settings.own_rate)
        self._critic_step = torch.optim.Adam(self.critic.parameters(), lr=settings.critic_rate)

    def answer(self, z: Tensor, labels: Tensor) -> Tensor:
        z = z.detach().requires_grad_(True)
        (gradient,) = torch.autograd.grad(-self.critic(z).mean(), z)
        public_z = self._learn_to_decode()
        self._learn_to_tell(z.detach(), public_z)
        return gradient

    def _learn_to_decode(self) -> Tensor:
        """Train encoder and decoder on one public batch; return its features, as they were before."""
        images = self._public.images[self._public.some(self._batch_size, self._draws)]
        z = self.encoder(images)
        self._own_step.zero_grad()
        functional.mse_loss(self.decoder(z), images).backward()
        self._own_step.step()
        return z.detach()

    def _learn_to_tell(self, private_z: Tensor, public_z: Tensor) -> None:
        """Train the critic on features of both sides."""
        count = min(len(private_z), len(public_z))
        between = torch.rand((count, 1, 1, 1), generator=self._draws)
        u = between * private_z[:count] + (1 - between) * public_z[:count]
        u.requires_grad_(True)
        (slope,) = torch.autograd.grad(self.critic(u).sum(), u, create_graph=True)
        steepness = ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()
        loss = self.critic(private_z).mean() - self.critic(public_z).mean() + self._penalty * steepness
        self._critic_step.zero_grad()
        loss.backward()
        self._critic_step.step()
