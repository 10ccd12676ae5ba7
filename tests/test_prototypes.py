"""How the records of a class become prototypes: what every rule keeps to, FINCH against other code, and k-means."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from accountant.claims import claim
from accountant.contract import DependsOn
from accountant.counterexamples.e06_finch import circle, first_partition
from accountant.events import leaves
from privkit import plug
from privkit.defenses._base import Known
from privkit.defenses._means import class_means
from privkit.defenses.igpp import Igpp
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import NoNoise
from privkit.prototypes import _first_neighbours
from privkit.prototypes._base import AbstractPrototypes
from privkit.prototypes._first_neighbours import means, partitions
from privkit.prototypes.finch import Finch
from privkit.prototypes.kmeans import KMeans
from privkit.prototypes.mean import Mean
from privkit.release import Prototypes

PACKAGE = "privkit.prototypes"
EXAMPLES: tuple[AbstractPrototypes, ...] = (
    *(plug.build(PACKAGE, name) for name in plug.names(PACKAGE)),  # pyright: ignore[reportAssignmentType]
    Finch(partition="first"),
    Finch(early_exit=True),
    KMeans(clusters=1),
    KMeans(ratio=1.0, restarts=3),
)
every_rule = pytest.mark.parametrize("rule", EXAMPLES, ids=repr)
PRIVATE = [rule for rule in EXAMPLES if not isinstance(rule, Mean)]


def drawn(seed: int, n: int, d: int, *, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)) + shift


def partition_of(cluster: np.ndarray) -> set[frozenset[int]]:
    """Return the clusters as sets of rows, whatever their numbers."""
    return {frozenset(np.flatnonzero(cluster == k).tolist()) for k in np.unique(cluster)}


@st.composite
def records(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw a client's records: few or many, some equal, some zero, classes of one or two among them."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    vectors = draw(arrays(np.float64, (n, d), elements=st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0])))
    return vectors, draw(arrays(np.int64, n, elements=st.sampled_from([0, 2, 7])))


# ---------------------------------------------------------------------- every rule


@every_rule
def test_settings_build_the_same_rule_again(rule):
    assert plug.build(PACKAGE, rule.settings()) == rule


@every_rule
@given(held=records())
def test_clusters_of_each_class_are_numbered_from_0_without_gaps(rule, held):
    vectors, labels = held
    cluster = rule.assign(vectors, labels)
    assert cluster.dtype == np.int64
    for label in np.unique(labels):
        mine = cluster[labels == label]
        assert np.array_equal(np.unique(mine), np.arange(mine.max() + 1))
    assert np.array_equal(rule.assign(vectors, labels), cluster)


@every_rule
@given(held=records())
def test_a_class_is_divided_by_itself(rule, held):
    vectors, labels = held
    cluster = rule.assign(vectors, labels)
    for label in np.unique(labels):
        mine = labels == label
        assert np.array_equal(rule.assign(vectors[mine], labels[mine]), cluster[mine])


@every_rule
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("fill", [0.0, 1.0, None])
def test_classes_of_one_and_two_records_are_divided(rule, n, fill):
    vectors = drawn(0, n, 3) if fill is None else np.full((n, 3), fill)
    assert rule.assign(vectors, np.zeros(n, dtype=np.int64)).max() < n


@every_rule
def test_equal_records_are_one_prototype(rule):
    vectors = np.tile(drawn(3, 1, 17), (40, 1))
    assert not rule.assign(vectors, np.zeros(40, dtype=np.int64)).any()


@every_rule
def test_records_of_zeros_are_one_prototype(rule):
    assert not rule.assign(np.zeros((9, 5)), np.zeros(9, dtype=np.int64)).any()


@every_rule
def test_prototypes_weighted_by_their_sizes_average_to_the_class_mean(rule):
    labels = np.repeat([0, 4], [30, 11])
    held = Embeddings(vectors=drawn(1, 41, 6, shift=1.0), labels=labels, encoder=DependsOn.PUBLIC)
    found = class_means(held, Known(summary=rule))
    for label in (0, 4):
        mine = found.labels == label
        assert found.counts[mine].sum() == (labels == label).sum()
        np.testing.assert_allclose(
            found.counts[mine] @ found.vectors[mine] / found.counts[mine].sum(),
            held.vectors[labels == label].mean(0),
            rtol=1e-12,
        )


# ---------------------------------------------------------------------- what it does to a claim


def released(rule: AbstractPrototypes, *, least: int = 2, n: int = 40) -> tuple[Prototypes, Any]:
    held = Embeddings(
        vectors=drawn(5, n, 8, shift=0.5), labels=np.zeros(n, np.int64), encoder=DependsOn.PUBLIC
    )
    mechanism = Igpp(epsilon=1.0, smallest_class=least).mechanism(rounds=2)
    sent = mechanism.privatize(held, NoNoise(), Known(summary=rule))
    return sent.payload.prototypes(), sent.event


@pytest.mark.parametrize("rule", PRIVATE, ids=repr)
def test_clusters_of_private_records_break_the_assumption_on_grouping(rule):
    _, event = released(rule)
    assert {leaf.contract.assignment for leaf, _ in leaves(event)} == {DependsOn.PRIVATE_STATE}
    found = claim(event, delta=1e-5)
    assert not found.covered
    assert {one.id: one.epsilon for one in found.broken} == {"A5": np.inf}
    assert claim(released(Mean())[1], delta=1e-5).covered


def test_the_smallest_class_counts_records_of_the_class_and_not_of_its_clusters():
    sent, _ = released(KMeans(clusters=20), least=40)
    assert len(sent.labels) == 20
    assert sent.counts is not None
    assert sent.counts.min() < 40
    with pytest.raises(InputError, match="class 0 of a client has 39 records, and smallest_class is 40"):
        released(KMeans(clusters=20), least=40, n=39)


# ---------------------------------------------------------------------- FINCH


@pytest.fixture(scope="module")
def authors_finch() -> Callable[..., Any]:
    """The authors' own code, PyPI finch-clust."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an optional package that is not there
        pytest.importorskip("finch", reason="needs finch-clust, the authors' code")
        return importlib.import_module("finch").FINCH


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 23, 57, 135, 600])
def test_every_partition_is_that_of_the_authors_code(authors_finch, n, shift):
    for seed in range(12):
        vectors = drawn(seed, n, int(np.random.default_rng(seed).integers(2, 40)), shift=shift)
        theirs, counts, _ = authors_finch(vectors, ensure_early_exit=False, verbose=False)
        ours = partitions(vectors)
        assert len(ours) == len(counts)
        for level, (mine, count) in enumerate(zip(ours, counts, strict=True)):
            assert mine.max() + 1 == count
            assert partition_of(mine) == partition_of(theirs[:, level])


def test_the_coarsest_partition_is_the_one_with_the_fewest_clusters(authors_finch):
    for seed in range(40):
        vectors = drawn(seed, 60, 12)
        theirs, counts, _ = authors_finch(vectors, verbose=False)
        found = Finch().clusters(vectors)
        assert partition_of(found) == partition_of(theirs[:, int(np.argmin(counts))])


def test_the_published_early_exit_has_no_effect(authors_finch):
    """Why the field's default is off, which is what published code computes either way."""
    for seed in range(60):
        vectors = drawn(seed, 80, 5, shift=float(seed % 2))
        on, off = (authors_finch(vectors, ensure_early_exit=e, verbose=False) for e in (True, False))
        assert on[1] == off[1]
        assert np.array_equal(on[0], off[0])


@given(seed=st.integers(0, 10_000), n=st.integers(2, 40), d=st.integers(2, 6))
def test_the_first_partition_is_that_of_the_counterexample(seed, n, d):
    vectors = drawn(seed, n, d)
    assert partition_of(partitions(vectors)[0]) == partition_of(first_partition(vectors))
    assert partition_of(Finch(partition="first").clusters(vectors)) == partition_of(first_partition(vectors))


def naive_partitions(vectors: np.ndarray, *, early_exit: bool) -> list[np.ndarray]:
    """Return every partition, written out with sets of rows."""

    def cosine_distance(a: np.ndarray, b: np.ndarray) -> float:
        return float(1 - a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))

    def one_pass(groups: list[set[int]], furthest: float) -> tuple[list[set[int]], float]:
        centres = [vectors[sorted(group)].mean(0) for group in groups]
        longest, merged = 0.0, [set(group) for group in groups]
        for i, centre in enumerate(centres):
            gaps = {j: cosine_distance(centre, other) for j, other in enumerate(centres) if j != i}
            j = min(gaps, key=lambda other: gaps[other])
            longest = max(longest, gaps[j])
            if gaps[j] > furthest:
                continue
            one = next(m for m in merged if groups[i] <= m)
            two = next(m for m in merged if groups[j] <= m)
            if one is not two:
                merged = [m for m in merged if m is not one and m is not two] + [one | two]
        return merged, longest

    groups, longest = one_pass([{i} for i in range(len(vectors))], np.inf)
    found = [groups]
    while len(groups) > 1:
        groups, _ = one_pass(groups, longest if early_exit else np.inf)
        if len(groups) == 1 or len(found[-1]) - len(groups) <= 1:
            break
        found.append(groups)
    return [
        np.array([next(k for k, g in enumerate(gs) if i in g) for i in range(len(vectors))]) for gs in found
    ]


@pytest.mark.parametrize("early_exit", [False, True])
@given(seed=st.integers(0, 10_000), n=st.integers(2, 60), d=st.integers(2, 5))
def test_every_partition_is_that_of_sets_of_rows(early_exit, seed, n, d):
    vectors = drawn(seed, n, d)
    ours, naive = partitions(vectors, early_exit=early_exit), naive_partitions(vectors, early_exit=early_exit)
    assert [partition_of(mine) for mine in ours] == [partition_of(theirs) for theirs in naive]


def test_early_exit_keeps_apart_what_is_further_than_any_first_neighbour():
    pairs = circle((0.0, 1.0, 30.0, 31.0, 90.0, 91.0, 130.0, 131.0))
    assert len(np.unique(Finch().clusters(pairs))) == 2
    assert len(np.unique(Finch(early_exit=True).clusters(pairs))) == 4


def test_one_record_decides_how_many_prototypes_there_are():
    before = circle((0.0, 1.0, 2.0, 50.0, 90.0))
    after = circle((0.0, 25.0, 2.0, 50.0, 90.0))
    assert [len(np.unique(Finch().clusters(points))) for points in (before, after)] == [2, 1]


@given(seed=st.integers(0, 1000), n=st.integers(1, 30), scale=st.sampled_from([1e-100, 1e-3, 7.0, 1e150]))
def test_lengths_do_not_matter_to_the_first_partition(seed, n, scale):
    vectors = drawn(seed, n, 4)
    lengths = scale * np.random.default_rng(seed).uniform(0.5, 2.0, (n, 1))
    assert partition_of(partitions(vectors)[0]) == partition_of(partitions(vectors * lengths)[0])


@given(seed=st.integers(0, 1000), n=st.integers(1, 30))
def test_order_does_not_matter_where_no_two_are_equally_near(seed, n):
    vectors, order = drawn(seed, n, 4), np.random.default_rng(seed).permutation(n)
    apart = partitions(vectors[order])[-1]
    assert partition_of(partitions(vectors)[-1][order]) == partition_of(apart)


def test_cosines_are_held_some_rows_at_a_time(monkeypatch):
    vectors = drawn(2, 301, 9)
    whole = partitions(vectors)
    monkeypatch.setattr(_first_neighbours, "_AT_ONCE", 1000)
    for one, other in zip(partitions(vectors), whole, strict=True):
        assert np.array_equal(one, other)


def test_means_of_clusters():
    vectors = np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 5.0]])
    np.testing.assert_array_equal(means(vectors, np.array([1, 1, 0])), [[5.0, 5.0], [2.0, 4.0]])


# ---------------------------------------------------------------------- k-means


@pytest.mark.parametrize(
    ("n", "ratio", "centres"),
    [(1, 0.1, 1), (10, 0.1, 1), (11, 0.1, 2), (30, 0.1, 3), (7, 1.0, 7), (50, 0.02, 1)],
)
def test_there_is_a_centre_for_so_many_records_rounded_up(n, ratio, centres):
    cluster = KMeans(ratio=ratio).assign(drawn(0, n, 5), np.zeros(n, dtype=np.int64))
    assert cluster.max() + 1 == centres


def test_centres_are_where_lloyds_iterations_stop():
    """Every record is in the cluster whose mean is nearest: no further iteration would move any."""
    vectors = drawn(4, 300, 3)
    cluster = KMeans(clusters=7).assign(vectors, np.zeros(300, dtype=np.int64))
    centres = means(vectors, cluster)
    distance = ((vectors[:, None] - centres) ** 2).sum(-1)
    assert np.array_equal(distance.argmin(1), cluster)


def test_heaps_far_apart_are_found():
    heaps = np.repeat(np.eye(4) * 100, 15, axis=0) + drawn(1, 60, 4)
    cluster = KMeans(clusters=4, restarts=5).assign(heaps, np.zeros(60, dtype=np.int64))
    assert partition_of(cluster) == partition_of(np.repeat(np.arange(4), 15))


def test_more_restarts_never_cost_more():
    vectors = drawn(9, 200, 2)

    def cost(restarts: int) -> float:
        cluster = KMeans(clusters=15, restarts=restarts).assign(vectors, np.zeros(200, dtype=np.int64))
        return float(((vectors - means(vectors, cluster)[cluster]) ** 2).sum())

    assert cost(20) < cost(1)


def test_more_centres_than_records_are_refused():
    labels = np.array([0, 0, 0, 5, 5], dtype=np.int64)
    with pytest.raises(
        InputError,
        match=r"class 5 of a client has 2 records, and clusters=3 centres are asked for: .* set ratio",
    ):
        KMeans(clusters=3).assign(drawn(0, 5, 2), labels)


@pytest.mark.parametrize(
    ("rule", "key", "value"),
    [
        ("kmeans", "ratio", 0.0),
        ("kmeans", "ratio", 1.5),
        ("kmeans", "clusters", 0),
        ("kmeans", "restarts", 0),
        ("finch", "partition", "middle"),
    ],
)
def test_an_impossible_setting_is_refused_by_name(rule, key, value):
    with pytest.raises(InputError, match=f"{rule}: {key}="):
        plug.build(PACKAGE, {"name": rule, key: value})
