"""Privacy loss of composed randomised responses, the worst case of pure differential privacy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from accountant.sequential import total_epsilon

_ATOMS = 4_000_000  # about 100 MB of work space
_WINDOW = 19.6  # in sqrt(times): Hoeffding leaves a mass below 2 exp(-2 * 19.6^2) outside
_LOG_DROPPED = -760.0  # ln of that mass, and of the rarest outcome kept; exp of it is no float above 0


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


def losses(pure: Mapping[float, int]) -> Losses:
    """Return the privacy loss of randomised responses run side by side.

    Args:
        pure: ``{eps_0: times}``; empty for nothing at all, which has the loss 0.

    Raises:
        TooManyAtomsError: the distinct ``eps_0`` make more than four million outcomes.
    """
    loss, log_mass, log_certain = np.zeros(1), np.zeros(1), -math.inf
    total_epsilon(pure)  # refuses what is no epsilon or no count
    for epsilon, times in pure.items():
        if loss.size * min(times + 1.0, 2 * _WINDOW * math.sqrt(times)) > _ATOMS:
            raise TooManyAtomsError(
                f"the {len(pure)} distinct pure epsilons make more than {_ATOMS:,} outcomes; "
                "round them up to fewer distinct values."
            )
        part = _binomial(epsilon, int(times))
        loss = np.add.outer(loss, part.loss).ravel()
        log_mass = np.add.outer(log_mass, part.log_mass).ravel()
        log_certain = np.logaddexp(log_certain, part.log_certain)
        if log_mass.min() < _LOG_DROPPED:
            kept = log_mass >= _LOG_DROPPED
            log_certain = np.logaddexp(log_certain, _LOG_DROPPED + math.log(kept.size))
            loss, log_mass = loss[kept], log_mass[kept]
    return Losses(loss=loss, log_mass=log_mass, log_certain=float(log_certain))


def _binomial(epsilon: float, times: int) -> Losses:
    truthful = 1 / (1 + math.exp(-epsilon))
    mode = min(int((times + 1) * truthful), times)
    width = math.ceil(_WINDOW * math.sqrt(times))
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
        log_certain=-math.inf if complete else _LOG_DROPPED,
    )
