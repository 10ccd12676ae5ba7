"""What the clients of a recorded run send: the messages of the open round, and what each client may still spend."""

from accountant.budget import BudgetExceededError
from accountant.events import Event
from privkit.allowance import Allowance
from privkit.errors import InputError
from privkit.release import Release
from privkit.stop import Stop
from privkit.store import Run
from privkit.truth import Hidden


class Inbox:
    """Takes one message of each client a round, within its budget, and commits the round when all are there."""

    def __init__(self, run: Run) -> None:
        """Take a run that was opened for recording; nothing is committed yet."""
        self.run = run
        self._pending: dict[int, tuple[Release, Hidden | None]] = {}
        self._allowance = Allowance(run.budget)
        self._stops: dict[int, Stop] = {}
        self._closed = False

    def refuse_misplaced(self, round: int, client: int) -> None:
        """Raise unless a client's message of a round is one that the run still waits for."""
        if self._closed and not self.run.complete:
            raise InputError(f"{self.run.path}: the recorder was left; record a new run into another folder.")
        if self.run.ended:
            raise InputError(f"{self.run.path}: the budget is spent and the run has ended; record a new run.")
        if self.run.complete:
            raise InputError(
                f"all {self.run.info.rounds} rounds are recorded; create the Recorder with more of them."
            )
        if round != self.run.completed:
            raise InputError(
                f"round={round}: round {self.run.completed} is open; record the rounds in order."
            )
        if not 0 <= client < len(self.run.info.clients) or client in self._pending:
            raise InputError(
                f"client={client} in round {round}: give each of the {len(self.run.info.clients)} clients once."
            )

    def reserve(self, client: int, event: Event) -> None:
        """Raise unless a client can afford a release; if it cannot, the run may end with it (:meth:`end`)."""
        if not 0 <= client < len(self.run.info.clients):
            raise InputError(
                f"client={client}: clients are numbered from 0 to {len(self.run.info.clients) - 1}."
            )
        following = self.run.completed + (client in self._pending)
        why = self._allowance.exceeded(round=following, client=client, event=event)
        if why is None:
            return
        if following < self.run.info.rounds:
            self._stops.setdefault(client, why)
        who, spent = self.run.info.clients[client], self._allowance.spent(client)
        raise BudgetExceededError(why.budget.refusal(who, spent=spent, following=event))

    def add(self, release: Release, hidden: Hidden | None) -> None:
        """Take one message that is not misplaced, with what was computed on the way to it where that is known."""
        client = release.client
        self.reserve(client, release.event)
        self._pending[client] = release, hidden
        if len(self._pending) == len(self.run.info.clients):
            try:
                self._commit()
            except Exception:
                del self._pending[client]
                raise
        self._allowance.add(client, release.event)
        self._stops.pop(client, None)  # with other noise, it could be afforded after all

    def end(self, kind: type[BaseException] | None) -> None:
        """End the run with the first client that could not go on, or refuse to end it with rounds missing.

        Args:
            kind: of the error that ended the recording; any but a spent budget leaves the run as it is.
        """
        failed = kind is not None and not issubclass(kind, BudgetExceededError)
        if failed or (self.run.complete and not self._pending):
            return
        if self._stops:
            self._stop(next(iter(self._stops.values())))
        elif kind is None:
            raise InputError(
                f"{self.run.path}: {self.run.completed} of {self.run.info.rounds} rounds were recorded whole; "
                "record every client of every round, or create the Recorder with fewer rounds."
            )

    def close(self) -> None:
        """Take no more messages, and let the folder go."""
        self._closed = True
        self.run.close()

    def _stop(self, why: Stop) -> None:
        """Commit what left the clients in the open round, and end the run with the reason."""
        if self._pending:
            self._commit()
        self.run.stop(why)

    def _commit(self) -> None:
        """Commit what left the clients in the open round."""
        sent = [self._pending[m] for m in sorted(self._pending)]
        hidden = {release.client: found for release, found in sent if found is not None}
        self.run.commit(self.run.completed, [release for release, _ in sent], hidden=hidden)
        self._pending = {}
