"""One process writes to a folder at a time, and a killed one is forgotten."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from accountant.events import NonPrivate
from privkit import lock
from privkit.errors import InputError
from privkit.release import Head, Release
from privkit.store import Run, RunInfo

pytest.importorskip("fcntl")

INFO = RunInfo(cell="a", seed=0, rounds=2, clients=("x",), num_classes=2, dim=1)
OTHER_PROCESS = """
import sys, time
from pathlib import Path
from privkit import lock
held = lock.hold(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """Another process that holds the lock of a folder."""
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_until_the_first_is_killed(
    tmp_path: Path, other: subprocess.Popen
) -> None:
    with pytest.raises(InputError, match="is being written by another process; wait for it, stop it, or"):
        Run.create(tmp_path, INFO)
    assert [p.name for p in tmp_path.iterdir()] == [".lock"]
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert Run.create(tmp_path, INFO).completed == 0


def test_a_run_that_is_being_written_can_be_read(tmp_path: Path) -> None:
    run = Run.create(tmp_path, INFO)
    run.commit(0, [Release(round=0, client=0, payload=Head(weights=np.ones((1, 1))), event=NonPrivate())])
    code = (
        "import sys; from pathlib import Path; from privkit.store import Run;"
        "print(Run(Path(sys.argv[1])).completed)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_the_same_process_may_open_a_run_again(tmp_path: Path) -> None:
    first = Run.create(tmp_path, INFO)
    link = tmp_path.parent / "link"
    link.symlink_to(tmp_path)
    assert Run.create(link, INFO).info == first.info
    assert lock.hold(tmp_path) is lock.hold(link)


def test_a_lock_ends_with_its_last_holder(tmp_path: Path) -> None:
    first, second = lock.hold(tmp_path), lock.hold(tmp_path)
    assert held_elsewhere(tmp_path)
    del first
    assert held_elsewhere(tmp_path)
    del second
    assert not held_elsewhere(tmp_path)


def held_elsewhere(folder: Path) -> bool:
    """Return whether an open file of its own finds the folder locked, as another process would."""
    import fcntl

    with (folder / ".lock").open() as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_sweep_does_not_run_out_of_open_files(tmp_path: Path) -> None:
    folders = [tmp_path / str(i) for i in range(lock.MOST + 3)]
    for folder in folders:
        folder.mkdir()
    held = [lock.hold(folder) for folder in folders]
    assert held[0] is not None
    assert held[-1] is None
    assert len(list(Path("/proc/self/fd").iterdir())) < lock.MOST + 100


def test_without_locks_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    assert lock.hold(tmp_path) is None
    assert Run.create(tmp_path, INFO).completed == 0


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with pytest.raises(InputError, match=r"cannot be written .*; choose another folder"):
        Run.create(tmp_path, INFO)
