"""FedProto as a tidy loop over clients: one module and one optimiser each, tensors instead of loaders.

What somebody writes who keeps one ``torch.nn.Module`` per client and is careful about everything else: batches are
indexed, prototypes are looked up by tensors, class sums are added up by one call.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.federation import Federation
from benchmarks.training_peers.modules import Model, to_privkit
from privkit.methods._base import LocalTraining
from privkit.train.cohort import Client


class TidyClient:
    """One client with its module and optimiser."""

    def __init__(self, given: Federation, client: Client, training: LocalTraining) -> None:
        self.given, self.index, self.training = given, client.index, training
        self.x, self.y = torch.from_numpy(client.x), torch.from_numpy(client.y)
        self.model = Model.of(given)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
        )

    @torch.no_grad()
    def sums(self) -> tuple[Tensor, Tensor]:
        """Return the sum of embeddings and the number of records of each class."""
        z_nd = self.model.base(self.x)
        sums_Cd = z_nd.new_zeros(self.given.num_classes, self.given.dim).index_add_(0, self.y, z_nd)
        return sums_Cd, torch.bincount(self.y, minlength=self.given.num_classes)

    def train(self, round: int, prototypes_Cd: Tensor, present_C: Tensor, pull: float) -> None:
        for rows in self.given.order(self.index, round, epochs=self.training.epochs):
            for chosen in torch.from_numpy(rows).split(self.training.batch_size):
                y = self.y[chosen]
                z_Bd = self.model.base(self.x[chosen])
                away_B = (z_Bd - prototypes_Cd[y]).square().mean(1) * present_C[y]
                loss = functional.cross_entropy(self.model.head(z_Bd), y) + pull * away_B.mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


class TidyServer:
    """All clients, one after the other."""

    def __init__(self, given: Federation, training: LocalTraining, pull: float) -> None:
        self.clients = [TidyClient(given, client, training) for client in given.clients]
        self.pull, self.rounds = pull, 0

    def round(self) -> None:
        """Average class means over the clients that hold them, send, train."""
        self.train(*self.exchange())

    def exchange(self) -> tuple[Tensor, Tensor]:
        """Return each class's mean over the clients that hold it, shape [C, d], and whether any does, shape [C]."""
        pairs = [client.sums() for client in self.clients]
        counts_MC = torch.stack([counts for _, counts in pairs])
        means_MCd = torch.stack([sums for sums, _ in pairs]) / counts_MC.clamp(min=1).unsqueeze(-1)
        holders_C = (counts_MC > 0).sum(0)
        return means_MCd.sum(0) / holders_C.clamp(min=1).unsqueeze(-1), holders_C > 0

    def train(self, prototypes_Cd: Tensor, present_C: Tensor) -> None:
        """Train every client for one round."""
        for client in self.clients:
            client.train(self.rounds, prototypes_Cd, present_C, self.pull)
        self.rounds += 1

    def named(self) -> list[dict[str, np.ndarray]]:
        return [to_privkit(dict(client.model.named_parameters())) for client in self.clients]
