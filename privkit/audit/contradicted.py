"""Where what was sent contradicts what its contract declares: the linter's look at the messages themselves."""

import math
from collections.abc import Iterable

from accountant.consequences import Broken
from accountant.contract import Counts
from accountant.events import leaves
from privkit.release import Prototypes, Release
from privkit.transcript import Transcript


def contradicted(transcripts: Iterable[Transcript]) -> tuple[Broken, ...]:
    """Return the assumptions that some message breaks although its contract says that they hold."""
    sent = [release for transcript in transcripts for release in transcript.releases]
    return (_COUNTS,) if any(_sends_secret_counts(release) for release in sent) else ()


def _sends_secret_counts(release: Release) -> bool:
    """Return whether exact record counts are in a message whose contract says that none is used."""
    if not isinstance(release.payload, Prototypes) or release.payload.counts is None:
        return False
    return any(leaf.contract.counts is Counts.NOT_USED for leaf, _ in leaves(release.event))


_COUNTS = Broken(
    id="A10",
    reason="exact record counts are in the message, and its contract says that counts are not used",
    cost="a record that comes, goes or changes its class shows in them: delta = 1, no epsilon holds",
    epsilon=math.inf,
    examples=("E3", "E4"),
)
