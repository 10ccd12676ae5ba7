"""The means of classes, or of clusters within classes: what every prototype defense is built from."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.sparse import csr_array

from accountant.contract import Contract, Counts, DependsOn, Query, Relation
from privkit.defenses._base import NOTHING, Known
from privkit.embeddings import Embeddings
from privkit.errors import InputError

_AT_ONCE = 256  # records


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
    y, vectors_Nd = embeddings.labels, embeddings.vectors
    refuse_no_records(embeddings)
    real, cluster = known.real(y), np.zeros(len(y), dtype=np.int64)
    every = bool(real.all())  # then nothing is copied
    cluster[real] = known.summary.assign(vectors_Nd if every else vectors_Nd[real], y if every else y[real])
    groups = Groups.of(y, cluster)
    sums_Pd = groups.sums(vectors_Nd)
    return ClassMeans(sums_Pd / groups.counts[:, None], groups.labels, groups.counts)


def refuse_no_records(embeddings: Embeddings) -> None:
    """Raise if there is nothing to average."""
    if not len(embeddings.labels):
        raise InputError("a client has no records to average; give every client at least one.")


class Groups(NamedTuple):
    """Records by class, and by cluster within it.

    Attributes:
        labels: class of each group, ascending, shape [P].
        counts: records in each, shape [P].
        order: of the records, group by group, shape [N].
    """

    labels: Int64[np.ndarray, " P"]
    counts: Int64[np.ndarray, " P"]
    order: Int64[np.ndarray, " N"]

    @classmethod
    def of(cls, labels: Int64[np.ndarray, " N"], clusters: Int64[np.ndarray, " N"] | None = None) -> "Groups":
        """Return the groups of records; classes alone make them where no clusters are given."""
        order = np.argsort(labels, kind="stable") if clusters is None else np.lexsort((clusters, labels))
        new = np.ones(len(order), dtype=bool)
        new[1:] = _changes(labels[order])
        if clusters is not None:
            new[1:] |= _changes(clusters[order])
        starts = np.flatnonzero(new)
        return cls(labels[order[starts]], np.append(starts[1:], len(order)) - starts, order)

    def rows(self) -> Iterator[tuple[int, Int64[np.ndarray, " n"] | slice]]:
        """Yield a group and some of its records, few enough to stay in a processor's cache; every record once.

        Records that were in order already, as class folders list them, are a slice: nothing is copied.
        """
        in_order = bool((self.order == np.arange(len(self.order))).all())
        start = 0
        for p, count in enumerate(self.counts.tolist()):
            for first in range(start, start + count, _AT_ONCE):
                some = slice(first, min(first + _AT_ONCE, start + count))
                yield p, some if in_order else self.order[some]
            start += count

    def sums(self, vectors_Nd: Float64[np.ndarray, "N d"]) -> Float64[np.ndarray, "P d"]:
        """Return the sum of each group's vectors."""
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        shape = len(self.labels), len(self.order)
        member_PN = csr_array((np.ones(len(self.order)), self.order, ends), shape=shape)
        return member_PN @ vectors_Nd


def _changes(values_N: Int64[np.ndarray, " N"]) -> Bool[np.ndarray, " changes"]:
    """Return whether each value but the first differs from the one before."""
    return values_N[1:] != values_N[:-1]


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
    row_N = np.searchsorted(labels, embeddings.labels)
    odd_N = np.append(labels, -1)[row_N] != embeddings.labels
    if odd_N.any():
        raise InputError(
            f"a client has a record of class {embeddings.labels[np.argmax(odd_N)]}, which is none of the classes that "
            "were announced; announce it, or drop the record."
        )
    sums_Pd, counts_P = np.zeros((len(labels), embeddings.vectors.shape[1])), np.zeros(len(labels))
    groups = Groups.of(row_N)
    sums_Pd[groups.labels], counts_P[groups.labels] = groups.sums(embeddings.vectors), groups.counts
    return ClassSums(sums_Pd, counts_P)


def announced(known: Known, *, by: str) -> Int64[np.ndarray, " P"]:
    """Return every class that there is; it is public, or the classes that a message is about would be a secret.

    Args:
        known: what a mechanism may read.
        by: name of its defense.
    """
    if known.summary.assignment is not DependsOn.PUBLIC:
        raise InputError(
            f"defense {by} sums whole classes, and the method wants prototypes by {known.summary.name}; use "
            "prototypes: mean."
        )
    if known.labels is None:
        raise InputError(
            f"defense {by} puts noise on every class, held or not, and no list of classes was given; pass "
            "Known(labels=...)."
        )
    return known.labels


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
