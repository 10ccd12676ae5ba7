"""How a Renyi curve is turned into (epsilon, delta), by the name or the formula that a case gives."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accountant import rdp
from accountant.selfcheck.numbers import NotANumberError, grid
from accountant.selfcheck.privacy import NotUnderstoodError


@dataclass(frozen=True)
class Conversion:
    """One conversion, both ways; without orders, at the best of all."""

    epsilon_at: Callable[..., float]
    sigma_at: Callable[..., float]

    def epsilon(self, *, mu: float, delta: float, orders: Any = None) -> float:
        """Return the epsilon of a Renyi curve ``alpha mu^2 / 2``."""
        return self.epsilon_at(mu=mu, delta=delta, **_orders(orders))

    def sigma(self, *, epsilon: float, delta: float, rounds: int, orders: Any = None) -> float:
        """Return the noise multiplier that the conversion asks for."""
        return self.sigma_at(epsilon=epsilon, delta=delta, rounds=rounds, **_orders(orders))


_NAMED = (
    (r"ln\(1-1/a|improved|best|canonne|balle", Conversion(rdp.epsilon_best, rdp.sigma_best)),
    (r"ln\(1/d(?:elta)?\)/\(a|classic|mironov|vpdr", Conversion(rdp.epsilon_classic, rdp.sigma_classic)),
)


def conversion_named(words: str) -> Conversion:
    """Return the conversion with this name or formula, such as ``rho*a+ln(1/d)/(a-1)``, the classic one."""
    plain = re.sub(r"alpha", "a", words.replace(" ", ""), flags=re.IGNORECASE)
    for pattern, conversion in _NAMED:
        if re.search(pattern, plain, re.IGNORECASE):
            return conversion
    raise NotUnderstoodError(f"conversion {words!r} is not known")


def _orders(orders: Any) -> dict[str, tuple[float, ...]]:
    if orders is None or str(orders).strip().lower() in _ALL_ORDERS:
        return {}
    try:
        return {"orders": grid(orders)}
    except NotANumberError as error:
        raise NotUnderstoodError(str(error)) from None


_ALL_ORDERS = ("continuous", "all", "best")
