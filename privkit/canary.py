"""Canaries: records planted to test whether a mechanism really hides one record.

A canary is a vector v that is planted either as +v or as -v, which are neighbouring data sets under
replacement within a class. Canaries have classes of their own, so they move no real prototype, and go
through the client's real clip, mean and noise. Within a class their directions are orthonormal, so that
under isotropic noise each is an independent test inside one release; under noise that differs by group they
are independent only nearly, so classes are kept small there. They are dense (no canary lies
on a coordinate axis), so that a clip in the wrong norm shows. They are planted outside the ball, so that
a missing clip shows: a correct mechanism brings them to its surface, where the bound is attained.

Source: spec of the orthonormal one-release audit; for antipodal worst cases see Nasr et al. (2023),
"Tight auditing of differentially private machine learning".
"""

import math

import numpy as np
from jaxtyping import Bool

from privkit.errors import InputError
from privkit.noise import Purpose, keyed
from privkit.transcript import Records

PER_CLASS = 4  # few enough to stay independent under noise that differs by group


def design(
    *,
    clients: int,
    count: int,
    dim: int,
    norm: float,
    num_classes: int,
    seed: int,
    per_class: int | None = None,
) -> Records:
    """Return ``count`` canaries for each of some clients, each of length ``norm``.

    Args:
        clients: number of clients that plant canaries.
        count: canaries per client; they fill classes ``num_classes, num_classes + 1, ...`` evenly.
        dim: width of an embedding.
        norm: length of every canary; above the clip norm, or a missing clip goes unseen.
        num_classes: number of real classes.
        seed: of the run; directions are public and differ by client.
        per_class: most canaries in a class, from 2 to ``dim``, which is the default.
    """
    if count < 2 or dim < 2 or not 0 < norm < math.inf:
        raise InputError(
            f"canaries={count} of length {norm} in {dim} dimensions: plant at least 2, of finite length "
            "above 0, in at least 2 dimensions."
        )
    per_class = min(per_class or dim, dim)
    if per_class < 2:
        raise InputError(f"canaries per class is {per_class}: put at least 2 into a class.")
    classes = -(-count // per_class)
    if count < 2 * classes:
        raise InputError(
            f"canaries={count} leave a class of one at {per_class} per class; plant an even number."
        )
    groups = np.array_split(np.arange(count), classes)
    vectors, labels = [], []
    for client in range(clients):
        rng = keyed(seed, Purpose.CANARY_DIRECTIONS, client=client)
        for j, group in enumerate(groups):
            basis = np.linalg.qr(rng.standard_normal((dim, len(group))))[0]
            vectors.append(norm * basis.T)
            labels.append(np.full(len(group), num_classes + j, dtype=np.int64))
    return Records(
        vectors=np.concatenate(vectors),
        labels=np.concatenate(labels),
        clients=np.repeat(np.arange(clients, dtype=np.int64), count),
    )


def signs(canaries: Records, *, seed: int) -> Bool[np.ndarray, " K"]:
    """Return which canaries are planted as they stand: a fair coin for each, as one-run limits on epsilon want."""
    planted = np.zeros(len(canaries), dtype=bool)
    for client in np.unique(canaries.clients):
        rng = keyed(seed, Purpose.CANARY_SIGNS, client=int(client))
        planted[canaries.clients == client] = coins(rng, int((canaries.clients == client).sum()))
    return planted


def coins(rng: np.random.Generator, count: int) -> Bool[np.ndarray, " K"]:
    """Return so many independent fair coins."""
    return rng.random(count) < 0.5


def planted(canaries: Records, signs_K: Bool[np.ndarray, " K"]) -> Records:
    """Return the canaries as they are planted: negated where their sign is false."""
    flipped = np.where(signs_K[:, None], canaries.vectors, -canaries.vectors)
    return Records(vectors=flipped, labels=canaries.labels, clients=canaries.clients)
