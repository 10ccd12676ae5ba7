"""What noisy class means let an attack reach."""

import math

import numpy as np
from scipy import special

from accountant import gaussian
from accountant.groupwise import Allocation
from accountant.tradeoff import GaussianCurve
from attacks.statistics.power import coordinates_for_power
from privkit.selfcheck.families._facts import fact
from privkit.selfcheck.families._tables import table

_QUANTILES = (np.arange(4000) + 0.5) / 4000
_COORDINATES = 10**6  # a share of them is a whole number, to six digits


@table("mean_tracing_theory", answers=4)
def tracing(n: int, d: int, sigma: float, /) -> list[float | None]:
    """Return mu and AUC of an average record, and of the worst one, which has none without noise.

    Features are isotropic of norm 1, so each coordinate has the variance ``1/d``; noise has ``s = 2 sigma / n``.
    """
    variance, noise = 1 / d, (2 * sigma / n) ** 2
    mu = math.sqrt(d / n * variance / (variance + n * noise))
    worst = [1 / sigma, GaussianCurve(mu=1 / sigma).auc] if sigma > 0 else [None, None]
    return [mu, GaussianCurve(mu=mu).auc, *worst]


@fact("mu_times_sigma_optimal")
def whitened(*, rho: float) -> float:
    (a, b), (w_a, w_b) = _shares(rho)
    return math.hypot(*(kappa / (kappa / math.sqrt(w)) for kappa, w in ((a, w_a), (b, w_b))))


@fact("mu_times_sigma_inner_product")
def unwhitened(*, rho: float) -> float:
    """Return mu of the plain inner product with a shift of ``kappa_g`` in noise of ``kappa_g / sqrt(w_g)``."""
    kappas, weights = _shares(rho)
    variance = sum(kappa**4 / weight for kappa, weight in zip(kappas, weights, strict=True))
    return sum(kappa**2 for kappa in kappas) / math.sqrt(variance)


def _shares(rho: float) -> tuple[tuple[float, float], tuple[float, float]]:
    selected = round(rho * _COORDINATES)
    allocation = Allocation(sizes=(selected, _COORDINATES - selected))
    return allocation.kappas, allocation.weights


@table("whitebox_noise_check", answers=1)
def coordinates(ratio: float, /) -> list[int]:
    return [coordinates_for_power(noise_ratio=ratio, significance=0.001, power=0.99)]


@table("count_leak_auc", answers=2)
def count_leak(epsilon: float, d: int, n: int, /, *, delta: float) -> list[float]:
    """Return the AUC of the likelihood ratio when a record is added and the noise scale follows the count.

    In units of the noise with the record: with it, mean ``a = 1/(2 sigma)`` on one axis and scale 1; without it, mean 0
    and scale ``n / (n - 1)``. The log ratio falls with the squared distance to a point beyond the mean, which is
    non-central chi-square under both.
    """
    sigma = gaussian.sigma_from_epsilon(epsilon=float(epsilon), delta=delta)
    shift, scale = 1 / (2 * sigma), n / (n - 1)
    centre = shift / (1 - 1 / scale**2)
    without = scale**2 * special.chndtrix(_QUANTILES, d, (centre / scale) ** 2)
    auc = float(np.mean(special.chndtr(without, d, (centre - shift) ** 2)))
    return [auc, GaussianCurve(mu=1 / sigma).auc]
