"""Inner products of candidates' gradients with uploads and with each other, summed over maps."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float64

from privkit.exposure import Exposure, Trace

Sent = Mapping[str, np.ndarray]


def inner(passes: Exposure, uploads: Sequence[Sent]) -> Float64[np.ndarray, "N K"]:
    """Return the inner product of each record's gradient with each upload, over the maps of the uploads."""
    found_NK = np.zeros((len(passes.losses), len(uploads)))
    for name in uploads[0]:
        columns_pK = np.stack([sent[name].ravel() for sent in uploads], axis=1)
        found_NK += rows_of(passes.traces[name]) @ columns_pK
    return found_NK


def squares(passes: Exposure, names: Iterable[str]) -> Float64[np.ndarray, " N"]:
    """Return the squared length of each record's gradient over some maps."""
    found_N = np.zeros(len(passes.losses))
    for name in names:
        rows_Np = rows_of(passes.traces[name])
        found_N += np.einsum("np,np->n", rows_Np, rows_Np)
    return found_N


def length(sent: Sent) -> float:
    """Return the length of an upload."""
    return float(np.sqrt(sum(np.vdot(gradient_md, gradient_md) for gradient_md in sent.values())))


def cosines(passes: Exposure, uploads: Sequence[Sent]) -> Float64[np.ndarray, "N K"]:
    """Return the cosine of each record's gradient with each upload; 0 where one of them is zero."""
    lengths_NK = np.sqrt(squares(passes, uploads[0]))[:, None] * [length(sent) for sent in uploads]
    found_NK = inner(passes, uploads)
    return np.divide(found_NK, lengths_NK, out=np.zeros_like(found_NK), where=lengths_NK > 0)


def rows_of(trace: Trace) -> Float64[np.ndarray, "N p"]:
    """Return each record's gradient by one map as a row."""
    return trace.gradients().reshape(len(trace.inputs), -1).astype(np.float64)


def flat(passes: Exposure, names: Iterable[str]) -> Float64[np.ndarray, "N p"]:
    """Return each record's gradient over some maps as one row, in the order of the maps."""
    return np.concatenate([rows_of(passes.traces[name]) for name in names], axis=1)


def flat_upload(sent: Sent) -> Float64[np.ndarray, " p"]:
    """Return an upload as one row, in the order of its maps."""
    return np.concatenate([gradient_md.ravel() for gradient_md in sent.values()])


def clip_factors(passes: Exposure, clip_norm: float) -> Float64[np.ndarray, " N"]:
    """Return what DP-SGD multiplies each record's gradient by, over all traced maps together, in (0, 1].

    Source: Abadi et al. (2016), "Deep learning with differential privacy", Algorithm 1.
    """
    if not np.isfinite(clip_norm):
        return np.ones(len(passes.losses))
    lengths_N = np.sqrt(squares(passes, passes.traces))
    return clip_norm / np.maximum(lengths_N, clip_norm)
