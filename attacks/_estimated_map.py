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
_PULL = 0.1
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


def estimated(shown: Sequence[Shown], owned: Records, *, blocks: int) -> Float64[np.ndarray, "r b b"]:
    """Return the rotation that steps of one client suggest.

    Args:
        shown: some steps; those that changed nothing count for nothing.
        owned: the attacker's records of the client's domain; none give the identity.
        blocks: of the rotation, on its diagonal, r; a public setting.
    """
    d = shown[0].change.shape[1]
    rotation_rbb = np.tile(np.eye(d // blocks), (blocks, 1, 1))
    # rows and their turned counterparts are of length 1 in all, spread over so many directions at most
    pull = _PULL / max(1, min(shown[0].change.shape[0] - 1, d))
    live = [step for step in shown if step.change.any()]
    if not len(owned) or not live:
        return rotation_rbb
    for _ in range(_TURNS):
        found_rbb = np.mean([_moment(step, owned, rotation_rbb) for step in live], axis=0)
        rotation_rbb = rotation_of(found_rbb + pull * np.eye(d // blocks))
    return rotation_rbb


def _moment(
    step: Shown, owned: Records, rotation_rbb: Float64[np.ndarray, "r b b"]
) -> Float64[np.ndarray, "r b b"]:
    """Return how the rows of a step lie to those of the attacker's records, each side of length 1 in all."""
    name = step.model.layers[0]
    slopes_Nm = (
        passes(behind(step.model, rotation_rbb), owned.vectors, owned.labels).traces[name].slopes[:, 0]
    )
    raw_md = slopes_Nm.T.astype(np.float64) @ step.model.inputs(owned.vectors)[0]
    length = np.linalg.norm(raw_md)
    own_md = raw_md / length if length > 0 else raw_md
    return moment(own_md, -step.change / np.linalg.norm(step.change), blocks=len(rotation_rbb))
