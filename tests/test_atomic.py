"""Writes are whole or not at all, and what cannot be written or read is refused by name."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privkit import atomic, tensors
from privkit.errors import InputError
from privkit.whole import whole

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files and folders that were fsynced, in order."""
    names: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: names.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name))
    return names


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks up open files in /proc")
def test_a_durable_write_syncs_the_file_before_its_name(tmp_path: Path, synced: list[str]) -> None:
    atomic.write_bytes(tmp_path / "a", b"1")
    assert synced == [".a.tmp", tmp_path.name]
    synced.clear()
    atomic.write_bytes(tmp_path / "a", b"2", durable=False)
    tensors.write(tmp_path / "b", {"x": np.ones(1)}, durable=False)
    atomic.write_json(tmp_path / "c", {}, durable=False)
    assert synced == []


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    atomic.write_bytes(path, b"old")

    def torn(tmp: Path) -> None:
        tmp.write_bytes(b"ne")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        atomic.write_with(path, torn)
    assert path.read_bytes() == b"old"
    atomic.write_bytes(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a", b"new")]


@given(plain)
def test_canonical_json_reads_back_and_does_not_depend_on_order(value: object) -> None:
    import json

    text = atomic.canonical_json(value)
    assert json.loads(text) == value
    assert atomic.canonical_json(json.loads(text)) == text
    assert atomic.canonical_json({"b": value, "a": 1}) == atomic.canonical_json({"a": 1, "b": value})


def test_numpy_numbers_are_numbers() -> None:
    values = [np.float64(0.1), np.int64(3), np.bool_(True), np.float32(0.5)]
    assert atomic.canonical_json(values) == "[0.1,3,true,0.5]"


@pytest.mark.parametrize("bad", [math.nan, math.inf, Path("x"), {1, 2}, np.ones(2), {(1, 2): 3}])
def test_what_json_cannot_hold_is_refused(tmp_path: Path, bad: object) -> None:
    with pytest.raises(InputError, match="cannot be written as JSON"):
        atomic.write_json(tmp_path / "a", {"deep": [bad]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "not valid JSON"), (b'{"a": 1', "not valid JSON"), (b"\xff\xfe", "not valid JSON")],
)
def test_unreadable_json_is_refused_by_name(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a b.json"
    with pytest.raises(InputError, match=r"a b\.json does not exist"):
        atomic.read_json(path)
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"a b\.json is {message}"):
        atomic.read_json(path)


ARRAYS = {
    "b": np.arange(3, dtype=np.int64),
    "a": np.array([[1, 2]], dtype=np.float32),
    "none": np.zeros((0, 4)),
    "": np.array(2.5),
}


def test_tensors_come_back_with_their_shapes_and_types(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tensors.write(path, ARRAYS)
    found = tensors.read(path)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found[name], array)
    tensors.write(tmp_path / "y", dict(reversed(ARRAYS.items())))
    assert (tmp_path / "y").read_bytes() == path.read_bytes()


def test_tensors_cut_at_any_length_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tensors.write(path, ARRAYS)
    data = path.read_bytes()
    for n in range(len(data)):
        path.write_bytes(data[:n])
        with pytest.raises(InputError, match=r"x\.safetensors is damaged or cut short .* restore it"):
            tensors.read(path)


def test_missing_files_folders_and_names_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(InputError, match=f"{path.name} does not exist; restore it or train again"):
            tensors.read(path)
    tensors.write(tmp_path / "x", {"a": np.ones(1)})
    with pytest.raises(InputError, match="x holds no labels; restore it"):
        tensors.read(tmp_path / "x", "a", "labels")


@given(st.integers(0, 10**20))
def test_whole_returns_whole_numbers(value: int) -> None:
    assert whole("n", value, least=0) == value


@pytest.mark.parametrize(
    "bad", [0, -3, 1.0, 2.5, math.nan, True, np.bool_(True), "2", None, np.float64(3), [1]]
)
def test_whole_refuses_everything_else_by_name(bad: object) -> None:
    with pytest.raises(InputError, match=r"n=.*; give a whole number of at least 1"):
        whole("n", bad, least=1)
