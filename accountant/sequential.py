"""The linear split: pure and Gaussian parts accounted apart and their epsilons added.

Always valid, never the best: :mod:`accountant.joint` gives the same promise for less noise.

Source: Dwork and Roth (2014), Theorem 3.16, https://doi.org/10.1561/0400000042
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from accountant import check, gaussian


def epsilon(*, delta: float, mu: float, pure: Mapping[float, int]) -> float:
    """Return the sum of all pure epsilons and of the Gaussian part's epsilon at ``delta``.

    Args:
        delta: in (0, 1); 0 is allowed without a Gaussian part.
        mu: the Gaussian part, at least 0.
        pure: ``{eps_0: times}``; may be empty.

    >>> round(epsilon(delta=1e-5, mu=50**0.5 / 26, pure={0.002: 50}), 6)
    1.116044
    """
    check.non_negative(mu=mu)
    check.closed_unit(delta=delta)
    total = total_epsilon(pure)
    return total if mu == 0 else total + gaussian.epsilon_from_mu(mu=mu, delta=delta)


def total_epsilon(pure: Mapping[float, int]) -> float:
    """Return the sum of all pure epsilons, in nats, rounded up; a value that is no epsilon or no count is refused."""
    for epsilon, times in pure.items():
        check.positive(epsilon=epsilon)
        check.count(times=times)
    exact = sum((Fraction(float(epsilon)) * int(times) for epsilon, times in pure.items()), Fraction(0))
    try:
        total = float(exact)
    except OverflowError:
        raise ValueError("the pure epsilons add up beyond the largest float; they promise nothing.") from None
    return total if total >= exact else math.nextafter(total, math.inf)


def sigma_from_epsilon(*, epsilon: float, delta: float, rounds: int, selection_share: float) -> float:
    """Return the noise multiplier when ``selection_share`` of epsilon is set aside for pure selections.

    Args:
        epsilon: total, in nats, > 0.
        delta: in (0, 1).
        rounds: at least 1.
        selection_share: fraction of epsilon that the selections spend, in (0, 1).

    Returns:
        Noise standard deviation / l2 sensitivity per round.

    >>> round(sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=50, selection_share=0.2), 6)
    32.334308
    """
    check.positive(epsilon=epsilon)
    check.open_unit(selection_share=selection_share)
    left = (1 - selection_share) * epsilon
    return gaussian.sigma_from_epsilon(epsilon=left, delta=delta, rounds=rounds)
