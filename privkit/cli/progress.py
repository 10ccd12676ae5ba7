"""Progress with an estimate of the time left on a terminal, plain lines elsewhere; always on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]


@contextmanager
def bars() -> Iterator[Progress]:
    """Yield a function that shows how much of a named stage is done."""
    if not sys.stderr.isatty():
        yield _Lines()
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


class _Lines:
    """One line when a stage begins and one when it ends, however often either is said."""

    def __init__(self) -> None:
        self._last: tuple[str, str] | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if done not in (0, total):
            return
        said = stage, "done" if done == total else f"{total} steps"
        if said != self._last:
            print(": ".join(said), file=sys.stderr)  # noqa: T201
        self._last = said
