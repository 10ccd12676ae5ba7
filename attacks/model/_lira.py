r"""The likelihood ratio of a statistic that is Gaussian over models: with and without the candidate.

Offline, only models without the candidate are known: the score is ``(\phi - \mu_{out}) / \sigma``, of which Carlini et
al. report the normal distribution function; it is left out, as it makes large scores equal. Online, it is
``\log N(\phi; \mu_{in}, \sigma_{in}^2) - \log N(\phi; \mu_{out}, \sigma_{out}^2)``.

Source: Carlini et al. (2022), "Membership inference attacks from first principles", Algorithm 1 and section V.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64

from attacks._base import NotApplicableError

Variance = Literal["pooled", "record"]
_LEAST_STD = 1e-9


def spread(
    values_SN: Float64[np.ndarray, "S N"], used_SN: Bool[np.ndarray, "S N"], variance: Variance
) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
    """Return mean and standard deviation of some models' values for each record.

    Args:
        values_SN: one row per model.
        used_SN: which of them count.
        variance: of each record by itself, or one for all of them, which few models estimate better.

    Raises:
        NotApplicableError: a record has no model, or none has two.
    """
    models_N = used_SN.sum(0)
    if not models_N.all():
        row = int(np.flatnonzero(models_N == 0)[0])
        raise NotApplicableError(f"candidate {row} has no shadow model of one kind; each needs at least 1")
    if (models_N < 2).any() and (variance == "record" or (models_N < 2).all()):
        raise NotApplicableError(
            f"a candidate has {int(models_N.min())} shadow model of one kind; a spread needs 2"
        )
    mean_N = np.where(used_SN, values_SN, 0.0).sum(0) / models_N
    squares_N = np.where(used_SN, (values_SN - mean_N) ** 2, 0.0).sum(0)
    if variance == "pooled":
        std_N = np.full(len(mean_N), np.sqrt(squares_N.sum() / (models_N - 1).sum()))
    else:
        std_N = np.sqrt(squares_N / (models_N - 1))
    return mean_N, np.maximum(std_N, _LEAST_STD)


def offline(
    target_N: Float64[np.ndarray, " N"],
    outs: tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]],
) -> Float64[np.ndarray, " N"]:
    """Return by how many standard deviations each statistic is above that of models without the record."""
    mean_N, std_N = outs
    return (target_N - mean_N) / std_N


def online(
    target_N: Float64[np.ndarray, " N"],
    ins: tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]],
    outs: tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]],
) -> Float64[np.ndarray, " N"]:
    """Return the log likelihood ratio of "with the record" against "without it", in nats."""
    inside, without = (0.5 * offline(target_N, part) ** 2 + np.log(part[1]) for part in (ins, outs))
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

    def of_target(
        self, mean_N: Float64[np.ndarray, " N"], std_N: Float64[np.ndarray, " N"], *, typical: float
    ) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
        """Return mean and deviation of the target's statistic, given those of shadows and their typical deviation."""
        return self(mean_N), self.std * std_N / typical
