"""How small a singular value of a gradient still means something, by the numbers that it was sent in."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from privkit.release import Payload, Update

LOSSLESS = 16 * float(np.finfo(np.float32).eps)
"""Ten times what sums in float32 were measured to leave, as a share of the largest singular value (MiniLM: 2e-7)."""
_HALF_BITS = {"fp16": 10, "bf16": 7}
_SMALLEST_FP16 = 2.0**-24
_INT8_STEPS = 127
TRANSPORTS = ("fp32", *_HALF_BITS, "int8")


@dataclass(frozen=True)
class Floor:
    """Below which singular values are rounding or noise.

    Attributes:
        relative: of the largest singular value: what float32 arithmetic leaves.
        absolute: in the units of the gradient: what coarse numbers or known noise add.
        by_median: whether noise of unknown size was added, and singular values are judged by their median.
    """

    relative: float
    absolute: float = 0.0
    by_median: bool = False

    @property
    def lossless(self) -> bool:
        """Return whether nothing but float32 arithmetic stands between the gradient and its row space."""
        return not self.absolute and not self.by_median

    def rank(self, values_K: Float64[np.ndarray, " K"], *, shape: tuple[int, int]) -> int:
        """Return how many of all singular values of a matrix, largest first, are above the floor."""
        if not len(values_K) or not values_K[0] > 0:
            return 0
        least = max(self.relative * values_K[0], self.absolute)
        if self.by_median:
            least = max(least, median_factor(min(shape) / max(shape)) * float(np.median(values_K)))
        return int((values_K > least).sum())


def floor_of(
    gradient_md: Float64[np.ndarray, "m d"],
    *,
    transport: str,
    stored: np.dtype,
    std: float = 0.0,
    unknown_noise: bool = False,
) -> Floor:
    r"""Return below which singular values of a gradient are rounding or noise.

    ==================  =====================================================================
    numbers             floor
    ==================  =====================================================================
    fp32, fp64          :math:`16 \cdot 2^{-23} s_1`, about 2e-6: those were computed in float32
    fp16, bf16, int8    :math:`\lambda(\beta) \sqrt{\max(m, d)}\, \tau`, where tau is the standard deviation of rounding
    known noise         the same, with that of the noise added to tau squared
    unknown noise       :math:`\omega(\beta)` times the median singular value
    ==================  =====================================================================

    Rounding is larger where numbers are: :math:`\tau (\sqrt m + \sqrt d)`, the largest singular value of even noise,
    is then the longest row plus the longest column of standard deviations.

    The rule of numerical libraries, :math:`\max(m, d)\, 2^{-23} s_1`, is 20 to 400 times larger and loses tokens
    whose slopes are small: of 96 tokens of MiniLM it kept 82, this one all. The type in which numbers arrive counts
    if it is coarser than the declared one. ``max(m, d) eps`` of bf16 would be above 1 for every transformer, and
    leave one direction.

    Args:
        gradient_md: rows that are all zero left out.
        transport: of :data:`TRANSPORTS`.
        stored: type of the numbers that arrived.
        std: standard deviation of noise on each of them, in their units.
        unknown_noise: whether noise of unknown size was added.

    Raises:
        ValueError: the transport is unknown.

    Source: Gavish and Donoho (2014), "The optimal hard threshold for
    singular values is 4/sqrt(3)", Eqs. 2 to 4 (known noise, lambda) and Section II-D (unknown noise, omega); Bandeira
    and van Handel (2016), Theorem 1.1 (uneven noise).
    """
    if transport not in TRANSPORTS:
        raise ValueError(f"transport={transport!r} is unknown; known are {', '.join(TRANSPORTS)}.")
    if stored == np.float16 and transport == "fp32":
        transport = "fp16"
    m, d = gradient_md.shape
    if transport == "fp32" and not std:
        return Floor(relative=LOSSLESS, by_median=unknown_noise)
    beta = min(m, d) / max(m, d)
    margin = known_noise_factor(beta) / (1 + math.sqrt(beta))
    edge = margin * _largest_of_noise(_rounding(gradient_md, transport) + std**2)
    return Floor(relative=LOSSLESS, absolute=edge, by_median=unknown_noise)


def stored(payload: Payload, name: str) -> np.dtype:
    """Return the type of numbers that one map's gradient was stored in."""
    return (
        payload.tensors()[f"{payload.means}.{name}"].dtype if isinstance(payload, Update) else np.dtype("f4")
    )


def rounding_variance(gradient_md: Float64[np.ndarray, "m d"], *, transport: str, stored: np.dtype) -> float:
    """Return the mean variance of what rounding did to the numbers of a gradient, to a power of 4; 0 of a zero one.

    Powers, so that uploads that were rounded alike are seen through the same filter. Numbers that were computed in
    float32 count as rounded to 22 bits.
    """
    known = "fp16" if stored == np.float16 and transport == "fp32" else transport
    steps_md = _steps(gradient_md, 22) if known == "fp32" else _rounding(gradient_md, known) ** 0.5 * 12**0.5
    mean = float((steps_md**2).mean()) / 12
    return 4.0 ** round(math.log(mean, 4)) if mean > 0 else 0.0


def _largest_of_noise(variance_md: Float64[np.ndarray, "m d"]) -> float:
    """Return about the largest singular value of independent noise."""
    return float(np.sqrt(variance_md.sum(0).max()) + np.sqrt(variance_md.sum(1).max()))


def _rounding(gradient_md: Float64[np.ndarray, "m d"], transport: str) -> Float64[np.ndarray, "m d"]:
    """Return the variance of what rounding does to each number."""
    if transport == "fp32":
        return np.zeros_like(gradient_md)
    if transport == "int8":
        step = float(np.abs(gradient_md).max()) / _INT8_STEPS
        return np.full_like(gradient_md, step**2 / 12)
    steps_md = _steps(gradient_md, _HALF_BITS[transport])
    if transport == "fp16":
        steps_md = np.maximum(steps_md, _SMALLEST_FP16)
    return steps_md**2 / 12


def _steps(gradient_md: Float64[np.ndarray, "m d"], bits: int) -> Float64[np.ndarray, "m d"]:
    """Return how far apart numbers of so many bits are where each number is."""
    _, exponents = np.frexp(gradient_md)  # |g| in [2^(e-1), 2^e)
    return np.where(gradient_md == 0, 0.0, np.ldexp(1.0, exponents - 1 - bits))


def known_noise_factor(beta: float) -> float:
    r"""Return :math:`\lambda(\beta)`: singular values above it times ``sqrt(n) std`` are worth keeping.

    Args:
        beta: shorter side over longer side, in (0, 1].

    Source: Gavish and Donoho (2014), Eq. 11.

    >>> round(known_noise_factor(1.0), 6) == round(4 / math.sqrt(3), 6)
    True
    """
    return math.sqrt(2 * (beta + 1) + 8 * beta / ((beta + 1) + math.sqrt(beta**2 + 14 * beta + 1)))


def median_factor(beta: float) -> float:
    r"""Return :math:`\omega(\beta)`, to 2 %: singular values above it times their median are worth keeping.

    Source: Gavish and Donoho (2014), Eq. 5.

    >>> round(median_factor(1.0), 2)
    2.86
    """
    return 0.56 * beta**3 - 0.95 * beta**2 + 1.82 * beta + 1.43
