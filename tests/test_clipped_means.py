"""Means of clipped records: what clipping everything first and averaging then gives, whatever the numbers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from accountant.contract import DependsOn
from accountant.events import ClipSet
from privkit.clip import CLIPS
from privkit.defenses._base import NOTHING, Known
from privkit.defenses._clipped import clipped_means
from privkit.defenses._means import Groups, class_means, class_sums
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.partitions._scores import discriminability, variances
from privkit.prototypes.mean import Mean


def held(vectors: Any, labels: Any) -> Embeddings:
    return Embeddings(
        vectors=np.asarray(vectors, dtype=np.float64),
        labels=np.asarray(labels, dtype=np.int64),
        encoder=DependsOn.PUBLIC,
    )


class Alternating(Mean):
    """Even and odd records of a class apart."""

    def assign(self, vectors_Nd: Any, labels_N: Any) -> Any:
        return np.arange(len(labels_N)) % 2


scales = st.sampled_from([1e-300, 1e-120, 1e-3, 1.0, 50.0, 1e120, 1e250])


@st.composite
def records(draw: st.DrawFn) -> Embeddings:
    n, d = draw(st.integers(1, 12)), draw(st.integers(2, 6))
    numbers = draw(hnp.arrays(np.float64, (n, d), elements=st.floats(-4, 4)))
    rows = np.array(draw(st.lists(scales, min_size=n, max_size=n)))
    return held(numbers * rows[:, None], draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))


@given(records(), st.sampled_from(list(ClipSet)), scales, st.floats(0.1, 1.0), st.sampled_from([0, 1, 2]))
def test_they_are_the_means_of_everything_clipped_first(some, clip, norm, shorter, how):
    group_d = (np.arange(some.vectors.shape[1]) % 2).astype(np.int64)
    norms = (norm, norm if clip is ClipSet.GLOBAL else norm * shorter)
    known = [NOTHING, Known(classes=2), Known(summary=Alternating())][how]
    mine = clipped_means(some, known, clip=clip, group_d=group_d, norms=norms)
    clipped = CLIPS[clip](some.vectors, group_d, norms=norms)
    wanted = class_means(some.with_vectors(clipped), known)
    np.testing.assert_allclose(mine.vectors, wanted.vectors, rtol=1e-12, atol=1e-14 * norm)
    assert mine.labels.tolist() == wanted.labels.tolist()
    assert mine.counts.tolist() == wanted.counts.tolist()


def test_no_records_are_refused_whatever_the_clip_norm():
    for norm in (1.0, 1e-200):
        with pytest.raises(InputError, match="has no records to average"):
            clipped_means(
                held(np.zeros((0, 2)), []),
                NOTHING,
                clip=ClipSet.GROUPWISE,
                group_d=np.array([0, 1]),
                norms=(norm, norm),
            )


@given(records(), st.booleans())
def test_means_and_sums_are_those_of_a_loop_over_records(some, clusters):
    known = Known(summary=Alternating()) if clusters else NOTHING
    means, sums = class_means(some, known), class_sums(some, np.arange(4))
    keys = [(int(y), i % 2 if clusters else 0) for i, y in enumerate(some.labels)]
    assert [(y, n) for y, n in zip(means.labels.tolist(), means.counts.tolist(), strict=True)] == [
        (key[0], keys.count(key)) for key in sorted(set(keys))
    ]
    for p, key in enumerate(sorted(set(keys))):
        mine = some.vectors[[k == key for k in keys]]
        np.testing.assert_allclose(means.vectors[p], mine.sum(0) / len(mine), rtol=1e-12)
    for c in range(4):
        mine = some.vectors[some.labels == c]
        np.testing.assert_allclose(sums.vectors[c], mine.sum(0), rtol=1e-12)
        assert sums.counts[c] == len(mine)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12))
def test_groups_hold_every_record_once_in_its_own_order(pairs):
    labels, clusters = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    groups = Groups.of(labels, clusters)
    every = np.arange(len(pairs))
    rows = [(p, r) for p, some in groups.rows() for r in every[some].tolist()]
    assert sorted(r for _, r in rows) == list(range(len(pairs)))
    assert rows == sorted(rows)
    assert np.bincount([p for p, _ in rows], minlength=len(groups.counts)).tolist() == groups.counts.tolist()
    assert all(groups.labels[p] == labels[r] for p, r in rows)
    assert len({(p, clusters[r]) for p, r in rows}) == len(groups.labels) == len(set(pairs))


def test_many_records_of_a_class_give_what_a_few_at_a_time_do():
    rng = np.random.default_rng(0)
    some = held(1e6 + rng.normal(size=(1000, 3)), np.arange(1000) % 2)
    rows = [np.arange(1000)[r] for _, r in Groups.of(some.labels).rows()]
    assert max(map(len, rows)) < 500 < len(np.concatenate(rows))
    apart = [some.vectors[some.labels == c] for c in (0, 1)]
    np.testing.assert_allclose(class_means(some).vectors, [z.mean(0) for z in apart], rtol=1e-14)
    found = variances(some)
    np.testing.assert_allclose(found.within, sum(((z - z.mean(0)) ** 2).sum(0) for z in apart), rtol=1e-9)
    between = sum(500 * (z.mean(0) - some.vectors.mean(0)) ** 2 for z in apart)
    np.testing.assert_allclose(found.between, between, rtol=1e-6)


def test_records_in_order_are_not_copied_and_give_the_same():
    rng = np.random.default_rng(0)
    shuffled = held(rng.normal(size=(600, 3)), rng.integers(0, 2, 600))
    order = np.argsort(shuffled.labels, kind="stable")
    listed = held(shuffled.vectors[order], shuffled.labels[order])
    assert all(isinstance(rows, slice) for _, rows in Groups.of(listed.labels).rows())
    assert np.array_equal(class_means(listed).vectors, class_means(shuffled).vectors)
    assert np.array_equal(variances(listed).within, variances(shuffled).within)


def test_scores_do_not_depend_on_whether_squares_fit_into_a_float():
    rng = np.random.default_rng(0)
    small = held(rng.normal(size=(20, 5)), np.arange(20) % 3)
    large = small.with_vectors(np.ldexp(small.vectors, [0, 3, 600, 900, 1015]))
    assert variances(small).exponents.tolist() == [0] * 5
    assert max(variances(large).exponents) > 900
    wanted = discriminability(small, stabiliser=0.0)
    np.testing.assert_allclose(discriminability(large, stabiliser=0.0), wanted, rtol=1e-12)


def test_scores_are_computed_once_and_forgotten_with_their_records():
    some = held(np.eye(4), [0, 0, 1, 1])
    assert variances(some) is variances(some)
    assert variances(held(np.eye(4), [0, 0, 1, 1])) is not variances(some)
