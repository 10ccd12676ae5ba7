"""What the self-check prints."""

import json
from collections.abc import Iterable, Iterator

from accountant.selfcheck.outcome import Outcome, Status, tally
from accountant.selfcheck.peer_table import Row

_SCHEMA = 1


def summary(outcomes: list[Outcome]) -> str:
    """Return the last line.

    >>> summary([])
    '0 run, 0 passed, 0 failed, 0 not run'
    """
    counted = tally(outcomes)
    run = counted[Status.PASSED] + counted[Status.FAILED]
    return (
        f"{run} run, {counted[Status.PASSED]} passed, {counted[Status.FAILED]} failed, "
        f"{counted[Status.NOT_RUN]} not run"
    )


def lines(outcomes: list[Outcome], rows: Iterable[Row], *, verbose: bool) -> Iterator[str]:
    """Yield the report: kinds, what failed, what was not run, other libraries, and the counts last."""
    yield "privkit against reference values"
    if verbose:
        yield from (f"  {outcome.status:8} {outcome.name}: {outcome.found}" for outcome in outcomes)
    else:
        yield from _by_kind(outcomes)
    for status in (Status.FAILED, Status.NOT_RUN):
        for outcome in outcomes:
            if outcome.status is status:
                yield f"{status.upper()} {outcome.name}: {outcome.reason}; expected {outcome.expected}"
    yield from _table(rows, verbose=verbose)
    yield summary(outcomes)


def as_json(outcomes: list[Outcome], rows: list[Row]) -> str:
    """Return all of it as one JSON object."""
    plain = {
        "schema": _SCHEMA,
        "summary": summary(outcomes),
        "cases": [outcome.to_dict() for outcome in outcomes],
        "peers": [row.to_dict() for row in rows],
    }
    return json.dumps(plain, indent=2)


def _by_kind(outcomes: list[Outcome]) -> Iterator[str]:
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.kind == kind]
        yield f"  {kind:19} {tally(mine)[Status.PASSED]} of {len(mine)}"


def _table(rows: Iterable[Row], *, verbose: bool) -> Iterator[str]:
    for index, row in enumerate(rows):
        if index == 0:
            yield "other libraries on the same cases; they decide nothing"
            yield f"  {'':27}{'answered':>9}{'unsafe':>8}  worst relative error"
        worst = "-" if row.worst is None else f"{row.worst:.1e} on {row.worst_case}"
        yield f"  {row.peer:27}{f'{row.answered}/{row.asked}':>9}{len(row.unsafe):>8}  {worst}"
        if row.unsafe and not verbose:
            yield f"  {'':27}  unsafe: {', '.join(row.unsafe)}"
        if verbose:
            yield from (f"      {line}" for line in row.details)
