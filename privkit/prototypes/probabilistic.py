"""One Gaussian per class instead of a point: what FedUP's clients share."""

from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from pydantic import Field

from privkit.embeddings import Embeddings
from privkit.prototypes._base import Plain
from privkit.prototypes.mean import Mean
from privkit.release import ProbabilisticPrototypes


class Probabilistic(Mean):
    """All records of a class are one Gaussian with independent coordinates, and its mean uncertainties.

    It leaves a client as such where nothing is hidden, counts excepted. Defenses of prototypes protect its unweighted
    means and send nothing else; `dpspread` protects all of it.
    """

    citation: ClassVar[str] = "fedup"

    reliability: bool = Field(
        default=True,
        description="weigh records of a mean by exp(-aleatoric uncertainty); a defense of means weighs none",
    )
    floor: float = Field(
        default=1e-2, gt=0, description="smallest spread that is sent, in the units of the embedding"
    )

    def plain(
        self,
        embeddings: Embeddings,
        labels_P: Int64[np.ndarray, " P"],
        counts_P: Int64[np.ndarray, " P"],
        means_Pd: Float64[np.ndarray, "P d"],
    ) -> Plain:
        statistics = embeddings.statistics
        epistemic_N, aleatoric_N = (
            np.zeros((2, len(embeddings.labels))) if statistics is None else statistics.T
        )
        found = gaussians(
            embeddings.vectors,
            embeddings.labels,
            epistemic_N,
            aleatoric_N,
            floor=self.floor,
            reliability=self.reliability,
        )
        payload = ProbabilisticPrototypes(
            vectors=found.mean.astype("float32"),
            labels=found.labels,
            spread=found.spread.astype("float32"),
            epistemic=None if statistics is None else found.epistemic,
            aleatoric=None if statistics is None else found.aleatoric,
        )
        return Plain(payload, found.mean)


class Gaussians(NamedTuple):
    """A Gaussian for each class, ascending.

    Attributes:
        labels: class of each, shape [P].
        mean: shape [P, d].
        spread: standard deviations, above 0, shape [P, d].
        epistemic, aleatoric: mean uncertainties, shape [P].
    """

    labels: Int64[np.ndarray, " P"]
    mean: Float64[np.ndarray, "P d"]
    spread: Float64[np.ndarray, "P d"]
    epistemic: Float64[np.ndarray, " P"]
    aleatoric: Float64[np.ndarray, " P"]


def gaussians(
    vectors_Nd: Float64[np.ndarray, "N d"],
    labels_N: Int64[np.ndarray, " N"],
    epistemic_N: Float64[np.ndarray, " N"],
    aleatoric_N: Float64[np.ndarray, " N"],
    *,
    floor: float,
    reliability: bool = True,
) -> Gaussians:
    """Return the probabilistic prototype of every class that is present.

    The mean is weighted by ``exp(-aleatoric)``, in [1/C, 1]; the spread is the standard deviation over records, with
    the number of records below the root and not one less, times 1 + the mean aleatoric uncertainty. The text has the
    second without its formula: both are inferred. A class of one record, or of equal ones, has the floor.

    Args:
        vectors_Nd: embeddings.
        labels_N: class of each.
        epistemic_N: uncertainty of each that more evidence would end, in nats.
        aleatoric_N: the one that it would not.
        floor: smallest spread, above 0.
        reliability: whether means are weighted.

    Source: FedUP, Eqs. 9 to 12
    """
    labels_P = np.unique(labels_N)
    rows = [np.flatnonzero(labels_N == label) for label in labels_P]
    weight_N = np.exp(-aleatoric_N) if reliability else np.ones(len(labels_N))
    d = vectors_Nd.shape[1]
    means = [weight_N[r] @ vectors_Nd[r] / weight_N[r].sum() for r in rows]
    spreads = [vectors_Nd[r].std(0) * (1 + aleatoric_N[r].mean()) for r in rows]
    return Gaussians(
        labels_P,
        np.reshape(means, (len(rows), d)),
        np.maximum(np.reshape(spreads, (len(rows), d)), floor),
        np.array([epistemic_N[r].mean() for r in rows]),
        np.array([aleatoric_N[r].mean() for r in rows]),
    )
