"""Candidates of one client and class share their releases; attacks score them together."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from attacks._base import NotApplicableError
from attacks._known_noise import Averaged, Channel, prototypes
from attacks.membership._population import Population, population
from privkit.transcript import Records, ServerView


@dataclass(frozen=True, eq=False)
class Question:
    """Some candidates of one client and class, with all there is to judge them by.

    Attributes:
        rows: of the candidates among all that are asked about, shape [N].
        label: their class.
        candidates: clipped as the client clips, shape [N, d].
        release: all releases of that client's class as one.
        population: of that client's domain, as the attacker knows it.
    """

    rows: Int64[np.ndarray, " N"]
    label: int
    candidates: Float64[np.ndarray, "N d"]
    release: Averaged
    population: Population


def by_client_and_class(candidates: Records) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield each client and class with the rows of its candidates."""
    order = np.lexsort((candidates.labels, candidates.clients))
    pairs = np.stack([candidates.clients, candidates.labels], axis=1)[order]
    starts = np.flatnonzero((np.diff(pairs, axis=0, prepend=-1) != 0).any(1))
    for rows in np.split(order, starts[1:]):
        if len(rows):
            yield int(candidates.clients[rows[0]]), int(candidates.labels[rows[0]]), rows


def released(
    view: ServerView, candidates: Records
) -> Iterator[tuple[np.ndarray, Float64[np.ndarray, "T d"]]]:
    """Yield the rows of each client's and class's candidates with that class's prototypes, one per round."""
    for client, label, rows in by_client_and_class(candidates):
        found = view.prototypes(client=client, label=label)
        if not found:
            raise NotApplicableError(f"client {client} released no prototype of class {label}")
        yield rows, np.array([prototypes(release).vectors[row] for release, row in found], dtype=np.float64)


def questions(view: ServerView, candidates: Records) -> Iterator[Question]:
    """Yield the candidates of each client and class with their releases and population.

    Raises:
        NotApplicableError: the attacker owns no records, or none of a candidate's class.
    """
    if view.reference is None:
        raise NotApplicableError(
            "the attacker owns no reference records; set split.reference above 0, or give a recorded run some with "
            "recorder.ask(..., reference=...)"
        )
    channel, populations = Channel(view), {}
    for client, label, rows in by_client_and_class(candidates):
        release = channel.averaged(client=client, label=label)
        if client not in populations:
            own = view.reference.of(client)
            populations[client] = population(own.labels, release.clip(own.vectors))
        if label not in populations[client].means:
            raise NotApplicableError(f"the attacker owns no reference record of class {label}")
        clipped_Nd = release.clip(candidates.vectors[rows])
        yield Question(rows, label, clipped_Nd, release, populations[client])
