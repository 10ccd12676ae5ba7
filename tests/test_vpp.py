"""VPP: the release is the paper's, costs what it says, and its selection does what can be computed beforehand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_selection import f_classif

from accountant.accountants import answers, smallest
from accountant.claims import claim
from accountant.contract import DependsOn, Query
from accountant.events import Composed, GroupGaussian, LaplaceTopK, NonPrivate, Repeated, leaves
from accountant.gaussian import sigma_from_epsilon
from accountant.selection import fidelity, scale
from accountant.vpp import SplitCalibration
from privkit import plug
from privkit.defenses._base import AbstractReleaseDefense, Mechanism
from privkit.defenses.vpdr import Vpdr
from privkit.defenses.vpp import Vpp
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import NoNoise, SeededNoise
from privkit.partitions._scores import discriminability
from privkit.partitions.laplace import Laplace
from privkit.partitions.oracle import Oracle
from privkit.partitions.random import Random

DIM = 512
LABELS = np.repeat(np.arange(4, dtype=np.int64), [5, 8, 20, 3])


def held(seed: int = 0, *, dim: int = DIM, labels: np.ndarray = LABELS, lift: float = 1.0) -> Embeddings:
    """Return records whose first tenth of coordinates tells their class."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((len(labels), dim))
    vectors[:, : dim // 10] += lift * rng.standard_normal((int(labels.max()) + 1, dim // 10))[labels]
    return Embeddings(vectors=vectors, labels=labels, encoder=DependsOn.PUBLIC)


def noise(seed: int = 0) -> SeededNoise:
    return SeededNoise(np.random.default_rng(seed))


# ---------------------------------------------------------------------- the release


@pytest.mark.parametrize(("rho", "size"), [(0.1, 52), (0.2, 103), (0.3, 154), (0.4, 205), (0.5, 256)])
def test_groups_have_the_size_of_the_table(rho, size):
    sent = Vpp(epsilon=1.0, rho=rho).mechanism(rounds=20).privatize(held(), noise())
    assert (sent.hidden.groups == 0).sum() == size


@pytest.mark.parametrize("rho", [0.1, 0.2, 0.5])
def test_noise_of_each_group_is_what_the_paper_says(rho):
    """The standard deviation is sigma_g Delta_g within 1 % over 4,000 draws (VPDR, Eq. 14)."""
    radius, rounds, draws, dim = 5.0, 20, 4000, 40
    embeddings = held(dim=dim)
    mechanism = Vpp(epsilon=2.0, clip_norm=radius, rho=rho).mechanism(rounds=rounds)
    source = noise(5)
    sent = [mechanism.privatize(embeddings, source) for _ in range(draws)]
    left = np.array([s.payload.vectors - s.hidden.means for s in sent])
    groups = np.array([s.hidden.groups for s in sent])
    share = np.ceil(rho * dim) / dim
    kappa = np.sqrt([share, 1 - share])
    weight = kappa[::-1] / kappa.sum()
    sigma = mechanism.noise_multiplier / np.sqrt(weight)
    for group in (0, 1):
        wanted = sigma[group] * 2 * radius * kappa[group] / np.array([5, 8, 20, 3])
        mine = left.transpose(0, 2, 1)[groups == group]
        np.testing.assert_allclose(mine.std(axis=0), wanted, rtol=0.01)
    assert (sigma**-2.0).sum() == pytest.approx(mechanism.noise_multiplier**-2.0, rel=1e-12)


@settings(max_examples=30)
@given(seed=st.integers(0, 999), rho=st.floats(0.1, 0.5), spread=st.sampled_from([0.01, 1.0, 50.0]))
def test_no_record_counts_for_more_than_the_clip_norm(seed, rho, spread):
    """Replacing a record moves each group of its class by at most 2 R_g / n, and the whole by at most 2R / n."""
    before = held(seed, dim=30)
    vectors = spread * before.vectors
    vectors[3] = -1e3 * np.random.default_rng(seed).standard_normal(30)
    mechanism = Vpp(epsilon=1.0, clip_norm=2.0, rho=rho, partition=Random()).mechanism(rounds=1)
    one = mechanism.privatize(before.with_vectors(spread * before.vectors), noise(seed))
    two = mechanism.privatize(before.with_vectors(vectors), noise(seed))
    assert (one.hidden.groups == two.hidden.groups).all()
    moved = np.abs(one.hidden.means - two.hidden.means)
    assert not moved[1:].any()
    leaf = [leaf for leaf, _ in leaves(one.event)][-1]
    assert isinstance(leaf, GroupGaussian)
    for group, norm in enumerate(leaf.clip_norms):
        assert np.linalg.norm(moved[0, one.hidden.groups == group]) <= 2 * norm / 5 * (1 + 1e-9)
    assert np.linalg.norm(leaf.clip_norms) == pytest.approx(2.0, rel=1e-12)


def test_the_ellipsoid_draws_the_same_noise_and_clips_less():
    """Same seed, same partition, same noise; records between the balls and the ellipsoid keep more of themselves."""
    balls, ellipsoid = (
        Vpp(epsilon=2.0, clip_norm=5.0, partition=Random(), clip=clip)
        .mechanism(rounds=5)
        .privatize(held(), noise())
        for clip in ("groupwise", "ellipsoid")
    )
    assert (balls.hidden.groups == ellipsoid.hidden.groups).all()
    drawn = [s.payload.vectors - s.hidden.means for s in (balls, ellipsoid)]
    np.testing.assert_allclose(drawn[0], drawn[1], rtol=1e-3, atol=1e-4)
    assert smallest(balls.event, delta=1e-5).epsilon == pytest.approx(
        smallest(ellipsoid.event, delta=1e-5).epsilon
    )
    full = Vpp(epsilon=2.0, clip_norm=1e6, partition=Random()).mechanism(rounds=5).privatize(held(), noise())
    lost = [np.linalg.norm(s.hidden.means - full.hidden.means) for s in (balls, ellipsoid)]
    assert lost[1] < lost[0]


@settings(max_examples=30)
@given(seed=st.integers(0, 999), rho=st.floats(0.1, 0.5), spread=st.sampled_from([0.01, 1.0, 50.0]))
def test_in_the_ellipsoid_no_record_moves_its_class_by_more_than_the_noise_is_for(seed, rho, spread):
    """In units of the noise, a replaced record moves its class by at most 1 / sigma_ref; opposites attain it."""
    before = held(seed, dim=30)
    mechanism = Vpp(epsilon=1.0, clip_norm=2.0, rho=rho, partition=Random(), clip="ellipsoid").mechanism(
        rounds=1
    )
    other = spread * np.random.default_rng(seed).standard_normal(30)
    sent = []
    for row in (other, -other):
        vectors = before.vectors.copy()
        vectors[3] = row
        sent.append(mechanism.privatize(before.with_vectors(vectors), noise(seed)))
    moved = sent[0].hidden.means - sent[1].hidden.means
    leaf = sent[0].event
    assert isinstance(leaf, GroupGaussian)
    std = 2 * np.multiply(leaf.noise_multipliers, leaf.clip_norms)[sent[0].hidden.groups] / 5
    length = float(np.linalg.norm(moved[0] / std))
    assert length <= (1 + 1e-9) / mechanism.noise_multiplier
    assert not moved[1:].any()
    if spread == 50.0:
        assert length == pytest.approx(1 / mechanism.noise_multiplier, rel=1e-9)
    assert leaf.contract.clip_norm == max(2.0, *leaf.clip_norms)


# ---------------------------------------------------------------------- what it costs


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
@pytest.mark.parametrize("rounds", [1, 20, 50])
def test_all_rounds_together_spend_the_promise(epsilon, rounds):
    _, event, _ = Vpp(epsilon=epsilon, clip_norm=5.0).mechanism(rounds=rounds).privatize(held(), noise())
    whole = Repeated(event=event, count=rounds)
    found = claim(whole, delta=1e-5)
    assert found.covered
    assert 0.9 * epsilon < found.epsilon <= epsilon * (1 + 1e-9)
    joint = next(answer.epsilon for answer in answers(whole, delta=1e-5) if answer.method == "joint")
    assert joint == pytest.approx(epsilon, rel=1e-9)


def test_the_event_holds_a_selection_and_a_release():
    _, event, _ = (
        Vpp(epsilon=1.0, partition=Laplace(split=0.2)).mechanism(rounds=10).privatize(held(), noise())
    )
    assert isinstance(event, Composed)
    selection, release = event.events
    assert isinstance(selection, LaplaceTopK)
    assert (selection.k, selection.dim) == (103, 512)
    assert selection.epsilon == pytest.approx(0.02)
    assert selection.contract.query is Query.BOUNDED_SCORES
    assert isinstance(release, GroupGaussian)
    assert release.sizes == (103, 409)


def test_joint_and_split_accounting_give_the_published_multipliers():
    """The values of the accounting specification, T = 50, r = 0.1, epsilon 1, delta 1e-5."""
    joint = Vpp(epsilon=1.0).mechanism(rounds=50).noise_multiplier
    split = Vpp(epsilon=1.0, calibration=SplitCalibration.SPLIT).mechanism(rounds=50).noise_multiplier
    coded = Vpp(epsilon=1.0, calibration=SplitCalibration.CODED).mechanism(rounds=50).noise_multiplier
    assert joint == pytest.approx(26.416335704678840, abs=1e-8)
    assert split == pytest.approx(29.038, abs=1e-3)
    assert coded == pytest.approx(38.42, abs=0.01)


def test_a_random_partition_costs_nothing_and_an_oracle_promises_nothing():
    free = Vpp(epsilon=1.0, partition=Random())
    _, event, _ = free.mechanism(rounds=10).privatize(held(), noise())
    assert isinstance(event, GroupGaussian)
    assert free.mechanism(rounds=10).noise_multiplier == sigma_from_epsilon(
        epsilon=1.0, delta=1e-5, rounds=10
    )
    oracle = Vpp(epsilon=1.0, partition=Oracle())
    assert oracle.promise is None
    _, event, hidden = oracle.mechanism(rounds=10).privatize(held(lift=30.0), noise())
    assert any(isinstance(leaf, NonPrivate) for leaf, _ in leaves(event))
    assert hidden.groups[:51].sum() == 0
    assert claim(event, delta=1e-5).epsilon == np.inf


# ---------------------------------------------------------------------- the selection


def test_scores_are_the_f_statistic():
    """Independent oracle: scikit-learn's ANOVA F, as zeta goes to 0 (VPDR, Eqs. 7 and 8)."""
    embeddings = held(dim=20)
    wanted = f_classif(embeddings.vectors, embeddings.labels)[0]
    np.testing.assert_allclose(discriminability(embeddings, stabiliser=0.0), wanted, rtol=1e-9)
    bent = discriminability(embeddings, stabiliser=0.0, stabiliser_of_median=1e-3)
    assert (bent < wanted).all()


def test_scores_of_single_records_and_of_one_class_are_zero():
    alone = Embeddings(vectors=np.eye(4), labels=np.arange(4, dtype=np.int64), encoder=DependsOn.PUBLIC)
    assert not discriminability(alone, stabiliser=1e-6).any()
    same = Embeddings(vectors=np.eye(4), labels=np.full(4, 3, np.int64), encoder=DependsOn.PUBLIC)
    assert not discriminability(same, stabiliser=0.0, stabiliser_of_median=1e-3).any()


@pytest.mark.parametrize("defense", [Vpp(epsilon=1e6), Vpdr(epsilon=1e6)])
def test_a_client_of_one_class_chooses_by_noise_alone_at_the_same_cost(defense):
    """Whatever epsilon is: with two classes, such a budget finds the coordinates that separate them."""
    mechanism, one_class = defense.mechanism(rounds=1), held(labels=np.full(30, 3, np.int64))
    chosen = [mechanism.privatize(one_class, noise(seed)).hidden.groups == 0 for seed in range(40)]
    assert {int(some.sum()) for some in chosen} == {103}
    drawn_d = np.mean(chosen, axis=0)
    assert drawn_d.max() < 0.65  # seven standard deviations above 103 / 512
    other = one_class.with_vectors(held(1, labels=one_class.labels).vectors)
    assert np.array_equal(mechanism.privatize(other, noise(0)).hidden.groups == 0, chosen[0])
    assert mechanism.event(one_class) == mechanism.event(other)
    assert isinstance(mechanism.event(one_class), Composed)


def overlaps(mechanism: Mechanism, embeddings: Embeddings, size: int, draws: int) -> np.ndarray:
    """Return the share of the true top-k that each of some draws selects."""
    scores = np.minimum(discriminability(embeddings, stabiliser=1e-6), 0.1)
    best = np.argsort(-scores, kind="stable")[:size]
    source = noise(7)
    sent = (mechanism.privatize(embeddings, source) for _ in range(draws))
    return np.array([(s.hidden.groups[best] == 0).mean() for s in sent])


@pytest.mark.parametrize(("rho", "size"), [(0.1, 52), (0.2, 103)])
def test_at_epsilon_1_the_selection_is_chance(rho, size):
    found = overlaps(Vpp(epsilon=1.0, rho=rho).mechanism(rounds=20), held(), size, 300)
    assert abs(found.mean() - size / DIM) < 3 * found.std() / 300**0.5


def test_the_selection_is_as_faithful_as_computed_beforehand():
    """Scores at the bound on the true top-k and 0 elsewhere: the case that the fidelity is computed for."""
    embeddings = held(dim=60, lift=100.0)
    vectors = embeddings.vectors.copy()
    mean = np.array([vectors[embeddings.labels == c].mean(0) for c in range(4)])
    vectors[:, 6:] -= mean[embeddings.labels][:, 6:]
    embeddings = embeddings.with_vectors(vectors)
    epsilon = 600.0
    found = overlaps(Vpp(epsilon=epsilon, rho=0.1).mechanism(rounds=1), embeddings, 6, 2000)
    ratio = scale(k=6, score_bound=0.1, epsilon_total=0.1 * epsilon) / 0.1
    wanted = fidelity(dim=60, k=6, scale_over_range=ratio).expected_overlap
    assert 0.3 < wanted < 0.999
    assert found.mean() == pytest.approx(wanted, abs=4 * found.std() / 2000**0.5)


def test_a_random_partition_looks_at_no_record():
    mechanism = Vpp(epsilon=1.0, partition=Random()).mechanism(rounds=1)
    one, two = (mechanism.privatize(held(s), noise(3)).hidden.groups for s in (1, 2))
    assert (one == two).all()


def test_every_release_draws_a_new_partition():
    mechanism, source = Vpp(epsilon=1.0).mechanism(rounds=2), noise()
    one, two = (mechanism.privatize(held(), source).hidden.groups for _ in range(2))
    assert 0.05 < ((one == 0) & (two == 0)).sum() / 103 < 0.4


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"rho": 0.6}, "rho=0.6: input should be less than or equal to 0.5"),
        ({"rho": 0.0}, "rho=0.0: input should be greater than 0"),
        ({"clip_norm": 0.0}, "clip_norm=0.0"),
        ({"clip_norm": -1.0}, "clip_norm=-1.0"),
        ({"partition": {"name": "laplace", "split": 1.0}}, "split=1.0: input should be less than 1"),
        ({"partition": {"name": "laplace", "split": 0.0}}, "split=0.0: input should be greater than 0"),
        ({"partition": {"name": "laplace", "score_bound": 0.0}}, "score_bound=0.0"),
        (
            {"partition": "histroy"},
            "partition 'histroy' is unknown; known are gaussian, gumbel, history, laplace, ",
        ),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"calibration": "exact"}, "calibration='exact'"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings_, message):
    with pytest.raises(InputError) as error:
        plug.build("privkit.defenses", {"name": "vpp", "epsilon": 1.0, **settings_})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("dim", "rho", "message"),
    [(4, 0.1, "less than one coordinate"), (1, 0.5, "dim=1")],
)
def test_too_few_coordinates_for_two_groups_are_refused(dim, rho, message):
    labels = np.array([0, 0, 1, 1], dtype=np.int64)
    embeddings = Embeddings(vectors=np.ones((4, dim)), labels=labels, encoder=DependsOn.PUBLIC)
    with pytest.raises(ValueError, match=message):
        Vpp(epsilon=1.0, rho=rho).mechanism(rounds=1).privatize(embeddings, NoNoise())


def test_single_records_are_refused():
    labels = np.array([0, 0, 1], dtype=np.int64)
    embeddings = Embeddings(vectors=np.ones((3, 10)), labels=labels, encoder=DependsOn.PUBLIC)
    with pytest.raises(InputError, match="class 1 of a client has 1 record, and smallest_class is 2"):
        Vpp(epsilon=1.0).mechanism(rounds=1).privatize(embeddings, NoNoise())


def test_vpdr_releases_as_vpp_does():
    whole = Vpdr(epsilon=2.0, clip_norm=5.0, rho=0.3)
    alone = Vpp(epsilon=2.0, clip_norm=5.0, rho=0.3)
    one, two = (defense.mechanism(rounds=3).privatize(held(), noise()) for defense in (alone, whole))
    assert one.payload.digest() == two.payload.digest()
    assert one.event == two.event
    assert whole.local.radius == 5.0


# ---------------------------------------------------------------------- the older public revision


def test_the_older_revision_draws_less_noise_than_the_paper_and_shows_its_scores():
    settings_ = {"epsilon": 1.0, "rho": 0.2, "clip_norm": 5.0}
    defense = plug.build("privkit.defenses", {"name": "vpp_early", **settings_})
    assert isinstance(defense, AbstractReleaseDefense)
    mechanism, source, embeddings = defense.mechanism(rounds=20), noise(2), held(dim=60)
    sent = [mechanism.privatize(embeddings, source) for _ in range(300)]
    left = np.array([s.payload.vectors - s.hidden.means for s in sent])
    power = (left[:, 2] ** 2).mean() / (2 * 5.0 / 20) ** 2 / 24.301**2
    assert power == pytest.approx(0.68, abs=0.01)  # of isotropic noise at sigma_ref, which is 24.301 here
    best = np.argsort(-discriminability(embeddings, stabiliser=1e-6), kind="stable")[:12]
    assert all((s.hidden.groups[best] == 0).all() for s in sent)
    found = claim(sent[0].event, delta=1e-5)
    assert found.epsilon == np.inf
    assert defense.promise == (1.0, 1e-5)


@pytest.mark.parametrize("inner", [{"name": "dcr"}, {"name": "vpdr", "epsilon": 1.0}])
def test_two_local_rules_are_refused(inner):
    with pytest.raises(InputError, match=r"changes local training too, and only one defense can; give one"):
        plug.build("privkit.defenses", {"name": "dcr", "release": inner})
