"""What FedUP's clients do with the global Gaussians: pull what is uncertain to them, and draw what is scarce."""

from typing import TYPE_CHECKING

from privkit.batch import Batch
from privkit.methods._down import Down
from privkit.methods._pull import own_rows

if TYPE_CHECKING:
    from torch import Tensor

MEMORY = 0.9
"""What the running mean keeps of itself in a step."""


def running(kept_G2: "Tensor", epistemic_GB: "Tensor", weight_GB: "Tensor") -> "Tensor":
    """Return a client's running mean of epistemic uncertainty after a batch, as (sum, weight), shape [G, 2].

    It forgets a tenth with every step; kept as a sum and the weight in it, it is a mean from the first step on.

    Args:
        kept_G2: before the batch; zeros before the first.
        epistemic_GB: of the batch's records.
        weight_GB: of the records, adding up to 1.
    """
    import torch

    mean_G = (epistemic_GB * weight_GB).sum(-1)
    return MEMORY * kept_G2 + (1 - MEMORY) * torch.stack([mean_G, torch.ones_like(mean_G)], dim=-1)


def gate(epistemic_GB: "Tensor", kept_G2: "Tensor", *, sensitivity: float) -> "Tensor":
    """Return how strongly each record is pulled, in (0, 1), without a gradient, shape [G, B] (FedUP, Eq. 13).

    ``sigmoid(beta (U - mean U))``. U is between 0 and .4228, so with beta = 5 it is between .108 and .892.

    Args:
        epistemic_GB: uncertainty of each record.
        kept_G2: running mean, the batch included, as :func:`running` keeps it.
        sensitivity: beta.
    """
    usual_G1 = (kept_G2[:, :1] / kept_G2[:, 1:]).to(epistemic_GB.dtype)
    return (sensitivity * (epistemic_GB - usual_G1)).sigmoid().detach()


def alignment(u_GBd: "Tensor", batch: Batch, down: Down) -> "Tensor":
    """Return each record's squared Mahalanobis distance to the Gaussian of its class over d, [G, B] (FedUP, Eq. 14).

    About 1 where the Gaussian is that of the records. A class that nobody holds counts as distance 0.

    Args:
        u_GBd: embeddings.
        batch: their classes.
        down: ``prototypes`` and ``spread`` [G, C, d], and which of them are ``present`` [G, C].
    """
    away_GBd = (u_GBd - own_rows(down["prototypes"], batch.y)) / own_rows(down["spread"], batch.y)
    return away_GBd.square().mean(-1) * down["present"].gather(1, batch.y)


def virtual(normals_GVCd: "Tensor", down: Down) -> "Tensor":
    """Return draws from every class's Gaussian, class after class in each row, shape [G, V * C, d] (FedUP, Eq. 15).

    Args:
        normals_GVCd: standard normal numbers.
        down: ``prototypes`` and ``spread``, [G, C, d].
    """
    drawn = down["prototypes"].unsqueeze(1) + down["spread"].unsqueeze(1) * normals_GVCd
    return drawn.flatten(1, 2)


def mean_over_classes(loss_GVC: "Tensor", used_GC: "Tensor") -> "Tensor":
    """Return each client's mean loss of draws from the classes in use, shape [G]; 0 where none is (FedUP, Eq. 16)."""
    used_G1C = used_GC.unsqueeze(1).to(loss_GVC.dtype)
    draws_G = used_GC.sum(-1).clamp(min=1) * loss_GVC.shape[1]
    return (loss_GVC * used_G1C).sum((1, 2)) / draws_G
