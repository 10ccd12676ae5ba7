"""Two ways to do the same work: checked first, then timed in turns in a process of their own, then each one's memory.

What ran before leaves its mark on a process: how fast fresh memory comes depends on what was freed.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.protocol import Limit, Result, cpu_seconds, process_seconds, spread

Work = Callable[[], Any]
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One row.

    Attributes:
        module: where it is found again, as ``PAIRS[key]``.
        id: of the row.
        workload: what is done.
        peer: whose structure the other side follows.
        ours: builds our side and returns what does the work once; builds nothing before it is called.
        theirs: the same of the peer.
        check: says how far apart the results are, and whether too far.
        must: least ratio of CPU times that the project stands for.
        stretch: the ratio it aims at.
        turns: timings of each side.
        loops: calls of our side per timing, where one is too short to time.
        probed: the peer does one of so many equal parts of the work, and its time is multiplied.
    """

    module: str
    id: str
    workload: str
    peer: str
    ours: Callable[[], Work]
    theirs: Callable[[], Work]
    check: Callable[[], tuple[str, bool]]
    must: float
    stretch: float
    turns: int = 5
    loops: int = 1
    probed: int = 1

    @property
    def key(self) -> str:
        return f"{self.id} {self.workload}"

    def results(self) -> list[Result]:
        """Return the row; where the two sides do not agree it is void, and nothing is timed."""
        said, void = self.check()
        return [
            Result(
                id=self.id,
                workload=self.workload,
                peer=self.peer,
                **spread([float("nan")] if void else json.loads(in_child(*self._command, "ratios"))),
                unit="x",
                check=said if void else f"{said}; {self._memory()}",
                void=void,
                must=Limit(self.must),
                stretch=Limit(self.stretch),
            )
        ]

    @property
    def _command(self) -> tuple[str, str, str]:
        return "benchmarks.pairs", self.module, self.key

    def ratios(self) -> list[float]:
        """Return the peer's CPU time / ours, one per turn; the first call of each side is not timed."""
        ours, theirs = self.ours(), self.theirs()
        for work in (ours, theirs):
            work()
        return [
            self.probed * cpu_seconds(theirs) / cpu_seconds(ours, loops=self.loops) for _ in range(self.turns)
        ]

    def _memory(self) -> str:
        mine, other = (in_child(*self._command, side) for side in ("ours", "theirs"))
        return f"peak memory {mine} MB, theirs {other} MB"


def in_child(*command: str) -> str:
    """Return what a module prints in a process of its own."""
    _, printed = process_seconds([sys.executable, "-m", *command])
    return printed.strip()


def peak_of(build: Callable[[], Work]) -> str:
    """Return how many megabytes doing some work adds at most to what its inputs and the libraries take.

    It is read from the kernel's own mark of this process; what the parent held is not in it, as it is in
    ``getrusage``. "n/a" where the kernel keeps none.
    """
    work = build()
    if not _STATUS.exists():
        return "n/a"
    before = _kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the mark starts again from here
    work()
    return f"{max(0, _kilobytes('VmHWM') - before) / 1024:.0f}"


def _kilobytes(name: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])


def one_thread() -> None:
    """Keep torch to one thread, as numpy is already."""
    import torch

    torch.set_num_threads(1)


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    module, key, wanted = sys.argv[1:]
    one_thread()
    pair = import_module(module).PAIRS[key]
    print(json.dumps(pair.ratios()) if wanted == "ratios" else peak_of(getattr(pair, wanted)))
