"""Features are encoded once; what is kept is used only if it is what was written."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from privkit import tensors
from privkit.errors import InputError
from privkit.models import _cache
from privkit.models._base import AbstractEncoder


class Means(AbstractEncoder):
    """Two means per image; counts how often it is asked."""

    scale: float = 1.0
    calls: ClassVar[list[int]] = []

    @property
    def dim(self) -> int:
        return 2

    @property
    def trained_on(self) -> str:
        return "nothing"

    @property
    def fingerprint(self) -> str:
        return "ab"

    def encode(self, records: np.ndarray) -> np.ndarray:
        self.calls.append(len(records))
        rows = records.reshape(len(records), 2, -1)
        return (self.scale * rows.mean(axis=2)).astype(np.float32)


IMAGES = np.random.default_rng(0).integers(0, 256, (3, 4, 4)).astype(np.uint8)
EXPECTED = IMAGES.reshape(3, 2, 8).mean(axis=2).astype(np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "the cache"
    monkeypatch.setenv("PRIVKIT_CACHE", str(folder))
    Means.calls.clear()
    return folder


def kept(cache: Path) -> Path:
    (path,) = (cache / "features").iterdir()
    return path


def test_features_are_encoded_once_and_come_back_the_same(cache: Path) -> None:
    first, second = _cache.features(Means(), IMAGES), _cache.features(Means(), IMAGES.copy())
    assert Means.calls == [3]
    assert np.array_equal(first, EXPECTED)
    assert np.array_equal(second, EXPECTED)
    assert second.dtype == np.float32
    assert kept(cache).suffix == ".safetensors"


def test_other_images_and_other_settings_are_encoded_anew() -> None:
    for encoder, images in (
        (Means(), IMAGES),
        (Means(), IMAGES + 1),
        (Means(), IMAGES[:2]),
        (Means(), IMAGES.reshape(3, 2, 8)),
        (Means(scale=2.0), IMAGES),
    ):
        expected = encoder.scale * images.reshape(len(images), 2, -1).mean(axis=2)
        assert _cache.features(encoder, images) == pytest.approx(expected)
    assert len(Means.calls) == 5


@pytest.mark.parametrize("cut", [0, 1, 20, -1])
def test_a_cut_file_is_encoded_anew_and_replaced(cache: Path, cut: int) -> None:
    _cache.features(Means(), IMAGES)
    sound = kept(cache).read_bytes()
    kept(cache).write_bytes(sound[:cut])
    assert np.array_equal(_cache.features(Means(), IMAGES), EXPECTED)
    assert Means.calls == [3, 3]
    assert kept(cache).read_bytes() == sound


def test_any_changed_byte_of_the_features_is_noticed(cache: Path) -> None:
    _cache.features(Means(), IMAGES)
    sound = kept(cache).read_bytes()
    for place in range(len(sound) - EXPECTED.nbytes - 32, len(sound)):
        changed = bytearray(sound)
        changed[place] ^= 1
        kept(cache).write_bytes(changed)
        assert np.array_equal(_cache.features(Means(), IMAGES), EXPECTED)
    assert kept(cache).read_bytes() == sound


def test_a_file_of_something_else_is_encoded_anew(cache: Path) -> None:
    _cache.features(Means(), IMAGES)
    tensors.write(kept(cache), {"features": np.zeros((3, 2), np.float32)})
    assert np.array_equal(_cache.features(Means(), IMAGES), EXPECTED)


def test_a_folder_that_cannot_be_written_is_refused_with_the_way_out(cache: Path) -> None:
    cache.write_text("a file")
    with pytest.raises(InputError, match=r"the cache cannot be written .*; set PRIVKIT_CACHE to a folder"):
        _cache.features(Means(), IMAGES)


def test_two_processes_may_encode_the_same_images(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process finishes while the first has written its file, but not yet under its last name."""
    write = tensors.write

    def interrupted(path: Path, named: dict[str, np.ndarray], *, durable: bool) -> None:
        write(path, named, durable=durable)
        monkeypatch.setattr(tensors, "write", write)
        with pytest.MonkeyPatch.context() as other:
            other.setattr("os.getpid", lambda: 4242)
            assert np.array_equal(_cache.features(Means(), IMAGES), EXPECTED)

    monkeypatch.setattr(tensors, "write", interrupted)
    assert np.array_equal(_cache.features(Means(), IMAGES), EXPECTED)
    assert Means.calls == [3, 3]
    assert kept(cache).suffix == ".safetensors"


def test_the_folder_is_in_the_users_home_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRIVKIT_CACHE")
    assert _cache.folder() == Path.home() / ".cache" / "privkit"


def test_sha256_depends_on_type_shape_and_bytes_but_not_on_layout() -> None:
    base = np.arange(6, dtype=np.int32).reshape(2, 3)
    others = [base, base.astype(np.int64), base.reshape(3, 2), base + 1]
    assert len({_cache.sha256_of(a) for a in others}) == 4
    assert _cache.sha256_of(np.asfortranarray(base)) == _cache.sha256_of(base)
