r"""Projection residual: is what the candidate puts into a map inside the row space of the map's gradient?

A trained map gets the gradient :math:`G = \sum_t \delta_t x_t^T` over the tokens of a batch, so its rows lie in the
span of the tokens' inputs. Where few enough tokens were summed, they span what they should, and

.. math:: \text{score}(h) = 1 - \|\hat h - V^T V \hat h\|_p, \qquad \hat h = h / \|h\|

is 1 for a token of the batch: it is in the span of the rows of V, an orthonormal basis of G's row space. The published
code takes as many directions as G has rows (:mod:`attacks.gradient.projres_as_coded`); here their number is that of
singular values that the numbers of the upload can carry (:mod:`attacks.gradient._precision`).

A map says nothing where nothing lies outside its row space, or nothing inside: ranks d and 0. It says nothing either
where the attacker's own records, if it has any, all lie inside. Such maps are left out; where none is left every
candidate gets 0, so that the AUC is exactly one half. Residuals below 1e-5 are rounding errors, and 0.

Source: Deng et al. (2026), "ProjRes", arXiv:2604.21197 (the residual as arXiv:2608.27836 writes it). Ours: rank, ties,
tokens other than the first, the l2 norm.
"""

from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks._base import ThreatModel
from attacks.gradient._base import LayerAttack, server
from attacks.gradient._residual import relative_residuals
from attacks.gradient._seen import Seen
from attacks.gradient._spaces import row_space
from attacks.gradient._tokens import Token, by_token


class Projres(LayerAttack):
    """One minus the part of a candidate's input that lies outside of the gradient's row space, by map."""

    citation: ClassVar[str] = "projres"
    threat: ClassVar[ThreatModel] = server()
    family = "projection"

    token: Token = Field(
        default="pooled",
        description="whose input: the token that is classified, the first, the last, or the mean over all tokens",
    )
    norm: Literal[1, 2] = Field(
        default=2, description="of the residual: 2, or 1 divided by the root of the width"
    )
    rank: int | None = Field(
        default=None,
        ge=1,
        description="directions that are kept; null: those that the numbers sent can carry",
    )

    def of_map(self, seen: Seen, name: str) -> Float64[np.ndarray, " N"] | None:
        found = row_space(seen, name, rank=self.rank)
        if not found.informative:
            return None
        basis_kd = found.basis.astype(np.float32)

        def inside(inputs_Kd: np.ndarray) -> np.ndarray:
            return 1.0 - relative_residuals(inputs_Kd, basis_kd, order=self.norm)

        if seen.public is not None and (by_token(seen.public.traces[name], self.token, inside) == 1.0).all():
            return None
        return by_token(seen.candidates.traces[name], self.token, inside)
