"""How much canaries certify, and how many it takes: at the median, from counts as expected."""

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from accountant import gaussian
from privkit.selfcheck.families._facts import Simulated, fact_of_row, only_shown
from privkit.selfcheck.families._tables import table

_LEVEL = 0.95
_FEWEST = 20  # below so many trials no number is given
_MOST = 1e12
_RUNS = 200  # behind a median that the reference gives

only_shown(
    "onerun_steinke", "onerun_fdp", because="the reference is the median of a few random runs of an attack"
)


def _parametric_mu(mu: float, trials: float) -> float:
    return mu - float(special.ndtri(_LEVEL)) * math.sqrt(4 / trials)


def _limits(rate: np.ndarray, trials: float) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper Clopper-Pearson limits at a fractional count, half of the doubt each."""
    alpha, hits = (1 - _LEVEL) / 2, rate * trials
    return special.betaincinv(hits, trials - hits + 1, alpha), special.betainccinv(
        hits + 1, trials - hits, alpha
    )


def _gdp_mu(mu: float, trials: float) -> float:
    tpr = np.array([special.ndtr(mu / 2)])
    low, _ = _limits(tpr, trials / 2)
    _, high = _limits(1 - tpr, trials / 2)
    return float(special.ndtri(low[0]) - special.ndtri(high[0]))


def _parametric(mu: float, trials: float, delta: float) -> float:
    return _epsilon(_parametric_mu(mu, trials), delta)


def _gdp(mu: float, trials: float, delta: float) -> float:
    return _epsilon(_gdp_mu(mu, trials), delta)


def _clopper_pearson(mu: float, trials: float, delta: float) -> float:
    """Return it at the best threshold of the design: the best of a grid, then of a finer one around it."""
    low, high, step = 0.0, mu + 6, (mu + 6) / 100
    threshold = np.arange(low, high, step)
    best = threshold[int(np.argmax(_by_rates(threshold, mu, trials, delta)))]
    fine = np.linspace(max(best - step, low), best + step, 41)
    return max(0.0, float(np.max(_by_rates(fine, mu, trials, delta))))


def _by_rates(threshold: np.ndarray, mu: float, trials: float, delta: float) -> np.ndarray:
    low, _ = _limits(special.ndtr(mu - threshold), trials / 2)
    _, high = _limits(special.ndtr(-threshold), trials / 2)
    return np.log(np.maximum(low - delta, 1e-300)) - np.log(high)


def _epsilon(mu: float, delta: float) -> float:
    return gaussian.epsilon_from_mu(mu=mu, delta=delta) if mu > 0 else 0.0


@table("canary_trials_needed", answers=7)
def trials_needed(epsilon: float, /, *, delta: float) -> list[float | None]:
    """Return mu, and the trials to certify 50 % and 90 % of epsilon by each of three methods."""
    mu = gaussian.mu_from_epsilon(epsilon=float(epsilon), delta=delta)
    return [
        mu,
        *(
            _fewest(lambda trials, by=method: by(mu, trials, delta), share * epsilon)
            for method in (_parametric, _gdp, _clopper_pearson)
            for share in (0.5, 0.9)
        ),
    ]


def _fewest(certified: Callable[[float], float], wanted: float) -> float | None:
    low, high = 4.0, _MOST
    while high / low > 1 + 1e-5:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if certified(middle) >= wanted else (middle, high)
    return high if high >= _FEWEST else None


def _median(
    certified: Callable[[float, float, float], float], mu: float, trials: float, delta: float
) -> Simulated:
    """Return the median certificate, and three standard errors of one that was found in a few hundred runs."""
    error = 3 * math.sqrt(math.pi / 2 / _RUNS) * math.sqrt(4 / trials)
    value, *ends = (certified(max(at, 0.0), trials, delta) for at in (mu, mu - error, mu + error))
    return Simulated(value=value, noise=max(abs(end - value) for end in ends))


@fact_of_row("cp")
def certified_by_rates(*, eps: float, mu: float, N: float, delta: float) -> Simulated:
    return _median(_clopper_pearson, mu, N, delta)


@fact_of_row("gdp_cp")
def certified_by_gaussian_rates(*, eps: float, mu: float, N: float, delta: float) -> Simulated:
    return _median(_gdp, mu, N, delta)


@fact_of_row("gdp_param")
def certified_by_distance(*, eps: float, mu: float, N: float, delta: float) -> Simulated:
    return _median(_parametric, mu, N, delta)
