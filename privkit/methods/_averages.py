"""The servers' class averages: what most methods make of one round's prototypes."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy.sparse import csr_array

from privkit.errors import InputError
from privkit.release import ByClass, Prototypes


class Averages(NamedTuple):
    """One vector per class.

    Attributes:
        vectors: shape [C, d]; zeros for a class that nobody sent.
        holders: clients that sent something about each class, shape [C].
    """

    vectors: Float64[np.ndarray, "C d"]
    holders: Int64[np.ndarray, " C"]


def class_averages(uploads: Mapping[int, ByClass], *, num_classes: int, dim: int) -> Averages:
    """Return each class averaged over the clients that hold it, unweighted.

    A client's clusters of a class are first averaged, unweighted too: exact record counts would be a second release.
    Noisy ones that were paid for weigh the average.
    """
    total, shares = np.zeros((num_classes, dim)), np.zeros(num_classes)
    holders = np.zeros(num_classes, dtype=np.int64)
    for sent in uploads.values():
        numerators_Cd, denominators_C = _by_class(sent, num_classes=num_classes)
        total += numerators_Cd
        shares += denominators_C
        holders[np.unique(sent.labels)] += 1
    # noisy totals may add up to nothing or less; a prototype counts at least one record of each client
    return Averages(total / np.maximum(shares, np.maximum(holders, 1))[:, None], holders)


def _by_class(
    sent: ByClass, *, num_classes: int
) -> tuple[Float64[np.ndarray, "C d"], Float64[np.ndarray, " C"]]:
    """Return one client's share of each class: a numerator and a denominator, 0 where it sent nothing."""
    numerators, denominators = sent.shares()
    rows = np.arange(len(sent.labels))
    member_CP = csr_array((np.ones(len(rows)), (sent.labels, rows)), shape=(num_classes, len(rows)))
    total, shares = member_CP @ numerators, member_CP @ denominators
    if not isinstance(sent, Prototypes):
        return total, shares
    rows_C = np.maximum(shares, 1.0)  # clusters of a class are one prototype of their client
    return total / rows_C[:, None], shares / rows_C


def averages_by_size(uploads: Mapping[int, ByClass], *, num_classes: int, dim: int) -> Averages:
    """Return each class summed over clients, a client's share being its part of the records of *all* clients.

    That is what the published VPDR code does for FedProto: the shares of the holders of a class add up to less than 1
    where some client lacks it, so its prototype shrinks.

    Raises:
        InputError: a message has no exact record counts.
    """
    records = sizes(uploads)
    total, holders = np.zeros((num_classes, dim)), np.zeros(num_classes, dtype=np.int64)
    for client, sent in uploads.items():
        own = class_averages({client: sent}, num_classes=num_classes, dim=dim)
        total += records[client] / sum(records.values()) * own.vectors
        holders += own.holders
    return Averages(total, holders)


def sizes(uploads: Mapping[int, ByClass]) -> dict[int, int]:
    """Return how many records are behind each client's message.

    Raises:
        InputError: a message has no exact record counts.
    """
    return {client: _records(client, sent) for client, sent in uploads.items()}


def _records(client: int, sent: ByClass) -> int:
    counts = sent.counts if isinstance(sent, Prototypes) else None
    if counts is None:
        raise InputError(
            f"client {client} sent no exact record counts, and weights: published weighs clients by them; set weights "
            "to uniform."
        )
    return int(counts.sum())


def pooled(uploads: Mapping[int, ByClass]) -> Prototypes:
    """Return all prototypes of a round as one set, in the order of clients."""
    sent = [uploads[client].prototypes() for client in sorted(uploads)]
    return Prototypes(
        vectors=np.concatenate([one.vectors for one in sent]),
        labels=np.concatenate([one.labels for one in sent]),
    )
