"""How many records are behind the rows of a message, as far as an auditor can tell."""

from collections.abc import Iterable, Iterator

import numpy as np

from attacks.canary._moved import clipped
from privkit import canary, plug
from privkit.audit.left import Left, clean_means
from privkit.audit.scored import RunView
from privkit.canaries._base import AbstractCanaries
from privkit.transcript import Records
from privkit.truth import Truth

_SAME = 1e-5  # misfit, relative, up to which a mean is taken to be that of the known records


def known_records(view: RunView, truth: Truth) -> Records | None:
    """Return the real records that clients are known to hold: those that are asked about and were trained on."""
    asked = view.questions["records"]
    return None if asked is None else asked.where(truth.members)


def planted_records(view: RunView, truth: Truth, *, round: int) -> Iterator[Records]:
    """Yield the records that canaries of every kind put into a round; their classes hold nothing else."""
    planted = view.questions["canaries"]
    if planted is not None:
        yield canary.planted(planted, truth.canary_signs)
    for name, answers in truth.others.items():
        kind, canaries = plug.build("privkit.canaries", name), view.questions[name]
        assert isinstance(kind, AbstractCanaries)
        assert canaries is not None
        yield kind.planted(canaries, answers, round=round)


def overstated(view: RunView, truth: Truth, one: Left, counts_P: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield each count that is larger than the records behind it, and how many these are.

    A class of canaries holds what was planted. Of another class, the known records may be a few of many: they are all
    there are where their mean, clipped as claimed, is the one before noise to the last digits.
    """
    labels_P, client = one.release.payload.tensors()["labels"], one.release.client
    certain = sizes(planted_records(view, truth, round=one.release.round), client=client)
    known = known_records(view, truth)
    mine = None if known is None else known.of(client)
    held = {} if mine is None else sizes([mine], client=client)
    for label in np.unique(labels_P).tolist():
        rows = np.flatnonzero(labels_P == label)
        count, true = int(counts_P[rows].sum()), certain.get(label, held.get(label, 0))
        if not true or count <= true:
            continue
        if label in certain or (
            mine is not None and len(rows) == 1 and _is_mean(one, int(rows[0]), mine, label)
        ):
            yield count, true


def sizes(parts: Iterable[Records], *, client: int) -> dict[int, int]:
    """Return how many records of each class a client has in some parts."""
    found: dict[int, int] = {}
    for label in (label for records in parts for label in records.of(client).labels.tolist()):
        found[label] = found.get(label, 0) + 1
    return found


def _is_mean(one: Left, row: int, records: Records, label: int) -> bool:
    """Return whether a row before noise is the mean of the known records of its class."""
    vectors_Nd = records.vectors[records.labels == label].astype(np.float64)
    mean_d, wanted_d = clipped(vectors_Nd, one.groups).mean(0), clean_means(one)[row]
    return float(np.linalg.norm(mean_d - wanted_d)) <= _SAME * float(np.linalg.norm(wanted_d))
