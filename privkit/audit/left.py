"""What the noise of every release was, seen by an auditor who holds what was computed before it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from jaxtyping import Float64

from accountant.events import GroupGaussian
from attacks._base import NotApplicableError
from attacks._known_noise import Groups, groups_of, noisy_leaf, prototypes
from privkit.audit.scored import RunView
from privkit.errors import InputError
from privkit.release import ByClass, Moments, Payload, Prototypes, Release, SumsAndCounts
from privkit.truth import Hidden, Truth


@dataclass(frozen=True, eq=False, kw_only=True)
class Left:
    """One release minus what it was before noise.

    Attributes:
        release: what was sent.
        hidden: what was not.
        groups: how records were clipped, and how large the noise on each coordinate is claimed to be.
        rows: (released - clean) / claimed standard deviation of the noisy coordinates, row by row as released; where
            the claim gives none for a mean, because its count is a secret, that of a sum. Shape [P, d].
        scaled: whether it gives one.
        totals: the same of noisy counts, shape [P]; ``None`` where none were sent.
        moments: the same of squares and uncertainties, shape [P, q]; ``None`` where none were sent.
    """

    release: Release
    hidden: Hidden
    groups: Groups
    rows: Float64[np.ndarray, "P d"]
    scaled: bool = True
    totals: Float64[np.ndarray, " P"] | None = None
    moments: Float64[np.ndarray, "P q"] | None = None

    @property
    def flat(self) -> Float64[np.ndarray, " D"]:
        """Return all of it: vectors, in the order in which noise was drawn, then moments and counts."""
        others = [part.ravel() for part in (self.moments, self.totals) if part is not None]
        return np.concatenate([self.rows.ravel(), *others])

    @property
    def noisy(self) -> np.ndarray:
        """Return the group of each coordinate of :attr:`rows`, shape [d]."""
        return self.groups.index[self.groups.std_d > 0]


def left(view: RunView, truth: Truth) -> list[Left]:
    """Return what is left of every noisy release whose clean vectors were kept, in the order of the transcript."""
    return list(_left(view, truth))


def _left(view: RunView, truth: Truth) -> Iterator[Left]:
    for release in view.transcript.releases:
        hidden = truth.hidden.get((release.round, release.client))
        if hidden is None:
            continue
        try:
            _refuse_misfit(view, release, hidden)
            groups = groups_of(release, hidden.groups)
        except NotApplicableError:
            continue
        if (groups.std_d > 0).any():
            yield _of(release.payload, release, hidden, groups)


@singledispatch
def _of(payload: Payload, release: Release, hidden: Hidden, groups: Groups) -> Left:
    sent = prototypes(release)
    noisy_d = groups.std_d > 0
    rows = (sent.vectors.astype(np.float64) - hidden.means)[:, noisy_d] / groups.std_d[noisy_d]
    scaled = sent.counts is not None
    if sent.counts is not None:
        rows = rows * sent.counts[:, None]
    return Left(release=release, hidden=hidden, groups=groups, rows=rows, scaled=scaled)


@_of.register
def _of_sums(payload: SumsAndCounts, release: Release, hidden: Hidden, groups: Groups) -> Left:
    stds = groups.part_stds
    return Left(
        release=release,
        hidden=hidden,
        groups=groups,
        rows=(payload.vectors.astype(np.float64) - hidden.means) / groups.std_d,
        totals=(payload.totals - hidden.counts) / stds["count"],
        moments=_of_moments(payload, hidden, stds),
    )


def _of_moments(
    payload: SumsAndCounts, hidden: Hidden, stds: dict[str, float]
) -> Float64[np.ndarray, "P q"] | None:
    if not isinstance(payload, Moments) or hidden.moments is None:
        return None
    sent = payload.others()
    std_q = np.concatenate([np.full(part.shape[1], stds[name]) for name, part in sent.items()])
    return (np.concatenate(list(sent.values()), axis=1) - hidden.moments) / std_q


def _refuse_misfit(view: RunView, release: Release, hidden: Hidden) -> None:
    """Raise if what was computed on the way to a release cannot have led to it."""
    payload = release.payload
    vectors = payload.vectors if isinstance(payload, ByClass) else prototypes(release).vectors
    leaf = noisy_leaf(release)
    groups = len(leaf.noise_multipliers) if isinstance(leaf, GroupGaussian) else 1
    fits = (
        hidden.means.shape == vectors.shape
        and hidden.groups.shape == vectors.shape[1:]
        and np.isfinite(hidden.means).all()
        and np.isin(hidden.groups, np.arange(groups)).all()
        and _counts_fit(payload, hidden)
        and _moments_fit(payload, hidden)
    )
    if not fits:
        raise InputError(
            f"{view.run.path}: truth/ of client {release.client} in round {release.round} does not fit what "
            "was released; it was damaged or changed."
        )


def _counts_fit(payload: Payload, hidden: Hidden) -> bool:
    """Return whether clean counts were kept exactly where noisy ones were sent, one for each."""
    if not isinstance(payload, SumsAndCounts):
        return hidden.counts is None
    counts = hidden.counts
    return counts is not None and counts.shape == payload.totals.shape and bool(np.isfinite(counts).all())


def _moments_fit(payload: Payload, hidden: Hidden) -> bool:
    """Return whether other clean moments were kept only where noisy ones were sent, one for each."""
    if hidden.moments is None:
        return True
    if not isinstance(payload, Moments):
        return False
    width = sum(part.shape[1] for part in payload.others().values())
    shape = len(payload.labels), width
    return hidden.moments.shape == shape and bool(np.isfinite(hidden.moments).all())


def clean_means(one: Left) -> Float64[np.ndarray, "P d"]:
    """Return the means of clipped records before noise: of sums, where they have any records."""
    counts = one.hidden.counts
    return one.hidden.means if counts is None else one.hidden.means / np.maximum(counts, 1.0)[:, None]


def sent_counts(one: Left) -> np.ndarray | None:
    """Return the exact record counts that were sent, if any were."""
    payload = one.release.payload
    return payload.counts if isinstance(payload, Prototypes) else None
