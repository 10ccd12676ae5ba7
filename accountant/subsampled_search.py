"""The smallest noise that a budget allows, when the cost is slow to evaluate and a coarse one is not."""

import math
from collections.abc import Callable
from functools import cache

from accountant.bracket import safe_root

Excess = Callable[[float], float]

_COARSE, _FINE = 1e-3, 1e-5  # relative error of the noise multiplier
_GROWTH = 1.5


def smallest_noise(fine: Excess, *, coarse: Excess, guess: float, enough: float) -> float:
    """Return a noise multiplier at which the fine excess is at most 0, at most 1e-5 above the smallest.

    The coarse excess brings the search near in many cheap steps. Where it misleads, the fine one walks on.

    Args:
        fine: cost minus budget; falls as the noise grows; may be infinite.
        coarse: about the same, in a fraction of the time.
        guess: where to start.
        enough: a noise multiplier that is known to do.
    """
    fine, coarse = cache(fine), cache(coarse)
    start = _coarse_root(coarse, min(guess, enough), enough)
    nearby = start * 1.01
    slope = (coarse(nearby) - coarse(start)) / math.log(1.01)
    safe, unsafe = _bracket(fine, start, slope, enough)
    return safe_root(fine, safe=safe, unsafe=unsafe, tolerance=_FINE) if unsafe < safe else safe


def _coarse_root(coarse: Excess, guess: float, enough: float) -> float:
    safe = unsafe = guess
    while coarse(safe) > 0:
        unsafe, safe = safe, safe * _GROWTH
        if safe >= enough:
            return enough
    while coarse(unsafe) <= 0:
        safe, unsafe = unsafe, unsafe / _GROWTH
    return safe_root(coarse, safe=safe, unsafe=unsafe, tolerance=_COARSE)


def _bracket(fine: Excess, start: float, slope: float, enough: float) -> tuple[float, float]:
    """Return a noise multiplier that does and one just below it that does not, near where the slope leads."""
    allowed = fine(start) <= 0
    least, here = 2 * _FINE, start
    while True:
        lead = abs(fine(here) / slope) if slope < 0 and math.isfinite(fine(here)) else 0.0
        move = min(max(lead * 1.02, least), math.log(_GROWTH))
        there = here * math.exp(-move if allowed else move)
        if there >= enough:
            return enough, here
        if (fine(there) <= 0) != allowed:
            return (here, there) if allowed else (there, here)
        here, least = there, 4 * least
