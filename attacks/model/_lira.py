r"""The likelihood ratio of a statistic that is Gaussian over models: with and without the candidate.

Offline, only models without the candidate are known: the score is ``(\phi - \mu_{out}) / \sigma``, of which Carlini et
al. report the normal distribution function; it is left out, as it makes large scores equal. Online, it is
``\log N(\phi; \mu_{in}, \sigma_{in}^2) - \log N(\phi; \mu_{out}, \sigma_{out}^2)``.

Source: Carlini et al. (2022), "Membership inference attacks from first principles", Algorithm 1 and its
offline variant.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64

from attacks._base import NotApplicableError

Variance = Literal["pooled", "record"]
_LEAST_STD = 1e-9


@dataclass(frozen=True, eq=False)
class Gaussians:
    """A Gaussian for the statistic of each record, over models of one kind.

    Attributes:
        mean, std: shape [N].
    """

    mean: Float64[np.ndarray, " N"]
    std: Float64[np.ndarray, " N"]


def mean(
    values_SN: Float64[np.ndarray, "S N"], used_SN: Bool[np.ndarray, "S N"]
) -> Float64[np.ndarray, " N"]:
    """Return the mean of each record's statistic over the models that count.

    Raises:
        NotApplicableError: a record has no such model.
    """
    models_N = used_SN.sum(0)
    if not models_N.all():
        row = int(np.flatnonzero(models_N == 0)[0])
        raise NotApplicableError(f"record {row} has no shadow model of one kind; each needs at least 1")
    return np.where(used_SN, values_SN, 0.0).sum(0) / models_N


def std(
    values_SN: Float64[np.ndarray, "S N"], used_SN: Bool[np.ndarray, "S N"], *, pooled: bool
) -> Float64[np.ndarray, " N"]:
    """Return the standard deviation of each record's statistic over the models that count.

    Args:
        values_SN: one row per model.
        used_SN: which of them count.
        pooled: one for all records, which a few models estimate better than one for each.

    Raises:
        NotApplicableError: a record has a single model, or, where it is pooled, all of them have.
    """
    freedom_N = used_SN.sum(0) - 1
    squares_N = np.where(used_SN, (values_SN - mean(values_SN, used_SN)) ** 2, 0.0).sum(0)
    if not (freedom_N.any() if pooled else freedom_N.all()):
        raise NotApplicableError(
            "a record has 1 shadow model that has not seen it, and a spread needs 2; use at least 3 shadow models"
        )
    if pooled:
        return np.full(len(squares_N), max(np.sqrt(squares_N.sum() / freedom_N.sum()), _LEAST_STD))
    return np.maximum(np.sqrt(squares_N / freedom_N), _LEAST_STD)


def gaussians(
    values_SN: Float64[np.ndarray, "S N"],
    own: tuple[Float64[np.ndarray, "S R"], Bool[np.ndarray, "S R"]],
    variance: Variance,
) -> Gaussians:
    """Return the Gaussians of candidates, all of whose models count.

    Args:
        values_SN: their statistic under each model.
        own: the statistic of the attacker's own records, and which models count for each: a pooled deviation is theirs,
            so that no score depends on which other candidates are asked about.
        variance: of each record by itself, or one for all.
    """
    every_SN = np.ones(values_SN.shape, dtype=bool)
    centre_N = mean(values_SN, every_SN)
    if variance == "record":
        return Gaussians(centre_N, std(values_SN, every_SN, pooled=False))
    return Gaussians(centre_N, np.full(len(centre_N), std(*own, pooled=True)[0]))


def offline(target_N: Float64[np.ndarray, " N"], outs: Gaussians) -> Float64[np.ndarray, " N"]:
    """Return by how many standard deviations each statistic is above that of models without the record."""
    return (target_N - outs.mean) / outs.std


def online(
    target_N: Float64[np.ndarray, " N"],
    ins: Gaussians,
    outs: Gaussians,
) -> Float64[np.ndarray, " N"]:
    """Return the log likelihood ratio of "with the record" against "without it", in nats."""
    inside, without = (0.5 * offline(target_N, part) ** 2 + np.log(part.std) for part in (ins, outs))
    return without - inside


@dataclass(frozen=True)
class Scale:
    """What turns a statistic of shadow models into that of the target: ``slope * phi + offset``, and what is left.

    Shadows are no copies of the target: it is trained for another time, from another start, with an adapter perhaps.
    The attacker's own records, of which the target has none, show by how much its statistic differs (ours).
    """

    slope: float
    offset: float
    std: float

    @classmethod
    def of(cls, target_R: Float64[np.ndarray, " R"], shadow_R: Float64[np.ndarray, " R"]) -> "Scale":
        """Return the least-squares line through the statistics of records that none of the models has seen."""
        centred = shadow_R - shadow_R.mean()
        power = float(centred @ centred)
        slope = float(centred @ target_R) / power if power > 0 else 0.0
        left = target_R - target_R.mean() - slope * centred
        std = float(np.sqrt((left**2).sum() / max(1, len(left) - 2)))
        return cls(slope, float(target_R.mean() - slope * shadow_R.mean()), max(std, _LEAST_STD))

    def __call__(self, shadow_N: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
        """Return what the target's statistic would be."""
        return self.slope * shadow_N + self.offset

    def of_target(self, shadows: Gaussians, *, typical: float) -> Gaussians:
        """Return the Gaussians of the target's statistic, given those of shadows and their typical deviation."""
        return Gaussians(self(shadows.mean), self.std * shadows.std / typical)
