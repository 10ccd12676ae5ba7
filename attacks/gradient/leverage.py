r"""Leverage: how expected is the candidate's input after this gradient, beside what it was before?

.. math::
    \text{score}(x) = -\text{mean}_t \ln
    \frac{z_t^T (G^T G + \lambda I)^{-1} z_t}{z_t^T (S + \lambda_S I)^{-1} z_t}

with S the second moment of inputs of the attacker's own records, and each ridge a small share of the largest
eigenvalue. A token of the batch has put energy into G along its own direction. It needs no label and no backward
pass. The attacker's records put all maps on one scale: minus their mean, over their standard deviation. Where G is of
low rank it ranks as the projection residual does; where G is of full rank, which ends that attack, some of the signal
is left.

Source: leverage scores of randomised linear algebra, Mahoney (2011), Section 3.1; as an attack ours.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float, Float64
from pydantic import Field

from attacks._base import ThreatModel
from attacks.gradient._base import PUBLIC, LayerAttack, server
from attacks.gradient._fusion import Rule
from attacks.gradient._seen import Seen
from attacks.gradient._tokens import Token, by_token


class Leverage(LayerAttack):
    """Minus the log leverage of a candidate's tokens in the gradient, beside that in public inputs; standardised."""

    citation: ClassVar[str] = "mahoney2011"
    threat: ClassVar[ThreatModel] = server(PUBLIC)
    family = "adaptive"

    layers: Rule = Field(
        default="mean", description="over maps: mean, largest score, top few, smallest, or the last"
    )
    token: Token = Field(
        default="mean",
        description="whose input: the mean over all tokens, or the token that is classified, first or last",
    )
    ridge: float = Field(
        default=1e-6,
        gt=0,
        lt=1,
        description="what is added to each second moment, as a share of its largest eigenvalue",
    )

    def of_map(self, seen: Seen, name: str) -> Float64[np.ndarray, " N"] | None:
        gradient_md, trace = seen.sent[name], seen.owned.traces[name]
        if not gradient_md.any():
            return None
        after_dd = _inverse_root(gradient_md.T @ gradient_md, ridge=self.ridge)
        own_Kd = trace.inputs[trace.present].astype(np.float64)
        before_dd = _inverse_root(own_Kd.T @ own_Kd, ridge=self.ridge)

        def expected(inputs_Kd: np.ndarray) -> np.ndarray:
            return _log_length(inputs_Kd, before_dd) - _log_length(inputs_Kd, after_dd)

        own_P = by_token(trace, self.token, expected)
        spread = own_P.std()
        if not spread > 0:
            return None
        return (by_token(seen.candidates.traces[name], self.token, expected) - own_P.mean()) / spread


def _inverse_root(moment_dd: Float64[np.ndarray, "d d"], *, ridge: float) -> Float64[np.ndarray, "d d"]:
    """Return a root of the inverse of a second moment with a ridge; its scale does not matter."""
    values_d, vectors_dd = np.linalg.eigh(moment_dd)
    least = ridge * values_d[-1] if values_d[-1] > 0 else 1.0
    return vectors_dd / np.sqrt(np.maximum(values_d, 0.0) + least)


def _log_length(
    inputs_Kd: Float[np.ndarray, "K d"], root_dd: Float64[np.ndarray, "d d"]
) -> Float64[np.ndarray, " K"]:
    """Return ln of the squared length in the metric of a root; 0 for a zero input."""
    lengths_K = ((inputs_Kd.astype(np.float64) @ root_dd) ** 2).sum(1)
    return np.log(lengths_K, out=np.zeros_like(lengths_K), where=lengths_K > 0)
