r"""The likelihood ratio of "in the average" against "not in it", all rounds together.

A released prototype is the mean of ``n`` clipped embeddings plus known noise. With the class's
population ``N(m, S)`` estimated from records that the attacker owns, the mean of the rounds ``p`` is

.. math::
    H_0:\ p - \hat m \sim N(0,\ S (1/n + 1/n_r) + s^2 I), \qquad
    H_1:\ p - \hat m \sim N((z - \hat m)/n,\ S ((n-1)/n^2 + 1/n_r) + s^2 I)

for a candidate ``z``, where ``s`` is the noise left after averaging the rounds and ``n_r`` the number of
records behind the estimate of ``m``. By Neyman and Pearson no score separates the two better, if the
population is Gaussian.

Source: Homer et al. (2008); Dwork et al. (2015), "Robust traceability from trace amounts".
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import AbstractAttack, NotApplicableError, ThreatModel
from attacks._known_noise import Averaged, averaged, encoder_is_public
from attacks.membership._groups import by_client_and_class
from attacks.membership._population import Population
from privkit.clip import clip_to_ball
from privkit.transcript import Records, ServerView


class LikelihoodRatio(AbstractAttack):
    """Exact Gaussian likelihood ratio with the known noise; population from held-out records, shrunk."""

    citation: ClassVar[str] = "dwork2015"
    threat: ClassVar[ThreatModel] = ThreatModel(
        who="honest-but-curious server",
        knows=(
            "the public encoder",
            "clip norm, noise multiplier and record counts",
            "records of the same domain that no client holds",
        ),
        tier="shadow",
    )

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        if view.reference is None:
            raise NotApplicableError("the attacker owns no reference records; set split.reference above 0")
        drifts = not all(encoder_is_public(release) for release in view.releases)
        scores = np.zeros(len(candidates))
        populations: dict[tuple[int, float], Population] = {}
        for client, label, rows in by_client_and_class(candidates):
            release = averaged(view, client=client, label=label, drifts=drifts)
            key = (client, release.clip_norm)
            if key not in populations:
                populations[key] = Population.of(view.reference.of(client), clip_norm=release.clip_norm)
            z_Nd = clip_to_ball(candidates.vectors[rows], norm=release.clip_norm)
            scores[rows] = log_likelihood_ratio(z_Nd, release, populations[key], label)
        return scores


def log_likelihood_ratio(
    z_Nd: Float64[np.ndarray, "N d"], release: Averaged, population: Population, label: int
) -> Float64[np.ndarray, " N"]:
    """Return log p(release | z in) - log p(release | z not in) for each candidate, in nats."""
    if label not in population.means:
        raise NotApplicableError(f"the attacker owns no reference record of class {label}")
    n, n_ref, noise = release.count, population.sizes[label], release.std**2
    mean = population.means[label]
    out_d = population.variances * (1 / n + 1 / n_ref) + noise
    in_d = population.variances * ((n - 1) / n**2 + 1 / n_ref) + noise
    x_d = (release.vector - mean) @ population.basis
    shift_Nd = (z_Nd - mean) @ population.basis / n
    constant = 0.5 * (np.log(out_d) - np.log(in_d) + x_d**2 / out_d).sum()
    return constant - 0.5 * ((x_d - shift_Nd) ** 2 / in_d).sum(1)
