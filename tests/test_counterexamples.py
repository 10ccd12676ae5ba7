"""Counterexamples: exact values against other ways to compute them, and runs of the mechanisms against both."""

import itertools
import math
from collections import Counter

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from accountant import counterexamples
from accountant.assumptions import ASSUMPTIONS
from accountant.counterexamples import Counterexample, _top1
from accountant.counterexamples._base import Records
from accountant.counterexamples._estimates import delta_from_losses, delta_of_event, proportion_interval
from accountant.counterexamples._gaussian import GaussianCounterexample, Release, losses, shift_over_noise
from accountant.counterexamples.e01_control import Control
from accountant.counterexamples.e02_label_change import LabelChange, label_change_factor
from accountant.counterexamples.e03_noise_scale import NoiseScale, directed_leaks, noise_scale_leak
from accountant.counterexamples.e04_class_disappears import ClassDisappears
from accountant.counterexamples.e05_kmeans import KMeans, example_points, kmeans_factor, optimal_means
from accountant.counterexamples.e06_finch import circle, first_partition
from accountant.counterexamples.e07_encoder import Encoder, encoder_factor, encoder_ratio
from accountant.counterexamples.e08_global_clip import GlobalClip, global_clip_factor
from accountant.counterexamples.e09_unclipped_score import UnclippedScore, anova_score, scores
from accountant.counterexamples.e10_formula import Formula
from accountant.counterexamples.e11_per_round import PerRound, per_round_epsilon
from accountant.counterexamples.e12_copies import Copies, copies_factor, silos_factor
from accountant.counterexamples.e13_add_remove import AddRemove, mean_sensitivity, normals_delta
from accountant.gaussian import delta_from_mu, epsilon_from_mu, mu_from_epsilon
from accountant.paper import truth

EXAMPLES = list(counterexamples.every())
GAUSSIAN = [
    *(example for example in EXAMPLES if isinstance(example, GaussianCounterexample)),
    Control(n=3),
    LabelChange(n_a=2, n_b=1),
    LabelChange(n_a=7, n_b=300, epsilon=2.0),
    KMeans(m=2),
    Encoder(n_c=3),
    GlobalClip(dim=512, k=52),
    GlobalClip(dim=5, k=2),
    Formula(epsilon=1.0, rounds=3),
    Copies(m=1),
    Copies(m=10),
]


def one(example: Counterexample) -> str:
    return f"{example.id}-{'-'.join(str(value) for value in vars(example).values())}"


def claimed_epsilon(factor: float, *, epsilon: float = 1.0) -> float:
    return epsilon_from_mu(mu=factor * mu_from_epsilon(epsilon=epsilon, delta=1e-5), delta=1e-5)


def test_there_are_thirteen_and_each_says_what_it_breaks() -> None:
    assert [example.id for example in EXAMPLES] == [f"E{number}" for number in range(1, 14)]
    assert {id for example in EXAMPLES for id in example.breaks} <= {
        assumption.id for assumption in ASSUMPTIONS
    }
    assert [example.id for example in EXAMPLES if not example.breaks] == ["E1"]
    assert counterexamples.breaking("A3") == ("E3", "E4", "E13")


def test_an_unknown_id_is_refused_in_one_sentence() -> None:
    with pytest.raises(
        ValueError, match=r"^counterexample 'E15' is unknown; known are E1, .* E13\. Did you mean E5"
    ):
        counterexamples.find("E15")


@pytest.mark.parametrize("example", EXAMPLES, ids=one)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_shows_what_is_exact(example: Counterexample, seed: int) -> None:
    found = example.simulate(example.draws, np.random.default_rng(seed))
    assert found
    for estimate in found:
        assert estimate.low <= estimate.value <= estimate.high
        assert estimate.agrees(example.fact(estimate.name)), (estimate, example.fact(estimate.name))


@pytest.mark.parametrize("example", EXAMPLES, ids=one)
def test_a_run_refutes_the_claim_and_leaves_the_control_alone(example: Counterexample) -> None:
    found = example.simulate(example.draws, np.random.default_rng(2))
    claims = [(estimate, example.fact(estimate.name).claimed) for estimate in found]
    held = [claim is not None and estimate.low <= claim <= estimate.high for estimate, claim in claims]
    assert all(held) if example.id == "E1" else not any(held)


@pytest.mark.parametrize("example", EXAMPLES, ids=one)
def test_equal_seeds_give_equal_numbers(example: Counterexample) -> None:
    first, again, other = (example.simulate(500, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert first == again
    if example.id not in ("E4", "E6", "E7", "E9"):  # what is certain shows in every run
        assert first != other


@pytest.mark.parametrize("example", EXAMPLES, ids=one)
def test_neighbours_differ_in_one_record(example: Counterexample) -> None:
    before, after = (tally(records) for records in example.data())
    gone, new = before - after, after - before
    people = 3 if isinstance(example, Copies) else 1
    assert gone.total() == people
    assert new.total() == (0 if isinstance(example, NoiseScale | AddRemove) else people)


def tally(records: Records) -> Counter[tuple[object, ...]]:
    return Counter((label, *row) for label, rows in records.items() for row in rows.tolist())


@pytest.mark.parametrize("example", GAUSSIAN, ids=one)
def test_the_factor_is_how_far_the_released_means_move(example: GaussianCounterexample) -> None:
    moved = shift_over_noise(*example.releases())
    assert example.factor == pytest.approx(moved / example.mu, rel=1e-11)


@pytest.mark.parametrize("samples", [0, 1, 99])
def test_too_few_samples_are_refused(samples: int) -> None:
    with pytest.raises(ValueError, match=f"^samples={samples} "):
        EXAMPLES[0].simulate(samples, np.random.default_rng(0))


# E2


def test_label_change_reference_values() -> None:
    assert label_change_factor(n_a=10, n_b=10) == pytest.approx(1.3514607952107732293, rel=1e-15)
    assert claimed_epsilon(label_change_factor(n_a=10, n_b=10)) == pytest.approx(1.3934, abs=5e-5)
    limit = label_change_factor(n_a=10, n_b=10**12)
    epsilons = [claimed_epsilon(limit, epsilon=epsilon) for epsilon in (1.0, 2.0, 8.0)]
    assert epsilons == pytest.approx([1.46517, 2.9536, 12.256], rel=5e-5)
    mu = limit * mu_from_epsilon(epsilon=1.0, delta=1e-5)
    assert delta_from_mu(epsilon=1.0, mu=mu) == pytest.approx(8.0e-4, rel=0.01)


@given(n_a=st.integers(2, 7), n_b=st.integers(1, 7))
def test_no_label_change_moves_the_means_further(n_a: int, n_b: int) -> None:
    worst = 0.0
    for moved, in_a, in_b in itertools.product((-1, 1), range(n_a), range(n_b + 1)):
        a, b = 2 * in_a - (n_a - 1), 2 * in_b - n_b  # sums of the others, all of them at an end of the ball
        shift_a = (a + moved) / n_a - a / (n_a - 1)
        shift_b = (b + moved) / (n_b + 1) - b / n_b
        worst = max(worst, math.hypot(shift_a / (2 / n_a), shift_b / (2 / n_b)))
    assert label_change_factor(n_a=n_a, n_b=n_b) == pytest.approx(worst, rel=1e-12)


def test_a_label_change_that_empties_a_class_is_refused() -> None:
    with pytest.raises(ValueError, match="n_a=1 leaves no record"):
        label_change_factor(n_a=1, n_b=3)


# E3


@pytest.mark.parametrize(
    ("n", "released", "want", "rel"),
    [
        (10, 512, 0.85593919725794120855, 1e-12),
        (1000, 51200, 0.00013869134554703043612, 1e-9),
        (100, 50 * 512, 0.602, 1e-3),
        (1000, 50 * 512, 5.1e-7, 2e-3),
    ],
)
def test_noise_scale_reference_values(n: int, released: int, want: float, rel: float) -> None:
    for one_way in ((n, n - 1), (n - 1, n)):
        found = noise_scale_leak(n=one_way[0], n_prime=one_way[1], dim_times_rounds=released, epsilon=1.0)
        assert found == pytest.approx(want, rel=rel)


def test_noise_scale_total_variation() -> None:
    found = directed_leaks(n=10, n_prime=9, dim_times_rounds=512, epsilon=0.0)
    assert found == pytest.approx((0.9079536378, 0.9079536378), rel=1e-10)


@given(
    n=st.integers(1, 60),
    n_prime=st.integers(1, 60),
    released=st.integers(1, 600),
    epsilon=st.floats(0.0, 5.0),
)
def test_the_noise_scale_leaks_what_integration_over_the_norm_says(
    n: int, n_prime: int, released: int, epsilon: float
) -> None:
    found = directed_leaks(n=n, n_prime=n_prime, dim_times_rounds=released, epsilon=epsilon)
    want = (leak_by_mpmath(n, n_prime, released, epsilon), leak_by_mpmath(n_prime, n, released, epsilon))
    assert found == pytest.approx(want, rel=1e-8, abs=1e-14)


def leak_by_mpmath(n: int, n_prime: int, k: int, epsilon: float) -> float:
    if n == n_prime:
        return 0.0
    with mp.workdps(40):
        bound = (k * mp.log(mp.mpf(n) / n_prime) - epsilon) / (mp.mpf(n) ** 2 - n_prime**2)
        if bound <= 0:
            return 0.0
        below = [mp.gammainc(mp.mpf(k) / 2, 0, m * m * bound, regularized=True) for m in (n, n_prime)]
        p, q = below if n > n_prime else [1 - x for x in below]
        return float(p - mp.exp(epsilon) * q)


def test_sigma_and_the_clip_norm_cancel_in_the_noise_scale() -> None:
    leaks = [NoiseScale(delta=delta).fact("delta at epsilon=1").value for delta in (1e-9, 1e-2)]
    assert leaks[0] == leaks[1] == noise_scale_leak(n=10, n_prime=9, dim_times_rounds=512, epsilon=1.0)
    for delta in (1e-9, 1e-2):
        example = NoiseScale(delta=delta, dim=7, rounds=3)
        (found,) = example.simulate(40_000, np.random.default_rng(5))
        assert found.agrees(example.fact(found.name))


# E5


@pytest.mark.parametrize(
    ("m", "factor", "epsilon"),
    [(10, 6.149, 7.90), (100, 56.460716431869689834, 178.19), (1000, 559.6, 11_888)],
)
def test_kmeans_reference_values(m: int, factor: float, epsilon: float) -> None:
    found = kmeans_factor(*example_points(m=m))
    assert found == pytest.approx((m + 1) * math.sqrt(5) / 4, rel=1e-12)
    assert found == pytest.approx(factor, rel=1e-9 if m == 100 else 1e-4)
    assert claimed_epsilon(found) == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize("m", [2, 10, 100])
def test_sklearn_finds_the_same_centres(m: int) -> None:
    from sklearn.cluster import KMeans as LloydKMeans

    for points_n in example_points(m=m):
        centres_2, sizes_2 = optimal_means(points_n, clusters=2)
        lloyd = LloydKMeans(n_clusters=2, n_init=10, random_state=0)  # pyright: ignore[reportArgumentType]
        lloyd.fit(points_n[:, None])
        order = lloyd.cluster_centers_[:, 0].argsort()
        assert centres_2 == pytest.approx(lloyd.cluster_centers_[order, 0], rel=1e-9)
        labels_n = np.asarray(lloyd.predict(points_n[:, None]))
        assert sizes_2.tolist() == np.bincount(labels_n)[order].tolist()


@given(points=st.lists(st.integers(-20, 20).map(float), min_size=3, max_size=8), clusters=st.integers(1, 3))
def test_no_assignment_of_points_costs_less(points: list[float], clusters: int) -> None:
    points_n = np.array(points)
    if len(set(points)) < clusters:
        with pytest.raises(ValueError, match=f"clusters={clusters} needs as many different points"):
            optimal_means(points_n, clusters=clusters)
        return
    centres_k, sizes_k = optimal_means(points_n, clusters=clusters)
    assert sizes_k.sum() == len(points)
    cost = ((points_n[:, None] - centres_k) ** 2).min(1).sum()
    labels = itertools.product(range(clusters), repeat=len(points))
    assert cost == pytest.approx(min(cost_of(points_n, np.array(given)) for given in labels), abs=1e-9)


def cost_of(points_n: np.ndarray, labels_n: np.ndarray) -> float:
    return sum(
        float(((x := points_n[labels_n == k]) - x.mean()) @ (x - x.mean())) for k in set(labels_n.tolist())
    )


def test_the_clip_norm_scales_the_claim() -> None:
    d, d_prime = example_points(m=10)
    half = kmeans_factor(d, d_prime, clip_norm=2.0)
    assert 2 * half == pytest.approx(kmeans_factor(d, d_prime), rel=1e-12)
    assert half == pytest.approx(kmeans_factor(d / 2, d_prime / 2), rel=1e-12)


def test_points_of_no_neighbours_are_refused() -> None:
    with pytest.raises(ValueError, match="D has 2 points and D' 3"):
        kmeans_factor(np.array([0.0, 1.0]), np.array([0.0, 1.0, 2.0]))


# E6


@given(degrees=st.lists(st.integers(0, 179), min_size=2, max_size=12, unique=True), seed=st.integers(0, 99))
def test_finch_joins_first_neighbours_as_a_graph_library_does(degrees: list[int], seed: int) -> None:
    n = len(degrees)
    no_ties = np.random.default_rng(seed).uniform(0, 0.1, n)
    points_nd = circle(tuple((np.array(degrees) + no_ties).tolist()))
    cosine_nn = points_nd @ points_nd.T - 2 * np.eye(n)
    graph = coo_array((np.ones(n), (np.arange(n), cosine_nn.argmax(1))), shape=(n, n))
    parts, want_n = connected_components(graph, directed=False)
    found_n = first_partition(points_nd)
    assert found_n.max() + 1 == parts
    assert len(set(zip(found_n.tolist(), want_n.tolist(), strict=True))) == parts


@pytest.mark.filterwarnings("ignore")
def test_finch_clust_finds_as_many_clusters() -> None:
    finch = pytest.importorskip("finch")
    before, after = (records["a"] for records in counterexamples.find("E6").data())
    for points_nd, clusters in ((before, 2), (after, 1)):
        labels_np, counts, _ = finch.FINCH(points_nd, distance="cosine", verbose=False)
        assert counts[0] == first_partition(points_nd).max() + 1 == clusters
        assert (
            len(set(zip(labels_np[:, 0].tolist(), first_partition(points_nd).tolist(), strict=True)))
            == clusters
        )


def test_a_point_alone_has_no_neighbour() -> None:
    with pytest.raises(ValueError, match="has no neighbour"):
        first_partition(circle((3.0,)))
    with pytest.raises(ValueError, match="has no direction"):
        first_partition(np.zeros((2, 2)))


# E7


def test_encoder_reference_values() -> None:
    assert encoder_ratio(n_c=50, other_class=51) == 50.0
    assert encoder_factor([50] * 7) == pytest.approx(132, abs=0.5)
    assert encoder_factor([50, 51]) == pytest.approx(math.sqrt(50**2 + 51**2), rel=1e-15)


@given(n_c=st.integers(1, 80), other_class=st.integers(1, 80))
def test_an_encoder_moves_a_class_nobody_touched_only_when_its_sign_turns(n_c: int, other_class: int) -> None:
    before, after = n_c - other_class, n_c - other_class + 2
    assert encoder_ratio(n_c=n_c, other_class=other_class) == n_c * abs(np.sign(after) - np.sign(before)) / 2


@given(counts=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_the_worst_encoder_moves_every_class_mean_by_the_whole_range(counts: list[int]) -> None:
    noise = np.array([2 / n for n in counts])
    signs = itertools.product((-1.0, 0.0, 1.0), repeat=len(counts))
    worst = max(float(np.linalg.norm(2 * np.array(sign) / noise)) for sign in signs)
    assert encoder_factor(counts) == pytest.approx(worst, rel=1e-12)


# E8


def test_global_clip_reference_values() -> None:
    assert global_clip_factor(dim=10, k=1) == pytest.approx(2.7386, abs=5e-5)
    assert global_clip_factor(dim=512, k=52) == pytest.approx(2.7145, abs=5e-5)
    assert claimed_epsilon(global_clip_factor(dim=10, k=1)) == pytest.approx(3.071, abs=5e-4)
    assert global_clip_factor(dim=8, k=4) == pytest.approx(1.0, rel=1e-12)


@given(dim=st.integers(2, 40), data=st.data())
def test_no_direction_inside_the_ball_moves_further(dim: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, dim - 1))
    kappa_a, kappa_b = math.sqrt(k / dim), math.sqrt(1 - k / dim)
    angles = np.linspace(0, math.pi / 2, 181)
    in_a, in_b = np.cos(angles) / kappa_a, np.sin(angles) / kappa_b
    mu = np.sqrt((kappa_b * in_a**2 + kappa_a * in_b**2) / (kappa_a + kappa_b))
    assert global_clip_factor(dim=dim, k=k) == pytest.approx(float(mu.max()), rel=1e-12)


# E9


def test_unclipped_score_reference_values() -> None:
    x_n, y_n = np.array([1.0] * 50 + [-1.0] * 50), np.repeat([0, 1], 50)
    assert anova_score(x_n, y_n, zeta=1e-6) == 1e8
    x_n[0] = -1.0
    assert anova_score(x_n, y_n, zeta=1e-6) == pytest.approx(2400.939976500588, rel=1e-12)
    outlier_n = np.zeros(100)
    assert anova_score(outlier_n, y_n, zeta=1e-6) == 0.0
    outlier_n[0] = 1e6
    assert anova_score(outlier_n, y_n, zeta=1e-6) == pytest.approx(0.999998, abs=3e-6)


@given(values=st.lists(st.floats(-9, 9), min_size=6, max_size=12), zeta=st.sampled_from((1e-6, 0.1)))
def test_the_score_is_the_one_that_vpp_selects_by(values: list[float], zeta: float) -> None:
    from accountant.contract import DependsOn
    from privkit.embeddings import Embeddings
    from privkit.partitions._scores import discriminability

    x_n, y_n = np.array(values), np.arange(len(values)) % 3
    embeddings = Embeddings(vectors=x_n[:, None], labels=y_n, encoder=DependsOn.PUBLIC)
    want = discriminability(embeddings, stabiliser=zeta)[0]
    assert anova_score(x_n, y_n, zeta=zeta) == pytest.approx(want, rel=1e-9, abs=1e-9)


def test_scores_that_compare_nothing_are_zero() -> None:
    assert anova_score(np.array([1.0, 2.0]), np.array([0, 0]), zeta=1.0) == 0.0
    assert anova_score(np.array([1.0, 2.0]), np.array([0, 1]), zeta=1.0) == 0.0


def test_with_the_clip_the_same_records_give_nothing_away() -> None:
    example = UnclippedScore()
    before, after = (np.clip(scores(records, zeta=1e-6), 0.0, 0.1) for records in example.data())
    assert before.tolist() == after.tolist() == [0.1, 0.1]


@pytest.mark.parametrize("gap", [-3.0, -0.05, 0.0, 0.7, 40.0])
def test_a_race_is_won_as_often_as_integration_says(gap: float) -> None:
    with mp.workdps(20):
        tail = mp.quad(
            lambda x: mp.exp(-abs(x)) / 2 * (mp.exp(-x - gap) / 2 if x > -gap else 1 - mp.exp(x + gap) / 2),
            sorted({-mp.inf, -gap, 0.0, mp.inf}),
        )
    assert _top1.win(gap) == pytest.approx(1 - float(tail), rel=1e-12)  # pyright: ignore[reportArgumentType]


# E10


def test_formula_reference_values() -> None:
    example = Formula()
    assert example.facts()[0].value == pytest.approx(12.267, abs=5e-4)
    paper = truth(epsilon=8.0, delta=1e-5, rounds=3)
    assert example.fact("epsilon at delta=1e-05").value == pytest.approx(paper.epsilon, rel=1e-10)
    assert example.fact("delta at epsilon=8").value == pytest.approx(paper.delta, rel=1e-10)
    valid = Formula(epsilon=1.0, c1=math.sqrt(2))
    assert valid.factor < 1


# E11


def test_per_round_selections_cost_rounds_times_as_much() -> None:
    assert per_round_epsilon(epsilon1=0.1, rounds=20) == 2.0
    guaranteed, attained, _ = PerRound().facts()
    assert guaranteed.value == 2.0
    assert attained.value / guaranteed.value == pytest.approx(0.50, abs=0.002)


def test_the_delta_of_all_rounds_is_that_of_every_sequence_of_outcomes() -> None:
    example = PerRound(rounds=8, epsilon=0.5)
    p = _top1.win(0.1 / example.scale)
    sequences = list(itertools.product((p, 1 - p), repeat=8))
    want = sum(max(math.prod(s) - math.exp(0.5) * math.prod(1 - x for x in s), 0.0) for s in sequences)
    assert example.fact("delta at epsilon=0.5").value == pytest.approx(want, rel=1e-10)


def test_one_round_keeps_what_it_claims() -> None:
    assert PerRound(rounds=1).fact("delta at epsilon=0.1").value == 0.0


# E12


def test_copies_add_up_in_one_release_and_by_squares_over_silos() -> None:
    assert (copies_factor(m=4), silos_factor(m=4)) == (4.0, 2.0)
    example = Copies(m=5)
    assert shift_over_noise(*example.silos()) / example.mu == pytest.approx(silos_factor(m=5), rel=1e-12)
    with pytest.raises(ValueError, match="m=11 copies do not fit"):
        Copies(m=11)


# E13


@given(n=st.integers(2, 9))
def test_no_removal_moves_a_mean_further(n: int) -> None:
    worst = 0.0
    for record, others in itertools.product((-1, 1), range(n)):
        total = 2 * others - (n - 1)
        worst = max(worst, abs((total + record) / n - total / (n - 1)))
    assert mean_sensitivity(n=n, n_prime=n - 1) == pytest.approx(worst, rel=1e-12)
    assert mean_sensitivity(n=n - 1, n_prime=n) == mean_sensitivity(n=n, n_prime=n - 1)


def test_two_counts_that_differ_by_more_are_refused() -> None:
    with pytest.raises(ValueError, match="must differ by one record"):
        mean_sensitivity(n=5, n_prime=5)


def test_sums_need_half_the_noise() -> None:
    example = AddRemove()
    assert shift_over_noise(*example.sums()) / example.mu == pytest.approx(0.5, rel=1e-12)
    p, q = example.sums()
    counts = np.array([10.0]), np.array([9.0])
    both = (
        Release(mean=np.append(r.mean, n), std=r.std.repeat(2)) for r, n in zip((p, q), counts, strict=True)
    )
    found = example.fact("mu factor of (sum, R count), noise sigma 2R").value
    assert shift_over_noise(*both) / example.mu == pytest.approx(found, rel=1e-12)


@given(shift=st.floats(-3, 3), ratio=st.sampled_from((0.3, 0.9, 1.1, 2.5)), epsilon=st.floats(0, 3))
def test_normals_of_two_widths_differ_as_integration_says(shift: float, ratio: float, epsilon: float) -> None:
    y = np.linspace(-40, 40, 400_001)
    p = np.exp(-0.5 * y**2) / math.sqrt(2 * math.pi)
    q = np.exp(-0.5 * ((y - shift) / ratio) ** 2) / (ratio * math.sqrt(2 * math.pi))
    want = float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (y[1] - y[0]))
    assert normals_delta((0.0, 1.0), (shift, ratio), epsilon=epsilon) == pytest.approx(want, abs=2e-8)


def test_normals_of_one_width_are_refused() -> None:
    with pytest.raises(ValueError, match=r"both standard deviations are 1\.0"):
        normals_delta((0.0, 1.0), (1.0, 1.0), epsilon=1.0)


# how runs are judged


@pytest.mark.parametrize("delta_is_near", [0.0, 0.3, 1.0])
def test_intervals_of_delta_cover_it_as_often_as_they_say(delta_is_near: float) -> None:
    mu = {0.0: 0.2, 0.3: 1.5, 1.0: 12.0}[delta_is_near]
    want = delta_from_mu(epsilon=1.0, mu=mu)
    p, q = Release(mean=np.array([mu]), std=np.ones(1)), Release(mean=np.zeros(1), std=np.ones(1))
    rng, missed = np.random.default_rng(7), 0
    for _ in range(300):
        losses_n = losses(p, q, samples=400, rng=rng)
        found = delta_from_losses("delta", losses_n, epsilon=1.0, rng=rng)
        missed += not found.low <= want <= found.high
    assert missed <= 4  # 0.3 expected at level 0.999


def test_an_event_that_shows_nothing_gives_delta_zero() -> None:
    never = np.zeros(1000, dtype=bool)
    found = delta_of_event("delta", never, never, epsilon=1.0)
    assert (found.value, found.low) == (0.0, 0.0)
    assert 0 < found.high < 0.01


@pytest.mark.parametrize(("successes", "n"), [(0, 50), (7, 50), (50, 50)])
def test_proportions_get_clopper_and_pearsons_interval(successes: int, n: int) -> None:
    from attacks.statistics.binomial import clopper_pearson

    assert proportion_interval(successes, n, level=0.95) == pytest.approx(
        clopper_pearson(successes, n), rel=1e-9
    )


def test_one_class_without_a_record_is_absent() -> None:
    assert ClassDisappears().facts()[0].value == 1.0
    before, after = ClassDisappears().data()
    assert set(before) - set(after) == {"a"}
