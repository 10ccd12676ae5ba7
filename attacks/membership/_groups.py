"""Candidates of one client and class share their releases; attacks score them together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64, Int64

from attacks._averaged import Averaged, Channel
from attacks._base import OWN_MORE, NotApplicableError, owned
from attacks._known_noise import prototypes, refuse_other_payloads
from attacks.membership._population import Population, population
from privkit.transcript import Records, ServerView

Estimate = Callable[[np.ndarray, np.ndarray], Population]


@dataclass(frozen=True, eq=False)
class Question:
    """Some candidates of one client and class, with all there is to judge them by.

    Attributes:
        rows: of the candidates among all that are asked about, shape [N].
        label: their class.
        candidates: clipped as the client clips, shape [N, d].
        release: all releases of that client's class, or of one of its clusters, as one.
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


@dataclass(frozen=True, eq=False)
class Mixture:
    """Some candidates of one client and class, whose records were released in clusters.

    Attributes:
        rows: of the candidates among all that are asked about, shape [N].
        sets: clusters that together hold all records of the class; each set tells of them independently.
    """

    rows: Int64[np.ndarray, " N"]
    sets: tuple[tuple[Question, ...], ...]

    def log_ratio(
        self,
        of_one: Callable[[Question], Float64[np.ndarray, " N"]],
        of_all: Callable[[tuple[Question, ...]], Float64[np.ndarray, "K N"]],
    ) -> Float64[np.ndarray, " N"]:
        """Return the log likelihood ratio of each candidate, in nats.

        A member is in one of the clusters of a set, as likely in each as it has records: the ratios of a set are
        averaged with these weights, those of sets are multiplied.

        Args:
            of_one: returns the log likelihood ratio of "in this mean" against "not in it".
            of_all: returns that of each of the clusters of a set, from one decomposition of population and noise.
        """
        if len(self.sets) == 1 and len(self.sets[0]) == 1:
            only = self.sets[0][0]
            return of_all(self.sets[0])[0] if only.release.isotropic else of_one(only)
        return np.sum([_log_mean(questions, of_all(questions)) for questions in self.sets], axis=0)


def _log_mean(
    questions: tuple[Question, ...], ratios_KN: Float64[np.ndarray, "K N"]
) -> Float64[np.ndarray, " N"]:
    sizes_K = np.array([asked.release.count for asked in questions])
    return np.logaddexp.reduce(ratios_KN + np.log(sizes_K / sizes_K.sum())[:, None], axis=0)


def released(
    view: ServerView, candidates: Records
) -> Iterator[tuple[np.ndarray, Float64[np.ndarray, "P d"], Int64[np.ndarray, " T"]]]:
    """Yield the rows of each client's and class's candidates with that class's prototypes, and where rounds begin."""
    refuse_other_payloads(view)
    for client, label, rows in by_client_and_class(candidates):
        found = view.prototypes(client=client, label=label)
        if not found:
            raise NotApplicableError(f"client {client} released no prototype of class {label}")
        vectors_Pd = np.array([prototypes(release).vectors[row] for release, row in found], dtype=np.float64)
        rounds = [release.round for release, _ in found]
        yield rows, vectors_Pd, np.flatnonzero(np.diff(rounds, prepend=-1))


def best_of_rounds(
    scores_NP: Float64[np.ndarray, "N P"], starts_T: Int64[np.ndarray, " T"]
) -> Float64[np.ndarray, " N"]:
    """Return the mean over rounds of the largest score that a prototype of the round gives."""
    return np.maximum.reduceat(scores_NP, starts_T, axis=1).mean(1)


def questions(view: ServerView, candidates: Records) -> Iterator[Question]:
    """Yield the candidates of each client and class with the mean of the class and the population.

    Raises:
        NotApplicableError: no prototypes were sent, or the attacker owns no records, or none of a candidate's class.
    """
    refuse_other_payloads(view)
    known, channel = _Populations(view), Channel(view)
    for client, label, rows in by_client_and_class(candidates):
        release = channel.averaged(client=client, label=label)
        yield known.question(rows, label, candidates, release, of=(client,))


def mixtures(view: ServerView, candidates: Records, estimate: Estimate = population) -> Iterator[Mixture]:
    """Yield the candidates of each client and class with the clusters of the class and the population.

    Args:
        view: what was seen.
        candidates: who is asked about.
        estimate: what tells the population of a domain from labels and clipped vectors of the attacker's records.

    Raises:
        NotApplicableError: no prototypes were sent, or the attacker owns no records, or none of a candidate's class.
    """
    refuse_other_payloads(view)
    known, channel = _Populations(view, estimate), Channel(view)
    for client, label, rows in by_client_and_class(candidates):
        sets = channel.clusters(client=client, label=label)
        clips = [()] if [len(clusters) for clusters in sets] == [1] else [_under(c[0]) for c in sets]
        asked = [
            known.question(rows, label, candidates, clusters[0], of=(client, *clip))
            for clusters, clip in zip(sets, clips, strict=True)
        ]
        # clusters of a set are under one clip
        yield Mixture(
            rows,
            tuple(
                tuple(replace(first, release=release) for release in clusters)
                for first, clusters in zip(asked, sets, strict=True)
            ),
        )


def _under(release: Averaged) -> tuple[int, ...]:
    """Return what tells the clips of a client's sets of clusters apart: the rounds that they are from."""
    return tuple(id(groups) for groups in release.rounds)


class _Populations:
    """What the attacker knows of each client's domain, under a clip of that client's."""

    def __init__(self, view: ServerView, estimate: Estimate = population) -> None:
        self._reference, self._estimate = owned(view.reference), estimate
        self._found: dict[tuple[int, ...], Population] = {}

    def question(
        self,
        rows: Int64[np.ndarray, " N"],
        label: int,
        candidates: Records,
        release: Averaged,
        *,
        of: tuple[int, ...],
    ) -> Question:
        """Return what is asked of one release: ``of`` is the client, and what tells its clips apart."""
        if of not in self._found:
            own = self._reference.of(of[0])
            self._found[of] = self._estimate(own.labels, release.clip(own.vectors))
        known = self._found[of]
        if label not in known.means:
            raise NotApplicableError(f"the attacker owns no reference record of class {label}; {OWN_MORE}")
        return Question(rows, label, release.clip(candidates.vectors[rows]), release, known)
