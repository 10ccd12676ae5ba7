"""E8: VPP's two noise levels need two clip norms; with one for all coordinates the quieter group is not covered."""

from dataclasses import dataclass

import numpy as np

from accountant.counterexamples._base import Records
from accountant.counterexamples._gaussian import GaussianCounterexample, Release, clipped
from accountant.groupwise import Allocation


def global_clip_factor(*, dim: int, k: int) -> float:
    r"""Return true mu / claimed mu of VPP's noise when records are clipped to R as a whole.

    A record may then move a mean by all of ``2R / n`` inside one group whose noise was made for
    ``kappa_g 2R / n``: the factor is the larger of :math:`\sqrt{w_g} / \kappa_g`.

    Args:
        dim: coordinates of a prototype, at least 2.
        k: coordinates in group A, from 1 to ``dim - 1``.

    Source: VPDR, Eqs. 10-13, with the clip of Eq. 3

    >>> round(global_clip_factor(dim=10, k=1), 4), round(global_clip_factor(dim=512, k=52), 4)
    (2.7386, 2.7145)
    """
    allocation = Allocation(sizes=(k, dim - k))
    return max(1 / ratio for ratio in allocation.noise_ratios)


@dataclass(frozen=True, kw_only=True)
class GlobalClip(GaussianCounterexample):
    """One record moves from +R to -R inside the informative group.

    Attributes:
        dim: coordinates of a prototype, at least 2.
        k: coordinates in the informative group A, at most half of them.
        n: records of the class, at least 1.
    """

    title = "VPP's noise with one clip norm for all coordinates"
    short = "VPP with one clip norm"
    claim = "1/sigma_A^2 + 1/sigma_B^2 = 1/sigma_ref^2, so the groups together cost what sigma_ref does"
    truth = (
        "that holds for records clipped group by group; a record clipped to R may spend all of it in group A"
    )
    breaks = ("A4",)
    way_out = "clip group by group, or to one ellipsoid (defense vpp with clip: group or ellipsoid)"

    dim: int = 10
    k: int = 1
    n: int = 10

    @property
    def factor(self) -> float:
        return global_clip_factor(dim=self.dim, k=self.k)

    def data(self) -> tuple[Records, Records]:
        records_nd = np.zeros((self.n, self.dim))
        records_nd[:, 0] = -1.0
        moved_nd = records_nd.copy()
        moved_nd[0, 0] = 1.0
        return {"a": moved_nd}, {"a": records_nd}

    def releases(self) -> tuple[Release, Release]:
        allocation = Allocation(sizes=(self.k, self.dim - self.k))
        levels = zip(allocation.multipliers(self.sigma), allocation.clip_norms(2 / self.n), strict=True)
        std_d = np.repeat([sigma * sensitivity for sigma, sensitivity in levels], allocation.sizes)
        p, q = (Release(mean=clipped(records["a"], 1.0).mean(0), std=std_d) for records in self.data())
        return p, q
