"""What a kind of canaries is: a question about every one of them, and the records that each answer plants."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from jaxtyping import Bool
from pydantic import Field

from privkit.canary import coins
from privkit.clip import unit
from privkit.noise import Purpose, keyed
from privkit.plug import Plugin
from privkit.transcript import Records


class AbstractCanaries(Plugin):
    """Canaries of one kind. Each has classes of its own, so it moves no real prototype and no other canary."""

    slot: ClassVar[int]
    """Number of the kind among all kinds, from 1: their directions and answers are drawn from streams of their own."""
    classes_each: ClassVar[int] = 1
    """Classes that one canary takes."""

    count: int = Field(default=64, ge=2, description="canaries of this kind per client and seed")
    norm: float = Field(default=3.0, gt=0, description="length of a canary, in the units of the embedding")

    def design(self, *, clients: int, dim: int, first_label: int, seed: int) -> Records:
        """Return the canaries of some clients: vectors, and the first class that each takes.

        Args:
            clients: number of clients that plant them.
            dim: width of an embedding.
            first_label: first class that nothing else has.
            seed: of the run; directions are public and differ by client.
        """
        drawn = [
            keyed(seed, Purpose.CANARY_DIRECTIONS, round=self.slot, client=m).standard_normal(
                (self.count, dim)
            )
            for m in range(clients)
        ]
        labels = first_label + self.classes_each * np.arange(self.count, dtype=np.int64)
        return Records(
            vectors=self.norm * unit(np.concatenate(drawn)),
            labels=np.tile(labels, clients),
            clients=np.repeat(np.arange(clients, dtype=np.int64), self.count),
        )

    def answers(self, canaries: Records, *, seed: int) -> Bool[np.ndarray, " K"]:
        """Return the answer of each canary, by a fair coin each."""
        yes_K = np.zeros(len(canaries), dtype=bool)
        for client in np.unique(canaries.clients):
            rng = keyed(seed, Purpose.CANARY_SIGNS, round=self.slot, client=int(client))
            mine = canaries.clients == client
            yes_K[mine] = coins(rng, int(mine.sum()))
        return yes_K

    @abstractmethod
    def planted(self, canaries: Records, yes_K: Bool[np.ndarray, " K"], *, round: int) -> Records:
        """Return the records that clients hold in one round, given the answers."""


def joined(parts: list[Records]) -> Records:
    """Return some records as one, in their order."""
    return Records(
        vectors=np.concatenate([part.vectors for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        clients=np.concatenate([part.clients for part in parts]),
    )


def beside(canaries: Records, vectors_Kd: np.ndarray, *, label: int = 0, times: int = 1) -> Records:
    """Return records of the canaries' clients in one of their classes: so many copies of a vector for each.

    Args:
        canaries: whose classes and clients.
        vectors_Kd: one vector for each.
        label: which of its classes, from 0.
        times: copies.
    """
    return Records(
        vectors=np.repeat(vectors_Kd, times, axis=0),
        labels=np.repeat(canaries.labels + label, times),
        clients=np.repeat(canaries.clients, times),
    )
