"""How FISGuard changes a model, and the audit of what it sends."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from privkit.errors import InputError
from privkit.finetune.guard import Guard
from privkit.finetune.model import Tuned, passes
from privkit.finetune.public import STANDARDISING, Public
from privkit.finetune.terms import Terms
from privkit.finetune.tuning._fixed import FixedInput, fix
from privkit.finetune.watched import watched
from privkit.noise import Purpose, keyed

if TYPE_CHECKING:
    from privkit.finetune.defenses.fisguard import Fisguard

EPS = float(np.finfo(np.float32).eps)


def reparameterise(settings: "Fisguard", model: Tuned, public: Public, *, seed: int) -> None:
    """Fix the input side of every trained map of a model.

    Raises:
        InputError: the rank is not below the width of an input, or public records have fewer directions.
    """
    fixed = model.settings.fix_inputs(model.net, model.tuning, rank=settings.rank)
    model.to(model.device)
    if model.standardised:  # what it gives without the adapters' initial weights
        model.standardise(public.first(STANDARDISING).texts)
    if settings.protect_head and isinstance(model.head, nn.Linear):
        model.head = FixedInput(model.head, rank=settings.rank, where="the head")
        fixed["head"] = model.head.down
    model.to(model.device)
    if settings.basis.value == "random":
        bases = _random(fixed, seed)
    else:
        # all U are 0, so what maps read now is what they read of the pretrained model
        bases = {
            n: leading(g, settings.rank, where=n) for n, g in gram_matrices(model, fixed, public).items()
        }
    for name, basis in bases.items():
        fix(fixed[name], basis)


def _random(fixed: Mapping[str, nn.Linear], seed: int) -> dict[str, Tensor]:
    found = {}
    for place, (name, m) in enumerate(fixed.items()):
        drawn = keyed(seed, Purpose.INIT, round=place + 1).standard_normal((m.in_features, m.out_features))
        found[name] = torch.from_numpy(np.linalg.qr(drawn)[0].T)
    return found


@torch.no_grad()
def gram_matrices(model: Tuned, fixed: Mapping[str, nn.Linear], public: Public) -> dict[str, Tensor]:
    """Return ``X^T X`` of what each map reads of public records, a row per token, float64 of shape [d, d]."""
    found = {
        name: torch.zeros(m.in_features, m.in_features, dtype=torch.float64) for name, m in fixed.items()
    }
    with watched(fixed) as seen:
        for rows, ids, lengths in passes(model, public.texts):
            seen.clear()
            model(ids, lengths)
            present = torch.from_numpy(public.texts.take(rows).present).to(ids.device)
            for name, (x, _) in seen.items():
                read = (x[present] if x.ndim == 3 else x).double()
                found[name] += (read.T @ read).cpu()
    return found


def leading(gram_dd: Tensor, rank: int, *, where: str) -> Tensor:
    """Return the leading right singular vectors of X from ``X^T X``, as orthonormal rows [rank, d].

    Raises:
        InputError: X has a smaller rank.
    """
    values, vectors = torch.linalg.eigh(gram_dd)
    held = int((values > values[-1] * len(values) * EPS**2).sum())
    if held < rank:
        raise InputError(
            f"rank={rank}: what public records show {where} has {held} directions; lower it, or raise public."
        )
    return vectors.flip(1)[:, :rank].T


class RankGuard(Guard):
    """Looks at every map's gradient before it is sent."""

    def __init__(self, settings: "Fisguard", terms: Terms, model: Tuned) -> None:
        super().__init__(terms)
        self.audit = settings.rank_audit.value
        # an unprotected head's rows are no coordinates of a fixed subspace
        self.names = [n for n, m in model.maps().items() if settings.protect_head or m is not model.head]

    def sent(self, change: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if self.audit == "off":
            return dict(change)
        return {name: self._audited(g) if name in self.names else g for name, g in change.items()}

    def _audited(self, change_mr: np.ndarray) -> np.ndarray:
        kept = independent_columns(change_mr)
        if kept < change_mr.shape[1] and self.audit == "refuse":
            kept = 0
        return np.where(np.arange(change_mr.shape[1]) < kept, change_mr, np.float32(0))


def independent_columns(gradient_mr: np.ndarray) -> int:
    """Return how many leading columns have full rank together, in float64; 0 for a gradient of zeros.

    >>> independent_columns(np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 1.0]]))
    1
    """
    low, high = 0, min(gradient_mr.shape)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if numerical_rank(gradient_mr[:, :middle]) == middle else (low, middle - 1)
    return low


def numerical_rank(matrix: np.ndarray) -> int:
    """Return how many singular values are above the largest one times the larger side times float32's epsilon."""
    values = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
    return int((values > values.max(initial=0.0) * max(matrix.shape) * EPS).sum())
