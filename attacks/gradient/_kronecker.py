r"""Second moments of one map's gradients as a Kronecker product: m x m and d x d statistics of public tokens.

The gradients of a map, :math:`g = \sum_t \delta_t z_t^T`, have about the second moment :math:`c\, (E \delta \delta^T)
\otimes (E z z^T)`, where c makes its trace that of the gradients. In the eigenbases of both factors it is diagonal.

Source: Martens and Grosse (2015), "Optimizing neural networks with Kronecker-factored approximate curvature", Section 3
(the factors); the scale and the ridge are ours.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from attacks.gradient._basis import Basis
from privkit.exposure import Trace

_LEAST = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class Kronecker(Basis):
    """Second moment of one map's gradients, in the eigenbases of its factors.

    Attributes:
        outputs: orthonormal columns, shape [m, m].
        inputs: orthonormal columns, shape [d, d].
        energy: second moment of a gradient along each pair of them, shape [m, d].
    """

    outputs: Float64[np.ndarray, "m m"]
    inputs: Float64[np.ndarray, "d d"]
    energy: Float64[np.ndarray, "m d"]

    def rotated(self, gradient_md: Float64[np.ndarray, "m d"]) -> Float64[np.ndarray, "m d"]:
        """Return a gradient in the eigenbases."""
        return self.outputs.T @ gradient_md @ self.inputs

    def rows(self, trace: Trace, factor_N: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, "N p"]:
        """Return the gradients of some records in the eigenbases, each times its factor."""
        slopes_NTm = (trace.slopes * factor_N[:, None, None]) @ self.outputs
        gradients_Nmd = slopes_NTm.transpose(0, 2, 1) @ (trace.inputs @ self.inputs)
        return gradients_Nmd.reshape(len(factor_N), -1)


@dataclass(frozen=True, eq=False)
class Flat(Basis):
    """The same second moment in all directions of one map, shape [m, d]."""

    energy: Float64[np.ndarray, "m d"]

    def rotated(self, gradient_md: Float64[np.ndarray, "m d"]) -> Float64[np.ndarray, "m d"]:
        """Return a gradient as it is."""
        return gradient_md

    def rows(self, trace: Trace, factor_N: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, "N p"]:
        """Return the gradients of some records as they are, each times its factor."""
        return trace.gradients().reshape(len(factor_N), -1) * factor_N[:, None]


def kronecker(trace: Trace, factor_P: Float64[np.ndarray, " P"], *, ridge: float) -> Kronecker | None:
    """Return the second moment of public gradients of one map, or ``None`` where all of these are zero.

    Args:
        trace: of public records.
        factor_P: what each record's gradient is multiplied by, as its client would.
        ridge: what is added to each factor, as a share of the mean of its eigenvalues without the largest.
    """
    slopes_PTm = trace.slopes.astype(np.float64) * factor_P[:, None, None]
    gradients_Pmd = slopes_PTm.transpose(0, 2, 1) @ trace.inputs.astype(np.float64)
    energy = float((gradients_Pmd**2).sum()) / len(gradients_Pmd)
    if not energy > 0:
        return None
    live_PT = trace.present & (slopes_PTm != 0).any(2)
    outputs_m, outputs_mm = _moment(slopes_PTm[live_PT], ridge=ridge)
    inputs_d, inputs_dd = _moment(trace.inputs[live_PT].astype(np.float64), ridge=ridge)
    return Kronecker(outputs=outputs_mm, inputs=inputs_dd, energy=energy * np.outer(outputs_m, inputs_d))


def _moment(
    rows_Kd: Float64[np.ndarray, "K d"], *, ridge: float
) -> tuple[Float64[np.ndarray, " d"], Float64[np.ndarray, "d d"]]:
    """Return eigenvalues of a second moment with a ridge, made to sum to 1, and its eigenvectors.

    Inputs of a transformer have a mean much longer than their spread. A ridge that is a share of all eigenvalues would
    be one of that mean, and drown the rest. To the ridge is added the number of directions per token: that is how far
    eigenvalues of a sample are spread by chance (Ledoit and Wolf, 2004).
    """
    values_d, vectors_dd = np.linalg.eigh(rows_Kd.T @ rows_Kd)
    values_d = np.maximum(values_d, 0.0)
    if len(values_d) > 1:
        values_d += (ridge + len(values_d) / len(rows_Kd)) * values_d[:-1].mean()
    values_d = np.maximum(values_d, _LEAST * values_d[-1])
    return values_d / values_d.sum(), vectors_dd
