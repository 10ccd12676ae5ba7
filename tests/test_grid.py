"""Grids: products of named changes, laid over the base axis by axis; and what a command line changes in a study."""

import itertools
import json
import sys
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from privkit import grid, overrides
from privkit.cli import main
from privkit.cli.progress import EVERY, Lines
from privkit.config import Precision, RunConfig
from privkit.data.pacs import Pacs
from privkit.errors import InputError
from privkit.store import Run, RunInfo
from privkit.study import Study, load, merged, plans
from privkit.train.study import described

BASE: dict[str, Any] = {
    "data": {"name": "digits"},
    "encoder": {"name": "usps_cnn"},
    "method": {"name": "fedproto"},
    "defense": {"name": "igpp", "epsilon": 1.0},
    "rounds": 2,
}
DEFENSES = {"none": {"defense": "none"}, "igpp": None, "vpp": {"defense": {"name": "vpp", "epsilon": 1.0}}}


def loaded(tmp_path: Path, **sections: Any) -> Study:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump({**BASE, **sections}, sort_keys=False), encoding="utf-8")
    return load(path)


# ---------------------------------------------------------------------- products

names = st.text("abcxyz0189", min_size=1, max_size=4)
changes = st.dictionaries(
    st.sampled_from(["rounds", "budget", "seeds"]),
    st.integers(1, 9) | st.dictionaries(names, st.integers(1, 9)),
)
axes = st.dictionaries(
    names, st.dictionaries(names, changes | st.none(), min_size=1, max_size=3), min_size=1, max_size=3
)


@given(axes)
def test_a_grid_is_the_product_of_its_axes(one: dict[str, dict[str, Any]]) -> None:
    found = list(grid.points(one, where="here"))
    expected = list(itertools.product(*(axis.items() for axis in one.values())))
    assert [point.name for point in found] == ["-".join(name for name, _ in cell) for cell in expected]
    assert [point.changes for point in found] == [tuple(c or {} for _, c in cell) for cell in expected]


@given(st.lists(axes, min_size=1, max_size=3))
def test_several_grids_are_one_after_the_other(several: list[dict[str, Any]]) -> None:
    apart = [point for one in several for point in grid.points(one, where="here")]
    together = list(grid.points(several, where="here"))
    assert [(p.name, p.changes) for p in together] == [(p.name, p.changes) for p in apart]


@given(axes)
def test_an_axis_of_one_empty_value_adds_a_name_and_changes_nothing(one: dict[str, Any]) -> None:
    plain, longer = (list(grid.points(g, where="")) for g in (one, {**one, "an axis": {"one": None}}))
    assert [reduce(merged, p.changes, BASE) for p in plain] == [
        reduce(merged, p.changes, BASE) for p in longer
    ]
    assert [f"{p.name}-one" for p in plain] == [p.name for p in longer]


def test_cells_of_a_grid_are_those_written_out(tmp_path: Path) -> None:
    rounds = {3: {"rounds": 3}, "4": {"rounds": 4}}
    study = loaded(tmp_path, grid={"defense": DEFENSES, "rounds": rounds})
    written = {
        f"{d}-{r}": merged(merged(BASE, change or {}), {"rounds": int(r)})
        for d, change in DEFENSES.items()
        for r in rounds
    }
    assert study.cells == {n: RunConfig.from_settings(s, where=n) for n, s in written.items()}
    assert list(study.cells) == list(written)


def test_later_axes_are_laid_over_earlier_ones(tmp_path: Path) -> None:
    clip = {"wide": {"defense": {"clip_norm": 7.0}}}
    studies = [
        loaded(tmp_path, grid=dict(order))
        for order in itertools.permutations([("defense", {"vpp": DEFENSES["vpp"]}), ("clip", clip)])
    ]
    assert studies[0].cells["vpp-wide"].defense.settings()["clip_norm"] == 7.0
    # the other way round, another defense replaces the one whose clip norm was changed
    assert studies[1].cells["wide-vpp"].defense.settings()["clip_norm"] == 1.0


def test_grids_stand_beside_cells_and_keep_the_base(tmp_path: Path) -> None:
    local = {"method": {"local": {"method": "local_only"}}, "size": {"small": {"data": {"per_class": 50}}}}
    study = loaded(tmp_path, cells={"alone": {"rounds": 1}}, grid=[{"defense": DEFENSES}, local], seeds=3)
    assert list(study.cells) == ["alone", "none", "igpp", "vpp", "local-small"]
    assert study.cells["igpp"] == RunConfig.from_settings(BASE, where="here")
    assert study.cells["local-small"].data.settings()["per_class"] == 50
    assert (study.seeds, study.partial) == (3, False)


def test_anchors_and_merge_keys_work_in_a_grid(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    text = yaml.safe_dump(BASE).replace("defense:", "defense: &one") + (
        "grid:\n  defense:\n    a: {defense: &two {<<: *one, epsilon: 4.0}}\n"
        "    b: {defense: {<<: *two, clip_norm: 2.0}}\n  rounds: &r {short: {rounds: 1}}\n"
    )
    path.write_text(text, encoding="utf-8")
    cells = load(path).cells
    assert cells["a-short"].defense.settings()["epsilon"] == 4.0
    assert cells["b-short"].defense.settings()["clip_norm"] == 2.0
    assert cells["b-short"].rounds == 1


@pytest.mark.parametrize(
    ("grids", "message"),
    [
        (7, r"study\.yaml grid is 7; write axes such as data: and defense:\."),
        ([], r"grid is \[\]; write axes"),
        ({}, r"grid is \{\}; write axes"),
        (None, "grid is None; write axes"),
        ({"": {"a": {}}}, "grid: an axis's name is empty; give it one"),
        ({None: {"a": {}}}, "grid: YAML reads an axis's name as None; write it in quotes"),
        ({True: {"a": {}}}, "grid: YAML reads an axis's name as True"),
        ({"defense": {"": {}}}, "grid axis defense: a value's name is empty; give it one"),
        ({"a": {"x" * 150: {}}, "b": {"y" * 150: {}}}, "has 301 bytes and names a folder; use at most 200"),
        ([{"a": {"x": {}}}, 3], "grid 2 is 3; write axes"),
        ([{"a": {"x": {}}}, {"defense": ["igpp"]}], r"grid 2 axis defense is \['igpp'\]; write its values"),
        ({"defense": {}}, r"grid axis defense is \{\}; write its values"),
        ({"defense": {"igpp": 5}}, "grid axis defense value igpp is 5; write what it changes below its name"),
        (
            {"defense": {False: {}}},
            "grid axis defense: YAML reads a value's name as False; write it in quotes",
        ),
        ({"defense": {None: {}}}, "YAML reads a value's name as None"),
        ({"defense": {"a b": {}}}, r"cell name 'a b' cannot name a folder"),
        ({"a": {"x": {}, "x-y": {}}, "b": {"y-z": {}, "z": {}}}, "cell name 'x-y-z' appears twice"),
        ([{"a": {"x": {}}}, {"b": {"x": {}}}], "cell name 'x' appears twice; rename one of the two"),
        (
            [{"a": {"x": {}}}, {"d": {"vpp": {}, "odd": {"defense": {"epsilon": -1}}}, "r": {"few": {}}}],
            r"study\.yaml grid 2 \(d odd, r few\): defense igpp: epsilon=-1: input should be greater",
        ),
        (
            {"d": {"x": {"defence": "none"}, "y": {}}},
            r"grid \(d x\): unknown key 'defence'.*Did you mean defense\?",
        ),
    ],
)
def test_what_is_no_grid_is_refused_in_one_sentence(tmp_path: Path, grids: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        loaded(tmp_path, grid=grids)
    assert "\n" not in str(refused.value)


def test_a_value_named_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(BASE) + "grid: {defense: {a: {}, a: {rounds: 3}}}", encoding="utf-8")
    with pytest.raises(InputError, match="key 'a' appears twice"):
        load(path)


# ---------------------------------------------------------------------- what a command line changes


@pytest.fixture
def study(tmp_path: Path) -> Study:
    pacs = {"data": {"name": "pacs", "root": "elsewhere", "side": 64}, "encoder": "efficientnet_lite0"}
    return loaded(tmp_path, grid={"data": {"pacs": pacs, "digits": {}}, "defense": DEFENSES})


def test_a_folder_is_given_to_the_data_sets_that_read_one_and_to_nothing_else(study: Study) -> None:
    changed = overrides.with_root(study, Path("mine"))
    for name, config in study.cells.items():
        settings, before = changed.cells[name].settings(), config.settings()
        if name.startswith("pacs"):
            assert settings["data"].pop("root") == "mine"
            assert before["data"].pop("root") == "elsewhere"
        assert settings == before


def test_bad_records_are_left_out_where_that_can_be_asked_for(study: Study) -> None:
    changed = overrides.skipping_bad(study)
    for name, config in changed.cells.items():
        assert getattr(config.data, "skip_bad", None) is (True if isinstance(config.data, Pacs) else None)
        assert config.encoder == study.cells[name].encoder


def test_precision_is_set_in_every_cell_and_nothing_else_is(study: Study) -> None:
    changed = overrides.with_precision(study, Precision.BF16)
    for name, config in changed.cells.items():
        assert config.settings() == {**study.cells[name].settings(), "precision": "bf16"}


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        (["pacs-igpp"], ["pacs-igpp"]),
        (["*-igpp", "pacs-*"], ["pacs-none", "pacs-igpp", "pacs-vpp", "digits-igpp"]),
        (["*"], None),
    ],
)
def test_cells_are_chosen_by_pattern_in_their_own_order(
    study: Study, patterns: list[str], kept: list[str] | None
) -> None:
    chosen = overrides.only(study, patterns)
    assert list(chosen.cells) == (kept or list(study.cells))
    assert chosen.partial is (kept is not None)


def test_a_part_of_a_study_never_takes_the_place_of_the_whole(study: Study) -> None:
    one = overrides.only(study, ["pacs-igpp"])
    assert [plan.name for plan in plans(one)] == ["pacs-igpp/seed-0"]
    assert [plan.name for plan in plans(Study(cells=one.cells, seeds=1))] == ["."]


def test_what_no_cell_can_take_is_refused(study: Study) -> None:
    digits = overrides.only(study, ["digits-*"])
    with pytest.raises(
        InputError, match=r"no data set of this study \(digits\) is read from a folder of yours; leave"
    ):
        overrides.with_root(digits, Path("mine"))
    with pytest.raises(InputError, match="can leave records out; leave --skip-bad out"):
        overrides.skipping_bad(digits)
    with pytest.raises(
        InputError, match=r"no cell is named 'digit'; cells are pacs-none, .*\* stands for any"
    ):
        overrides.only(study, ["pacs-*", "digit"])


# ---------------------------------------------------------------------- the command


def trained(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["privkit", "train", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small = {"data": {"name": "digits", "per_class": 20}, "split": {"pool": 0.6}}
    path = tmp_path / "my.study.yaml"
    path.write_text(yaml.safe_dump({**BASE, **small, "grid": {"d": DEFENSES}}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def test_without_out_runs_go_where_the_configuration_is_named(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trained(monkeypatch, written, "--cells", "igpp,v*", "--dtype", "bf16") == 0
    out = capsys.readouterr().out
    assert "2 runs in runs/my.study. Next: privkit audit --run runs/my.study" in out
    runs = sorted(Path("runs/my.study").rglob("run.json"))
    assert [run.parent.as_posix() for run in runs] == [
        "runs/my.study/igpp/seed-0",
        "runs/my.study/vpp/seed-0",
    ]
    assert {json.loads(run.read_text())["run"]["config"]["precision"] for run in runs} == {"bf16"}


def test_the_rest_of_a_study_is_trained_beside_a_part_of_it(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trained(monkeypatch, written, "--cells", "igpp", "--out", "out") == 0
    before = {p: p.read_bytes() for p in Path("out/igpp").rglob("*") if p.is_file()}
    assert trained(monkeypatch, written, "--out", "out") == 0
    assert {p.parent.parent.name for p in Path("out").rglob("run.json")} == {"none", "igpp", "vpp"}
    assert {p: p.read_bytes() for p in Path("out/igpp").rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--data", "mine"), "no data set of this study (digits) is read from a folder"),
        (("--skip-bad",), "can leave records out; leave --skip-bad out"),
        (("--cells", ""), "--cells '' names no cell; give names with commas between, or leave it out"),
        (("--cells", "igpp", "--cells", ","), "--cells ',' names no cell"),
        (("--cells", "igp"), "no cell is named 'igp'; cells are igpp, none, vpp"),
        (("--dtype", "fp16"), "'fp16' is not one of"),
    ],
)
def test_what_the_command_cannot_do_is_refused_before_anything_is_written(
    written: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    complaint: str,
) -> None:
    assert trained(monkeypatch, written, *arguments) == 2
    assert complaint in " ".join(capsys.readouterr().err.split())
    assert not Path("runs").exists()


def test_a_study_that_is_complete_says_so_and_changes_nothing(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trained(monkeypatch, written) == 0
    assert "Nothing to do" not in capsys.readouterr().out
    before = {p: p.stat().st_mtime_ns for p in Path("runs").rglob("*") if p.is_file()}
    assert trained(monkeypatch, written) == 0
    assert capsys.readouterr().out.startswith("Nothing to do: 3 runs are complete, and unchanged.\n")
    assert {p: p.stat().st_mtime_ns for p in Path("runs").rglob("*") if p.is_file()} == before


def test_a_training_says_what_it_trains_where_there_is_no_terminal(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trained(monkeypatch, written, "--seeds", "2") == 0
    assert capsys.readouterr().err.splitlines() == [
        "encode: 0 of 1",
        "encode: done",
        "train fedproto, 6 runs (igpp, none, vpp), rounds: 0 of 2",
        "train fedproto, 6 runs (igpp, none, vpp), rounds: done",
    ]


def test_a_few_words_name_few_cells(tmp_path: Path) -> None:
    several = plans(loaded(tmp_path, cells={name: {} for name in "abcde"}))
    assert described(several) == "fedproto, 5 runs (a, b, c, 2 more), rounds"
    assert described(several[:1]) == "fedproto, 1 run (a), rounds"


def test_plain_lines_come_now_and_then_with_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = Lines(clock=lambda: now)
    for done in range(3, 21):
        lines("train", done, 20)
        now += 10
    lines("train", 20, 20)
    lines("train", 0, 4)
    assert capsys.readouterr().err.splitlines() == [
        "train: 3 of 20",
        "train: 6 of 20, about 2 min left",
        "train: 9 of 20, about 2 min left",
        "train: 12 of 20, about 1 min left",
        "train: 15 of 20, about 50 s left",
        "train: 18 of 20, about 20 s left",
        "train: done",
        "train: 0 of 4",
    ]


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=60))
def test_plain_lines_are_never_closer_than_they_may_be(steps: list[float]) -> None:
    import contextlib
    import io

    now, at, shown = 0.0, [], io.StringIO()
    lines = Lines(clock=lambda: now)
    with contextlib.redirect_stderr(shown):
        for done, step in enumerate(steps):
            before = shown.tell()
            lines("train", done, len(steps))
            at += [now] if shown.tell() > before else []
            now += step
        lines("train", len(steps), len(steps))
    assert all(later - earlier >= EVERY for earlier, later in itertools.pairwise(at))
    assert shown.getvalue().endswith("train: done\n")


HASHES = {"records.photo": "1", "labels.photo": "2", "features.photo": "3", "test.photo": "4", "encoder": "5"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"records.photo": "9", "features.photo": "9"}, "features and records of photo changed"),
        ({"test.photo": "9"}, "test records of photo changed"),
        ({"encoder": "9", "features.photo": "9"}, "encoder, features of photo changed"),
        ({"records.sketch": "9"}, "records of sketch changed"),
    ],
)
def test_changed_data_are_refused_in_words_with_their_domain(
    tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    info = RunInfo(cell="a", seed=0, rounds=1, clients=("photo",), num_classes=2, dim=2, data=HASHES)
    Run.create(tmp_path / "run", info).close()
    with pytest.raises(InputError) as refused:
        Run(tmp_path / "run").refuse_change(replace(info, data=HASHES | changed))
    assert str(refused.value) == (
        f"{tmp_path / 'run'} was created with other data: {said}; use a new --out folder, or the data it was "
        "created with."
    )
