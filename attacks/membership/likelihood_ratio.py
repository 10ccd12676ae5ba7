r"""The likelihood ratio of "in the average" against "not in it", all rounds together.

A released prototype is the mean of ``n`` clipped embeddings plus known noise. With the class's
population ``N(m, S)`` estimated from records that the attacker owns, the mean of the rounds ``p`` is

.. math::
    H_0:\ p - \hat m \sim N(0,\ S (1/n + 1/n_r) + D), \qquad
    H_1:\ p - \hat m \sim N((z - \hat m)/n,\ S ((n-1)/n^2 + 1/n_r) + D)

for a candidate ``z``, where ``D`` is the diagonal covariance of the noise left after averaging the rounds and
``n_r`` the number of records behind the estimate of ``m``. By Neyman and Pearson no score separates the two
better, if the population is Gaussian.

Where a class was released in clusters, a member is in one of them, which the server does not know: the ratios of the
clusters are averaged, weighted by their sizes, as if each were records drawn at random (ours).

Source: Homer et al. (2008); Dwork et al. (2015), "Robust traceability from trace amounts".
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from scipy import linalg

from attacks._averaged import Averaged
from attacks._base import ThreatModel
from attacks.membership._axes import along
from attacks.membership._base import WITH_RECORDS, PrototypeAttack
from attacks.membership._groups import Question, mixtures
from attacks.membership._population import Population
from privkit.transcript import Records, ServerView


class LikelihoodRatio(PrototypeAttack):
    """Gaussian likelihood ratio with the known noise; population from held-out records, shrunk."""

    citation: ClassVar[str] = "dwork2015"
    threat: ClassVar[ThreatModel] = WITH_RECORDS

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        scores = np.zeros(len(candidates))
        for asked in mixtures(view, candidates):
            scores[asked.rows] = asked.log_ratio(log_likelihood_ratio, log_likelihood_ratios)
        return scores


def log_likelihood_ratio(asked: Question) -> Float64[np.ndarray, " N"]:
    """Return log p(release | z in) - log p(release | z not in) for each candidate, in nats."""
    release, population, label = asked.release, asked.population, asked.label
    n, n_ref = release.count, population.sizes[label]
    x_d = release.vector - population.means[label]
    shift_Nd = (asked.candidates - population.means[label]) / n
    out, out_logdet = _factor(population, release, 1 / n + 1 / n_ref)
    inside, in_logdet = _factor(population, release, (n - 1) / n**2 + 1 / n_ref)
    without = (linalg.solve_triangular(out, x_d, lower=True) ** 2).sum()
    within_N = (linalg.solve_triangular(inside, (x_d - shift_Nd).T, lower=True) ** 2).sum(0)
    return 0.5 * (without + out_logdet - within_N - in_logdet)


def log_likelihood_ratios(questions: tuple[Question, ...]) -> Float64[np.ndarray, "K N"]:
    """Return log p(centre | z in its cluster) - log p(centre | z not in it) of each cluster of a set, in nats."""
    found = along(questions)
    n_K1 = found.counts[:, None]
    out_Kd = 1 / n_K1 + 1 / found.reference + found.noise
    inside_Kd = (n_K1 - 1) / n_K1**2 + 1 / found.reference + found.noise
    without_K = found.squares(1 / out_Kd)[0] + np.log(out_Kd).sum(1)
    centre_K, inner_KN, own_KN = found.squares(1 / inside_Kd)
    within_KN = (centre_K + np.log(inside_Kd).sum(1))[:, None] - 2 * inner_KN + own_KN
    return 0.5 * (without_K[:, None] - within_KN)


def _factor(
    population: Population, release: Averaged, share: float
) -> tuple[Float64[np.ndarray, "d d"], float]:
    """Return the Cholesky factor of ``share S + D``, and the logarithm of its determinant."""
    factor = linalg.cholesky(share * population.covariance + np.diag(release.variance), lower=True)
    return factor, 2.0 * float(np.log(np.diag(factor)).sum())
