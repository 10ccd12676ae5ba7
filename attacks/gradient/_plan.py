"""What the matched filter should reach on uploads of a kind, told beforehand from the attacker's own records."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.optimize import brentq
from scipy.special import ndtr

from accountant import check
from attacks.gradient._filters import RIDGES, Estimator, made
from attacks.gradient._inner import clip_factors
from attacks.gradient._matched import Batch, Filter
from attacks.gradient._noise import Noise
from attacks.gradient._seen import passes_of
from attacks.gradient._snr import effective_dimension, sigma_for_auc
from privkit.exposure import Exposure

LEAST_RECORDS = 8
_NEARLY_ONE = 1 - 1e-9
_CLOSE = 1e-3
_DEEPEST = 12.0
"""ln of the most by which other records' gradients may stand in for noise."""


@dataclass(frozen=True)
class Prediction:
    """What one upload tells of a record that is like the attacker's own.

    Attributes:
        auc: of the matched filter over such records, in [0, 1].
        effective_dimension: that the law of :mod:`attacks.gradient._snr` needs for this AUC; infinite where the AUC
            rounds to 1, and not a number where it is no better than chance.
    """

    auc: float
    effective_dimension: float


def predicted(
    public: Exposure,
    *,
    batch_size: int,
    noise: Noise = Noise(),  # noqa: B008 frozen
    estimator: Estimator = "both",
    ridge: float | None = None,
    names: tuple[str, ...] | None = None,
    rounding: tuple[tuple[str, float], ...] = (),
) -> Prediction:
    """Return the AUC to expect of the matched filter, without any upload.

    A filter is made of every other public record and asked about the rest, and the other way round. What the rest put
    along one record's direction, ``(M g)^T g'``, is the spread that a batch has there; noise adds its own; the record
    itself is the signal. Members and non-members are records like them: over all pairs, ``AUC = mean Phi(signal_i /
    sqrt(var_i(B - 1) + var_j(B)))`` in units of the score.

    Args:
        public: passes at the weights of a round; at least 8 records, better 200.
        batch_size: records behind an upload, at least 1.
        noise: clip norm and standard deviation of an upload to come.
        estimator: of the covariance, as in the attack.
        ridge: as in the attack.
        names: maps that are sent; all by default.
        rounding: variance of rounding on each number of the sum, by map; of maps where it matters.

    Raises:
        ValueError: there are too few records.
    """
    count = len(public.losses)
    if count < LEAST_RECORDS:
        raise ValueError(
            f"{count} public records are too few to predict from; give at least {LEAST_RECORDS}."
        )
    used = tuple(public.traces) if names is None else names
    batch, aucs = Batch(batch_size, noise.std, rounding), []
    for first in (0, 1):
        own, rest = (passes_of(public, np.arange(start, count, 2)) for start in (first, 1 - first))
        filter = made(
            own,
            used,
            estimator,
            clip_norm=noise.clip_norm,
            noisy=noise.std > 0,
            ridge=RIDGES[estimator] if ridge is None else ridge,
        )
        aucs.append(_pairs(*_moments(filter, rest, used, batch, noise.clip_norm), batch))
    auc = float(np.mean(aucs))
    return Prediction(auc, _dimension(auc, batch_size, noise))


def sigma_for(
    public: Exposure, *, auc: float, batch_size: int, clip_norm: float = 1.0
) -> tuple[float, Prediction]:
    """Return the least noise multiplier at which the matched filter should stay at an AUC or below, and its AUC there.

    It is sought between none and what :mod:`attacks.gradient._snr` names for any gradients. The AUC is told anew for
    each noise, as it hides some directions before others: one effective dimension would not do for all.

    Args:
        public: passes at the weights of a round; at least 8 records, better 200.
        auc: target, above 0.5 and below 1.
        batch_size: records behind an upload, at least 1.
        clip_norm: largest norm of one record's gradient, > 0.

    Returns:
        0 where the batch alone hides a record well enough; else the AUC is the target to 0.001.

    Raises:
        ValueError: there are too few records, or a number is out of its range.
    """
    check.positive(clip_norm=clip_norm)

    def told(sigma: float) -> Prediction:
        return predicted(public, batch_size=batch_size, noise=Noise(clip_norm, sigma * clip_norm))

    hidden = told(0.0)
    if hidden.auc <= auc:
        return 0.0, hidden
    asked = dict[float, Prediction]()

    def above(log_sigma: float) -> float:
        """Return how far an AUC is above one just below the target."""
        sigma = float(np.exp(log_sigma))
        asked[sigma] = told(sigma)
        return asked[sigma].auc - (auc - _CLOSE / 2)

    high = float(np.log(sigma_for_auc(auc=auc, batch_size=batch_size)))
    while above(high) > 0:  # in a sample an AUC may be above its ceiling
        high += 1.0
    brentq(above, high - _DEEPEST, high, xtol=_CLOSE / 4)
    sigma = min(sigma for sigma, found in asked.items() if found.auc <= auc)
    return sigma, asked[sigma]


def _moments(
    filter: Filter, rest: Exposure, names: tuple[str, ...], batch: Batch, clip_norm: float
) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
    """Return signal, spread of one other record, and spread of the noise, each in units of a record's score."""
    factor_N = clip_factors(rest, clip_norm)
    inner_NN, noise_N = np.zeros((len(factor_N), len(factor_N))), np.zeros(len(factor_N))
    known = tuple(name for name in names if name in filter.bases)
    for name, own_Np, directions_Np in filter.whitened(filter.own(rest, factor_N, known), batch):
        inner_NN += directions_Np @ own_Np.T
        noise_N += batch.variance(name) * np.einsum("np,np->n", directions_Np, directions_Np)
    signal_N = np.diag(inner_NN).copy()
    live_N = signal_N > 0
    inner_NN, signal_N = inner_NN[np.ix_(live_N, live_N)], signal_N[live_N]
    others = len(signal_N) - 1
    centre_N = (inner_NN.sum(1) - signal_N) / others
    away_NN = (inner_NN - centre_N[:, None]) ** 2
    np.fill_diagonal(away_NN, 0.0)
    spread_N = away_NN.sum(1) / others
    return (
        (signal_N - centre_N) / np.sqrt(signal_N),
        spread_N / signal_N,
        noise_N[live_N] / signal_N,
    )


def _pairs(
    signal_N: Float64[np.ndarray, " N"],
    spread_N: Float64[np.ndarray, " N"],
    noise_N: Float64[np.ndarray, " N"],
    batch: Batch,
) -> float:
    """Return the mean over all pairs of a member and a non-member of how likely the first one scores higher."""
    inside_N = (batch.size - 1) * spread_N + noise_N
    outside_N = batch.size * spread_N + noise_N
    both_NN = np.sqrt(inside_N[:, None] + outside_N[None, :])
    return float(ndtr(signal_N[:, None] / np.maximum(both_NN, 1e-300)).mean())


def _dimension(auc: float, batch_size: int, noise: Noise) -> float:
    sigma = noise.std / noise.clip_norm if noise.std else 0.0
    if auc <= 0.5:
        return float("nan")
    if auc >= _NEARLY_ONE:
        return float("inf")
    try:
        return effective_dimension(auc=auc, batch_size=batch_size, sigma=sigma)
    except ValueError:
        return float("inf")
