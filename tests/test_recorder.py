"""The recorder: anyone's training code writes a run like ours, and mistakes are refused as they are made."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privkit
from accountant.budget import Budget, BudgetExceededError
from accountant.contract import Contract, DependsOn, Relation
from accountant.events import Event, Gaussian, NonPrivate
from privkit import Recorder, tensors, terms
from privkit.audit.cells import cells
from privkit.audit.contradicted import contradicted
from privkit.audit.left import left
from privkit.audit.scored import RunView
from privkit.config import RunConfig
from privkit.defenses._base import NOTHING, Known, Privatized
from privkit.defenses.igpp import Igpp
from privkit.defenses.sumcount import GaussianSums, SumCount
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import Noise, SecureNoise
from privkit.release import Head, Payload, Prototypes, SumsAndCounts, Update
from privkit.store import Run
from privkit.study import Study

EVENT = Gaussian(noise_multiplier=2.0)
SIZES: dict[str, Any] = {"clients": 2, "rounds": 2, "num_classes": 2, "dim": 3}
Z = np.arange(12.0).reshape(4, 3)
Y = np.array([0, 0, 1, 1])


def sent(*labels: int, dim: int = 3) -> Prototypes:
    return Prototypes(vectors=np.ones((len(labels), dim)), labels=np.array(labels, dtype=np.int64))


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "mine", **SIZES, canaries=4, canary_norm=3.0)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ---------------------------------------------------------------------- it works


def test_five_lines_record_a_run(tmp_path: Path) -> None:
    def my_release(z: np.ndarray, y: np.ndarray) -> tuple[Payload, Event]:
        return sent(*np.unique(y)), EVENT

    with privkit.Recorder(str(tmp_path / "my run"), **SIZES, canaries=4, canary_norm=3.0) as recorder:
        for t in range(2):
            for m in range(2):
                payload, event = my_release(*recorder.plant(m, Z, Y))
                recorder.record(round=t, client=m, payload=payload, event=event)
    run = Run(tmp_path / "my run")
    assert run.complete
    assert (run.info.cell, run.info.seed, run.info.clients) == ("my run", None, ("client 0", "client 1"))
    assert [(r.round, r.client) for r in run.transcript().releases] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert run.truth().members.shape == (0,)
    assert run.truth().canary_signs.shape == (2 * 4,)


def test_questions_and_answers_are_kept_apart(recorded: Path) -> None:
    run = Run(recorded)
    truth, records, canaries = run.truth(), run.records("records"), run.records("canaries")
    assert records is not None
    assert canaries is not None
    assert truth.members.tolist() == [True] * 12 + [False] * 12
    assert (len(records), len(canaries), len(truth.canary_signs)) == (24, 8, 8)
    assert run.info.promise == {"epsilon": 8.0, "delta": 1e-5}
    reference = run.records("reference")
    assert reference is not None
    assert len(reference) == 6
    outside = [p for p in recorded.rglob("*") if p.is_file() and p.parent.name != "truth"]
    assert not any(b"members" in p.read_bytes() or b"signs" in p.read_bytes() for p in outside)


def test_planted_records_are_the_canaries_with_their_signs(recorder: Recorder) -> None:
    canaries, signs = recorder.run.records("canaries"), recorder.run.truth().canary_signs
    assert canaries is not None
    for m in range(2):
        z, y = recorder.plant(m, Z.astype(np.float32), Y.astype(np.uint8))
        assert (z.dtype, y.dtype, z.flags.writeable) == (np.float64, np.int64, True)
        assert np.array_equal(z[:4], Z)
        mine = canaries.clients == m
        flip = np.where(signs[mine], 1, -1)[:, None]
        assert np.array_equal(z[4:], flip * canaries.vectors[mine])
        assert np.array_equal(y, np.concatenate([Y, canaries.labels[mine]]))


def test_without_canaries_plant_returns_copies(tmp_path: Path) -> None:
    z, y = Recorder(tmp_path / "mine", **SIZES).plant(1, Z, Y)
    assert np.array_equal(z, Z)
    assert np.array_equal(y, Y)
    z[:] = 7
    y[:] = 7
    assert Z[0, 1] == 1
    assert Y[0] == 0


def test_nobody_can_guess_what_was_planted(tmp_path: Path) -> None:
    many = {**SIZES, "clients": 4, "dim": 64}
    runs = [Recorder(tmp_path / str(i), **many, canaries=64, canary_norm=3.0).run for i in range(2)]
    one, other = (run.truth().canary_signs for run in runs)
    assert (one != other).any()
    first, second = (run.records("canaries") for run in runs)
    assert first is not None
    assert second is not None
    assert not np.array_equal(first.vectors, second.vectors)
    assert all(run.info.seed is None for run in runs)


def test_real_leaves_the_canaries_out(recorder: Recorder) -> None:
    real = recorder.real(Prototypes(vectors=Z, labels=np.array([2, 0, 3, 1])))
    assert real.labels.tolist() == [0, 1]
    assert np.array_equal(real.vectors, Z[[1, 3]])


def test_every_kind_of_payload_can_be_recorded(tmp_path: Path) -> None:
    payloads = [Head(weights=np.ones((2, 3))), Update(named={"w": np.ones(7)}, means="gradient")]
    with Recorder(tmp_path / "mine", **{**SIZES, "rounds": 1}) as recorder:
        for m, payload in enumerate(payloads):
            recorder.record(round=0, client=m, payload=payload, event=EVENT)
    found = Run(tmp_path / "mine").transcript().releases
    assert [r.payload.digest() for r in found] == [p.digest() for p in payloads]


def test_clients_may_come_in_any_order(tmp_path: Path) -> None:
    runs = []
    for order in ((0, 1), (1, 0)):
        recorder = Recorder(tmp_path / f"{order}", **SIZES)
        for m in order:
            recorder.record(round=0, client=m, payload=sent(m), event=EVENT)
        runs.append(recorder.run)
    assert runs[0].anchor == runs[1].anchor


# ---------------------------------------------------------------------- like a run of ours


def shape(value: Any) -> Any:
    """Return the keys of nested plain values."""
    return {key: shape(v) for key, v in value.items()} if isinstance(value, dict) else None


def layout(run: Run) -> dict[str, Any]:
    """Return what must be the same in every run, whoever trained it."""
    first = run.transcript().releases[0]
    document = json.loads((run.path / "run.json").read_text())
    for free in ("config", "data", "versions"):
        document["run"][free] = {}
    files = [p.relative_to(run.path).as_posix() for p in run.path.rglob("*") if p.is_file()]
    ours_alone = ("state/", "truth/round-", "metrics.parquet", "timing.json", ".")
    return {
        "files": sorted(f for f in files if not f.startswith(ours_alone)),
        "run.json": shape(document),
        "ledger": [shape(entry) for entry in run.entries()],
        "upload": {k: (a.dtype, a.shape[1:]) for k, a in first.payload.tensors().items()},
        "answers": sorted(tensors.read(run.path / "truth" / "answers.safetensors")),
        "candidates": {
            name: [(key, array.dtype, array.shape[1:]) for key, array in vars(run.records(name)).items()]
            for name in ("records", "reference", "canaries")
        },
    }


def test_a_recorded_run_is_laid_out_like_a_trained_one(tmp_path: Path) -> None:
    from privkit.train.loop import train

    settings = {
        "data": {"name": "digits", "domains": ["mnist", "syn"], "per_class": 20},
        "encoder": "usps_cnn",
        "method": {"name": "fedproto", "training": {"epochs": 1}},
        "defense": {"name": "igpp", "epsilon": 2.0},
        "rounds": 2,
        "canaries": {"count": 8},
    }
    config = RunConfig.from_settings(settings, where="here")
    train(Study(cells={"cell": config}, seeds=1), tmp_path / "ours", device="cpu")
    ours = Run(tmp_path / "ours")
    assert isinstance(config.defense, Igpp)
    mechanism = config.defense.mechanism(rounds=2)
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal((40, 128)).astype(np.float32), np.repeat(np.arange(10), 4)
    with Recorder(
        tmp_path / "mine",
        clients=2,
        rounds=2,
        num_classes=10,
        dim=128,
        promise=(2.0, 1e-5),
        canaries=8,
        canary_norm=3.0,
    ) as recorder:
        recorder.ask(
            z, y, np.repeat([0, 1], 20), np.arange(40) % 2 == 0, reference=(z, y, np.repeat([0, 1], 20))
        )
        for t in range(2):
            for m in range(2):
                vectors, labels = recorder.plant(m, z, y)
                embeddings = Embeddings(vectors=vectors, labels=labels, encoder=DependsOn.PUBLIC)
                payload, event, _ = mechanism.privatize(embeddings, SecureNoise())
                recorder.record(round=t, client=m, payload=payload, event=event)
    assert layout(recorder.run) == layout(ours)


# ---------------------------------------------------------------------- mistakes


def test_rounds_are_recorded_in_order(recorder: Recorder) -> None:
    with pytest.raises(InputError, match="round=1: round 0 is open; record the rounds in order"):
        recorder.record(round=1, client=0, payload=sent(0, 2, 3), event=EVENT)
    for m in range(2):
        recorder.record(round=0, client=m, payload=sent(0, 2, 3), event=EVENT)
    with pytest.raises(InputError, match="round=0: round 1 is open"):
        recorder.record(round=0, client=0, payload=sent(0, 2, 3), event=EVENT)
    recorder.record(round=1, client=0, payload=sent(0, 2, 3), event=EVENT)
    with pytest.raises(InputError, match="round=2: round 1 is open"):  # a client of round 1 is still missing
        recorder.record(round=2, client=0, payload=sent(0, 2, 3), event=EVENT)


def test_a_round_beyond_the_plan_is_refused(recorder: Recorder) -> None:
    for t in range(2):
        for m in range(2):
            recorder.record(round=t, client=m, payload=sent(0, 2, 3), event=EVENT)
    with pytest.raises(InputError, match="all 2 rounds are recorded; create the Recorder with more"):
        recorder.record(round=2, client=0, payload=sent(0, 2, 3), event=EVENT)


@pytest.mark.parametrize("client", [-1, 2, 0])
def test_a_client_is_recorded_once_a_round(recorder: Recorder, client: int) -> None:
    recorder.record(round=0, client=0, payload=sent(0, 2, 3), event=EVENT)
    with pytest.raises(
        InputError, match=f"client={client} in round 0: give each of the 2 clients once|client=-1; give"
    ):
        recorder.record(round=0, client=client, payload=sent(0, 2, 3), event=EVENT)


def test_a_refused_message_can_be_recorded_again(recorder: Recorder) -> None:
    with pytest.raises(InputError):
        recorder.record(round=0, client=0, payload=sent(9), event=EVENT)
    for m in range(2):
        recorder.record(round=0, client=m, payload=sent(0, 2, 3), event=EVENT)
    assert recorder.run.completed == 1


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (sent(0, dim=4), "prototypes of width 4: this run was created with dim=3"),
        (Head(weights=np.ones((2, 2))), "head of width 2: this run was created with dim=3"),
        (sent(0, 2, 3, 4), "label 4 was released; this run was created with num_classes=2"),
    ],
)
def test_a_payload_of_another_shape_is_refused(recorder: Recorder, payload: Payload, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recorder.record(round=0, client=0, payload=payload, event=EVENT)


def test_canary_labels_are_refused_where_none_were_planted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="label 2 was released"):
        Recorder(tmp_path / "mine", **SIZES).record(round=0, client=0, payload=sent(2), event=EVENT)


@pytest.mark.parametrize(
    ("client", "z", "y", "message"),
    [
        (2, Z, Y, "clients holds 2; this run numbers them from 0 to 1"),
        (-1, Z, Y, "clients=.*give whole numbers of at least 0"),
        (0, Z[:, :2], Y, r"vectors \(4, 2\), labels \(4,\).* do not fit; give \[N, 3\], \[N\] and \[N\]"),
        (0, Z[:3], Y, r"vectors \(3, 3\), labels \(4,\).* do not fit"),
        (0, Z[0], Y[:1], r"vectors has shape \(3,\)"),
        (0, Z, Y + 1, "labels holds 2; this run numbers them from 0 to 1"),
        (0, Z, Y - 1, "labels=.*give whole numbers of at least 0"),
        (0, Z, Y / 2, "labels has .* type float64"),
        (0, np.where(Z == 4, np.nan, Z), Y, r"vectors\[1, 1\] is nan"),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(
    recorder: Recorder, client: int, z: np.ndarray, y: np.ndarray, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        recorder.plant(client, z, y)
    with pytest.raises(InputError, match=message):
        recorder.ask(z, y, np.full(len(y), client), np.ones(len(y), dtype=bool))


@pytest.mark.parametrize(
    "members", [np.ones(3, dtype=bool), np.ones((4, 1), dtype=bool), np.ones(4), np.array([0, 1, 2, 1])]
)
def test_membership_is_one_truth_value_per_record(recorder: Recorder, members: np.ndarray) -> None:
    with pytest.raises(
        InputError, match=r"members has shape .* and type .*; give one truth value per record"
    ):
        recorder.ask(Z, Y, np.zeros(4, dtype=int), members)


def test_a_second_question_is_refused_and_the_first_kept(recorder: Recorder) -> None:
    zeros, members = np.zeros(4, dtype=int), np.array([True, False, True, False])
    with pytest.raises(InputError, match="clients"):
        recorder.ask(Z, Y, zeros + 5, members)
    recorder.ask(Z, Y, zeros, members)
    before = snapshot(recorder.run.path)
    with pytest.raises(InputError, match="ask was called before; put all records into one call"):
        recorder.ask(Z[:1], Y[:1], zeros[:1], members[:1])
    assert snapshot(recorder.run.path) == before


def test_ending_early_is_refused(tmp_path: Path) -> None:
    def record() -> None:
        with Recorder(tmp_path / "mine", **SIZES) as recorder:
            for m in range(2):
                recorder.record(round=0, client=m, payload=sent(0), event=EVENT)
            recorder.record(round=1, client=0, payload=sent(0), event=EVENT)

    with pytest.raises(InputError, match="1 of 2 rounds were recorded whole; record every client of every"):
        record()
    assert Run(tmp_path / "mine").completed == 1


def test_an_error_in_between_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Recorder(tmp_path / "mine", **SIZES):
        raise ZeroDivisionError


def test_an_existing_run_is_left_alone(recorded_copy: Path) -> None:
    before = snapshot(recorded_copy)
    with pytest.raises(InputError, match="already holds a run; record into a new folder"):
        Recorder(recorded_copy, **SIZES)
    assert snapshot(recorded_copy) == before


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InputError, match="holds other files"):
        Recorder(tmp_path, **SIZES)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": 0}, "clients=0; give a whole number of at least 1"),
        ({"rounds": True}, "rounds=True; give a whole number"),
        ({"num_classes": -1}, "num_classes=-1"),
        ({"dim": 0}, "dim=0"),
        ({"canaries": True}, "canaries=True; give a whole number of at least 0"),
        ({"canaries": -4}, "canaries=-4"),
        ({"canaries": 1, "canary_norm": 3.0}, "canaries=1 .*plant at least 2"),
        ({"canaries": 4}, "canary_norm is missing; give a length above your clip norm"),
        ({"canaries": 4, "canary_norm": 0.0}, "of length 0.0 .*above 0"),
        ({"canaries": 4, "canary_norm": math.nan}, "of length nan"),
        ({"promise": (0.0, 1e-5)}, r"epsilon=0\.0 must be finite and above 0"),
        ({"promise": (math.nan, 1e-5)}, "epsilon is NaN"),
        ({"promise": (1.0, 1.0)}, r"delta=1\.0 must lie strictly between 0 and 1"),
        ({"config": {"folder": Path("x")}}, r"PosixPath\); give finite numbers, text, lists and dicts"),
        ({"config": {"rate": math.nan}}, "cannot be written as JSON"),
    ],
)
def test_numbers_out_of_range_are_refused_before_anything_is_written(
    tmp_path: Path, changes: dict, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Recorder(tmp_path / "mine", **{**SIZES, **changes})
    assert not list(tmp_path.rglob("run.json"))


def test_our_own_mechanism_draws_noise_that_no_seed_repeats(tmp_path: Path) -> None:

    mechanism = Igpp(epsilon=2.0).mechanism(rounds=1)
    z, y = np.eye(6, 3), np.array([0, 0, 0, 1, 1, 1])
    sent = []
    for name in ("first", "second"):
        with Recorder(
            tmp_path / name, clients=1, rounds=1, num_classes=2, dim=3, canaries=4, canary_norm=3.0
        ) as r:
            kept = r.release(mechanism, round=0, client=0, vectors=z, labels=y, encoder=DependsOn.PUBLIC)
        assert kept.labels.tolist() == [0, 1]
        (release,) = r.run.transcript().releases
        assert isinstance(release.event, Gaussian)
        assert release.event.noise_multiplier == mechanism.noise_multiplier
        sent.append(kept.vectors)
    assert not np.isclose(sent[0], sent[1]).any()


def test_forgetting_what_plant_returned_is_refused(recorder: Recorder) -> None:
    recorder.plant(0, np.eye(2, 3), np.array([0, 1]))
    with pytest.raises(InputError, match=r"no prototype of canary class 2: release what plant\(\) returned"):
        recorder.record(round=0, client=0, payload=sent(0, 1), event=EVENT)


# ---------------------------------------------------------------------- budgets

LOUD = Gaussian(noise_multiplier=2.0)  # costs 1.99 at delta 1e-5, twice 2.94, three times 3.71
CAP = (3.5, 1e-5)


def capped(tmp_path: Path, **changes: Any) -> Recorder:
    return Recorder(tmp_path / "mine", **{**SIZES, "rounds": 4, "budget": CAP, **changes})


def send(recorder: Recorder, round: int, client: int, event: Event = LOUD) -> None:
    recorder.record(round=round, client=client, payload=sent(0, 1), event=event)


def test_a_recorder_ends_early_once_its_budget_is_spent(tmp_path: Path) -> None:
    with capped(tmp_path) as recorder:
        for t in range(2):
            for m in range(2):
                send(recorder, t, m)
        before = snapshot(recorder.run.path)
        with pytest.raises(
            BudgetExceededError, match=r"client 0 has spent epsilon 2\.94323 of 3\.5 at delta 1e-05"
        ):
            send(recorder, 2, 0)
        assert snapshot(recorder.run.path) == before
    run = Run(tmp_path / "mine")
    assert (run.complete, run.ended, run.completed) == (True, True, 2)
    assert run.budget == Budget(epsilon=3.5, delta=1e-5, adaptive=True)
    assert run.stopped is not None
    assert (run.stopped.round, run.stopped.client) == (2, 0)
    assert run.stopped.sentence(client="client 0", completed=2, planned=4).startswith(
        "stopped before round 3 of 4:"
    )
    with pytest.raises(InputError, match="the budget is spent and the run has ended"):
        send(recorder, 2, 0)


def test_a_refusal_that_nobody_catches_ends_the_run_too(tmp_path: Path) -> None:
    def session() -> None:
        with capped(tmp_path) as recorder:
            for t in range(4):
                for m in range(2):
                    send(recorder, t, m)

    with pytest.raises(BudgetExceededError, match="client 0 has spent"):
        session()
    assert Run(tmp_path / "mine").ended


def test_what_left_in_the_open_round_is_in_the_ledger_when_the_next_client_cannot_go_on(
    tmp_path: Path,
) -> None:
    with capped(tmp_path) as recorder:
        send(recorder, 0, 0, Gaussian(noise_multiplier=9.0))
        send(recorder, 0, 1, Gaussian(noise_multiplier=1.5))
        send(recorder, 1, 0, Gaussian(noise_multiplier=9.0))
        with pytest.raises(BudgetExceededError, match="client 1 has spent"):
            send(recorder, 1, 1, Gaussian(noise_multiplier=1.5))
    run = Run(tmp_path / "mine")
    assert [(r.round, r.client) for r in run.transcript().releases] == [(0, 0), (0, 1), (1, 0)]
    assert run.stopped is not None
    assert run.completed == 2
    assert run.stopped.sentence(client="client 1", completed=2, planned=4).startswith(
        "stopped in round 2 of 4:"
    )


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_last_planned_round_may_be_cut_short_too(tmp_path: Path, rounds: int) -> None:
    with capped(tmp_path, rounds=rounds) as recorder:
        for t in range(rounds - 1):
            for m in range(2):
                send(recorder, t, m)
        send(recorder, rounds - 1, 0)
        with pytest.raises(BudgetExceededError):
            send(recorder, rounds - 1, 1, Gaussian(noise_multiplier=0.1))
    run = Run(tmp_path / "mine")
    assert (run.ended, run.completed, len(run.entries())) == (True, rounds, 2 * rounds - 1)


def test_more_noise_may_be_chosen_after_a_refusal(tmp_path: Path) -> None:
    with capped(tmp_path, clients=1, rounds=3) as recorder:
        for t in range(2):
            send(recorder, t, 0)
        with pytest.raises(BudgetExceededError):
            recorder.reserve(client=0, event=LOUD)
        send(recorder, 2, 0, Gaussian(noise_multiplier=20.0))
    run = Run(tmp_path / "mine")
    assert (run.complete, run.ended, run.completed) == (True, False, 3)


def test_after_more_noise_the_run_may_not_end_early_without_another_reason(tmp_path: Path) -> None:
    recorder = capped(tmp_path, clients=1)
    for t in range(2):
        send(recorder, t, 0)
    with pytest.raises(BudgetExceededError):
        send(recorder, 2, 0)
    send(recorder, 2, 0, Gaussian(noise_multiplier=20.0))
    with pytest.raises(InputError, match="3 of 4 rounds were recorded whole"):
        recorder.__exit__(None, None, None)


def test_a_mechanism_over_budget_draws_no_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*arguments: Any) -> Any:
        raise AssertionError("noise was drawn")

    mechanism = Igpp(epsilon=8.0).mechanism(rounds=1)
    with capped(tmp_path) as recorder:
        monkeypatch.setattr(SecureNoise, "normal", forbidden)
        with pytest.raises(BudgetExceededError, match=r"client 0 has spent epsilon 0 of 3\.5"):
            recorder.release(mechanism, round=0, client=0, vectors=Z, labels=Y, encoder=DependsOn.PUBLIC)
    assert Run(tmp_path / "mine").completed == 0
    with pytest.raises(InputError, match="ended before its first release; there is nothing to audit"):
        cells([Run(tmp_path / "mine")])


def test_a_mechanism_within_its_budget_is_released(tmp_path: Path) -> None:
    mechanism = Igpp(epsilon=3.5).mechanism(rounds=4)
    with capped(tmp_path) as recorder:
        for t in range(4):
            for m in range(2):
                recorder.release(mechanism, round=t, client=m, vectors=Z, labels=Y, encoder=DependsOn.PUBLIC)
    assert (Run(tmp_path / "mine").ended, Run(tmp_path / "mine").completed) == (False, 4)


def test_a_fixed_budget_does_not_hold_noise_chosen_from_outputs(tmp_path: Path) -> None:
    chosen = Gaussian(noise_multiplier=9.0, contract=Contract(hyperparameters=DependsOn.PAST_OUTPUTS))
    recorder = capped(tmp_path, budget=Budget(epsilon=3.5, delta=1e-5))
    with pytest.raises(ValueError, match="chosen from earlier outputs"):
        recorder.reserve(client=0, event=chosen)
    Recorder(tmp_path / "other", **SIZES, budget=CAP).reserve(client=0, event=chosen)


def test_without_a_budget_nothing_is_refused_and_an_unknown_client_always(recorder: Recorder) -> None:
    recorder.reserve(client=0, event=NonPrivate())
    with pytest.raises(InputError, match="client=2: clients are numbered from 0 to 1"):
        recorder.reserve(client=2, event=LOUD)


def test_an_error_of_another_kind_ends_nothing(tmp_path: Path) -> None:
    recorder = capped(tmp_path)
    with pytest.raises(BudgetExceededError):
        recorder.reserve(client=0, event=NonPrivate())
    recorder.__exit__(RuntimeError, RuntimeError("mine"), None)
    assert not Run(tmp_path / "mine").ended


def test_one_client_going_on_keeps_why_another_one_could_not(tmp_path: Path) -> None:
    quiet = Gaussian(noise_multiplier=20.0)
    with capped(tmp_path) as recorder:
        for m in range(2):
            send(recorder, 0, m)
        for m in range(2):
            with pytest.raises(BudgetExceededError):
                send(recorder, 1, m, Gaussian(noise_multiplier=0.1))
        send(recorder, 1, 1, quiet)
    run = Run(tmp_path / "mine")
    assert [(e["round"], e["client"]) for e in run.entries()] == [(0, 0), (0, 1), (1, 1)]
    assert run.stopped is not None
    assert (run.ended, run.completed, run.stopped.client) == (True, 2, 0)


def test_of_two_clients_that_cannot_go_on_the_first_one_is_named(tmp_path: Path) -> None:
    with capped(tmp_path) as recorder:
        for m in (1, 0):
            with pytest.raises(BudgetExceededError):
                recorder.reserve(client=m, event=NonPrivate())
    stopped = Run(tmp_path / "mine").stopped
    assert stopped is not None
    assert stopped.client == 1


def test_a_client_that_sent_already_stops_in_the_next_round(tmp_path: Path) -> None:
    with capped(tmp_path) as recorder:
        send(recorder, 0, 0)
        with pytest.raises(BudgetExceededError):
            recorder.reserve(client=0, event=NonPrivate())
    run = Run(tmp_path / "mine")
    assert run.stopped is not None
    assert (run.completed, run.stopped.round) == (1, 1)


def test_after_the_last_round_nothing_is_left_to_stop(tmp_path: Path) -> None:
    recorder = capped(tmp_path, rounds=1)
    send(recorder, 0, 0)
    with pytest.raises(BudgetExceededError):
        recorder.reserve(client=0, event=NonPrivate())
    with pytest.raises(InputError, match="0 of 1 rounds were recorded whole"):
        recorder.__exit__(None, None, None)


@pytest.mark.parametrize("failing", [False, True])
def test_a_recorder_that_was_left_lets_the_folder_go(tmp_path: Path, failing: bool) -> None:
    fcntl = pytest.importorskip("fcntl")
    recorder = Recorder(tmp_path / "mine", **SIZES)
    with (tmp_path / "mine" / ".lock").open() as handle:
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if failing:
            recorder.__exit__(RuntimeError, RuntimeError("mine"), None)
        else:
            with pytest.raises(InputError, match="rounds were recorded whole"):
                recorder.__exit__(None, None, None)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with pytest.raises(InputError, match="the recorder was left; record a new run"):
        send(recorder, 0, 0)


@pytest.mark.parametrize("budget", [None, CAP])
def test_a_client_keeps_its_relation(tmp_path: Path, budget: tuple[float, float] | None) -> None:
    other = Gaussian(noise_multiplier=9.0, contract=Contract(relation=Relation.ADD_REMOVE))
    recorder = Recorder(tmp_path / "mine", **SIZES, budget=budget)
    send(recorder, 0, 0)
    send(recorder, 0, 1)
    with pytest.raises(ValueError, match="mix the relations 'add or remove one record' and 'replace one"):
        send(recorder, 1, 0, other)
    assert recorder.run.completed == 1
    send(recorder, 1, 0)


def test_our_own_mechanism_leaves_its_noise_to_be_checked(tmp_path: Path) -> None:
    class NoNoiseOnCounts(GaussianSums):
        def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
            sent = super().privatize(embeddings, noise, known)
            assert isinstance(sent.payload, SumsAndCounts)
            return sent._replace(payload=replace(sent.payload, totals=sent.hidden.counts))

    honest = SumCount(epsilon=2.0).mechanism(rounds=1)
    assert isinstance(honest, GaussianSums)
    for name, mechanism in (("honest", honest), ("bare", NoNoiseOnCounts(**vars(honest)))):
        with Recorder(tmp_path / name, clients=1, rounds=1, num_classes=2, dim=3) as recorder:
            recorder.release(mechanism, round=0, client=0, vectors=Z, labels=Y, encoder=DependsOn.PUBLIC)
        view = RunView.of(recorder.run)
        found = left(view, recorder.run.truth())[0].flat
        assert len(found) == 2 * 3 + 2
        assert (found[-2:] == 0).all() == (name == "bare")
        assert bool(contradicted([view.transcript])) == (name == "bare")


@pytest.mark.parametrize("value", [5.0, (1.0,), (1.0, 1e-5, 0.0), ("a", 1e-5), (True, 1e-5), "ab", {}])
def test_a_budget_that_is_no_pair_is_refused_in_one_sentence(value: object) -> None:
    with pytest.raises(InputError, match=r"budget=.*; give a pair \(epsilon, delta\), for example") as error:
        terms.limit(value)
    assert "\n" not in str(error.value)


def test_a_budget_may_be_a_list_of_two_numbers() -> None:
    assert terms.limit([1, 1e-5]) == Budget(epsilon=1.0, delta=1e-5, adaptive=True)


@pytest.mark.parametrize("budget", [(0.0, 1e-5), (1.0, 0.0), (math.nan, 1e-5), (1.0, 1.0)])
def test_a_budget_out_of_range_is_refused_and_nothing_is_written(
    tmp_path: Path, budget: tuple[float, float]
) -> None:
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        Recorder(tmp_path / "mine", **SIZES, budget=budget)
    assert not (tmp_path / "mine").exists()
