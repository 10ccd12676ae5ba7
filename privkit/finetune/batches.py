"""Which records a client trains on: drawn by (seed, round, client), so that order and restarts change nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privkit.finetune.terms import Sampling, Terms
from privkit.finetune.texts import Texts
from privkit.noise import Purpose, keyed


@dataclass(frozen=True, eq=False)
class Batch:
    """One step's records of one or more clients.

    Attributes:
        texts: of all of them.
        labels: class of each record, shape [N].
        clients: whose record each is, shape [N].
        sizes: what each client's sum of gradients is divided by; a client without records is there too.
        round: communication round.
        step: local step within it.
    """

    texts: Texts
    labels: np.ndarray
    clients: np.ndarray
    sizes: Mapping[int, float]
    round: int
    step: int = 0


def drawn(members: np.ndarray, terms: Terms, *, seed: int, round: int, client: int) -> list[np.ndarray]:
    """Return the rows of each local step of one client in one round, ascending.

    Args:
        members: rows that it trains on.
        terms: how many steps, of which batches.
        seed: of the run.
        round: from 0.
        client: from 0.
    """
    rng = keyed(seed, Purpose.BATCHES, round=round, client=client)
    return [np.sort(_one(rng, members, terms)) for _ in range(terms.local_steps)]


def _one(rng: np.random.Generator, members: np.ndarray, terms: Terms) -> np.ndarray:
    if terms.sampling is Sampling.POISSON:
        return members[rng.random(len(members)) < rate(terms, len(members))]
    return rng.choice(members, min(terms.batch, len(members)), replace=False)


def rate(terms: Terms, records: int) -> float:
    """Return the share of a client's records that a batch holds (on average)."""
    return min(1.0, terms.batch / records)


def size(terms: Terms, rows: np.ndarray) -> float:
    """Return what a sum of gradients is divided by: a number that does not tell how many records were drawn."""
    return float(terms.batch if terms.sampling is Sampling.POISSON else len(rows))
