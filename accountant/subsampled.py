"""DP-SGD: what steps of Gaussian noise on Poisson samples cost, and how much noise a budget needs.

Three bounds are known, and the smallest is returned: privacy loss distributions, nearly exact; the Renyi curve,
for deltas so small that distributions drown in rounding; and the Gaussian mechanism without sampling, which is
exact at rate 1. See :mod:`accountant.subsampled_pld`, :mod:`accountant.subsampled_rdp`, :mod:`accountant.gaussian`.

The noise multiplier is the noise's standard deviation over the clip norm of a record's gradient. To add or remove a
record moves a sum by one clip norm, to replace it by two: without sampling mu is ``sqrt(steps) / sigma`` for the
former and twice that for the latter.
"""

import math
from dataclasses import dataclass

from accountant import check, gaussian, subsampled_pld, subsampled_rdp
from accountant.bound import Bound
from accountant.contract import Relation
from accountant.envelope_curve import EnvelopeCurve
from accountant.subsampled_pair import check_step, shift
from accountant.subsampled_search import smallest_noise
from accountant.tradeoff import AbstractCurve, GaussianCurve

_COARSER = 16  # grid of the search that brackets the noise
_POWERS = [-0.1 * tenth for tenth in range(3, 111)]  # log10 of the deltas that a ceiling is drawn from
_EVEN = 200  # epsilons between them, where a large delta leaves few


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What DP-SGD costs.

    Attributes:
        epsilon: in nats, >= 0; never below the truth.
        method: which bound was the smallest.
        bound: exact without sampling, else an upper bound.
    """

    epsilon: float
    method: str
    bound: Bound


def epsilon(
    *,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    relation: Relation = Relation.ADD_REMOVE,
) -> Spent:
    """Return the epsilon of DP-SGD, the smallest of all known bounds.

    Args:
        noise_multiplier: noise standard deviation / clip norm, > 0.
        sampling_rate: probability in (0, 1] with which a record joins a step, independently of all others.
        steps: number of steps, at least 1.
        delta: in (0, 1).
        relation: which data sets are neighbours.

    Raises:
        ValueError: a parameter is outside its range.

    >>> epsilon(noise_multiplier=1.0, sampling_rate=0.00105, steps=1, delta=1e-3).epsilon
    0.0
    >>> spent = epsilon(noise_multiplier=0.7, sampling_rate=0.01, steps=1000, delta=1e-5)
    >>> round(spent.epsilon, 2), spent.method, spent.bound.value
    (4.62, 'privacy loss distribution', 'upper bound')
    """
    check_step(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)
    mu = _unsampled_mu(noise_multiplier, steps, relation)
    whole = gaussian.epsilon_from_mu(mu=mu, delta=delta)
    if sampling_rate == 1:
        return Spent(epsilon=whole, method="Gaussian, exact", bound=Bound.EXACT)
    found = {"Gaussian without sampling": whole}
    found["Renyi divergence"] = subsampled_rdp.epsilon(
        noise_multiplier=noise_multiplier,
        sampling_rate=sampling_rate,
        steps=steps,
        delta=delta,
        relation=relation,
    )
    if delta >= subsampled_pld.SMALLEST_DELTA:
        found["privacy loss distribution"] = subsampled_pld.epsilon(
            noise_multiplier=noise_multiplier,
            sampling_rate=sampling_rate,
            steps=steps,
            delta=delta,
            relation=relation,
        )
    method = min(found, key=lambda name: found[name])
    return Spent(epsilon=found[method], method=method, bound=Bound.UPPER)


def delta(
    *,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    epsilon: float,
    relation: Relation = Relation.ADD_REMOVE,
) -> float:
    """Return the delta of DP-SGD at an epsilon >= 0, the smallest of all known bounds; in [0, 1].

    Arguments as in :func:`epsilon`.

    >>> round(delta(noise_multiplier=1.0, sampling_rate=0.00105, steps=1, epsilon=0.0), 6)
    0.000402
    """
    check_step(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)
    check.non_negative(epsilon=epsilon)
    whole = gaussian.delta_from_mu(epsilon=epsilon, mu=_unsampled_mu(noise_multiplier, steps, relation))
    if sampling_rate == 1:
        return whole
    log_delta = subsampled_rdp.log_delta(
        noise_multiplier=noise_multiplier,
        sampling_rate=sampling_rate,
        steps=steps,
        epsilon=epsilon,
        relation=relation,
    )
    composed = subsampled_pld.distributions(
        noise_multiplier=noise_multiplier, sampling_rate=sampling_rate, steps=steps, relation=relation
    )
    return min(whole, math.exp(log_delta), max(each.delta(epsilon) for each in composed))


def sigma_from_epsilon(
    *,
    epsilon: float,
    delta: float,
    sampling_rate: float,
    steps: int,
    relation: Relation = Relation.ADD_REMOVE,
) -> float:
    """Return the smallest noise multiplier for which DP-SGD is (epsilon, delta)-DP.

    Args:
        epsilon: in nats, > 0.
        delta: in (0, 1).
        sampling_rate: probability in (0, 1] with which a record joins a step, independently of all others.
        steps: number of steps, at least 1.
        relation: which data sets are neighbours.

    Returns:
        Noise standard deviation / clip norm, for which the function ``epsilon`` returns at most ``epsilon``; a
        few 1e-5 (relative) above the smallest such.

    Raises:
        ValueError: a parameter is outside its range, or no noise is needed at all.

    >>> sigma = sigma_from_epsilon(epsilon=1.0, delta=1e-5, sampling_rate=0.1, steps=100)
    >>> round(sigma, 3)
    3.942
    """
    check.positive(epsilon=epsilon)
    check_step(noise_multiplier=1.0, sampling_rate=sampling_rate)
    enough = shift(relation) * gaussian.sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=steps)
    if sampling_rate == 1:
        return enough
    _refuse_rare(sampling_rate, steps, delta)

    # where distributions may have no answer, or a worse one
    near_the_end = (
        delta < subsampled_pld.smallest_delta(steps=steps) or epsilon > subsampled_pld.LARGEST_EPSILON / 2
    )

    def excess(sigma: float, coarser: int) -> float:
        setting = {"noise_multiplier": sigma, "sampling_rate": sampling_rate, "steps": steps}
        found = math.inf
        if delta >= subsampled_pld.SMALLEST_DELTA:
            composed = subsampled_pld.distributions(**setting, relation=relation, coarser=coarser)
            found = max(each.epsilon(delta) for each in composed)
        if near_the_end or math.isinf(found):
            found = min(found, subsampled_rdp.epsilon(**setting, delta=delta, relation=relation))
        return found - epsilon

    return smallest_noise(
        lambda sigma: excess(sigma, 1),
        coarse=lambda sigma: excess(sigma, _COARSER),
        guess=_limiting_sigma(enough, sampling_rate, steps),
        enough=enough,
    )


def curve(
    *,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    relation: Relation = Relation.ADD_REMOVE,
) -> AbstractCurve:
    """Return the ceiling of DP-SGD on every attack: the envelope of its (epsilon, delta) pairs.

    Arguments as in :func:`epsilon`; exact without sampling.

    >>> ceiling = curve(noise_multiplier=1.0, sampling_rate=0.01, steps=1000)
    >>> round(ceiling.tpr(0.01), 3), round(ceiling.auc, 3), round(ceiling.advantage, 3)
    (0.029, 0.615, 0.161)
    """
    check_step(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)
    mu = _unsampled_mu(noise_multiplier, steps, relation)
    if sampling_rate == 1:
        return GaussianCurve(mu=mu)
    composed = subsampled_pld.distributions(
        noise_multiplier=noise_multiplier, sampling_rate=sampling_rate, steps=steps, relation=relation
    )
    deltas = [10.0**power for power in _POWERS if 10.0**power >= subsampled_pld.smallest_delta(steps=steps)]
    epsilons = {max(each.epsilon(delta) for each in composed) for delta in deltas}
    last = max((eps for eps in epsilons if eps < math.inf), default=0.0)
    even = (last * share / _EVEN for share in range(_EVEN))
    kept = sorted({0.0, *even, *(eps for eps in epsilons if eps < math.inf)})
    pairs = tuple((eps, max(each.delta(eps) for each in composed)) for eps in kept)
    return EnvelopeCurve(guarantees=pairs, mu=mu)


def _refuse_rare(sampling_rate: float, steps: int, delta: float) -> None:
    ever = -math.expm1(steps * math.log1p(-sampling_rate))
    if ever <= delta:
        raise ValueError(
            f"sampling_rate={sampling_rate} uses a record in {steps} steps with probability {ever:.3g}, not above "
            f"delta={delta}: no noise is needed; give a smaller delta."
        )


def _limiting_sigma(unsampled: float, sampling_rate: float, steps: int) -> float:
    """Return the noise of the central limit, ``mu = q sqrt(steps (e^(1 / sigma^2) - 1))``."""
    mu = math.sqrt(steps) / unsampled
    return 1 / math.sqrt(math.log1p((mu / sampling_rate) ** 2 / steps))


def _unsampled_mu(noise_multiplier: float, steps: int, relation: Relation) -> float:
    check.count(steps=steps)
    return shift(relation) * math.sqrt(steps) / noise_multiplier
