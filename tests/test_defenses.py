"""What every defense keeps to, and what IGPP promises."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from accountant.contract import DependsOn
from accountant.events import Event, Gaussian, NonPrivate, from_dict, leaves, to_dict
from accountant.gaussian import sigma_from_epsilon
from privkit import plug
from privkit.defenses._base import AbstractReleaseDefense, Known
from privkit.defenses.faults.low_noise import LowNoise
from privkit.defenses.faulty_igpp import FaultyIgpp
from privkit.defenses.igpp import Igpp
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import NoNoise, Purpose, SeededNoise, keyed
from privkit.release import ByClass, Prototypes

PACKAGE = "privkit.defenses"
EXAMPLES: dict[str, dict[str, Any]] = {
    "igpp": {"epsilon": 2.0, "clip_norm": 1.5},
    "faulty_igpp": {"claims": {"epsilon": 2.0, "clip_norm": 1.5}},
    "faulty_vpp": {"claims": {"epsilon": 2.0, "clip_norm": 1.5}},
    "vpp": {"epsilon": 2.0, "clip_norm": 1.5},
    "vpp_early": {"epsilon": 2.0, "clip_norm": 1.5},
    "vpdr": {"epsilon": 2.0, "clip_norm": 1.5, "partition": "random"},
    "sumcount": {"epsilon": 2.0, "clip_norm": 1.5},
    "dpspread": {"epsilon": 2.0, "clip_norm": 1.5},
    "dcr": {"release": {"name": "igpp", "epsilon": 2.0, "clip_norm": 1.5}},
}
SUMS = ("sumcount", "dpspread")
LABELS = np.array([3, 0, 3, 7, 3, 0, 7], dtype=np.int64)
RECORDS = len(LABELS)
KNOWN = Known(labels=np.array([0, 3, 7]))


def build(name: str) -> AbstractReleaseDefense:
    found = plug.build(PACKAGE, {"name": name, **EXAMPLES.get(name, {})})
    assert isinstance(found, AbstractReleaseDefense)
    return found


NAMES = [
    name for name in plug.names(PACKAGE) if name != "dphead"
]  # which is of weights: tests/test_dphead.py
every_defense = pytest.mark.parametrize("defense", [build(name) for name in NAMES], ids=NAMES)


def held(vectors: np.ndarray, labels: np.ndarray, encoder: DependsOn = DependsOn.PUBLIC) -> Embeddings:
    return Embeddings(
        vectors=np.asarray(vectors, dtype=np.float64), labels=np.asarray(labels, np.int64), encoder=encoder
    )


def some(seed: int = 0) -> Embeddings:
    return held(np.random.default_rng(seed).standard_normal((RECORDS, 5)), LABELS)


def seeded(seed: int) -> SeededNoise:
    return SeededNoise(keyed(seed, Purpose.RELEASE))


def clipped_as_the_event_says(event: Event, vectors: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Clip each record, group by group, one at a time."""
    leaf = [leaf for leaf, _ in leaves(event)][-1]
    norms = getattr(leaf, "clip_norms", ()) or (leaf.contract.clip_norm or np.inf,)
    out = vectors.copy()
    for row in out:
        for group, radius in enumerate(norms):
            length = np.linalg.norm(row[groups == group])
            row[groups == group] *= min(1.0, radius / max(length, 1e-9))
    return out


# ---------------------------------------------------------------------- every defense


@every_defense
def test_settings_build_the_same_defense_again(defense):
    assert plug.build(PACKAGE, defense.settings()) == defense


@every_defense
def test_a_release_states_an_event_that_can_be_written_down(defense):
    payload, event, _ = defense.mechanism(rounds=3).privatize(some(), seeded(0), KNOWN)
    assert isinstance(payload, ByClass)
    assert from_dict(to_dict(event)) == event
    assert list(leaves(event))


@every_defense
def test_the_event_does_not_depend_on_the_vectors(defense):
    mechanism = defense.mechanism(rounds=3)
    assert (
        mechanism.privatize(some(1), seeded(0), KNOWN)[1] == mechanism.privatize(some(2), seeded(5), KNOWN)[1]
    )
    assert mechanism.privatize(some(1), seeded(0), KNOWN).event == mechanism.event(some(1), KNOWN)


@every_defense
@pytest.mark.parametrize("encoder", list(DependsOn))
def test_the_event_declares_what_the_encoder_was_computed_from(defense, encoder):
    embeddings = held(some().vectors, LABELS, encoder)
    _, event, _ = defense.mechanism(rounds=3).privatize(embeddings, seeded(0), KNOWN)
    assert {leaf.contract.encoder for leaf, _ in leaves(event)} == {encoder}


@every_defense
def test_counts_of_the_contract_are_those_of_real_classes(defense):
    """A canary is planted after the encoder, so a private encoder does not move it."""
    mechanism, known = defense.mechanism(rounds=3), KNOWN._replace(classes=8, labels=np.array([0, 3, 7, 8]))
    planted = some().with_records(np.ones((9, 5)), np.full(9, 8, dtype=np.int64))
    for event, alone in (
        (mechanism.event(planted, known), mechanism.event(some(), known)),
        (mechanism.privatize(planted, seeded(0), known).event, mechanism.event(some(), known)),
    ):
        assert event == alone
        assert {leaf.contract.class_counts for leaf, _ in leaves(event)} <= {(2, 3, 2), ()}


@every_defense
def test_the_same_seed_gives_the_same_bytes(defense):
    mechanism = defense.mechanism(rounds=3)
    one, again, other = (mechanism.privatize(some(), seeded(s), KNOWN)[0].digest() for s in (4, 4, 5))
    assert one == again
    _, event, _ = mechanism.privatize(some(), seeded(4), KNOWN)
    silent = all(isinstance(leaf, NonPrivate) for leaf, _ in leaves(event))
    assert (one == other) == silent


@pytest.mark.parametrize("defense", [build(n) for n in NAMES if n not in SUMS])
def test_there_is_one_vector_per_class_with_its_count(defense):
    payload, _, _ = defense.mechanism(rounds=3).privatize(some(), seeded(0), KNOWN)
    assert isinstance(payload, Prototypes)
    assert payload.counts is not None
    assert payload.labels.tolist() == [0, 3, 7]
    assert payload.counts.tolist() == [2, 3, 2]
    assert payload.vectors.shape == (3, 5)
    assert payload.vectors.dtype == np.float32


# neither clips by the partition that it draws noise by, which is one of their faults
@pytest.mark.parametrize("defense", [build(n) for n in NAMES if n not in ("vpp_early", "faulty_vpp")])
@given(seed=st.integers(0, 1000), spread=st.sampled_from([0.0, 0.1, 1.0, 100.0]))
def test_without_noise_it_is_the_mean_of_the_clipped_records(defense, seed, spread):
    z = spread * np.random.default_rng(seed).standard_normal((RECORDS, 5))
    payload, event, hidden = defense.mechanism(rounds=3).privatize(held(z, LABELS), NoNoise(), KNOWN)
    clipped = clipped_as_the_event_says(event, z, hidden.groups)
    for label, vector in zip(payload.labels, payload.prototypes().vectors, strict=True):
        np.testing.assert_allclose(vector, clipped[label == LABELS].mean(0), rtol=1e-5, atol=1e-6)


@every_defense
def test_what_stays_behind_is_what_was_sent_without_the_noise(defense):
    mechanism = defense.mechanism(rounds=3)
    payload, _, silent = mechanism.privatize(some(), NoNoise(), KNOWN)
    np.testing.assert_allclose(payload.vectors, silent.means, rtol=1e-6, atol=1e-7)
    payload, event, hidden = mechanism.privatize(some(), seeded(0), KNOWN)
    assert hidden.means.shape == payload.vectors.shape
    assert hidden.groups.shape == (5,)
    if not all(isinstance(leaf, NonPrivate) for leaf, _ in leaves(event)):
        assert np.abs(payload.vectors - hidden.means).max() > 0.1


@every_defense
def test_the_order_of_records_does_not_matter(defense):
    mechanism, order = defense.mechanism(rounds=3), np.array([5, 3, 1, 0, 6, 2, 4])
    one, _, _ = mechanism.privatize(some(), seeded(0), KNOWN)
    other, _, _ = mechanism.privatize(held(some().vectors[order], LABELS[order]), seeded(0), KNOWN)
    np.testing.assert_allclose(one.vectors, other.vectors, rtol=1e-5, atol=1e-6)


@every_defense
def test_the_client_keeps_its_embeddings(defense):
    embeddings = held(10 * some().vectors, LABELS)
    before = embeddings.vectors.copy()
    defense.mechanism(rounds=3).privatize(embeddings, seeded(0), KNOWN)
    assert np.array_equal(embeddings.vectors, before)


@every_defense
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_embedding_that_is_not_finite_is_refused_by_its_number(defense, bad):
    vectors = some().vectors.copy()
    vectors[4, 2] = bad
    with pytest.raises(InputError, match="embedding 4 is not finite; drop that record"):
        defense.mechanism(rounds=3).privatize(held(vectors, LABELS), seeded(0), KNOWN)


# a sum of nothing is zero, and that there are no records may be a secret
@pytest.mark.parametrize("defense", [build(n) for n in NAMES if n not in SUMS])
def test_no_records_are_refused(defense):
    with pytest.raises(InputError, match="has no records to average"):
        defense.mechanism(rounds=3).privatize(held(np.zeros((0, 5)), np.zeros(0)), seeded(0))


@every_defense
def test_a_record_of_zeros_is_released_without_warning(defense):
    embeddings = held(np.zeros((4, 5)), np.array([0, 3, 0, 3]))
    for same in (defense, Igpp(epsilon=1.0, clip_norm=1e4), Igpp(epsilon=1.0, clip_norm=1e-4)):
        assert not same.mechanism(rounds=1).privatize(embeddings, NoNoise(), KNOWN)[0].vectors.any()


# ---------------------------------------------------------------------- IGPP


def noise_drawn(defense: AbstractReleaseDefense, counts: list[int], draws: int) -> np.ndarray:
    """Return released minus clean for some draws, shape [draws, P, 128]."""
    labels = np.repeat(np.arange(len(counts)), counts)
    embeddings = held(np.random.default_rng(3).standard_normal((len(labels), 128)), labels)
    mechanism = defense.mechanism(rounds=4)
    clean = mechanism.privatize(embeddings, NoNoise())[0].vectors
    noise = SeededNoise(np.random.default_rng(11))
    return np.array([mechanism.privatize(embeddings, noise)[0].vectors - clean for _ in range(draws)])


@pytest.mark.parametrize(
    ("defense", "factor"),
    [
        (Igpp(epsilon=2.0, clip_norm=5.0), 1.0),
        (FaultyIgpp(claims=Igpp(epsilon=2.0, clip_norm=5.0)), 0.5),
        (FaultyIgpp(claims=Igpp(epsilon=2.0, clip_norm=5.0), fault=LowNoise(factor=0.9)), 0.9),
    ],
    ids=["igpp", "half", "0.9"],
)
def test_noise_of_each_class_is_sigma_2r_over_n(defense, factor):
    counts = [2, 3, 20]
    drawn = noise_drawn(defense, counts, 500)
    sigma = sigma_from_epsilon(epsilon=2.0, delta=1e-5, rounds=4)
    wanted = factor * sigma * 2 * 5.0 / np.array(counts)
    np.testing.assert_allclose(drawn.std(axis=(0, 2)), wanted, rtol=0.01)
    standard = drawn / wanted[:, None]
    assert np.abs(standard.mean(axis=(0, 2))).max() < 4 / (500 * 128) ** 0.5
    assert np.abs(standard.std(axis=0) - 1).max() < 0.15
    by_class, by_draw = standard.transpose(1, 0, 2).reshape(3, -1), standard.reshape(500, -1)
    assert np.abs(np.corrcoef(by_class) - np.eye(3)).max() < 0.02
    assert np.abs(np.corrcoef(by_draw) - np.eye(500)).max() < 0.3


@given(
    epsilon=st.floats(0.05, 50),
    delta=st.sampled_from([1e-3, 1e-5, 1e-9]),
    rounds=st.integers(1, 200),
    radius=st.floats(0.1, 20),
)
def test_all_rounds_together_spend_the_promise_and_no_more(epsilon, delta, rounds, radius):
    defense = Igpp(epsilon=epsilon, delta=delta, clip_norm=radius)
    _, event, _ = defense.mechanism(rounds=rounds).privatize(some(), seeded(0))
    assert isinstance(event, Gaussian)
    assert event.contract.clip_norm == radius
    assert defense.promise == (epsilon, delta)
    mu = np.sqrt(rounds) / event.noise_multiplier
    spent = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    assert spent == pytest.approx(delta, rel=1e-5)


def test_the_faulty_twin_claims_what_it_does_not_draw():
    claims = Igpp(epsilon=2.0)
    faulty = FaultyIgpp(claims=claims)
    honest, event, _ = claims.mechanism(rounds=5).privatize(some(), seeded(0))
    half, claimed, _ = faulty.mechanism(rounds=5).privatize(some(), seeded(0))
    clean, _, _ = claims.mechanism(rounds=5).privatize(some(), NoNoise())
    assert claimed == event
    assert faulty.promise == claims.promise
    np.testing.assert_allclose(
        half.vectors - clean.vectors, 0.5 * (honest.vectors - clean.vectors), rtol=1e-4, atol=1e-5
    )


def released(vectors: np.ndarray, labels: np.ndarray, radius: float = 1.0) -> Prototypes:
    defense = Igpp(epsilon=1.0, clip_norm=radius, smallest_class=1)
    return defense.mechanism(rounds=1).privatize(held(vectors, labels), NoNoise())[0].prototypes()


@given(arrays(np.float64, (4, 3), elements=st.floats(-50, 50)), st.floats(0.5, 10))
def test_the_clip_is_exact_and_leaves_shorter_records_alone(vectors, radius):
    out = released(vectors, np.arange(4), radius).vectors
    for row, clipped in zip(vectors, out, strict=True):
        length = np.linalg.norm(row)
        if length <= radius:
            assert np.array_equal(clipped, row.astype(np.float32))
        else:
            assert np.linalg.norm(clipped) == pytest.approx(radius, rel=1e-6)
            np.testing.assert_allclose(clipped * length, row * radius, rtol=1e-4, atol=1e-4)


def test_the_clip_is_per_record_and_not_of_the_mean():
    out = released(np.array([[30.0, 0.0], [0.0, 0.4]]), np.array([0, 0])).vectors
    np.testing.assert_allclose(out, [[0.5, 0.2]], rtol=1e-6)


@given(
    arrays(np.float64, (RECORDS, 5), elements=st.floats(-5, 5)),
    arrays(np.float64, 5, elements=st.floats(-5, 5)),
    st.integers(0, 5),
    st.floats(0.2, 4),
)
def test_replacing_a_record_moves_its_class_by_at_most_2r_over_n(vectors, other, row, radius):
    replaced = vectors.copy()
    replaced[row] = other
    one, two = released(vectors, LABELS, radius), released(replaced, LABELS, radius)
    moved = np.linalg.norm(one.vectors.astype(np.float64) - two.vectors, axis=1)
    own = one.labels == LABELS[row]
    assert not moved[~own].any()
    assert moved[own][0] <= 2 * radius / (LABELS[row] == LABELS).sum() * (1 + 1e-5)


@given(arrays(np.float64, 5, elements=st.floats(-5, 5)), st.integers(0, 5), st.floats(0.2, 4))
def test_opposite_records_outside_the_ball_attain_2r_over_n(direction, row, radius):
    far = direction + np.array([30.0, 0, 0, 0, 0])
    vectors = some().vectors.copy()
    vectors[row] = far
    one = released(vectors, LABELS, radius)
    vectors[row] = -far
    two = released(vectors, LABELS, radius)
    moved = np.linalg.norm(one.vectors.astype(np.float64) - two.vectors, axis=1)
    assert moved.max() == pytest.approx(2 * radius / (LABELS[row] == LABELS).sum(), rel=1e-5)


@pytest.mark.parametrize(
    ("key", "value"),
    [("epsilon", 0.0), ("epsilon", np.nan), ("delta", 1.0), ("clip_norm", -1.0), ("clip_norm", np.inf)],
)
def test_an_impossible_setting_is_refused_by_name(key, value):
    with pytest.raises(InputError, match=f"igpp: {key}="):
        plug.build(PACKAGE, {"name": "igpp", "epsilon": 1.0, key: value})


def test_a_class_of_one_record_is_refused_unless_it_is_wanted():
    alone = held(np.ones((3, 4)), np.array([0, 0, 5]))
    with pytest.raises(
        InputError, match=r"class 5 of a client has 1 record, and smallest_class is 2: .* lower"
    ):
        Igpp(epsilon=1.0).mechanism(rounds=1).privatize(alone, seeded(0))
    sent = Igpp(epsilon=1.0, smallest_class=1).mechanism(rounds=1).privatize(alone, seeded(0)).payload
    assert sent.labels.tolist() == [0, 5]
