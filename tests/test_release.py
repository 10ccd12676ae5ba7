"""Payloads: read-only copies, refused by name when misshapen, with a digest of everything in them."""

import dataclasses
import hashlib
import struct
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from accountant.events import Gaussian, NonPrivate
from privkit.errors import InputError
from privkit.release import PAYLOADS, Head, Payload, Prototypes, Release, Update
from tests import draw

NAN, INF = float("nan"), float("inf")


def same(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(
        one[k].dtype == other[k].dtype and one[k].shape == other[k].shape and np.array_equal(one[k], other[k])
        for k in one
    )


@settings(max_examples=40)
@given(draw.payloads())
def test_from_tensors_reads_what_tensors_returned(payload: Payload) -> None:
    again = type(payload).from_tensors(payload.tensors())
    assert same(again.tensors(), payload.tensors())
    assert again.digest() == payload.digest()
    assert PAYLOADS[payload.kind] is type(payload)


@settings(max_examples=40)
@given(draw.payloads())
def test_arrays_are_read_only(payload: Payload) -> None:
    for array in payload.tensors().values():
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_arrays_are_copies() -> None:
    vectors, labels, counts = np.ones((2, 3)), np.array([0, 1]), np.array([5, 6])
    named = {"w": np.ones(2)}
    sent, head, update = (
        Prototypes(vectors=vectors, labels=labels, counts=counts),
        Head(weights=vectors),
        Update(named=named, means="delta"),
    )
    before = [p.digest() for p in (sent, head, update)]
    vectors[:], labels[:], counts[:] = 7, 7, 7
    named["w"][:] = 7
    named["more"] = np.ones(1)
    assert [p.digest() for p in (sent, head, update)] == before


def test_payloads_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Head(weights=np.ones((1, 1))).weights = np.zeros((1, 1))  # pyright: ignore[reportAttributeAccessIssue]


@settings(max_examples=40)
@given(draw.payloads())
def test_nbytes_counts_every_array(payload: Payload) -> None:
    assert payload.nbytes == sum(len(a.tobytes()) for a in payload.tensors().values())


@settings(max_examples=40)
@given(draw.payloads(), st.data())
def test_digest_depends_on_every_value(payload: Payload, data: st.DataObject) -> None:
    tensors = payload.tensors()
    name = data.draw(st.sampled_from([n for n, a in tensors.items() if a.size] or [""]))
    if not name:
        return
    changed = tensors[name].copy()
    place = data.draw(st.integers(0, changed.size - 1))
    changed.reshape(-1)[place] += 1
    other = type(payload).from_tensors({**tensors, name: changed})
    assert (other.digest() == payload.digest()) == np.array_equal(changed, tensors[name])


def test_digest_tells_the_last_bit_apart() -> None:
    weights = np.ones((2, 2), dtype=np.float32)
    one = Head(weights=weights).digest()
    weights[1, 1] = np.nextafter(np.float32(1), np.float32(2))
    assert Head(weights=weights).digest() != one


def test_digest_depends_on_name_type_shape_and_kind() -> None:
    flat = np.arange(6, dtype=np.float32)
    others = [
        Update(named={"w": flat}, means="weights"),
        Update(named={"v": flat}, means="weights"),
        Update(named={"w": flat}, means="delta"),
        Update(named={"w": flat.astype(np.float64)}, means="weights"),
        Update(named={"w": flat.reshape(2, 3)}, means="weights"),
        Update(named={"w": flat.reshape(3, 2)}, means="weights"),
        Update(named={"w": flat.reshape(1, 6)}, means="weights"),
        Update(named={"w": flat, "x": flat[:0]}, means="weights"),
        Update(named={"w": flat[:3], "x": flat[3:]}, means="weights"),
        Head(weights=flat.reshape(2, 3)),
        Prototypes(vectors=flat.reshape(2, 3), labels=np.array([0, 1])),
        Prototypes(vectors=flat.reshape(2, 3), labels=np.array([0, 1]), counts=np.array([1, 1])),
        Prototypes(vectors=flat.reshape(2, 3), labels=np.array([1, 0])),
    ]
    assert len({payload.digest() for payload in others}) == len(others)


def test_digest_does_not_depend_on_memory_layout_or_byte_order() -> None:
    weights = np.arange(6, dtype="<f4").reshape(2, 3)
    layouts = [weights, np.asfortranarray(weights), weights.astype(">f4"), weights[::-1][::-1]]
    assert len({Head(weights=w).digest() for w in layouts}) == 1


def test_digest_hashes_kind_names_types_shapes_and_bytes() -> None:
    sent = Prototypes(
        vectors=np.array([[1.0, -2.0]], dtype=np.float32), labels=np.array([3]), counts=np.array([4])
    )
    hashed = (
        (
            b"prototypes"
            b"\0counts\0<i8\0(1,)\0" + struct.pack("<q", 4) + b"\0labels\0<i8\0(1,)\0" + struct.pack("<q", 3)
        )
        + b"\0vectors\0<f4\0(1, 2)\0"
        + struct.pack("<2f", 1, -2)
    )
    assert sent.digest() == hashlib.sha256(hashed).hexdigest()


def test_tensors_without_axes_and_without_rows_are_kept() -> None:
    scale = Update(named={"scale": np.array(2.5)}, means="weights")
    assert scale.named["scale"].shape == ()
    empty = Prototypes(vectors=np.zeros((0, 3)), labels=np.array([]))
    assert empty.labels.dtype == np.int64


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_number_that_is_not_finite_is_refused_with_its_place(bad: float, dtype: type) -> None:
    vectors = np.zeros((3, 2), dtype=dtype)
    vectors[2, 1] = bad
    with pytest.raises(InputError, match=rf"vectors\[2, 1\] is {bad}; only finite"):
        Prototypes(vectors=vectors, labels=np.arange(3))
    with pytest.raises(InputError, match=r"weights\[2, 1\]"):
        Head(weights=vectors)
    with pytest.raises(InputError, match=r"fc\.weight\[2, 1\]"):
        Update(named={"ok": np.ones(1), "fc.weight": vectors}, means="gradient")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vectors": np.zeros(3)}, r"vectors has shape \(3,\).*give 2 axes"),
        ({"vectors": np.zeros((1, 3, 2))}, r"vectors has shape \(1, 3, 2\)"),
        ({"vectors": np.zeros((3, 2), dtype=int)}, "vectors has .* type int64.*floats"),
        ({"vectors": np.zeros((3, 2), dtype=complex)}, "type complex128"),
        ({"vectors": np.zeros((3, 2), dtype=np.longdouble)}, "vectors has .*at most 64 bits"),
        ({"vectors": np.array([["a"]])}, "vectors has .* type <U1"),
        ({"vectors": np.zeros((4, 2))}, "3 labels for 4 vectors; give one label per vector"),
        ({"labels": np.zeros((3, 1), dtype=int)}, r"labels has shape \(3, 1\)"),
        ({"labels": np.array([0.0, 0.5, 1.0])}, "labels has .* type float64; give .*whole numbers"),
        ({"labels": np.array([True, False, True])}, "labels has .* type bool"),
        ({"labels": np.array([0, -1, 2])}, r"labels=\[0, -1, 2\]: give whole numbers of at least 0"),
        ({"labels": np.array([0, 1, 2**63], dtype=np.uint64)}, "labels="),
        ({"counts": np.array([1, 0, 2])}, r"counts=\[1, 0, 2\]: give whole numbers of at least 1"),
        ({"counts": np.array([1.5, 1, 2])}, "counts has .* type float64"),
        ({"counts": np.array([NAN, 1, 2])}, "counts has .* type float64"),
        ({"counts": np.array([1, 2])}, r"counts=\[1, 2\]: give one count per vector"),
    ],
)
def test_misshapen_prototypes_are_refused_by_name(changes: dict, message: str) -> None:
    fine = {"vectors": np.zeros((3, 2)), "labels": np.arange(3), "counts": np.ones(3, dtype=int)}
    Prototypes(**fine)
    with pytest.raises(InputError, match=message):
        Prototypes(**{**fine, **changes})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"named": {}, "means": "delta"}, "at least one tensor; named is empty"),
        ({"named": {"w": np.ones(1)}, "means": "grad"}, "means='grad'; say gradient, delta or weights"),
        ({"named": {"seen": np.array(3)}, "means": "weights"}, "seen has .* type int64"),
    ],
)
def test_misshapen_updates_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Update(**settings)


def test_an_update_that_mixes_kinds_is_refused() -> None:
    with pytest.raises(InputError, match=r"\['delta', 'gradient'\]; one kind"):
        Update.from_tensors({"delta.w": np.ones(1), "gradient.w": np.ones(1)})


@settings(max_examples=40)
@given(draw.prototypes(), st.data())
def test_only_keeps_the_rows_of_a_mask(payload: Prototypes, data: st.DataObject) -> None:
    keep = data.draw(arrays(bool, len(payload.labels)))
    kept = payload.only(keep)
    assert same(kept.tensors(), {name: array[keep] for name, array in payload.tensors().items()})


@pytest.mark.parametrize("name", ["round", "client"])
@pytest.mark.parametrize("bad", [-1, 0.5, 1.0, NAN, True, "1", None])
def test_a_round_or_client_that_is_no_index_is_refused(name: str, bad: object) -> None:
    fine = {"round": 0, "client": 0, "payload": Head(weights=np.ones((1, 1))), "event": NonPrivate()}
    with pytest.raises(InputError, match=rf"{name}={bad!r}; give a whole number of at least 0"):
        unchecked_release(**{**fine, name: bad})


def test_numpy_indices_become_plain_ones() -> None:
    release = unchecked_release(
        round=np.int64(2), client=np.uint8(1), payload=Head(weights=np.ones((1, 1))), event=NonPrivate()
    )
    assert (type(release.round), release.round) == (int, 2)
    assert (type(release.client), release.client) == (int, 1)


def test_a_release_of_something_else_is_refused() -> None:
    head, event = Head(weights=np.ones((1, 1))), Gaussian(noise_multiplier=1.0)
    with pytest.raises(
        InputError, match="payload is ndarray; give one of Prototypes, SumsAndCounts, Head, Update"
    ):
        unchecked_release(round=0, client=0, payload=np.ones(2), event=event)
    with pytest.raises(InputError, match=r"event is float; give one of accountant\.events"):
        unchecked_release(round=0, client=0, payload=head, event=1.0)


def unchecked_release(**named: object) -> Release:
    """Build a release as an untyped caller would: annotations are not enforced outside the tests."""
    release = object.__new__(Release)
    for name, value in named.items():
        object.__setattr__(release, name, value)
    release.__post_init__()
    return release
