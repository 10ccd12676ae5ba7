"""The likelihood ratio attack against brute force and against theory."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm
from sklearn.metrics import roc_auc_score

from accountant.contract import Contract, DependsOn
from accountant.events import ClipSet, Gaussian, NonPrivate
from accountant.gaussian import sigma_from_epsilon
from attacks._averaged import Averaged, averaged
from attacks._known_noise import Groups
from attacks.membership._groups import Mixture, Question
from attacks.membership._population import Population
from attacks.membership.cosine import Cosine
from attacks.membership.likelihood_ratio import LikelihoodRatio, log_likelihood_ratio, log_likelihood_ratios
from attacks.membership.tracing import trace, traces
from privkit.release import Prototypes, Release
from privkit.transcript import Records, ServerView

DIM, CLIENTS, CLASSES, REFERENCE = 128, 4, 10, 1000
FLAT, FALLING = np.ones(DIM), 1 / np.arange(1, DIM + 1)


# ---------------------------------------------------------------------- brute force


def brute_force(z, release, mean, covariance, n_ref) -> float:
    """Return the log density of the release if z is in the average, minus that if it is not."""
    n, noise = release.count, np.diag(release.variance)
    inside = multivariate_normal(mean + (z - mean) / n, covariance * ((n - 1) / n**2 + 1 / n_ref) + noise)
    outside = multivariate_normal(mean, covariance * (1 / n + 1 / n_ref) + noise)
    return inside.logpdf(release.vector) - outside.logpdf(release.vector)


@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 200),
    n_ref=st.integers(1, 500),
    std=st.sampled_from([0.0, 1e-3, 0.1, 10.0]),
)
def test_log_likelihood_ratio_is_a_difference_of_log_densities(seed, count, n_ref, std):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((5, 5)) + np.eye(5)
    covariance, mean = root @ root.T + 0.1 * np.eye(5), rng.standard_normal(5)
    asked = Question(
        rows=np.arange(4),
        label=3,
        candidates=rng.standard_normal((4, 5)),
        release=Averaged(
            vector=mean + 0.3 * rng.standard_normal(5),
            variance=(std * np.array([1.0, 1.0, 3.0, 0.5, 1.0])) ** 2,
            count=float(count),
            rounds=(),
            weight_Td=np.zeros((0, 5)),
        ),
        population=Population(means={3: mean}, sizes={3: n_ref}, covariance=covariance),
    )
    wanted = [brute_force(z, asked.release, mean, covariance, n_ref) for z in asked.candidates]
    np.testing.assert_allclose(log_likelihood_ratio(asked), wanted, rtol=1e-7, atol=1e-7)


def test_many_reference_records_give_away_the_population():
    rng = np.random.default_rng(2)
    root = np.diag([2.0, 1.0, 0.5]) @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    means = np.array([[0.0, 1.0, 2.0], [5.0, 5.0, 5.0]])
    labels = np.repeat([0, 1], 20_000)
    vectors = means[labels] + rng.standard_normal((40_000, 3)) @ root
    found = Population.of(labels, vectors)
    np.testing.assert_allclose([found.means[0], found.means[1]], means, atol=0.06)
    np.testing.assert_allclose(found.covariance, root.T @ root, atol=0.1)
    assert found.sizes == {0: 20_000, 1: 20_000}


# ---------------------------------------------------------------------- theory


def area_in_theory(variances: np.ndarray, *, n: int, s: float, n_ref: float = np.inf) -> float:
    """Return the AUC of the test of one record against a noisy mean of n, Phi(mu / sqrt 2)."""
    mu_squared = (variances / (variances * (1 / n + 1 / n_ref) + s**2)).sum() / n**2
    return float(norm.cdf((mu_squared / 2) ** 0.5))


def drawn(rng: np.random.Generator, variances: np.ndarray, each: int) -> Records:
    """Draw the same number of records of every client and class; a class's mean is as long as half its spread."""
    clients, labels = (axis.ravel() for axis in np.mgrid[:CLIENTS, :CLASSES].repeat(each, axis=-1))
    means = np.random.default_rng(0).standard_normal((CLASSES, DIM)) * (variances.mean() / 4) ** 0.5
    vectors = means[labels] + rng.standard_normal((len(labels), DIM)) * variances**0.5
    return Records(vectors=vectors, labels=labels, clients=clients)


def areas(variances: np.ndarray, *, n: int, sigma: float, radius: float) -> tuple[float, float]:
    """Return the AUC of the likelihood ratio and of the cosine, on 2 * 40 n candidates of one round."""
    rng = np.random.default_rng(7)
    members, others, reference = (drawn(rng, variances, each) for each in (n, n, REFERENCE))
    contract = Contract(clip_norm=radius, encoder=DependsOn.PUBLIC)
    event = (
        Gaussian(noise_multiplier=sigma, contract=contract)
        if sigma
        else NonPrivate(contract=Contract(encoder=DependsOn.PUBLIC))
    )
    means = members.vectors.reshape(CLIENTS, CLASSES, n, DIM).mean(2)
    noisy = means + sigma * 2 * radius / n * rng.standard_normal(means.shape)
    labels, counts = np.arange(CLASSES), np.full(CLASSES, n)
    releases = tuple(
        Release(
            round=0,
            client=client,
            payload=Prototypes(vectors=noisy[client].astype(np.float32), labels=labels, counts=counts),
            event=event,
        )
        for client in range(CLIENTS)
    )
    view = ServerView(releases=releases, reference=reference)
    ratio, cosine = (
        np.concatenate([attack.score(view, members), attack.score(view, others)])
        for attack in (LikelihoodRatio(), Cosine())
    )
    truth = np.arange(len(ratio)) < len(members)
    return float(roc_auc_score(truth, ratio)), float(roc_auc_score(truth, cosine))


@pytest.mark.parametrize(
    ("variances", "n", "epsilon", "radius", "area", "lead"),
    [
        (FLAT, 50, None, 16.0, 0.871, 0.2),
        (FALLING, 50, None, 16.0, 0.871, 0.2),
        (FLAT, 200, None, 16.0, 0.714, 0.15),
        (FLAT, 50, 8.0, 16.0, 0.652, 0.02),
        (FALLING, 50, 8.0, 6.0, 0.582, 0.02),
    ],
    ids=["flat", "falling", "n=200", "flat eps=8", "falling eps=8"],
)
def test_success_is_what_theory_says(variances, n, epsilon, radius, area, lead):
    sigma = sigma_from_epsilon(epsilon=epsilon, delta=1e-5) if epsilon else 0.0
    s = sigma * 2 * radius / n
    known = area_in_theory(variances, n=n, s=s)
    assert known == pytest.approx(area, abs=1e-3)
    found, by_cosine = areas(variances, n=n, sigma=sigma, radius=radius)
    assert found == pytest.approx(area_in_theory(variances, n=n, s=s, n_ref=REFERENCE), abs=0.02)
    assert found == pytest.approx(known, abs=0.03)
    assert found > by_cosine + lead


# ---------------------------------------------------------------------- several rounds


def rounds(
    vectors_Td: np.ndarray, sigmas: list[float], *, count: int = 10, encoder: DependsOn = DependsOn.PUBLIC
) -> ServerView:
    """Return the view of one client's class 0, released once per row; sigma 0 is no noise."""
    contract = Contract(clip_norm=2.0, encoder=encoder)
    return ServerView(
        releases=tuple(
            Release(
                round=t,
                client=0,
                payload=Prototypes(vectors=vector[None], labels=np.array([0]), counts=np.array([count])),
                event=Gaussian(noise_multiplier=sigma, contract=contract)
                if sigma
                else NonPrivate(contract=contract),
            )
            for t, (vector, sigma) in enumerate(zip(vectors_Td, sigmas, strict=True))
        ),
        reference=Records(
            vectors=np.random.default_rng(0).standard_normal((40, vectors_Td.shape[1])),
            labels=np.zeros(40, dtype=np.int64),
            clients=np.zeros(40, dtype=np.int64),
        ),
    )


@given(seed=st.integers(0, 1000), times=st.integers(1, 12), sigma=st.floats(0.1, 20))
def test_rounds_of_equal_noise_are_one_round_of_their_mean_with_less_noise(seed, times, sigma):
    rng = np.random.default_rng(seed)
    vectors_Td = rng.standard_normal((times, 6))
    view = rounds(vectors_Td, [sigma] * times)
    once = rounds(vectors_Td.mean(0, keepdims=True), [sigma / times**0.5])
    asked = Records(
        vectors=rng.standard_normal((5, 6)), labels=np.zeros(5, np.int64), clients=np.zeros(5, np.int64)
    )
    attack = LikelihoodRatio()
    np.testing.assert_allclose(attack.score(view, asked), attack.score(once, asked), rtol=1e-6, atol=1e-9)


def test_rounds_are_weighted_by_their_precision():
    found = averaged(rounds(np.array([[1.0], [4.0]]), [1.0, 2.0]), client=0, label=0, drifts=False)
    assert found.vector == pytest.approx([1.6])  # (1/1 * 1 + 1/4 * 4) / (1/1 + 1/4)
    assert found.variance == pytest.approx([(2 * 2 / 10) ** 2 * 4 / 5])
    assert found.count == 10
    np.testing.assert_allclose(found.clip(np.array([[5.0], [1.0]])), [[2.0], [1.0]])


def clipped_one_by_one(groups: Groups, row: np.ndarray) -> np.ndarray:
    """Return one record as one round clips it, written out."""
    norms = np.array(groups.norms)
    lengths = np.array([np.linalg.norm(row[groups.index == g]) for g in range(len(norms))])
    if groups.clip is ClipSet.GROUPWISE:
        return row * np.minimum(1.0, norms / np.maximum(lengths, 1e-12))[groups.index]
    below, above = 0.0, 1e6  # by bisection
    for _ in range(200):
        t = (below + above) / 2
        outside = ((lengths / norms / (1 + t / norms**2)) ** 2).sum() > 1
        below, above = (t, above) if outside else (below, t)
    return row / (1 + above / norms**2)[groups.index]


@given(seed=st.integers(0, 1000), kinds=st.lists(st.sampled_from(list(ClipSet)), min_size=1, max_size=4))
def test_a_candidate_is_clipped_as_each_round_declared_it(seed, kinds):
    rng = np.random.default_rng(seed)
    rounds_ = tuple(
        Groups(
            rng.permutation(6) // 3, (1.5, 1.5) if kind is ClipSet.GLOBAL else (0.5, 2.0), (1.0, 1.0), kind
        )
        for kind in kinds
    )
    weight_Td = rng.dirichlet(np.ones(len(kinds)), 6).T
    release = Averaged(
        vector=np.zeros(6), variance=np.ones(6), count=1.0, rounds=rounds_, weight_Td=weight_Td
    )
    candidates = rng.standard_normal((5, 6)) * np.array([[0.1], [0.5], [1.0], [3.0], [50.0]])
    wanted = [
        sum(w * clipped_one_by_one(g, z) for w, g in zip(weight_Td, rounds_, strict=True)) for z in candidates
    ]
    np.testing.assert_allclose(release.clip(candidates), wanted, rtol=1e-9)


def test_rounds_without_noise_leave_the_noisy_ones_out():
    found = averaged(
        rounds(np.array([[1.0], [9.0], [3.0]]), [0.0, 5.0, 0.0]), client=0, label=0, drifts=False
    )
    assert found.vector.tolist() == [2.0]
    assert not found.variance.any()


def drifting(step: float, sigma: float, times: int = 8, dim: int = 400) -> tuple[Averaged, np.ndarray]:
    """Return the average of a class whose mean moves by a step each round, and what it was in round 0."""
    rng = np.random.default_rng(4)
    first, way = rng.standard_normal(dim), rng.standard_normal(dim)
    s = sigma * 2 * 2.0 / 10
    vectors_Td = first + step * np.arange(times)[:, None] * way + s * rng.standard_normal((times, dim))
    view = rounds(vectors_Td, [sigma] * times, encoder=DependsOn.PRIVATE_STATE)
    return averaged(view, client=0, label=0, drifts=True), first


def test_rounds_of_an_encoder_that_hardly_moves_are_all_used():
    found, first = drifting(step=0.0, sigma=1.0)
    assert found.variance.mean() ** 0.5 == pytest.approx(0.4 / 8**0.5, rel=0.1)
    assert (found.vector - first).std() == pytest.approx(found.variance.mean() ** 0.5, rel=0.15)


def test_rounds_of_an_encoder_that_moves_far_count_for_little():
    found, first = drifting(step=10.0, sigma=1.0)
    assert found.variance.mean() ** 0.5 == pytest.approx(0.4, rel=0.01)
    assert (found.vector - first).std() == pytest.approx(0.4, rel=0.15)


@pytest.mark.parametrize("step", [0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
def test_later_rounds_of_a_moving_encoder_never_do_much_harm(step):
    found, first = drifting(step=step, sigma=1.0)
    assert (found.vector - first).std() < 1.2 * 0.4  # what the first round alone would leave
    assert found.variance.max() <= 0.4**2 * (1 + 1e-9)


def test_without_noise_a_moving_encoder_leaves_the_first_round():
    found, first = drifting(step=1.0, sigma=0.0)
    assert np.array_equal(found.vector, first)
    assert not found.variance.any()


def test_a_private_encoder_changes_how_rounds_are_used():
    vectors_Td = np.array([[0.0] * 6, [50.0] * 6])
    asked = Records(vectors=np.eye(6), labels=np.zeros(6, np.int64), clients=np.zeros(6, np.int64))
    attack: Callable[[ServerView, Records], np.ndarray] = LikelihoodRatio().score
    public, private = (
        attack(rounds(vectors_Td, [1.0, 1.0], encoder=encoder), asked)
        for encoder in (DependsOn.PUBLIC, DependsOn.PRIVATE_STATE)
    )
    first = attack(rounds(vectors_Td[:1], [1.0]), asked)
    assert np.abs(private - first).max() < 0.05
    assert np.abs(public - first).max() > 1


# ---------------------------------------------------------------------- one decomposition for many releases

NOISES = {
    "none": (np.zeros(5), 0.0),
    "isotropic": (np.full(5, 4.0), 0.0),
    "isotropic, moved": (np.full(5, 4.0), 3.0),
    "by group": (np.array([4.0, 4.0, 0.5, 0.5, 0.5]), 0.0),
    "by group, moved": (np.array([4.0, 4.0, 0.5, 0.5, 0.5]), 3.0),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("count", [2, 30])
def test_a_class_of_one_mean_has_the_ratio_of_its_densities_whatever_its_noise(noise, count):
    noise_of_sum_d, moved = NOISES[noise]
    rng = np.random.default_rng(0)
    root, mean = rng.standard_normal((5, 5)) + np.eye(5), rng.standard_normal(5)
    population = Population(means={3: mean}, sizes={3: 40}, covariance=root @ root.T + 0.1 * np.eye(5))
    release = Averaged(
        vector=mean + 0.3 * rng.standard_normal(5),
        variance=noise_of_sum_d / count**2 + moved,
        count=float(count),
        rounds=(Groups(np.arange(5), (9.0,) * 5, tuple(noise_of_sum_d**0.5)),),
        weight_Td=np.ones((1, 5)),
    )
    asked = Question(np.arange(4), 3, rng.standard_normal((4, 5)), release, population)
    mixture = Mixture(asked.rows, ((asked,),))
    wanted = [brute_force(z, release, mean, population.covariance, 40) for z in asked.candidates]
    found = mixture.log_ratio(log_likelihood_ratio, log_likelihood_ratios)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(mixture.log_ratio(trace, traces), trace(asked), rtol=1e-8, atol=1e-8)
    assert release.isotropic == ("by group" not in noise)
