"""How much clients' training of a shared head pulls in different directions, from what a server sees."""

import itertools
from collections.abc import Sequence

import numpy as np

from privkit.release import Update
from privkit.store import Run

_HEAD = "head."


def conflict(run: Run) -> float | None:
    """Return the mean cosine of two clients' pseudo-gradients of the head, over pairs and then rounds, in [-1, 1].

    A pseudo-gradient is the head that arrived minus the head that the client made of it: the mean of one round's
    messages minus the client's message of the next. A pair one of which did not move has no cosine.

    Returns:
        ``None`` if heads are not sent, for fewer than two clients or rounds, or where none moved.

    Source: FedOT, the experiment on gradient conflicts.
    """
    sent = _heads(run)
    rounds = [_mean_cosine(before.mean(0) - after) for before, after in itertools.pairwise(sent)]
    found = [value for value in rounds if value is not None]
    return float(np.mean(found)) if found else None


def _heads(run: Run) -> list[np.ndarray]:
    """Return each round's heads, one row per client, float64; none if heads are not sent."""
    found: dict[int, dict[int, np.ndarray]] = {}
    for release in run.transcript().releases:
        payload = release.payload
        if not isinstance(payload, Update) or payload.means != "weights":
            return []
        parts = [a.ravel() for name, a in sorted(payload.named.items()) if name.startswith(_HEAD)]
        if not parts:
            return []
        found.setdefault(release.round, {})[release.client] = np.concatenate(parts).astype(np.float64)
    return [np.stack([own[m] for m in sorted(own)]) for _, own in sorted(found.items())]


def _mean_cosine(rows: np.ndarray) -> float | None:
    lengths = np.linalg.norm(rows, axis=1)
    pairs: Sequence[tuple[int, int]] = list(itertools.combinations(np.flatnonzero(lengths).tolist(), 2))
    if not pairs:
        return None
    unit = rows / np.where(lengths > 0, lengths, 1.0)[:, None]
    return float(np.mean([unit[i] @ unit[j] for i, j in pairs]))
