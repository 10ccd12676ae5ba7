"""FedOT as a loop over clients, each with torch's own orthogonal parametrisation by the Cayley map.

What somebody writes from the paper's equations with what torch has: one module and one optimiser per client, whose
rotation is made in every step. The parametrisation keeps the lower triangle of an unconstrained matrix.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from benchmarks.federation import Federation
from privkit.methods._base import LocalTraining
from privkit.train.cohort import Client


class Rotation(nn.Module):
    """A rotation in blocks, each a layer that torch keeps orthogonal."""

    def __init__(self, x_rbb: np.ndarray) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_layer(torch.from_numpy(x.copy())) for x in x_rbb)

    def forward(self, h: Tensor) -> Tensor:
        parts = h.split(h.shape[-1] // len(self.layers), dim=-1)
        return torch.cat([layer(part) for layer, part in zip(self.layers, parts, strict=True)], dim=-1)

    def lower(self) -> np.ndarray:
        """Return the lower triangles that the rotations are made of, [r, b, b]."""
        return np.stack([_free(layer).detach().tril(-1).numpy() for layer in self.layers])


def _layer(x: Tensor) -> nn.Linear:
    layer = nn.Linear(*x.shape, bias=False, dtype=x.dtype)
    nn.init.eye_(layer.weight)
    parametrizations.orthogonal(layer, orthogonal_map="cayley")
    with torch.no_grad():
        _free(layer).copy_(x)
    return layer


def _free(layer: nn.Module) -> Tensor:
    return layer.parametrizations["weight"].original  # type: ignore[index]


class LoopClient:
    """One client with its rotation, head and optimiser."""

    def __init__(self, given: Federation, client: Client, training: LocalTraining) -> None:
        assert given.model.temperature is not None
        self.given, self.index, self.training = given, client.index, training
        self.temperature = given.model.temperature
        self.x, self.y = torch.from_numpy(client.x), torch.from_numpy(client.y)
        self.rotation = Rotation(given.start["transform.x"])
        self.head_dC = nn.Parameter(torch.from_numpy(given.start["head.vectors"].copy()))
        params = [*self.rotation.parameters(), self.head_dC]
        kinds = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
        self.optimizer = kinds[training.optimizer](
            params, lr=training.learning_rate, weight_decay=training.weight_decay
        )

    def train(self, round: int, head_dC: Tensor) -> None:
        with torch.no_grad():
            self.head_dC.copy_(head_dC)
        for rows in self.given.order(self.index, round, epochs=self.training.epochs):
            for chosen in torch.from_numpy(rows).split(self.training.batch_size):
                u_Bd = functional.normalize(self.rotation(self.x[chosen]), dim=-1)
                loss = functional.cross_entropy(self.temperature * u_Bd @ self.head_dC, self.y[chosen])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    def named(self) -> Mapping[str, np.ndarray]:
        return {"head.vectors": self.head_dC.detach().numpy(), "transform.x": self.rotation.lower()}


class LoopServer:
    """All clients, one after the other, on the head that the server sends."""

    def __init__(self, given: Federation, training: LocalTraining) -> None:
        self.clients = [LoopClient(given, client, training) for client in given.clients]
        self.head_dC, self.rounds = torch.from_numpy(given.start["head.vectors"].copy()), 0

    def round(self) -> None:
        """Send the head, and train every client."""
        for client in self.clients:
            client.train(self.rounds, self.head_dC)
        self.rounds += 1

    def named(self) -> list[Mapping[str, np.ndarray]]:
        return [client.named() for client in self.clients]
