"""E4: a class with one record is absent from the release once that record has another label."""

from dataclasses import dataclass

import numpy as np

from accountant import check
from accountant.counterexamples._base import Counterexample, Estimate, Fact, Records
from accountant.counterexamples._estimates import delta_of_event
from accountant.counterexamples._gaussian import class_means


@dataclass(frozen=True, kw_only=True)
class ClassDisappears(Counterexample):
    """The only record of class a moves to class b.

    Attributes:
        n_b: records of class b in D, at least 1.
    """

    title = "a class loses its last record"
    short = "a class loses its last record"
    claim = "the noise hides one record, whichever it is"
    truth = "which classes are released shows it: class a has a prototype of D, and none of D'"
    breaks = ("A3",)
    way_out = "release noisy sums and counts of every class, present or not (defense sumcount)"
    draws = 20_000

    n_b: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check.count(n_b=self.n_b)

    def data(self) -> tuple[Records, Records]:
        alone, others = np.array([[1.0]]), np.full((self.n_b, 1), -1.0)
        return {"a": alone, "b": others}, {"b": np.concatenate([others, alone])}

    def facts(self) -> tuple[Fact, ...]:
        return (Fact(name=self.delta_name, value=1.0, claimed=self.delta),)

    def _simulate(self, samples: int, rng: np.random.Generator) -> tuple[Estimate, ...]:
        sizes = [len(class_means(records, sigma=self.sigma).draw(samples, rng)[0]) for records in self.data()]
        two_of_d, two_of_d_prime = (np.full(samples, size == 2) for size in sizes)
        return (delta_of_event(self.delta_name, two_of_d, two_of_d_prime, epsilon=self.epsilon),)
