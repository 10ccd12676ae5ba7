"""Every calibration of Gaussian noise in use, side by side, each held against the exact one."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from accountant import check, paper, rdp
from accountant.gaussian import delta_from_mu, epsilon_from_mu, mu_from_sigma, sigma_from_epsilon

_LARGEST_EPSILON = 1e100
_LARGE_PERCENT = 1e5


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What one method makes of a budget.

    Attributes:
        method: its name.
        sigma: noise multiplier that it asks for; None if it has no answer.
        excess_percent: how much more noise than the exact calibration, in percent; below 0 is too little.
        true_epsilon: what that noise really costs at the same delta, in nats.
        valid: whether the budget really is kept.
        reason: why there is no answer; empty if there is one.
    """

    method: str
    sigma: float | None
    excess_percent: float | None = None
    true_epsilon: float | None = None
    valid: bool | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return asdict(self)


def calibrations(
    *, epsilon: float, delta: float, rounds: int = 1, with_pld: bool = False
) -> tuple[Calibration, ...]:
    """Return the calibrations of Gaussian noise by every method, the exact one first.

    Args:
        epsilon: total, in nats, > 0.
        delta: total, in (0, 1).
        rounds: releases on the same data, at least 1.
        with_pld: whether to ask dp-accounting's privacy loss distributions too, which takes seconds.

    >>> for row in calibrations(epsilon=1.0, delta=1e-5, rounds=50):
    ...     print(f"{row.method:27} {row.sigma:.4f} {row.true_epsilon:.4f} {row.valid}")
    exact                       26.3795 1.0000 True
    RDP, best conversion        28.6034 0.9150 True
    RDP as VPDR coded it        34.6589 0.7415 True
    VPDR's formula, c1 = 1      23.9926 1.1099 False
    VPDR's formula, c1 = sqrt 2 33.9307 0.7589 True
    """
    refuse_huge(epsilon)
    budget = {"epsilon": epsilon, "delta": delta, "rounds": rounds}

    def mu(sigma: float) -> float:
        return mu_from_sigma(sigma=sigma, rounds=rounds)

    return compare(
        (*_METHODS, ("PLD, dp-accounting", sigma_by_pld)) if with_pld else _METHODS,
        budget,
        smallest=sigma_from_epsilon(**budget),
        true_epsilon=lambda sigma: epsilon_from_mu(mu=mu(sigma), delta=delta),
        keeps=lambda sigma: delta_from_mu(epsilon=epsilon, mu=mu(sigma)) <= delta,
    )


def percent(value: float, form: str) -> str:
    """Return a percentage in words, a large one in few digits.

    >>> percent(8.4304, "+.2f"), percent(1e300, "+.2f")
    ('+8.43 %', '+1e+300 %')
    """
    return f"{value:{form if value < _LARGE_PERCENT else '+.3g' if form.startswith('+') else '.3g'}} %"


def refuse_huge(epsilon: float) -> None:
    """Refuse an epsilon that is no positive number, or too large for what follows from it."""
    check.positive(epsilon=epsilon)
    if epsilon > _LARGEST_EPSILON:
        raise ValueError(f"epsilon={epsilon:g} promises nothing and is too large to compare; give less.")


def compare(
    methods: Iterable[tuple[str, Callable[..., float]]],
    budget: Mapping[str, Any],
    *,
    smallest: float,
    true_epsilon: Callable[[float], float],
    keeps: Callable[[float], bool],
) -> tuple[Calibration, ...]:
    """Hold the noise multiplier that each method asks for against the truth.

    Args:
        methods: names, and functions of the budget that return a noise multiplier or refuse by ValueError.
        budget: their arguments.
        smallest: the smallest noise multiplier that keeps the budget.
        true_epsilon: what a noise multiplier really costs at the budget's delta.
        keeps: whether it really keeps the budget.
    """

    def judged(method: str, calibrate: Callable[..., float]) -> Calibration:
        try:
            sigma = calibrate(**budget)
        except ValueError as error:
            return Calibration(method=method, sigma=None, reason=str(error))
        return Calibration(
            method=method,
            sigma=sigma,
            excess_percent=100 * (sigma / smallest - 1),
            true_epsilon=true_epsilon(sigma),
            valid=keeps(sigma),
        )

    return tuple(judged(method, calibrate) for method, calibrate in methods)


def sigma_by_pld(*, epsilon: float, delta: float, rounds: int) -> float:
    """Return the noise multiplier by privacy loss distributions, loading dp-accounting only now."""
    from accountant import pld

    return pld.sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=rounds)


_METHODS: tuple[tuple[str, Callable[..., float]], ...] = (
    ("exact", sigma_from_epsilon),
    ("RDP, best conversion", rdp.sigma_best),
    ("RDP as VPDR coded it", partial(rdp.sigma_classic, orders=rdp.VPDR_ORDERS)),
    ("VPDR's formula, c1 = 1", paper.sigma_from_formula),
    ("VPDR's formula, c1 = sqrt 2", partial(paper.sigma_from_formula, c1=math.sqrt(2))),
)
