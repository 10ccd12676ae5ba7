r"""Whitened tracing: the first-order likelihood ratio, an inner product in the metric of what is not known.

.. math:: t(z) = \frac{(z - m)^T A^{-1} (\tilde p - m)}{n} - \frac{(z - m)^T A^{-1} (z - m)}{2 n^2},
    \qquad A = S / n + D

with ``m`` and ``S`` of records that the attacker owns and ``D`` the covariance of the known noise. It leaves
out that one record also narrows the average, which the likelihood ratio does not. Ratios of clusters of a class are
averaged, weighted by their sizes (ours).

Source: Dwork et al. (2015), "Robust traceability from trace amounts"; Sankararaman et al. (2009), "Genomic
privacy and limits of individual detection in a pool".
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from scipy import linalg

from attacks._base import ThreatModel
from attacks.membership._axes import along
from attacks.membership._base import WITH_RECORDS, PrototypeAttack
from attacks.membership._groups import Question, mixtures
from privkit.transcript import Records, ServerView


class Tracing(PrototypeAttack):
    """Centred inner product with the average of all rounds, whitened by population and noise."""

    citation: ClassVar[str] = "dwork2015, homer2008"
    threat: ClassVar[ThreatModel] = WITH_RECORDS

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        scores = np.zeros(len(candidates))
        for asked in mixtures(view, candidates):
            scores[asked.rows] = asked.log_ratio(trace, traces)
        return scores


def trace(asked: Question) -> Float64[np.ndarray, " N"]:
    """Return the first-order log likelihood ratio of each candidate, in nats."""
    release, mean, n = asked.release, asked.population.means[asked.label], asked.release.count
    covariance = asked.population.covariance / n + np.diag(release.variance)
    shift_Nd = (asked.candidates - mean) / n
    both = np.column_stack([release.vector - mean, shift_Nd.T])
    solved = linalg.cho_solve(linalg.cho_factor(covariance, lower=True), both)
    return shift_Nd @ solved[:, 0] - 0.5 * (shift_Nd * solved[:, 1:].T).sum(1)


def traces(questions: tuple[Question, ...]) -> Float64[np.ndarray, "K N"]:
    """Return the first-order log likelihood ratio of each candidate for each cluster of a set, in nats."""
    found = along(questions)
    _, inner_KN, own_KN = found.squares(1 / (1 / found.counts[:, None] + found.noise))
    return inner_KN - 0.5 * own_KN
