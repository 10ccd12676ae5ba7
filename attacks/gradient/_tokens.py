"""Which tokens of a record are looked at in one map, and one score of theirs."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from jaxtyping import Float32, Float64

from privkit.exposure import Trace

Token = Literal["pooled", "first", "last", "mean"]


def by_token(
    trace: Trace, token: Token, score: Callable[[Float32[np.ndarray, "K d"]], Float64[np.ndarray, " K"]]
) -> Float64[np.ndarray, " N"]:
    """Return a score of each record: that of one token's input, or the mean over its tokens.

    Args:
        trace: of the records.
        token: ``pooled`` is the token that is classified, ``first`` and ``last`` are of those present.
        score: of some inputs, one number each.

    Returns:
        0 for a record without any token.
    """
    present_NT = trace.present
    count_N = present_NT.sum(1)
    if token == "mean":
        sums_N = np.zeros(len(count_N))
        np.add.at(sums_N, np.nonzero(present_NT)[0], score(trace.inputs[present_NT]))
        return sums_N / np.maximum(count_N, 1)
    places_N = {
        "pooled": trace.pooled,
        "first": present_NT.argmax(1),
        "last": present_NT.shape[1] - 1 - present_NT[:, ::-1].argmax(1),
    }[token]
    return score(trace.inputs[np.arange(len(places_N)), places_N])
