"""Label skew: the records of each class shared out over clients by one draw of a Dirichlet distribution."""

import numpy as np
from jaxtyping import Int64


def shared_out(
    labels: Int64[np.ndarray, " N"], *, clients: int, alpha: float, rng: np.random.Generator
) -> list[Int64[np.ndarray, " n"]]:
    """Return the rows of each client, ascending; together they are all rows, each once.

    Of every class, client i gets the share p_i of its shuffled records, rounded down, where p is drawn from a
    symmetric Dirichlet distribution; the last client gets what is left. A small ``alpha`` gives most of a class to one
    client, a large one equal shares. A client may get nothing. Source: Hsu, Qi and Brown (2019), "Measuring the
    effects of non-identical data distribution for federated visual classification", with the rounding of the
    published code of VPDR.

    Args:
        labels: class of each record, from 0.
        clients: at least 1.
        alpha: concentration, more than 0.
        rng: the only source of randomness.
    """
    rows: list[list[np.ndarray]] = [[] for _ in range(clients)]
    for label in np.unique(labels):
        mixed = rng.permutation(np.flatnonzero(labels == label))
        shares = rng.dirichlet(np.full(clients, alpha))
        counts = np.floor(shares[:-1] * len(mixed)).astype(np.int64)
        for own, part in zip(rows, np.split(mixed, np.cumsum(counts)), strict=True):
            own.append(part)
    return [np.sort(np.concatenate(own)) if own else np.zeros(0, np.int64) for own in rows]


def blocks(count: int, *, clients: int) -> list[Int64[np.ndarray, " n"]]:
    """Return contiguous blocks of rows in stored order, one per client; their sizes differ by at most one.

    This is what the published code of VPDR does for alpha = 0.
    """
    return np.array_split(np.arange(count), clients)
