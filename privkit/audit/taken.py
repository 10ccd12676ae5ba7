"""What can be taken: the scores of every attack, judged by the truth."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from accountant.events import NonPrivate, leaves
from accountant.tradeoff import AbstractCurve
from attacks._base import AbstractAttack
from attacks.statistics.advantage import held_out_advantage
from attacks.statistics.auc import auc
from attacks.statistics.best_f1 import best_f1
from attacks.statistics.ceiling import CeilingTest, auc_above, tpr_above
from attacks.statistics.certify.together import certificates
from attacks.statistics.confusion import Confusion, confusion
from attacks.statistics.estimate import empty_class
from attacks.statistics.placements import sorted_placements
from attacks.statistics.scores import split
from attacks.statistics.seeds import over_seeds
from attacks.statistics.tightness import tightness
from attacks.statistics.tpr import tpr_at_fpr
from privkit import fits
from privkit.audit import curves
from privkit.audit.cells import Cell
from privkit.audit.scored import RunView
from privkit.errors import InputError
from privkit.exposure import BatchRecords
from privkit.release import ByClass
from privkit.truth import Truth
from reports.findings import Taken

FPR = "0.01"


@dataclass(frozen=True, eq=False)
class Judged:
    """The scores of one attack on every run of a cell, with the answers.

    Attributes:
        scores, members: shape [N].
        each, until: scores from one round alone, and from all rounds up to one, by round; rounds that every
            run has. Shape [N] each.
        clusters: number of the release chain (run, client, class; or round, of batches) behind each score, shape [N].
        runs: run of each score, shape [N].
        clients: whose release each score is about, shape [N].
        rounds: in which each is asked about; -1 of one that is asked about in all, shape [N].
        expected: AUC that was expected on what each is asked about; not a number where none was, shape [N].
    """

    scores: np.ndarray
    each: Mapping[int, np.ndarray]
    until: Mapping[int, np.ndarray]
    members: np.ndarray
    clusters: np.ndarray
    runs: np.ndarray
    clients: np.ndarray
    rounds: np.ndarray
    expected: np.ndarray

    def of(self, client: int) -> "Judged":
        """Return the scores that are about one client."""
        keep = self.clients == client
        return replace(
            self,
            each={},
            until={},
            **{
                name: getattr(self, name)[keep]
                for name in ("scores", "members", "clusters", "runs", "clients", "rounds", "expected")
            },
        )

    def after(self, round: int) -> "Judged":
        """Return the scores from all rounds up to one."""
        return replace(self, scores=self.until[round], each={}, until={})

    def auc_of(self, keep_N: np.ndarray) -> float | None:
        """Return the AUC of some of the scores."""
        return _area(self.scores[keep_N], self.members[keep_N])


def truths(cell: Cell, views: list[RunView]) -> list[Truth]:
    """Return the answers of every run; answers that do not fit the questions are refused."""
    found = []
    for run, view in zip(cell.runs, views, strict=True):
        truth = run.truth()
        for name, answers in truth.answers.items():
            asked = view.questions.get(name)
            if len(answers) != (0 if asked is None else len(asked)):
                raise InputError(
                    f"{run.path}: truth/ answers {len(answers)} {name}, but another number is asked about."
                )
        if view.questions["records"] is not None:
            fits.refuse_overlap(run.path.as_posix(), view.questions["records"], truth.members)
        found.append(truth)
    return found


def judge(attack: AbstractAttack, views: list[RunView], answers: list[Truth]) -> Judged:
    """Return the attack's scores on every run, with the answers."""
    found = [view.score(attack) for view in views]
    members, clusters, runs, clients, rounds, expected = [], [], [], [], [], []
    for r, (view, truth) in enumerate(zip(views, answers, strict=True)):
        asked = view.asked(attack)
        members.append(truth.answers[attack.asks_about])
        assert asked is not None
        chains = np.stack([asked.clients, asked.shared], axis=1)
        numbers = np.unique(chains, axis=0, return_inverse=True)[1].ravel()
        clusters.append(numbers + sum(int(c.max()) + 1 for c in clusters))
        runs.append(np.full(len(asked), r))
        clients.append(asked.clients)
        rounds.append(asked.rounds if isinstance(asked, BatchRecords) else np.full(len(asked), -1))
        expected.append(found[r].expected)
    return Judged(
        np.concatenate([scores.whole for scores in found]),
        _joined([scores.each for scores in found]),
        _joined([scores.until for scores in found]),
        *(np.concatenate(parts) for parts in (members, clusters, runs, clients, rounds, expected)),
    )


def _joined(runs: list[Mapping[int, np.ndarray]]) -> dict[int, np.ndarray]:
    """Return the scores of all runs, for the rounds that every run has."""
    shared = sorted(set.intersection(*(set(run) for run in runs)))
    return {round: np.concatenate([run[round] for run in runs]) for round in shared}


def measure(
    attack: AbstractAttack,
    judged: Judged,
    *,
    limit: AbstractCurve | None,
    mu: float | None,
    delta: float,
    rounds: int,
    not_gaussian: str = "",
) -> Taken:
    """Return everything that is reported about an attack but its p-value.

    Args:
        attack: whose scores they are.
        judged: the scores with the answers.
        limit: the proof's trade-off curve, or ``None`` where no proof covers the cell.
        mu: claimed mu of all the run's Gaussian noise, if it has any.
        delta: that certified epsilons are stated for.
        rounds: of the run.
        not_gaussian: why no trade-off curve is Gaussian, in words; empty where it may be.
    """
    members, non_members = split(judged.scores, judged.members)
    one_sided = _one_sided(attack, len(members), len(non_members))
    limit = None if one_sided else limit
    is_canary = attack.about_canaries
    area = auc(members, non_members, clusters=None if is_canary else _ids(judged))
    by_seed = [judged.auc_of(judged.runs == r) for r in np.unique(judged.runs)]
    by_chain = [judged.auc_of(judged.clusters == c) for c in np.unique(judged.clusters)]
    known = [value for value in by_chain if value is not None]
    found = tpr_at_fpr(members, non_members, fpr=FPR)
    # the threshold is one of N scores, so the rate that it has in truth is (k + 1) / (N + 1) on average
    rate = (found.allowed + 1) / (len(non_members) + 1)
    return Taken(
        attack=attack.label,
        tier=attack.assumed.tier,
        who=attack.assumed.who,
        knows=attack.assumed.knows,
        family=attack.family,
        auc=area,
        macro_auc=float(np.mean(known)) if known else None,
        tpr=found,
        advantage=held_out_advantage(members, non_members, seed=0),
        best_f1=best_f1(members, non_members),
        auc_by_seed=over_seeds(by_seed),
        auc_of_run=tuple(by_seed),
        auc_ceiling=None if limit is None else limit.auc,
        tpr_ceiling=None if limit is None else limit.tpr(rate),
        tightness=tightness(area, mu=mu) if attack.reaches_claim and mu else None,
        certificates=certificates(members, non_members, delta=delta, not_gaussian=not_gaussian)
        if is_canary
        else (),
        roc=curves.roc_line(members, non_members),
        histogram=curves.histogram(members, non_members),
        by_round=_alone(judged, rounds),
        predicted=_mean(judged.expected),
        predicted_by_round=_predicted(judged, rounds),
        cumulative=_areas(judged.until, judged.members, rounds),
        reason=one_sided,
    )


def _one_sided(attack: AbstractAttack, members: int, non_members: int) -> str:
    """Return why there is nothing to tell apart, or nothing."""
    missing = empty_class(members, non_members)
    if not missing or attack.about_canaries:
        return ""
    return f"there are {missing} among the candidates; ask about members and non-members of every run"


def _alone(judged: Judged, rounds: int) -> tuple[float | None, ...]:
    """Return the AUC from each round alone: of all that are asked about in all, or of those asked about in it."""
    if (judged.rounds < 0).all():
        return _areas(judged.each, judged.members, rounds)
    if len(np.unique(judged.rounds)) < 2:
        return ()
    return tuple(judged.auc_of(judged.rounds == t) for t in range(rounds))


def _predicted(judged: Judged, rounds: int) -> tuple[float | None, ...]:
    """Return the mean AUC that was expected in each round; nothing where none was in any."""
    if np.isnan(judged.expected).all():
        return ()
    return tuple(_mean(judged.expected[judged.rounds == t]) for t in range(rounds))


def _mean(values: np.ndarray) -> float | None:
    """Return the mean of the numbers that there are."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _areas(by_round: Mapping[int, np.ndarray], members: np.ndarray, rounds: int) -> tuple[float | None, ...]:
    return tuple(_area(by_round[t], members) if t in by_round else None for t in range(rounds))


def _area(scores: np.ndarray, members: np.ndarray) -> float | None:
    """Return the AUC alone, without its interval."""
    inside, outside = split(scores, members)
    return sorted_placements(np.sort(inside), np.sort(outside)).auc if len(inside) and len(outside) else None


def against_ceiling(attack: AbstractAttack, judged: Judged, limit: AbstractCurve) -> list[CeilingTest]:
    """Return the tests of an attack against a ceiling: its AUC, and for canaries the rates at 0 as well."""
    members, non_members = split(judged.scores, judged.members)
    clusters = None if attack.about_canaries else _ids(judged)
    tests = [auc_above(members, non_members, ceiling=limit.auc, clusters=clusters)]
    if not attack.about_canaries or empty_class(len(members), len(non_members)):
        return tests
    return [*tests, tpr_above(at_zero(members, non_members), curve=limit)]


def at_zero(members: np.ndarray, non_members: np.ndarray) -> Confusion:
    """Return the counts at a log likelihood ratio of 0, a threshold that looks at no score."""
    source = "0, where both answers are equally likely"
    return confusion(members, non_members, threshold=0.0, threshold_source=source)


def repeated(view: RunView) -> str:
    """Return the sentence that a noisy vector was released twice, bit for bit, or nothing."""
    seen: dict[bytes, tuple[int, int]] = {}
    for release in view.transcript.releases:
        if not isinstance(release.payload, ByClass):
            continue
        if any(isinstance(leaf, NonPrivate) for leaf, _ in leaves(release.event)):
            continue
        for vector in release.payload.vectors:
            before = seen.setdefault(vector.tobytes(), (release.round, release.client))
            if before != (release.round, release.client):
                return (
                    f"client {release.client} released in round {release.round} the very vector of client "
                    f"{before[1]} in round {before[0]}: the noise was not drawn anew"
                )
    return ""


def _ids(judged: Judged) -> tuple[np.ndarray, np.ndarray]:
    return judged.clusters[judged.members], judged.clusters[~judged.members]
