r"""Privacy loss distributions of DP-SGD, in bounded time and memory.

One step's loss is put on a grid: the mass of a cell goes to its two ends, in the shares that keep its mass under
both data sets, which dominates the step and errs by the square of the grid only. Steps are composed by one
Fourier transform over a window that Chernoff bounds give; what lies outside, and the rounding of the transform,
is counted as certain loss. So every number is an upper bound; :mod:`dp_accounting` agrees, and takes ten times longer.

Source: Doroshenko et al. (2022), Algorithm 1, https://arxiv.org/abs/2207.04380 (cells); Koskela, Jalko and Honkela
(2020), https://arxiv.org/abs/1906.03049 (transform)
"""

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from jaxtyping import Complex, Float
from scipy.fft import next_fast_len

from accountant import check
from accountant.contract import Relation
from accountant.subsampled_pair import Pair, cells, check_step, pairs

Masses = Float[np.ndarray, " N"]

SMALLEST_DELTA = 1e-12

_GRID = 1e-4  # nats; the largest spacing
_ERROR = 1e-2  # grid / standard deviation of one step's loss, for an error near 1e-5 of epsilon
_CELLS, _POINTS = 300_000, 800_000  # of one step, of the sum; about 200 MB and half a second
LARGEST_EPSILON = 700.0  # nats; a larger loss of one step counts as certain, before e^loss overflows
_HOPELESS = 0.4  # mass of certain loss at which nothing is promised
_OUTSIDE = 1e-15  # mass beyond each end of the window
_ROUNDING = 2e-16  # of the transform, per step


def smallest_delta(*, steps: int) -> float:
    """Return the smallest delta that this module can tell from the rounding of so many steps, to about 1 %."""
    return max(SMALLEST_DELTA, 100 * _ROUNDING * steps)


@dataclass(frozen=True, kw_only=True)
class LossDistribution:
    """An upper bound on the privacy loss of all steps, as masses on a grid of positive losses.

    Attributes:
        spacing: of the grid, in nats.
        losses: ascending, all above 0.
        above: mass at that loss or a larger one, certain loss included.
        discounted: the same sum with every mass times ``e^-loss``.
        certain: mass at infinite loss.
    """

    spacing: float
    losses: Masses
    above: Masses
    discounted: Masses
    certain: float

    def delta(self, epsilon: float, /) -> float:
        """Return delta at an epsilon >= 0."""
        at = int(np.searchsorted(self.losses, epsilon, side="right"))
        if at == len(self.losses):
            return min(self.certain, 1.0)
        return min(float(self.above[at] - math.exp(min(epsilon, LARGEST_EPSILON)) * self.discounted[at]), 1.0)

    def epsilon(self, delta: float, /) -> float:
        """Return the smallest epsilon >= 0 at which delta suffices; inf if none does."""
        if self.certain > delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0, len(self.losses)  # delta suffices at losses[high], not at losses[low - 1]
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self.delta(float(self.losses[middle])) <= delta else (middle + 1, high)
            )
        loss = float(self.losses[low])
        if self.discounted[low] == 0:
            return loss
        return min(loss, max(0.0, math.log((self.above[low] - delta) / self.discounted[low])))


def epsilon(
    *,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    relation: Relation = Relation.ADD_REMOVE,
) -> float:
    """Return the epsilon of DP-SGD by privacy loss distributions.

    Args:
        noise_multiplier: noise standard deviation / clip norm, > 0.
        sampling_rate: probability in (0, 1] with which a record joins a step.
        steps: number of steps, at least 1.
        delta: in [1e-12, 1).
        relation: which data sets are neighbours; a replaced record moves the sum by two clip norms.

    Returns:
        In nats, >= 0, an upper bound; inf where losses above 700 nats, or many steps at a small delta, are out of
        reach of the grid.

    Raises:
        ValueError: delta is too small.

    >>> round(epsilon(noise_multiplier=0.7, sampling_rate=0.01, steps=1000, delta=1e-5), 3)
    4.618
    """
    check.open_unit(delta=delta)
    if delta < SMALLEST_DELTA:
        raise ValueError(
            f"delta={delta} is below {SMALLEST_DELTA}, where privacy loss distributions drown in rounding; "
            "use the Renyi accountant."
        )
    composed = distributions(
        noise_multiplier=noise_multiplier, sampling_rate=sampling_rate, steps=steps, relation=relation
    )
    return max(each.epsilon(delta) for each in composed)


def distributions(
    *,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    relation: Relation = Relation.ADD_REMOVE,
    coarser: int = 1,
) -> list[LossDistribution]:
    """Return the privacy losses of all steps, one distribution per direction; the worst is the cost.

    Args:
        noise_multiplier: noise standard deviation / clip norm, > 0.
        sampling_rate: probability in (0, 1] with which a record joins a step.
        steps: number of steps, at least 1.
        relation: which data sets are neighbours.
        coarser: by how much the grid is coarser than it would be; still an upper bound.
    """
    check_step(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)
    check.count(steps=steps)
    spacing = coarser * _spacing(noise_multiplier, sampling_rate)
    kinds = pairs(
        noise_multiplier=float(noise_multiplier), sampling_rate=float(sampling_rate), relation=relation
    )
    return [_composed(pair, int(steps), spacing, _CELLS // coarser) for pair in kinds]


def _spacing(sigma: float, rate: float) -> float:
    """Return a grid much finer than one step's loss, whose variance is about ``q^2 (e^(1/sigma^2) - 1)``."""
    deviation = rate * math.sqrt(math.expm1(min(1 / sigma / sigma, LARGEST_EPSILON)))
    return min(_GRID, max(_ERROR * deviation, 1e-12))


def _composed(pair: Pair, steps: int, spacing: float, most: int) -> LossDistribution:
    lowest, highest = (min(max(end, -LARGEST_EPSILON), LARGEST_EPSILON) for end in pair.ends)
    spacing = max(spacing, (highest - lowest) / most)
    while True:
        first, masses, lost = _one_step(pair, lowest, highest, spacing)
        certain = -math.expm1(steps * math.log1p(-min(lost, 0.5))) + 2 * _OUTSIDE + _ROUNDING * steps
        if certain > _HOPELESS:
            return _positive(np.zeros(1), 0, spacing, 1.0)
        low, high = _window(masses, steps)
        if high - low <= _POINTS:
            break
        spacing *= 1.1 * (high - low) / _POINTS
    return _positive(_power(masses, steps, low, high), steps * first + low, spacing, certain)


def _one_step(pair: Pair, lowest: float, highest: float, spacing: float) -> tuple[int, Masses, float]:
    """Return the first index of the grid, the masses from there on, and the mass of certain loss."""
    first = math.floor(lowest / spacing)
    last = max(math.ceil(highest / spacing), first + 1)
    losses = np.arange(first, last + 1) * spacing
    edges = pair.outcome(losses)
    upper, lower = cells(pair.upper, edges), cells(pair.lower, edges)
    inside = upper[1:-1]
    # shares a, b of the left and right end: a + b = upper, a e^-left + b e^-right = lower
    right = (inside - lower[1:-1] * np.exp(losses[:-1])) / -math.expm1(-spacing)
    right = np.clip(right, 0.0, inside)
    masses = np.append(inside - right, 0.0)
    masses[1:] += right
    masses[0] += upper[0]
    return first, masses, float(upper[-1])


def _window(masses: Masses, steps: int) -> tuple[int, int]:
    """Return first and last index of the sum, beyond which there is less than a negligible mass."""
    longest = steps * (len(masses) - 1)
    high = min(longest, _chernoff(masses, steps))
    low = max(0, longest - _chernoff(masses[::-1], steps))
    return min(low, high), high


def _chernoff(masses: Masses, steps: int) -> int:
    """Return the smallest bound on the sum's index over tilts, on a grid of tilts that is refined."""
    index = np.arange(len(masses), dtype=np.float64)
    held = masses > 0
    index, logs = index[held], np.log(masses[held])

    def bound(log_tilt: float) -> float:
        tilted = logs + math.exp(log_tilt) * index
        top = float(tilted.max())
        moment = top + math.log(float(np.exp(tilted - top).sum()))
        return (steps * moment - math.log(_OUTSIDE)) / math.exp(log_tilt)

    centre, width = -math.log(len(masses)), 8.0
    best = math.inf
    while width > 0.05:
        found = {at: bound(at) for at in (centre - width, centre, centre + width)}
        centre = min(found, key=lambda at: found[at])
        best, width = min(best, found[centre]), width / 2
    return math.ceil(best)


def _power(masses: Masses, steps: int, low: int, high: int) -> Float[np.ndarray, " M"]:
    """Return the masses low..high of the sum of all steps."""
    length = cast(int, next_fast_len(max(high - low + 1, len(masses)), real=True))
    frequencies = np.fft.rfft(masses, length)
    summed = np.fft.irfft(_raised(frequencies, steps), length)
    return np.maximum(np.roll(summed, -(low % length))[: high - low + 1], 0.0)


def _raised(frequencies: Complex[np.ndarray, " F"], steps: int) -> Complex[np.ndarray, " F"]:
    size = np.abs(frequencies)
    kept = size > math.exp(-100 / steps)  # the others vanish
    raised = np.zeros_like(frequencies)
    raised[kept] = np.exp(steps * np.log(frequencies[kept]))
    return raised


def _positive(masses: Masses, first: int, spacing: float, certain: float) -> LossDistribution:
    kept = max(0, 1 - first)
    masses = masses[kept:]
    losses = (first + kept + np.arange(len(masses))) * spacing
    discount = np.where(losses < LARGEST_EPSILON, np.exp(-np.minimum(losses, LARGEST_EPSILON)), 0.0)
    return LossDistribution(
        spacing=spacing,
        losses=losses,
        above=certain + np.cumsum(masses[::-1])[::-1],
        discounted=np.cumsum((masses * discount)[::-1])[::-1],
        certain=certain,
    )
