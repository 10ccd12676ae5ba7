"""Mechanisms that are known by their guarantee only."""

from dataclasses import dataclass

from accountant import check
from accountant.events._base import Leaf, keep_positive


@dataclass(frozen=True, kw_only=True)
class PureDP(Leaf):
    """Any mechanism that is (epsilon, 0)-differentially private.

    Attributes:
        epsilon: its guarantee, in nats, > 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        keep_positive(self, "epsilon")


@dataclass(frozen=True, kw_only=True)
class ApproximateDP(Leaf):
    """Any mechanism that is (epsilon, delta)-differentially private, and nothing else is known of it.

    It is never worse than one that gives its secret away with probability ``delta`` and is randomised
    response otherwise (Kairouz, Oh and Viswanath, 2015, Theorem 3.2, https://arxiv.org/abs/1311.0776).

    Attributes:
        epsilon: in nats, > 0.
        delta: in (0, 1).
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        keep_positive(self, "epsilon")
        check.open_unit(delta=self.delta)
        object.__setattr__(self, "delta", float(self.delta))


@dataclass(frozen=True, kw_only=True)
class BoundedRange(Leaf):
    """A mechanism whose privacy loss varies by at most ``eta`` over its outputs: the exponential mechanism.

    It is eta-DP, and composes like randomised response of half of that
    (Dong, Durfee and Rogers, 2020, https://arxiv.org/abs/1909.13830).

    Attributes:
        eta: the range, in nats, > 0.
    """

    eta: float

    def __post_init__(self) -> None:
        keep_positive(self, "eta")


@dataclass(frozen=True, kw_only=True)
class NonPrivate(Leaf):
    """A release with no noise: it promises nothing, and every accountant says so.

    Attributes:
        reason: why, in words.
    """

    reason: str = "released without noise"
