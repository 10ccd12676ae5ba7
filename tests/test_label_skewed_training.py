"""Training where clients hold other classes than their neighbours, and refusals of data that cannot be trained on."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from privkit.cli.app import app
from privkit.data._base import AbstractData, Domain, Labelled
from privkit.data.digits import Digits
from privkit.errors import InputError
from privkit.models.usps_cnn import UspsCnn
from privkit.release import Prototypes
from privkit.store import Run
from privkit.study import Study, load, merged
from privkit.train.encoded import encode
from privkit.train.loop import train
from tests.test_train import assert_same, tree, uploads

BASE: dict[str, Any] = {
    "data": "digits",
    "encoder": "usps_cnn",
    "model": {"adapter": 4},
    "method": {"name": "fedproto", "training": {"batch_size": 8, "learning_rate": 0.01}},
    "defense": {"name": "igpp", "epsilon": 8.0},
    "split": {"pool": 0.8, "reference": 0.1, "test": 0.1},
    "rounds": 2,
}
_MNIST = Digits(domains=("mnist",), per_class=40).load()[0]
POOL = Labelled(*(a[np.argsort(_MNIST.labels, kind="stable")] for a in (_MNIST.records, _MNIST.labels)))
"""Forty digits of each class, class by class."""
TEST = Labelled(*(a[np.arange(len(POOL.labels)) % 40 >= 30] for a in (POOL.records, POOL.labels)))
"""The last ten of each class: what all clients are tested on."""


@pytest.fixture(scope="module", autouse=True)
def fast_disk() -> Iterator[None]:
    """Wait for no disk: only a power cut needs that, a kill does not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


def client(name: str, counts: dict[int, int], *, first: int = 0, test: Labelled | None = TEST) -> Domain:
    """Return a client with some records of each class, from a place within the class on."""
    rows = np.concatenate([np.arange(n) + 40 * label + first for label, n in counts.items()])
    return Domain(POOL.records[rows], POOL.labels[rows], name, test)


class Given(AbstractData):
    """Some domains, as they are."""

    num: int = 10
    made: Callable[[], tuple[Domain, ...]]

    @property
    def num_classes(self) -> int:
        return self.num

    def load(self) -> tuple[Domain, ...]:
        return self.made()

    def settings(self) -> dict[str, Any]:
        return {"name": "given", "num": self.num}


def study(folder: Path, domains: Sequence[Domain], *, num_classes: int = 10, **changes: Any) -> Study:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(merged(BASE, changes), sort_keys=False))
    config = load(path).cells["study"]
    data = Given(num=num_classes, made=lambda: tuple(domains))
    return Study(cells={"study": config.model_copy(update={"data": data})}, seeds=1)


def trained(folder: Path, domains: Sequence[Domain], **changes: Any) -> Run:
    (path,) = train(study(folder, domains, **changes), folder / "runs", device="cpu")
    return Run(path)


def accuracies(run: Run) -> dict[str, float]:
    """Return the last accuracy of each client."""
    rows = pq.read_table(run.path / "metrics.parquet").to_pylist()
    return {row["domain"]: row["accuracy"] for row in rows}


def classes_sent(run: Run) -> dict[int, list[int]]:
    return {client: payload.labels.tolist() for _, client, payload in uploads(run.path)}


SKEWED = (
    client("only-3", {3: 12}),
    client("low", {0: 12, 1: 10, 2: 8}, first=12),
    client("high", dict.fromkeys(range(4, 10), 8), first=12),
)


# ---------------------------------------------------------------------- single classes and shared tests


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("skewed"), SKEWED)


def test_a_client_releases_the_classes_that_it_holds_and_no_other(skewed):
    assert classes_sent(skewed) == {0: [3], 1: [0, 1, 2], 2: [4, 5, 6, 7, 8, 9]}
    assert skewed.state(2)["server.holders"].tolist() == [1] * 10


def test_all_clients_are_tested_on_the_same_records(skewed):
    """So one that never saw the other classes cannot classify them: at best its own share of the test records."""
    found = accuracies(skewed)
    assert found["only-3"] == pytest.approx(0.1)
    assert 0.1 < found["low"] <= 0.3
    assert 0.2 < found["high"] <= 0.6
    assert len({skewed.info.data[f"test.{name}"] for name in skewed.info.clients}) == 1


def test_shared_test_records_are_encoded_and_hashed_once(tmp_path, monkeypatch):
    encoded: list[int] = []
    real = UspsCnn.encode

    def counted(self: UspsCnn, records: np.ndarray) -> np.ndarray:
        encoded.append(len(records))
        return real(self, records)

    monkeypatch.setattr(UspsCnn, "encode", counted)
    monkeypatch.setenv("PRIVKIT_CACHE", str(tmp_path / "cache"))
    data = encode(study(tmp_path, SKEWED).cells["study"])
    assert sorted(encoded) == [12, 30, 48, 100]
    assert data.test[0] is data.test[1] is data.test[2]
    assert all(data.keeps_tests(m) for m in range(3))


def test_members_are_half_of_the_pool_of_every_class_and_nothing_else_is_asked(skewed):
    records, members = skewed.records("records"), skewed.truth().members
    assert records is not None
    assert np.bincount(records.labels[records.clients == 1]).tolist() == [8, 8, 6]
    assert np.bincount(records.labels[(records.clients == 1) & members]).tolist() == [4, 4, 3]


def test_a_skewed_run_stopped_between_rounds_goes_on_to_the_same_bytes(skewed, tmp_path):
    def stop(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("train", 1):
            raise KeyboardInterrupt

    config = study(tmp_path, SKEWED)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "runs", device="cpu", progress=stop)
    train(config, tmp_path / "runs", device="cpu")
    assert_same(tmp_path / "runs", skewed.path)


def test_a_class_that_is_missing_at_a_client_is_missed_by_nobody(tmp_path):
    """Test records are the clients' own here; one class is held by nobody, though the head has a row for it."""
    own = (
        client("even", {0: 20, 2: 20, 4: 20}, test=None),
        client("most", {0: 20, 1: 20, 2: 20, 3: 20}, first=20, test=None),
    )
    run = trained(tmp_path, own)
    assert classes_sent(run) == {0: [0, 2, 4], 1: [0, 1, 2, 3]}
    assert run.state(2)["params.head.weight"].shape[-1] == 10
    assert run.state(2)["server.holders"].tolist() == [2, 1, 2, 1, 1, 0, 0, 0, 0, 0]
    assert min(accuracies(run).values()) > 0.5


def test_test_records_may_lack_a_class(tmp_path):
    some = Labelled(TEST.records[10:30], TEST.labels[10:30])
    run = trained(tmp_path, [client("a", {0: 20, 1: 20}, test=some), client("b", {1: 9, 2: 20}, first=20)])
    assert accuracies(run)["a"] <= 0.5  # it never saw the class of the other half
    assert len({run.info.data[f"test.{name}"] for name in "ab"}) == 2


def test_domains_with_and_without_tests_of_their_own_go_together(tmp_path):
    run = trained(tmp_path, [SKEWED[0], client("own", {0: 20, 1: 20}, test=None)])
    assert "test.own" not in run.info.data
    assert accuracies(run)["own"] > 0.5


# ---------------------------------------------------------------------- classes that are too small


SMALL = (
    client("a", {0: 12, 1: 1, 2: 2}),
    client("b", {0: 12, 3: 12}, first=12),
    client("c", {4: 10, 5: 1}),
)
LEFT_OUT = [
    "domain a: 3 of 15 records left out, their classes are too small to be split (class 1: 1, class 2: 2).",
    "domain c: 1 of 11 records left out, their classes are too small to be split (class 5: 1).",
]
DROP: dict[str, Any] = {"split": {"small_classes": "drop"}}


def test_small_classes_are_left_out_and_said(tmp_path):
    said: list[str] = []
    config = study(tmp_path, SMALL, **DROP)
    (path,) = train(config, tmp_path / "runs", device="cpu", notice=said.append)
    assert said == LEFT_OUT
    run = Run(path)
    assert classes_sent(run) == {0: [0], 1: [0, 3], 2: [4]}
    records, reference = run.records("records"), run.records("reference")
    assert records is not None
    assert reference is not None
    assert set(records.labels) | set(reference.labels) == {0, 3, 4}


def test_every_sentence_is_said_once_whatever_the_number_of_runs(tmp_path):
    said: list[str] = []
    one = study(tmp_path, SMALL, **DROP).cells["study"]
    other = one.model_copy(update={"rounds": 1})
    train(Study(cells={"x": one, "y": other}, seeds=2), tmp_path / "r", device="cpu", notice=said.append)
    assert said == LEFT_OUT


def test_a_sentence_that_is_not_about_all_cells_names_those_it_is_about(tmp_path):
    said: list[str] = []
    skewed = study(tmp_path, SMALL, **DROP).cells["study"]
    whole = study(tmp_path, SKEWED, num_classes=11, **DROP).cells["study"]
    both = Study(cells={"x": skewed, "whole": whole, "y": skewed}, seeds=1)
    train(both, tmp_path / "r", device="cpu", notice=said.append)
    assert said == [f"x, y: {sentence}" for sentence in LEFT_OUT]


def test_the_command_prints_what_is_left_out(tmp_path, monkeypatch):
    config = study(tmp_path, SMALL, **DROP)
    monkeypatch.setattr("privkit.study.tunes", lambda path: False)
    monkeypatch.setattr("privkit.study.load", lambda path, seeds: config)
    shown = CliRunner().invoke(app, ["train", "study.yaml", "--out", str(tmp_path / "runs")])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[:2] == LEFT_OUT


def test_nothing_is_said_where_nothing_is_left_out(tmp_path):
    said: list[str] = []
    train(study(tmp_path, SKEWED, rounds=1, **DROP), tmp_path / "r", device="cpu", notice=said.append)
    assert said == []


# ---------------------------------------------------------------------- refusals


def refused(config: Study, root: Path, message: str) -> None:
    """Check that a study is refused in one sentence, and that nothing is written."""
    with pytest.raises(InputError, match=message) as error:
        train(config, root, device="cpu")
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")
    assert not root.exists()


EMPTY = Labelled(TEST.records[:0], TEST.labels[:0])
BEYOND = Labelled(TEST.records, TEST.labels + 1)


@pytest.mark.parametrize(
    ("odd", "changes", "message"),
    [
        (client("one", {3: 1}), {}, "class 3 of domain one has 1 record, too few .*small_classes: drop"),
        (client("one", {3: 1}), DROP, "domain one has no class that is large enough; raise split.pool"),
        (client("few", {3: 2, 4: 9}), {}, "class 3 of domain few has 2 records, too few"),
        (
            client("few", {3: 3, 4: 9}),
            {},
            "class 3 of a client has 1 record, and smallest_class is 2: give it",
        ),
        (
            client("few", {3: 3, 4: 9}),
            {"defense": {"name": "vpp", "epsilon": 8.0}},
            "client few: class 3 of a client has 1 record, and smallest_class is 2",
        ),
        (client("single", {3: 20}, test=None), {}, "domain single has records of 1 class; give at least two"),
        (
            client("single", {3: 20, 4: 1}, test=None),
            DROP,
            "domain single has only one class that is large enough",
        ),
        (client("untested", {3: 20}, test=EMPTY), {}, r"untested \(test records\) has records of 0 classes"),
        (
            client("beyond", {3: 20}, test=BEYOND),
            {},
            r"beyond \(test records\) has labels from 1 to 10; number",
        ),
        (client("none", {3: 0}), {}, "domain none has records of 0 classes; give at least one class"),
    ],
)
def test_data_that_cannot_be_trained_on_are_refused(tmp_path, odd, changes, message):
    refused(study(tmp_path, [SKEWED[1], odd], **changes), tmp_path / "runs", message)


@pytest.mark.parametrize("name", ["vpp", "vpdr"])
def test_a_client_with_one_class_may_take_part_in_a_choice_by_scores(tmp_path, name):
    noisy = {"name": name, "epsilon": 8.0}
    assert classes_sent(trained(tmp_path, SKEWED, rounds=1, defense=noisy))[0] == [3]


def test_a_single_record_of_a_class_may_be_released_if_that_is_wanted(tmp_path):
    domains = [client("few", {3: 3, 4: 9}), SKEWED[1]]
    for name in ("igpp", "vpp"):
        (tmp_path / name).mkdir()
        run = trained(tmp_path / name, domains, defense={"name": name, "epsilon": 8.0, "smallest_class": 1})
        sent = next(payload for _, client, payload in uploads(run.path) if client == 0)
        assert isinstance(sent, Prototypes)
        assert sent.counts is not None
        assert dict(zip(sent.labels.tolist(), sent.counts.tolist(), strict=True)) == {3: 1, 4: 3}


def test_a_label_beyond_the_classes_is_refused(tmp_path):
    refused(
        study(tmp_path, SKEWED, num_classes=9),
        tmp_path / "runs",
        r"domain only-3 \(test records\) has labels from 0 to 9; number its 9 classes from 0 to 8",
    )


@pytest.mark.parametrize(("width", "rho"), [(4, 0.2), (3, 0.3), (1, 0.5)])
def test_less_than_one_informative_coordinate_is_refused(tmp_path, width, rho):
    narrow = {"name": "projected", "encoder": "usps_cnn", "output_dim": width}
    vpp = {"name": "vpp", "epsilon": 8.0, "rho": rho}
    refused(study(tmp_path, SKEWED, encoder=narrow, defense=vpp), tmp_path / "runs", r"rho|dim=1 leaves")


@pytest.mark.parametrize("name", ["igpp", "vpp", "vpdr"])
@pytest.mark.parametrize("radius", [0, -1.0, float("nan")])
def test_a_radius_that_is_none_is_refused(tmp_path, name, radius):
    with pytest.raises(InputError, match="clip_norm="):
        study(tmp_path, SKEWED, defense={"name": name, "epsilon": 8.0, "clip_norm": radius})


# ---------------------------------------------------------------------- things that several domains show


def negative(shown: Labelled, things: np.ndarray | None, **named: Any) -> Domain:
    """Return the same digits, white on black instead of black on white."""
    return Domain(255 - shown.records, shown.labels, "negative", things=things, **named)


def positive(rows: np.ndarray) -> Domain:
    return Domain(POOL.records[rows], POOL.labels[rows], "positive", things=rows)


def test_a_thing_is_trained_on_in_all_domains_or_in_none(tmp_path):
    rows = np.arange(len(POOL.labels))
    run = trained(tmp_path, [positive(rows), negative(positive(rows[::2]), rows[::2])])
    records, members = run.records("records"), run.truth().members
    assert records is not None
    features = [
        inputs.x
        for inputs in encode(study(tmp_path, [positive(rows), negative(POOL, rows)]).cells["study"]).own
    ]
    place = [{row.tobytes(): i for i, row in enumerate(x)} for x in features]
    sides: dict[int, set[bool]] = {}
    for vector, m, member in zip(records.vectors, records.clients, members, strict=True):
        sides.setdefault(place[m][vector.tobytes()], set()).add(bool(member))
    assert len(sides) == 2 * 16 * 10
    assert all(len(side) == 1 for side in sides.values())
    assert run.info.data["things.positive"] != run.info.data["things.negative"]


def test_things_in_some_domains_only_are_refused(tmp_path):
    rows = np.arange(len(POOL.labels))
    refused(
        study(tmp_path, [positive(rows), negative(POOL, None)]),
        tmp_path / "runs",
        "domain negative does not say what its records show, and others do; name things in all domains or none",
    )
    refused(
        study(tmp_path, [positive(rows), negative(POOL, rows, test=TEST)]),
        tmp_path / "runs",
        "domain negative keeps test records of its own, and shares things with others",
    )


def test_a_thing_of_two_classes_is_refused(tmp_path):
    rows = np.arange(len(POOL.labels))
    other = Domain(255 - POOL.records, np.roll(POOL.labels, 1), "negative", things=rows)
    refused(
        study(tmp_path, [positive(rows), other]), tmp_path / "runs", "thing 0 is of class 0 and of class 9"
    )


def test_other_things_are_another_data_set(tmp_path):
    rows = np.arange(len(POOL.labels))
    run = trained(tmp_path, [positive(rows), negative(POOL, rows)], rounds=1)
    before = tree(run.path)
    changed = study(tmp_path, [positive(rows), negative(POOL, rows + 400)], rounds=1)
    with pytest.raises(InputError, match=r"other data: things shown of negative changed"):
        train(changed, run.path, device="cpu")
    assert tree(run.path) == before
