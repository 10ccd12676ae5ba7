"""Where randomness comes from.

A simulation must be repeatable: its draws are keyed by (seed, purpose, round, client), so the order of
clients, batching and resumption cannot change them. A real release must not be repeatable: it draws from
the operating system's cryptographic source. Both are float64; neither defends against attacks on the
last bits of a floating-point sample (Mironov, 2012, "On significance of the least significant bits").
"""

import os
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64


class Purpose(IntEnum):
    """What a keyed stream is for; streams of different purposes are independent."""

    RELEASE = 0
    BATCHES = 1
    INIT = 2
    SPLIT = 3
    CANARY_DIRECTIONS = 4
    CANARY_SIGNS = 5
    DROPOUT = 6
    SERVER = 7
    PARTITION = 8
    PARTICIPATION = 9
    ADAPTATION = 10
    POISSON = 11
    LOCAL_NOISE = 12
    LOCAL_NORMALS = 13


def keyed(
    seed: int, purpose: Purpose, *, round: int = 0, client: int = 0, within: tuple[int, ...] = ()
) -> np.random.Generator:
    """Return the generator for one purpose, round and client of a seeded run; ``within`` tells several apart."""
    key = (int(purpose), round, client, *within)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=key)))


@runtime_checkable
class Noise(Protocol):
    """A source of randomness for one release."""

    def normal(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        """Return independent standard normal numbers."""
        ...

    def laplace(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        """Return independent Laplace numbers of scale 1."""
        ...


@dataclass(frozen=True, eq=False)
class SeededNoise:
    """Repeatable noise of one release in a simulation; call it once per release."""

    generator: np.random.Generator

    def normal(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        return self.generator.standard_normal(shape)

    def laplace(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        return self.generator.laplace(size=shape)


@dataclass(frozen=True)
class SecureNoise:
    """Noise from the operating system's cryptographic generator; normal by the Box-Muller transform.

    Source: Box and Muller (1958), "A note on the generation of random normal deviates".
    """

    def normal(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        size = int(np.prod(shape))
        pairs = (size + 1) // 2
        uniform = _secure_uniform(2 * pairs).reshape(2, pairs)
        radius, angle = np.sqrt(-2.0 * np.log(uniform[0])), 2.0 * np.pi * uniform[1]
        both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return both[:size].reshape(shape)

    def laplace(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        """Return the difference of two standard exponentials, which is Laplace of scale 1."""
        uniform = _secure_uniform(2 * int(np.prod(shape)))
        one, other = -np.log(uniform).reshape(2, *shape)
        return one - other


@dataclass(frozen=True)
class NoNoise:
    """Zeros, so that a mechanism's own clip and mean can be looked at before its noise."""

    def normal(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        return np.zeros(shape)

    def laplace(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        return np.zeros(shape)


def _secure_uniform(size: int) -> Float64[np.ndarray, " size"]:
    """Return numbers strictly between 0 and 1, of 53 random bits each."""
    raw = np.frombuffer(os.urandom(8 * size), dtype="<u8")
    return ((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
