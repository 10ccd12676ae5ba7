"""Partitions: private ones keep their budget, free ones look at nothing private, and the meter is right."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accountant import bounded_range
from accountant.accountants import smallest
from accountant.contract import DependsOn
from accountant.events import Composed, Event, GaussianTopK, GroupGaussian, GumbelTopK, TopK, leaves
from accountant.gaussian import mu_from_epsilon
from accountant.groupwise import Allocation
from accountant.vpp import SplitCalibration
from privkit import plug
from privkit.defenses._base import Known
from privkit.defenses.vpp import Vpp
from privkit.defenses.vpp_early import VppEarly
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import NoNoise, SecureNoise, SeededNoise
from privkit.partitions._base import AbstractPartition, Memory
from privkit.partitions._overlap import overlap
from privkit.partitions._scores import discriminability
from privkit.partitions._selection import AbstractSelection
from privkit.partitions.gaussian import Gaussian
from privkit.partitions.gumbel import Gumbel, _range_from_mu
from privkit.partitions.history import History
from privkit.partitions.oracle import Oracle
from privkit.partitions.public import Public
from privkit.partitions.random import Random
from privkit.release import Prototypes
from privkit.store import Run
from privkit.study import load
from privkit.train.loop import train

DIM, SIZE, CLASSES = 60, 6, 4
LABELS = np.repeat(np.arange(CLASSES, dtype=np.int64), [25, 30, 40, 25])


def held(seed: int = 0, *, lift: float = 3.0, where: slice = slice(0, SIZE), dim: int = DIM) -> Embeddings:
    """Return records of length 1 or so, some of whose coordinates tell their class."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((len(LABELS), dim))
    centres = lift * np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]] * 2).T
    vectors[:, where] += centres[LABELS]
    return Embeddings(vectors=vectors / dim**0.5, labels=LABELS, encoder=DependsOn.PUBLIC)


def source(seed: int = 0) -> SeededNoise:
    return SeededNoise(np.random.default_rng(seed))


def run(defense: Vpp, *, rounds: int, seed: int = 0, lift: float = 3.0) -> tuple[list[Event], list[float]]:
    """Return the events and the overlaps of some rounds of one client."""
    mechanism, noise, known = defense.mechanism(rounds=rounds), source(seed), Known(public=held(99))
    events, overlaps = [], []
    for _ in range(rounds):
        sent = mechanism.privatize(held(seed, lift=lift), noise, known)
        assert sent.event == mechanism.event(held(7), known)
        known = known._replace(memory=mechanism.remember(known, sent))
        events.append(sent.event)
        assert sent.hidden.overlap is not None
        overlaps.append(float(sent.hidden.overlap[0]))
    return events, overlaps


# ---------------------------------------------------------------------- private selections

SELECTIONS = [cls for _, cls in plug.every("privkit.partitions") if issubclass(cls, AbstractSelection)]
PRIVATE = [cls(once=once) for once in (False, True) for cls in SELECTIONS]
every_private = pytest.mark.parametrize("partition", PRIVATE, ids=lambda p: f"{p.name}{' once' * p.once}")


@every_private
@pytest.mark.parametrize(("epsilon", "rounds"), [(0.1, 3), (1.0, 1), (1.0, 10), (8.0, 10), (50.0, 2)])
def test_all_rounds_together_keep_the_budget_and_use_it(partition, epsilon, rounds):
    events, _ = run(Vpp(epsilon=epsilon, rho=0.1, partition=partition), rounds=rounds)
    spent = smallest(Composed(events=tuple(events)), delta=1e-5).epsilon
    assert 0.9 * epsilon < spent <= epsilon
    chosen = [leaf for event in events for leaf, _ in leaves(event) if isinstance(leaf, TopK)]
    assert len(chosen) == (1 if partition.once else rounds)


@every_private
@pytest.mark.parametrize(("epsilon", "rounds"), [(1.0, 10), (8.0, 10), (8.0, 1)])
def test_releases_get_no_more_noise_than_the_papers_split_gives_them(partition, epsilon, rounds):
    joint = Vpp(epsilon=epsilon, partition=partition).mechanism(rounds=rounds).noise_multiplier
    split = Vpp(epsilon=epsilon, calibration=SplitCalibration.SPLIT).mechanism(rounds=rounds).noise_multiplier
    assert joint <= split * (1 + 1e-9)


@pytest.mark.parametrize(
    ("partition", "rounds", "epsilon", "std"),
    [
        (Gumbel(score_bound=1.0), 50, 1.0, 732),
        (Gumbel(score_bound=1.0), 1, 8.0, 17.4),
        (Gaussian(score_bound=1.0), 50, 1.0, 1428),
        (Gaussian(score_bound=1.0), 1, 8.0, 33.9),
    ],
)
def test_noise_on_a_score_is_that_of_the_specification(partition, rounds, epsilon, std):
    """The table of the accounting specification, k = 52 of 512, r = 0.1."""
    budget = partition.budget(epsilon=epsilon, delta=1e-5, rounds=rounds)
    cost = partition.cost(budget, size=52, dim=512, memory={})
    spread = np.pi / 6**0.5 if isinstance(cost, GumbelTopK) else 1.0
    assert cost.scale * spread == pytest.approx(std, rel=3e-3)


@every_private
@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1])
def test_a_share_that_is_none_is_refused(partition, bad):
    with pytest.raises(InputError, match=f"partition {partition.name}: split={bad}"):
        plug.build("privkit.partitions", {"name": partition.name, "split": bad})


@given(eta=st.floats(1e-9, 200.0))
def test_the_range_of_a_pick_is_the_inverse_of_its_mu(eta):
    assert _range_from_mu(bounded_range.mu(eta=eta)) == pytest.approx(eta, rel=1e-9)


def test_gumbel_noise_is_gumbel_from_any_source():
    for noise in (source(3), SecureNoise()):
        drawn = Gumbel().draw(noise, (20_000,))
        assert stats.kstest(drawn, stats.gumbel_r.cdf).pvalue > 1e-4
    assert len(set(Gumbel().draw(NoNoise(), (5,)).tolist())) == 1  # no draw: no score is preferred


def test_a_pick_is_the_exponential_mechanism():
    """With one coordinate selected, each is drawn with probability proportional to exp(score / scale)."""
    embeddings, draws = held(lift=0.05, where=slice(0, SIZE), dim=7), 20_000
    partition = Gumbel(score_bound=100.0)
    cost = GumbelTopK(k=1, dim=7, score_bound=100.0, scale=1.5)
    noise = source(2)
    ask = {"size": 1, "cost": cost, "public": None, "memory": {}, "noise": noise}
    hits = sum(partition.choose(embeddings, **ask) for _ in range(draws)) / draws
    f = np.minimum(scores_of(embeddings), 100.0) / 1.5
    wanted = np.exp(f - f.max()) / np.exp(f - f.max()).sum()
    np.testing.assert_allclose(hits, wanted, atol=5 * 0.5 / draws**0.5)


def scores_of(embeddings: Embeddings) -> np.ndarray:
    """Return F statistics with a stabiliser, one coordinate at a time."""
    groups = [embeddings.vectors[embeddings.labels == c] for c in range(CLASSES)]
    n = len(embeddings.labels)
    grand = embeddings.vectors.mean(0)
    between = sum(len(g) * (g.mean(0) - grand) ** 2 for g in groups) / (CLASSES - 1)
    within = sum(((g - g.mean(0)) ** 2).sum(0) for g in groups) / (n - CLASSES)
    return np.asarray(between / (within + 1e-6))


@pytest.mark.parametrize("median", [0.0, 1e-3])
@pytest.mark.parametrize("zeta", [0.0, 1e-6])
@pytest.mark.parametrize("size", [1e-200, 1e-20, 1e20, 1e154, 1e200, 1e307])
def test_a_score_is_at_least_zero_and_finite_whatever_the_size_of_the_records(size, zeta, median):
    some = held()
    vectors = some.vectors.copy()
    vectors[:, :3] *= size
    vectors[:, 3], vectors[:, 4], vectors[:, 5] = size, -size * LABELS, np.where(LABELS, 0.0, size)
    scores_d = discriminability(some.with_vectors(vectors), stabiliser=zeta, stabiliser_of_median=median)
    assert (scores_d >= 0).all()
    assert np.isfinite(scores_d).all()
    if size > 1e10 and not median:  # next to such a spread the stabiliser is nothing
        expected_d = discriminability(some, stabiliser=0.0)
        assert scores_d[:3] == pytest.approx(expected_d[:3], rel=1e-9)
        assert (scores_d[4:6] > 1e10).all() or zeta == 0
    for clip in ("groupwise", "ellipsoid"):
        defense = Vpp(epsilon=1.0, clip=clip, partition=Gumbel(stabiliser=zeta, stabiliser_of_median=median))
        sent = defense.mechanism(rounds=1).privatize(some.with_vectors(vectors), source())
        assert np.isfinite(sent.payload.vectors).all()


def test_a_score_does_not_depend_on_how_records_are_scaled_when_the_stabiliser_does_too():
    one = discriminability(held(), stabiliser=1e-6)
    two = discriminability(held().with_vectors(2.0**20 * held().vectors), stabiliser=1e-6 * 2.0**40)
    assert np.array_equal(one, two)
    assert one == pytest.approx(scores_of(held()), rel=1e-9)


@pytest.mark.parametrize("partition", [Gumbel(score_bound=50.0), Gaussian(score_bound=50.0)])
def test_private_selections_find_the_truth_only_at_a_huge_budget(partition):
    _, huge = run(Vpp(epsilon=1e4, rho=0.1, partition=partition), rounds=1)
    assert huge == [1.0]
    found = [run(Vpp(epsilon=0.5, rho=0.1, partition=partition), rounds=10, seed=s)[1] for s in range(30)]
    assert abs(np.mean(found) - 0.1) < 4 * np.std(found) / 300**0.5


@pytest.mark.parametrize("partition", [Gumbel(), Gaussian()])
def test_a_linear_split_needs_a_pure_selection(partition):
    defense = Vpp(epsilon=1.0, partition=partition, calibration=SplitCalibration.SPLIT)
    with pytest.raises(
        InputError, match=f"with a pure selection, and partition {partition.name} is none; use"
    ):
        defense.mechanism(rounds=2)


# ---------------------------------------------------------------------- the client's own history


def remembered(messages: list[np.ndarray], chosen: list[np.ndarray]) -> Memory:
    memory: Memory = {}
    for vectors, informative in zip(messages, chosen, strict=True):
        payload = Prototypes(vectors=vectors, labels=np.arange(len(vectors)), counts=None)
        memory = History().remember(memory, payload, informative)
    return memory


def choice(memory: Memory, *, embeddings: Embeddings, size: int = SIZE, seed: int = 0) -> np.ndarray:
    asked: dict[str, Any] = {"size": size, "cost": None, "public": None}
    return History().choose(embeddings, **asked, memory=memory, noise=source(seed))


@given(seed=st.integers(0, 999), rounds=st.integers(2, 6))
def test_history_chooses_by_the_agreement_of_every_pair_of_rounds(seed, rounds):
    """A naive twin: the weighted mean of products over all ordered pairs of two different rounds."""
    rng = np.random.default_rng(seed)
    messages = [rng.standard_normal((3, 10)) for _ in range(rounds)]
    chosen = [rng.permutation(10) < 2 for _ in range(rounds)]
    ratios = Allocation(sizes=(2, 8)).noise_ratios
    score = np.zeros(10)
    for j in range(10):
        x = [m[:, j] - m[:, j].mean() for m in messages]
        a = [(ratios[0] if c[j] else ratios[1]) ** -2 for c in chosen]
        pairs = list(itertools.permutations(range(rounds), 2))
        total = math.fsum(a[s] * a[t] * float(x[s] @ x[t]) for s, t in pairs)
        score[j] = total / math.fsum(a[s] * a[t] for s, t in pairs)
    wanted = np.isin(np.arange(10), np.argsort(-score)[:2])
    assert (choice(remembered(messages, chosen), embeddings=held(dim=10), size=2) == wanted).all()


def test_the_first_two_rounds_of_history_are_drawn_without_a_look_at_any_record():
    rng = np.random.default_rng(1)
    one_round = remembered([rng.standard_normal((3, DIM))], [np.arange(DIM) < SIZE])
    for memory in ({}, one_round):
        one, two = (choice(memory, embeddings=held(s), seed=4) for s in (1, 2))
        assert (one == two).all()
        assert (one != choice(memory, embeddings=held(1), seed=5)).any()


def test_history_reads_what_was_sent_and_no_record():
    """Private data are changed while what was sent is held fixed: nothing about the choice changes."""
    mechanism = Vpp(epsilon=8.0, rho=0.1, partition=History()).mechanism(rounds=4)
    noise, known = source(), Known()
    for _ in range(3):
        sent = mechanism.privatize(held(), noise, known)
        known = known._replace(memory=mechanism.remember(known, sent))
        other = sent._replace(hidden=sent.hidden._replace(means=sent.hidden.means + 5.0))
        again = mechanism.remember(known._replace(memory=known.memory), other)
        assert all(np.array_equal(again[k], mechanism.remember(known, sent)[k]) for k in again)
    one, two = (mechanism.privatize(held(s, lift=-9.0), source(8), known).hidden.groups for s in (1, 2))
    assert (one == two).all()
    assert isinstance(mechanism.event(held(), known), GroupGaussian)


def test_history_does_not_look_at_canaries_or_counts():
    mechanism = Vpp(epsilon=8.0, rho=0.1, partition=History()).mechanism(rounds=4)
    known = Known(classes=CLASSES)
    sent = mechanism.privatize(held(), source(), known)
    with_canaries = Prototypes(
        vectors=np.vstack([sent.payload.vectors, np.full((1, DIM), 99.0, np.float32)]),
        labels=np.append(sent.payload.labels, CLASSES),
        counts=np.full(CLASSES + 1, 77),
    )
    one, two = (mechanism.remember(known, sent._replace(payload=p)) for p in (sent.payload, with_canaries))
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_history_starts_again_when_other_classes_are_sent():
    rng = np.random.default_rng(0)
    memory = remembered([rng.standard_normal((3, 8)) for _ in range(3)], [np.arange(8) < 2] * 3)
    payload = Prototypes(vectors=rng.standard_normal((2, 8)), labels=np.array([0, 2]), counts=None)
    assert History().remember(memory, payload, np.arange(8) < 2)["rounds"].tolist() == [1.0]


def late(epsilon: float, *, seeds: int, rounds: int = 30) -> np.ndarray:
    """Return the overlap in the last third of some runs."""
    runs = [
        run(Vpp(epsilon=epsilon, rho=0.1, partition=History()), rounds=rounds, seed=s)[1]
        for s in range(seeds)
    ]
    return np.array(runs)[:, -rounds // 3 :]


def test_history_finds_the_truth_when_rounds_show_it_and_chance_when_they_do_not():
    _, found = run(Vpp(epsilon=50.0, rho=0.1, partition=History()), rounds=30)
    assert np.mean(found[:2]) < 0.5
    assert late(50.0, seeds=5).mean() > 0.9
    nothing = late(0.05, seeds=40).mean(1)
    assert abs(nothing.mean() - 0.1) < 4 * nothing.std() / 40**0.5


class KilledError(Exception):
    """What ends a training early."""


@pytest.mark.parametrize("partition", ["history", {"name": "gumbel", "once": True}])
def test_what_a_partition_remembers_survives_a_kill(tmp_path, partition):
    path = tmp_path / "study.yaml"
    study = {
        "data": {"name": "digits", "per_class": 40},
        "encoder": {"name": "usps_cnn"},
        "rounds": 5,
        "method": {"name": "fedproto", "predict": "prototype"},
        "defense": {"name": "vpp", "epsilon": 20.0, "partition": partition},
    }
    path.write_text(yaml.safe_dump(study), encoding="utf-8")

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "train" and done == 3:
            raise KilledError

    train(load(path), tmp_path / "whole", device="cpu")
    with pytest.raises(KilledError):
        train(load(path), tmp_path / "killed", device="cpu", progress=stop)
    assert Run(tmp_path / "killed").completed == 3
    train(load(path), tmp_path / "killed", device="cpu")
    assert Run(tmp_path / "killed").anchor == Run(tmp_path / "whole").anchor


# ---------------------------------------------------------------------- public records


def test_public_scores_public_records_only():
    asked: dict[str, Any] = {"size": SIZE, "cost": None, "memory": {}, "noise": source()}
    one, two = (Public().choose(held(s, where=slice(20, 26)), public=held(9), **asked) for s in (1, 2))
    assert (one == two).all()
    assert np.flatnonzero(one).tolist() == list(range(SIZE))
    with pytest.raises(InputError, match=r"there are none; set split\.reference above 0"):
        Public().choose(held(), public=None, **asked)


# ---------------------------------------------------------------------- the meter


def test_the_meter_is_one_for_the_oracle_and_chance_for_a_coin():
    assert run(Vpp(epsilon=1.0, rho=0.1, partition=Oracle()), rounds=2)[1] == [1.0, 1.0]
    coin = np.concatenate(
        [run(Vpp(epsilon=1.0, rho=0.1, partition=Random()), rounds=10, seed=s)[1] for s in range(30)]
    )
    assert abs(coin.mean() - 0.1) < 4 * coin.std() / 300**0.5


def test_the_meter_counts_and_says_nothing_where_nothing_is_discriminative():
    half = np.isin(np.arange(DIM), [0, 1, 2, 30, 31, 32])
    found = overlap(held(), half)
    assert found is not None
    assert found.tolist() == [0.5]
    alone = Embeddings(vectors=np.eye(4), labels=np.zeros(4, np.int64), encoder=DependsOn.PUBLIC)
    assert overlap(alone, np.arange(4) < 2) is None


def test_the_meter_leaves_canaries_out():
    canaries = np.zeros((4, DIM))
    canaries[:, 50:] = 40.0 * np.array([1, -1, 1, -1])[:, None]
    planted = held().with_records(canaries, np.array([CLASSES, CLASSES, CLASSES + 1, CLASSES + 1]))
    mechanism = Vpp(epsilon=1.0, rho=0.1, partition=Public()).mechanism(rounds=1)
    known = Known(classes=CLASSES, public=held(9))
    assert mechanism.privatize(planted, source(), known).hidden.overlap == np.ones(1)


@pytest.mark.parametrize("partition", plug.names("privkit.partitions"))
def test_a_run_with_canaries_chooses_as_one_without(partition):
    """At an epsilon at which scores decide: canaries far out separate other coordinates than the records do."""
    canaries = np.zeros((4, DIM))
    canaries[:, 50:] = 40.0 * np.array([1, 1, -1, -1])[:, None]
    planted = held().with_records(canaries, np.array([CLASSES, CLASSES, CLASSES + 1, CLASSES + 1]))
    chooses = plug.build("privkit.partitions", partition)
    assert isinstance(chooses, AbstractPartition)
    if isinstance(chooses, AbstractSelection):
        chooses = chooses.model_copy(update={"score_bound": 1e4})  # so that large scores are told apart
    mechanism = Vpp(epsilon=1e8, rho=0.1, partition=chooses).mechanism(rounds=1)
    known = Known(classes=CLASSES, public=held(9))
    with_them, without = (mechanism.privatize(some, source(), known) for some in (planted, held()))
    assert np.array_equal(with_them.hidden.groups, without.hidden.groups)
    assert with_them.event == without.event
    assert mechanism.event(planted, known) == with_them.event
    assert len(with_them.payload.labels) == CLASSES + 2


def test_canaries_choose_nothing_in_the_early_version_either():
    canaries = np.zeros((4, DIM))
    canaries[:, 50:] = 40.0 * np.array([1, 1, -1, -1])[:, None]
    planted = held().with_records(canaries, np.array([CLASSES, CLASSES, CLASSES + 1, CLASSES + 1]))
    mechanism, known = VppEarly(epsilon=1e8, rho=0.1).mechanism(rounds=1), Known(classes=CLASSES)
    with_them, without = (mechanism.privatize(some, NoNoise(), known) for some in (planted, held()))
    assert np.array_equal(with_them.hidden.groups, without.hidden.groups)
    # and records are clipped by the same private choice
    assert np.array_equal(with_them.payload.vectors[:CLASSES], without.payload.vectors)
    assert len(with_them.payload.labels) == CLASSES + 2
    everyone = mechanism.privatize(planted, NoNoise(), Known())
    assert not np.array_equal(everyone.hidden.groups, without.hidden.groups), "canaries would decide"


def test_what_the_leftover_is():
    budget = Gumbel(split=0.1).budget(epsilon=1.0, delta=1e-5, rounds=10)
    left = mu_from_epsilon(epsilon=1.0, delta=1e-5) ** 2 - mu_from_epsilon(epsilon=0.9, delta=1e-5) ** 2
    assert 10 / budget.noise_multiplier**2 == pytest.approx(left, rel=1e-9)
    cost = Gaussian(split=0.1).cost(budget, size=5, dim=40, memory={})
    assert isinstance(cost, GaussianTopK)
    assert cost.mu <= 1 / budget.noise_multiplier
