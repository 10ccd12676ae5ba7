"""What a counterexample is: two neighbouring data sets, a claim, the truth, and a run that shows it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from jaxtyping import Float

from accountant import check, gaussian

Records: TypeAlias = Mapping[str, Float[np.ndarray, "_ _"]]
"""Records of one client by class; one row per record."""

FEWEST = 100  # draws from which an interval is worth printing
_LONGEST = 4  # coordinates that are written out


@dataclass(frozen=True, kw_only=True)
class Fact:
    """An exact number next to the one that is claimed.

    Attributes:
        name: of what.
        value: what is true.
        claimed: what is claimed; None where nothing is.
    """

    name: str
    value: float
    claimed: float | None = None


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What runs of a mechanism show of a fact.

    Attributes:
        name: of the fact.
        value: estimate of it.
        low: lower end of the interval.
        high: upper end.
        level: confidence level of the interval, in (0, 1).
        n: runs on each data set.
        method: estimator and kind of interval, in words.
    """

    name: str
    value: float
    low: float
    high: float
    level: float
    n: int
    method: str

    def agrees(self, fact: Fact) -> bool:
        """Return whether the interval holds the exact value."""
        return self.low <= fact.value <= self.high


@dataclass(frozen=True, kw_only=True)
class Counterexample(ABC):
    """Two neighbouring data sets for which a claim of (epsilon, delta) fails, or holds with equality (E1).

    Attributes:
        epsilon: that is claimed, in nats, > 0.
        delta: that is claimed, in [0, 1); 0 for a claim of pure epsilon.
        title: what goes wrong.
        short: the same in at most 30 characters, for a table.
        claim: what is claimed.
        truth: what is true instead.
        breaks: ids of assumptions.
        way_out: what to do instead.
    """

    title: ClassVar[str]
    short: ClassVar[str]
    claim: ClassVar[str]
    truth: ClassVar[str]
    breaks: ClassVar[tuple[str, ...]]
    way_out: ClassVar[str]
    draws: ClassVar[int] = 400_000

    epsilon: float = 1.0
    delta: float = 1e-5

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.closed_unit(delta=self.delta)

    @property
    def id(self) -> str:
        """Return its id, ``E1`` and so on, from the name of its file."""
        return f"E{int(type(self).__module__.rpartition('.')[2][1:3])}"

    @property
    def mu(self) -> float:
        """Return the Gaussian mu that is claimed: the largest one for epsilon and delta."""
        return gaussian.mu_from_epsilon(epsilon=self.epsilon, delta=self.delta)

    @property
    def sigma(self) -> float:
        """Return the noise multiplier of one release that would be right if the claimed sensitivity were."""
        return gaussian.sigma_from_epsilon(epsilon=self.epsilon, delta=self.delta)

    @property
    def delta_name(self) -> str:
        """Return the name of the fact that most examples are about."""
        return f"delta at epsilon={self.epsilon:g}"

    @abstractmethod
    def data(self) -> tuple[Records, Records]:
        """Return D and D', which differ in one record; clip norm R = 1 wherever there is one."""

    @abstractmethod
    def facts(self) -> tuple[Fact, ...]:
        """Return what is true, the most telling number first."""

    def details(self) -> tuple[str, ...]:
        """Return what the mechanism makes of D and of D' before any noise, in words; nothing where the data say it."""
        return ()

    @abstractmethod
    def _simulate(self, samples: int, rng: np.random.Generator) -> tuple[Estimate, ...]: ...

    def simulate(self, samples: int, rng: np.random.Generator) -> tuple[Estimate, ...]:
        """Run the mechanism on D and on D', and return estimates of some of the facts.

        Args:
            samples: runs on each of the two, at least 100.
            rng: where noise comes from.
        """
        check.count(samples=samples)
        if samples < FEWEST:
            raise ValueError(f"samples={samples} is too few for an interval; give at least {FEWEST}.")
        return self._simulate(samples, rng)

    def fact(self, name: str) -> Fact:
        """Return a fact by its name."""
        return next(fact for fact in self.facts() if fact.name == name)


def described(records: Records) -> dict[str, str]:
    """Return every class's records in words, equal ones once, with how often they occur.

    >>> described({"a": np.array([[-1.0], [-1.0], [1.0]])})
    {'a': '2 x (-1), 1 x (1)'}
    """
    return {label: _tally(records_nd) for label, records_nd in records.items()}


def _tally(records_nd: Float[np.ndarray, "n d"]) -> str:
    if not len(records_nd):
        return "no record"
    rows, counts = np.unique(records_nd, axis=0, return_counts=True)
    return ", ".join(f"{count} x {_vector(row)}" for row, count in zip(rows, counts, strict=True))


def _vector(row_d: Float[np.ndarray, " d"]) -> str:
    if len(row_d) <= _LONGEST:
        return f"({', '.join(f'{x:.4g}' for x in row_d.round(4) + 0.0)})"
    (places,) = np.nonzero(row_d)
    terms = " ".join(f"{row_d[place]:+.4g} e{place + 1}" for place in places)
    return f"{terms or '0'} in R^{len(row_d)}"
