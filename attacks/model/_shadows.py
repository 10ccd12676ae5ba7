"""Shadow models of one client, trained on records that the attacker owns; the last few are kept, by content."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64
from pydantic import Field

from attacks._base import NotApplicableError
from attacks._kept import Kept
from attacks._models import units
from attacks.model import _ridge, _stacked
from attacks.model._base import ModelAttack, Seen
from attacks.model._halves import halves
from attacks.model._ridge import Pairs
from attacks.model._stacked import Schedule
from privkit.transcript import Records

_MOST_KEPT = 128
_kept_heads = Kept["Trained"](_MOST_KEPT)
_kept_pairs = Kept[Pairs](_MOST_KEPT)


@dataclass(frozen=True, eq=False)
class Trained:
    """Shadow heads at some points of their training.

    Attributes:
        weights: shape [P, d + 1, C, S], the constant last; without one, [P, d, C, S].
        held: which shadow has which of the attacker's records, shape [S, R].
        scaling: of features.
    """

    weights: np.ndarray
    held: Bool[np.ndarray, "S R"]
    scaling: "Scaling"

    def logits(self, vectors_Nd: np.ndarray) -> Float64[np.ndarray, "P S N C"]:
        """Return the logits of some records under every shadow."""
        x_Nd = self.scaling(vectors_Nd)
        return np.einsum("nd,pdcs->psnc", x_Nd, self.weights.astype(np.float64), optimize=True)


@dataclass(frozen=True, eq=False)
class Scaling:
    """Features as heads like the target read them.

    Minus their mean, brought to a variance of 1 on average, and a constant beside them; or, for a head at a
    temperature, of length 1 times the root of their number, which makes their squares 1 on average, and no constant.
    How long exactly does not matter: shadows begin at zero, and their steps are measured by the curvature.
    """

    mean: Float64[np.ndarray, " d"]
    std: float
    unit: bool = False

    @classmethod
    def of(cls, vectors_Rd: np.ndarray, *, unit: bool = False) -> "Scaling":
        """Return the scaling that some records suggest."""
        vectors = vectors_Rd.astype(np.float64)
        return cls(vectors.mean(0), max(float(np.sqrt(vectors.var(0).mean())), 1e-12), unit)

    def __call__(self, vectors_Nd: np.ndarray) -> Float64[np.ndarray, "N k"]:
        """Return scaled features, shape [N, d + 1], or [N, d] without a constant."""
        if self.unit:
            return units(vectors_Nd) * np.sqrt(len(self.mean))
        scaled = (vectors_Nd.astype(np.float64) - self.mean) / self.std
        return np.column_stack([scaled, np.ones(len(scaled))])


def trained(
    owned: Records,
    *,
    num_classes: int,
    shadows: int,
    schedule: Schedule,
    seed: tuple[int, ...],
    points: int = 1,
    unit: bool = False,
) -> Trained:
    """Return heads trained by gradient descent on halves of the attacker's records; ``unit`` as in :class:`Scaling`."""
    refuse_unknown_classes(owned, num_classes)

    def compute() -> Trained:
        held, scaling = halves(len(owned), shadows, seed=(*seed, 0)), Scaling.of(owned.vectors, unit=unit)
        weights = _stacked.train(
            scaling(owned.vectors).astype(np.float32),
            owned.labels,
            held,
            num_classes=num_classes,
            schedule=schedule,
            seed=(*seed, 1),
            points=points,
        )
        return Trained(weights, held, scaling)

    settings = (num_classes, shadows, schedule, seed, points, unit)
    return _kept_heads.of(compute, owned.vectors, owned.labels, settings=settings)


def ridge_pairs(
    owned: Records,
    asked: tuple[np.ndarray, Int64[np.ndarray, " N"]] | None,
    *,
    num_classes: int,
    shadows: int,
    penalty: float,
    seed: tuple[int, ...],
    unit: bool = False,
) -> Pairs:
    """Return the paired outputs of ridge heads on halves of the attacker's records.

    Args:
        owned: the attacker's records.
        asked: vectors and classes that are asked about; by default the attacker's own.
        num_classes: of the heads.
        shadows: how many heads.
        penalty: lambda, per record of a half, of features whose variance is 1 on average.
        seed: of the halves.
        unit: as in :class:`Scaling`.
    """
    refuse_unknown_classes(owned, num_classes)

    def compute() -> Pairs:
        held, scaling = halves(len(owned), shadows, seed=(*seed, 0)), Scaling.of(owned.vectors, unit=unit)
        return _ridge.paired(
            scaling(owned.vectors),
            owned.labels,
            held,
            num_classes=num_classes,
            penalty=penalty * len(owned) / 2,
            asked=None if asked is None else (scaling(asked[0]), asked[1]),
        )

    settings = (num_classes, shadows, penalty, seed, unit)
    return _kept_pairs.of(compute, owned.vectors, owned.labels, *(asked or ()), settings=settings)


def refuse_unknown_classes(owned: Records, num_classes: int) -> None:
    """Raise if the attacker's records have a class that the model has not."""
    if len(owned) and int(owned.labels.max()) >= num_classes:
        raise NotApplicableError(
            f"the attacker owns records of class {int(owned.labels.max())}, and the model has {num_classes} classes"
        )


class ShadowAttack(ModelAttack):
    """Attacks that compare a client's model with heads trained on halves of the attacker's records."""

    shadows: int = Field(default=32, ge=1, description="heads that are trained; at least 2")
    epochs: int = Field(default=40, ge=1, description="passes of each over its records")
    seed: int = Field(default=0, ge=0, description="of the halves and of the order of records")

    def heads(self, seen: Seen, *, num_classes: int, points: int = 1) -> Trained:
        """Return the heads for one client's model, at their ends or at so many points of their training."""
        return trained(
            seen.owned,
            num_classes=num_classes,
            shadows=self.shadows,
            schedule=Schedule(epochs=max(self.epochs, points)),
            seed=(self.seed, seen.client),
            points=points,
            unit=seen.unit,
        )
