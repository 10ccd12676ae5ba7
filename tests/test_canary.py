"""Canaries: orthonormal within a class, planted as they stand by a coin, seen exactly in the class mean."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privkit import canary
from privkit.clip import clip_to_ball
from privkit.errors import InputError
from privkit.transcript import Records


@st.composite
def designs(draw: st.DrawFn) -> dict:
    """Arguments of a design: counts below, above and at no multiple of the dimension."""
    return {
        "clients": draw(st.integers(1, 3)),
        "count": draw(st.integers(2, 30)),
        "dim": draw(st.integers(3, 12)),
        "norm": draw(st.sampled_from((0.5, 3.0, 1e3))),
        "num_classes": draw(st.integers(1, 5)),
        "seed": draw(st.integers(0, 2**128 - 1)),
    }


def classes(canaries: Records) -> list[tuple[int, int, np.ndarray]]:
    """Return client, label and rows of every class of every client."""
    keys = sorted(set(zip(canaries.clients.tolist(), canaries.labels.tolist(), strict=True)))
    return [
        (m, label, np.flatnonzero((canaries.clients == m) & (canaries.labels == label))) for m, label in keys
    ]


@settings(max_examples=25)
@given(designs())
def test_a_design_has_so_many_canaries_of_that_length_per_client(given_: dict) -> None:
    canaries = canary.design(**given_)
    assert len(canaries) == given_["clients"] * given_["count"]
    assert np.bincount(canaries.clients).tolist() == [given_["count"]] * given_["clients"]
    assert canaries.vectors.shape == (len(canaries), given_["dim"])
    assert np.linalg.norm(canaries.vectors, axis=1) == pytest.approx(given_["norm"], rel=1e-12)


@settings(max_examples=25)
@given(designs())
def test_canaries_of_a_class_are_orthogonal(given_: dict) -> None:
    canaries = canary.design(**given_)
    for _, _, rows in classes(canaries):
        unit = canaries.vectors[rows] / given_["norm"]
        assert np.abs(unit @ unit.T - np.eye(len(rows))).max() < 1e-12


@settings(max_examples=25)
@given(designs())
def test_canary_classes_come_after_the_real_ones_and_are_filled_evenly(given_: dict) -> None:
    canaries = canary.design(**given_)
    wanted = -(-given_["count"] // given_["dim"])  # as few as hold at most dim each
    first = given_["num_classes"]
    for m in range(given_["clients"]):
        sizes = [len(rows) for client, _, rows in classes(canaries) if client == m]
        assert len(sizes) == wanted
        assert max(sizes) <= given_["dim"]
        assert max(sizes) - min(sizes) <= 1
        labels = np.unique(canaries.labels[canaries.clients == m])
        assert labels.tolist() == list(range(first, first + wanted))


def test_every_sign_is_a_fair_coin_of_its_own() -> None:
    """One-run limits on epsilon want coins: half and half, as in a shuffle, would make guesses depend on each other."""
    canaries = canary.design(clients=1, count=6, dim=8, norm=1.0, num_classes=1, seed=0, per_class=3)
    drawn = np.array([canary.signs(canaries, seed=s) for s in range(4000)])
    assert drawn.dtype == bool
    assert np.array_equal(drawn[7], canary.signs(canaries, seed=7))
    error = 0.5 / math.sqrt(4000)
    assert np.abs(drawn.mean(axis=0) - 0.5).max() < 4.5 * error
    signed = np.where(drawn, 1.0, -1.0)
    together = signed.T @ signed / 4000 - np.eye(6)
    assert np.abs(together).max() < 4.5 * 2 * error  # a shuffle of three has -1/3
    heads = np.bincount(drawn.sum(axis=1), minlength=7) / 4000
    law = np.array([math.comb(6, k) for k in range(7)]) / 64
    assert np.abs(heads - law).max() < 4.5 * error


@settings(max_examples=25)
@given(designs())
def test_planted_canaries_are_the_canaries_or_their_negatives(given_: dict) -> None:
    canaries = canary.design(**given_)
    signs = canary.signs(canaries, seed=0)
    planted = canary.planted(canaries, signs)
    assert np.array_equal(planted.vectors, np.where(signs, 1, -1)[:, None] * canaries.vectors)
    assert np.array_equal(planted.labels, canaries.labels)
    assert np.array_equal(planted.clients, canaries.clients)


@settings(max_examples=25)
@given(designs())
def test_a_class_mean_lies_at_plus_or_minus_length_over_n_along_each_canary(given_: dict) -> None:
    canaries = canary.design(**given_)
    signs = canary.signs(canaries, seed=1)
    planted = canary.planted(canaries, signs)
    for radius in (given_["norm"], given_["norm"] / 3):  # as planted, and clipped to a ball inside
        clipped = clip_to_ball(planted.vectors, norm=radius)
        for _, _, rows in classes(canaries):
            along = canaries.vectors[rows] @ clipped[rows].mean(axis=0) / given_["norm"]
            expected = np.where(signs[rows], radius, -radius) / len(rows)
            assert along == pytest.approx(expected, rel=1e-9, abs=1e-12 * radius)


def test_directions_and_signs_differ_by_seed_and_client() -> None:
    same = {"clients": 2, "count": 40, "dim": 20, "norm": 1.0, "num_classes": 2}
    one, other = canary.design(**same, seed=0), canary.design(**same, seed=1)
    assert np.array_equal(one.vectors, canary.design(**same, seed=0).vectors)
    directions = np.concatenate([one.of(0).vectors, one.of(1).vectors, other.of(0).vectors])
    alike = np.abs(directions @ directions.T)
    within = np.kron(np.eye(6), np.ones((20, 20)))
    assert alike[within == 0].max() < 0.9
    a, b = canary.signs(one, seed=0), canary.signs(one, seed=1)
    assert (a != b).any()
    assert (a[:40] != a[40:]).any()


def test_no_canary_lies_on_an_axis() -> None:
    canaries = canary.design(clients=1, count=64, dim=64, norm=1.0, num_classes=2, seed=0)
    assert np.abs(canaries.vectors).max() < 0.7
    assert np.abs(canaries.vectors).sum(axis=1).min() > 0.5 * math.sqrt(64)  # dense: l1 far above l2


@pytest.mark.parametrize(
    "bad",
    [
        {"count": 1},
        {"count": 0},
        {"norm": 0.0},
        {"norm": -1.0},
        {"norm": math.nan},
        {"norm": math.inf},
        {"dim": 1},
    ],
)
def test_canaries_that_show_nothing_are_refused(bad: dict) -> None:
    fine = {"clients": 1, "count": 4, "dim": 4, "norm": 1.0, "num_classes": 2, "seed": 0}
    canary.design(**fine)
    with pytest.raises(
        InputError, match="plant at least 2, of finite length above 0, in at least 2 dimensions"
    ):
        canary.design(**{**fine, **bad})


@settings(max_examples=25)
@given(designs())
def test_a_client_keeps_its_directions_when_more_clients_join(given_: dict) -> None:
    more = canary.design(**{**given_, "clients": given_["clients"] + 1})
    assert np.array_equal(
        more.vectors[: given_["clients"] * given_["count"]], canary.design(**given_).vectors
    )


@settings(max_examples=25)
@given(designs(), st.integers(3, 20))
def test_classes_hold_no_more_than_wanted_and_never_one(given_: dict, per_class: int) -> None:
    canaries = canary.design(**given_, per_class=per_class)
    sizes = [len(rows) for _, _, rows in classes(canaries)]
    assert 2 <= min(sizes) <= max(sizes) <= min(per_class, given_["dim"])
    assert sum(sizes) == given_["clients"] * given_["count"]


def test_a_class_of_one_canary_is_refused() -> None:
    with pytest.raises(
        InputError, match="canaries=3 leave a class of one at 2 per class; plant an even number"
    ):
        canary.design(clients=1, count=3, dim=8, norm=1.0, num_classes=1, seed=0, per_class=2)
