r"""FPL (Huang et al., 2023): clients share class means, and contrast their records with clusters of them.

The server groups the means of each class by FINCH. With ``s`` the cosine of a record's embedding ``u`` with a
cluster's centre and ``q`` the mean of the centres of its class, the loss of a record of class ``y`` is

.. math:: CE + w_1 \Big({-\log} \frac{\sum_{k \in y} e^{s_k / \tau}}{\sum_k e^{s_k / \tau}}\Big)
    + w_2 \frac{\lVert u - q_y \rVert^2}{d}

Choices, where sources differ: tau .07 is the VPDR paper's, its code crashes for want of it, the original has .02;
weights of .5 each are that code's, the paper does not say, the original has 1 and 1. The original also averages the
clients' networks, which VPDR's frameworks do not: trained weights stay with the client here too. As there, classes that
nobody sent add nothing to the loss.

Source: Huang et al. (2023), "Rethinking federated learning with domain shift: a prototype view"
"""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.batch import Batch
from privkit.methods._base import cross_entropy
from privkit.methods._clusters import AbstractClusteredMethod
from privkit.methods._down import Down
from privkit.methods._infonce import cosines, log_of_sum
from privkit.methods._pull import distance_to_own
from privkit.network import Network

if TYPE_CHECKING:
    from torch import Tensor


class Fpl(AbstractClusteredMethod):
    """Federated prototype learning with cluster prototypes and an unbiased one."""

    citation: ClassVar[str] = "fpl, sarfraz2019"

    contrast: float = Field(
        default=0.5, ge=0, description="w_1, weight of the contrast with clusters; 1 in the original"
    )
    pull: float = Field(
        default=0.5,
        ge=0,
        description="w_2, weight of the squared distance to the unbiased prototype; 1 in the original",
    )

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        base = cross_entropy(network.logits(params, u_GBd), batch)
        logits_GBK = cosines(u_GBd, down["centres"]) / self.temperature
        contrast_GB = log_of_sum(logits_GBK, down["labels"], batch.y)
        pull_G = distance_to_own(u_GBd, batch, down)
        return base + self.contrast * (contrast_GB * batch.weight).sum(-1) + self.pull * pull_G
