"""VPDR's noise formula, and what it really gives."""

from accountant import paper
from accountant.selfcheck.registry import law


@law("sigma")
def sigma(*, c1: float, epsilon: float, delta: float, T: int = 1) -> float:
    return paper.sigma_from_formula(epsilon=epsilon, delta=delta, rounds=T, c1=c1)


@law("epsilon", "eps")
def epsilon(*, c1: float, epsilon: float, delta: float, T: object = 1) -> float:
    """Return the epsilon at the claimed delta; it does not depend on the rounds."""
    return paper.truth(epsilon=epsilon, delta=delta, c1=c1).epsilon


@law("delta")
def delta_at_claim(*, c1: float, epsilon: float, claimed_delta: float, T: object = 1) -> float:
    """Return the delta at the claimed epsilon; it does not depend on the rounds."""
    return paper.truth(epsilon=epsilon, delta=claimed_delta, c1=c1).delta


@law("delta")
def delta(*, c1: float, epsilon: float, delta: float, T: object = 1) -> float:
    return delta_at_claim(c1=c1, epsilon=epsilon, claimed_delta=delta)


@law("c1", "min_c1", "smallest_valid_c1")
def smallest_valid_c1(*, epsilon: float, delta: float, T: object = 1) -> float:
    return paper.smallest_valid_c1(epsilon=epsilon, delta=delta)
