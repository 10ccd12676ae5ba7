"""What a client has spent, in numbers: epsilon after each round, what is left, and how far it goes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accountant.accountants import smallest
from accountant.bound import Bound
from accountant.budget import NOTHING, Budget
from accountant.claims import Claim, claim
from accountant.events import Event, counted
from privkit.spend import Holder

_ROUNDING = 1e-9  # relative, of an epsilon
_MOST = 10**6  # releases that a projection looks ahead


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One client's account.

    Attributes:
        holder: whose.
        delta: that epsilons are stated for.
        curve: pairs of rounds done and epsilon spent then; inf where nothing is promised.
        spent: epsilon of everything, in nats.
        left: how many more releases like the last round's fit; ``None`` without a limit or without releases.
        method: how epsilon was computed.
        bound: whether another analysis could give less.
        claim: what was claimed by the events' own contracts; relation and unit are in it.
    """

    holder: Holder
    delta: float
    curve: tuple[tuple[int, float], ...]
    spent: float
    left: int | None
    method: str
    bound: Bound
    claim: Claim

    @property
    def budget(self) -> Budget | None:
        """Return the most that may be spent; ``None`` if there is no limit."""
        return self.holder.budget

    @property
    def done(self) -> int:
        """Return the number of rounds that were done."""
        return len(self.holder.by_round)

    @property
    def remaining(self) -> float | None:
        """Return epsilon that is left, at least 0; ``None`` without a limit."""
        if self.budget is None:
            return None
        left = self.budget.epsilon - self.spent
        return left if left > _ROUNDING * self.budget.epsilon else 0.0

    @property
    def exceeds(self) -> int | None:
        """Return the first round, from 1, that would exceed the budget; ``None`` if none in sight does."""
        return None if self.left is None or self.left >= _MOST else self.done + self.left + 1

    @property
    def projection(self) -> str:
        """Return what comes next, in words."""
        if self.budget is None:
            return "no budget"
        if self.left is None:
            return "nothing released yet" if math.isfinite(self.spent) else "nothing is promised"
        if self.spent > self.budget.epsilon * (1 + _ROUNDING):
            return "the budget is EXCEEDED"
        if self.left == 0:
            return f"round {self.exceeds} would exceed it"
        fits = f"{self.left} more rounds fit" if self.left > 1 else "1 more round fits"
        if self.exceeds is None:
            return f"over {_MOST:,} more rounds fit"
        planned = self.holder.planned
        if self.done < planned < self.exceeds:
            return f"all {planned} planned rounds fit; round {self.exceeds} would exceed it"
        return f"{fits}; round {self.exceeds} would exceed it"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; an infinite epsilon is None."""
        return {
            "run": self.holder.run,
            "client": self.holder.name,
            "rounds_done": self.done,
            "rounds_planned": self.holder.planned,
            "delta": self.delta,
            "relation": self.claim.relation.value,
            "unit": self.claim.unit,
            "method": self.method,
            "bound": self.bound.value,
            "covered": self.claim.covered,
            "curve": [{"rounds": t, "epsilon": _plain(epsilon)} for t, epsilon in self.curve],
            "spent": _plain(self.spent),
            "budget": None if self.budget is None else self.budget.to_dict(),
            "remaining": self.remaining,
            "releases_left": self.left,
            "exceeding_round": self.exceeds,
            "projection": self.projection,
            "stopped": self.holder.stopped or None,
        }


def statement(holder: Holder, *, delta: float, most_rounds: int | None = None) -> Statement:
    """Return the account of one holder.

    Args:
        holder: whose.
        delta: that epsilons are stated for; that of the holder's budget, if it has one.
        most_rounds: points of the curve, about evenly spaced, the last round among them; all by default.

    Raises:
        UnsupportedEventError: names a part whose cost is not known.
        ValueError: the releases cannot be priced together.
    """
    budget = holder.budget
    rounds = shown(len(holder.by_round), most=most_rounds)
    after = holder.after(rounds)
    last = after[-1] if after else NOTHING
    curve = tuple((t, _spent(event, budget, delta)) for t, event in zip(rounds, after, strict=True))
    answer = smallest(last, delta=delta)
    filtered = budget is not None and budget.adaptive
    return Statement(
        holder=holder,
        delta=delta,
        curve=curve,
        spent=curve[-1][1] if curve else 0.0,
        left=_left(holder, last),
        method=budget.method if budget is not None and filtered else answer.method,
        bound=Bound.UPPER if filtered else answer.bound,
        claim=claim(last, delta=delta) if budget is None else budget.claim(last, delta=delta),
    )


def shown(rounds: int, *, most: int | None) -> Sequence[int]:
    """Return the rounds, from 1, that a curve shows: all, or about evenly spaced ones with the first and the last.

    >>> shown(7, most=4)
    [1, 3, 5, 7]
    """
    if most is None or rounds <= most:
        return range(1, rounds + 1)
    return sorted({round(1 + i * (rounds - 1) / (most - 1)) for i in range(most)})


def _spent(event: Event, budget: Budget | None, delta: float) -> float:
    return smallest(event, delta=delta).epsilon if budget is None else budget.spent(event)


def _left(holder: Holder, spent: Event) -> int | None:
    """Return how often a round like the last one that released anything fits again."""
    following = next((event for event in reversed(holder.by_round) if counted(event)), None)
    if holder.budget is None or following is None:
        return None
    return holder.budget.releases_left(spent, following, most=_MOST)


def _plain(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None
