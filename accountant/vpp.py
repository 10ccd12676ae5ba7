"""How much noise VPP needs when it shares one budget between selecting coordinates and releasing them.

VPP runs ``T`` rounds of a pure selection, ``split * epsilon / T`` each, and of Gaussian noise with group multipliers
that together cost as much as one isotropic release with ``sigma_ref`` (:mod:`accountant.groupwise`). The paper adds
the two budgets up; :mod:`accountant.joint` accounts them together, for less noise.

Source: VPDR, Section 4.2 (the split) and the two theorems of Section 4.4 (what each part costs)
"""

import math
from collections.abc import Callable
from enum import StrEnum
from functools import partial

from accountant import check, gaussian, joint, rdp

_SAFETY = 1e-12  # relative; far above the rounding error of what it is taken from


class SplitCalibration(StrEnum):
    """How the Gaussian part of VPP is calibrated."""

    JOINT = "joint"
    """Selection and noise together: the least noise known to keep (epsilon, delta)."""
    SPLIT = "split"
    """Noise for ``(1 - split) * epsilon``, exactly calibrated: what the paper's theorems ask for."""
    CODED = "coded"
    """Noise for ``(1 - split) * epsilon`` by the Renyi accountant of the authors' code."""


def sigma_ref(
    calibration: SplitCalibration, *, epsilon: float, delta: float, rounds: int, split: float
) -> float:
    """Return VPP's reference noise multiplier.

    Args:
        calibration: which of the three rules.
        epsilon: total of selection and release over all rounds, in nats, > 0.
        delta: total, in (0, 1).
        rounds: at least 1.
        split: share of epsilon that the selections spend, in (0, 1); VPDR's r.

    Returns:
        Noise standard deviation / l2 sensitivity of the isotropic release that costs as much as VPP's; no unit. All
        three keep (epsilon, delta).

    Raises:
        ValueError: a number is out of range, or ``CODED`` cannot reach an epsilon as small as this.

    >>> for calibration in SplitCalibration:
    ...     print(calibration, round(sigma_ref(calibration, epsilon=1.0, delta=1e-5, rounds=50, split=0.1), 4))
    joint 26.4163
    split 29.0382
    coded 38.4239
    """
    return _SIGMA_REF[calibration](epsilon=epsilon, delta=delta, rounds=rounds, split=split)


def sigma_joint(*, epsilon: float, delta: float, rounds: int, split: float) -> float:
    """Return the smallest reference multiplier known to keep the budget; arguments as in :func:`sigma_ref`."""
    check.open_unit(split=split)
    return joint.sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=rounds, selection_share=split)


def after_selection(calibrate: Callable[..., float]) -> Callable[..., float]:
    """Return a calibration of VPP out of one of Gaussian noise, which gets ``(1 - split) * epsilon``.

    Args:
        calibrate: a function of ``epsilon``, ``delta`` and ``rounds``.

    Source: VPDR, Section 4.2; Dwork and Roth (2014), Theorem 3.16, https://doi.org/10.1561/0400000042
    """

    def sigma(*, epsilon: float, delta: float, rounds: int, split: float) -> float:
        check.positive(epsilon=epsilon)
        check.open_unit(split=split)
        return calibrate(epsilon=(1 - split) * epsilon, delta=delta, rounds=rounds)

    return sigma


def sigma_zcdp(
    *,
    epsilon: float,
    delta: float,
    rounds: int,
    split: float,
    calibrate: Callable[..., float] = rdp.sigma_best,
) -> float:
    r"""Return the reference multiplier by joint Renyi accounting of selection and noise.

    A pure selection of ``eps_0 = split * epsilon / T`` has the Renyi curve ``alpha eps_0^2 / 2`` or less, Gaussian
    noise ``alpha / (2 sigma^2)``. Both are lines, so any conversion for Gaussian noise fits their sum:

    .. math:: \frac{T}{2 \sigma^2} = \frac{T}{2 \sigma_0^2} - \frac{T \epsilon_0^2}{2}

    where ``sigma_0`` is what the conversion asks for without a selection.

    Args:
        epsilon: total, in nats, > 0.
        delta: total, in (0, 1).
        rounds: at least 1.
        split: share of epsilon that the selections spend, in (0, 1).
        calibrate: a Renyi calibration of Gaussian noise alone.

    Raises:
        ValueError: this way of accounting charges the selection with the whole budget.

    Source: Bun and Steinke (2016), Proposition 1.4 and Lemma 1.7, https://arxiv.org/abs/1605.02065

    >>> round(sigma_zcdp(epsilon=1.0, delta=1e-5, rounds=50, split=0.1), 3)
    28.65
    """
    check.open_unit(split=split)
    alone = calibrate(epsilon=epsilon, delta=delta, rounds=rounds)
    left = (1 - _SAFETY) / alone**2 - (split * epsilon / rounds) ** 2
    if left <= 0:
        raise ValueError(
            f"split={split} of epsilon={epsilon} over {rounds} rounds is all that Renyi accounting allows; lower "
            "split or use the joint calibration."
        )
    return 1 / math.sqrt(left)


_SIGMA_REF: dict[SplitCalibration, Callable[..., float]] = {
    SplitCalibration.JOINT: sigma_joint,
    SplitCalibration.SPLIT: after_selection(gaussian.sigma_from_epsilon),
    SplitCalibration.CODED: after_selection(partial(rdp.sigma_classic, orders=rdp.VPDR_ORDERS)),
}
