"""Row and column space of one map's gradient in an upload, by the numbers and the noise that it was sent with."""

import numpy as np
from jaxtyping import Float64

from attacks._base import NotApplicableError
from attacks.gradient._precision import TRANSPORTS, Floor, floor_of, stored
from attacks.gradient._seen import Seen
from attacks.gradient._subspace import Subspace, subspace


def row_space(seen: Seen, name: str, *, rank: int | None = None) -> Subspace:
    """Return the row space of a map's gradient."""
    gradient_md = seen.sent[name]
    return subspace(gradient_md, _floor(seen, name, gradient_md), rank=rank)


def column_space(seen: Seen, name: str) -> Subspace:
    """Return the column space of a map's gradient: the row space of its transpose."""
    gradient_dm = np.ascontiguousarray(seen.sent[name].T)
    return subspace(gradient_dm, _floor(seen, name, gradient_dm))


def _floor(seen: Seen, name: str, gradient_md: Float64[np.ndarray, "m d"]) -> Floor:
    """Return below which singular values mean nothing.

    Raises:
        NotApplicableError: it is not known how numbers were sent.
    """
    if seen.view.transport not in TRANSPORTS:
        raise NotApplicableError(
            f"transport {seen.view.transport!r} is unknown; known are {', '.join(TRANSPORTS)}"
        )
    live_md = gradient_md[(gradient_md != 0).any(1)]
    noisy, measured = seen.noise.std > 0, seen.is_gradient
    return floor_of(
        live_md if len(live_md) else gradient_md,
        transport=seen.view.transport,
        stored=stored(seen.release.payload, name),
        std=seen.noise.std / seen.batch_size if noisy and measured else 0.0,
        unknown_noise=noisy and not measured,
    )
