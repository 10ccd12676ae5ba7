"""How the promise is used up from round to round, and how much of it the canaries see being used."""

from collections.abc import Sequence

from accountant.claims import claim
from accountant.events import Composed, Event
from attacks.statistics.certify.together import first_certificate
from attacks.statistics.scores import split
from privkit.audit.taken import Judged
from privkit.transcript import Transcript
from reports.findings import Spending


def spending(
    transcripts: Sequence[Transcript],
    canaries: Judged | None,
    *,
    delta: float,
    rounds: int,
    not_gaussian: str = "",
) -> Spending:
    """Return epsilon after each round: of the client that spends most, and as certified from below.

    Args:
        transcripts: of the runs of one cell; nothing released gives no entries.
        canaries: the scores of an attack on canaries, if one was run.
        delta: that epsilons are stated for.
        rounds: of a run.
        not_gaussian: why no trade-off curve is Gaussian, in words; empty where it may be.
    """
    if not any(transcript.releases for transcript in transcripts):
        return Spending()
    known = {} if canaries is None else canaries.until
    certified = (
        _certified(canaries.after(t), delta, not_gaussian) if canaries is not None and t in known else None
        for t in range(rounds)
    )
    return Spending(
        spent=tuple(_spent(transcripts, delta, t) for t in range(rounds)), certified=tuple(certified)
    )


def _certified(canaries: Judged, delta: float, not_gaussian: str) -> float | None:
    found = first_certificate(
        *split(canaries.scores, canaries.members), delta=delta, not_gaussian=not_gaussian
    )
    return found and found.epsilon_low


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
