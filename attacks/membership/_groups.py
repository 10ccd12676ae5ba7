"""Candidates of one client and class share their releases; attacks score them together."""

from collections.abc import Iterator

import numpy as np

from privkit.transcript import Records


def by_client_and_class(candidates: Records) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield each client and class with the rows of its candidates."""
    pairs = np.stack([candidates.clients, candidates.labels], axis=1)
    for client, label in np.unique(pairs, axis=0):
        rows = np.flatnonzero((candidates.clients == client) & (candidates.labels == label))
        yield int(client), int(label), rows
