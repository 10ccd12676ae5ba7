r"""FedALA (Zhang et al., 2023): each client mixes its old parameters with the mean that arrived, number by number.

In the last layers, a round begins with ``w_l + A * (w_g - w_l)`` (Eq. 4), where every number of ``A`` in [0, 1] was
learned on some of the client's own records: ``A <- clip(A - eta * g * (w_g - w_l), 0, 1)`` with the gradient g of the
cross-entropy by the mixed parameters (Eq. 5). The layers before them are those that arrived.
"""

import re
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from privkit.batch import Batch
from privkit.methods._base import AbstractMethod, State, cross_entropy
from privkit.methods._down import Down
from privkit.methods._phases import Passes, Phase
from privkit.methods._weights import HEAD, AbstractAverageOfModel
from privkit.network import Network

if TYPE_CHECKING:
    from torch import Tensor

MIX, SETTLED = "mix.", "mixed.settled"
_LOOKED_AT = 10  # passes whose losses' spread says whether A has settled
_DEEPER = re.compile(r"head\.(\d+)\.")


class FedAla(AbstractAverageOfModel):
    """FedAvg whose clients begin a round with a learned mixture of what they had and what arrived.

    ``A`` begins as ones and is kept from round to round. The first time that a client gets something else than it has,
    it is learned until the last ten passes' losses have a standard deviation below ``settled``; later, for one pass. A
    client is tested with its own parameters after training.
    """

    citation: ClassVar[str] = "fedala"
    reads_only_in_phases: ClassVar[bool] = False
    serves_newcomers: ClassVar[bool] = False

    rate: float = Field(default=1.0, ge=0, description="eta, step size of the mixture")
    share: float = Field(
        default=0.8, gt=0, le=1, description="s, part of a client's records that it is learned on"
    )
    layers: int = Field(
        default=1,
        ge=1,
        description="p, last layers that are mixed; PFLlib's 2 counts tensors, one layer's weight and bias",
    )
    settled: float = Field(
        default=0.1,
        gt=0,
        description="standard deviation of ten passes' losses at which the first mixture is learned",
    )
    most_passes: int = Field(default=100, ge=11, description="passes of the first mixture, at most")

    def first(self, start: State, *, seed: int) -> State:
        mix = {f"{MIX}{name}": np.ones_like(start[name]) for name in self._mixed(tuple(start))}
        return {**start, **mix, SETTLED: np.zeros((), np.float32)}

    @property
    def phases(self) -> tuple[Phase, ...]:
        return (Phase(epochs=self.training.epochs, loss=self.loss, trained=self.averaged),)

    def _mixed(self, names: tuple[str, ...]) -> list[str]:
        """Return the names of the parameters of the last layers."""
        own = [name for name in names if name.startswith(self.averaged)]
        last = sorted({_depth(name) for name in own})[-self.layers :]
        return [name for name in own if _depth(name) in last]

    def adapt(
        self, network: Network, params: "dict[str, Tensor]", down: Down, passes: Passes, clients: int
    ) -> None:
        import torch

        names = self._mixed(tuple(params))
        old = {name: params[name].clone() for name in names}
        gap = {name: down[name].to(params[name].dtype) - old[name] for name in names}
        changed_G = torch.stack([d.flatten(1).any(1) for d in gap.values()]).any(0)
        self.receive(params, down)
        _Mixture(self, network, params, old, gap).learn(passes, changed_G)
        for name in names:
            mixed = old[name] + params[f"{MIX}{name}"] * gap[name]
            params[name].copy_(torch.where(_like(changed_G, mixed), mixed, params[name]))

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        return AbstractMethod.logits(self, network, params, x, down, own)


class _Mixture:
    """What learns A, in place, for the clients that something new arrived at."""

    def __init__(
        self,
        method: FedAla,
        network: Network,
        params: "dict[str, Tensor]",
        old: "dict[str, Tensor]",
        gap: "dict[str, Tensor]",
    ) -> None:
        self._method, self._network, self._params = method, network, params
        self._old, self._gap = old, gap

    def learn(self, passes: Passes, live_G: "Tensor") -> None:
        """Learn until every client has settled; one that did in an earlier round makes one pass.

        Args:
            passes: over the clients' records.
            live_G: which clients learn at all.
        """
        import torch

        before_G, live_G = self._params[SETTLED] > 0, live_G.clone()
        self._params[SETTLED][live_G] = 1.0
        losses: list[Tensor] = []
        while live_G.any() and len(losses) < self._method.most_passes:
            losses.append(self._pass(passes, live_G))
            live_G &= ~before_G
            if len(losses) > _LOOKED_AT:
                live_G &= torch.stack(losses[-_LOOKED_AT:]).std(0, correction=0) >= self._method.settled

    def _pass(self, passes: Passes, live_G: "Tensor") -> "Tensor":
        """Learn for one pass; return the loss of each client's last mini-batch, shape [G]."""
        last_G = self._params[SETTLED].new_zeros(len(live_G))
        for part, batch in passes(self._method.training.batch_size, self._method.share):
            last_G[part] = self._step(part, batch, live_G[part])
        return last_G

    def _step(self, part: slice, batch: "Batch", live_G: "Tensor") -> "Tensor":
        import torch

        gap = {name: d[part] for name, d in self._gap.items()}
        mixed = {
            name: (self._old[name][part] + self._params[f"{MIX}{name}"][part] * d).requires_grad_(True)
            for name, d in gap.items()
        }
        every = {name: p[part] for name, p in self._params.items()} | mixed
        with torch.enable_grad():
            loss_G = cross_entropy(
                self._network.still.logits(every, self._network.still.embed(every, batch.x)), batch
            )
            slopes = torch.autograd.grad(loss_G.sum(), list(mixed.values()))
        for (name, d), slope in zip(gap.items(), slopes, strict=True):
            mix = self._params[f"{MIX}{name}"][part]
            new = (mix - self._method.rate * slope * d).clamp_(0, 1)
            mix.copy_(torch.where(_like(live_G, mix), new, mix))
        return loss_G.detach()


def _depth(name: str) -> tuple[int, int, str]:
    """Return where a parameter stands between input and output."""
    if not name.startswith(HEAD):
        return (0, 0, name)
    deeper = _DEEPER.match(name)
    return (1, int(deeper[1]) if deeper else 0, "")


def _like(mask_G: "Tensor", tensor: "Tensor") -> "Tensor":
    """Return a mask of clients shaped so that it broadcasts with a tensor of theirs."""
    return mask_G.view(-1, *[1] * (tensor.ndim - 1))
