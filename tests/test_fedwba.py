"""FedWBA: transport against every permutation, Stein's direction against a double loop, and clients against theirs."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.federation import Engine, Federation
from privkit.methods._free_support import assigned, free_support_barycenter
from privkit.methods._simplex import onto_simplex, smallest_form
from privkit.methods.fedwba import PARTICLES, FedWba, stein_direction
from privkit.personal import PersonalModel
from privkit.release import Update
from tests import federation
from tests.federation import NETWORK, C, D, G

SGD = {"epochs": 1, "batch_size": 16, "optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0}


def wba(**settings) -> FedWba:
    return FedWba.model_validate({"particles": 3, "training": SGD, **settings})


# ---------------------------------------------------------------------- barycenter


@given(st.integers(0, 999), st.integers(1, 5), st.integers(1, 4))
def test_transport_is_the_best_of_all_permutations(seed, count, dim):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, count, dim))
    best = min(((x - y[list(order)]) ** 2).sum() for order in itertools.permutations(range(count)))
    assert ((x - y[assigned(x, y)]) ** 2).sum() == pytest.approx(best, rel=1e-12, abs=1e-12)


def objective(points: np.ndarray, clouds: np.ndarray) -> float:
    return float(np.mean([((points - cloud[assigned(points, cloud)]) ** 2).sum() for cloud in clouds]))


@given(st.integers(0, 999), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4))
def test_a_barycenter_is_no_worse_than_any_step_before_it_and_than_any_move_of_its_points(
    seed, clouds, count, dim
):
    rng = np.random.default_rng(seed)
    given_, start = rng.standard_normal((clouds, count, dim)), rng.standard_normal((count, dim))
    values = [objective(free_support_barycenter(given_, start, most_steps=n), given_) for n in range(1, 6)]
    assert all(b <= a + 1e-12 for a, b in itertools.pairwise(values))
    found = free_support_barycenter(given_, start)
    for _ in range(5):
        near = found + 1e-6 * rng.standard_normal(found.shape)
        assert objective(near, given_) >= objective(found, given_) - 1e-9


@given(st.integers(0, 99))
def test_in_one_dimension_it_is_the_mean_of_sorted_points(seed):
    clouds = np.random.default_rng(seed).standard_normal((3, 6, 1))
    found = free_support_barycenter(clouds, clouds[0])
    np.testing.assert_allclose(np.sort(found[:, 0]), np.sort(clouds[..., 0], 1).mean(0), atol=1e-12)


@given(st.integers(0, 99))
def test_of_equal_and_of_shifted_clouds_it_is_the_cloud_and_its_shift(seed):
    rng = np.random.default_rng(seed)
    cloud, shift = rng.standard_normal((4, 3)), rng.standard_normal(3)
    turned = cloud[rng.permutation(4)]
    np.testing.assert_allclose(free_support_barycenter(np.stack([cloud, turned]), cloud), cloud, atol=1e-12)
    np.testing.assert_allclose(
        free_support_barycenter(np.stack([cloud, turned + shift]), cloud), cloud + shift / 2, atol=1e-9
    )


# ---------------------------------------------------------------------- simplex


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8))
def test_the_projection_is_on_the_simplex_and_nothing_there_is_nearer(values):
    v = np.array(values)
    found = onto_simplex(v)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()
    others = np.random.default_rng(0).dirichlet(np.ones(len(v)), 50)
    assert (((others - v) ** 2).sum(1) >= ((found - v) ** 2).sum() - 1e-12).all()


@given(st.integers(0, 999), st.integers(1, 9))
def test_the_smallest_form_meets_the_conditions_of_optimality(seed, count):
    """On the simplex, a minimiser's slopes are smallest, and all equal, where its weights are above 0."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((count, rng.integers(1, count + 1)))
    p = root @ root.T + np.diag(rng.uniform(0.01, 1.0, count))
    a = smallest_form(p)
    assert a.sum() == pytest.approx(1.0)
    slope = p @ a
    np.testing.assert_allclose(slope[a > 1e-6], slope.min(), rtol=1e-5)


def test_forms_with_an_answer_in_closed_form():
    v = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(smallest_form(np.diag(v)), (1 / v) / (1 / v).sum(), atol=1e-9)
    assert smallest_form(np.zeros((3, 3))).tolist() == [1 / 3] * 3
    assert smallest_form(np.array([[2.0]])).tolist() == [1.0]


# ---------------------------------------------------------------------- Stein


@pytest.mark.parametrize("count", [1, 2, 5])
def test_steins_direction_is_a_double_sum(count):
    rng = np.random.default_rng(0)
    x, score = rng.standard_normal((2, 2, count, 4))
    repulsion = np.array([0.5, 2.0])
    found = stein_direction(
        *map(torch.from_numpy, (x, score)), repulsion=torch.from_numpy(repulsion).view(-1, 1, 1)
    )
    for g in range(2):
        if count == 1:
            np.testing.assert_allclose(found[g].numpy(), score[g])
            continue
        squares = [((x[g, i] - x[g, j]) ** 2).sum() for i in range(count) for j in range(count) if i != j]
        width = sorted(squares)[(len(squares) - 1) // 2] / np.log(count)
        for i in range(count):
            total = np.zeros(4)
            for j in range(count):
                k = np.exp(-((x[g, i] - x[g, j]) ** 2).sum() / width)
                total += k * score[g, j] + repulsion[g] * k * 2 / width * (x[g, i] - x[g, j])
            np.testing.assert_allclose(found[g, i].numpy(), total / count, rtol=1e-9)


def test_particles_of_a_normal_density_get_its_mean_and_some_of_its_width():
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((1, 20, 1)) + 5.0)
    for _ in range(2000):
        x = x + 0.05 * stein_direction(x, -(x - 1.0) / 4.0, repulsion=torch.ones(1, 1, 1))
    assert x.mean().item() == pytest.approx(1.0, abs=0.1)
    assert x.std().item() == pytest.approx(2.0, rel=0.15)


# ---------------------------------------------------------------------- the loss


def energy(p: dict[str, np.ndarray], prior: dict[str, np.ndarray], m: int, g: int, bandwidth: float) -> float:
    """Return minus the log posterior of one particle, divided by the number of records, straight from its formula."""
    records = federation.batch()
    mine = {n.removeprefix(PARTICLES): a[m] for n, a in p.items() if n.startswith(PARTICLES)}
    logits = federation.head(mine, federation.embedded(mine, records.x[g].numpy()))
    w, y = records.weight[g].numpy(), records.y[g].numpy()
    likelihood = -(w * federation.log_softmax(logits)[np.arange(len(y)), y]).sum()
    kernels = []
    for j in range(len(next(iter(prior.values())))):
        square = sum(((mine[n.removeprefix(PARTICLES)] - a[j]) ** 2).sum() for n, a in prior.items())
        kernels.append(np.exp(-square / (2 * bandwidth**2)))
    return likelihood - np.log(np.mean(kernels)) / (w > 0).sum()


def test_the_slope_of_the_loss_is_minus_steins_direction():
    method = wba(bandwidth=3.0)
    down = federation.answers(method, federation.states(method))
    own = federation.params(method=method)
    slopes = federation.gradients(method, own, federation.batch(), down)
    names = [n for n in own if n.startswith(PARTICLES)]
    for g in (0, 4):
        mine = federation.of(g, own)
        prior = {n: down[n][g].numpy() for n in names}
        score = {n: np.zeros_like(mine[n]) for n in names}
        for m in range(3):
            found = federation.finite_differences(
                lambda q, m=m, g=g, mine=mine, prior=prior: energy({**mine, **q}, prior, m, g, 3.0),
                {n: mine[n] for n in ("particles.head.bias",)},
            )
            score["particles.head.bias"][m] = -found["particles.head.bias"][m]
        x = np.concatenate([mine[n].reshape(3, -1) for n in names], 1)
        squares = [((x[i] - x[j]) ** 2).sum() for i in range(3) for j in range(3) if i != j]
        width = sorted(squares)[(len(squares) - 1) // 2] / np.log(3)
        records = int((federation.batch().weight[g] > 0).sum())
        bias = mine["particles.head.bias"]
        for i in range(3):
            total = np.zeros(C)
            for j in range(3):
                k = np.exp(-((x[i] - x[j]) ** 2).sum() / width)
                total += k * score["particles.head.bias"][j] + k * 2 / width * (bias[i] - bias[j]) / records
            np.testing.assert_allclose(
                slopes["particles.head.bias"][g, i].numpy(), -total / 3, rtol=1e-4, atol=1e-6
            )
    assert all(not slopes[n].any() for n in own if not n.startswith(PARTICLES))


def test_a_prediction_is_the_mean_of_the_particles_probabilities():
    method = wba()
    own, x = federation.params(method=method), federation.batch().x
    down = federation.answers(method, federation.states(method))
    found = method.logits(NETWORK, own, x, down, {})
    arrived = wba(personal=False).logits(NETWORK, own, x, down, {})
    for g in range(G):
        mine = federation.of(g, own)
        got = {n: down[n][g].numpy() for n in mine if n.startswith(PARTICLES)}
        for scores, held in ((found, mine), (arrived, got)):
            probabilities = []
            for m in range(3):
                p = {n.removeprefix(PARTICLES): a[m] for n, a in held.items() if n.startswith(PARTICLES)}
                logits = federation.head(p, federation.embedded(p, x[g].numpy()))
                probabilities.append(np.exp(federation.log_softmax(logits)))
            np.testing.assert_allclose(np.exp(scores[g].numpy()), np.mean(probabilities, 0), rtol=1e-4)


def test_one_client_keeps_its_particles_and_several_meet_at_their_barycenter():
    method = wba()
    sent = {m: x for m, x in federation.uploads(method, 0).items() if isinstance(x, Update)}
    merged = method.merge({}, sent)
    names = sorted(merged)
    flat = [np.concatenate([u.named[n].reshape(3, -1) for n in names], 1) for _, u in sorted(sent.items())]
    wanted = free_support_barycenter(np.stack(flat).astype(np.float64), flat[0].astype(np.float64))
    np.testing.assert_allclose(
        np.concatenate([merged[n].reshape(3, -1) for n in names], 1), wanted, rtol=1e-5, atol=1e-6
    )
    alone = method.merge(merged, {7: sent[0]})
    rows = {
        tuple(r) for r in np.round(np.concatenate([alone[n].reshape(3, -1) for n in names], 1), 5).tolist()
    }
    assert rows == {tuple(r) for r in np.round(flat[0], 5).tolist()}


def test_particles_start_apart_are_the_same_for_all_clients_and_are_trained():
    method = wba(spread=0.5)
    model = PersonalModel(adapter=3)
    engine = Engine(Federation.of([40, 30], dim=D, num_classes=C, model=model), method)
    start = engine.fleet.params["particles.head.weight"].clone()
    assert torch.equal(start[0], start[1])
    assert start[0].std(0).mean().item() == pytest.approx(0.5, rel=0.4)
    before = engine.round(test=True)
    for _ in range(30):
        engine.round()
    after = engine.round(test=True)
    assert np.mean(after) > np.mean(before)
    assert not torch.equal(engine.fleet.params["particles.head.weight"], start)
    assert all(
        torch.equal(engine.fleet.params[n][0], engine.fleet.params[n][1])
        for n in ("head.weight", "adapter.up")
    )


def test_dropout_is_refused():
    with pytest.raises(ValueError, match=r"leave out model\.dropout"):
        wba().refuse_model(PersonalModel(adapter=2, dropout=0.1))
