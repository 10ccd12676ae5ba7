"""Attacks on several prototypes of a class in a message: small clusters give away more than a mean."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.metrics import roc_auc_score

from accountant.contract import Contract, DependsOn
from accountant.events import Gaussian, GroupGaussian, NonPrivate
from attacks._averaged import Averaged, Channel, averaged
from attacks._base import AbstractAttack, NotApplicableError
from attacks.canary.antipodal import Antipodal
from attacks.membership._axes import along
from attacks.membership._groups import Question, mixtures
from attacks.membership._population import Population
from attacks.membership.cosine import Cosine
from attacks.membership.distance import Distance
from attacks.membership.inner_product import InnerProduct
from attacks.membership.likelihood_ratio import (
    LikelihoodRatio,
    log_likelihood_ratio,
    log_likelihood_ratios,
)
from attacks.membership.tracing import Tracing, trace, traces
from privkit.defenses._base import AbstractReleaseDefense, Known
from privkit.defenses.igpp import Igpp
from privkit.defenses.none import Nothing
from privkit.defenses.vpp import Vpp
from privkit.embeddings import Embeddings
from privkit.noise import SeededNoise
from privkit.prototypes._base import AbstractPrototypes
from privkit.prototypes.finch import Finch
from privkit.prototypes.kmeans import KMeans
from privkit.prototypes.mean import Mean
from privkit.release import Prototypes, Release
from privkit.transcript import Records, ServerView, Transcript

DIM, CLASSES, MEMBERS = 40, 6, 30
ATTACKS = (Cosine(), Distance(), InnerProduct(), LikelihoodRatio(), Tracing())
every_attack = pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.name)


def records(vectors: np.ndarray, labels: np.ndarray | int = 0) -> Records:
    n = len(vectors)
    labels = np.broadcast_to(np.asarray(labels, dtype=np.int64), n).copy()
    return Records(vectors=vectors, labels=labels, clients=np.zeros(n, dtype=np.int64))


def drawn(seed: int, each: int = MEMBERS) -> Records:
    """Draw records of one client: some coordinates vary a lot, classes are apart."""
    rng, labels = np.random.default_rng(seed), np.arange(CLASSES).repeat(each)
    spread = np.geomspace(1.0, 0.2, DIM)
    centres = np.random.default_rng(0).standard_normal((CLASSES, DIM))
    vectors = (0.5 * centres[labels] + spread * rng.standard_normal((len(labels), DIM))) / DIM**0.5
    return records(vectors, labels)


def view_of(
    defense: AbstractReleaseDefense,
    summary: AbstractPrototypes,
    members: Records,
    *,
    rounds: int,
    seed: int = 0,
) -> ServerView:
    mechanism = defense.mechanism(rounds=rounds)
    held = Embeddings(vectors=members.vectors, labels=members.labels, encoder=DependsOn.PUBLIC)
    known = Known(classes=CLASSES, summary=summary)
    releases = []
    for t in range(rounds):
        sent = mechanism.privatize(held, SeededNoise(np.random.default_rng([seed, t])), known)
        releases.append(Release(round=t, client=0, payload=sent.payload, event=sent.event))
    return Transcript(tuple(releases)).seen_by_server(drawn(seed + 2000, 60))


def area(attack: AbstractAttack, view: ServerView, members: Records, others: Records) -> float:
    scores = [attack.score(view, asked) for asked in (members, others)]
    truth = np.repeat([True, False], [len(members), len(others)])
    return float(roc_auc_score(truth, np.concatenate(scores)))


# ---------------------------------------------------------------------- what clusters give away


def as_rounds(view: ServerView) -> ServerView:
    """Return a view in which every cluster is taken for a round of its own, which averages them all."""
    found = []
    for release in view.releases:
        sent = release.payload
        assert isinstance(sent, Prototypes)
        nth = np.array([np.sum(sent.labels[:p] == sent.labels[p]) for p in range(len(sent.labels))])
        for k in range(int(nth.max()) + 1):
            payload = sent.only(nth == k)
            found.append(replace(release, round=len(found), payload=payload))
    return ServerView(tuple(found), view.reference)


@pytest.mark.parametrize(
    ("attack", "gain"),
    [(LikelihoodRatio(), 0.15), (Tracing(), 0.15), (Cosine(), 0.1), (Distance(), 0.1)],
    ids=["likelihood_ratio", "tracing", "cosine", "distance"],
)
def test_clusters_of_an_undefended_run_tell_more_than_their_average(attack, gain):
    members, others = drawn(1), drawn(2)
    view = view_of(Nothing(), Finch(), members, rounds=1)
    by_cluster = area(attack, view, members, others)
    assert by_cluster > area(attack, as_rounds(view), members, others) + gain
    assert by_cluster > area(attack, view_of(Nothing(), Mean(), members, rounds=1), members, others) + 0.05


def test_a_record_that_is_a_cluster_of_its_own_is_found_without_doubt():
    members, others = drawn(1), drawn(2)
    view = view_of(Nothing(), KMeans(ratio=1.0), members, rounds=1)
    for attack in (LikelihoodRatio(), Tracing(), Cosine(), Distance()):
        assert area(attack, view, members, others) == 1.0


@every_attack
@pytest.mark.parametrize("summary", [Finch(), Finch(partition="first"), KMeans()], ids=repr)
@pytest.mark.parametrize("defense", [Igpp(epsilon=1e-3), Vpp(epsilon=1e-3)], ids=lambda d: d.name)
def test_when_noise_hides_all_members_score_as_non_members_do(attack, summary, defense):
    members, others = drawn(1, 100), drawn(2, 100)
    found = area(attack, view_of(defense, summary, members, rounds=3), members, others)
    n = len(members)
    assert abs(found - 0.5) < 3 * ((2 * n + 1) / (12 * n * n)) ** 0.5


@every_attack
@pytest.mark.parametrize("defense", [Nothing(), Igpp(epsilon=8.0), Vpp(epsilon=8.0)], ids=lambda d: d.name)
def test_records_of_nobody_score_alike(attack, defense):
    view = view_of(defense, Finch(), drawn(1), rounds=2)
    n = 100 * CLASSES
    found = area(attack, view, drawn(3, 100), drawn(4, 100))
    assert abs(found - 0.5) < 3 * ((2 * n + 1) / (12 * n * n)) ** 0.5


# ---------------------------------------------------------------------- the mixture, by brute force


def cluster(
    rng: np.random.Generator, mean: np.ndarray, noise: np.ndarray, count: int, factor: float
) -> Averaged:
    from attacks._known_noise import Groups

    groups = Groups(index=np.arange(len(mean)), norms=(9.0,) * len(mean), stds=tuple(noise**0.5))
    return Averaged(
        vector=mean + 0.3 * rng.standard_normal(len(mean)),
        variance=factor * noise / count**2,
        count=float(count),
        rounds=(groups,),
        weight_Td=np.ones((1, len(mean))),
    )


@given(
    seed=st.integers(0, 10_000),
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    noise=st.sampled_from([0.0, 1e-3, 1.0, 100.0]),
    factor=st.sampled_from([1.0, 7.0]),
)
def test_ratios_of_all_clusters_are_those_of_each(seed, counts, noise, factor):
    rng = np.random.default_rng(seed)
    root, mean = rng.standard_normal((5, 5)) + np.eye(5), rng.standard_normal(5)
    population = Population(means={3: mean}, sizes={3: 40}, covariance=root @ root.T + 0.1 * np.eye(5))
    noise_d = noise * rng.uniform(0.5, 2.0, 5)
    candidates = rng.standard_normal((4, 5))
    questions = tuple(
        Question(np.arange(4), 3, candidates, cluster(rng, mean, noise_d, n, factor), population)
        for n in counts
    )
    np.testing.assert_allclose(
        log_likelihood_ratios(questions), [log_likelihood_ratio(q) for q in questions], rtol=1e-7, atol=1e-7
    )
    np.testing.assert_allclose(traces(questions), [trace(q) for q in questions], rtol=1e-7, atol=1e-7)


def test_along_its_axes_a_population_has_unit_variance_and_noise_is_independent():
    rng = np.random.default_rng(0)
    root, mean = rng.standard_normal((4, 4)) + 2 * np.eye(4), rng.standard_normal(4)
    population = Population(means={0: mean}, sizes={0: 9}, covariance=root @ root.T)
    noise_d = np.array([0.1, 3.0, 0.5, 2.0])
    drawn_Nd = mean + rng.standard_normal((200_000, 4)) @ root.T
    noisy_Nd = mean + rng.standard_normal((200_000, 4)) * noise_d**0.5
    one = cluster(rng, mean, noise_d, 2, 1.0)
    found = along((Question(np.arange(200_000), 0, drawn_Nd, one, population),))
    np.testing.assert_allclose(np.cov(found.candidates.T), np.eye(4), atol=0.02)
    found = along((Question(np.arange(200_000), 0, noisy_Nd, one, population),))
    np.testing.assert_allclose(np.cov(found.candidates.T), np.diag(4 * found.noise[0]), atol=0.1)
    assert found.reference == 9


def brute_force(view: ServerView, asked: Records) -> np.ndarray:
    """Return log sum_k n_k/n p(centre_k | z in k) / p(centre_k | z not in k) of one message without clip or noise."""
    assert view.reference is not None
    sent = view.releases[0].payload
    assert isinstance(sent, Prototypes)
    assert sent.counts is not None
    population = Population.of(view.reference.labels, view.reference.vectors)
    scores = np.zeros(len(asked))
    for i, (z, label) in enumerate(zip(asked.vectors, asked.labels.tolist(), strict=True)):
        m, n_ref, terms = population.means[label], population.sizes[label], []
        for p, n in zip(sent.vectors[sent.labels == label], sent.counts[sent.labels == label], strict=True):
            inside = multivariate_normal(
                m + (z - m) / n, population.covariance * ((n - 1) / n**2 + 1 / n_ref)
            )
            outside = multivariate_normal(m, population.covariance * (1 / n + 1 / n_ref))
            terms.append(np.log(n) + inside.logpdf(p) - outside.logpdf(p))
        scores[i] = logsumexp(terms) - np.log(sent.counts[sent.labels == label].sum())
    return scores


def test_the_likelihood_ratio_averages_over_the_cluster_that_a_member_may_be_in():
    members = drawn(1)
    view = view_of(Nothing(), Finch(), members, rounds=1)
    asked = members.where(np.arange(0, len(members), 9))
    np.testing.assert_allclose(LikelihoodRatio().score(view, asked), brute_force(view, asked), rtol=1e-6)


# ---------------------------------------------------------------------- one message


def message(
    vectors: list[list[float]],
    counts: list[int] | None,
    *,
    round: int = 0,
    sigma: float = 0.0,
    label: int = 0,
    encoder: DependsOn = DependsOn.PUBLIC,
) -> Release:
    contract = Contract(clip_norm=2.0, encoder=encoder)
    return Release(
        round=round,
        client=0,
        payload=Prototypes(
            vectors=np.array(vectors, dtype=np.float64),
            labels=np.full(len(vectors), label),
            counts=None if counts is None else np.array(counts),
        ),
        event=Gaussian(noise_multiplier=sigma, contract=contract) if sigma else NonPrivate(contract=contract),
    )


def seen(*releases: Release, dim: int = 2) -> ServerView:
    return ServerView(releases, records(np.random.default_rng(0).standard_normal((40, dim))))


def test_the_best_prototype_of_a_round_counts_and_rounds_are_averaged():
    view = seen(
        message([[1.0, 0.0], [0.0, 2.0]], [3, 3]), message([[0.0, -1.0], [-3.0, 0.0]], [3, 3], round=1)
    )
    asked = records(np.array([[5.0, 0.0], [0.0, 1.0]]))
    np.testing.assert_allclose(Cosine().score(view, asked), [(1 + 0) / 2, (1 + 0) / 2])
    np.testing.assert_allclose(Distance().score(view, asked), [-(4 + 26**0.5) / 2, -(1 + 2) / 2])


def test_clusters_make_the_mean_of_the_class_again_with_the_noise_of_each():
    view = seen(message([[1.0, 0.0], [5.0, 4.0]], [3, 1], sigma=2.0))
    found = averaged(view, client=0, label=0)
    np.testing.assert_allclose(found.vector, [2.0, 1.0])
    assert found.count == 4
    # on each sum of records the noise is sigma 2R = 8, so on both 8 sqrt 2, over 4 records
    np.testing.assert_allclose(found.variance, [2 * (8 / 4) ** 2] * 2)


def test_an_inner_product_is_with_the_mean_of_the_class():
    members = drawn(1)
    clusters, mean = (view_of(Nothing(), s, members, rounds=2) for s in (Finch(), Mean()))
    np.testing.assert_allclose(
        InnerProduct().score(clusters, members), InnerProduct().score(mean, members), rtol=1e-4, atol=1e-6
    )


def test_a_canary_in_one_of_several_clusters_is_tested_by_their_mean():
    view = seen(message([[1.0, 0.5], [0.0, 1.0]], [2, 2], sigma=3.0))
    asked = records(np.array([[0.6, 0.8], [9.0, 0.0]]))
    mean, variance = np.array([0.5, 0.75]), 2 * (3 * 2 * 2 / 4) ** 2
    wanted = [2 * np.array([0.6, 0.8]) / 4 @ mean / variance, 2 * np.array([2.0, 0.0]) / 4 @ mean / variance]
    np.testing.assert_allclose(Antipodal().score(view, asked), wanted)


def test_several_prototypes_without_their_sizes_are_not_applicable():
    view = seen(message([[1.0, 0.0], [0.0, 1.0]], None))
    asked = records(np.eye(2))
    for attack in (LikelihoodRatio(), Tracing(), InnerProduct()):
        with pytest.raises(NotApplicableError, match="record counts behind the prototypes were not released"):
            attack.score(view, asked)
    assert np.isfinite(Cosine().score(view, asked)).all()


# ---------------------------------------------------------------------- several messages


def test_one_prototype_per_message_is_one_set_of_the_usual_average():
    view = seen(*(message([[float(t), 1.0]], [7 + t], round=t, sigma=1.0 + t) for t in range(3)))
    ((found,),) = Channel(view).clusters(client=0, label=0)
    usual = averaged(view, client=0, label=0)
    assert np.array_equal(found.vector, usual.vector)
    assert np.array_equal(found.variance, usual.variance)
    assert found.count == usual.count


def test_clusters_that_are_the_same_in_all_rounds_are_averaged_one_by_one():
    view = seen(
        message([[1.0, 0.0], [0.0, 2.0]], [4, 2], sigma=1.0),
        message([[3.0, 0.0], [0.0, 6.0]], [4, 2], round=1, sigma=1.0),
    )
    ((one, two),) = Channel(view).clusters(client=0, label=0)
    np.testing.assert_allclose([one.vector, two.vector], [[2.0, 0.0], [0.0, 4.0]])
    np.testing.assert_allclose(one.variance, [(4 / 4) ** 2 / 2] * 2)
    np.testing.assert_allclose(two.variance, [(4 / 2) ** 2 / 2] * 2)


@pytest.mark.parametrize("counts", [[2, 4], [6], [4, 1, 1]])
def test_clusters_that_cannot_be_followed_are_a_set_per_message(counts):
    vectors = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]][: len(counts)]
    view = seen(
        message([[1.0, 0.0], [0.0, 2.0]], [4, 2], sigma=1.0), message(vectors, counts, round=1, sigma=1.0)
    )
    first, second = Channel(view).clusters(client=0, label=0)
    assert [one.count for one in first] == [4, 2]
    assert [one.count for one in second] == counts
    scores = LikelihoodRatio().score(view, records(np.eye(2)))
    alone = [LikelihoodRatio().score(view.only(t), records(np.eye(2))) for t in (0, 1)]
    np.testing.assert_allclose(scores, alone[0] + alone[1], rtol=1e-6)


def test_a_partition_that_is_drawn_anew_clips_other_clusters_together():
    members = drawn(1)
    view = view_of(Vpp(epsilon=8.0), KMeans(clusters=2), members, rounds=3)
    assert isinstance(view.releases[0].event.events[1], GroupGaussian)  # pyright: ignore[reportAttributeAccessIssue]
    assert {len(mixture.sets) for mixture in mixtures(view, members)} == {3}


def test_the_noise_of_equal_rounds_averages_out():
    members, others = drawn(1), drawn(2)
    one, many = (view_of(Igpp(epsilon=30.0 * t**0.5), Finch(), members, rounds=t) for t in (1, 25))
    first = area(LikelihoodRatio(), many.only(0), members, others)
    assert area(LikelihoodRatio(), many, members, others) > first + 0.05
    assert area(LikelihoodRatio(), one, members, others) > 0.6


def private(release: Release) -> Release:
    contract = replace(release.event.contract, encoder=DependsOn.PRIVATE_STATE)  # pyright: ignore[reportAttributeAccessIssue]
    return replace(release, event=replace(release.event, contract=contract))


def test_without_noise_a_moving_encoder_leaves_the_first_message():
    first = message([[1.0, 0.0], [0.0, 2.0]], [4, 2])
    later = message([[5.0, 5.0], [9.0, 2.0]], [3, 3], round=1)
    still = message([[1.0, 0.0], [0.0, 2.0]], [4, 2], round=1)
    (clusters,) = Channel(seen(private(first), private(later))).clusters(client=0, label=0)
    assert [one.vector.tolist() for one in clusters] == [[1.0, 0.0], [0.0, 2.0]]
    assert len(Channel(seen(private(first), private(still))).clusters(client=0, label=0)) == 2


def test_the_further_a_moving_encoder_is_the_noisier_its_clusters_count():
    first = message([[1.0, 0.0], [0.0, 2.0]], [4, 2], sigma=0.1)
    found = {}
    for step in (0.0, 1.0, 10.0):
        later = message([[1.0 + step, 0.0], [step, 2.0]], [4, 2], round=1, sigma=0.1)
        sets = Channel(seen(private(first), private(later))).clusters(client=0, label=0)
        np.testing.assert_allclose(sets[0][0].variance, [(0.1 * 4 / 4) ** 2] * 2)
        ratio = sets[1][1].variance / sets[0][1].variance
        assert ratio[0] == pytest.approx(ratio[1])
        found[step] = float(ratio[0])
    assert found[0.0] == 1.0
    assert 1.0 < found[1.0] < found[10.0]
