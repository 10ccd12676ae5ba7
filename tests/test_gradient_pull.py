"""Uploads that hold a multiple of the weights, as an L2 penalty adds it: it is found, taken out, or done without."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from attacks._base import AbstractAttack
from attacks.gradient._precision import floor_of
from attacks.gradient._pull import Pull, pull_of, share
from attacks.gradient._seen import pulled, seen
from privkit import plug
from tests import gradient_lab as lab
from tests import gradient_scene as scene
from tests.gradient_lab import Case, penalised, rounded

F32 = np.dtype(np.float32)


def floor(gradient: np.ndarray, transport: str = "fp32"):
    return floor_of(gradient, transport=transport, stored=F32)


def of_rank(rng: np.random.Generator, shape: tuple[int, int], rank: int) -> np.ndarray:
    """Return a gradient of some tokens whose slopes span four orders of magnitude."""
    slopes = rng.standard_normal((shape[0], rank)) * np.geomspace(1, 1e-4, max(rank, 1))[:rank]
    return slopes @ rng.standard_normal((rank, shape[1])) / shape[1] ** 0.5


# ---------------------------------------------------------------------- one map


@given(
    seed=st.integers(0, 10_000),
    shape=st.sampled_from([(20, 32), (32, 20), (40, 60), (96, 192), (200, 150), (8, 384)]),
    part=st.floats(0, 1),
    strength=st.sampled_from([1e-4, 1e-3, 1e-2, 1e-1]),
    clip=st.floats(0.05, 1),
)
@settings(max_examples=40, deadline=None)
def test_the_multiple_is_found_where_the_rank_is_low(seed, shape, part, strength, clip):
    rng = np.random.default_rng(seed)
    gradient, w = of_rank(rng, shape, int(part * (min(*shape, 128) // 2))), lab.weights(rng, shape)
    sent = (clip * (gradient + strength * w)).astype(np.float32).astype(np.float64)
    found = share(sent, w, floor(sent))
    assert found is not None
    left = sent - found * w - clip * gradient
    assert np.linalg.norm(left) <= 1e-5 * np.linalg.norm(sent)
    assert found == pytest.approx(clip * strength, rel=1e-3 if strength < 1e-2 else 1e-4)


@given(
    seed=st.integers(0, 10_000), shape=st.sampled_from([(20, 32), (32, 20), (96, 192)]), part=st.floats(0, 1)
)
@settings(max_examples=25, deadline=None)
def test_without_a_penalty_it_is_zero_and_nothing_else(seed, shape, part):
    rng = np.random.default_rng(seed)
    gradient = of_rank(rng, shape, int(part * (min(shape) // 2))).astype(np.float32).astype(np.float64)
    assert share(gradient, lab.weights(rng, shape), floor(gradient)) == 0.0


@pytest.mark.parametrize("strength", [0.0, 0.1])
def test_a_full_rank_gradient_hides_it(strength):
    rng = np.random.default_rng(0)
    gradient, w = rng.standard_normal((20, 32)), lab.weights(rng, (20, 32))
    sent = gradient + strength * w
    assert share(sent, w, floor(sent)) is None


@pytest.mark.parametrize("transport", ["fp16", "bf16", "int8"])
def test_coarse_numbers_show_it_as_well_as_they_can(transport):
    rng = np.random.default_rng(1)
    gradient, w = of_rank(rng, (96, 192), 4), lab.weights(rng, (96, 192))
    sent = rounded((gradient + 0.1 * w).astype(np.float32), transport).astype(np.float64)
    assert share(sent, w, floor(sent, transport)) == pytest.approx(0.1, rel=1e-2)


# ---------------------------------------------------------------------- one upload


def test_one_map_of_low_rank_tells_it_for_all_but_the_head():
    rng = np.random.default_rng(2)
    shapes = {"first": (20, 32), "last": (20, 32), "head": (3, 32)}
    w = {name: lab.weights(rng, shape) for name, shape in shapes.items()}
    plain = {"first": rng.standard_normal((20, 32)), "last": of_rank(rng, (20, 32), 4)}
    head = rng.standard_normal((3, 32))
    plain["head"] = head - head.mean(0)
    sent = {name: g + (0.1 * w[name] if name != "head" else 0.0) for name, g in plain.items()}
    found = pull_of(sent, w, lambda name: floor(sent[name]), head="head")
    assert set(found.share) == {"first", "last"}
    for name, g in found.without(sent, w).items():
        np.testing.assert_allclose(g, plain[name], atol=1e-6)
    everywhere = {name: g + 0.1 * w[name] for name, g in plain.items()}
    also = pull_of(everywhere, w, lambda name: floor(everywhere[name]), head="head")
    assert set(also.share) == set(shapes)
    assert list(also.share.values()) == [pytest.approx(0.1)] * 3


def test_where_nothing_tells_it_all_but_the_head_are_unknown():
    rng = np.random.default_rng(3)
    w = {name: lab.weights(rng, (20, 32)) for name in ("first", "last", "head")} | {
        "still": np.zeros((20, 32))
    }
    sent = {name: rng.standard_normal((20, 32)) for name in w}
    found = pull_of(sent, w, lambda name: floor(sent[name]), head="head")
    assert not found.share
    assert set(found.unknown) == {"first", "last"}
    nothing = pull_of(sent, {}, lambda name: floor(sent[name]), head="head")
    assert vars(nothing) == vars(Pull())


# ---------------------------------------------------------------------- attacks


def area(case: Case, name: str) -> float:
    attack = plug.build("attacks.gradient", name)
    assert isinstance(attack, AbstractAttack)
    return float(roc_auc_score(case.members, attack.score(case.view, case.records)))


@pytest.fixture(scope="module")
def scenes() -> tuple[Case, Case, dict[str, np.ndarray]]:
    """Return batches of 2 records, which leave maps of low rank, and of 6, which do not."""
    rng, bank = np.random.default_rng(4), scene.bank(500)
    w = lab.weights_of(bank, rng)
    few, many = (lab.case(bank, batch=b, uploads=24 // b, public=200, seed=1) for b in (2, 6))
    return few, many, w


@pytest.mark.parametrize("name", ["matched_filter", "column_energy", "joint_decoding"])
def test_a_penalty_that_is_found_changes_no_attack(scenes, name):
    few, _, w = scenes
    plain = area(penalised(few, w, 0.0), name)
    assert area(penalised(few, w, 100.0), name) == pytest.approx(plain, abs=0.02)
    assert area(penalised(few, w, 100.0, known=False), name) < plain - 0.15


def test_one_that_is_not_found_is_done_without(scenes):
    _, many, w = scenes
    plain, drowned = area(penalised(many, w, 0.0), "matched_filter"), penalised(many, w, 100.0)
    assert {len(upload.unknown) for upload in seen(drowned.view, drowned.records)} == {2}
    assert area(drowned, "matched_filter") == pytest.approx(plain, abs=0.05)
    assert area(penalised(many, w, 100.0, known=False), "matched_filter") < plain - 0.15


@pytest.mark.parametrize("name", plug.names("attacks.gradient"))
def test_scores_without_a_penalty_are_the_same_with_and_without_known_weights(scenes, name):
    few, _, w = scenes
    attack = plug.build("attacks.gradient", name)
    assert isinstance(attack, AbstractAttack)
    known = replace(few.view, weights={0: w})
    assert np.array_equal(attack.score(known, few.records), attack.score(few.view, few.records))


def test_under_noise_it_is_not_looked_for(scenes):
    _, _, w = scenes
    case = lab.case(scene.bank(60), batch=2, uploads=1, seed=1, sigma=1.0)
    view = replace(case.view, weights={0: w})
    passes, release = view.asked[0], view.releases[0]
    found = pulled(view, release, view.gradient(round=0, client=0), passes)
    assert not found.share
    assert set(found.unknown) == set(w)
