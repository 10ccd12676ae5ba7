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


# ---------------------------------------------------------------------- test records that a data set keeps


def test_a_domain_with_test_records_of_its_own_is_tested_on_all_of_them() -> None:
    labels, tests = np.repeat([0, 1, 2], 20), np.array([2, 2, 0, 1, 0])
    fixed = {"num_classes": 4, "shares": SHARES, "seed": 3, "client": 0, "name": "x"}
    with_tests, without = divide(labels, **fixed, tests=tests), divide(labels, **fixed)
    assert with_tests.test.tolist() == [0, 1, 2, 3, 4]
    for side in ("members", "non_members"):
        assert np.array_equal(getattr(with_tests, side), getattr(without, side))
    owned = np.bincount(labels[with_tests.reference])
    assert owned.tolist() == [4, 4, 4]


def test_a_domain_of_one_class_needs_test_records_of_others() -> None:
    fixed = {"num_classes": 3, "shares": SHARES, "seed": 0, "client": 0, "name": "pens"}
    parts = divide(np.full(10, 2), **fixed, tests=np.array([0, 1, 2]))
    assert len(parts.members) == len(parts.non_members) == 3
    with pytest.raises(InputError, match="has records of 1 class; give at least two classes"):
        divide(np.full(10, 2), **fixed)


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ([], r"domain pens \(test records\) has records of 0 classes; give at least one class"),
        ([0, 3], r"domain pens \(test records\) has labels from 0 to 3; number its 3 classes from 0 to 2"),
        ([-1, 0], r"domain pens \(test records\) has labels from -1 to 0"),
    ],
)
def test_test_records_that_cannot_be_used_are_refused(tests: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        divide(
            np.repeat([0, 1], 10),
            num_classes=3,
            shares=SHARES,
            seed=0,
            client=0,
            name="pens",
            tests=np.array(tests, dtype=np.int64),
        )


# ---------------------------------------------------------------------- small classes


DROPPING = Shares(pool=0.6, reference=0.2, test=0.2, small_classes=SmallClasses.DROP)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.booleans())
def test_a_class_is_dropped_whole_or_not_at_all(sizes: list[int], kept: bool) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    large = [label for label, n in enumerate(sizes) if int(0.6 * n) >= 2]
    tests = np.arange(len(sizes)) if kept else None
    fixed = {"num_classes": len(sizes), "shares": DROPPING, "seed": 1, "client": 0, "name": "x"}
    if len(large) < (1 if kept else 2):
        with pytest.raises(InputError, match=r"domain x has (no class|only one class|records of)"):
            divide(labels, **fixed, tests=tests)
        return
    parts = divide(labels, **fixed, tests=tests)
    assert np.array_equal(parts.dropped, np.flatnonzero(~np.isin(labels, large)))
    for side in ("members", "non_members", "reference") if kept else NAMES:
        assert set(labels[getattr(parts, side)]) <= set(large)
    assert set(labels[parts.members]) == set(large)


def test_what_is_not_dropped_is_split_as_if_the_rest_were_not_there() -> None:
    small = np.concatenate([np.repeat([0, 1], 20), np.full(3, 2)])
    fixed = {"num_classes": 3, "seed": 1, "client": 0, "name": "x"}
    one, other = divide(small, shares=DROPPING, **fixed), divide(small[:40], shares=SHARES, **fixed)
    assert all(np.array_equal(a, b) for a, b in zip(rows(one), rows(other), strict=True))
    assert one.dropped.tolist() == [40, 41, 42]
    assert other.dropped.tolist() == []


def test_a_domain_that_only_has_small_classes_is_refused() -> None:
    fixed = {"num_classes": 4, "shares": DROPPING, "seed": 0, "client": 0, "name": "pens"}
    with pytest.raises(InputError, match=r"no class that is large enough; raise split\.pool, or"):
        divide(np.array([0, 1, 2, 3]), **fixed)
    with pytest.raises(InputError, match="domain pens has only one class that is large enough"):
        divide(np.array([0] * 9 + [1]), **fixed)
    with pytest.raises(InputError, match="domain pens has no class that is large enough"):
        divide(np.array([3]), **fixed, tests=np.arange(4))


# ---------------------------------------------------------------------- things that several domains show


@st.composite
def shown(draw: st.DrawFn) -> list[tuple[np.ndarray, np.ndarray]]:
    """Classes and things of three domains; each shows most things, some twice."""
    class_of = np.repeat(np.arange(3), draw(st.lists(st.integers(10, 20), min_size=3, max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    domains = []
    for _ in range(3):
        things = rng.permutation(np.repeat(np.arange(len(class_of)), rng.integers(0, 3, len(class_of))))
        domains.append((class_of[things], things))
    return domains


@settings(max_examples=40)
@given(shown(), st.integers(0, 9))
def test_a_thing_is_on_one_side_in_every_domain(domains: list, seed: int) -> None:
    found = divide_things(domains, names="abc", num_classes=3, shares=SHARES, seed=seed)
    sides: dict[int, set[str]] = {}
    for (_, things), parts in zip(domains, found, strict=True):
        together = np.concatenate(rows(parts))
        assert len(np.unique(together)) == len(together)
        for name, part in zip(NAMES, rows(parts), strict=True):
            assert (np.diff(part) > 0).all()
            for thing in things[part].tolist():
                sides.setdefault(thing, set()).add(name)
    assert all(len(names) == 1 for names in sides.values())


@settings(max_examples=40)
@given(shown(), st.integers(0, 9))
def test_things_of_each_class_are_shared_out_as_records_would_be(domains: list, seed: int) -> None:
    found = divide_things(domains, names="abc", num_classes=3, shares=SHARES, seed=seed)
    every = np.unique(np.concatenate([np.stack([t, y]) for y, t in domains], axis=1), axis=1)
    wanted = divide(every[1], num_classes=3, shares=SHARES, seed=seed, client=0, name="all")
    for name, part in zip(NAMES, rows(wanted), strict=True):
        mine = [t[getattr(p, name)] for (_, t), p in zip(domains, found, strict=True)]
        assert set(np.concatenate(mine)) == set(every[0, part])


def test_a_thing_of_two_classes_is_refused() -> None:
    labels, things = np.repeat([0, 1], 10), np.arange(20)
    other = labels.copy()
    other[4] = 1
    with pytest.raises(InputError, match="thing 4 is of class 0 and of class 1; give every thing one class"):
        divide_things([(labels, things), (other, things)], names="ab", num_classes=2, shares=SHARES, seed=0)


def test_a_domain_that_shows_nothing_of_one_side_is_refused() -> None:
    labels, things = np.repeat([0, 1], 10), np.arange(20)
    whole = divide_things([(labels, things)], names="a", num_classes=2, shares=SHARES, seed=0)[0]
    for side, wanted in (("members", "trained"), ("test", "tested")):
        kept = np.setdiff1d(things, getattr(whole, side))
        with pytest.raises(InputError, match=f"domain b shows none of the things that are {wanted} on"):
            divide_things(
                [(labels, things), (labels[kept], kept)],
                names="ab",
                num_classes=2,
                shares=SHARES,
                seed=0,
            )
