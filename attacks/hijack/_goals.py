"""Where the embeddings of rebuilt images are to point: released prototypes, and random directions to compare with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attacks._averaged import averaged
from attacks._base import NotApplicableError
from attacks._known_noise import prototypes
from privkit.release import Release, SumsAndCounts
from privkit.transcript import ServerView


@dataclass(frozen=True, eq=False, kw_only=True)
class Goal:
    """Where an image's embedding is to point.

    Attributes:
        client, label: whose prototype.
        vector: the direction wanted, shape [d].
        control: whether the vector is a random direction, and not the prototype: the floor of the budget.
    """

    client: int
    label: int
    vector: np.ndarray
    control: bool = False


def released(view: ServerView, *, round: int | None, num_classes: int) -> list[tuple[int, int]]:
    """Return every (client, class) that has a prototype, in order.

    Args:
        view: what the server saw.
        round: that it is to be of; any, where there is none.
        num_classes: labels from here on are no classes of records, and are left alone.

    Raises:
        NotApplicableError: there is no prototype, or none of that round.
    """
    rounds = [release.round for release in view.releases]
    if rounds and round is not None and round not in rounds:
        raise NotApplicableError(
            f"round={round} was not released; give one of {min(rounds)} to {max(rounds)}, or none for all"
        )
    pairs = {
        (release.client, int(label))
        for release in view.releases
        if round in (None, release.round)
        for label in prototypes(release).labels
        if label < num_classes
    }
    if not pairs:
        raise NotApplicableError("no prototype was released; inversion needs one")
    return sorted(pairs)


def vector(view: ServerView, client: int, label: int, *, round: int | None) -> np.ndarray:
    """Return the prototype of one round, or that of all rounds by the precision of their noise.

    Raises:
        NotApplicableError: the noise is not known.
    """
    if round is None:
        return averaged(view, client=client, label=label, drifts=False).vector
    found = view.prototypes(client=client, label=label)
    rows = [(release, row) for release, row in found if release.round == round]
    vectors_Pd = np.array([prototypes(release).vectors[row] for release, row in rows], dtype=np.float64)
    return np.average(vectors_Pd, axis=0, weights=[_records_behind(release, row) for release, row in rows])


def spread(pairs: Sequence[tuple[int, int]], count: int, *, seed: int) -> list[tuple[int, int]]:
    """Return some (client, class) pairs, in random order, that repeat clients and classes as little as can be.

    All of them, if there are no more than ``count``.

    >>> len({client for client, _ in spread([(m, c) for m in range(3) for c in range(9)], 3, seed=0)})
    3
    """
    order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 0))).permutation(len(pairs))
    left, chosen = [pairs[i] for i in order], []
    while left and len(chosen) < count:
        used = [value for pair in chosen for value in (("client", pair[0]), ("label", pair[1]))]
        rarest = min(left, key=lambda pair: used.count(("client", pair[0])) + used.count(("label", pair[1])))
        left.remove(rarest)
        chosen.append(rarest)
    return chosen


def _records_behind(release: Release, row: int) -> float:
    """Return how many records one prototype counts for: as many as were sent, noisy or not; 1 where none were."""
    if isinstance(release.payload, SumsAndCounts):
        return max(1.0, float(release.payload.totals[row]))
    counts = prototypes(release).counts
    return 1.0 if counts is None else float(counts[row])


def control(goal: Goal, seed: int) -> Goal:
    """Return the same goal with a uniformly random direction in place of the prototype."""
    key = (0, goal.client, goal.label, 0)
    direction = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)).standard_normal(
        len(goal.vector)
    )
    return Goal(
        client=goal.client, label=goal.label, vector=direction / np.linalg.norm(direction), control=True
    )
