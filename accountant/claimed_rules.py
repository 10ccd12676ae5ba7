"""How papers and codes turn a budget into noise: each rule, as what it really releases.

A rule is given a budget and answers with a noise multiplier. Whether that keeps the budget is another question
(:mod:`accountant.verify`).

Source: VPDR, Eq. 6 (the formula) and Section 4.2 (the split); Mironov (2017), Proposition 3,
https://arxiv.org/abs/1702.07476, and Canonne, Kamath and Steinke (2020), Proposition 12,
https://arxiv.org/abs/2004.00010 (the two conversions)
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from accountant import check, gaussian, paper, rdp
from accountant.contract import Contract, Query
from accountant.events import Composed, Event, Gaussian, PureDP, Repeated


class AbstractRule(ABC):
    """A way to find noise for a budget."""

    @abstractmethod
    def sigma(self, *, epsilon: float, delta: float, rounds: int) -> float:
        """Return noise standard deviation / l2 sensitivity of one release; no unit, > 0."""

    @property
    @abstractmethod
    def words(self) -> str:
        """Return what the rule does, as part of a sentence."""


@dataclass(frozen=True, kw_only=True)
class Stated(AbstractRule):
    """A noise multiplier that is stated outright.

    Attributes:
        noise_multiplier: > 0.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        check.positive(sigma=self.noise_multiplier)

    def sigma(self, *, epsilon: float, delta: float, rounds: int) -> float:
        """Return it, whatever the budget."""
        return self.noise_multiplier

    @property
    def words(self) -> str:
        """Return what the rule does."""
        return "as stated"


@dataclass(frozen=True, kw_only=True)
class Exact(AbstractRule):
    """The exact calibration of Gaussian noise."""

    def sigma(self, *, epsilon: float, delta: float, rounds: int) -> float:
        """Return the smallest noise multiplier that keeps the budget."""
        return gaussian.sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=rounds)

    @property
    def words(self) -> str:
        """Return what the rule does."""
        return "exactly calibrated"


@dataclass(frozen=True, kw_only=True)
class Formula(AbstractRule):
    """The published formula ``c1 sqrt(T ln(1 / delta)) / epsilon``.

    Attributes:
        c1: its constant, > 0.
    """

    c1: float

    def __post_init__(self) -> None:
        check.positive(c1=self.c1)

    def sigma(self, *, epsilon: float, delta: float, rounds: int) -> float:
        """Return what the formula gives."""
        return paper.sigma_from_formula(epsilon=epsilon, delta=delta, rounds=rounds, c1=self.c1)

    @property
    def words(self) -> str:
        """Return what the rule does."""
        return f"c1 sqrt(T ln(1/delta)) / epsilon with c1 = {self.c1:g}"


@dataclass(frozen=True, kw_only=True)
class ClassicRenyi(AbstractRule):
    """Renyi divergence on a grid of orders, with the classic conversion.

    Attributes:
        orders: each above 1; None for the best order of all.
    """

    orders: tuple[float, ...] | None = None

    def sigma(self, *, epsilon: float, delta: float, rounds: int) -> float:
        """Return the smallest noise multiplier that this accounting allows."""
        return rdp.sigma_classic(epsilon=epsilon, delta=delta, rounds=rounds, orders=self.orders)

    @property
    def words(self) -> str:
        """Return what the rule does."""
        return f"Renyi divergence, {_orders(self.orders)}, classic conversion"


@dataclass(frozen=True, kw_only=True)
class BestRenyi(AbstractRule):
    """Renyi divergence on a grid of orders, with the best known conversion.

    Attributes:
        orders: each above 1; None for the best order of all.
    """

    orders: tuple[float, ...] | None = None

    def sigma(self, *, epsilon: float, delta: float, rounds: int) -> float:
        """Return the smallest noise multiplier that this accounting allows."""
        if self.orders is None:
            return rdp.sigma_best(epsilon=epsilon, delta=delta, rounds=rounds)
        check.positive(epsilon=epsilon)
        check.open_unit(delta=delta)
        check.count(rounds=rounds)
        orders = rdp.checked_orders(self.orders)
        rho = max((epsilon - _penalty(order, delta)) / order for order in orders)
        if rho <= 0:
            raise ValueError(
                f"epsilon={epsilon} at delta={delta} is out of reach of these orders; use the exact calibration."
            )
        return math.sqrt(rounds / (2 * rho))

    @property
    def words(self) -> str:
        """Return what the rule does."""
        return f"Renyi divergence, {_orders(self.orders)}, best conversion"


def _penalty(order: float, delta: float) -> float:
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def _orders(orders: tuple[float, ...] | None) -> str:
    if orders is None:
        return "the best order"
    return f"{len(orders)} orders up to {max(orders):g}" if len(orders) > 1 else f"order {max(orders):g}"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A budget, and what a paper or a code makes of it.

    Attributes:
        epsilon: claimed for the whole run, in nats, > 0.
        delta: claimed, in (0, 1).
        rounds: at least 1.
        rule: of the Gaussian noise.
        split: share of epsilon for a pure selection per round, in (0, 1); None for no selection. The rule gets the
            rest.
        per_round: whether a part was calibrated as if one round were the whole run: the selection if there is one,
            else the noise.
    """

    epsilon: float
    delta: float
    rounds: int
    rule: AbstractRule
    split: float | None = None
    per_round: bool = False

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.open_unit(delta=self.delta)
        check.count(rounds=self.rounds)
        if self.split is not None:
            check.open_unit(split=self.split)

    @property
    def epsilon_of_noise(self) -> float:
        """Return the epsilon that the rule is given, in nats."""
        return (1 - (self.split or 0.0)) * self.epsilon

    @property
    def rounds_of_noise(self) -> int:
        """Return the rounds that the rule is given."""
        return 1 if self.per_round and self.split is None else self.rounds

    @property
    def sigma(self) -> float:
        """Return the noise multiplier of one release."""
        return self.rule.sigma(epsilon=self.epsilon_of_noise, delta=self.delta, rounds=self.rounds_of_noise)

    @property
    def selection(self) -> PureDP | None:
        """Return one round's selection, if there is one."""
        if self.split is None:
            return None
        rounds = 1 if self.per_round else self.rounds
        return PureDP(
            epsilon=self.split * self.epsilon / rounds, contract=Contract(query=Query.BOUNDED_SCORES)
        )

    @property
    def event(self) -> Event:
        """Return all that is released, for class means."""
        contract = Contract(query=Query.CLASS_MEANS)
        release = Gaussian(noise_multiplier=self.sigma, contract=contract)
        parts = (release,) if self.selection is None else (self.selection, release)
        return Repeated(event=Composed(events=parts), count=self.rounds)

    @property
    def examples(self) -> tuple[str, ...]:
        """Return ids of counterexamples that show what is wrong with it, if its number is false."""
        return ("E11",) if self.per_round else ("E10",)
