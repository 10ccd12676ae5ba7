"""Estimates of delta and mu from runs of a mechanism, with intervals that hold at one level."""

import math

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from accountant.counterexamples._base import Estimate

LEVEL = 0.999
_Z = float(special.ndtri((1 + LEVEL) / 2))
_ENOUGH = 30  # weights on either side from which their mean is close to normal


def delta_from_losses(
    name: str,
    losses_n: Float[np.ndarray, " n"],
    *,
    epsilon: float,
    rng: np.random.Generator,
    drawn_from: str = "D",
) -> Estimate:
    r"""Return an estimate of delta from privacy losses ``ln P/Q`` of outputs that were drawn from P.

    :math:`\delta(\epsilon) = E_P[(1 - e^\epsilon Q/P)_+]`, so it is the mean of weights in [0, 1]. Their mean gets
    a normal interval; where nearly all weights are 0 or nearly all are 1, each is rounded at random instead, which
    makes their sum binomial with the same mean, and the interval is Clopper and Pearson's.

    Args:
        name: of the fact.
        losses_n: privacy losses.
        epsilon: in nats.
        rng: where the rounding comes from.
        drawn_from: which data set is P, in words.
    """
    weights_n = -np.expm1(np.minimum(epsilon - losses_n, 0.0))
    n = len(weights_n)
    if min((weights_n > 0).sum(), (weights_n < 0.5).sum()) >= _ENOUGH:
        value, half = float(weights_n.mean()), _Z * float(weights_n.std()) / math.sqrt(n)
        low, high, kind = max(value - half, 0.0), min(value + half, 1.0), "normal interval"
    else:
        ones = int((rng.random(n) < weights_n).sum())
        low, high = proportion_interval(ones, n)
        value, kind = ones / n, "Clopper-Pearson"
    method = f"mean of (1 - exp(epsilon - L))+ over runs on {drawn_from}, {kind}"
    return Estimate(name=name, value=value, low=low, high=high, level=LEVEL, n=n, method=method)


def delta_of_event(
    name: str, in_p_n: Bool[np.ndarray, " n"], in_q_n: Bool[np.ndarray, " n"], *, epsilon: float
) -> Estimate:
    """Return an estimate of ``P[S] - e^epsilon Q[S]``, which delta is at least, for an event S of the output.

    Args:
        name: of the fact.
        in_p_n: whether each run on the first data set fell into S.
        in_q_n: the same for the second.
        epsilon: in nats.
    """
    n, level = len(in_p_n), (1 + LEVEL) / 2
    p_low, p_high = proportion_interval(int(in_p_n.sum()), n, level=level)
    q_low, q_high = proportion_interval(int(in_q_n.sum()), n, level=level)
    scale = math.exp(epsilon)
    value, low, high = (
        min(max(p - scale * q, 0.0), 1.0)
        for p, q in ((float(in_p_n.mean()), float(in_q_n.mean())), (p_low, q_high), (p_high, q_low))
    )
    method = "P[S] - exp(epsilon) P'[S] for an event S of the release, Clopper-Pearson"
    return Estimate(name=name, value=value, low=low, high=high, level=LEVEL, n=n, method=method)


def factor_from_losses(
    name: str,
    losses_p_n: Float[np.ndarray, " n"],
    losses_q_n: Float[np.ndarray, " n"],
    *,
    claimed_mu: float,
) -> Estimate:
    """Return an estimate of mu / claimed mu for Gaussian outputs: the gap of the mean losses over their spread.

    Args:
        name: of the fact.
        losses_p_n: ``ln P/Q`` of outputs drawn from P.
        losses_q_n: the same of outputs drawn from Q.
        claimed_mu: above 0.
    """
    n = len(losses_p_n)
    spread = math.sqrt((float(losses_p_n.var(ddof=1)) + float(losses_q_n.var(ddof=1))) / 2)
    mu = (float(losses_p_n.mean()) - float(losses_q_n.mean())) / spread
    half = _Z * math.sqrt(2 / n + mu * mu / (4 * n))
    value, low, high = (x / claimed_mu for x in (mu, mu - half, mu + half))
    method = "gap between the mean L of D and of D' / spread of L, normal interval"
    return Estimate(name=name, value=value, low=low, high=high, level=LEVEL, n=n, method=method)


def proportion_interval(successes: int, n: int, *, level: float = LEVEL) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval for a proportion."""
    tail = (1 - level) / 2
    low = float(special.betaincinv(successes, n - successes + 1, tail)) if successes else 0.0
    high = float(special.betainccinv(successes + 1, n - successes, tail)) if successes < n else 1.0
    return low, high
