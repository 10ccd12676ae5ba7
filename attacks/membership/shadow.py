r"""Shadow prototypes: what a released mean looks like with a candidate and without it, found by simulation.

The attacker averages records of its own as a client does. Of a class, every shadow prototype is the mean of as many
records as it owns, drawn with replacement; with their mean :math:`\bar s` and their covariance, which goes as one over
the number of records, a prototype of n records is

.. math::
    H_0:\ p - \bar s \sim N(0,\ S (1/n + 1/n_r) + D), \qquad
    H_1:\ p - \bar s \sim N((z - \bar s)/n,\ S ((n-1)/n^2 + 1/n_r) + D)

where S is n times the covariance of shadow prototypes, pooled over classes and shrunk, n_r the number of own records,
and D the covariance of the noise. The noise is known, so it is added and not simulated. The shrinkage is the one under
which the attacker's own records are most likely: shadow prototypes are all made of them, and would ask for none.

Where a class was released in clusters, ratios are averaged over them, weighted by their sizes, as in
``likelihood_ratio``.

Source: Carlini et al. (2022), "Membership inference attacks from first principles", whose statistic is of a model; for
means: ours.
"""

from functools import partial
from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks._base import NotApplicableError, ThreatModel
from attacks.membership._base import WITH_RECORDS, PrototypeAttack
from attacks.membership._groups import mixtures
from attacks.membership._population import Population, best_shrinkage, kept, shrunk, too_few
from attacks.membership.likelihood_ratio import log_likelihood_ratio, log_likelihood_ratios
from privkit.transcript import Records, ServerView

LEAST = 2


class Shadow(PrototypeAttack):
    """LiRA of a prototype: in and out Gaussians from simulated prototypes of the attacker's records, known noise."""

    citation: ClassVar[str] = "carlini2022, dwork2015"
    threat: ClassVar[ThreatModel] = WITH_RECORDS

    shadows: int = Field(default=256, ge=1, description="simulated prototypes per class; at least 2")
    seed: int = Field(default=0, ge=0, description="of which records each is made of")

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        scores = np.zeros(len(candidates))
        for asked in mixtures(view, candidates, partial(simulated, shadows=self.shadows, seed=self.seed)):
            scores[asked.rows] = asked.log_ratio(log_likelihood_ratio, log_likelihood_ratios)
        return scores


def simulated(
    labels_N: np.ndarray, clipped_Nd: Float64[np.ndarray, "N d"], *, shadows: int, seed: int
) -> Population:
    """Return the population that means of some clipped records, drawn with replacement, suggest.

    Raises:
        NotApplicableError: there are too few shadows or records.
    """
    if shadows < LEAST:
        raise NotApplicableError(f"{shadows} shadow prototype has no covariance; simulate at least {LEAST}")
    return kept(
        lambda: _simulated(labels_N, clipped_Nd, shadows, seed),
        labels_N,
        clipped_Nd,
        settings=(shadows, seed),
    )


def _simulated(
    labels_N: np.ndarray, clipped_Nd: Float64[np.ndarray, "N d"], shadows: int, seed: int
) -> Population:
    means, spreads, centred = {}, [], []
    labels, counts = np.unique(labels_N, return_counts=True)
    for label, n in zip(labels.tolist(), counts.tolist(), strict=True):
        own_nd = clipped_Nd[labels_N == label]
        prototypes_Sd = _prototypes(own_nd, shadows, np.random.default_rng((seed, label)))
        means[label] = prototypes_Sd.mean(0)
        centred.append(own_nd - own_nd.mean(0))
        if n >= LEAST:
            # drawn with replacement, means vary by (n - 1) / n of what means of fresh records would
            spreads.append((prototypes_Sd - means[label]) * (n / np.sqrt(n - 1)))
    if sum(counts - 1) < 2 * LEAST:
        raise too_few(len(labels_N), len(labels), beyond=2 * LEAST)
    spread_Kd = np.concatenate(spreads)
    freedom = len(spread_Kd) - len(spreads)
    amount = best_shrinkage(np.concatenate(centred))
    return Population(
        means=means,
        sizes=dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        covariance=shrunk(spread_Kd.T @ spread_Kd / freedom, amount),
    )


def _prototypes(
    own_nd: Float64[np.ndarray, "n d"], shadows: int, rng: np.random.Generator
) -> Float64[np.ndarray, "S d"]:
    """Return means of n of n records, drawn with replacement."""
    n = len(own_nd)
    times_Sn = rng.multinomial(n, np.full(n, 1 / n), size=shadows)
    return times_Sn @ own_nd / n
