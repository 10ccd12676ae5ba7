"""Cross-entropy over cosines to the prototypes of many peers, in memory that grows linearly with their number.

With M clients that each compare B embeddings with M x C prototypes there are M^2 B C cosines, and autograd would keep
them all. Here they are made a few peers at a time, and only the sum of losses and their gradient are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from privkit.methods._infonce import unit

_AT_ONCE = 2**20  # cosines that are held at a time


@dataclass(frozen=True, eq=False, kw_only=True)
class Peers:
    """Whose prototypes embeddings are compared with, held once per run.

    Attributes:
        vectors_RMCd: prototypes of each peer.
        present_RC: classes that there is a prototype of, the same for all peers of a run.
        sent_RM: peers that there are; the rest is filling.
        run_G: run of each client.
    """

    vectors_RMCd: Tensor
    present_RC: Tensor
    sent_RM: Tensor
    run_G: Tensor


def contrast(u_GBd: Tensor, y_GB: Tensor, peers: Peers, *, temperature: float) -> Tensor:
    r"""Return each record's cross-entropy over cosines, added up over peers, shape [G, B].

    ``sum_i -log( exp(cos(u, p_i^y) / tau) / sum_c exp(cos(u, p_i^c) / tau) )``, over peers i and over the classes c
    that there is a prototype of; 0 for a record of a class that there is none of.

    Args:
        u_GBd: embeddings.
        y_GB: their classes.
        peers: what they are compared with.
        temperature: tau.
    """
    return _Contrast.apply(unit(u_GBd), y_GB, peers, temperature)  # pyright: ignore[reportReturnType]


class _Contrast(torch.autograd.Function):
    """The sum of losses of unit vectors, with the gradient computed on the way."""

    @staticmethod
    def forward(ctx: Any, unit_GBd: Tensor, y_GB: Tensor, peers: Peers, temperature: float) -> Tensor:
        loss_GB, gradient_GBd = unit_GBd.new_zeros(y_GB.shape), torch.zeros_like(unit_GBd)
        for run in sorted(set(peers.run_G.tolist())):
            mine = (peers.run_G == run).nonzero().squeeze(-1)
            rows, y = unit_GBd[mine].flatten(0, 1), y_GB[mine].flatten()
            loss, gradient = _of_run(rows, y, peers, run, temperature)
            loss_GB[mine] = loss.unflatten(0, (len(mine), -1))
            gradient_GBd[mine] = gradient.unflatten(0, (len(mine), -1))
        ctx.save_for_backward(gradient_GBd)
        return loss_GB

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *outer: Tensor
    ) -> tuple[Tensor | None, ...]:
        (gradient_GBd,) = ctx.saved_tensors
        return gradient_GBd * outer[0].unsqueeze(-1), None, None, None


def _of_run(
    unit_Nd: Tensor, y_N: Tensor, peers: Peers, run: int, temperature: float
) -> tuple[Tensor, Tensor]:
    """Return the losses [N] of one run's embeddings, and their gradients [N, d]."""
    loss, gradient = unit_Nd.new_zeros(len(unit_Nd)), torch.zeros_like(unit_Nd)
    present_C = peers.present_RC[run]
    # the lowest finite number, so that all stays a number where no class is present at all
    lowest = torch.finfo(unit_Nd.dtype).min
    for vectors_KCd, sent_K in _portions(peers, run, rows=len(unit_Nd), dtype=unit_Nd.dtype):
        p = unit(vectors_KCd).flatten(0, 1)
        cosine = (unit_Nd @ p.T).to(unit_Nd.dtype).unflatten(-1, vectors_KCd.shape[:2])
        log_q = (cosine / temperature).masked_fill_(~present_C, lowest).log_softmax(-1)
        own = y_N.view(-1, 1, 1).expand(-1, len(sent_K), 1)
        loss -= (log_q.gather(-1, own).squeeze(-1) * sent_K).sum(-1)
        residual = log_q.exp_().scatter_add_(-1, own, -torch.ones_like(own, dtype=log_q.dtype))
        gradient.addmm_(residual.mul_(sent_K.view(-1, 1) / temperature).flatten(1), p)
    known = present_C[y_N]
    return torch.where(known, loss, 0.0), gradient * known.unsqueeze(-1)


def _portions(peers: Peers, run: int, *, rows: int, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the prototypes of some peers of a run at a time, and 1 for each that there is, 0 for filling."""
    vectors_MCd, sent_M = peers.vectors_RMCd[run], peers.sent_RM[run]
    step = max(1, _AT_ONCE // (rows * vectors_MCd.shape[1]))
    for start in range(0, len(vectors_MCd), step):
        part = slice(start, start + step)
        yield vectors_MCd[part].to(dtype), sent_M[part].to(dtype)
