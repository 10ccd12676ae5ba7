"""What every attack keeps to: a score per candidate, from what the server saw and nothing else."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from accountant.contract import DependsOn
from accountant.events import Gaussian, PureDP
from attacks._base import AbstractAttack, NotApplicableError, ThreatModel
from privkit import canary, plug
from privkit.defenses._base import AbstractReleaseDefense, Known
from privkit.defenses.igpp import Igpp
from privkit.defenses.none import Nothing
from privkit.embeddings import Embeddings
from privkit.noise import Purpose, SeededNoise, keyed
from privkit.prototypes._base import AbstractPrototypes
from privkit.prototypes.finch import Finch
from privkit.prototypes.mean import Mean
from privkit.release import Head, Prototypes, Release, Update
from privkit.store import Run, RunInfo
from privkit.transcript import Records, ServerView, Transcript

CLIENTS, CLASSES, MEMBERS, DIM, ROUNDS, CANARIES = 2, 3, 25, 48, 3, 32
PACKAGES = ("attacks.membership", "attacks.canary")
# other kinds of canaries have a contract of their own: tests/test_other_canaries.py
NAMES = [
    (package, name)
    for package in PACKAGES
    for name in plug.names(package)
    if name not in plug.names("privkit.canaries")
]


def build(package: str, name: str) -> AbstractAttack:
    found = plug.build(package, name)
    assert isinstance(found, AbstractAttack)
    return found


every_attack = pytest.mark.parametrize("attack", [build(*name) for name in NAMES], ids=[n for _, n in NAMES])


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene:
    """A run without training: what its server saw, the questions, and the answers."""

    releases: tuple[Release, ...]
    reference: Records
    records: Records
    members: np.ndarray
    canaries: Records
    signs: np.ndarray

    @property
    def view(self) -> ServerView:
        return Transcript(self.releases).seen_by_server(self.reference)

    def asked(self, attack: AbstractAttack) -> tuple[Records, np.ndarray]:
        if attack.asks_about == "canaries":
            return self.canaries, self.signs
        return self.records, self.members


def population(seed: int, each: int) -> Records:
    """Draw labelled vectors of length about 1, the same number of each client and class."""
    rng = np.random.default_rng(seed)
    clients, labels = (axis.ravel() for axis in np.mgrid[:CLIENTS, :CLASSES].repeat(each, axis=-1))
    centres = np.random.default_rng(0).standard_normal((CLASSES, DIM))
    spread = rng.standard_normal((len(labels), DIM))
    return Records(vectors=(0.3 * centres[labels] + 0.9 * spread) / DIM**0.5, labels=labels, clients=clients)


def scene(defense: AbstractReleaseDefense, seed: int = 1, summary: AbstractPrototypes | None = None) -> Scene:
    members, others = population(seed, MEMBERS), population(seed + 1000, MEMBERS)
    planted = canary.design(
        clients=CLIENTS, count=CANARIES, dim=DIM, norm=3.0, num_classes=CLASSES, seed=seed
    )
    signs = canary.signs(planted, seed=seed)
    held = canary.planted(planted, signs)
    releases = []
    for client in range(CLIENTS):
        mine = Embeddings(
            vectors=members.of(client).vectors, labels=members.of(client).labels, encoder=DependsOn.PUBLIC
        ).with_records(held.of(client).vectors, held.of(client).labels)
        known = Known(labels=np.unique(mine.labels), classes=CLASSES, summary=summary or Mean())
        for t in range(ROUNDS):
            noise = SeededNoise(keyed(seed, Purpose.RELEASE, round=t, client=client))
            payload, event, _ = defense.mechanism(rounds=ROUNDS).privatize(mine, noise, known)
            releases.append(Release(round=t, client=client, payload=payload, event=event))
    return Scene(
        releases=tuple(sorted(releases, key=lambda r: (r.round, r.client))),
        reference=population(seed + 2000, 4 * MEMBERS),
        records=Records(
            vectors=np.concatenate([members.vectors, others.vectors]),
            labels=np.concatenate([members.labels, others.labels]),
            clients=np.concatenate([members.clients, others.clients]),
        ),
        members=np.arange(2 * len(members)) < len(members),
        canaries=planted,
        signs=signs,
    )


@pytest.fixture(scope="module")
def noisy() -> Scene:
    return scene(Igpp(epsilon=8.0))


@pytest.fixture(scope="module")
def plain() -> Scene:
    return scene(Nothing())


@pytest.fixture(scope="module")
def clustered() -> Scene:
    return scene(Igpp(epsilon=8.0), summary=Finch())


@pytest.fixture(scope="module")
def plain_clusters() -> Scene:
    return scene(Nothing(), summary=Finch())


def standard_error(members: np.ndarray) -> float:
    """Return the standard error of an AUC when scores tell nothing."""
    m, n = int(members.sum()), int((~members).sum())
    return ((m + n + 1) / (12 * m * n)) ** 0.5


# ---------------------------------------------------------------------- every attack


@every_attack
def test_it_declares_who_attacks_and_what_is_known(attack):
    assert isinstance(attack.threat, ThreatModel)
    assert attack.threat.who
    assert all(attack.threat.knows)
    assert attack.threat.tier in ("public", "shadow", "design")
    assert attack.asks_about in ("records", "canaries")
    assert attack.citation


@every_attack
def test_settings_build_the_same_attack_again(attack):
    package = type(attack).__module__.rpartition(".")[0]
    assert plug.build(package, attack.settings()) == attack


@every_attack
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_there_is_one_finite_float64_per_candidate(attack, noisy, plain, clustered, plain_clusters, dtype):
    for one in (noisy, plain, clustered, plain_clusters):
        asked, _ = one.asked(attack)
        scores = attack.score(one.view, replace(asked, vectors=asked.vectors.astype(dtype)))
        assert scores.shape == (len(asked),)
        assert scores.dtype == np.float64
        assert np.isfinite(scores).all()
        assert len(np.unique(scores)) > len(asked) / 2


@pytest.mark.parametrize("name", plug.names("attacks.membership"))
def test_a_candidate_as_large_as_floats_get_has_a_score_and_changes_no_other(name, noisy):
    attack = build("attacks.membership", name)
    asked, _ = noisy.asked(attack)
    far = replace(
        asked, vectors=np.where(np.arange(len(asked))[:, None] == 3, 1e200, asked.vectors.astype(np.float64))
    )
    scores, others = attack.score(noisy.view, far), np.arange(len(asked)) != 3
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores[others], attack.score(noisy.view, asked)[others], rtol=1e-9)


@every_attack
def test_no_candidates_give_no_scores(attack, noisy):
    asked, _ = noisy.asked(attack)
    assert attack.score(noisy.view, asked.where(np.zeros(0, dtype=np.int64))).shape == (0,)


@every_attack
def test_a_permutation_of_candidates_permutes_their_scores(attack, noisy, clustered):
    for one in (noisy, clustered):
        asked, _ = one.asked(attack)
        order = np.random.default_rng(3).permutation(len(asked))
        scores = attack.score(one.view, asked)
        np.testing.assert_allclose(attack.score(one.view, asked.where(order)), scores[order], rtol=1e-9)


@every_attack
def test_a_score_does_not_depend_on_the_other_candidates(attack, noisy, clustered):
    for one in (noisy, clustered):
        asked, _ = one.asked(attack)
        scores = attack.score(one.view, asked)
        for row in (0, len(asked) // 2, len(asked) - 1):
            alone = attack.score(one.view, asked.where(np.array([row])))
            np.testing.assert_allclose(alone, scores[[row]], rtol=1e-9)


@every_attack
def test_the_same_view_gives_the_same_scores_to_the_bit(attack, noisy):
    asked, _ = noisy.asked(attack)
    assert np.array_equal(attack.score(noisy.view, asked), attack.score(noisy.view, asked))


@every_attack
def test_scores_are_the_same_when_the_truth_is_deleted(attack, noisy, tmp_path):
    run = saved(noisy, tmp_path / "run")
    with_truth = score_of_folder(attack, run.path)
    shutil.rmtree(run.path / "truth")
    assert np.array_equal(score_of_folder(attack, run.path), with_truth)
    np.testing.assert_allclose(with_truth, attack.score(noisy.view, noisy.asked(attack)[0]), rtol=1e-9)


def saved(one: Scene, path: Path) -> Run:
    """Write a scene to a run directory."""
    info = RunInfo(
        cell="scene",
        seed=1,
        rounds=ROUNDS,
        clients=tuple(f"client {m}" for m in range(CLIENTS)),
        num_classes=CLASSES,
        dim=DIM,
    )
    run = Run.create(path, info)
    run.write_questions(records=one.records, reference=one.reference, canaries=one.canaries)
    run.write_answers(members=one.members, canary_signs=one.signs)
    for t in range(ROUNDS):
        run.commit(t, [r for r in one.releases if r.round == t])
    return run


def score_of_folder(attack: AbstractAttack, path: Path) -> np.ndarray:
    run = Run(path)
    asked = run.records(attack.asks_about)
    assert asked is not None
    return attack.score(run.transcript().seen_by_server(run.records("reference")), asked)


@every_attack
def test_candidates_that_have_nothing_to_do_with_the_run_score_by_chance(
    attack, noisy, plain, clustered, plain_clusters
):
    strangers = population(77, 100)
    if attack.asks_about == "canaries":
        strangers = canary.design(clients=CLIENTS, count=300, dim=DIM, norm=3.0, num_classes=CLASSES, seed=77)
        strangers = replace(strangers, labels=np.full(len(strangers), CLASSES))
    members = np.random.default_rng(5).permutation(len(strangers)) % 2 == 0
    for one in (noisy, plain, clustered, plain_clusters):
        area = float(roc_auc_score(members, attack.score(one.view, strangers)))
        assert abs(area - 0.5) < 1.96 * standard_error(members)


@every_attack
def test_members_of_an_undefended_run_never_score_below_chance(attack, plain, plain_clusters):
    """The declared direction: higher means member."""
    for one in (plain, plain_clusters):
        asked, members = one.asked(attack)
        area = float(roc_auc_score(members, attack.score(one.view, asked)))
        assert area > 0.5 - 3 * standard_error(members)


@pytest.mark.parametrize(
    "name",
    [
        ("attacks.membership", "cosine"),
        ("attacks.membership", "likelihood_ratio"),
        ("attacks.canary", "antipodal"),
    ],
)
def test_these_attacks_find_the_members_of_an_undefended_run(name, plain):
    attack = build(*name)
    asked, members = plain.asked(attack)
    area = float(roc_auc_score(members, attack.score(plain.view, asked)))
    assert area > 0.5 + 5 * standard_error(members)


@every_attack
def test_the_defense_costs_the_attack_some_of_its_success(attack, plain, noisy):
    asked, members = plain.asked(attack)
    bare, defended = (roc_auc_score(members, attack.score(s.view, asked)) for s in (plain, noisy))
    assert bare > defended - 3 * standard_error(members)


# ---------------------------------------------------------------------- what can be missing

Change = Callable[[Release], Release]


def payload(release: Release) -> Prototypes:
    assert isinstance(release.payload, Prototypes)
    return release.payload


def without_counts(release: Release) -> Release:
    return replace(release, payload=replace(payload(release), counts=None))


def without_classes(release: Release) -> Release:
    return replace(release, payload=payload(release).only(payload(release).labels < 0))


def without_clip_norm(release: Release) -> Release:
    assert isinstance(release.event, Gaussian)
    return replace(
        release, event=replace(release.event, contract=replace(release.event.contract, clip_norm=None))
    )


def of_unknown_noise(release: Release) -> Release:
    return replace(release, event=PureDP(epsilon=1.0))


def of_another_kind(release: Release) -> Release:
    return replace(release, payload=Head(weights=np.ones((CLASSES, DIM))))


def of_weights(release: Release) -> Release:
    named = {"head.weight": np.ones((DIM, CLASSES))}
    return replace(release, payload=Update(named=named, means="weights"))


CHANGES = {
    without_counts: "the record counts behind the prototypes were not released",
    without_clip_norm: "the noise of Gaussian is not known per coordinate",
    of_unknown_noise: "the noise of PureDP is not known per coordinate",
    without_classes: "client 0 released no prototype of class",
    of_another_kind: "clients sent classifier heads, not prototypes",
    of_weights: "clients sent trained weights, not prototypes",
}
NEEDED_BY_ALL = (without_classes, of_another_kind, of_weights)
each_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)


def changed(one: Scene, change: Change) -> ServerView:
    return replace(one, releases=tuple(change(release) for release in one.releases)).view


@every_attack
@each_change
def test_what_is_missing_is_said_in_a_sentence_or_not_needed(attack, noisy, change):
    view, (asked, _) = changed(noisy, change), noisy.asked(attack)
    if change in NEEDED_BY_ALL:
        with pytest.raises(NotApplicableError, match=CHANGES[change]):
            attack.score(view, asked)
        return
    try:
        scores = attack.score(view, asked)
    except NotApplicableError:
        return
    assert scores.shape == (len(asked),)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    "name", [("attacks.membership", "likelihood_ratio"), ("attacks.canary", "antipodal")]
)
@each_change
def test_the_attacks_that_use_the_known_noise_need_all_of_it(name, noisy, change):
    attack = build(*name)
    with pytest.raises(NotApplicableError, match=CHANGES[change]):
        attack.score(changed(noisy, change), noisy.asked(attack)[0])


@every_attack
def test_a_run_without_any_release_is_not_applicable(attack, noisy):
    view = ServerView(releases=(), reference=noisy.reference)
    with pytest.raises(NotApplicableError, match="client 0 released no prototype"):
        attack.score(view, noisy.asked(attack)[0])


@every_attack
def test_what_was_sent_instead_is_said_before_anything_that_would_be_no_help(attack, noisy):
    view = replace(changed(noisy, of_weights), reference=None)
    with pytest.raises(NotApplicableError, match=r"^clients sent trained weights, not prototypes$"):
        attack.score(view, noisy.asked(attack)[0])


@every_attack
def test_reference_records_are_asked_for_by_the_attack_that_needs_them(attack, noisy):
    view, (asked, _) = replace(noisy.view, reference=None), noisy.asked(attack)
    if attack.threat.tier == "shadow":
        with pytest.raises(NotApplicableError, match="owns no reference records; set split"):
            attack.score(view, asked)
    else:
        assert np.array_equal(attack.score(view, asked), attack.score(noisy.view, asked))


@pytest.mark.parametrize(
    ("keep", "reason"),
    [
        (lambda r: r.labels != 1, "owns no reference record of class 1; set split"),
        (
            lambda r: np.arange(len(r)) < 5,
            "^5 of . classes are too few reference records .* needed in .*; set split",
        ),
        (lambda r: r.clients == 5, "too few reference records to estimate a covariance"),
    ],
)
def test_too_few_reference_records_are_not_applicable(noisy, keep, reason):
    attack = build("attacks.membership", "likelihood_ratio")
    with pytest.raises(NotApplicableError, match=reason):
        attack.score(
            replace(noisy.view, reference=noisy.reference.where(keep(noisy.reference))), noisy.records
        )
