"""What L2 regularisation does to gradients."""

from privkit.finetune.batches import Batch
from privkit.finetune.gradients import client_gradients, clipped
from privkit.finetune.guard import Guard
from privkit.finetune.model import Tuned, Weights
from privkit.finetune.server import HEAD
from privkit.finetune.terms import Terms


class L2Guard(Guard):
    """Add a multiple of the weights to each client's gradient."""

    def __init__(self, terms: Terms, *, strength: float) -> None:
        super().__init__(terms)
        self.strength = strength

    def gradients(self, model: Tuned, batch: Batch) -> dict[int, Weights]:
        pull = {
            name: self.strength * p.detach()
            for name, p in model.trained().items()
            if not name.startswith(HEAD)
        }
        found = client_gradients(model, batch, self.losses)
        return {
            client: clipped({n: g + pull[n] if n in pull else g for n, g in named.items()}, self.step_clip)
            for client, named in found.items()
        }
