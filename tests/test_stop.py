"""Why a run ended: its last line says so, and is believed only where the run itself proves it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.budget import BudgetExceededError
from accountant.events import Gaussian
from privkit import Recorder, ledger
from privkit.audit.cells import Cell
from privkit.audit.run import _ended
from privkit.cli.train import _stopped
from privkit.errors import InputError
from privkit.release import Prototypes
from privkit.spend import holders
from privkit.store import Run

LOUD = Gaussian(noise_multiplier=2.0)
Entries = list[dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run of two clients that ended after two of four rounds, client 0 having spent 2.943 of 3.5."""
    sent = Prototypes(vectors=np.ones((1, 2)), labels=np.array([0]))
    sizes: dict[str, Any] = {"clients": 2, "rounds": 4, "num_classes": 1, "dim": 2}
    with Recorder(tmp_path / "mine", **sizes, budget=(3.5, 1e-5)) as recorder:
        for t in range(2):
            for m in range(2):
                recorder.record(round=t, client=m, payload=sent, event=LOUD)
        with pytest.raises(BudgetExceededError):
            recorder.reserve(client=0, event=LOUD)
    return recorder.run.path


def edit(run: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    document = json.loads((run / "run.json").read_text())
    change(document)
    (run / "run.json").write_text(json.dumps(document))


def forge(run: Path, change: Callable[[Entries], Entries]) -> None:
    """Write the ledger anew, every hash in order."""
    entries = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    plain = [{k: v for k, v in entry.items() if k not in ("hash", "previous")} for entry in entries]
    data, anchor = ledger.chain(change(plain), ledger.Anchor())
    (run / "ledger.jsonl").write_bytes(data)
    edit(run, lambda document: document["progress"].update(ledger=anchor.to_dict()))


def told(**changes: Any) -> Callable[[Entries], Entries]:
    """Return the change that the last line tells something else."""

    def change(entries: Entries) -> Entries:
        last = entries[-1]
        why = {k: v for k, v in changes.items() if k not in last}
        new = {k: v for k, v in changes.items() if k in last}
        return [*entries[:-1], {**last, **new, "stop": {**last["stop"], **why}}]

    return change


def test_what_the_run_proves_is_believed(run: Path) -> None:
    stopped = Run(run).stopped
    assert stopped is not None
    assert (stopped.client, stopped.round) == (0, 2)
    forge(run, told())
    assert Run(run).stopped == stopped


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (told(spent=0.123), r"it says spent=0\.123, and the client's releases make it 2\.94323"),
        (told(spent=1e308), r"it says spent=1e\+308"),
        (told(exceeds=None), r"it says exceeds=inf, and the client's releases make it 3\.70863"),
        (told(exceeds=4.0), "it says exceeds=4, and"),
        (
            told(budget={"epsilon": 0.001, "delta": 1e-5, "adaptive": True}),
            r"it keeps a budget of epsilon 0\.001 .*, and the run's is a budget of epsilon 3\.5",
        ),
        (told(budget={"epsilon": 3.5, "delta": 1e-5, "adaptive": False}), r"keeps .*smallest valid bound"),
        (told(client=77), "client 77 is none of the 2 clients"),
        (told(round=3), "it is about round 3, and 2 rounds were done"),
        (told(round=1), "it is about round 1, and 2 rounds were done"),
        (told(event={"event": "Gaussian", "noise_multiplier": 1000.0}), "releases leave room for one more"),
        (
            told(
                event={
                    "event": "Gaussian",
                    "noise_multiplier": 0.1,
                    "contract": {"relation": "add or remove one record"},
                }
            ),
            "cannot be priced: the releases mix the relations",
        ),
        (
            told(budget={"epsilon": 3.5, "delta": 1e-5, "adaptive": True, "zeta": 1}),
            "a budget of .*zeta; give",
        ),
        (lambda entries: entries[:-1], "last line does not say why"),
        (lambda entries: [entries[-1], *entries], "line 1 ends the run, but other lines follow"),
        (lambda entries: [*entries, entries[-1]], "line 5 ends the run, but other lines follow"),
        (lambda entries: [entries[0], *entries], "a release of client 0 in round 0 that has no place"),
        (
            lambda entries: [{**entries[0], "client": 7}, *entries],
            "a release of client 7 in round 0 that has no place among one release of 2 clients in 2 rounds",
        ),
    ],
)
def test_a_forged_last_line_is_refused_wherever_it_is_read(
    run: Path, change: Callable[[Entries], Entries], wrong: str
) -> None:
    forge(run, change)
    for read in (
        lambda: Run(run).stopped,
        lambda: holders([run]),
        lambda: _stopped(run),
        lambda: _ended(Cell("mine", (Run(run),))),
    ):
        with pytest.raises(InputError, match=wrong):
            read()


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda plain: plain["run"].update(budget=None), "and the run's is no budget"),
        (lambda plain: plain["run"]["budget"].update(epsilon=1.0), "the run's is a budget of epsilon 1 at"),
        (
            lambda plain: plain["progress"].pop("ended"),
            "line 5 ends the run, but run.json says that it goes on",
        ),
        (
            lambda plain: plain["run"].update(budget={"epsilon": 5, "zeta": 7}),
            "a budget of epsilon, zeta; give epsilon, delta, adaptive",
        ),
        (
            lambda plain: plain["run"]["budget"].update(epsilon=-1.0),
            r"epsilon=-1\.0 must be finite and above 0",
        ),
    ],
)
def test_a_changed_run_json_is_refused_wherever_it_is_read(
    run: Path, change: Callable[[dict[str, Any]], Any], wrong: str
) -> None:
    edit(run, change)
    for read in (lambda: holders([run]), lambda: Run(run).transcript() and Run(run).stopped):
        with pytest.raises(InputError, match=wrong) as error:
            read()
        assert "\n" not in str(error.value)
