"""The means of classes, or of clusters within classes: what every prototype defense is built from."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from accountant.contract import Contract, Counts, DependsOn, Query, Relation
from privkit.defenses._base import NOTHING, Known
from privkit.embeddings import Embeddings
from privkit.errors import InputError


class ClassMeans(NamedTuple):
    """The mean vector of each class that is present, or of each of its clusters.

    Attributes:
        vectors: shape [P, d].
        labels: class of each, ascending, shape [P].
        counts: records in each mean, shape [P].
    """

    vectors: Float64[np.ndarray, "P d"]
    labels: Int64[np.ndarray, " P"]
    counts: Int64[np.ndarray, " P"]


def class_means(embeddings: Embeddings, known: Known = NOTHING) -> ClassMeans:
    """Return the mean of each class present, or of each cluster that the method wants. No records at all is refused.

    The canaries of a class always are one mean.
    """
    y = embeddings.labels
    if not len(y):
        raise InputError("a client has no records to average; give every client at least one.")
    real, cluster = known.real(y), np.zeros(len(y), dtype=np.int64)
    cluster[real] = known.summary.assign(embeddings.vectors[real], y[real])
    rows, index, counts = np.unique(
        np.stack([y, cluster], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    member_PN = np.zeros((len(rows), len(y)))
    member_PN[index.ravel(), np.arange(len(y))] = 1.0
    return ClassMeans(member_PN @ embeddings.vectors / counts[:, None], rows[:, 0], counts)


class ClassSums(NamedTuple):
    """The sum of every class that was asked for, present or not.

    Attributes:
        vectors: shape [P, d]; zeros for a class without records.
        counts: records in each sum, shape [P].
    """

    vectors: Float64[np.ndarray, "P d"]
    counts: Float64[np.ndarray, " P"]


def class_sums(embeddings: Embeddings, labels: Int64[np.ndarray, " P"]) -> ClassSums:
    """Return the sum of each of some classes; a record of another class is refused.

    Args:
        embeddings: of one client, clipped; none at all is fine.
        labels: the classes, ascending.
    """
    member_PN = labels[:, None] == embeddings.labels[None]
    if not member_PN.any(0).all():
        odd = int(embeddings.labels[int(np.argmin(member_PN.any(0)))])
        raise InputError(
            f"a client has a record of class {odd}, which is none of the classes that were announced; announce it, or "
            "drop the record."
        )
    return ClassSums(member_PN.astype(np.float64) @ embeddings.vectors, member_PN.sum(1).astype(np.float64))


def refuse_single_records(means: ClassMeans, *, least: int) -> None:
    """Raise if a class has fewer than ``least`` records: its prototype would be one record and noise of 2R."""
    labels, index = np.unique(means.labels, return_inverse=True)
    held = np.bincount(index, weights=means.counts).astype(np.int64)
    if (held < least).any():
        p = int(np.argmin(held))
        raise InputError(
            f"class {labels[p]} of a client has {held[p]} record{'s' * int(held[p] > 1)}, and "
            f"smallest_class is {least}: give it more records, drop it, or lower smallest_class."
        )


def contract_of_means(
    embeddings: Embeddings, known: Known, *, clip_norm: float, hyperparameters: DependsOn
) -> Contract:
    """Return the conditions under which noise on means of clipped records costs what its multiplier says.

    Canaries are not among its counts: they are vectors, so they stay where they are when a private encoder moves.
    """
    real = embeddings.labels[known.real(embeddings.labels)]
    return Contract(
        relation=Relation.REPLACE_SAME_LABEL,
        query=Query.CLASS_MEANS,
        clip_norm=clip_norm,
        encoder=embeddings.encoder,
        assignment=known.summary.assignment,
        counts=Counts.PUBLIC,
        hyperparameters=hyperparameters,
        fresh_noise=True,
        class_counts=tuple(np.unique(real, return_counts=True)[1].tolist()),
    )
