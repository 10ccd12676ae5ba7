"""Privacy loss of composed randomised responses, the worst case of pure differential privacy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from accountant.sequential import total_epsilon

_ATOMS = 1_000_000  # about a second of work on their sum
_RAREST = -760.0  # ln of the rarest outcome kept; exp of it is no float above 0


class TooManyAtomsError(ValueError):
    """The pure mechanisms differ too much among each other for the exact sum."""


@dataclass(frozen=True, eq=False)
class Losses:
    """A discrete privacy loss.

    Attributes:
        loss: ``ln P/Q`` of each outcome, in nats.
        log_mass: ``ln P`` of each outcome.
        log_certain: ln of the mass that was left out; count it as an infinite loss. -inf for none.
    """

    loss: Float[np.ndarray, " N"]
    log_mass: Float[np.ndarray, " N"]
    log_certain: float


def losses(pure: Mapping[float, int], *, rarest: float = _RAREST) -> Losses:
    """Return the privacy loss of randomised responses run side by side.

    Args:
        pure: ``{eps_0: times}``; empty for nothing at all, which has the loss 0.
        rarest: ln of the mass below which an outcome counts as certain loss, below 0.

    Raises:
        TooManyAtomsError: the distinct ``eps_0`` make more than a million outcomes.
    """
    loss, log_mass, log_certain = np.zeros(1), np.zeros(1), -math.inf
    total_epsilon(pure)  # refuses what is no epsilon or no count
    for epsilon, times in pure.items():
        _refuse_many(min(times + 1.0, 2 * _width(int(times), rarest)), pure)
        part = _common(_binomial(epsilon, int(times), rarest), rarest)
        _refuse_many(float(loss.size) * part.loss.size, pure)
        both = Losses(
            loss=np.add.outer(loss, part.loss).ravel(),
            log_mass=np.add.outer(log_mass, part.log_mass).ravel(),
            log_certain=float(np.logaddexp(log_certain, part.log_certain)),
        )
        both = _common(both, rarest)
        loss, log_mass, log_certain = both.loss, both.log_mass, both.log_certain
    return Losses(loss=loss, log_mass=log_mass, log_certain=log_certain)


def _refuse_many(outcomes: float, pure: Mapping[float, int]) -> None:
    if outcomes > _ATOMS:
        raise TooManyAtomsError(
            f"{len(pure)} distinct pure epsilons, run {sum(pure.values()):,} times in all, make more than {_ATOMS:,} "
            "outcomes; round them up to fewer distinct values, or run them less often."
        )


def _common(found: Losses, rarest: float) -> Losses:
    """Return the outcomes that are not too rare; the others count as certain loss."""
    if found.log_mass.min() >= rarest:
        return found
    kept = found.log_mass >= rarest
    dropped = rarest + math.log(kept.size)
    return Losses(
        loss=found.loss[kept],
        log_mass=found.log_mass[kept],
        log_certain=float(np.logaddexp(found.log_certain, dropped)),
    )


def _width(times: int, rarest: float) -> float:
    """Return how far from the mean so many responses stray but for a mass of ``rarest`` (Hoeffding)."""
    return math.sqrt(times * (1 - rarest) / 2)


def _binomial(epsilon: float, times: int, rarest: float) -> Losses:
    truthful = 1 / (1 + math.exp(-epsilon))
    mode = min(int((times + 1) * truthful), times)
    width = math.ceil(_width(times, rarest))
    low, high = max(0, mode - width - 1), min(times, mode + width + 1)
    hits = np.arange(low, high + 1, dtype=np.float64)
    # Sums of log ratios outwards from the mode keep the digits that log-factorials would lose.
    ratios = np.log((times - hits[:-1]) / hits[1:]) + epsilon
    at_mode = mode - low
    log_mass = np.zeros(hits.size)
    log_mass[at_mode + 1 :] = np.cumsum(ratios[at_mode:])
    log_mass[:at_mode] = -np.cumsum(ratios[:at_mode][::-1])[::-1]
    log_mass -= math.log(np.exp(log_mass).sum())
    complete = low == 0 and high == times
    return Losses(
        loss=(2 * hits - times) * epsilon,
        log_mass=log_mass,
        log_certain=-math.inf if complete else rarest,
    )
