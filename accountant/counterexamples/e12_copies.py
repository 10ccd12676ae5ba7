"""E12: what hides one record does not hide a person who has several."""

import math
from dataclasses import dataclass

import numpy as np

from accountant import check
from accountant.counterexamples._base import Estimate, Fact, Records
from accountant.counterexamples._estimates import factor_from_losses
from accountant.counterexamples._gaussian import GaussianCounterexample, Release, class_means, losses

_SILOS = "mu factor, one record in each of m silos"


def copies_factor(*, m: int) -> float:
    """Return true mu / claimed mu for a person with ``m`` records in the same release: they move it m times as far."""
    check.count(m=m)
    return float(m)


def silos_factor(*, m: int) -> float:
    """Return true mu / claimed mu for a person with one record in each of ``m`` silos, each with noise of its own.

    >>> silos_factor(m=4)
    2.0
    """
    check.count(m=m)
    return math.sqrt(m)


@dataclass(frozen=True, kw_only=True)
class Copies(GaussianCounterexample):
    """A person's records go from one end of the ball to the other, all in one class of one client.

    Attributes:
        m: records of that person, at least 1.
        n: records of the class, at least ``m``.
    """

    title = "one person has several records"
    short = "a person with many records"
    claim = "a person is hidden as well as a record is"
    truth = "m records in one release cost m mu; one in each of m silos, with fresh noise, sqrt(m) mu"
    breaks = ("A2", "A7")
    way_out = "give a person one record in one silo, or claim for m records at m times mu"
    draws = 200_000

    m: int = 3
    n: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check.count(m=self.m, n=self.n)
        if self.m > self.n:
            raise ValueError(f"m={self.m} copies do not fit into a class of n={self.n} records; raise n.")

    @property
    def factor(self) -> float:
        return copies_factor(m=self.m)

    def data(self) -> tuple[Records, Records]:
        return self._with_copies(self.m)

    def _with_copies(self, copies: int) -> tuple[Records, Records]:
        records_nd = np.full((self.n, 1), -1.0)
        moved_nd = records_nd.copy()
        moved_nd[:copies] *= -1.0
        return {"a": moved_nd}, {"a": records_nd}

    def releases(self) -> tuple[Release, Release]:
        p, q = (class_means(records, sigma=self.sigma) for records in self.data())
        return p, q

    def silos(self) -> tuple[Release, Release]:
        """Return what m silos release together, each with one record of that person."""
        once = (class_means(records, sigma=self.sigma) for records in self._with_copies(1))
        p, q = (Release(mean=np.tile(r.mean, self.m), std=np.tile(r.std, self.m)) for r in once)
        return p, q

    def facts(self) -> tuple[Fact, ...]:
        return (*super().facts(), Fact(name=_SILOS, value=silos_factor(m=self.m), claimed=1.0))

    def _simulate(self, samples: int, rng: np.random.Generator) -> tuple[Estimate, ...]:
        p, q = self.silos()
        from_p, from_q = losses(p, q, samples=samples, rng=rng), -losses(q, p, samples=samples, rng=rng)
        apart = factor_from_losses(_SILOS, from_p, from_q, claimed_mu=self.mu)
        return (*super()._simulate(samples, rng), apart)
