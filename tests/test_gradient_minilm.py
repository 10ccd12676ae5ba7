"""Attacks on gradients of MiniLM: what undefended adapters give away, what FISGuard stops, and what it does not."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from attacks._base import AbstractAttack
from attacks.gradient._noise import Noise
from attacks.gradient._plan import predicted
from attacks.gradient._precision import floor_of
from attacks.gradient._snr import auc_ceiling
from attacks.gradient._subspace import subspace
from privkit import plug
from privkit.exposure import Exposure
from privkit.release import Update
from tests import gradient_lab as lab
from tests.gradient_lab import Case, Net

GUARDED = Net(layers=6, guard=16)


def build(name: str, **settings: object) -> AbstractAttack:
    found = plug.build("attacks.gradient", {"name": name, **settings})
    assert isinstance(found, AbstractAttack)
    return found


def area(case: Case, name: str, **settings: object) -> float:
    return float(roc_auc_score(case.members, build(name, **settings).score(case.view, case.records)))


def standard_error(case: Case) -> float:
    """Return the standard error of an AUC when scores tell little."""
    m, n = int(case.members.sum()), int((~case.members).sum())
    return ((m + n + 1) / (12 * m * n)) ** 0.5


def of_maps(case: Case, *names: str) -> Case:
    return replace(case, view=replace(case.view, asked={0: lab.only(case.view.asked[0], names)}))


# ---------------------------------------------------------------------- undefended


@pytest.fixture(scope="module")
def bottleneck() -> Exposure:
    return lab.exposed(Net(layers=6), 100)


def test_hooks_give_the_gradients_of_one_batch(bottleneck):
    """Sums of records' own gradients are what one backward pass over the batch gives: here, one record at a time."""
    texts, labels = lab.sentences()
    alone = lab.passes(Net(layers=6), texts[:1], labels[:1])
    for name, trace in alone.traces.items():
        wanted = lab.taken(bottleneck, np.array([0])).traces[name].gradients()
        np.testing.assert_allclose(trace.gradients(), wanted, rtol=1e-3, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("transport", ["fp32", "fp16", "bf16", "int8"])
def test_the_last_adapter_gives_its_batch_away(bottleneck, transport):
    case = of_maps(lab.case(bottleneck, batch=16, uploads=4, seed=1, transport=transport), "adapter.5.down")
    assert area(case, "projres") == 1.0 if transport == "fp32" else area(case, "projres") > 0.99
    assert area(case, "projres", norm=1) > 0.99


def test_only_the_rank_aware_score_survives_dead_units(bottleneck):
    case = of_maps(lab.case(bottleneck, batch=16, uploads=4, seed=1), "adapter.5.down")
    sent = case.view.releases[0].payload
    assert isinstance(sent, Update)
    assert (~sent.named["adapter.5.down"].any(1)).sum() > 5
    assert area(case, "projres") == 1.0
    as_coded = build("projres_as_coded").score(case.view, case.records)
    assert np.isfinite(as_coded).all()
    assert area(case, "projres_as_coded") < 0.9


def test_the_published_score_works_where_tokens_are_few(bottleneck):
    case = of_maps(lab.case(bottleneck, batch=4, uploads=8, seed=1, asked=4), "adapter.0.down")
    assert area(case, "projres_as_coded", drop_dead=True) > 0.9


def test_another_batch_is_chance(bottleneck):
    case = lab.case(bottleneck, batch=8, uploads=16, public=20, seed=2, leaks=False)
    for name in (
        "projres",
        "gradient_cosine",
        "gradient_difference",
        "joint_decoding",
        "column_energy",
        "fedmia",
    ):
        assert 0.42 <= area(case, name) <= 0.58, name


@pytest.mark.parametrize("transport", ["bf16", "int8"])
def test_coarse_numbers_hide_nothing_from_a_filter_that_knows_of_them(bottleneck, transport):
    """Whitening makes rounding errors large, unless it expects them."""
    case = lab.case(bottleneck, batch=16, uploads=3, public=40, seed=1, transport=transport)
    case = of_maps(case, "adapter.5.up", "head")
    assert area(case, "matched_filter") > 0.93
    undeclared = replace(case, view=replace(case.view, transport="fp32"))
    assert area(undeclared, "matched_filter") < 0.75


def test_l2_hides_no_batch(bottleneck):
    """Whoever takes the uploads as they are finds nothing."""
    w = lab.weights_of(bottleneck, np.random.default_rng(5))
    case = lab.case(bottleneck, batch=8, uploads=3, seed=1)
    case = of_maps(case, "adapter.4.down", "adapter.5.down", "head")
    for name in ("projres", "column_energy"):
        assert area(lab.penalised(case, w, 1e-3), name) > 0.95
        assert area(lab.penalised(case, w, 1e-3, known=False), name) < 0.7


# ---------------------------------------------------------------------- FISGuard: fixed maps of r rows, U = 0


def test_one_record_is_found_in_a_guarded_map_that_it_does_not_fill():
    bank = lab.exposed(Net(layers=6, guard=64), 100)
    case = of_maps(lab.case(bank, batch=1, uploads=20, seed=1), "adapter.2.up")
    assert area(case, "projres") == 1.0


def test_a_filled_guarded_map_says_nothing():
    bank = lab.exposed(Net(layers=6, guard=64), 100)
    case = of_maps(lab.case(bank, batch=16, uploads=4, seed=1), "adapter.2.up")
    for token in ("pooled", "first", "last", "mean"):
        assert (build("projres", token=token).score(case.view, case.records) == 0).all()
    assert area(case, "projres") == 0.5


def test_ranks_behind_a_guard_are_those_of_its_directions_and_one_behind_the_last_block():
    """T7: with two classes, slopes of the last block have one direction; T8: one pass serves every rank."""
    case = lab.case(lab.exposed(Net(layers=6, guard=64), 100), batch=16, uploads=1, seed=1)
    sent = case.view.gradient(round=0, client=0)
    for rank in (2, 4, 8, 16, 32, 64):
        for block in range(6):
            gradient = sent[f"adapter.{block}.up"][:, :rank].astype(np.float64)
            wanted = rank if block < 5 else 1
            floor = floor_of(gradient, transport="fp32", stored=np.dtype(np.float32))
            assert subspace(gradient, floor).rank == wanted, (rank, block)


@pytest.fixture(scope="module")
def guarded() -> Case:
    return lab.case(lab.exposed(GUARDED), batch=16, uploads=12, public=300, seed=1)


@pytest.mark.slow
def test_projection_residuals_see_nothing_where_the_rank_condition_is_met(guarded):
    for block in range(4):
        assert area(of_maps(guarded, f"adapter.{block}.up"), "projres") == 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings", "least"),
    [
        ("matched_filter", {}, 0.97),
        ("matched_filter", {"estimator": "kronecker"}, 0.97),
        ("matched_filter", {"estimator": "dual"}, 0.97),
        ("head_only", {}, 0.95),
        ("joint_decoding", {}, 0.99),
        ("column_energy", {}, 0.55),
        ("gradient_cosine", {}, 0.52),
    ],
)
def test_adaptive_attacks_find_the_batch_behind_a_guard(guarded, name, settings, least):
    assert area(guarded, name, **settings) >= least


@pytest.mark.slow
def test_the_wrong_batch_is_chance_behind_a_guard():
    case = lab.case(lab.exposed(GUARDED), batch=16, uploads=40, public=300, seed=3, leaks=False, asked=8)
    for name in ("matched_filter", "head_only", "leverage", "projres", "gradient_cosine"):
        assert 0.42 <= area(case, name) <= 0.58, name


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.1, 0.25, 0.5, 1.0, 2.0])
def test_under_noise_the_matched_filter_is_below_its_ceiling_and_near_its_prediction(sigma):
    case = lab.case(lab.exposed(GUARDED), batch=16, uploads=12, public=300, seed=4, sigma=sigma)
    measured = area(case, "matched_filter")
    assert measured <= auc_ceiling(sigma=sigma) + 3 * standard_error(case)
    plan = predicted(case.view.public[0], batch_size=16, noise=Noise(1.0, sigma))
    assert measured == pytest.approx(plan.auc, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [4, 16, 64, 128])
def test_larger_batches_hide_a_record_as_far_as_predicted(batch):
    case = lab.case(lab.exposed(GUARDED), batch=batch, uploads=14, public=200, seed=5, asked=min(batch, 16))
    plan = predicted(case.view.public[0], batch_size=batch)
    assert area(case, "matched_filter") == pytest.approx(plan.auc, abs=0.05)


@pytest.mark.slow
def test_twenty_five_public_records_are_enough(guarded):
    few = replace(guarded.view, public={0: lab.taken(guarded.view.public[0], np.arange(25))})
    adapters = [f"adapter.{block}.up" for block in range(6)]
    assert area(of_maps(replace(guarded, view=few), *adapters), "matched_filter") > 0.9
