r"""ProjRes as its authors coded it, for reproduction: no rank, no tolerance, a residual against half of the input.

One unpivoted QR factorisation of :math:`G^T` per map. The candidate's input h of the classified token is reconstructed
by a triangular solve, and a map's value is

.. math:: v = \bigl| \max_i (|r_i - h_i| - 0.5 |h_i|) \bigr|, \qquad r = G^T c, \quad R\, c = Q^T h

The smallest value over maps counts, maps with a value that is not a number left out. The code's score is v, smaller for
members; ours is :math:`1 / (1 + v)`, which ranks the same. Past the true rank, R has rounding errors on its diagonal; a
dead unit makes it singular, and values are then not finite: so it fails where the rank-aware attack does not, and its
values are rounding errors that change with the order of additions. An
infinite v is kept and scores 0, as does a candidate without any value, for which the published code stops.

The code looks at the maps that lead into bottleneck adapters: those which read at least as many numbers as they give,
the head left out. Its variant for decoders divides each row by the gradient of its bias, which in exact arithmetic
only leaves out dead units: ``drop_dead``.

Source: FedLLM/ProjRes @ c1b8608, described, not copied.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64
from pydantic import Field
from scipy import linalg

from attacks._base import NotApplicableError, ThreatModel
from attacks.gradient._base import GradientAttack, server
from attacks.gradient._seen import Seen, head_of
from attacks.gradient._tokens import by_token


class ProjresAsCoded(GradientAttack):
    """The published score, in float32: least relative excess over maps of a reconstruction by QR."""

    citation: ClassVar[str] = "projres"
    threat: ClassVar[ThreatModel] = server()
    family = "reproduction"

    drop_dead: bool = Field(
        default=False, description="leave out rows that are zero, as the published code for decoders does"
    )

    def of_upload(self, seen: Seen) -> Float64[np.ndarray, " N"]:
        names = [name for name in seen.sent if _leads_into_adapter(seen, name)]
        if not names:
            raise NotApplicableError(
                "no map that reads at least as many numbers as it gives was sent beside the head; the published code "
                "looks at those that lead into adapters"
            )
        values_KN = np.stack([self._values(seen, name) for name in names])
        known_KN = ~np.isnan(values_KN)
        least_N = np.where(known_KN, values_KN, np.inf).min(0)
        return 1.0 / (1.0 + least_N)

    def _values(self, seen: Seen, name: str) -> Float64[np.ndarray, " N"]:
        gradient_md = seen.sent[name].astype(np.float32)
        if self.drop_dead:
            gradient_md = gradient_md[(gradient_md != 0).any(1)]
        if not len(gradient_md):
            return np.full(len(seen.rows), np.nan)
        q_dm, r_mm = np.linalg.qr(gradient_md.T)
        return by_token(
            seen.candidates.traces[name], "pooled", lambda inputs_Kd: excess(inputs_Kd, q_dm, r_mm)
        )


def excess(
    inputs_Nd: Float32[np.ndarray, "N d"], q_dm: Float32[np.ndarray, "d m"], r_mm: Float32[np.ndarray, "m m"]
) -> Float64[np.ndarray, " N"]:
    """Return the published value of each input; not a number, or infinite, where R is singular."""
    with np.errstate(all="ignore"):
        seen_mN = q_dm.T @ inputs_Nd.T
        coefficients_mN = _solved(r_mm, seen_mN)
        rebuilt_dN = q_dm @ (r_mm @ coefficients_mN)
        over_dN = np.abs(rebuilt_dN - inputs_Nd.T) - 0.5 * np.abs(inputs_Nd.T)
        return np.abs(over_dN.max(0)).astype(np.float64)


def _solved(r_mm: Float32[np.ndarray, "m m"], right_mN: Float32[np.ndarray, "m N"]) -> np.ndarray:
    """Return what solves a triangular system; a zero on its diagonal is divided by, as the code's solver does."""
    (trsm,) = linalg.get_blas_funcs(("trsm",), (r_mm, right_mN))
    return trsm(1.0, r_mm, right_mN)


def _leads_into_adapter(seen: Seen, name: str) -> bool:
    outputs, inputs = seen.sent[name].shape
    return outputs <= inputs and name != head_of(seen.candidates)
