"""The adversaries of adversarial regularisation, one per client."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, one_hot, softmax

from privkit.finetune.batches import Batch
from privkit.finetune.guard import Guard
from privkit.finetune.model import Tuned, Weights, logits
from privkit.finetune.public import Public
from privkit.finetune.terms import Terms
from privkit.finetune.texts import Texts
from privkit.noise import Purpose, keyed

if TYPE_CHECKING:
    from privkit.finetune.defenses.min_max import MinMax


class MinMaxGuard(Guard):
    """Each client's loss holds what its adversary gains from its records."""

    def __init__(
        self, settings: "MinMax", terms: Terms, others: Public, *, model: Tuned, clients: int, seed: int
    ) -> None:
        super().__init__(terms)
        self.settings, self.others = settings, others
        drawn = (_adversary(model.classes, settings.hidden, seed, k) for k in range(clients))
        self.adversaries = [adversary.to(model.device) for adversary in drawn]

    def losses(self, logits_NC: Tensor, labels_N: Tensor, clients_N: np.ndarray) -> Tensor:
        plain = self.record_losses(logits_NC, labels_N)
        features = _features(logits_NC, labels_N)
        gained = torch.zeros_like(plain)
        for client in np.unique(clients_N).tolist():
            own = torch.from_numpy(clients_N == client).to(plain.device)
            gained = gained + own * logsigmoid(self.adversaries[client](features)[:, 0])
        return plain + self.settings.strength * gained

    def gradients(self, model: Tuned, batch: Batch) -> dict[int, Weights]:
        """Return the gradients against adversaries that have been trained on this batch."""
        others = _seen(model, self.others.texts, self.others.labels)
        own = _seen(model, batch.texts, batch.labels)
        for client in batch.sizes:
            members = own[torch.from_numpy(batch.clients == client).to(model.device)]
            if len(members):
                self._train(self.adversaries[client], members, others)
        return super().gradients(model, batch)

    def _train(self, adversary: nn.Module, members: Tensor, others: Tensor) -> None:
        optimizer = torch.optim.Adam(adversary.parameters(), lr=self.settings.learning_rate)
        for _ in range(self.settings.updates):
            optimizer.zero_grad()
            gain = logsigmoid(adversary(members)).mean() + logsigmoid(-adversary(others)).mean()
            (-gain).backward()
            optimizer.step()

    def memory(self) -> dict[str, np.ndarray]:
        return {
            f"{k}.{name}": p.detach().cpu().numpy().copy()
            for k, adversary in enumerate(self.adversaries)
            for name, p in adversary.named_parameters()
        }

    @torch.no_grad()
    def restore(self, memory: Mapping[str, np.ndarray]) -> None:
        for k, adversary in enumerate(self.adversaries):
            for name, p in adversary.named_parameters():
                p.copy_(torch.from_numpy(memory[f"{k}.{name}"]))


def _adversary(classes: int, hidden: int, seed: int, client: int) -> nn.Module:
    drawn = int(keyed(seed, Purpose.INIT, client=client).integers(2**63))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(drawn)
        return nn.Sequential(nn.Linear(2 * classes, hidden), nn.ReLU(), nn.Linear(hidden, 1))


def _seen(model: Tuned, texts: Texts, labels: np.ndarray) -> Tensor:
    found = torch.from_numpy(logits(model, texts))
    return _features(found, torch.from_numpy(labels)).to(model.device)


def _features(logits_NC: Tensor, labels_N: Tensor) -> Tensor:
    """Return what an adversary reads of each record: class probabilities and the label, shape [N, 2C]."""
    probabilities = softmax(logits_NC, dim=1)
    return torch.cat([probabilities, one_hot(labels_N, logits_NC.shape[1]).to(probabilities.dtype)], dim=1)
