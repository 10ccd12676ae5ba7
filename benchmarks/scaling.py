"""Row P21: how the whole training loop grows with the number of clients, for every method, and with rounds.

What is measured is ``privkit.train.loop.train`` itself, files included. The number is the slope of the logarithm of
a round's CPU time over that of the number of clients, each with the same number of records: 1 is linear. FedPCL sends
every client's prototypes to every client, so its time grows with their square by definition; what it may not do is
hold them once per client.
"""

import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.pairs import in_child, one_thread, peak_of
from benchmarks.protocol import Limit, Result, spread
from benchmarks.synthetic import Blobs, Flat
from privkit import plug
from privkit.config import RunConfig
from privkit.defenses.none import Nothing
from privkit.methods._base import AbstractMethod
from privkit.personal import PersonalModel
from privkit.study import Study
from privkit.train.loop import train

CLIENTS = (10, 40, 160)
ROUNDS = (16, 64)
QUADRATIC = "fedpcl"


def study(method: str, *, clients: int, rounds: int) -> Study:
    """Return a small study of one method with its defaults."""
    built = plug.build("privkit.methods", method)
    assert isinstance(built, AbstractMethod)
    config = RunConfig(
        data=Blobs(clients=clients),
        encoder=Flat(),
        model=PersonalModel(adapter=16),
        method=built,
        defense=Nothing(),
        rounds=rounds,
    )
    return Study(cells={"run": config}, seeds=1)


def trained(given: Study) -> list[float]:
    """Train in a folder of its own and return the CPU time of each round."""
    moments: list[float] = []

    def progress(stage: str, done: int, total: int) -> None:
        if stage == "train":
            moments.append(time.process_time())

    with tempfile.TemporaryDirectory() as folder:
        os.environ["PRIVKIT_CACHE"] = f"{folder}/cache"
        train(given, Path(folder) / "run", device="cpu", progress=progress)
    return np.diff(moments).tolist()


def slope(sizes: tuple[int, ...], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def with_clients(method: str) -> list[Result]:
    """P21: the slope of a round's CPU time; the first round, which warms up, is left out."""
    turns = np.transpose([trained(study(method, clients=clients, rounds=3))[1:] for clients in CLIENTS])
    found = spread([slope(CLIENTS, turn) for turn in turns.tolist()])
    milliseconds = ", ".join(f"{1e3 * t:.0f}" for t in np.median(turns, axis=0))
    quadratic = method == QUADRATIC
    return [
        Result(
            id="P21",
            workload=f"{method}, clients {', '.join(map(str, CLIENTS))}",
            peer="",
            **found,
            unit="",
            check=f"{milliseconds} ms a round{'; quadratic by definition' if quadratic else ''}",
            must=None if quadratic else Limit(1.1, at_least=False),
            stretch=None if quadratic else Limit(1.05, at_least=False),
        )
    ]


def memory_with_clients() -> list[Result]:
    """P21: the slope of peak memory over the number of clients, where time is quadratic."""
    peaks = [float(_peak(QUADRATIC, clients=clients, rounds=2)) for clients in CLIENTS[1:]]
    return [
        Result(
            id="P21",
            workload=f"{QUADRATIC}, memory over clients",
            peer="",
            **spread([slope(CLIENTS[1:], peaks)]),
            unit="",
            check=f"{peaks[0]:.0f} and {peaks[1]:.0f} MB with {CLIENTS[1]} and {CLIENTS[2]} clients",
            must=Limit(1.1, at_least=False),
            stretch=Limit(1.05, at_least=False),
        )
    ]


def memory_with_rounds() -> list[Result]:
    """P21: what more rounds add to peak memory, in megabytes per round."""
    peaks = [float(_peak("fedproto", clients=20, rounds=rounds)) for rounds in ROUNDS]
    rate = (peaks[-1] - peaks[0]) / (ROUNDS[-1] - ROUNDS[0])
    return [
        Result(
            id="P21",
            workload=f"fedproto, memory over {ROUNDS[-1]} rounds",
            peer="",
            **spread([rate]),
            unit="MB",
            check=f"a round more; peaks {', '.join(f'{p:.0f}' for p in peaks)} MB after {', '.join(map(str, ROUNDS))}",
            must=Limit(0.05, at_least=False),
        )
    ]


def _peak(method: str, *, clients: int, rounds: int) -> str:
    return in_child("benchmarks.scaling", method, str(clients), str(rounds))


ROWS = [
    *(partial(with_clients, name) for name in plug.names("privkit.methods")),
    memory_with_clients,
    memory_with_rounds,
]

if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    one_thread()
    method, clients, rounds = sys.argv[1], *map(int, sys.argv[2:])
    trained(study(method, clients=2, rounds=1))  # libraries are loaded as they are used
    print(peak_of(lambda: partial(trained, study(method, clients=clients, rounds=rounds))))
