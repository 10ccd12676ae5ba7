"""Noise: keyed streams do not depend on order, secure noise is normal and never comes twice."""

import itertools
import math
import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privkit.noise import Noise, NoNoise, Purpose, SecureNoise, SeededNoise, keyed

# A test below that draws fresh noise fails a sound generator less than once in 10^8 runs.
Z = 6.0
SIZE = 200_000


@settings(max_examples=30)
@given(st.integers(0, 2**128 - 1), st.sampled_from(Purpose), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_same_key_gives_the_same_stream(seed: int, purpose: Purpose, round: int, client: int) -> None:
    one, other = (keyed(seed, purpose, round=round, client=client) for _ in range(2))
    assert np.array_equal(one.standard_normal(5), other.standard_normal(5))


def test_streams_differ_by_seed_purpose_round_and_client() -> None:
    keys = itertools.product(range(3), Purpose, range(4), range(4))
    first = [keyed(s, p, round=t, client=m).integers(2**63) for s, p, t, m in keys]
    assert len(set(first)) == len(first)


def test_no_two_purposes_share_a_number() -> None:
    assert len({int(p) for p in Purpose}) == len(Purpose.__members__)


def test_streams_do_not_depend_on_the_order_they_are_drawn_in() -> None:
    def draw(clients: list[int]) -> dict[int, np.ndarray]:
        return {m: SeededNoise(keyed(0, Purpose.RELEASE, client=m)).normal((2, 3)) for m in clients}

    forward, backward = draw([0, 1, 2]), draw([2, 1, 0])
    assert all(np.array_equal(forward[m], backward[m]) for m in range(3))


def test_streams_are_uncorrelated() -> None:
    keys = [(p, t, m) for p in (Purpose.RELEASE, Purpose.BATCHES) for t in range(3) for m in range(3)]
    drawn = np.array([keyed(0, p, round=t, client=m).standard_normal(4000) for p, t, m in keys])
    correlation = np.corrcoef(drawn) - np.eye(len(keys))
    assert np.abs(correlation).max() < Z / math.sqrt(4000)


def test_keyed_numbers_are_what_they_were() -> None:
    """Runs written by an older version must be resumable: numpy 2.4, Philox, SeedSequence."""
    found = keyed(7, Purpose.RELEASE, round=3, client=2).standard_normal(3)
    assert found.tolist() == [1.0741983654296248, -0.5989197407071899, -0.9423833985595699]
    assert [purpose.name for purpose in sorted(Purpose)] == [
        "RELEASE",
        "BATCHES",
        "INIT",
        "SPLIT",
        "CANARY_DIRECTIONS",
        "CANARY_SIGNS",
        "DROPOUT",
        "SERVER",
        "PARTITION",
        "PARTICIPATION",
        "ADAPTATION",
        "POISSON",
        "LOCAL_NOISE",
        "LOCAL_NORMALS",
    ], "a new purpose goes to the end: a number is part of every stream"


@pytest.mark.parametrize("noise", [SecureNoise(), NoNoise(), SeededNoise(np.random.default_rng(0))])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (0, 4), (3, 1, 3)])
def test_every_source_gives_float64_of_the_shape_asked_for(noise: Noise, shape: tuple[int, ...]) -> None:
    drawn = noise.normal(shape)
    assert (drawn.shape, drawn.dtype) == (shape, np.float64)
    assert np.isfinite(drawn).all()


def test_no_noise_is_zero() -> None:
    assert not NoNoise().normal((3, 4)).any()


@pytest.fixture(scope="module")
def secure() -> np.ndarray:
    return SecureNoise().normal((SIZE,))


def test_secure_noise_is_standard_normal(secure: np.ndarray) -> None:
    assert stats.kstest(secure, "norm").pvalue > 1e-9
    assert abs(secure.mean()) < Z / math.sqrt(SIZE)
    assert abs((secure**2).mean() - 1) < Z * math.sqrt(2 / SIZE)
    assert abs((secure**3).mean()) < Z * math.sqrt(15 / SIZE)
    assert abs((secure**4).mean() - 3) < Z * math.sqrt(96 / SIZE)


def test_secure_noise_is_independent_of_its_pair_and_its_neighbour(secure: np.ndarray) -> None:
    half = SIZE // 2
    for a, b in ((secure[:half], secure[half:]), (secure[:-1], secure[1:])):
        bound = Z / math.sqrt(len(a))
        assert abs((a * b).mean()) < bound
        assert abs(((a**2 - 1) * (b**2 - 1)).mean() / 2) < bound


def test_secure_noise_never_repeats(secure: np.ndarray) -> None:
    again = SecureNoise().normal((SIZE,))
    both = np.concatenate([secure, again])
    assert len(np.unique(both)) > len(both) - 5  # 53 bits: a pair of equal numbers is rare, five are not seen
    assert abs((secure * again).mean()) < Z / math.sqrt(SIZE)


def test_secure_noise_is_box_muller_of_what_the_system_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [3 << 60, 1 << 40, (1 << 64) - 1, 12345678901234567890, 0, 1 << 63]
    asked: list[int] = []

    def urandom(size: int) -> bytes:
        asked.append(size)
        return struct.pack("<6Q", *words)

    monkeypatch.setattr(os, "urandom", urandom)
    uniform = [((word >> 11) + 0.5) / 2**53 for word in words]
    expected = [
        math.sqrt(-2 * math.log(u)) * turn(2 * math.pi * v)
        for turn in (math.cos, math.sin)
        for u, v in zip(uniform[:3], uniform[3:], strict=True)
    ]
    assert SecureNoise().normal((5,)) == pytest.approx(expected[:5], rel=1e-12, abs=1e-15)
    assert asked == [48]


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_secure_noise_is_finite_for_any_bytes(byte: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: byte * size)
    drawn = SecureNoise().normal((4,))
    assert np.isfinite(drawn).all()
    assert np.abs(drawn).max() < 8.7
