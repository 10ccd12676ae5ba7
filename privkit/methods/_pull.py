"""Prototypes as targets: how far embeddings are from the prototypes of their classes, and which one is nearest."""

from typing import TYPE_CHECKING

from privkit.batch import Batch
from privkit.methods._down import Down

if TYPE_CHECKING:
    from torch import Tensor


def distance_to_own(u_GBd: "Tensor", batch: Batch, down: Down) -> "Tensor":
    """Return each client's mean squared distance per coordinate to the prototypes of its records' classes, shape [G].

    A class that nobody holds counts as distance 0.

    Args:
        u_GBd: embeddings.
        batch: their classes and weights.
        down: ``prototypes`` [G, C, d], and which of them are ``present`` [G, C].
    """
    from privkit.methods._by_hand import MeanSquare

    present_GB = down["present"].gather(1, batch.y)
    return MeanSquare.apply(u_GBd, own_rows(down["prototypes"], batch.y), present_GB * batch.weight)


def distance_of_all_pairs(u_GBd: "Tensor", batch: Batch, down: Down) -> "Tensor":
    r"""Return each client's mean squared distance of every embedding to the prototype of *every* record, shape [G].

    The published VPDR code subtracts prototypes of shape [B, 1, d] from embeddings of shape [B, d], which makes
    [B, B, d] of them. With weights w that add up to 1, the mean over all pairs (i, j) is, exactly,

    ``sum_i w_i |f_i|^2 - 2 (sum_i w_i f_i) . (sum_j w_j p_j) + sum_j w_j |p_j|^2``,

    divided by d: so it pulls every embedding to the mean prototype of its batch, whatever its class.
    """
    weight_GB = batch.weight * down["present"].gather(1, batch.y)
    p_GCd = down["prototypes"]
    weight_GC = weight_GB.new_zeros(p_GCd.shape[:2]).scatter_add_(1, batch.y, weight_GB)
    squares_G = (weight_GB * (u_GBd * u_GBd).sum(-1)).sum(-1) + (weight_GC * (p_GCd * p_GCd).sum(-1)).sum(-1)
    u_Gd, p_Gd = (weight_GB.unsqueeze(-1) * u_GBd).sum(1), (weight_GC.unsqueeze(-1) * p_GCd).sum(1)
    return (weight_GB.sum(-1) * squares_G - 2 * (u_Gd * p_Gd).sum(-1)) / u_GBd.shape[-1]


def own_rows(prototypes_GCd: "Tensor", y_GB: "Tensor") -> "Tensor":
    """Return the prototype of each record's class, shape [G, B, d]; whole rows are copied, unlike by ``gather``."""
    import torch

    first_G1 = torch.arange(len(y_GB), device=y_GB.device).unsqueeze(1) * prototypes_GCd.shape[1]
    rows = prototypes_GCd.flatten(0, 1).index_select(0, (first_G1 + y_GB).flatten())
    return rows.unflatten(0, y_GB.shape)


def nearness(u_GNd: "Tensor", down: Down) -> "Tensor":
    """Return minus the distance to each prototype, shape [G, N, C]; minus infinity for a class that nobody holds."""
    import torch

    distance_GNC = torch.cdist(u_GNd, down["prototypes"])
    return (-distance_GNC).masked_fill(~down["present"].unsqueeze(1), float("-inf"))
