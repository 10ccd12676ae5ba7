"""Gaussian prototypes: how records become them, what they hold, and what they give away."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.contract import DependsOn
from privkit.defenses._base import Known
from privkit.defenses.igpp import Igpp
from privkit.defenses.none import PlainMeans
from privkit.defenses.sumcount import SumCount
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import NoNoise, SeededNoise
from privkit.prototypes.mean import Mean
from privkit.prototypes.probabilistic import Probabilistic, gaussians
from privkit.release import Moments, ProbabilisticPrototypes, Prototypes, SumsAndCounts

CLASSES = np.arange(4, dtype=np.int64)
KNOWN = Known(labels=CLASSES, summary=Probabilistic())


def held(n: int = 12, *, seed: int = 0, statistics: bool = True) -> Embeddings:
    """Return records of three classes, one of which has one record."""
    rng = np.random.default_rng(seed)
    labels = np.append(rng.integers(0, 2, n - 1), 3)
    vectors = rng.standard_normal((n, 5))
    said = np.column_stack([rng.uniform(0, 0.27, n), rng.uniform(0, 1.3, n)]) if statistics else None
    return Embeddings(vectors=vectors, labels=labels, encoder=DependsOn.PUBLIC, statistics=said)


def sent(embeddings: Embeddings, rule: Mean) -> ProbabilisticPrototypes:
    payload = PlainMeans().privatize(embeddings, NoNoise(), Known(labels=CLASSES, summary=rule)).payload
    assert isinstance(payload, ProbabilisticPrototypes)
    return payload


# ---------------------------------------------------------------------- how records become Gaussians


@pytest.mark.parametrize("reliability", [True, False])
@given(seed=st.integers(0, 999), n=st.integers(1, 20))
def test_what_is_sent_is_the_reference_class_by_class(reliability, seed, n):
    own = held(n, seed=seed)
    found = sent(own, Probabilistic(reliability=reliability))
    assert own.statistics is not None
    assert found.epistemic is not None
    assert found.aleatoric is not None
    for row, label in enumerate(found.labels.tolist()):
        records = [j for j in range(n) if own.labels[j] == label]
        w = [np.exp(-own.statistics[j, 1]) if reliability else 1.0 for j in records]
        mean = sum(wj * own.vectors[j] for wj, j in zip(w, records, strict=True)) / sum(w)
        plain = sum(own.vectors[j] for j in records) / len(records)
        ale = sum(own.statistics[j, 1] for j in records) / len(records)
        std = np.sqrt(sum((own.vectors[j] - plain) ** 2 for j in records) / len(records))
        np.testing.assert_allclose(found.vectors[row], mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.spread[row], np.maximum(std * (1 + ale), 1e-2), rtol=1e-5)
        assert found.aleatoric[row] == pytest.approx(ale)
        assert found.epistemic[row] == pytest.approx(
            sum(own.statistics[j, 0] for j in records) / len(records)
        )


def test_a_class_of_one_record_and_of_equal_ones_has_the_floor():
    vectors = np.array([[3.0, -1.0], [2.0, 2.0], [2.0, 2.0]])
    labels, none = np.array([0, 1, 1]), np.zeros(3)
    found = gaussians(vectors, labels, none, none, floor=0.05)
    assert (found.spread == 0.05).all()
    np.testing.assert_allclose(found.mean, vectors[:2])
    assert np.isfinite(found.spread).all()


@pytest.mark.parametrize("classes", [2, 10])
def test_weights_of_records_are_between_one_over_c_and_one(classes):
    vectors, labels = np.array([[1.0], [0.0]]), np.zeros(2, dtype=np.int64)
    found = gaussians(vectors, labels, np.zeros(2), np.array([np.log(classes), 0.0]), floor=1e-2)
    assert found.mean[0, 0] == pytest.approx((1 / classes) / (1 + 1 / classes))


def test_a_method_that_says_nothing_of_records_sends_no_uncertainty():
    found = sent(held(statistics=False), Probabilistic())
    assert found.epistemic is None
    assert found.aleatoric is None
    np.testing.assert_allclose(found.vectors, sent(held(), Probabilistic(reliability=False)).vectors)


def test_canaries_weigh_one_and_are_certain():
    own = held().with_records(np.ones((2, 5)), np.array([4, 4]))
    found = sent(own, Probabilistic())
    assert own.statistics is not None
    assert (own.statistics[-2:] == 0).all()
    assert found.epistemic is not None
    assert found.epistemic[-1] == 0.0
    np.testing.assert_allclose(found.vectors[-1], 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_statistic_that_is_not_finite_is_refused(bad):
    said = np.zeros((3, 2))
    said[1, 0] = bad
    with pytest.raises(InputError, match="a statistic of record 1 is not finite; drop that record"):
        Embeddings(
            vectors=np.ones((3, 2)), labels=np.zeros(3, np.int64), encoder=DependsOn.PUBLIC, statistics=said
        )


def test_records_keep_their_statistics():
    own = held()
    assert own.statistics is not None
    kept = own.where(own.labels == 0)
    assert kept.statistics is not None
    assert np.array_equal(kept.statistics, own.statistics[own.labels == 0])
    assert own.with_vectors(2 * own.vectors).statistics is own.statistics


def test_defenses_of_means_protect_unweighted_means_and_send_nothing_else():
    own = held().where(held().labels < 2)
    for defense in (Igpp(epsilon=1.0, clip_norm=1e3), SumCount(epsilon=1.0, clip_norm=1e3)):
        mechanism = defense.mechanism(rounds=1)
        found, wanted = (
            mechanism.privatize(
                own, SeededNoise(np.random.default_rng(0)), Known(labels=CLASSES, summary=rule)
            )
            for rule in (Probabilistic(), Mean())
        )
        assert type(found.payload) in (Prototypes, SumsAndCounts)
        assert found.payload.digest() == wanted.payload.digest()
        assert found.event == wanted.event


# ---------------------------------------------------------------------- what a message holds


def test_rows_that_do_not_fit_and_spreads_below_nothing_are_refused():
    rows = {"vectors": np.zeros((2, 3)), "labels": np.arange(2), "spread": np.ones((2, 3))}
    with pytest.raises(InputError, match=r"spread has shape \(2, 2\); give \[2, 3\], a row for each vector"):
        ProbabilisticPrototypes(**{**rows, "spread": np.ones((2, 2))})
    with pytest.raises(InputError, match=r"epistemic has shape \(3,\); give \[2\], a row for each vector"):
        ProbabilisticPrototypes(**rows, epistemic=np.zeros(3))
    with pytest.raises(InputError, match="spread holds -1; give numbers of at least 0"):
        ProbabilisticPrototypes(**{**rows, "spread": -np.ones((2, 3))})
    with pytest.raises(InputError, match=r"spread\[0, 0\] is nan; only finite numbers can be released"):
        ProbabilisticPrototypes(**{**rows, "spread": np.full((2, 3), np.nan)})
    with pytest.raises(InputError, match=r"least=0\.0; give a finite number of records above 0"):
        Moments(vectors=rows["vectors"], labels=rows["labels"], totals=np.ones(2), least=0.0)


def moments(totals: list[float], **more: np.ndarray) -> Moments:
    vectors = np.tile([[2.0, 4.0]], (len(totals), 1))
    return Moments(vectors=vectors, labels=np.arange(len(totals)), totals=np.array(totals), least=1.5, **more)


def test_sums_become_gaussians_and_what_noise_makes_impossible_is_nothing():
    squares = np.array([[4.0, 8.0], [0.5, 90.0]])
    found = moments(
        [2.0, -3.0], squares=squares, epistemic=np.array([1.0, -9.0]), aleatoric=np.array([0.5, 77.0])
    ).gaussians(num_classes=2)
    assert found is not None
    np.testing.assert_allclose(found.vectors, [[1.0, 2.0], [2.0, 4.0]])
    inflated = 1 + np.log(2) * np.array([0.25, 1.0])
    variance = np.array([[1.0, 0.0], [0.0, 74.0]])
    np.testing.assert_allclose(found.spread, np.sqrt(variance) * inflated[:, None])
    assert found.epistemic is not None
    assert found.aleatoric is not None
    np.testing.assert_allclose(found.epistemic, [0.5 * 0.1931471805599453, 0.0], rtol=1e-6)
    np.testing.assert_allclose(found.aleatoric, np.log(2) * np.array([0.25, 1.0]))


def test_classes_below_the_threshold_are_absent_and_squares_that_were_not_sent_tell_no_spread():
    some = moments([1.4, 1.5, -2.0, 9.0])
    assert some.present().labels.tolist() == [1, 3]
    assert some.present().least == 1.5
    assert some.gaussians(num_classes=4) is None
    assert moments([0.0]).present().labels.tolist() == []
    assert Prototypes(vectors=np.ones((2, 2)), labels=np.arange(2)).present().labels.tolist() == [0, 1]


# ---------------------------------------------------------------------- what it gives away


def test_one_record_is_its_own_gaussian_and_two_are_known_up_to_signs():
    """L1: mean and spread of two records are both of them, up to which has which coordinate."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal((3, 6))
    none = np.zeros(3)
    found = gaussians(z, np.array([0, 1, 1]), none, none, floor=1e-6)
    np.testing.assert_allclose(found.mean[0], z[0])
    assert (found.spread[0] == 1e-6).all()
    ends = np.sort([found.mean[1] - found.spread[1], found.mean[1] + found.spread[1]], axis=0)
    np.testing.assert_allclose(ends, np.sort(z[1:], axis=0), atol=1e-9)
