"""Epsilon from one training run with many canaries, each included by its own coin."""

import numpy as np
from scipy import special

from accountant import check
from attacks.statistics.certify.certificate import Certificate
from attacks.statistics.search import last_true

METHOD = "one run"
COINS = (
    "each answer (in or out, as it stands or negated) was a fair coin of its own, and guesses looked at none"
)


def epsilon_one_run(
    *, canaries: int, guesses: int, correct: int, delta: float, level: float = 0.95
) -> Certificate:
    """Return the epsilon that the number of correct guesses in one run rules out.

    Args:
        canaries: m, canaries whose inclusion was drawn, at least 1.
        guesses: r, canaries guessed in or out; on the others the attack abstained. At least 1, at most m.
        correct: v, right guesses, at most r.
        delta: in [0, 1).
        level: probability that the limit holds, in (0, 1).

    Returns:
        Certificate without mu.

    Guarantees:
        Below the true epsilon with probability at least ``level``, for any (epsilon, delta)-DP mechanism,
        also when the noise of canaries is dependent.

    Source: Steinke, Nasr and Jagielski (2023), Theorem 5.2, https://arxiv.org/abs/2305.08846

    >>> cert = epsilon_one_run(canaries=100, guesses=100, correct=75, delta=1e-5)
    >>> round(cert.epsilon_low, 5)
    0.70194
    """
    check.open_unit(level=level)

    def refuted(epsilon: float) -> bool:
        p = one_run_p_value(canaries=canaries, guesses=guesses, correct=correct, epsilon=epsilon, delta=delta)
        return p < 1 - level

    return Certificate(
        method=METHOD,
        epsilon_low=last_true(refuted, 0.0, 1.0),
        mu_low=None,
        delta=delta,
        level=level,
        assumptions=(COINS,),
        threshold_source="",
        evidence=f"{correct} of {guesses} guesses right, {canaries} canaries",
    )


def one_run_p_value(*, canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    r"""Return how likely so many right guesses are under an (epsilon, delta)-DP mechanism, at most.

    .. math:: P[B \ge v] + 2 m \delta \max_i \tfrac1i P[v > B \ge v - i], \quad
              B \sim \mathrm{Bin}(r, e^\epsilon / (1 + e^\epsilon))

    Arguments as in :func:`epsilon_one_run`; ``epsilon`` in nats, at least 0.

    >>> p = one_run_p_value(canaries=100, guesses=100, correct=75, epsilon=0.5, delta=0.0)
    >>> round(p, 8)
    0.00480474
    """
    check_guesses(canaries=canaries, guesses=guesses, correct=correct)
    check.non_negative(epsilon=epsilon)
    if not 0 <= delta < 1:
        raise ValueError(f"delta={delta} must be at least 0 and below 1.")
    right = special.expit(epsilon)
    at_least = special.bdtrc(correct - 1, guesses, right) if correct else 1.0
    if delta == 0 or correct == 0:
        return float(at_least)
    i = np.arange(1, correct + 1)
    fewer = np.arange(correct - 1, -1, -1)
    mass = special.bdtr(correct - 1, guesses, right) - np.where(
        fewer > 0, special.bdtr(np.maximum(fewer - 1, 0), guesses, right), 0.0
    )
    return float(min(1.0, at_least + 2 * canaries * delta * np.max(mass / i)))


def check_guesses(*, canaries: int, guesses: int, correct: int) -> None:
    """Refuse counts that do not nest: 0 <= correct <= guesses <= canaries."""
    check.count(canaries=canaries, guesses=guesses)
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError(
            f"correct={correct}, guesses={guesses}, canaries={canaries} must satisfy "
            "0 <= correct <= guesses <= canaries."
        )
