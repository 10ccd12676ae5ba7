"""What FedUP's server does with one round's Gaussians: reliable clients weigh more in the Gaussian of a class."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from privkit.barycenter import BARYCENTERS
from privkit.release import ProbabilisticPrototypes


class Merged(NamedTuple):
    """One Gaussian per class.

    Attributes:
        mean: shape [C, d]; zeros for a class that nobody sent.
        spread: standard deviations, shape [C, d]; ones there.
        holders: clients that sent something about each class, shape [C].
    """

    mean: Float64[np.ndarray, "C d"]
    spread: Float64[np.ndarray, "C d"]
    holders: Int64[np.ndarray, " C"]


class Reliability(NamedTuple):
    """How the clients that hold a class are weighed.

    Attributes:
        temperature: tau, above 0; a large one weighs all alike.
        balance: lambda_unc, weight of aleatoric against epistemic uncertainty, at least 0; at most 1 if convex.
        form: whether the aleatoric one is added, ``epi + balance ale``, or mixed, ``(1 - balance) epi + balance ale``.
    """

    temperature: float
    balance: float
    form: Literal["sum", "convex"]

    def weights(
        self, epistemic_M: Float64[np.ndarray, " M"], aleatoric_M: Float64[np.ndarray, " M"]
    ) -> Float64[np.ndarray, " M"]:
        """Return weights, adding up to 1: a softmax of minus what is uncertain over tau (FedUP, Eq. 18, inferred)."""
        first = 1.0 - self.balance if self.form == "convex" else 1.0
        logits_M = -(first * epistemic_M + self.balance * aleatoric_M) / self.temperature
        raw_M = np.exp(logits_M - logits_M.max())
        return raw_M / raw_M.sum()


def merged(
    uploads: Mapping[int, ProbabilisticPrototypes],
    *,
    num_classes: int,
    dim: int,
    reliability: Reliability | None,
    barycenter: Literal["wasserstein", "mixture", "independent"],
    floor: float,
) -> Merged:
    """Return the barycenter of each class over the clients that sent it (FedUP, Eqs. 18 and 19).

    Args:
        uploads: of one round, by client.
        num_classes: C.
        dim: d.
        reliability: how clients are weighed; ``None`` weighs those that hold a class alike, as does not sending
            uncertainties.
        barycenter: what is made of several Gaussians, by name.
        floor: smallest spread, above 0.
    """
    mean_Cd, spread_Cd = np.zeros((num_classes, dim)), np.ones((num_classes, dim))
    holders = np.zeros(num_classes, dtype=np.int64)
    for label, rows in _by_class(uploads).items():
        means_Md, spreads_Md, doubt_M2 = (
            np.array(part, dtype=np.float64) for part in zip(*rows, strict=True)
        )
        weight_M = np.full(len(rows), 1 / len(rows))
        if reliability is not None:
            weight_M = reliability.weights(doubt_M2[:, 0], doubt_M2[:, 1])
        found = BARYCENTERS[barycenter](means_Md, spreads_Md, weight_M)
        mean_Cd[label], spread_Cd[label] = found.mean, np.maximum(found.spread, floor)
        holders[label] = len(rows)
    return Merged(mean_Cd, spread_Cd, holders)


_Row = tuple[np.ndarray, np.ndarray, tuple[float, float]]


def _by_class(uploads: Mapping[int, ProbabilisticPrototypes]) -> dict[int, list[_Row]]:
    """Return mean, spread and uncertainties of every client that sent a class, by class, in the order of clients."""
    found: dict[int, list[_Row]] = {}
    for client in sorted(uploads):
        sent = uploads[client]
        nothing = np.zeros(len(sent.labels))
        epistemic_P = nothing if sent.epistemic is None else sent.epistemic
        aleatoric_P = nothing if sent.aleatoric is None else sent.aleatoric
        for row, label in enumerate(sent.labels.tolist()):
            doubt = float(epistemic_P[row]), float(aleatoric_P[row])
            found.setdefault(label, []).append((sent.vectors[row], sent.spread[row], doubt))
    return found
