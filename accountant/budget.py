r"""A budget that is kept: what has been spent, whether one more release fits, and how many more would.

========  =====================================  ==========================================================
adaptive  what may be chosen from past outputs   when a release fits
========  =====================================  ==========================================================
no        nothing: noise and rounds were fixed   the smallest valid epsilon of everything is within epsilon
yes       noise, clip norms, when to stop        ``sum of mu^2 <= mu(epsilon, delta)^2``: a privacy filter
========  =====================================  ==========================================================

The filter is the one that is known to be valid when each release is chosen from the outputs before it: each costs
its mu for the worst history, and the squares are added up. Neither the joint sum nor privacy loss distributions
are known to be, so they are not used there; nor does a filter hold a part that fails with some probability, so
approximate differential privacy is refused. What a filter promises is the budget, not what was spent when it stopped.

Source: Smith and Thakurta (2022), https://arxiv.org/abs/2210.17520; Koskela, Tobaben and Honkela (2023), individual
accounting with GDP, https://arxiv.org/abs/2209.15596; after the Renyi filter of Feldman and Zrnic (2021),
https://arxiv.org/abs/2008.11193
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from accountant import check, gaussian
from accountant.accountants import gaussian_mu, smallest
from accountant.bound import Bound
from accountant.claims import Claim, claim
from accountant.contract import DependsOn
from accountant.cost import total
from accountant.events import Composed, Event, Leaf, Repeated, counted

_ROUNDING = 1e-14  # relative, of a sum of squares; mu of a budget is more than that below the exact one
_MOST = 2**50  # releases that are counted; beyond, floats soon lose whole numbers


class BudgetExceededError(ValueError):
    """One more release would cost more than the budget holds; nothing was released."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that one client may spend in all its releases.

    Attributes:
        epsilon: in nats, > 0.
        delta: probability that the promise fails, in (0, 1).
        adaptive: whether noise, clip norms or the number of releases may be chosen from earlier outputs.

    >>> from accountant.events import Gaussian
    >>> budget, release = Budget(epsilon=1.0, delta=1e-5), Gaussian(noise_multiplier=26.38)
    >>> budget.releases_left(NOTHING, release)
    50
    """

    epsilon: float
    delta: float
    adaptive: bool = False

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.open_unit(delta=self.delta)
        if not isinstance(self.adaptive, bool):
            raise ValueError(f"adaptive={self.adaptive!r}; say True or False.")  # noqa: TRY004

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g} at delta {self.delta:g}"

    @property
    def method(self) -> str:
        """Return how spending is decided, in words."""
        return "Gaussian filter" if self.adaptive else "smallest valid bound"

    @cached_property
    def mu(self) -> float:
        """Return the largest mu for which mu-GDP keeps the budget."""
        return gaussian.mu_from_epsilon(epsilon=self.epsilon, delta=self.delta)

    def spent(self, event: Event) -> float:
        """Return epsilon of everything that was released, in nats; inf if a part of it promises nothing.

        Raises:
            UnsupportedEventError: names a part whose cost is not known.
            ValueError: parts are stated for different neighbours, or need a filter where there is none, or the
                filter does not hold them.
        """
        self._refuse(event)
        if not self.adaptive:
            return smallest(event, delta=self.delta).epsilon
        if total(event).unbounded is not None:
            return math.inf
        mu = gaussian_mu(event)
        return gaussian.epsilon_from_mu(mu=mu, delta=self.delta) if mu > 0 else 0.0

    def affords(self, spent: Event, following: Event) -> bool:
        """Return whether one more release keeps the budget, given everything released before it.

        Errors as in :meth:`spent`.
        """
        return self._holds(Composed(events=(spent, following)))

    def remaining(self, spent: Event) -> float:
        """Return the budget's epsilon less what is spent, in nats, at least 0.

        Epsilons of several releases do not add up: :meth:`releases_left` says what still fits.
        """
        return max(self.epsilon - self.spent(spent), 0.0)

    def releases_left(self, spent: Event, following: Event, *, most: int = _MOST) -> int:
        """Return how many more times a release fits, from 0 to ``most``: the projection of a fixed plan.

        Raises:
            ValueError: the release costs nothing, so that it fits without end; else as in :meth:`spent`.
        """
        check.count(most=most)
        self._refuse(Composed(events=(spent, following)))
        if not counted(following):
            raise ValueError(
                "the release costs nothing, so it fits any number of times; ask about one that runs."
            )
        return _largest(lambda n: self._holds(_after(spent, following, n)), most=most)

    def refusal(self, who: str, *, spent: Event, following: Event) -> str:
        """Return the sentence that a release does not fit.

        Args:
            who: would release it, in words.
            spent: everything released before it.
            following: what does not fit.
        """
        before, after = self.spent(spent), self.spent(Composed(events=(spent, following)))
        return (
            f"{who} has spent epsilon {before:.6g} of {self.epsilon:g} at delta {self.delta:g}, and one more release "
            f"would make it {after:.6g}; stop here, release with more noise, or raise the budget."
        )

    def require(self, who: str, *, spent: Event, following: Event) -> None:
        """Raise unless one more release fits; to be asked before any of its noise is drawn.

        Raises:
            BudgetExceededError: the budget would be exceeded; with :meth:`refusal`.
        """
        if not self.affords(spent, following):
            raise BudgetExceededError(self.refusal(who, spent=spent, following=following))

    def stands_for(self, event: Event) -> bool:
        """Return whether the budget is what releases promise: chosen from earlier outputs, they were held by it."""
        return self.adaptive and _chosen(event) and self._holds(event)

    def claim(self, event: Event, *, delta: float) -> Claim:
        """Return what releases under this budget promise.

        Releases that were chosen from earlier outputs promise the budget itself, whatever was spent when it stopped,
        and assumption A6 is answered: the choice went through the filter. Others promise what they cost.

        Args:
            event: everything one client released.
            delta: that epsilon is stated for, in (0, 1); it need not be the budget's.
        """
        if not self.stands_for(event):
            return claim(event, delta=delta)
        epsilon = gaussian.epsilon_from_mu(mu=self.mu, delta=delta)
        found = claim(_answered(event), delta=delta)
        return replace(found, epsilon=epsilon, method=self.method, bound=Bound.UPPER)

    def to_dict(self) -> dict[str, Any]:
        """Return the budget as plain values."""
        return {"epsilon": self.epsilon, "delta": self.delta, "adaptive": self.adaptive}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Budget":
        """Read what :meth:`to_dict` returned.

        Raises:
            ValueError: a key is unknown or missing, or a value is out of range.
        """
        names = [field.name for field in fields(cls)]
        if set(plain) != set(names):
            raise ValueError(f"a budget of {', '.join(plain) or 'nothing'}; give {', '.join(names)}.")
        return cls(**plain)

    def _holds(self, event: Event) -> bool:
        """Return whether everything released together keeps the budget."""
        self._refuse(event)
        cost = total(event)
        if cost.unbounded is not None:
            return False
        if cost.log_kept == 0 and gaussian_mu(event) <= self.mu * (1 + _ROUNDING):
            return True
        return not self.adaptive and smallest(event, delta=self.delta).epsilon <= self.epsilon

    def _refuse(self, event: Event) -> None:
        """Raise if this budget has no meaning for some releases."""
        refuse_mixture(event)
        if self.adaptive and total(event).log_kept:
            raise ValueError(
                "approximate differential privacy has no place in an adaptive budget: no filter is known to hold its "
                "delta; release with Gaussian noise, or fix everything beforehand and set adaptive to false."
            )
        if not self.adaptive and _chosen(event):
            raise ValueError(
                "a release was chosen from earlier outputs (hyperparameters: past private outputs), and a budget "
                "for what is fixed beforehand does not hold it; set adaptive to true."
            )


def refuse_mixture(event: Event) -> None:
    """Raise if releases are stated for different neighbours, so that no epsilon holds for all of them together.

    Raises:
        ValueError: names the relations, or the units.
    """
    contracts = [leaf.contract for leaf in counted(event)]
    for name, values in (
        ("relations", {c.relation for c in contracts}),
        ("units", {c.unit for c in contracts}),
    ):
        if len(values) > 1:
            raise ValueError(
                f"the releases mix the {name} {' and '.join(repr(str(v)) for v in sorted(values))}; "
                "keep one budget for each."
            )


NOTHING = Composed(events=())
"""What was released before the first release."""


def tallied(event: Event) -> Event:
    """Return the same releases with each distinct mechanism once, and how often it ran.

    >>> from accountant.events import PureDP
    >>> tallied(Composed(events=(PureDP(epsilon=1.0), PureDP(epsilon=1.0)))).events[0].count
    2
    """
    return Composed(events=tuple(Repeated(event=leaf, count=n) for leaf, n in counted(event).items()))


def _after(spent: Event, following: Event, n: int) -> Event:
    return Composed(events=(spent, Repeated(event=following, count=n)))


def _largest(holds: Callable[[int], bool], *, most: int) -> int:
    """Return the largest whole number up to ``most`` that holds, 0 if 1 does not; larger ones never hold again."""
    low, high = 0, 1
    while high <= most and holds(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _chosen(event: Event) -> bool:
    return any(leaf.contract.hyperparameters is DependsOn.PAST_OUTPUTS for leaf in counted(event))


def _answered(event: Event) -> Event:
    """Return the same releases, with what a filter allows counted as chosen beforehand."""
    if isinstance(event, Repeated):
        return replace(event, event=_answered(event.event))
    if isinstance(event, Composed):
        return replace(event, events=tuple(_answered(part) for part in event.events))
    if isinstance(event, Leaf) and event.contract.hyperparameters is DependsOn.PAST_OUTPUTS:
        return replace(event, contract=replace(event.contract, hyperparameters=DependsOn.PUBLIC))
    return event
