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

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import AbstractAttack, NotApplicableError, ThreatModel
from attacks._known_noise import Averaged, averaged, encoder_is_public
from attacks.membership._groups import by_client_and_class
from privkit.clip import clip_to_ball
from privkit.transcript import Records, ServerView

_FOLDS = 5


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
                populations[key] = Population.of(view.reference.of(client), release.clip_norm)
            z_Nd = clip_to_ball(candidates.vectors[rows], norm=release.clip_norm)
            scores[rows] = log_likelihood_ratio(z_Nd, release, populations[key], label)
        return scores


@dataclass(frozen=True, eq=False, kw_only=True)
class Population:
    """A client's domain as the attacker knows it.

    Attributes:
        means: mean of each class, by label, shape [d].
        sizes: records behind each mean.
        basis: eigenvectors of the pooled within-class covariance, shape [d, d], in columns.
        variances: its eigenvalues, shape [d].
    """

    means: dict[int, np.ndarray]
    sizes: dict[int, int]
    basis: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(cls, records: Records, clip_norm: float) -> "Population":
        """Return the population that some records suggest.

        The covariance is shrunk towards a multiple of the identity, by the amount under which the
        attacker's own records, left out in turn, are most likely.
        """
        labels = np.unique(records.labels)
        if len(records) - len(labels) < _FOLDS:
            raise NotApplicableError("there are too few reference records to estimate a covariance")
        z_Nd = clip_to_ball(records.vectors, norm=clip_norm)
        means = {int(c): z_Nd[records.labels == c].mean(0) for c in labels}
        centred = z_Nd - np.array([means[int(c)] for c in records.labels])
        lost = len(records) / (len(records) - len(labels))
        variances, basis = np.linalg.eigh(_covariance(centred) * lost)
        sizes = {int(c): int((records.labels == c).sum()) for c in labels}
        return cls(means=means, sizes=sizes, basis=basis, variances=np.maximum(variances, 1e-12))


def _covariance(centred_Nd: Float64[np.ndarray, "N d"]) -> Float64[np.ndarray, "d d"]:
    from sklearn.covariance import ShrunkCovariance
    from sklearn.model_selection import GridSearchCV

    grid = {"shrinkage": np.geomspace(1e-4, 1.0, 9)}
    search = GridSearchCV(ShrunkCovariance(assume_centered=True), grid, cv=_FOLDS)
    return search.fit(centred_Nd).best_estimator_.covariance_


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
