"""E1, the control: the claim holds with equality, and the run shows exactly what was claimed."""

from dataclasses import dataclass

import numpy as np

from accountant import check
from accountant.counterexamples._base import Records
from accountant.counterexamples._gaussian import GaussianCounterexample, Release, class_means


@dataclass(frozen=True, kw_only=True)
class Control(GaussianCounterexample):
    """A class mean of ``n`` records, one of which goes from one end of the ball to the other.

    Attributes:
        n: records of the class, at least 1.
    """

    title = "control: one record of a class mean, same label"
    short = "control: one record moves"
    claim = "a class mean moves by at most 2R/n"
    truth = "it does, and one record from +R to -R moves it by just that: the claim holds with equality"
    breaks = ()
    way_out = "none is needed"

    n: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check.count(n=self.n)

    @property
    def factor(self) -> float:
        return 1.0

    def data(self) -> tuple[Records, Records]:
        records_nd = np.tile([-1.0, 0.0], (self.n, 1))
        moved_nd = records_nd.copy()
        moved_nd[0, 0] = 1.0
        return {"a": moved_nd}, {"a": records_nd}

    def releases(self) -> tuple[Release, Release]:
        before, after = self.data()
        return class_means(before, sigma=self.sigma), class_means(after, sigma=self.sigma)
