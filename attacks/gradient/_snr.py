r"""How well the best linear test for one record in a noisy sum can do: signal to noise, AUC, and the noise for an AUC.

One record's gradient has second moment S with eigenvalues :math:`s_j`; others in the batch and the noise have
covariance :math:`b S + \tau^2 I`, b = B for a record that is not in it and B - 1 for one that is, :math:`\tau =
\sigma C`. Along the matched filter's direction the two means are one signal apart, so that with the mean of both
variances

.. math::
    \text{SNR}^2 = \sum_j \frac{s_j}{(B - 1/2) s_j + \tau^2}
    = \frac{d_{\text{eff}}}{B - 1/2 + \sigma^2 d_{\text{eff}}}, \qquad
    \text{AUC} = \Phi(\text{SNR} / \sqrt 2)

the right side for gradients clipped to C in :math:`d_{\text{eff}}` equally likely directions. Without noise it is
:math:`d_{\text{eff}} / B` up to half a record; with one record it ends at the ceiling of the Gaussian mechanism, SNR
= 1 / sigma.

Source: the law of the project's study of FISGuard (SNR^2 about d_eff / B); Van Trees (1968), Section 2.6 (Gaussian
signals). Ceilings: Dong, Roth and Su (2022), Section 2.
"""

import math

import numpy as np
from jaxtyping import Float

from accountant import check
from accountant.normal import quantile


def snr_squared(*, effective_dimension: float, batch_size: int, sigma: float = 0.0) -> float:
    """Return the squared signal to noise of one record in an upload.

    Args:
        effective_dimension: directions that gradients of records differ in, > 0.
        batch_size: records behind an upload, at least 1.
        sigma: noise standard deviation / clip norm, at least 0; every gradient is as long as the clip norm.

    Returns:
        At least 0; without noise at most twice the effective dimension.

    >>> round(snr_squared(effective_dimension=390.0, batch_size=64), 2)
    6.14
    """
    check.positive(effective_dimension=effective_dimension)
    check.count(batch_size=batch_size)
    check.non_negative(sigma=sigma)
    return effective_dimension / (batch_size - 0.5 + sigma**2 * effective_dimension)


def snr_squared_of(spectrum_K: Float[np.ndarray, " K"], *, batch_size: int, noise_std: float = 0.0) -> float:
    """Return the squared signal to noise of one record, from the eigenvalues of a gradient's second moment.

    Args:
        spectrum_K: at least 0, in the units of a squared gradient (clipped as they are).
        batch_size: records behind an upload, at least 1.
        noise_std: standard deviation of the noise on each number of the sum, at least 0.
    """
    check.count(batch_size=batch_size)
    check.non_negative(noise_std=noise_std)
    if not (np.isfinite(spectrum_K).all() and (spectrum_K >= 0).all()):
        raise ValueError(
            "a spectrum holds finite numbers of at least 0; give eigenvalues of a second moment."
        )
    live_K = spectrum_K[spectrum_K > 0]
    return float((live_K / ((batch_size - 0.5) * live_K + noise_std**2)).sum())


def auc_of(snr_squared: float) -> float:
    r"""Return the AUC of two normal scores one SNR apart, :math:`\Phi(\text{SNR} / \sqrt 2)`, in [0.5, 1].

    >>> [round(auc_of(390 / (b - 0.5)), 3) for b in (16, 64, 128, 256, 400)]
    [1.0, 0.96, 0.892, 0.809, 0.758]
    """
    check.non_negative(snr_squared=snr_squared)
    return _phi(math.sqrt(snr_squared / 2))


def predicted_auc(*, effective_dimension: float, batch_size: int, sigma: float = 0.0) -> float:
    """Return the AUC that the matched filter should reach; arguments as in :func:`snr_squared`."""
    return auc_of(snr_squared(effective_dimension=effective_dimension, batch_size=batch_size, sigma=sigma))


def effective_dimension(*, auc: float, batch_size: int, sigma: float = 0.0) -> float:
    """Return the effective dimension that explains an AUC; the inverse of :func:`predicted_auc`.

    Args:
        auc: measured, or predicted from public records; above 0.5 and below 1.
        batch_size: records behind an upload, at least 1.
        sigma: as in :func:`snr_squared`.

    Raises:
        ValueError: the AUC is above what any gradients allow under that noise.
    """
    squared = _snr_squared_for(auc)
    check.count(batch_size=batch_size)
    check.non_negative(sigma=sigma)
    left = 1.0 - sigma**2 * squared
    if left <= 0:
        raise ValueError(
            f"auc={auc} is above the ceiling {auc_ceiling(sigma=sigma):.4f} at sigma={sigma}; no dimension explains it."
        )
    return squared * (batch_size - 0.5) / left


def sigma_for_auc(*, auc: float, effective_dimension: float | None = None, batch_size: int = 1) -> float:
    """Return the smallest noise multiplier at which the matched filter stays at an AUC or below.

    Args:
        auc: target, above 0.5 and below 1.
        effective_dimension: of the gradients; ``None`` promises it for any gradients, other records hiding nothing.
        batch_size: records behind an upload, which hide each other where the dimension is known.

    Returns:
        Noise standard deviation / clip norm, at least 0; 0 where the batch alone hides a record well enough.

    >>> round(sigma_for_auc(auc=0.76), 3)
    1.001
    """
    squared = _snr_squared_for(auc)
    check.count(batch_size=batch_size)
    hidden = 0.0
    if effective_dimension is not None:
        check.positive(effective_dimension=effective_dimension)
        hidden = (batch_size - 0.5) / effective_dimension
    return math.sqrt(max(1.0 / squared - hidden, 0.0))


def auc_ceiling(*, sigma: float, rounds: int = 1, chosen_pair: bool = False) -> float:
    r"""Return the largest AUC of any attack on records of uploads with Gaussian noise, before any subsampling.

    A record moves the sum of clipped gradients by at most C, so adding or removing it is :math:`\mu = \sqrt{R} /
    \sigma` over R rounds, and members drawn like non-members reach at most :math:`\Phi(\mu / \sqrt 2)`. A pair chosen
    by the attacker, of which one is in the same upload, are replaced by each other: 2C apart, :math:`\Phi(2 \mu /
    2)`.

    Args:
        sigma: noise standard deviation / clip norm, > 0.
        rounds: in which the same record is, at least 1.
        chosen_pair: whether members and non-members were chosen to be told apart.

    >>> [round(auc_ceiling(sigma=s), 3) for s in (0.1, 0.25, 0.5, 1.0, 2.0)]
    [1.0, 0.998, 0.921, 0.76, 0.638]
    >>> round(auc_ceiling(sigma=1.0, chosen_pair=True), 3)
    0.841
    """
    check.positive(sigma=sigma)
    check.count(rounds=rounds)
    mu = math.sqrt(rounds) / sigma
    return _phi(mu if chosen_pair else mu / math.sqrt(2))


def tpr_ceiling(fpr: float, *, sigma: float, rounds: int = 1) -> float:
    r"""Return the largest TPR at an FPR, :math:`\Phi(\Phi^{-1}(\text{FPR}) + 2 \sqrt{R} / \sigma)`.

    It holds for any records, one replaced by another; arguments as in :func:`auc_ceiling`.

    >>> round(tpr_ceiling(0.01, sigma=2.0), 3)
    0.092
    """
    check.open_unit(fpr=fpr)
    check.positive(sigma=sigma)
    check.count(rounds=rounds)
    return _phi(quantile(fpr) + 2 * math.sqrt(rounds) / sigma)


def _snr_squared_for(auc: float) -> float:
    if not 0.5 < auc < 1:
        raise ValueError(f"auc={auc} must lie above 0.5 and below 1.")
    return 2 * quantile(auc) ** 2


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))
