"""InfoNCE on labelled prototypes: how a record's similarity to those of its class compares with that to all.

Shapes: G clients, B records, K prototypes of a client, d embedding width. Prototypes with label -1 are filler: clients
that are trained together have as many rows. A record whose class has no prototype is compared with nothing: 0.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_NEAR_ZERO = 1e-4
_SHORTEST = 1e-12


def cosines(u_GBd: "Tensor", prototypes_GKd: "Tensor") -> "Tensor":
    """Return the cosine of each record with each prototype, shape [G, B, K]; with a zero vector it is 0."""
    return unit(u_GBd) @ unit(prototypes_GKd).transpose(1, 2)


def unit(vectors: "Tensor") -> "Tensor":
    """Return vectors scaled to length 1; one without a direction stays as it is, so that its gradient stays small."""
    length = vectors.norm(dim=-1, keepdim=True)
    return vectors / length.where(length > _SHORTEST, 1.0)


def sparse(cosines_GBK: "Tensor", *, alpha: float) -> "Tensor":
    """Return ``sign(cos) |cos|^alpha``, which lifts small similarities for alpha below 1.

    Its slope has no bound at 0, so from -1e-4 to 1e-4 it is the line through both ends.

    Source: FedPLVM (Wang et al., 2024), alpha-sparsity; the sign is of VPDR's code, the original's
    embeddings are nowhere negative
    """
    return cosines_GBK * cosines_GBK.abs().clamp(min=_NEAR_ZERO) ** (alpha - 1)


def of_class(labels_GK: "Tensor", y_GB: "Tensor") -> "Tensor":
    """Return which prototypes are of each record's class, shape [G, B, K]."""
    return (labels_GK.unsqueeze(1) == y_GB.unsqueeze(-1)) & (labels_GK >= 0).unsqueeze(1)


def log_of_sum(logits_GBK: "Tensor", labels_GK: "Tensor", y_GB: "Tensor") -> "Tensor":
    """Return ``-log(sum over its class of exp(logit) / sum over all)`` of each record, shape [G, B], at least 0."""
    mine_GBK = of_class(labels_GK, y_GB)
    own_GB = _log_sum(logits_GBK, mine_GBK)
    return (_log_all(logits_GBK, labels_GK) - own_GB).where(mine_GBK.any(-1), 0.0)


def mean_of_logs(logits_GBK: "Tensor", labels_GK: "Tensor", y_GB: "Tensor") -> "Tensor":
    """Return minus the mean over its class of ``log(exp(logit) / sum over all)``, shape [G, B], at least 0."""
    mine_GBK = of_class(labels_GK, y_GB)
    mean_GB = (logits_GBK * mine_GBK).sum(-1) / mine_GBK.sum(-1).clamp(min=1)
    return (_log_all(logits_GBK, labels_GK) - mean_GB).where(mine_GBK.any(-1), 0.0)


def _log_all(logits_GBK: "Tensor", labels_GK: "Tensor") -> "Tensor":
    return _log_sum(logits_GBK, (labels_GK >= 0).unsqueeze(1))


def _log_sum(logits_GBK: "Tensor", keep: "Tensor") -> "Tensor":
    import torch

    # the lowest finite number: with -inf, the gradient is no number where nothing is kept
    return logits_GBK.masked_fill(~keep, torch.finfo(logits_GBK.dtype).min).logsumexp(-1)


def largest_by_class(similar_GNK: "Tensor", labels_GK: "Tensor", *, num_classes: int) -> "Tensor":
    """Return the largest similarity to a prototype of each class, shape [G, N, C]; -inf for a class without one."""
    filler_G1K = (labels_GK < 0).unsqueeze(1)
    index_GNK = labels_GK.clamp(min=0).unsqueeze(1).expand_as(similar_GNK)
    lowest = similar_GNK.new_full((*similar_GNK.shape[:2], num_classes), float("-inf"))
    return lowest.scatter_reduce(-1, index_GNK, similar_GNK.masked_fill(filler_G1K, float("-inf")), "amax")
