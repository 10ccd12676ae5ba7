"""How the promise is used up from round to round, and how much of it the canaries see being used."""

from collections.abc import Sequence

from accountant.claims import claim
from accountant.events import Composed, Event
from attacks.statistics.certify.gdp import epsilon_gdp
from privkit.audit.taken import Judged, at_zero
from privkit.transcript import Transcript
from reports.findings import Spending


def spending(
    transcripts: Sequence[Transcript], canaries: Judged | None, *, delta: float, rounds: int
) -> Spending:
    """Return epsilon after each round: of the client that spends most, and as certified from below.

    Args:
        transcripts: of the runs of one cell; nothing released gives no entries.
        canaries: the scores of an attack on canaries, if one was run.
        delta: that epsilons are stated for.
        rounds: of a run.
    """
    if not any(transcript.releases for transcript in transcripts):
        return Spending()
    known = {} if canaries is None else canaries.until
    certified = (
        epsilon_gdp(at_zero(canaries.after(t)), delta=delta).epsilon_low
        if canaries is not None and t in known
        else None
        for t in range(rounds)
    )
    return Spending(
        spent=tuple(_spent(transcripts, delta, t) for t in range(rounds)), certified=tuple(certified)
    )


def _spent(transcripts: Sequence[Transcript], delta: float, round: int) -> float:
    """Return epsilon of everything up to a round, of the client that spends most."""
    events = {
        _until(transcript, client, round) for transcript in transcripts for client in transcript.clients
    }
    return max((claim(event, delta=delta).epsilon for event in events), default=0.0)


def _until(transcript: Transcript, client: int, round: int) -> Event:
    return Composed(
        events=tuple(r.event for r in transcript.releases if r.client == client and r.round <= round)
    )
