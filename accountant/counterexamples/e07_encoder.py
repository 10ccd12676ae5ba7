"""E7: an encoder that was trained on the private records lets one of them move every vector."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from accountant import check
from accountant.counterexamples._base import Fact, Records
from accountant.counterexamples._gaussian import GaussianCounterexample, Release, class_means


def encoder_ratio(*, n_c: int, other_class: int) -> float:
    r"""Return how far a class mean moves / ``2R / n_c`` when a record of *another* class is replaced.

    Class c has ``n_c`` records +1, the other class ``other_class`` records -1, and the encoder that all of them
    trained is :math:`z = R\,\mathrm{sign}(\sum_i x_i)\,x`. One record of the other class becomes +1. If that turns the
    sign, the mean of class c goes from one end of the ball to the other and the ratio is ``n_c``.

    Args:
        n_c: at least 1.
        other_class: at least 1; ``n_c + 1`` turns the sign.

    >>> encoder_ratio(n_c=50, other_class=51)
    50.0
    """
    p, q = (encoded(records)["c"] for records in _records(n_c, other_class))
    return float(abs(p.sum() - q.sum())) / 2


def encoder_factor(counts: Iterable[int]) -> float:
    """Return the largest true mu / claimed mu over all encoders trained on private records.

    Every class mean can move by 2R where ``2R / n_c`` is claimed, all at once: the root of the sum of ``n_c ** 2``.

    Args:
        counts: records of each class, each at least 1.

    >>> round(encoder_factor([50] * 7), 3)
    132.288
    """
    given = list(counts)
    for n_c in given:
        check.count(n_c=n_c)
    return math.hypot(*given)


def encoded(records: Records) -> Records:
    """Return records as the encoder maps them that was trained on all of them: ``sign(sum of all x) x``, R = 1."""
    sign = np.sign(sum(float(records_nd.sum()) for records_nd in records.values()))
    return {label: sign * records_nd for label, records_nd in records.items()}


def _records(n_c: int, other_class: int) -> tuple[Records, Records]:
    check.count(n_c=n_c, other_class=other_class)
    c, other = np.ones((n_c, 1)), -np.ones((other_class, 1))
    return {"c": c, "other": other}, {"c": c, "other": _first_flipped(other)}


def _first_flipped(records_nd: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    flipped_nd = records_nd.copy()
    flipped_nd[0] *= -1.0
    return flipped_nd


@dataclass(frozen=True, kw_only=True)
class Encoder(GaussianCounterexample):
    """Two classes and an encoder that is the sign of their sum; one record turns it.

    Attributes:
        n_c: records of the class that nobody touches; the other one has one more.
    """

    title = "the encoder was trained on the private records"
    short = "encoder trained on the data"
    claim = "replacing one record moves its own class mean by at most 2R/n, and no other"
    truth = (
        "it moves every class mean, by up to 2R; earlier outputs may steer the encoder, private state may not"
    )
    breaks = ("A1",)
    way_out = (
        "freeze the encoder, or train it with differential privacy and count that (privkit calibrate dpsgd)"
    )

    n_c: int = 50

    def data(self) -> tuple[Records, Records]:
        return _records(self.n_c, self.n_c + 1)

    @property
    def factor(self) -> float:
        # n_c records of c go from -R to R; of the other class all but the replaced one go back, n_c of n_c + 1
        return math.hypot(self.n_c, self.n_c)

    def releases(self) -> tuple[Release, Release]:
        before, after = (class_means(encoded(records), sigma=self.sigma) for records in self.data())
        return before, after

    def facts(self) -> tuple[Fact, ...]:
        ratio = encoder_ratio(n_c=self.n_c, other_class=self.n_c + 1)
        return (
            *super().facts(),
            Fact(name="shift of the untouched class mean / (2R/n)", value=ratio, claimed=0.0),
            Fact(
                name="mu factor, worst encoder",
                value=encoder_factor([self.n_c, self.n_c + 1]),
                claimed=1.0,
            ),
        )
