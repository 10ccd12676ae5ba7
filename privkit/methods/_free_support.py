r"""The free-support 2-Wasserstein barycenter of clouds of equally many, equally heavy points.

Optimal transport between two such clouds is a permutation (Birkhoff), so an assignment solver is exact. A step moves
each point of the barycenter to the mean of the points that it is assigned to, which no other place improves for those
assignments; so the objective never grows.

Source: Cuturi and Doucet (2014), "Fast computation of Wasserstein barycenters", Algorithm 2; Peyre and Cuturi (2019),
"Computational optimal transport", Proposition 2.1 (permutations)
"""

import numpy as np
from jaxtyping import Float64


def free_support_barycenter(
    clouds_NMd: Float64[np.ndarray, "N M d"],
    start_Md: Float64[np.ndarray, "M d"],
    *,
    most_steps: int = 100,
    tolerance: float = 1e-7,
) -> Float64[np.ndarray, "M d"]:
    """Return the points of a barycenter of N equally weighted clouds, as found from some start.

    Args:
        clouds_NMd: M points each.
        start_Md: where its points begin.
        most_steps: steps, at most.
        tolerance: l2 norm of a step, relative to that of the points, that ends the search.
    """
    points_Md = start_Md
    for _ in range(most_steps):
        moved_Md = np.mean([cloud_Md[assigned(points_Md, cloud_Md)] for cloud_Md in clouds_NMd], axis=0)
        step = float(np.linalg.norm(moved_Md - points_Md))
        points_Md = moved_Md
        if step <= tolerance * max(1.0, float(np.linalg.norm(points_Md))):
            break
    return points_Md


def assigned(points_Md: Float64[np.ndarray, "M d"], cloud_Md: Float64[np.ndarray, "M d"]) -> np.ndarray:
    """Return, for each point, the row of the cloud that optimal transport moves it to; shape [M], a permutation."""
    from scipy.optimize import linear_sum_assignment

    # |x|^2 + |y|^2 - 2 x.y: the squares are the same for every permutation
    return linear_sum_assignment(-(points_Md @ cloud_Md.T))[1]
