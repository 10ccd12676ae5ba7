r"""How alike two pictures are: plain functions of pixels in [0, 1].

Shapes: N pictures of c channels; every measure is taken over all channels together.
"""

import numpy as np
from jaxtyping import Float
from scipy import ndimage

_SIGMA, _RADIUS = 1.5, 5  # the Gaussian window of the source, 11 pixels wide
_K1, _K2 = 0.01, 0.03
_LEAST = 1e-10  # of a mean square: no PSNR above 100 dB


def mean_squares(
    picture: Float[np.ndarray, "c height width"], others: Float[np.ndarray, "N c height width"]
) -> Float[np.ndarray, " N"]:
    """Return the mean squared difference of a picture to each of some others, in [0, 1]."""
    return ((others - picture) ** 2).mean((1, 2, 3), dtype=np.float64)


def psnr(mean_square: float) -> float:
    """Return the peak signal-to-noise ratio in decibels, of pixels in [0, 1]; 100 at most.

    >>> psnr(0.01), psnr(0.0)
    (20.0, 100.0)
    """
    return float(-10 * np.log10(max(mean_square, _LEAST)))


def ssim(one: Float[np.ndarray, "c height width"], other: Float[np.ndarray, "c height width"]) -> float:
    """Return the mean structural similarity, in [-1, 1]; 1 for the same picture. Edges are mirrored.

    Source: Wang et al. (2004), "Image quality assessment: from error visibility to structural similarity", Eq. 13 with
    its constants and window, for pixels in [0, 1].
    """
    a, b = one.astype(np.float64), other.astype(np.float64)
    mean_a, mean_b = _blurred(a), _blurred(b)
    var_a, var_b = _blurred(a * a) - mean_a**2, _blurred(b * b) - mean_b**2
    shared = _blurred(a * b) - mean_a * mean_b
    c1, c2 = _K1**2, _K2**2
    light = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
    structure = (2 * shared + c2) / (var_a + var_b + c2)
    return float((light * structure).mean())


def _blurred(pixels: Float[np.ndarray, "c height width"]) -> Float[np.ndarray, "c height width"]:
    """Return every channel under the Gaussian window."""
    return ndimage.gaussian_filter(
        pixels, sigma=(0, _SIGMA, _SIGMA), radius=(0, _RADIUS, _RADIUS), mode="mirror"
    )


def nearest_rank(
    picture: Float[np.ndarray, "c height width"],
    members: Float[np.ndarray, "M c height width"],
    others: Float[np.ndarray, "N c height width"],
) -> int:
    """Return the rank of the nearest member among members and others, by squared error; 1 is nearest.

    A tie is the member's. Without memory of members its mean is :func:`rank_by_chance`.
    """
    best = mean_squares(picture, members).min()
    return 1 + int((mean_squares(picture, others) < best).sum())


def rank_by_chance(members: int, others: int) -> float:
    """Return the mean rank of the nearest member, where members are any ``members`` of all records.

    >>> rank_by_chance(1, 1)
    1.5
    """
    return (members + others + 1) / (members + 1)
