"""All lower limits on epsilon that canaries' scores allow, side by side, each with what it assumes."""

import numpy as np
from numpy.typing import ArrayLike

from attacks.statistics.certify.bayesian import epsilon_bayesian
from attacks.statistics.certify.certificate import Certificate
from attacks.statistics.certify.clopper_pearson import epsilon_clopper_pearson
from attacks.statistics.certify.gdp import epsilon_gdp
from attacks.statistics.certify.one_run import epsilon_one_run
from attacks.statistics.certify.one_run_fdp import epsilon_one_run_fdp
from attacks.statistics.certify.parametric import epsilon_parametric
from attacks.statistics.confusion import confusion
from attacks.statistics.scores import as_scores

GUESSED = 0.25
"""Share of all canaries that the one-run limits guess about: those whose scores are farthest from 0."""


def certificates(
    as_planted: ArrayLike, negated: ArrayLike, *, delta: float, level: float = 0.95
) -> tuple[Certificate, ...]:
    """Return every limit, from scores that are positive where a canary looks planted as it stands.

    The first four need independent trials: noise that canaries share, such as one coin for all of them, makes them
    certify what is not there. The one-run limits hold whatever the noise, if signs were drawn by coins.

    Args:
        as_planted: log likelihood ratios of canaries planted as they stand, at least one.
        negated: of those planted negated, at least one; three in all.
        delta: in (0, 1).
        level: probability that each limit holds, in (0, 1).

    Returns:
        Clopper-Pearson, Gaussian DP and Bayesian at threshold 0, normal scores, one run, one run for Gaussian DP.

    Source: Nasr et al. (2023); Steinke et al. (2023); Mahloujifar et al. (2024).
    """
    plus, minus = as_scores(as_planted, name="as_planted"), as_scores(negated, name="negated")
    point = confusion(plus, minus, threshold=0.0, threshold_source="0, where both signs are equally likely")
    right = np.concatenate([plus, -minus])  # positive where the sign is guessed right
    chosen = np.argsort(-np.abs(right), kind="stable")[: max(1, round(GUESSED * len(right)))]
    counts = {"canaries": len(right), "guesses": len(chosen), "correct": int((right[chosen] > 0).sum())}
    return (
        epsilon_clopper_pearson(point, delta=delta, level=level),
        epsilon_gdp(point, delta=delta, level=level),
        epsilon_bayesian(point, delta=delta, level=level),
        epsilon_parametric(plus, minus, delta=delta, level=level),
        epsilon_one_run(**counts, delta=delta, level=level),
        epsilon_one_run_fdp(**counts, delta=delta, level=level),
    )
