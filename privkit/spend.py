"""Who has spent how much: the releases of each client round by round, set against a budget."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accountant import events
from accountant.budget import NOTHING, Budget, tallied
from accountant.events import Composed, Event, Repeated
from accountant.held import copies, held
from privkit import store
from privkit.errors import InputError
from privkit.store import Run


@dataclass(frozen=True, kw_only=True)
class Holder:
    """One client, or several that may hold the same records: what was released, round by round.

    Attributes:
        run: where, in words.
        name: of the client; of several, joined by ``+``.
        by_round: everything it released in each round that was done, from the first.
        planned: rounds that were planned.
        budget: what it was promised to spend at most, if anything.
        stopped: the sentence that its run ended early, or nothing.
        of_cell: the run's configuration, by the name that training and audits give it; empty where that is not known.
        seed: of the run, if it has one.
    """

    run: str
    name: str
    by_round: tuple[Event, ...]
    planned: int
    budget: Budget | None = None
    stopped: str = ""
    of_cell: str = ""
    seed: int | None = None

    @property
    def cell(self) -> str:
        """Return what the holder's runs of all seeds are called."""
        return self.of_cell or self.run

    def after(self, rounds: Sequence[int]) -> list[Event]:
        """Return everything released in the first rounds, for each of some ascending numbers of them."""
        found: list[Event] = []
        before, done, wanted = NOTHING, 0, list(rounds)
        for event, same in itertools.groupby(self.by_round):
            until = done + len(list(same))
            while len(found) < len(wanted) and wanted[len(found)] <= until:
                found.append(_longer(before, event, wanted[len(found)] - done))
            before, done = _longer(before, event, until - done), until
        return found


def _longer(before: Event, event: Event, rounds: int) -> Event:
    return tallied(Composed(events=(before, Repeated(event=event, count=rounds))))


def holders(folders: Sequence[Path]) -> list[Holder]:
    """Return every client of every run in some folders, finished or not, each chain of the ledger checked.

    Raises:
        InputError: a folder holds no run, two have one name, or a ledger was changed or cut; with its line.
    """
    labelled = [
        (_label(folder, run, alone=len(folders) == 1), run)
        for folder in folders
        for run in store.find(folder)
    ]
    names = [name for name, _ in labelled]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two runs are named {twice!r}; give each folder once, and rename one of the two.")
    return [
        replace(holder, of_cell=_cell(name, run, alone=len(folders) == 1))
        for name, run in labelled
        for holder in _clients(name, run)
    ]


def _cell(name: str, run: Run, *, alone: bool) -> str:
    """Return a run's cell; of several folders, with the folder that it is in."""
    folder = name.split("/")[0]
    return run.info.cell if alone or folder == run.info.cell else f"{folder}/{run.info.cell}"


def _label(folder: Path, run: Run, *, alone: bool) -> str:
    """Return what a run is called: its path below the folder, which is named too if there are several."""
    below = run.path.relative_to(folder).as_posix()
    if alone and below != ".":
        return below
    name = folder.resolve().name
    return name if below == "." else f"{name}/{below}"


def _clients(name: str, run: Run) -> list[Holder]:
    made: dict[int, list[Event]] = {m: [NOTHING] * run.completed for m in range(len(run.info.clients))}
    for entry in run.entries():
        event = events.from_dict(entry["event"])
        made[entry["client"]][entry["round"]] = Composed(
            events=(made[entry["client"]][entry["round"]], event)
        )
    stopped = _stopped(name, run)
    return [
        Holder(
            run=name,
            name=client,
            by_round=tuple(made[m]),
            planned=run.info.rounds,
            budget=_limit(run),
            stopped=stopped,
            seed=run.info.seed,
        )
        for m, client in enumerate(run.info.clients)
    ]


def _stopped(name: str, run: Run) -> str:
    """Return the sentence that a run ended early, or nothing."""
    cell, seed = run.info.cell, run.info.seed
    return f"{name if seed is None else f'{cell} (seed {seed})'} {run.ending}" if run.ended else ""


def _limit(run: Run) -> Budget | None:
    """Return the run's own budget, else its promise."""
    if run.budget is not None or run.info.promise is None:
        return run.budget
    return Budget(epsilon=run.info.promise["epsilon"], delta=run.info.promise["delta"])


def held_in(found: Sequence[Holder], *, shared: Iterable[Sequence[str]], copied: int) -> list[Holder]:
    """Return who pays for one record: clients that may hold the same records count together.

    Args:
        found: clients by themselves.
        shared: names of clients that may hold the same records: ``client`` where it is the only one of that name,
            else ``run:client``, or ``run`` for its only client.
        copied: times that one record is in a release, at least 1.

    Raises:
        InputError: a name fits no client or several, or the budgets of clients that share records differ.
    """
    several = [
        replace(holder, by_round=tuple(copies(event, copied) for event in holder.by_round))
        for holder in found
    ]
    groups = held(
        dict.fromkeys(range(len(several)), NOTHING),
        shared=[{_index(found, n) for n in names} for names in shared],
    )
    return [_together([several[i] for i in group.clients]) for group in groups]


def _index(found: Sequence[Holder], name: str) -> int:
    """Return the client that a name means."""
    fits = [i for i, h in enumerate(found) if name in (h.name, f"{h.run}:{h.name}", h.run)]
    if len(fits) != 1:
        known = ", ".join(f"{h.run}:{h.name}" for h in found[:8])
        what = "no client" if not fits else f"{len(fits)} clients"
        raise InputError(f"--shared {name!r} names {what}; write run:client, one of {known}.")
    return fits[0]


def _together(members: list[Holder]) -> Holder:
    """Return clients that share records as one holder."""
    if len(members) == 1:
        return members[0]
    runs = list(dict.fromkeys(member.run for member in members))
    rounds = max(len(member.by_round) for member in members)
    names = [m.name if len(runs) == 1 else f"{m.run}:{m.name}" for m in members]
    return Holder(
        run=" + ".join(runs),
        name=" + ".join(names),
        by_round=tuple(
            Composed(events=tuple(m.by_round[t] for m in members if t < len(m.by_round)))
            for t in range(rounds)
        ),
        planned=max(member.planned for member in members),
        budget=_common_budget(members),
        stopped=next((member.stopped for member in members if member.stopped), ""),
    )


def _common_budget(members: list[Holder]) -> Budget | None:
    """Return the one budget of all members; an adaptive one if one of them is, which holds what the others allow."""
    budgets = {member.budget for member in members}
    if budgets == {None}:
        return None
    limits = {None if b is None else (b.epsilon, b.delta) for b in budgets}
    if len(limits) > 1 or None in limits:
        raise InputError(
            f"{' and '.join(m.name for m in members)} share records and have different budgets; give --epsilon and "
            "--delta for what their records may cost together."
        )
    return max((b for b in budgets if b is not None), key=lambda b: b.adaptive)
