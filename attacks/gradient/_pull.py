r"""How much of its weights a client added to its gradient, as an L2 penalty adds them, and the gradient without.

Where weights W are penalised, what is sent of a map is :math:`c\,G + a\,W`, with a clip's unknown factor c. W has full
rank, and so has the sum: row spaces show nothing, and whitening blows W up. But the server knows W, it sent it out, and
G has low rank, k at most the tokens behind it: of the right a it is known what is left when it is taken out. The
singular directions of :math:`c\,G + a\,W - \hat a\,W` beyond the first n/2 hold nothing of G where k is at most n/2, so

.. math:: \hat a \leftarrow \frac{\langle U_\perp^T S V_\perp,\; U_\perp^T W V_\perp \rangle}
    {\|U_\perp^T W V_\perp\|^2}, \qquad S = c\,G + a\,W

with S and W seen through n random directions on both sides, which keeps ranks up to n. Few steps of it find a to seven
digits. It counts where the rank is at most n/2 afterwards and was not before. A penalty is taken to be the same on all
maps but the head, so one map of low rank tells it for all: behind the last block there is one token per record.

Not every a can be told: where all maps have full rank (LoRA after its first round, more records than half the width of
the maps, noise), nothing is taken out, and an attack that can must do without the direction of W
(:mod:`attacks.gradient._matched`).

Source: FISGuard (arXiv:2608.27836) lists L2 among defenses; that it hides nothing, and this estimate, are ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from jaxtyping import Float, Float64

from attacks.gradient._precision import Floor

_DIRECTIONS = 128
_STEPS = 20
_SETTLED = 1e-12

Maps = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False, kw_only=True)
class Pull:
    """What is known of the multiple of the weights in one upload.

    Attributes:
        share: a, by map, of maps that have one; empty where there is none.
        unknown: weights of maps in which there may be any multiple.
    """

    share: Mapping[str, float] = field(default_factory=dict)
    unknown: Maps = field(default_factory=dict)

    def without(self, sent: Maps, weights: Maps) -> dict[str, np.ndarray]:
        """Return an upload without the multiple that is known."""
        return {
            name: g - self.share[name] * weights[name] if name in self.share else g
            for name, g in sent.items()
        }


def pull_of(sent: Maps, weights: Maps, floor: Callable[[str], Floor], *, head: str | None) -> Pull:
    """Return how much of the weights is in an upload.

    Args:
        sent: gradients by map, in the order of the model.
        weights: that the server sent out, of the same maps or of some.
        floor: below which singular values of a map's gradient mean nothing, by its name.
        head: name of the map that gives the logits, if it was sent; a penalty may leave it out.
    """
    pulled = {name: weights[name] for name in sent if name in weights and np.any(weights[name])}
    unsure = {name: weights_md for name, weights_md in pulled.items() if name != head}
    for name in reversed(unsure):
        found = share(sent[name], weights[name], floor(name))
        if found == 0.0:
            return Pull()
        if found is not None:
            return Pull(share={n: found for n in pulled if n != head or _full(sent[n], floor(n))})
    return Pull(unknown=unsure)


def share(
    sent_md: Float64[np.ndarray, "m d"], weights_md: Float[np.ndarray, "m d"], floor: Floor
) -> float | None:
    """Return the multiple of the weights in one map's gradient: exactly 0 if its rank is low as it is.

    ``None`` where its rank is not low with nothing and with nothing of the weights taken out.
    """
    m, d = sent_md.shape
    n = min(_DIRECTIONS, m, d)
    sent_nn, weights_nn = (_directions(m, n).T @ x_md @ _directions(d, n) for x_md in (sent_md, weights_md))
    least = max(floor.absolute, floor.relative * float(np.linalg.norm(sent_nn, 2)))
    if _low(sent_nn, least):
        return 0.0
    found, settled = 0.0, _SETTLED * float(np.linalg.norm(sent_nn) / np.linalg.norm(weights_nn))
    for _ in range(_STEPS):
        left_nn, _, right_nn = np.linalg.svd(sent_nn - found * weights_nn)
        left_nk, right_kn = left_nn[:, n // 2 :], right_nn[n // 2 :]
        beyond_kk = left_nk.T @ weights_nn @ right_kn.T
        before = found
        found = float(np.vdot(beyond_kk, left_nk.T @ sent_nn @ right_kn.T) / np.vdot(beyond_kk, beyond_kk))
        if abs(found - before) <= settled:
            break
    return found if _low(sent_nn - found * weights_nn, least) else None


def _low(matrix_nn: Float64[np.ndarray, "n n"], least: float) -> bool:
    """Return whether a matrix has at most half of its full rank, singular values up to ``least`` left out."""
    return int((np.linalg.svd(matrix_nn, compute_uv=False) > least).sum()) <= len(matrix_nn) // 2


def _full(sent_md: Float64[np.ndarray, "m d"], floor: Floor) -> bool:
    """Return whether a gradient has full rank; that of a head has not, its errors sum to 0."""
    values_K = np.linalg.svd(sent_md, compute_uv=False)
    return floor.rank(values_K, shape=sent_md.shape) == min(sent_md.shape)


@cache
def _directions(size: int, count: int) -> Float64[np.ndarray, "size count"]:
    """Return random orthonormal columns; all of the identity's where that many are asked for."""
    if count == size:
        return np.eye(size)
    drawn = np.random.default_rng(size).standard_normal((size, count))  # any draw keeps ranks
    return np.linalg.qr(drawn)[0]
