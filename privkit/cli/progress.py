"""Progress with an estimate of the time left on a terminal, plain lines elsewhere; always on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]
EVERY = 30.0
"""Least seconds between two plain lines about one stage."""


class Named:
    """Progress whose stages are named after what was last announced, such as a batch of runs."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._what = progress, ""

    def announce(self, what: str) -> None:
        """Add something to the names of all stages from now on."""
        self._what = f" {what}"

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Pass on how much of a stage is done."""
        self._progress(f"{stage}{self._what}", done, total)


@contextmanager
def bars() -> Iterator[Progress]:
    """Yield a function that shows how much of a named stage is done."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True)) as shown:
        current: dict[str, int] = {}

        def progress(stage: str, done: int, total: int) -> None:
            """Start a new bar when a stage begins, and move it as it goes on."""
            if done == 0 or stage not in current:
                current[stage] = int(shown.add_task(stage, total=total))
            shown.update(shown.task_ids[current[stage]], completed=done, total=total)

        yield progress


class Lines:
    """One line when a stage begins, one when it ends, and in between one now and then with the time left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage, self._from, self._last = "", 0, ""
        self._began = self._said = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Print a line if there is something new to say."""
        now = self._clock()
        begins = stage != self._stage or done < self._from
        if begins:
            self._stage, self._from, self._began = stage, done, now
        if done == total:
            self._print(f"{stage}: done", now)
        elif begins:
            self._print(f"{stage}: {done:,} of {total:,}", now)
        elif done > self._from and now - self._said >= EVERY:
            left = (now - self._began) / (done - self._from) * (total - done)
            self._print(f"{stage}: {done:,} of {total:,}, about {_duration(left)} left", now)

    def _print(self, line: str, now: float) -> None:
        if line != self._last:
            print(line, file=sys.stderr, flush=True)  # noqa: T201
        self._last, self._said = line, now


def _duration(seconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> _duration(12.3), _duration(90.0), _duration(9000.0)
    ('12 s', '2 min', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
