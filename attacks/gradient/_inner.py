"""Inner products of candidates' gradients with each other and with an upload, summed over maps."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64

from privkit.exposure import Exposure


def flat(passes: Exposure, names: Mapping[str, object], *, clip_norm: float = float("inf")) -> Float64[np.ndarray, "N p"]:
    """Return each record's gradient over some maps as one row, in the order of the maps.

    With a clip norm, each is scaled down to it as DP-SGD does: over all maps that were traced, not only these.
    """
    rows_Np = np.concatenate(
        [passes.traces[name].gradients().reshape(len(passes.losses), -1) for name in names], axis=1
    ).astype(np.float64)
    return rows_Np * clip_factors(passes, clip_norm)[:, None]


def clip_factors(passes: Exposure, clip_norm: float) -> Float64[np.ndarray, " N"]:
    """Return what each record's gradient is multiplied by, in (0, 1], so that it is at most ``clip_norm`` long.

    Source: Abadi et al. (2016), Algorithm 1.
    """
    if not np.isfinite(clip_norm):
        return np.ones(len(passes.losses))
    squares_N = sum(
        (trace.gradients().astype(np.float64) ** 2).sum((1, 2)) for trace in passes.traces.values()
    )
    return np.minimum(1.0, clip_norm / np.maximum(np.sqrt(squares_N), 1e-300))


def flat_upload(sent: Mapping[str, np.ndarray]) -> Float64[np.ndarray, " p"]:
    """Return an upload as one row, in the order of its maps."""
    return np.concatenate([gradient_md.ravel() for gradient_md in sent.values()])


def cosines(rows_Np: Float64[np.ndarray, "N p"], upload_p: Float64[np.ndarray, " p"]) -> Float64[np.ndarray, " N"]:
    """Return the cosine of each row with an upload; 0 where one of them is zero."""
    lengths_N = np.linalg.norm(rows_Np, axis=1) * np.linalg.norm(upload_p)
    return np.divide(rows_Np @ upload_p, lengths_N, out=np.zeros(len(rows_Np)), where=lengths_N > 0)
