"""The server: merges what clients sent, and holds the weights of the next round."""

from collections.abc import Mapping

import numpy as np
import torch

from privkit.errors import InputError
from privkit.finetune.model import Weights, refuse_other_names
from privkit.finetune.optimizers import OPTIMIZERS
from privkit.finetune.terms import Terms, UploadKind
from privkit.release import Update

HEAD = "head."


class Server:
    """Global weights on the CPU, and the memory of the server's optimiser.

    Attributes:
        weights: of the round that comes next, by name.
    """

    def __init__(self, weights: Weights, terms: Terms) -> None:
        self.weights = {name: w.detach().cpu().clone() for name, w in weights.items()}
        self.terms = terms
        self.optimizer = OPTIMIZERS[terms.optimizer](self.weights)

    def merge(self, updates: Mapping[int, Update], shares: Mapping[int, float]) -> None:
        """Take the messages of a round.

        Args:
            updates: by client.
            shares: of each client in the mean.

        Raises:
            InputError: a message lacks a trained tensor, has one too many or of another shape, mixes types, or is of
                another kind than was agreed on.
        """
        for client, update in updates.items():
            self._refuse_other(client, update)
        total = sum(shares[client] for client in updates)
        mean = {
            name: torch.from_numpy(
                sum(u.named[name].astype(np.float64) * (shares[k] / total) for k, u in updates.items())
            ).to(w.dtype)
            for name, w in self.weights.items()
        }
        if self.terms.upload is UploadKind.GRADIENT:
            self.weights = self.optimizer.step(self.weights, mean, rates(self.terms, self.weights))
        elif self.terms.upload is UploadKind.DELTA:
            self.weights = {name: w + mean[name] for name, w in self.weights.items()}
        else:
            self.weights = mean

    def _refuse_other(self, client: int, update: Update) -> None:
        what = f"what client {client} sent"
        if update.means != self.terms.upload.value:
            raise InputError(
                f"{what} is {update.means}, and {self.terms.upload.value} was agreed on; send that."
            )
        refuse_other_names(self.weights, update.named, what=f"the tensors that client {client} sent")
        types = sorted({str(array.dtype) for array in update.named.values()})
        if len(types) > 1:
            raise InputError(f"{what} mixes {' and '.join(types)}; send all tensors in one type.")

    def state(self) -> dict[str, np.ndarray]:
        """Return weights and memory, by name."""
        named = {f"weights.{n}": w.numpy() for n, w in self.weights.items()}
        return named | {f"optimizer.{n}": m.numpy() for n, m in self.optimizer.memory.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what :meth:`state` returned."""
        self.weights = {n: torch.from_numpy(state[f"weights.{n}"].copy()) for n in self.weights}
        memory = self.optimizer.memory
        self.optimizer.memory = {n: torch.from_numpy(np.array(state[f"optimizer.{n}"])) for n in memory}


def rates(terms: Terms, weights: Weights) -> dict[str, float]:
    """Return the learning rate of each parameter."""
    return {n: terms.head_learning_rate if n.startswith(HEAD) else terms.learning_rate for n in weights}
