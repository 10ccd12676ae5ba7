"""E10: the published noise formula is no calibration; at large epsilon its noise is too small."""

from dataclasses import dataclass

import numpy as np

from accountant import gaussian, paper
from accountant.counterexamples._base import Fact, Records
from accountant.counterexamples._gaussian import GaussianCounterexample, Release, class_means
from accountant.counterexamples.e01_control import Control


@dataclass(frozen=True, kw_only=True)
class Formula(GaussianCounterexample):
    """The control's records over some rounds, with the noise that the formula gives.

    Attributes:
        c1: the formula's constant, which VPDR leaves open, > 0.
        rounds: releases, at least 1; they do not change what is true.
    """

    title = "sigma by the formula c1 sqrt(T ln(1/delta)) / epsilon"
    short = "the published formula"
    claim = "that noise, with c1 = 1, gives (epsilon, delta) over T rounds"
    truth = "no constant makes it a calibration: c1 = 1 is too small from epsilon = 0.5 on, sqrt(2) from 8 on"
    breaks = ("A8",)
    way_out = "calibrate exactly (privkit calibrate gaussian)"
    draws = 100_000

    epsilon: float = 8.0
    c1: float = 1.0
    rounds: int = 20

    @property
    def factor(self) -> float:
        return gaussian.mu_from_sigma(sigma=self._published, rounds=self.rounds) / self.mu

    @property
    def _published(self) -> float:
        budget = {"epsilon": self.epsilon, "delta": self.delta, "rounds": self.rounds}
        return paper.sigma_from_formula(**budget, c1=self.c1)

    def facts(self) -> tuple[Fact, ...]:
        factor, epsilon, delta = super().facts()
        return epsilon, delta, factor

    def data(self) -> tuple[Records, Records]:
        return Control().data()

    def releases(self) -> tuple[Release, Release]:
        once = (class_means(records, sigma=self._published) for records in self.data())
        p, q = (Release(mean=np.tile(r.mean, self.rounds), std=np.tile(r.std, self.rounds)) for r in once)
        return p, q
