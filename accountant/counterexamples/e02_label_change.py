"""E2: a record that changes its label moves two class means, not one."""

import math
from dataclasses import dataclass

import numpy as np

from accountant import check
from accountant.counterexamples._base import Records
from accountant.counterexamples._gaussian import GaussianCounterexample, Release, class_means


def label_change_factor(*, n_a: int, n_b: int) -> float:
    r"""Return true mu / claimed mu when one record moves from class a to class b.

    With the noise held at ``sigma 2R / n_a`` and ``sigma 2R / n_b``, the means move by at most ``2R / n_a`` and
    ``2R / (n_b + 1)``, both at once:

    .. math:: \sqrt{1 + \left(\frac{n_b}{n_b + 1}\right)^2} < \sqrt 2.

    Args:
        n_a: records of class a before, at least 2; with one the class disappears (E4).
        n_b: records of class b before, at least 1.

    >>> round(label_change_factor(n_a=10, n_b=10), 12)
    1.351460795211
    """
    check.count(n_a=n_a, n_b=n_b)
    if n_a == 1:
        raise ValueError("n_a=1 leaves no record in class a, which gives the change away; use at least 2.")
    return math.hypot(1.0, n_b / (n_b + 1))


@dataclass(frozen=True, kw_only=True)
class LabelChange(GaussianCounterexample):
    """One record changes its label only; all others sit at the far end of the ball.

    Attributes:
        n_a: records of the class that it leaves, at least 2.
        n_b: records of the class that it joins, at least 1.
    """

    title = "one record changes its label"
    short = "one record changes its label"
    claim = "replacing one record moves one class mean by at most 2R/n"
    truth = "it leaves one class and joins another, so two means move; noise is held at the counts of D"
    breaks = ("A2",)
    way_out = "claim 'replace one record, same label', or release noisy sums and counts (defense sumcount)"

    n_a: int = 10
    n_b: int = 10

    @property
    def factor(self) -> float:
        return label_change_factor(n_a=self.n_a, n_b=self.n_b)

    def data(self) -> tuple[Records, Records]:
        moved, far = np.array([[1.0]]), np.array([[-1.0]])
        a, b = far.repeat(self.n_a - 1, axis=0), far.repeat(self.n_b, axis=0)
        return {"a": np.concatenate([moved, a]), "b": b}, {"a": a, "b": np.concatenate([moved, b])}

    def releases(self) -> tuple[Release, Release]:
        before, after = self.data()
        counts = {"a": self.n_a, "b": self.n_b}
        return class_means(before, sigma=self.sigma), class_means(
            after, sigma=self.sigma, noise_counts=counts
        )
