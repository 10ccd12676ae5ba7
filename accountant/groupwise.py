r"""VPP's noise allocation: two groups of coordinates, each with its own clip norm and noise level.

With ``d_A`` of ``d`` coordinates in group A, ``kappa_g = sqrt(d_g / d)`` and a reference multiplier
``sigma_ref``,

.. math:: R_g = R \kappa_g, \quad \Delta_g = \Delta \kappa_g, \quad w_A = \frac{\kappa_B}{\kappa_A + \kappa_B},
          \quad w_B = 1 - w_A, \quad \sigma_g = \frac{\sigma_{ref}}{\sqrt{w_g}},

so that ``1/sigma_A^2 + 1/sigma_B^2 = 1/sigma_ref^2``: whatever partition is drawn, the release costs as much as an
isotropic one with ``sigma_ref``. That holds for records clipped group by group.

The same noise costs the same for the larger set that it fits: the ellipsoid ``sum_g ||z_g||^2 / a_g^2 <= 1`` with
semi-axes ``a_g = R_g / sqrt(w_g)``. Measured in units of ``a_g``, records lie in the unit ball and the noise
``sigma_g 2 R_g = sigma_ref 2 a_g`` is isotropic, so a record replaced by its negative moves a mean by 2 / n there:
``mu = 1 / sigma_ref``. The product of the balls lies inside, since ``sum_g R_g^2 / a_g^2 = sum_g w_g = 1``, so the
nearest point of the ellipsoid is never farther from a record than that of the balls.

Source: VPDR, Eqs. 10-14 and 19; corrections to the accounting analysis (the ellipsoid)
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from accountant import check
from accountant.events import ClipSet, GroupGaussian
from accountant.rounded import rounded_up


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """How VPP shares out clipping and noise between the selected group A and the rest, B.

    Attributes:
        sizes: coordinates in A and in B, each at least 1.

    >>> Allocation(sizes=(52, 460)).multipliers(26.0)
    (30.054688614077442, 51.83234465693063)
    """

    sizes: tuple[int, int]

    def __post_init__(self) -> None:
        a, b = self.sizes
        check.count(size_of_group_A=a, size_of_group_B=b)

    @classmethod
    def of(cls, *, dim: int, rho: float) -> "Allocation":
        """Return the allocation with ``ceil(rho * dim)`` coordinates in group A; arguments as in :func:`size`.

        >>> Allocation.of(dim=512, rho=0.1).sizes
        (52, 460)
        """
        k = size(dim=dim, rho=rho)
        return cls(sizes=(k, dim - k))

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return sum(self.sizes)

    @property
    def kappas(self) -> tuple[float, float]:
        """Return each group's share of clip norm and sensitivity, in (0, 1) (VPDR, Eq. 10)."""
        a, b = self.sizes
        return math.sqrt(a / self.dim), math.sqrt(b / self.dim)

    @property
    def weights(self) -> tuple[float, float]:
        """Return each group's share of the Gaussian mu^2, in (0, 1); they add up to 1 (VPDR, Eq. 13)."""
        a, b = self.kappas
        return b / (a + b), a / (a + b)

    def clip_norms(self, clip_norm: float) -> tuple[float, float]:
        """Return the largest l2 norm of a record in each group, for ``clip_norm`` > 0 in all (VPDR, Eq. 10)."""
        check.positive(clip_norm=clip_norm)
        a, b = self.kappas
        return clip_norm * a, clip_norm * b

    def multipliers(self, sigma_ref: float) -> tuple[float, float]:
        """Return each group's noise standard deviation / l2 sensitivity of that group (VPDR, Eq. 12).

        Args:
            sigma_ref: noise multiplier of the isotropic release that costs the same; no unit, > 0.
        """
        check.positive(sigma_ref=sigma_ref)
        a, b = self.weights
        return sigma_ref / math.sqrt(a), sigma_ref / math.sqrt(b)

    def semi_axes(self, clip_norm: float) -> tuple[float, float]:
        """Return the largest l2 norm of a record in each group when it is nothing in the other: ``R_g / sqrt(w_g)``.

        Args:
            clip_norm: R of the balls that the ellipsoid holds, > 0.

        >>> [round(a, 4) for a in Allocation(sizes=(1, 9)).semi_axes(1.0)]
        [0.3651, 1.8974]
        """
        a, b = self.clip_norms(clip_norm)
        w_a, w_b = self.weights
        return a / math.sqrt(w_a), b / math.sqrt(w_b)

    def release(self, *, sigma_ref: float, clip_norm: float, clip: ClipSet) -> GroupGaussian:
        """Return the event of one release, contract undeclared; its noise is the same whatever the clip set.

        Args:
            sigma_ref: noise multiplier of the isotropic release that costs the same; no unit, > 0.
            clip_norm: R, > 0.
            clip: the balls of both groups, or the ellipsoid around them.

        Raises:
            ValueError: one ball was asked for, for which this noise is too small.
        """
        check.positive(sigma_ref=sigma_ref)
        match clip:
            case ClipSet.GROUPWISE:
                sigmas, norms = self.multipliers(sigma_ref), self.clip_norms(clip_norm)
            case ClipSet.ELLIPSOID:
                sigmas, norms = (sigma_ref, sigma_ref), self.semi_axes(clip_norm)
            case ClipSet.GLOBAL:
                raise ValueError(
                    f"clip={clip.value!r}: a record could put its whole length into the group with the smaller noise; "
                    "clip to one ball per group, or to one ellipsoid."
                )
        return GroupGaussian(noise_multipliers=sigmas, sizes=self.sizes, clip_norms=norms, clip=clip)

    @property
    def noise_ratios(self) -> tuple[float, float]:
        """Return each group's noise standard deviation per coordinate / that of the isotropic release.

        The isotropic release has the noise multiplier ``sigma_ref`` and the clip norm ``R``, and costs the same.
        A's ratio is at most 1 up to half of the coordinates (VPDR, Eq. 14 and the text below it).
        """
        (kappa_a, kappa_b), (w_a, w_b) = self.kappas, self.weights
        return kappa_a / math.sqrt(w_a), kappa_b / math.sqrt(w_b)

    @property
    def energy_ratio(self) -> float:
        """Return the expected squared noise norm / that of the isotropic release; 1 for halves, else above.

        Per coordinate, ``(kappa_A + kappa_B)(kappa_A^5 + kappa_B^5) / (kappa_A kappa_B)``: noise that is taken from
        A comes back on B, and more of it.
        """
        a, b = self.kappas
        return (a + b) * (a**5 + b**5) / (a * b)


def size(*, dim: int, rho: float) -> int:
    """Return how many coordinates VPP selects, ``ceil(rho * dim)``, for ``rho`` as it is written in decimals.

    Args:
        dim: coordinates of a prototype, at least 2.
        rho: share of them that is selected, in (0, 0.5].

    Raises:
        ValueError: ``rho`` or ``dim`` is out of range, or ``rho * dim`` is below one coordinate.

    Source: VPDR, text above Eq. 9

    >>> size(dim=515, rho=0.2)  # 0.2 * 515 is 103.0 only if no digit is lost
    103
    """
    check.count(dim=dim)
    if dim < 2:
        raise ValueError(f"dim={dim} leaves no coordinate for one of the two groups; use at least 2.")
    check.finite(rho=rho)
    if not 0 < rho <= 0.5:
        raise ValueError(
            f"rho={rho} must lie in (0, 0.5]: above one half, VPP would put more noise on the selected "
            "coordinates than on the others."
        )
    wanted = Fraction(repr(float(rho))) * int(dim)
    if wanted < 1:
        raise ValueError(
            f"rho={rho} of dim={dim} is less than one coordinate; raise rho to at least {rounded_up(1 / dim, 3)}."
        )
    return math.ceil(wanted)
