"""The split: disjoint, stratified, exchangeable halves, new for every seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privkit.data._split import Parts, Shares, SmallClasses, divide, divide_things
from privkit.errors import InputError

SHARES = Shares(pool=0.6, reference=0.2, test=0.2)
NAMES = ("members", "non_members", "reference", "test")


@st.composite
def splits(draw: st.DrawFn) -> dict:
    """Arguments of a split that is possible."""
    sizes = draw(st.lists(st.integers(10, 40), min_size=2, max_size=4))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    np.random.default_rng(draw(st.integers(0, 99))).shuffle(labels)
    pool, reference, test = draw(
        st.sampled_from(
            [(0.6, 0.2, 0.2), (0.5, 0.45, 0.05), (0.9, 0.0, 0.1), (0.2, 0.1, 0.1), (0.34, 0.33, 0.33)]
        )
    )
    return {
        "labels": labels,
        "num_classes": len(sizes),
        "shares": Shares(pool=pool, reference=reference, test=test),
        "seed": draw(st.integers(0, 99)),
        "client": draw(st.integers(0, 3)),
        "name": "here",
    }


def rows(parts: Parts) -> list[np.ndarray]:
    return [getattr(parts, name) for name in NAMES]


@settings(max_examples=40)
@given(splits())
def test_parts_are_disjoint_ascending_rows_of_the_domain(arguments: dict) -> None:
    found = rows(divide(**arguments))
    together = np.concatenate(found)
    assert len(np.unique(together)) == len(together)
    assert together.min() >= 0
    assert together.max() < len(arguments["labels"])
    assert all((np.diff(part) > 0).all() for part in found)


@settings(max_examples=40)
@given(splits())
def test_each_class_is_shared_out_alike(arguments: dict) -> None:
    parts = divide(**arguments)
    labels, classes, shares = arguments["labels"], arguments["num_classes"], arguments["shares"]
    members, non_members, reference, test = (np.bincount(labels[p], minlength=classes) for p in rows(parts))
    n = np.bincount(labels)
    assert (members == non_members).all()
    assert (members >= 1).all()
    assert (test >= 1).all()
    assert (np.abs(2 * members - shares.pool * n) < 2).all()
    assert (np.abs(reference - shares.reference * n) <= 1).all()
    assert (np.abs(test - shares.test * n) <= 1).all()


@settings(max_examples=40)
@given(splits())
def test_the_same_seed_splits_alike(arguments: dict) -> None:
    one, same = divide(**arguments), divide(**arguments)
    assert all(np.array_equal(a, b) for a, b in zip(rows(one), rows(same), strict=True))


def test_seeds_and_clients_split_differently() -> None:
    fixed = {
        "labels": np.repeat([0, 1], 50),
        "num_classes": 2,
        "shares": SHARES,
        "name": "x",
    }
    found = {divide(**fixed, seed=s, client=m).members.tobytes() for s in range(4) for m in range(3)}
    assert len(found) == 12


def test_every_record_is_as_likely_a_member_as_a_non_member() -> None:
    labels = np.repeat([0, 1], 10)
    trials = 600
    counts = np.zeros((4, len(labels)))
    for seed in range(trials):
        parts = divide(labels, num_classes=2, shares=SHARES, seed=seed, client=0, name="x")
        for count, part in zip(counts, rows(parts), strict=True):
            count[part] += 1
    expected = np.array([0.3, 0.3, 0.2, 0.2])
    bound = 6 * np.sqrt(expected * (1 - expected) / trials)
    assert (np.abs(counts / trials - expected[:, None]) < bound[:, None]).all()


def check_refused(message: str, labels: list[int], num_classes: int, pool: float = 0.6) -> None:
    with pytest.raises(InputError, match=message):
        divide(
            np.array(labels, dtype=np.int64),
            num_classes=num_classes,
            shares=Shares(pool=pool, reference=0.2, test=0.2),
            seed=0,
            client=0,
            name="pens",
        )


def test_a_domain_of_one_class_is_refused() -> None:
    check_refused("domain pens has records of 1 class; give at least two", [1] * 20, 2)
    check_refused("domain pens has records of 0 class", [], 2)


def test_a_class_without_enough_records_is_refused() -> None:
    check_refused(
        r"class 1 of domain pens has 3 records, too few .*; raise split\.pool, or leave it out there with "
        r"split\.small_classes: drop",
        [0] * 9 + [1] * 3,
        2,
    )


def test_a_label_that_is_no_class_is_refused() -> None:
    check_refused("labels from 0 to 2; number its 2 classes from 0 to 1", [0, 1, 2] * 9, 2)
    check_refused("labels from -1 to 1; number", [-1, 0, 1] * 9, 2)


@pytest.mark.parametrize("n", range(4, 40))
def test_no_class_is_left_without_a_test_record(n: int) -> None:
    parts = divide(
        np.repeat([0, 1], [n, 40]),
        num_classes=2,
        shares=Shares(pool=0.5, reference=0.45, test=0.05),
        seed=0,
        client=0,
        name="x",
    )
    assert (parts.test < n).any()
