"""A run directory: same commits, same bytes, whatever killed the writer; and nothing unsound is read."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.events import Gaussian
from privkit import store, tensors
from privkit.errors import InputError
from privkit.release import Head, Payload, Prototypes, Release, Update
from privkit.store import Run, RunInfo
from privkit.transcript import Records
from privkit.truth import Hidden

ROUNDS = 3
INFO = RunInfo(
    cell="cell",
    seed=3,
    rounds=ROUNDS,
    clients=("one", "two"),
    num_classes=2,
    dim=3,
    promise={"epsilon": 1.0, "delta": 1e-5},
    config={"method": {"name": "fedproto", "pull": 0.1}, "rounds": ROUNDS},
    data={"images": "ab"},
    versions={"numpy": "2"},
)
RECORDS = Records(vectors=np.arange(6.0).reshape(2, 3), labels=np.array([0, 1]), clients=np.array([0, 1]))


def payload(round: int, client: int) -> Payload:
    rng = np.random.default_rng((round, client))
    if client == 1:
        named = {"w/é": rng.standard_normal((2, 2)), "scale": rng.standard_normal(())}
        return Update(named=named, means="delta")
    vectors = rng.standard_normal((2, 3)).astype(np.float32)
    return Prototypes(vectors=vectors, labels=np.array([0, 1]), counts=np.array([2, 3]))


def releases(round: int) -> list[Release]:
    event = Gaussian(noise_multiplier=1.5)
    return [Release(round=round, client=m, payload=payload(round, m), event=event) for m in (0, 1)]


def commit(run: Run, round: int) -> None:
    run.commit(
        round,
        releases(round),
        hidden={m: Hidden(np.full((2, 3), float(round + m)), np.array([0, 1, 0])) for m in (0, 1)},
        state={"params": np.full(2, float(round))},
    )


def write(path: Path) -> Run:
    """Create a run, or resume it, and commit what is left, as training does."""
    run = Run.create(path, INFO)
    if run.completed == 0:
        run.write_questions(records=RECORDS, reference=RECORDS.of(1), canaries=None)
        run.write_answers(members=np.array([True, False]))
    for round in range(run.completed, ROUNDS):
        commit(run, round)
    return run


def snapshot(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run, to read."""
    return write(tmp_path_factory.mktemp("whole") / "my run").path


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to damage."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads((path / "run.json").read_text())
    change(document)
    (path / "run.json").write_text(json.dumps(document))


# ---------------------------------------------------------------------- what is written, and read back


def test_the_same_commits_give_the_same_bytes_of_every_file(whole: Path, tmp_path: Path) -> None:
    again = snapshot(write(tmp_path / "elsewhere").path)
    assert again == snapshot(whole)
    assert sorted(again) == [
        ".lock",
        "candidates/records.safetensors",
        "candidates/reference.safetensors",
        "ledger.jsonl",
        "run.json",
        "state/round-000002.safetensors",
        "state/round-000003.safetensors",
        "truth/answers.safetensors",
        *[f"truth/round-00000{t}.safetensors" for t in range(ROUNDS)],
        *[f"uploads/round-00000{t}.safetensors" for t in range(ROUNDS)],
    ]


def test_the_order_of_clients_does_not_matter(whole: Path, tmp_path: Path) -> None:
    run = Run.create(tmp_path, INFO)
    run.commit(0, releases(0)[::-1])
    upload = "uploads/round-000000.safetensors"
    assert (tmp_path / upload).read_bytes() == (whole / upload).read_bytes()
    assert [r.client for r in run.transcript().releases] == [0, 1]


def test_what_was_committed_is_read_back(whole: Path) -> None:
    run = Run(whole)
    assert run.info == INFO
    assert (run.completed, run.complete, run.batch) == (ROUNDS, True, [])
    found = run.transcript().releases
    expected = [r for t in range(ROUNDS) for r in releases(t)]
    for one, other in zip(found, expected, strict=True):
        assert (one.round, one.client, one.event) == (other.round, other.client, other.event)
        assert one.payload.digest() == other.payload.digest()
    truth = run.truth()
    assert truth.members.tolist() == [True, False]
    assert truth.canary_signs.tolist() == []
    assert truth.hidden.keys() == {(t, m) for t in range(ROUNDS) for m in (0, 1)}
    assert (truth.hidden[2, 1].means == 3).all()
    assert truth.hidden[2, 1].groups.tolist() == [0, 1, 0]
    assert run.state(ROUNDS)["params"].tolist() == [ROUNDS - 1] * 2
    records = run.records("records")
    assert records is not None
    assert np.array_equal(records.vectors, RECORDS.vectors)
    assert run.records("canaries") is None


def test_a_round_in_which_nobody_sends_is_a_round(tmp_path: Path) -> None:
    run = Run.create(tmp_path, INFO)
    for round in range(ROUNDS):
        run.commit(round, [])
    assert Run(tmp_path).complete
    assert Run(tmp_path).transcript().releases == ()
    run.commit(1, [])
    with pytest.raises(InputError, match="round 1 came out differently"):
        run.commit(1, releases(1))


def test_only_what_cannot_be_made_again_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.create(tmp_path, INFO)
    commit(run, 0)
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    commit(run, 1)
    root = tmp_path.resolve()
    assert [Path(name).relative_to(root).as_posix() for name in synced] == [
        "uploads/.round-000001.safetensors.tmp",
        "uploads",
        "ledger.jsonl",
        ".run.json.tmp",
        ".",
    ]


# ---------------------------------------------------------------------- killed anywhere


class KilledError(BaseException):
    """Stands for a kill -9: nothing may catch it."""


class Killer:
    """Kills at the n-th operation on a file, before it happens or half way through it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        write_bytes = Path.write_bytes
        for owner, name in ((Path, "write_bytes"), (Path, "replace"), (Path, "unlink"), (os, "fsync")):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))
        counted = Path.write_bytes

        def torn(path: Path, data: bytes) -> int:
            if self.left == 0:
                write_bytes(path, data[: len(data) // 2])
            return counted(path, data)

        monkeypatch.setattr(Path, "write_bytes", torn)

    def _counted(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if self.left == 0:
                raise KilledError
            self.left -= 1
            return None if operation is _fsync else operation(*arguments, **named)

        return call


_fsync = os.fsync


def survives(path: Path) -> None:
    """What a kill leaves must be readable: whole rounds, each client in each."""
    if (path / "run.json").exists():
        run = Run(path)
        assert len(run.transcript().releases) == 2 * run.completed


def test_a_run_killed_anywhere_comes_out_the_same(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = snapshot(whole)
    killer = Killer(monkeypatch)
    killed = 0
    while True:
        path = tmp_path / str(killed)
        killer.left = killed
        try:
            write(path)
        except KilledError:
            killer.left = -1
        else:
            break
        survives(path)
        write(path)
        assert snapshot(path) == expected, killed
        killed += 1
    assert killed > 10 * ROUNDS  # every commit has at least ten places to be killed at


def test_a_run_killed_again_and_again_comes_out_the_same(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer = Killer(monkeypatch)
    rng = np.random.default_rng(0)
    for attempt in range(2):
        path = tmp_path / str(attempt)
        for _ in range(200):
            killer.left = int(
                rng.integers(4, 25)
            )  # a start writes the questions anew: fewer never get past them
            try:
                write(path)
            except KilledError:
                continue
            break
        else:
            pytest.fail("never finished")
        assert snapshot(path) == snapshot(whole)


def test_a_commit_that_is_repeated_changes_nothing(copy: Path) -> None:
    before = snapshot(copy)
    run = Run.create(copy, INFO)
    for round in range(ROUNDS):
        commit(run, round)
    assert snapshot(copy) == before


# ---------------------------------------------------------------------- commits that are refused


def check_refused(run: Run, message: str, round: int, sent: list[Release]) -> None:
    before = snapshot(run.path)
    with pytest.raises(InputError, match=message):
        run.commit(round, sent, state={"params": np.ones(1)})
    assert snapshot(run.path) == before


def moved(release: Release, *, round: int, client: int) -> Release:
    return Release(round=round, client=client, payload=release.payload, event=release.event)


def test_a_commit_that_does_not_fit_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    run = Run.create(tmp_path, INFO)
    commit(run, 0)
    one, two = releases(1)
    check_refused(run, "round 2 cannot follow 1 committed rounds", 2, releases(2))
    check_refused(
        run, "a release of round 0 cannot be committed in round 1", 1, [one, moved(two, round=0, client=1)]
    )
    check_refused(run, r"releases of clients \[0, 0\]; give at most one of each", 1, [one, one])
    check_refused(run, r"releases of clients \[0, 2\].* from 0 to 1", 1, [one, moved(two, round=1, client=2)])


def test_a_round_beyond_the_plan_is_refused(copy: Path) -> None:
    check_refused(Run.create(copy, INFO), "round 3 is beyond the 3 planned rounds", ROUNDS, releases(ROUNDS))


def test_a_committed_round_that_comes_out_differently_is_refused(copy: Path) -> None:
    run = Run.create(copy, INFO)
    one, two = releases(1)
    other = Release(round=1, client=1, payload=payload(1, 0), event=two.event)
    cheaper = Release(round=1, client=1, payload=two.payload, event=Gaussian(noise_multiplier=9.0))
    for sent in ([one, other], [one, cheaper], [one], []):
        check_refused(run, "round 1 came out differently from what is committed", 1, sent)


# ---------------------------------------------------------------------- runs that are refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 4}, "another seed: 3 there, 4 now"),
        ({"seed": None}, "another seed: 3 there, None now"),
        ({"rounds": 5}, "another rounds: 3 there, 5 now"),
        ({"dim": 4}, "another dim: 3 there, 4 now"),
        ({"num_classes": 3}, "another num_classes: 2 there, 3 now"),
        ({"clients": ("one", "three")}, r"another clients: \['one', 'two'\] there, \['one', 'three'\] now"),
        ({"promise": None}, "another promise: .*'epsilon': 1.0.* there, None now"),
        ({"promise": {"epsilon": 2.0, "delta": 1e-5}}, r"another promise\.epsilon: 1\.0 there, 2\.0 now"),
        ({"data": {"images": "ac"}}, "other data: images changed"),
        ({"data": {"images": "ab", "more": "x"}}, "other data: more changed"),
        (
            {"config": {"method": {"name": "fedproto", "pull": 0.2}, "rounds": ROUNDS}},
            r"another config\.method\.pull: 0\.1 there, 0\.2 now",
        ),
    ],
)
def test_a_run_is_not_resumed_as_another_one(copy: Path, changes: dict, message: str) -> None:
    before = snapshot(copy)
    with pytest.raises(InputError, match=f"was created with {message}; use a new --out folder"):
        Run.create(copy, replace(INFO, **changes))
    assert snapshot(copy) == before


def test_other_versions_may_resume(copy: Path) -> None:
    run = Run.create(copy, replace(INFO, versions={"numpy": "3"}), batch=("x",))
    assert run.info == INFO
    assert run.batch == []


def test_information_survives_plain_values(tmp_path: Path) -> None:
    config = {"domains": ("a", "b"), "width": np.int64(3)}
    run = Run.create(tmp_path, replace(INFO, config=config), batch=("a/seed-0", "b/seed-0"))
    assert Run.create(tmp_path, replace(INFO, config=config)).batch == ["a/seed-0", "b/seed-0"]
    assert run.info.config == {"domains": ["a", "b"], "width": 3}


@pytest.mark.parametrize(
    ("name", "bad"), [("rounds", 0), ("dim", -1), ("num_classes", True), ("clients", ())]
)
def test_information_that_is_no_count_is_refused(name: str, bad: Any) -> None:
    with pytest.raises(InputError, match=f"{name}=.*; give a whole number of at least 1"):
        RunInfo.from_dict({**INFO.to_dict(), name: bad})


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=r"holds other files and no run\.json; choose another folder"):
        Run.create(tmp_path, INFO)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_hidden_file_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / ".DS_Store").write_text("x")
    assert Run.create(tmp_path, INFO).completed == 0


@pytest.mark.parametrize("name", ["file", "file/below", "link to nothing"])
def test_a_path_that_can_be_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link to nothing").symlink_to(tmp_path / "nothing")
    with pytest.raises(InputError, match=f"{name} cannot be used as a folder .*; choose another"):
        Run.create(tmp_path / name, INFO)


def test_another_schema_is_refused(copy: Path) -> None:
    for schema in (2, "1", None):
        edit(copy, lambda document, schema=schema: document.update(schema=schema))
        with pytest.raises(InputError, match=rf"run\.json has schema {schema!r}, this privkit reads 1"):
            Run(copy)


def test_a_run_json_cut_anywhere_is_refused(copy: Path) -> None:
    path = copy / "run.json"
    data = path.read_bytes()
    for n in (*range(0, len(data) - 2, 9), len(data) - 2):
        path.write_bytes(data[:n])
        with pytest.raises(InputError, match=r"run\.json is not valid JSON .* damaged or edited"):
            Run(copy)
    for text in ("[]", "5", '"x"', "null"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"run\.json has schema None"):
            Run(copy)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("run"),
        lambda d: d.pop("batch"),
        lambda d: d.pop("progress"),
        lambda d: d["run"].pop("clients"),
        lambda d: d["run"].pop("seed"),
        lambda d: d["run"].update(more=1),
        lambda d: d["run"].update(rounds="4"),
        lambda d: d["run"].update(clients=5),
        lambda d: d.update(run=5),
        lambda d: d.update(batch=None),
        lambda d: d.update(progress=[]),
        lambda d: d["progress"].pop("rounds"),
        lambda d: d["progress"].update(rounds=-1),
        lambda d: d["progress"].update(rounds=1.5),
        lambda d: d["progress"]["ledger"].pop("head"),
        lambda d: d["progress"]["ledger"].update(bytes="9"),
        lambda d: d["progress"].update(ledger=None),
    ],
)
def test_a_run_json_without_sound_values_is_refused(copy: Path, change: Callable) -> None:
    edit(copy, change)
    with pytest.raises(InputError, match=r"(?s)run\.json is incomplete .*; it was damaged or edited"):
        Run(copy)


def test_a_missing_run_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.json does not exist"):
        Run(tmp_path)


# ---------------------------------------------------------------------- damage that is found


def test_an_upload_cut_anywhere_is_refused_by_name(copy: Path) -> None:
    path = copy / "uploads" / "round-000001.safetensors"
    data = path.read_bytes()
    run = Run(copy)
    for n in (0, 1, 7, 8, 9, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:n])
        with pytest.raises(InputError, match=r"round-000001\.safetensors is damaged or cut short"):
            run.transcript()
    path.unlink()
    with pytest.raises(InputError, match=r"round-000001\.safetensors does not exist"):
        run.transcript()


def test_any_flipped_bit_of_an_upload_is_found(tmp_path: Path) -> None:
    run = Run.create(tmp_path, replace(INFO, rounds=1))
    run.commit(0, releases(0)[:1])
    path = tmp_path / "uploads" / "round-000000.safetensors"
    data = path.read_bytes()
    padding = data[8 : 8 + data[0]].rstrip(b" ")  # spaces after the header mean nothing
    for place in (*range(8 + len(padding)), *range(8 + data[0], len(data))):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises(InputError, match=r"round-000000\.safetensors is damaged|client 0 in round 0"):
            run.transcript()


def test_a_payload_that_was_changed_or_removed_is_named(copy: Path) -> None:
    path = copy / "uploads" / "round-000002.safetensors"
    named = tensors.read(path)
    where = "the upload of client 0 in round 2"
    for changes in (
        {"vectors": named["000000/prototypes/vectors"] + 1},
        {"vectors": np.full((2, 3), np.nan)},
    ):
        tensors.write(path, {**named, **{f"000000/prototypes/{k}": v for k, v in changes.items()}})
        with pytest.raises(InputError, match=f"{where} does not match its ledger line"):
            Run(copy).transcript()
    tensors.write(path, {k: v for k, v in named.items() if not k.endswith("vectors")})
    with pytest.raises(InputError, match=f"{where} does not match its ledger line"):
        Run(copy).transcript()
    tensors.write(path, {k: v for k, v in named.items() if not k.startswith("000000/")})
    with pytest.raises(InputError, match=f"{where} is missing"):
        Run(copy).transcript()


def test_uploads_of_two_rounds_cannot_be_swapped(copy: Path) -> None:
    one, two = (copy / "uploads" / f"round-00000{t}.safetensors" for t in (1, 2))
    swapped = two.read_bytes(), one.read_bytes()
    for path, data in zip((one, two), swapped, strict=True):
        path.write_bytes(data)
    with pytest.raises(InputError, match="does not match its ledger line"):
        Run(copy).transcript()


def test_a_changed_ledger_is_refused(copy: Path) -> None:
    path = copy / "ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b"1.5", b"9.5", 1))
    with pytest.raises(InputError, match=r"ledger\.jsonl was changed: line 1"):
        Run(copy).transcript()


def test_a_run_without_truth_can_be_read_but_not_judged(copy: Path) -> None:
    shutil.rmtree(copy / "truth")
    run = Run(copy)
    assert len(run.transcript().releases) == 2 * ROUNDS
    with pytest.raises(
        InputError, match=r"answers\.safetensors is missing: .*; restore truth/ or train again"
    ):
        run.truth()


def test_what_stayed_behind_is_optional_and_only_of_committed_rounds(tmp_path: Path) -> None:
    run = Run.create(tmp_path, INFO)
    run.write_answers(members=np.array([True]))
    run.commit(0, releases(0))
    tensors.write(tmp_path / "truth" / "round-000001.safetensors", {"000000": np.ones((1, 1))})
    assert run.truth().hidden == {}


def test_candidates_and_answers_that_lack_something_are_refused(copy: Path) -> None:
    tensors.write(copy / "candidates" / "records.safetensors", {"vectors": np.ones((1, 1))})
    with pytest.raises(InputError, match=r"records\.safetensors holds no labels"):
        Run(copy).records("records")
    tensors.write(copy / "truth" / "answers.safetensors", {"members": np.ones(1, dtype=np.uint8)})
    with pytest.raises(InputError, match=r"answers\.safetensors holds no canary_signs"):
        Run(copy).truth()


def test_damaged_state_is_refused_by_name(copy: Path) -> None:
    (copy / "state" / "round-000003.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"state/round-000003\.safetensors is damaged"):
        Run(copy).state(3)


# ---------------------------------------------------------------------- finding runs


def test_runs_are_found_below_a_folder_in_the_order_of_their_paths(whole: Path, tmp_path: Path) -> None:
    for name in ("b/seed-0", "a/seed-1", "a/seed-0"):
        shutil.copytree(whole, tmp_path / "study one" / name)
    found = store.find(tmp_path / "study one")
    assert [r.path.relative_to(tmp_path / "study one").as_posix() for r in found] == [
        "a/seed-0",
        "a/seed-1",
        "b/seed-0",
    ]
    assert [r.path for r in store.find(whole)] == [whole]


def test_a_link_to_a_folder_is_followed_but_no_run_counts_twice(whole: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(whole, study / "a")
    (study / "latest").symlink_to(study / "a")
    (tmp_path / "link").symlink_to(study)
    assert [r.path.name for r in store.find(tmp_path / "link")] == ["a"]


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no run \(no run\.json\)"):
        store.find(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file is no folder; give a folder that"):
        store.find(tmp_path / "file")
    with pytest.raises(InputError, match="nowhere does not exist"):
        store.find(tmp_path / "nowhere")


def test_heads_and_prototypes_of_one_run_are_kept_apart(tmp_path: Path) -> None:
    run = Run.create(tmp_path, replace(INFO, rounds=1))
    event = Gaussian(noise_multiplier=1.0)
    head = Head(weights=np.ones((2, 3)))
    run.commit(
        0, [Release(round=0, client=m, payload=p, event=event) for m, p in ((0, head), (1, payload(0, 0)))]
    )
    first, second = run.transcript().releases
    assert isinstance(first.payload, Head)
    assert isinstance(second.payload, Prototypes)
