"""What a defense does while clients train; this one does nothing."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from torch import Tensor

from privkit.finetune.batches import Batch
from privkit.finetune.gradients import client_gradients, clipped
from privkit.finetune.model import Tuned, Weights
from privkit.finetune.terms import Terms
from privkit.finetune.trace import plain_losses


class Guard:
    """No defense, and the base of all of them.

    Attributes:
        alone: whether each client's gradient is computed by itself.
        repeatable: whether whoever has the weights can pass a record as its client does.
    """

    alone: ClassVar[bool] = False
    repeatable: ClassVar[bool] = True

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    @property
    def step_clip(self) -> float | None:
        """Return the norm that the gradient of a whole step is shortened to; ``None`` where it stays as it is."""
        return self.terms.clip

    def record_losses(self, logits_NC: Tensor, labels_N: Tensor) -> Tensor:
        """Return what clients minimise for each record, shape [N]; anybody who knows the defense can compute it."""
        return plain_losses(logits_NC, labels_N)

    def losses(self, logits_NC: Tensor, labels_N: Tensor, clients_N: np.ndarray) -> Tensor:
        """Return the same with what only the clients know, shape [N]."""
        return self.record_losses(logits_NC, labels_N)

    def gradients(self, model: Tuned, batch: Batch) -> dict[int, Weights]:
        """Return the gradient that each client of a batch takes a step with."""
        found = client_gradients(model, batch, self.losses)
        return {client: clipped(g, self.step_clip) for client, g in found.items()}

    def sent(self, change: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return what of a gradient or of a change of the weights leaves the client."""
        return dict(change)

    def memory(self) -> dict[str, np.ndarray]:
        """Return what must be kept from round to round, by name."""
        return {}

    def restore(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take back what :meth:`memory` returned."""
