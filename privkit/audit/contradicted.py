"""Where what was sent contradicts what its contract declares: the linter's look at the messages themselves."""

import math
from collections.abc import Iterable
from functools import singledispatch

import numpy as np

from accountant.consequences import Broken
from accountant.contract import Counts
from accountant.events import leaves
from privkit.release import Payload, Prototypes, Release, SumsAndCounts
from privkit.transcript import Transcript


def contradicted(transcripts: Iterable[Transcript]) -> tuple[Broken, ...]:
    """Return the assumptions that some message breaks although its contract says that they hold."""
    sent = [release for transcript in transcripts for release in transcript.releases]
    return (_COUNTS,) if any(_sends_secret_counts(release) for release in sent) else ()


def _sends_secret_counts(release: Release) -> bool:
    """Return whether exact record counts are in a message whose contract says that none is used."""
    if not _sends_exact_counts(release.payload):
        return False
    return any(leaf.contract.counts is Counts.NOT_USED for leaf, _ in leaves(release.event))


@singledispatch
def _sends_exact_counts(payload: Payload) -> bool:
    """Return whether a message holds record counts without noise."""
    return False


@_sends_exact_counts.register
def _(payload: Prototypes) -> bool:
    return payload.counts is not None


@_sends_exact_counts.register
def _(payload: SumsAndCounts) -> bool:
    # continuous noise leaves no whole number
    return len(payload.totals) > 0 and bool((payload.totals == np.rint(payload.totals)).all())


_COUNTS = Broken(
    id="A10",
    reason="exact record counts are in the message, and its contract says that counts are not used",
    cost="a record that comes, goes or changes its class shows in them: delta = 1, no epsilon holds",
    epsilon=math.inf,
    examples=("E3", "E4"),
)
