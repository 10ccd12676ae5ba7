"""Gaussian noise on a vector: one level, or one per group of coordinates."""

import math
from dataclasses import dataclass
from enum import StrEnum

from accountant import check
from accountant.events._base import Leaf, keep_positive


@dataclass(frozen=True, kw_only=True)
class Gaussian(Leaf):
    """Isotropic Gaussian noise on a vector-valued query.

    Attributes:
        noise_multiplier: noise standard deviation / l2 sensitivity under the contract's relation; > 0.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        keep_positive(self, "noise_multiplier")


class ClipSet(StrEnum):
    """The set that a record is clipped into, when coordinates are in groups."""

    GROUPWISE = "one ball per group"
    """``||z_g|| <= r_g`` for every group: a record can fill all groups at once (VPDR, Eq. 10)."""
    ELLIPSOID = "one ellipsoid"
    """``sum_g ||z_g||^2 / a_g^2 <= 1``: what a record puts into one group is missing in the others."""
    GLOBAL = "one ball"
    """``||z|| <= R``: the ellipsoid whose semi-axes are all R."""


def clip_set(name: str) -> ClipSet:
    """Return the clip set of a name, or refuse it."""
    try:
        return ClipSet(name)
    except ValueError:
        known = ", ".join(repr(kind.value) for kind in ClipSet)
        raise ValueError(f"clip={name!r} is unknown; known are {known}.") from None


@dataclass(frozen=True, kw_only=True)
class GroupGaussian(Leaf):
    """Gaussian noise with one level per group of coordinates.

    How far one record can move the groups together depends on the set that it is clipped into. Groupwise,
    it moves every group by its full sensitivity at once: ``mu^2 = sum_g 1/sigma_g^2`` (VPDR, Eq. 19). In an
    ellipsoid, ``mu^2 = max_g 1/sigma_g^2``, since a convex combination of the ``1/sigma_g^2`` is largest at one
    of them. Both are attained.

    Attributes:
        noise_multipliers: per group, noise standard deviation / l2 sensitivity of that group alone; no unit, > 0.
        sizes: per group, its number of coordinates, at least 1; empty when not declared.
        clip_norms: per group, largest l2 norm of one record on it (radius, or semi-axis), > 0; empty when not
            declared. One ball has one radius, so all of them are equal then.
        clip: the set that records are clipped into.
    """

    noise_multipliers: tuple[float, ...]
    sizes: tuple[int, ...] = ()
    clip_norms: tuple[float, ...] = ()
    clip: ClipSet = ClipSet.GROUPWISE

    def __post_init__(self) -> None:
        for name, kind in (("noise_multipliers", float), ("sizes", int), ("clip_norms", float)):
            values = tuple(getattr(self, name))
            for value in values:
                (check.count if kind is int else check.positive)(**{name: value})
            object.__setattr__(self, name, tuple(kind(value) for value in values))
        groups = len(self.noise_multipliers)
        if not groups:
            raise ValueError("noise_multipliers is empty; give one number per group.")
        for name, values in (("sizes", self.sizes), ("clip_norms", self.clip_norms)):
            if values and len(values) != groups:
                raise ValueError(f"{name}={values} for {groups} groups; give one number per group.")
        object.__setattr__(self, "clip", clip_set(self.clip))
        self._refuse_mismatch()

    def _refuse_mismatch(self) -> None:
        """Raise if the noise was scaled to balls that nothing was clipped to."""
        norms = self.clip_norms
        if self.clip is ClipSet.GLOBAL and norms and max(norms) > min(norms) * (1 + 1e-12):
            raise ValueError(
                f"clip_norms={norms} with one ball for all coordinates: noise scaled to balls per group needs "
                "records clipped group by group; clip so, or state each multiplier against the one radius."
            )
        longest = math.hypot(*norms) if self.clip is ClipSet.GROUPWISE else max(norms, default=0.0)
        declared = self.contract.clip_norm
        if declared is not None and longest > declared * (1 + 1e-9):
            raise ValueError(
                f"clip_norms={norms} let a record be {longest:.6g} long, and its contract declares "
                f"clip_norm={declared:g}; declare the longest that the set holds."
            )
