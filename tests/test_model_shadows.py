"""Shadow models: closed forms against refits, a stack against a loop, and the published formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from attacks._base import NotApplicableError
from attacks.model import _lira, _ridge, _shadows, _stacked
from attacks.model._halves import halves
from attacks.model._lira import Gaussians, Scale, offline, online
from attacks.model._signals import losses
from attacks.model.rmia import Rmia, dominated
from tests import heads

R, D, C, S = 60, 7, 3, 6
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((R, D - 1)), np.ones(R)])
Y = RNG.integers(0, C, R)
HELD = halves(R, S, seed=(0,))
ASKED = (np.column_stack([RNG.standard_normal((9, D - 1)), np.ones(9)]), RNG.integers(0, C, 9))

# ---------------------------------------------------------------------- halves


@given(records=st.integers(8, 60), shadows=st.integers(2, 9), seed=st.integers(0, 5))
def test_every_record_is_left_out_as_often_as_it_is_in_or_nearly(records, shadows, seed):
    held = halves(records, shadows, seed=(seed,))
    assert held.shape == (shadows, records)
    inside = held.sum(0)
    assert (abs(2 * inside - shadows) <= shadows % 2).all()
    assert (inside < shadows).all()
    assert np.array_equal(held, halves(records, shadows, seed=(seed,)))


# ---------------------------------------------------------------------- ridge


def refit(x: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    """Return a ridge head by an independent solver."""
    target = np.eye(C)[y]
    wide = np.vstack([x, np.sqrt(penalty) * np.eye(x.shape[1])])
    return np.linalg.lstsq(wide, np.vstack([target, np.zeros((x.shape[1], C))]), rcond=None)[0]


@pytest.mark.parametrize("penalty", [0.01, 1.0, 50.0])
def test_outputs_with_and_without_each_record_are_those_of_refits(penalty):
    pairs = _ridge.paired(X, Y, HELD, num_classes=C, penalty=penalty)
    for s, held in enumerate(HELD):
        for i in range(R):
            inside, outside = held.copy(), held.copy()
            inside[i], outside[i] = True, False
            for found, rows in ((pairs.ins, inside), (pairs.outs, outside)):
                wanted = X[i] @ refit(X[rows], Y[rows], penalty)
                np.testing.assert_allclose(found[s, i], wanted, atol=1e-5)


def test_outputs_for_records_that_no_shadow_has_are_those_of_refits():
    pairs = _ridge.paired(X, Y, HELD, num_classes=C, penalty=0.5, asked=ASKED)
    assert pairs.ins.shape == (S, 9, C)
    for s, held in enumerate(HELD):
        np.testing.assert_allclose(pairs.outs[s], ASKED[0] @ refit(X[held], Y[held], 0.5), atol=1e-5)
        for i, (x, y) in enumerate(zip(*ASKED, strict=True)):
            more = refit(np.vstack([X[held], x]), np.append(Y[held], y), 0.5)
            np.testing.assert_allclose(pairs.ins[s, i], x @ more, atol=1e-5)


def test_fewer_records_than_features_are_no_trouble():
    held = halves(8, 2, seed=(0,))
    x = np.random.default_rng(3).standard_normal((8, 30))
    pairs = _ridge.paired(x, Y[:8], held, num_classes=C, penalty=1e-3)
    wanted = x[0] @ refit(x[held[0] & (np.arange(8) > 0)], Y[:8][held[0] & (np.arange(8) > 0)], 1e-3)
    np.testing.assert_allclose(pairs.outs[0, 0], wanted, atol=1e-5)


# ---------------------------------------------------------------------- the stack


SCHEDULE = _stacked.Schedule(epochs=5, batch_size=16, step=0.4, decay=1e-3, together=4)


def stack(held: np.ndarray, points: int = 1) -> np.ndarray:
    return _stacked.train(
        X.astype(np.float32), Y, held, num_classes=C, schedule=SCHEDULE, seed=(7,), points=points
    )


def alone(held: np.ndarray, group: int) -> np.ndarray:
    """Train one head with torch's optimiser on the batches of the stack, of which it has some records."""
    curvature = 0.5 * np.linalg.eigvalsh(X.T @ X / R)[-1]
    w = torch.zeros(D, C, dtype=torch.float64, requires_grad=True)
    step, decay = SCHEDULE.step / curvature, SCHEDULE.decay * curvature
    optimizer = torch.optim.SGD([w], lr=step, momentum=0.9, weight_decay=decay)
    steps = SCHEDULE.epochs * -(-R // SCHEDULE.batch_size)
    falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1 - done / steps)
    rng = np.random.default_rng((7, group))
    for _ in range(SCHEDULE.epochs):
        order = rng.permutation(R)
        for start in range(0, R, SCHEDULE.batch_size):
            rows = order[start : start + SCHEDULE.batch_size]
            mine = rows[held[rows]]
            optimizer.zero_grad()
            z = torch.from_numpy(X[mine]) @ w
            torch.nn.functional.cross_entropy(z, torch.from_numpy(Y[mine])).backward()
            optimizer.step()
            falling.step()
    return w.detach().numpy()


def test_each_head_of_a_stack_is_the_head_that_a_loop_trains():
    found = stack(HELD)[-1]
    for s, held in enumerate(HELD):
        np.testing.assert_allclose(found[:, :, s], alone(held, s // 4), atol=1e-4)


def test_the_last_point_of_training_is_its_end_and_earlier_ones_are_shorter_trainings():
    by_point = stack(HELD, points=5)
    assert by_point.shape == (5, D, C, S)
    np.testing.assert_array_equal(by_point[-1], stack(HELD)[-1])
    assert not np.array_equal(by_point[0], by_point[1])


def test_shadows_are_trained_once_for_the_same_content_and_anew_for_other(monkeypatch):
    owned = heads.population(5, 40).of(0)
    schedule = _stacked.Schedule(epochs=2)
    calls = []
    real = _stacked.train
    monkeypatch.setattr(_stacked, "train", lambda *args, **kwargs: calls.append(1) or real(*args, **kwargs))
    settings = {"num_classes": heads.CLASSES, "shadows": 4, "schedule": schedule, "seed": (0, 0)}
    first = _shadows.trained(owned, **settings)
    again = _shadows.trained(owned.where(np.arange(len(owned))), **settings)
    assert first is again
    assert len(calls) == 1
    other = _shadows.trained(owned.where(np.arange(1, len(owned))), **settings)
    assert other is not first
    _shadows.trained(owned, **{**settings, "seed": (1, 0)})
    assert len(calls) == 3


# ---------------------------------------------------------------------- LiRA

TARGET = RNG.standard_normal(R)
VALUES = 0.3 + 0.8 * RNG.standard_normal((S, R))


def test_scores_are_the_published_ones():
    outs = Gaussians(_lira.mean(VALUES, ~HELD), _lira.std(VALUES, ~HELD, pooled=False))
    ins = Gaussians(_lira.mean(VALUES, HELD), _lira.std(VALUES, HELD, pooled=False))
    for i in range(R):
        with_i, without_i = VALUES[HELD[:, i], i], VALUES[~HELD[:, i], i]
        in_pdf = stats.norm.logpdf(TARGET[i], with_i.mean(), with_i.std(ddof=1))
        out_pdf = stats.norm.logpdf(TARGET[i], without_i.mean(), without_i.std(ddof=1))
        assert online(TARGET, ins, outs)[i] == pytest.approx(in_pdf - out_pdf, rel=1e-9)
        # published as a probability; ours is its normal quantile
        wanted = 1 - stats.norm.sf(TARGET[i], without_i.mean(), without_i.std(ddof=1))
        assert stats.norm.cdf(offline(TARGET, outs)[i]) == pytest.approx(wanted, rel=1e-9)


def test_a_pooled_deviation_is_that_of_all_records_together():
    left = [VALUES[~HELD[:, i], i] - VALUES[~HELD[:, i], i].mean() for i in range(R)]
    wanted = np.sqrt(np.square(np.concatenate(left)).sum() / (R * (S // 2 - 1)))
    np.testing.assert_allclose(_lira.std(VALUES, ~HELD, pooled=True), wanted, rtol=1e-12)


def test_a_record_without_a_model_is_refused_and_named():
    used = ~HELD
    used[:, 4] = False
    with pytest.raises(
        NotApplicableError, match="record 4 has no shadow model of one kind; each needs at least 1"
    ):
        _lira.mean(VALUES, used)
    used[0, 4] = True
    with pytest.raises(NotApplicableError, match="1 shadow model that has not seen it, and a spread needs 2"):
        _lira.std(VALUES, used, pooled=False)
    assert np.isfinite(_lira.std(VALUES, used, pooled=True)).all()


def test_shadows_that_do_not_vary_give_finite_scores():
    still = Gaussians(_lira.mean(np.ones((S, R)), ~HELD), _lira.std(np.ones((S, R)), ~HELD, pooled=True))
    assert np.isfinite(offline(TARGET, still)).all()


@settings(max_examples=30)
@given(slope=st.floats(0.1, 10), offset=st.floats(-5, 5))
def test_the_scale_of_the_target_is_found(slope, offset):
    shadow = np.linspace(-2, 2, 50)
    left = 0.1 * np.cos(40 * np.arange(50))
    found = Scale.of(slope * shadow + offset + left, shadow)
    assert found.slope == pytest.approx(slope, abs=0.05)
    assert found.offset == pytest.approx(offset, abs=0.05)
    assert found.std == pytest.approx(left.std(), rel=0.1)


def test_a_statistic_that_is_the_same_for_all_has_no_slope():
    assert Scale.of(TARGET, np.ones(R)).slope == 0.0


# ---------------------------------------------------------------------- RMIA


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), gamma=st.sampled_from([1.0, 1.5, 2.0]), levels=st.sampled_from([3, 1000]))
def test_sorting_counts_what_a_matrix_of_all_pairs_does(seed, gamma, levels):
    rng = np.random.default_rng(seed)
    x, z = (rng.integers(1, levels, n) / 8 for n in (20, 31))
    matrix = (x[:, None] / gamma >= z[None]).mean(1)
    np.testing.assert_array_equal(dominated(x, z, gamma=gamma), matrix)


def test_rmia_is_its_formula_over_all_pairs():
    """The likelihoods of the very shadows, and a matrix of all pairs."""
    attack, one = Rmia(shadows=4, epochs=5), heads.scene(3, steps=20)
    scores = attack.score(one.view.only(3), one.records)
    assert one.reference is not None
    for client in range(heads.CLIENTS):
        asked, owned = one.records.of(client), one.reference.of(client)
        made = _shadows.trained(
            owned,
            num_classes=heads.CLASSES,
            shadows=4,
            schedule=_stacked.Schedule(epochs=5),
            seed=(0, client),
        )
        named = next(r.payload for r in one.releases if (r.round, r.client) == (3, client)).tensors()
        w, b = named["weights.head.weight"].astype(float), named["weights.head.bias"].astype(float)
        ratios = []
        for records, used in ((asked, np.ones((4, len(asked)), bool)), (owned, ~made.held)):
            with_it = np.exp(-losses(records.vectors @ w + b, records.labels))
            each = np.exp(-losses(made.logits(records.vectors)[-1], records.labels))
            without = np.array([each[used[:, i], i].mean() for i in range(len(records))])
            ratios.append(with_it / (0.5 * (1.3 * without + 0.7)))
        wanted = (ratios[0][:, None] / ratios[1][None] >= 2.0).mean(1)
        np.testing.assert_allclose(scores[one.records.clients == client], wanted, atol=1e-12)
