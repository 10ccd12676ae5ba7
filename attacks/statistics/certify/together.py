"""All lower limits on epsilon that canaries' scores allow, side by side, each with what it assumes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from accountant import check
from attacks.statistics.certify import bayesian, clopper_pearson, gdp, one_run, one_run_fdp, parametric
from attacks.statistics.certify.certificate import Certificate, NoCertificate
from attacks.statistics.confusion import Confusion, confusion
from attacks.statistics.estimate import empty_class
from attacks.statistics.scores import as_scores

GUESSED = 0.25
"""Share of all canaries that the one-run limits guess about: those whose scores are farthest from 0."""


def certificates(
    as_planted: ArrayLike, negated: ArrayLike, *, delta: float, level: float = 0.95, not_gaussian: str = ""
) -> tuple[Certificate | NoCertificate, ...]:
    """Return every limit, from scores that are positive where a canary looks planted as it stands.

    The first four need independent trials: noise that canaries share, such as one coin for all of them, makes them
    certify what is not there. The one-run limits hold whatever the noise, if signs were drawn by coins; the last of
    them for Gaussian curves only.

    Args:
        as_planted: log likelihood ratios of canaries planted as they stand.
        negated: of those planted negated.
        delta: in [0, 1).
        level: probability that each limit holds, in (0, 1).
        not_gaussian: why no trade-off curve is Gaussian here, in words; empty where it may be.

    Returns:
        Gaussian DP and Clopper-Pearson at threshold 0, normal scores, Bayesian, one run, one run for Gaussian DP.
        Where a method does not apply, its reason. The order is fixed beforehand: the first that applies is
        :func:`first_certificate`.

    Source: Nasr et al. (2023); Zanella-Beguelin et al. (2023); Steinke et al. (2023); Mahloujifar et al. (2024).

    >>> rng = np.random.default_rng(0)
    >>> found = certificates(rng.normal(1, 1, 500), rng.normal(-1, 1, 500), delta=1e-5)
    >>> [f"{one.epsilon_low:.1f}" for one in found if isinstance(one, Certificate)]
    ['8.9', '1.6', '9.2', '1.7', '3.1', '5.3']
    """
    return tuple(_each(as_planted, negated, delta, level, not_gaussian))


def first_certificate(
    as_planted: ArrayLike, negated: ArrayLike, *, delta: float, level: float = 0.95, not_gaussian: str = ""
) -> Certificate | None:
    """Return the first of :func:`certificates` that applies, which is what is printed where there is room for one."""
    found = _each(as_planted, negated, delta, level, not_gaussian)
    return next((one for one in found if isinstance(one, Certificate)), None)


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Scores of canaries planted as they stand, and of those negated."""

    plus: Float[np.ndarray, " M"]
    minus: Float[np.ndarray, " N"]
    delta: float
    level: float

    @property
    def terms(self) -> dict[str, float]:
        return {"delta": self.delta, "level": self.level}

    @cached_property
    def point(self) -> Confusion:
        """Return the counts at 0; a ValueError where one answer was planted nowhere."""
        if empty_class(len(self.plus), len(self.minus)):
            raise ValueError("all canaries were planted in one way, so one of the two rates is not known")
        return confusion(
            self.plus, self.minus, threshold=0.0, threshold_source="0, where both answers are equally likely"
        )

    @cached_property
    def guesses(self) -> dict[str, int]:
        """Return how many guesses on the clearest canaries are right."""
        right = np.concatenate([self.plus, -self.minus])  # positive where the answer is guessed right
        distance = np.abs(right)
        least = np.sort(distance)[-max(1, round(GUESSED * len(right)))]
        chosen = distance >= least  # ties are not split: which of them come first may depend on the answers
        correct = int((right[chosen] > 0).sum())
        return {"canaries": len(right), "guesses": int(chosen.sum()), "correct": correct}


class _Method(NamedTuple):
    name: str
    certify: Callable[[_Evidence], Certificate]
    needs_gaussian: bool = False


_METHODS = (
    _Method(gdp.METHOD, lambda e: gdp.epsilon_gdp(e.point, **e.terms), needs_gaussian=True),
    _Method(clopper_pearson.METHOD, lambda e: clopper_pearson.epsilon_clopper_pearson(e.point, **e.terms)),
    _Method(
        parametric.METHOD,
        lambda e: parametric.epsilon_parametric(e.plus, e.minus, **e.terms),
        needs_gaussian=True,
    ),
    _Method(bayesian.ONE_SIDED, lambda e: bayesian.epsilon_bayesian(e.point, **e.terms, one_sided=True)),
    _Method(one_run.METHOD, lambda e: one_run.epsilon_one_run(**e.guesses, **e.terms)),
    _Method(
        one_run_fdp.METHOD,
        lambda e: one_run_fdp.epsilon_one_run_fdp(**e.guesses, **e.terms),
        needs_gaussian=True,
    ),
)


def _each(
    as_planted: ArrayLike, negated: ArrayLike, delta: float, level: float, not_gaussian: str
) -> Iterator[Certificate | NoCertificate]:
    check.open_unit(level=level)
    if not 0 <= delta < 1:
        raise ValueError(f"delta={delta} must be at least 0 and below 1.")
    evidence = _Evidence(
        as_scores(as_planted, name="as_planted"), as_scores(negated, name="negated"), delta, level
    )
    for method in _METHODS:
        if method.needs_gaussian and not_gaussian:
            yield NoCertificate(method=method.name, reason=not_gaussian)
            continue
        try:
            yield method.certify(evidence)
        except ValueError as reason:
            yield NoCertificate(method=method.name, reason=str(reason).rstrip("."))
