r"""The rotation that a client keeps between embedding and head, as its uploads suggest it.

What training does to a head is about :math:`-\sum_i (p_i - e_{y_i}) (Q u_i)^T`, a row per class, and the server knows
the head. So it asks its own records of the same domain for the same sum with u in the place of Q u, and for the
rotation that turns the rows of one into those of the other best, over several rounds (:mod:`attacks._procrustes`).
p depends on Q too: a few turns of estimating one by the other settle that.

The rows of one sum add up to zero, so C classes show C - 1 directions of d, and the client's records are not the
server's: most of a rotation in many dimensions is not seen, and stays the identity.

Source: Schönemann (1966) for the rotation; its use on heads is ours.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from attacks._models import Model
from attacks._passes import passes
from attacks._procrustes import moment, rotation_of, turned
from privkit.transcript import Records

ROUNDS = 5
"""Steps that are looked at: a map moves, so that old ones show another."""
_TURNS = 5
_DRAWS = 8
_CAUTION = 3.0
"""So many times what chance suggests is the pull to no turning: where nothing is turned, angles stay small."""
_LEAST = 1e-3
_BLOCKS = "blocks"


class Shown(NamedTuple):
    """What one step of a client shows.

    Attributes:
        model: that it began from, as far as it was sent.
        change: of the weights of its first layer, a row per output, shape [K, d].
    """

    model: Model
    change: Float64[np.ndarray, "K d"]


def behind(model: Model, rotation_rbb: Float64[np.ndarray, "r b b"]) -> Model:
    """Return a model with a rotation before its head."""
    setup = replace(model.setup, parameters="map.", mapped=lambda named, h_Nd: turned(named[_BLOCKS], h_Nd))
    return Model({**model.named, f"map.{_BLOCKS}": rotation_rbb}, setup)


def estimated(
    shown: Sequence[Shown], owned: Records, *, blocks: int, records: int
) -> Float64[np.ndarray, "r b b"]:
    """Return the rotation that steps of one client suggest.

    Args:
        shown: some steps; those that changed nothing count for nothing.
        owned: the attacker's records of the client's domain; none give the identity.
        blocks: of the rotation, on its diagonal, r; a public setting.
        records: about how many are behind a step.
    """
    d = shown[0].change.shape[1]
    rotation_rbb = np.tile(np.eye(d // blocks), (blocks, 1, 1))
    live = [step for step in shown if step.change.any()]
    if not len(owned) or not live:
        return rotation_rbb
    pull = _CAUTION * _by_chance(live[-1].model, owned, blocks=blocks, records=records)
    for _ in range(_TURNS):
        found = [
            moment(_rows(step.model, owned, rotation_rbb), _of_length_1(-step.change), blocks=blocks)
            for step in live
        ]
        rotation_rbb = rotation_of(np.mean(found, axis=0) + pull * np.eye(d // blocks))
    return rotation_rbb


def _by_chance(model: Model, owned: Records, *, blocks: int, records: int) -> float:
    """Return how strongly so few records seem turned that are not: the largest of what is skew in their moments."""
    d = model.named[model.layers[0]].shape[0]
    straight_rbb = np.tile(np.eye(d // blocks), (blocks, 1, 1))
    rows_md, rng = _rows(model, owned, straight_rbb), np.random.default_rng(0)
    found = []
    for _ in range(_DRAWS):
        drawn = owned.where(rng.integers(0, len(owned), records))
        moment_rbb = moment(rows_md, _rows(model, drawn, straight_rbb), blocks=blocks)
        skew_rbb = (moment_rbb - moment_rbb.transpose(0, 2, 1)) / 2
        found.append(float(np.linalg.norm(skew_rbb, 2, axis=(1, 2)).max()))
    return max(float(np.mean(found)), _LEAST / d)


def _rows(
    model: Model, owned: Records, rotation_rbb: Float64[np.ndarray, "r b b"]
) -> Float64[np.ndarray, "m d"]:
    """Return the sum that some records give behind a rotation, with their raw inputs in it, of length 1."""
    name = model.layers[0]
    passed = passes(behind(model, rotation_rbb), owned.vectors, owned.labels)
    slopes_Nm = passed.traces[name].slopes[:, 0].astype(np.float64)
    return _of_length_1(slopes_Nm.T @ model.inputs(owned.vectors)[0])


def _of_length_1(rows_md: Float64[np.ndarray, "m d"]) -> Float64[np.ndarray, "m d"]:
    """Return a matrix of length 1; one of zeros stays as it is."""
    length = np.linalg.norm(rows_md)
    return rows_md / length if length > 0 else rows_md
