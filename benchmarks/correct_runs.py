"""How often a correct mechanism is called a violation: 1,000 runs through the code that audits and judges.

Every run has noise of its own, and canaries with coins of their own. It is attacked, checked with the clean vectors
in hand, corrected for all of its tests and judged as `privkit audit` does. With a family-wise error of 0.001, one
violation in 1,000 runs is expected; more than 1 % are not accepted.
"""

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from accountant.contract import DependsOn, Relation
from attacks._base import AbstractAttack
from attacks.canary.antipodal import Antipodal
from attacks.membership.cosine import Cosine
from attacks.membership.likelihood_ratio import LikelihoodRatio
from benchmarks.protocol import Limit, Result
from privkit import Recorder, canary
from privkit.audit.attacked import hold_against_claim, look_inside
from privkit.audit.cells import Cell
from privkit.audit.left import left
from privkit.audit.run import family_of, judged
from privkit.audit.scored import RunView
from privkit.audit.taken import Judged
from privkit.audit.white_box import Seen
from privkit.audit.work import Work
from privkit.canaries._base import joined
from privkit.defenses._base import AbstractReleaseDefense, Known
from privkit.defenses.igpp import Igpp
from privkit.defenses.sumcount import SumCount
from privkit.defenses.vpp import Vpp
from privkit.embeddings import Embeddings
from privkit.noise import Purpose, SeededNoise, keyed
from privkit.partitions.random import Random
from privkit.release import Release
from privkit.transcript import Records, Transcript
from privkit.truth import Truth
from reports.findings import Verdict

CLIENTS, ROUNDS, CLASSES, DIM, CANARIES, EACH = 2, 3, 3, 24, 32, 12
DEFENSES: dict[str, AbstractReleaseDefense] = {
    "igpp": Igpp(epsilon=2.0),
    "sumcount": SumCount(epsilon=2.0, relation=Relation.REPLACE_SAME_LABEL),
    "vpp": Vpp(epsilon=2.0, partition=Random()),
    "vpp, ellipsoid": Vpp(epsilon=2.0, partition=Random(), clip="ellipsoid"),
}
ATTACKS: tuple[AbstractAttack, ...] = (Antipodal(), Cosine(), LikelihoodRatio())


def drawn(each: int, *, seed: int) -> Records:
    """Return so many records of every client and class."""
    clients, labels = (axis.ravel() for axis in np.mgrid[:CLIENTS, :CLASSES].repeat(each, axis=-1))
    vectors = np.random.default_rng(seed).standard_normal((len(labels), DIM)) / 4
    return Records(vectors=vectors, labels=labels, clients=clients)


def planned(path: Path, defense: AbstractReleaseDefense) -> RunView:
    """Return a run that asks its questions and has released nothing yet."""
    recorder = Recorder(
        path,
        clients=CLIENTS,
        rounds=ROUNDS,
        num_classes=CLASSES,
        dim=DIM,
        promise=(2.0, 1e-5),
        canaries=CANARIES,
        canary_norm=3.0,
        config={"defense": defense.settings()},
    )
    members, others, owned = (drawn(EACH, seed=seed) for seed in (0, 1, 2))
    both = joined([members, others])
    recorder.ask(
        both.vectors,
        both.labels,
        both.clients,
        np.arange(len(both)) < len(members),
        reference=(owned.vectors, owned.labels, owned.clients),
    )
    return RunView.of(recorder.run)


def released(asked: RunView, defense: AbstractReleaseDefense, seed: int) -> Seen:
    """Return what one run sends, and what its auditor knows."""
    canaries = asked.questions["canaries"]
    assert canaries is not None
    signs, mechanism = canary.signs(canaries, seed=seed), defense.mechanism(rounds=ROUNDS)
    planted, members, releases, hidden = canary.planted(canaries, signs), drawn(EACH, seed=0), [], {}
    for m in range(CLIENTS):
        mine, extra = members.of(m), planted.of(m)
        own = Embeddings(vectors=mine.vectors, labels=mine.labels, encoder=DependsOn.PUBLIC)
        own = own.with_records(extra.vectors, extra.labels)
        known = Known(labels=np.unique(own.labels), classes=CLASSES)
        for t in range(ROUNDS):
            sent = mechanism.send(own, SeededNoise(keyed(seed, Purpose.RELEASE, round=t, client=m)), known)
            known = sent.known
            releases.append(Release(round=t, client=m, payload=sent.payload, event=sent.event))
            hidden[t, m] = sent.hidden
    truth = Truth(members=asked.run.truth().members, canary_signs=signs, hidden=hidden)
    view = replace(asked, transcript=Transcript.of(releases))
    return Seen(view, truth, left(view, truth))


def verdict(asked: RunView, seen: Seen) -> Verdict:
    """Return what an audit says of one run."""
    work = tested(asked, seen)
    return judged(work, family_of([work]))[0]


def tested(asked: RunView, seen: Seen) -> Work:
    """Return one run with all of its tests made."""
    work = Work(Cell("correct", (asked.run,)), [seen.view], [])
    look_inside(work, [seen])
    view = seen.view.transcript.seen_by_server(asked.reference)
    for attack in ATTACKS:
        candidates = asked.questions[attack.asks_about]
        assert candidates is not None
        chains = np.stack([candidates.clients, candidates.labels], axis=1)
        scores = Judged(
            scores=attack.score(view, candidates),
            each={},
            until={},
            members=seen.truth.answers[attack.asks_about],
            clusters=np.unique(chains, axis=0, return_inverse=True)[1].ravel(),
            runs=np.zeros(len(candidates), dtype=np.int64),
            clients=candidates.clients,
            rounds=np.full(len(candidates), -1),
            expected=np.full(len(candidates), np.nan),
        )
        hold_against_claim(work, attack, scores)
    return work


def verdicts(name: str, runs: int) -> Counter[Verdict]:
    """Return how often a correct defense gets which verdict."""
    with tempfile.TemporaryDirectory() as folder:
        asked = planned(Path(folder) / "run", DEFENSES[name])
        return Counter(verdict(asked, released(asked, DEFENSES[name], seed)) for seed in range(runs))


def violations(runs: int) -> tuple[float, str]:
    """Return the share of runs, as many of each defense, that are a violation, and all verdicts in words."""
    found = sum((verdicts(name, runs // len(DEFENSES)) for name in DEFENSES), Counter[Verdict]())
    said = ", ".join(f"{count} {one.value}" for one, count in found.items())
    return found[Verdict.VIOLATION] / found.total(), said


def row(*, runs: int = 1000) -> list[Result]:
    share, said = violations(runs)
    return [
        Result(
            id="null",
            workload="a correct mechanism is a VIOLATION",
            peer=", ".join(DEFENSES),
            value=share,
            low=share,
            high=share,
            unit="",
            check=f"{runs:,} runs: {said}",
            must=Limit(0.01, at_least=False),
        )
    ]


ROWS = [row]
