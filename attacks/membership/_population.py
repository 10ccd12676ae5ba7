"""What an attacker knows of a client's domain from records of its own: class means, and a covariance."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from attacks._base import OWN_MORE, NotApplicableError
from attacks._kept import Kept

_FOLDS = 5
_SHRINKAGES = np.geomspace(1e-4, 1.0, 9)
_SMALLEST = 1e-12
_MOST_KEPT = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class Population:
    """A client's domain as the attacker knows it.

    Attributes:
        means: mean of each class, by label, shape [d].
        sizes: records behind each mean.
        covariance: pooled within classes, positive definite, shape [d, d].
    """

    means: dict[int, np.ndarray]
    sizes: dict[int, int]
    covariance: Float64[np.ndarray, "d d"]

    @cached_property
    def principal(self) -> tuple[Float64[np.ndarray, " d"], Float64[np.ndarray, "d d"]]:
        """Return the variance along each principal axis, and the axes, one a column."""
        variances_d, axes_dd = np.linalg.eigh(self.covariance)
        return np.maximum(variances_d, _SMALLEST), axes_dd

    @classmethod
    def of(cls, labels_N: np.ndarray, clipped_Nd: Float64[np.ndarray, "N d"]) -> "Population":
        """Return the population that some records suggest, clipped as the client clips.

        The covariance is shrunk towards a multiple of the identity, by the amount under which the
        attacker's own records, a fifth left out at a time, are most likely.
        """
        labels = np.unique(labels_N)
        if len(labels_N) - len(labels) < _FOLDS:
            raise too_few(len(labels_N), len(labels), beyond=_FOLDS)
        means = {int(c): clipped_Nd[labels_N == c].mean(0) for c in labels}
        centred_Nd = clipped_Nd - np.array([means[int(c)] for c in labels_N])
        return cls(
            means=means,
            sizes={int(c): int((labels_N == c).sum()) for c in labels},
            covariance=shrunk(
                centred_Nd.T @ centred_Nd / (len(labels_N) - len(labels)), best_shrinkage(centred_Nd)
            ),
        )


def too_few(records: int, classes: int, *, beyond: int) -> NotApplicableError:
    """Return the refusal of records that are no more than their classes and so many."""
    return NotApplicableError(
        f"{records} of {classes} classes are too few reference records to estimate a covariance, {classes + beyond} "
        f"are needed in a client's domain; {OWN_MORE}"
    )


_kept = Kept[Population](_MOST_KEPT)


def population(labels_N: np.ndarray, clipped_Nd: Float64[np.ndarray, "N d"]) -> Population:
    """Return :meth:`Population.of`; the last few hundred are kept, for attacks that ask the same again."""
    return kept(lambda: Population.of(labels_N, clipped_Nd), labels_N, clipped_Nd)


def kept(
    compute: Callable[[], Population],
    labels_N: np.ndarray,
    clipped_Nd: np.ndarray,
    *,
    settings: object = None,
) -> Population:
    """Return what was computed from the same records and settings before, else compute it."""
    return _kept.of(compute, labels_N, clipped_Nd, settings=settings)


def shrunk(covariance_dd: Float64[np.ndarray, "d d"], amount: float) -> Float64[np.ndarray, "d d"]:
    """Return a covariance moved towards a multiple of the identity; 0 leaves it nearly, 1 makes all variances equal."""
    floor = _floor(amount, float(np.trace(covariance_dd)) / len(covariance_dd))
    return (1 - amount) * covariance_dd + floor * np.eye(len(covariance_dd))


def best_shrinkage(centred_Nd: Float64[np.ndarray, "N d"]) -> float:
    """Return the shrinkage under which records, a fifth left out at a time, are most likely.

    Records span no more axes than there are of them; along all others the covariance is its floor.
    """
    fold_N, d = np.arange(len(centred_Nd)) % _FOLDS, centred_Nd.shape[1]
    total = np.zeros(len(_SHRINKAGES))
    for fold in range(_FOLDS):
        kept, left = centred_Nd[fold_N != fold], centred_Nd[fold_N == fold]
        _, lengths_r, axes_rd = np.linalg.svd(kept, full_matrices=False)
        variances_r, spread_r = lengths_r**2 / len(kept), ((left @ axes_rd.T) ** 2).mean(0)
        elsewhere = max(0.0, float((left**2).sum(1).mean() - spread_r.sum()))
        for i, amount in enumerate(_SHRINKAGES):
            floor = _floor(amount, variances_r.sum() / d)
            along_r = (1 - amount) * variances_r + floor
            total[i] -= (np.log(along_r) + spread_r / along_r).sum()
            total[i] -= (d - len(along_r)) * np.log(floor) + elsewhere / floor
    return float(_SHRINKAGES[np.argmax(total)])


def _floor(amount: float, mean_variance: float) -> float:
    """Return the variance that every axis has at least."""
    return max(amount * mean_variance, _SMALLEST)
