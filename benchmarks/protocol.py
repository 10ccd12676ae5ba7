"""How a ratio is measured, so that it means the same on a busy machine and on a quiet one.

* One thread; CPU time of the process, not wall time.
* Ours and the peer take turns; a ratio is the median over the turns, printed with its range.
* The two are checked to compute the same thing first. If they do not, the row is void.
* Peers run at the settings that favour them; imports and first calls are not timed.
"""

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np


@dataclass(frozen=True)
class Limit:
    """What a number must reach; ``at_least`` for ratios, at most otherwise."""

    value: float
    at_least: bool = True

    def met(self, value: float) -> bool:
        return value >= self.value if self.at_least else value <= self.value

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.value:g}"


@dataclass(frozen=True)
class Result:
    """One line of the table.

    Attributes:
        id: of the row.
        workload: what was done.
        peer: against whom; empty for an absolute number.
        value: median, in ``unit``.
        low: smallest of the turns.
        high: largest of the turns.
        unit: "x" for how many times less CPU time we take, "s" for seconds, "" for a plain ratio.
        check: what was compared before timing, and how far apart the two were.
        void: whether that check failed; the value then means nothing.
        must: what the project stands for.
        stretch: what it aims at.
    """

    id: str
    workload: str
    peer: str
    value: float
    low: float
    high: float
    unit: str
    check: str
    void: bool = False
    must: Limit | None = None
    stretch: Limit | None = None

    @property
    def verdict(self) -> str:
        if self.void:
            return "VOID"
        if self.must is None:
            return "-"
        if self.stretch is not None and self.stretch.met(self.value):
            return "stretch"
        return "ok" if self.must.met(self.value) else "MISSED"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def agree(ours: float, theirs: float, *, rel: float) -> tuple[str, bool]:
    """Return the sentence of a check of two numbers, and whether it failed."""
    off = abs(ours / theirs - 1)
    return f"{off:.0e} apart, {rel:.0e} allowed", not off <= rel


def cpu_seconds(work: Callable[[], Any], *, loops: int = 1) -> float:
    """Return the CPU time of one call, averaged over ``loops`` calls."""
    start = time.process_time()
    for _ in range(loops):
        work()
    return (time.process_time() - start) / loops


def enough_loops(work: Callable[[], Any], *, seconds: float = 0.05) -> int:
    """Return how many calls fill a turn; the first call, which warms everything up, is not counted."""
    work()
    return max(1, int(seconds / max(cpu_seconds(work), 1e-7)))


def ratios(ours: Callable[[], Any], peer: Callable[[], Any], *, turns: int = 5) -> list[float]:
    """Return peer's CPU time / ours, one per turn."""
    our_loops, peer_loops = enough_loops(ours), enough_loops(peer)
    return [cpu_seconds(peer, loops=peer_loops) / cpu_seconds(ours, loops=our_loops) for _ in range(turns)]


class Spread(TypedDict):
    """Median, smallest and largest, under the names that :class:`Result` gives them."""

    value: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Return the median and the range of some turns."""
    return Spread(value=statistics.median(values), low=min(values), high=max(values))


def process_seconds(command: Sequence[str]) -> tuple[float, str]:
    """Return the CPU time of a whole process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out


def wait_for_quiet(*, tries: int = 5, allowed: float = 0.3) -> float:
    """Return the spread of a matrix product's CPU time, after waiting for it to come below ``allowed``."""
    matrix = np.random.default_rng(0).normal(size=(512, 512))
    found = float("inf")
    for _ in range(tries):
        times = [cpu_seconds(lambda: matrix @ matrix, loops=5) for _ in range(5)]
        found = (max(times) - min(times)) / statistics.median(times)
        if found <= allowed:
            break
        time.sleep(1)
    return found


def load() -> str:
    """Return how busy the machine is, in words."""
    one, five, _ = os.getloadavg()
    return f"load {one:.1f} (1 min), {five:.1f} (5 min), {os.cpu_count()} processors"
