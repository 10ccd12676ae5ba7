"""What a federated method is: pure functions of dicts of tensors, and no loop.

The loop in :mod:`privkit.train` calls them in the order of the papers: embed and release, ``merge`` at
the server, ``down`` to each client, then local training on ``loss``. Server state and downlink may
differ, and the downlink may differ by client.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from privkit.batch import Batch
from privkit.personal import PersonalModel
from privkit.plug import Plugin, Settings
from privkit.release import ByClass

if TYPE_CHECKING:
    from torch import Tensor

State = dict[str, np.ndarray]


class LocalTraining(Settings):
    """How a client trains between two releases: AdamW on mini-batches of its own records."""

    epochs: int = Field(default=2, ge=1, description="passes over the client's records per round")
    batch_size: int = Field(default=64, ge=1, description="records per step")
    learning_rate: float = Field(default=1e-3, gt=0, description="AdamW step size")
    weight_decay: float = Field(default=5e-4, ge=0, description="AdamW decoupled weight decay")


class AbstractMethod(Plugin):
    """A federated method whose clients send prototypes, or nothing."""

    uploads: ClassVar[bool] = True

    training: LocalTraining = Field(
        default_factory=LocalTraining, description="local training between two releases"
    )

    @abstractmethod
    def start(self, *, dim: int, num_classes: int) -> State:
        """Return the server's state before the first round."""

    @abstractmethod
    def merge(self, server: State, uploads: Mapping[int, ByClass]) -> State:
        """Return the server's state after one round's messages, keyed by client."""

    @abstractmethod
    def down(self, server: State, client: int) -> State:
        """Return what the server sends to one client."""

    @abstractmethod
    def loss(
        self,
        model: PersonalModel,
        params: "dict[str, Tensor]",
        u_GBd: "Tensor",
        batch: Batch,
        down: "dict[str, Tensor]",
    ) -> "Tensor":
        """Return each client's loss on its batch, shape [G].

        Args:
            model: what is trained.
            params: its parameters, with the client axis first.
            u_GBd: embedding of each record of the batch, as the defense lets the loss see it.
            batch: the records.
            down: what each client got from the server.
        """

    @abstractmethod
    def logits(
        self,
        model: PersonalModel,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: "dict[str, Tensor]",
    ) -> "Tensor":
        """Return class scores of some features, shape [G, N, C]; the largest is the prediction."""


def cross_entropy(logits_GBC: "Tensor", batch: Batch) -> "Tensor":
    """Return each client's weighted mean cross-entropy, shape [G]."""
    chosen = logits_GBC.log_softmax(-1).gather(-1, batch.y.unsqueeze(-1)).squeeze(-1)
    return -(chosen * batch.weight).sum(-1)
