"""What a head tells of the records it was trained on, behind a rotation that nobody else has."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from attacks._base import NotApplicableError
from attacks._estimated_map import Shown, behind, estimated
from attacks._models import Model, units, unsent
from attacks._passes import joined, passes
from attacks._procrustes import degrees_apart, turned
from attacks.gradient._base import GradientAttack
from attacks.model._base import ModelAttack
from attacks.statistics.auc import auc
from privkit import plug
from privkit.exposure import GradientView
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.release import Head, Update
from privkit.transcript import Records, ServerView, Setup
from tests import heads
from tests.head_federation import TAU, drawn, federation
from tests.test_procrustes import rotations

ON_MODELS = plug.names("attacks.model")
READ_STEPS = (
    "column_energy",
    "fedmia",
    "gradient_cosine",
    "head_only",
    "joint_decoding",
    "leverage",
    "matched_filter",
    "projres",
)


def on_steps(name: str, **changes: object) -> GradientAttack:
    found = plug.build("attacks.gradient", {"name": name, **changes})
    assert isinstance(found, GradientAttack)
    return found


# ---------------------------------------------------------------------- the law of one step


@pytest.mark.parametrize(("blocks", "rate"), [(1, 3.0), (4, 10.0)])
@pytest.mark.parametrize("rounds", [1, 40])
def test_fewer_records_than_classes_are_told_from_others_by_one_step_whatever_the_rotations(
    rounds, blocks, rate
):
    """FedOT, n = 16, K = 20, d = 256: after 40 rounds rotations turn members by 25 to 40 degrees, and hide none."""
    step = federation(0, rounds=rounds, blocks=blocks, turning_rate=rate)
    scores = on_steps("projres").score(step.view, step.candidates)
    assert roc_auc_score(step.members, scores) == 1.0
    if rounds == 1:
        assert scores[step.members].min() > 0.999
        return
    raw_Nd = units(step.candidates.vectors)
    turned_Nd = np.einsum("nij,nj->ni", step.maps_Gdd[step.candidates.clients], raw_Nd)
    cosines_N = (raw_Nd * turned_Nd).sum(1)[step.members]
    assert cosines_N.max() < 0.96
    assert cosines_N.min() < 0.9


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(2, 5))
def test_the_inner_products_of_a_step_do_not_depend_on_the_rotation(seed, records, classes):
    """G G^T = tau^2 sum_ij delta_i delta_j^T <u_i, u_j>, and no Q in it."""
    rng = np.random.default_rng(seed)
    own = drawn(rng, rng.standard_normal((classes, 8)), 1, records)
    model = Model({"head.vectors": rng.standard_normal((8, classes))}, Setup(temperature=TAU))
    q_1dd = rotations(rng, 1, 8)
    same = behind(Model({"head.vectors": q_1dd[0] @ model.named["head.vectors"]}, model.setup), q_1dd)
    plain, turned_by = (_gradient(m, own) for m in (model, same))
    np.testing.assert_allclose(turned_by, plain @ q_1dd[0].T, atol=1e-4)
    np.testing.assert_allclose(turned_by @ turned_by.T, plain @ plain.T, atol=1e-3)
    u = units(own.vectors)
    delta = passes(model, own.vectors, own.labels).traces["head.vectors"].slopes[:, 0]
    np.testing.assert_allclose(plain @ plain.T, delta.T @ (u @ u.T) @ delta, atol=1e-3)


def _gradient(model: Model, own: Records) -> np.ndarray:
    return passes(model, own.vectors, own.labels).traces["head.vectors"].gradients().sum(0).astype(np.float64)


@pytest.mark.parametrize("name", READ_STEPS)
def test_records_that_were_not_trained_on_are_not_told_apart(name):
    """The null: over 20 federations the AUC is one half on average, and intervals cover it."""
    attack, areas, covered = on_steps(name), [], 0
    for seed in range(20):
        step = federation(seed, rounds=2, clients=4, records=20, classes=6, dim=16, leaks=False)
        scores = attack.score(step.view, step.candidates)
        found = auc(scores[step.members], scores[~step.members])
        assert found.value is not None
        assert found.low is not None
        assert found.high is not None
        areas.append(found.value)
        covered += found.low <= 0.5 <= found.high
    assert covered >= 16
    assert abs(np.mean(areas) - 0.5) <= 4 * np.std(areas, ddof=1) / len(areas) ** 0.5 + 1e-12


@pytest.mark.parametrize("name", READ_STEPS)
def test_records_of_a_small_batch_are_told_apart(name):
    areas = []
    for seed in range(4):
        step = federation(seed, rounds=1, clients=4, records=8, classes=12, dim=48)
        areas.append(roc_auc_score(step.members, on_steps(name).score(step.view, step.candidates)))
    assert np.mean(areas) > (0.55 if name in ("column_energy", "fedmia") else 0.8)


# ---------------------------------------------------------------------- passes


def network(**settings: object) -> Network:
    return Network(PersonalModel.model_validate(settings))


@pytest.mark.parametrize(
    "model",
    [{"temperature": 7.0}, {}, {"hidden": (9, 5)}, {"adapter": 3}],
    ids=["temperature", "plain", "layers", "adapter"],
)
def test_a_trace_is_the_gradient_that_autograd_gives_each_record(model):
    net, rng = network(**model), np.random.default_rng(0)
    start = net.start(dim=6, num_classes=4, seed=0)
    named = {n: (p + 0.3 * rng.standard_normal(p.shape)).astype(np.float32) for n, p in start.items()}
    x, y = rng.standard_normal((5, 6)), rng.integers(0, 4, 5)
    found = passes(Model(named, Setup(temperature=net.settings.temperature)), x, y)
    for row in range(5):
        live = {n: torch.from_numpy(p).double()[None].requires_grad_() for n, p in named.items()}
        logits = net.logits(live, net.embed(live, torch.from_numpy(x[row])[None, None]))
        loss = torch.nn.functional.cross_entropy(logits[0], torch.from_numpy(y[[row]]))
        np.testing.assert_allclose(found.logits[row], logits[0, 0].detach(), rtol=1e-4, atol=1e-5)
        assert found.losses[row] == pytest.approx(loss.item(), rel=1e-6)
        wanted = torch.autograd.grad(loss, [live[name] for name in found.traces])
        for trace, slope in zip(found.traces.values(), wanted, strict=True):
            np.testing.assert_allclose(trace.gradients()[row].T, slope[0], rtol=1e-4, atol=1e-6)


def test_an_embedding_of_zeros_moves_nothing_and_has_a_score():
    step = federation(1, rounds=2, records=6, classes=8, dim=12)
    asked = replace(
        step.candidates, vectors=np.where(np.arange(36)[:, None] == 3, 0, step.candidates.vectors)
    )
    passed = passes(step.model, asked.vectors, asked.labels)
    assert not passed.traces["head.vectors"].gradients()[3].any()
    assert passed.losses[3] == pytest.approx(np.log(8))
    view = replace(step.view, asked={0: passed})
    for name in READ_STEPS:
        assert np.isfinite(on_steps(name).score(view, asked)).all()


def test_a_class_that_is_none_and_a_number_that_is_none_are_refused():
    model = Model({"head.vectors": np.ones((3, 4))}, Setup(temperature=2.0))
    with pytest.raises(NotApplicableError, match="classes from 0 to 4 are asked about, and the head has 4"):
        passes(model, np.ones((2, 3)), np.array([0, 4]))
    with pytest.raises(NotApplicableError, match="gives a logit that is not finite"):
        passes(model, np.array([[1.0, np.nan, 0.0]]), np.array([0]))
    with pytest.raises(NotApplicableError, match="the model reads 3 numbers, and records have 2"):
        passes(model, np.ones((1, 2)), np.array([0]))


def test_passes_of_groups_are_those_of_all_in_their_order():
    rng = np.random.default_rng(2)
    model = Model({"head.vectors": rng.standard_normal((5, 3))}, Setup(temperature=4.0))
    x, y, order = rng.standard_normal((7, 5)), rng.integers(0, 3, 7), rng.permutation(7)
    parts = [passes(model, x[order][some], y[order][some]) for some in (slice(0, 3), slice(3, 7))]
    found, whole = joined(parts, np.argsort(order)), passes(model, x, y)
    assert np.array_equal(found.traces["head.vectors"].slopes, whole.traces["head.vectors"].slopes)
    assert np.array_equal(found.losses, whole.losses)


def test_a_head_of_one_class_says_nothing():
    model = Model({"head.vectors": np.ones((4, 1))}, Setup(temperature=2.0))
    passed = passes(model, np.random.default_rng(0).standard_normal((6, 4)), np.zeros(6, np.int64))
    assert not passed.traces["head.vectors"].slopes.any()
    step = federation(0, rounds=1, clients=1, records=3, classes=1, dim=4)
    for name in ("projres", "gradient_cosine", "joint_decoding"):
        assert (on_steps(name).score(step.view, step.candidates) == 0).all()
    sent = Update(named={"head.vectors": np.ones((4, 1), np.float32)}, means="weights")
    view = ServerView((replace(step.view.releases[0], payload=sent),), step.view.reference, step.view.setup)
    for name in ON_MODELS:
        with pytest.raises(NotApplicableError, match=r"has one class|is no trajectory"):
            plug.build("attacks.model", name).score(view, step.candidates)  # pyright: ignore[reportAttributeAccessIssue]


def test_one_client_alone_is_scored_and_has_no_others_to_be_compared_with():
    step = federation(3, rounds=2, clients=1, records=6, classes=10, dim=32)
    assert roc_auc_score(step.members, on_steps("projres").score(step.view, step.candidates)) == 1.0
    with pytest.raises(NotApplicableError, match="0 other clients"):
        on_steps("fedmia").score(step.view, step.candidates)


# ---------------------------------------------------------------------- the map


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_rotation_that_the_classes_show_is_found(blocks):
    """As many classes as directions, and the client's records drawn as the attacker's are."""
    rng = np.random.default_rng(5)
    centres = 3 * rng.standard_normal((40, 12))
    q_rbb = rotations(rng, blocks, 12 // blocks)
    half = [np.linalg.matrix_power(q, 1) for q in q_rbb]
    q_rbb = np.stack([_part_of(q) for q in half])
    private, owned = (drawn(rng, centres, 1, n) for n in (4000, 4000))
    setup = Setup(temperature=5.0, before="rotation", blocks=blocks)
    shown = []
    for seed in range(3):
        head = centres / np.linalg.norm(centres, axis=1, keepdims=True)
        model = Model(
            {"head.vectors": (head + 0.1 * np.random.default_rng(seed).standard_normal(head.shape)).T}, setup
        )
        shown.append(Shown(model, -_gradient(behind(model, q_rbb), private)))
    found = estimated(shown, owned, blocks=blocks, records=4000)
    naive = degrees_apart(np.tile(np.eye(12 // blocks), (blocks, 1, 1)), q_rbb)
    assert naive > 20
    assert degrees_apart(found, q_rbb) < naive / 4


def _part_of(q_bb: np.ndarray) -> np.ndarray:
    """Return a rotation of some 30 degrees along another."""
    skew = (q_bb - q_bb.T) / 2
    x = 0.45 * skew / max(np.linalg.norm(skew, 2), 1e-12)
    return np.linalg.solve(np.eye(len(x)) - x, np.eye(len(x)) + x)


def test_steps_that_change_nothing_and_no_records_leave_the_identity():
    model = Model({"head.vectors": np.ones((4, 3))}, Setup(temperature=2.0, before="rotation"))
    own = Records(vectors=np.ones((2, 4)), labels=np.zeros(2, np.int64), clients=np.zeros(2, np.int64))
    for shown, records in (
        ([Shown(model, np.zeros((3, 4)))], own),
        ([Shown(model, np.ones((3, 4)))], own.where(np.zeros(0, np.int64))),
    ):
        assert (estimated(shown, records, blocks=2, records=4) == np.eye(2)).all()


def test_behind_a_rotation_a_model_reads_what_is_turned():
    rng = np.random.default_rng(0)
    q_rbb = rotations(rng, 2, 3)
    model = Model({"head.vectors": rng.standard_normal((6, 4))}, Setup(temperature=3.0))
    x = rng.standard_normal((5, 6))
    np.testing.assert_allclose(behind(model, q_rbb).logits(x), model.logits(turned(q_rbb, x)))


def test_what_is_taken_for_the_map_is_in_label_and_threat():
    raw, guessed, true = (on_steps("projres", personal_map=m) for m in ("identity", "estimated", "own"))
    assert [a.label for a in (raw, guessed, true)] == [
        "projres",
        "projres (estimated map)",
        "projres (insider)",
    ]
    assert [a.assumed.tier for a in (raw, guessed, true)] == ["public", "shadow", "insider"]
    assert any("outside the claimed guarantee" in known for known in true.assumed.knows)
    both = on_steps("matched_filter", estimator="dual", personal_map="own")
    assert both.label == "matched_filter (dual, insider)"


# ---------------------------------------------------------------------- attacks on the weights themselves


def at_temperature(one: heads.Scene, *, before: str = "") -> ServerView:
    """Return the view of a run whose clients train heads at a temperature on the same records."""
    releases = []
    trained_on = one.records.where(one.members)
    for client in range(heads.CLIENTS):
        w = np.full((heads.DIM, heads.CLASSES), 0.01)
        u, y = units(trained_on.of(client).vectors), np.eye(heads.CLASSES)[trained_on.of(client).labels]
        for t in range(heads.ROUNDS):
            payload = Update(named={"head.vectors": w.astype(np.float32)}, means="weights")
            old = next(r for r in one.releases if (r.round, r.client) == (t, client))
            releases.append(replace(old, payload=payload))
            for _ in range(100):
                z = TAU * u @ w
                p = np.exp(z - z.max(1, keepdims=True))
                w = w - 0.05 * TAU * u.T @ (p / p.sum(1, keepdims=True) - y) / len(u)
    setup = Setup(temperature=TAU, before=before, parameters="transform." if before else "")
    ordered = tuple(sorted(releases, key=lambda r: (r.round, r.client)))
    return ServerView(ordered, one.reference, setup)


@pytest.fixture(scope="module")
def scene() -> heads.Scene:
    return heads.scene()


@pytest.fixture(scope="module")
def view(scene: heads.Scene) -> ServerView:
    return at_temperature(scene)


@pytest.mark.parametrize("name", ON_MODELS)
def test_an_overfitted_head_at_a_temperature_is_caught(name, scene, view):
    attack = plug.build("attacks.model", name)
    assert isinstance(attack, ModelAttack)
    scores = attack.score(view, scene.records)
    found = auc(scores[scene.members], scores[~scene.members])
    assert found.low is not None
    assert found.low > 0.55


def test_how_long_embeddings_are_does_not_matter_to_such_a_head(scene, view):
    lengths = np.random.default_rng(0).uniform(0.1, 10, (len(scene.records), 1))
    longer = replace(scene.records, vectors=lengths * scene.records.vectors)
    for name in ON_MODELS:
        attack = plug.build("attacks.model", name)
        assert isinstance(attack, ModelAttack)
        np.testing.assert_allclose(attack.score(view, longer), attack.score(view, scene.records), rtol=1e-6)


def test_a_temperature_that_is_not_known_is_asked_for(scene, view):
    with pytest.raises(NotApplicableError, match="at which temperature is not known"):
        plug.build("attacks.model", "loss").score(replace(view, setup=Setup()), scene.records)  # pyright: ignore[reportAttributeAccessIssue]


def test_a_map_that_is_not_sent_is_said(scene, view):
    said = "the client's rotation is not sent; scored as if it were the identity"
    assert unsent(view) == ""
    kept = at_temperature(scene, before="rotation")
    assert unsent(kept) == said
    sent = Update(
        named={"head.vectors": np.ones((2, 2)), "transform.x": np.zeros((1, 2, 2))}, means="weights"
    )
    assert unsent(replace(kept, releases=(replace(kept.releases[0], payload=sent),))) == ""
    assert unsent(GradientView((), batch_size=1)) == ""
    assert Head(weights=np.ones((2, 3))).nbytes
