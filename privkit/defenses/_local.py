"""The role of a defense in local training: a layer after the encoder, and a term of the loss.

Tensors are stacked: they have a leading client axis of size G. A rule may keep a memory between steps;
it is saved and restored with the parameters.
"""

from typing import TYPE_CHECKING

from privkit.plug import Settings

if TYPE_CHECKING:
    from torch import Tensor

    from privkit.batch import Batch
    from privkit.network import Network


class LocalRule(Settings):
    """Changes nothing; a rule overrides what it changes."""

    def memory(self, params: "dict[str, Tensor]") -> "dict[str, Tensor]":
        """Return what is kept between steps, before the first; each tensor has the client axis first."""
        return {}

    def bound(self, z_GBd: "Tensor") -> "Tensor":
        """Return the embeddings that the method's loss sees, shape [G, B, d]."""
        return z_GBd

    def loss(
        self,
        network: "Network",
        params: "dict[str, Tensor]",
        memory: "dict[str, Tensor]",
        z_GBd: "Tensor",
        u_GBd: "Tensor",
        batch: "Batch",
    ) -> "Tensor":
        """Return what is added to each client's loss, shape [G].

        Args:
            network: what is trained, in this step.
            params: its parameters.
            memory: what the rule keeps.
            z_GBd: embedding of each record of the batch.
            u_GBd: what :meth:`bound` made of it, which the method's loss sees.
            batch: the records.
        """
        return z_GBd.new_zeros(len(z_GBd))

    def after_step(self, params: "dict[str, Tensor]", memory: "dict[str, Tensor]", *, active: int) -> None:
        """Update the memory of the first ``active`` clients, in place."""


class AsPublished(LocalRule):
    """Local training as the method's paper has it."""
