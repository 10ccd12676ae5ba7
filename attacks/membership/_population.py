"""What an attacker knows of a client's domain from records of its own: class means, and a covariance."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from attacks._base import NotApplicableError
from privkit.clip import clip_to_ball
from privkit.transcript import Records

_FOLDS = 5
_SHRINKAGES = np.geomspace(1e-4, 1.0, 9)
_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class Population:
    """A client's domain as the attacker knows it.

    Attributes:
        means: mean of each class, by label, shape [d].
        sizes: records behind each mean.
        basis: eigenvectors of the pooled within-class covariance, shape [d, d], in columns.
        variances: its eigenvalues, shape [d], above 0.
    """

    means: dict[int, np.ndarray]
    sizes: dict[int, int]
    basis: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(cls, records: Records, *, clip_norm: float) -> "Population":
        """Return the population that some records suggest.

        The covariance is shrunk towards a multiple of the identity, by the amount under which the
        attacker's own records, a fifth left out at a time, are most likely.
        """
        labels = np.unique(records.labels)
        if len(records) - len(labels) < _FOLDS:
            raise NotApplicableError("there are too few reference records to estimate a covariance")
        z_Nd = clip_to_ball(records.vectors, norm=clip_norm)
        means = {int(c): z_Nd[records.labels == c].mean(0) for c in labels}
        centred_Nd = z_Nd - np.array([means[int(c)] for c in records.labels])
        variances, basis = np.linalg.eigh(centred_Nd.T @ centred_Nd / (len(records) - len(labels)))
        return cls(
            means=means,
            sizes={int(c): int((records.labels == c).sum()) for c in labels},
            basis=basis,
            variances=shrunk(variances, best_shrinkage(centred_Nd)),
        )


def shrunk(variances_d: Float64[np.ndarray, " d"], amount: float) -> Float64[np.ndarray, " d"]:
    """Return eigenvalues moved towards their mean; 0 leaves them, 1 makes them equal."""
    return np.maximum((1 - amount) * variances_d + amount * variances_d.mean(), _SMALLEST)


def best_shrinkage(centred_Nd: Float64[np.ndarray, "N d"]) -> float:
    """Return the shrinkage under which records, a fifth left out at a time, are most likely."""
    fold_N = np.arange(len(centred_Nd)) % _FOLDS
    total = np.zeros(len(_SHRINKAGES))
    for fold in range(_FOLDS):
        kept, left = centred_Nd[fold_N != fold], centred_Nd[fold_N == fold]
        variances, basis = np.linalg.eigh(kept.T @ kept / len(kept))
        spread_d = ((left @ basis) ** 2).mean(0)
        for i, amount in enumerate(_SHRINKAGES):
            candidate = shrunk(variances, amount)
            total[i] -= (np.log(candidate) + spread_d / candidate).sum()
    return float(_SHRINKAGES[np.argmax(total)])
