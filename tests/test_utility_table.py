"""The utility table, straight from runs: its numbers against pandas and scipy, its baselines, its refusals."""

import csv
import io
import itertools
import json
import math
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privkit.cli import main
from privkit.errors import InputError
from privkit.study import load
from reports import findings_file, utility_cells, utility_table
from reports.utility_baseline import baseline
from reports.utility_cells import UtilityCell
from reports.utility_paired import paired, signed_rank
from tests import made

STUDY: dict[str, Any] = {
    "data": {"name": "digits", "per_class": 20},
    "encoder": "usps_cnn",
    "rounds": 2,
    "seeds": 4,
    "method": {"name": "fedproto", "predict": "prototype"},
    "defense": "none",
    "grid": [
        {
            "defense": {
                "none": {},
                "igpp-8": {"defense": {"name": "igpp", "epsilon": 8.0}},
                "igpp-1": {"defense": {"name": "igpp", "epsilon": 1.0}},
                "vpp-8": {"defense": {"name": "vpp", "epsilon": 8.0}},
                "dcr-8": {"defense": {"name": "dcr", "release": {"name": "igpp", "epsilon": 8.0}}},
                "oracle-8": {"defense": {"name": "vpp", "epsilon": 8.0, "partition": "oracle"}},
            }
        },
        {"local": {"local": {"method": "local_only"}}},
    ],
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven cells of four seeds each, trained and never audited."""
    from privkit.train.loop import train

    folder = tmp_path_factory.mktemp("utility")
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    train(load(folder / "study.yaml"), folder / "runs", device="cpu")
    return folder / "runs"


def printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    return commanded(monkeypatch, capsys, "table", *arguments)


def commanded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["privkit", *map(str, arguments)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, " ".join(err.split())


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], trained: Path) -> Any:
    """Return the rows of a utility table by cell, as JSON has them."""

    def table(*options: object) -> dict[str, dict[str, Any]]:
        code, out, err = printed(monkeypatch, capsys, "utility", trained, "--format", "json", *options)
        assert (code, err) == (0, "")
        return {row["cell"]: row for row in json.loads(out)["rows"]}

    return table


def by_pandas(trained: Path) -> Any:
    """Return accuracy in the last round, one row per cell, seed and domain, read by another hand."""
    found = []
    for path in sorted(trained.rglob("metrics.parquet")):
        frame = pd.read_parquet(path)
        run = json.loads((path.parent / "run.json").read_text(encoding="utf-8"))["run"]
        found.append(frame[frame["round"] == frame["round"].max()].assign(cell=run["cell"], seed=run["seed"]))
    return pd.concat(found)


# ---------------------------------------------------------------------- numbers


def test_every_number_is_what_pandas_computes(rows: Any, trained: Path) -> None:
    frame, found = by_pandas(trained), rows()
    assert (
        set(found)
        == set(frame["cell"])
        == {"none", "igpp-8", "igpp-1", "vpp-8", "dcr-8", "oracle-8", "local"}
    )
    for cell, part in frame.groupby("cell"):
        row = found[cell]
        domains = part.groupby("domain")["accuracy"].mean()
        for name, value in domains.items():
            assert row[f"domain_{name}"] == pytest.approx(value, rel=1e-12)
        seeds = part.groupby("seed")["accuracy"].mean()
        assert row["avg"] == pytest.approx(seeds.mean(), rel=1e-12)
        assert row["std_domains"] == pytest.approx(domains.std(), rel=1e-12)
        assert row["std_seeds"] == pytest.approx(seeds.std(), rel=1e-12)
        low, high = stats.t.interval(0.95, 3, loc=seeds.mean(), scale=stats.sem(seeds))
        assert (row["avg_low"], row["avg_high"]) == pytest.approx((low, high), rel=1e-9)
        assert row["seeds"] == 4


@pytest.mark.parametrize(
    ("against", "baselines"),
    [
        (None, {"vpp-8": "igpp-8", "dcr-8": "igpp-8", "oracle-8": "igpp-8"}),
        ("none", dict.fromkeys(("igpp-8", "igpp-1", "vpp-8", "dcr-8", "oracle-8"), "none")),
        ("local_only", dict.fromkeys(("none", "igpp-8", "igpp-1", "vpp-8", "dcr-8", "oracle-8"), "local")),
        ("igpp-1", dict.fromkeys(("none", "igpp-8", "vpp-8", "dcr-8", "oracle-8", "local"), "igpp-1")),
    ],
)
def test_differences_are_paired_tested_and_corrected_as_scipy_has_it(
    rows: Any, trained: Path, against: str | None, baselines: dict[str, str]
) -> None:
    found = rows(*(["--against", against] if against else []))
    seeds = by_pandas(trained).groupby(["cell", "seed"])["accuracy"].mean().unstack()
    p_values: dict[str, dict[str, float]] = {"p_t": {}, "p_rank": {}}
    for cell, other in baselines.items():
        row, one, two = found[cell], seeds.loc[cell].to_numpy(), seeds.loc[other].to_numpy()
        assert row["against"] == f"{trained.as_posix()}: {other}"
        assert row["difference"] == pytest.approx((one - two).mean(), abs=1e-12)
        test: Any = stats.ttest_rel(one, two)
        interval = test.confidence_interval(0.95)
        assert (row["difference_low"], row["difference_high"]) == pytest.approx(tuple(interval), abs=1e-9)
        assert row["p_t"] == (None if math.isnan(test.pvalue) else pytest.approx(test.pvalue, rel=1e-6))
        assert row["p_rank"] == pytest.approx(by_enumeration((one - two).round(12)), rel=1e-12)
        p_values["p_rank"][cell] = row["p_rank"]
        if row["p_t"] is None:  # DCR changes no prototype of a frozen encoder
            assert (cell, row["difference"], row["p_rank"], row["p_t_holm"]) == ("dcr-8", 0.0, 1.0, None)
            assert row["reason"] == "minus igpp: paired t: the difference is the same in every seed"
        else:
            p_values["p_t"][cell] = row["p_t"]
    for test, given_p in p_values.items():
        for cell, p in by_holm(given_p).items():
            assert found[cell][f"{test}_holm"] == pytest.approx(p, rel=1e-12)
    for cell in found.keys() - baselines.keys():
        assert found[cell]["p_t"] is None
        assert found[cell]["p_t_holm"] is None
        assert found[cell]["difference"] is None


def by_holm(p_values: dict[str, float]) -> dict[str, float]:
    """Return Holm's correction in its textbook form."""
    order = sorted(p_values, key=p_values.__getitem__)
    steps = [min(1.0, (len(order) - rank) * p_values[name]) for rank, name in enumerate(order)]
    return dict(zip(order, itertools.accumulate(steps, max), strict=True))


def by_enumeration(d: np.ndarray) -> float:
    """Return the signed-rank p-value from every sign pattern."""
    d = d[d != 0]
    ranks = stats.rankdata(np.abs(d))
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s)
        for signs in itertools.product((0, 1), repeat=len(d))
    ]
    mean = ranks.sum() / 2
    return float(np.mean([abs(s - mean) >= abs(ranks[d > 0].sum() - mean) - 1e-9 for s in sums]))


@given(st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9))
def test_the_signed_rank_test_counts_every_sign_pattern_ties_and_zeros_included(d: list[float]) -> None:
    assert signed_rank(np.array(d)) == pytest.approx(by_enumeration(np.array(d)), rel=1e-12)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30, unique_by=abs))
def test_the_signed_rank_test_is_scipys_where_there_are_no_ties(d: list[float]) -> None:
    values = np.array([x or 0.5 for x in d])
    if len(np.unique(np.abs(values))) == len(values):
        test: Any = stats.wilcoxon(values, method="exact")
        assert signed_rank(values) == pytest.approx(test.pvalue, rel=1e-9)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_swapping_two_cells_turns_the_difference_and_nothing_else(
    one: list[float], other: list[float]
) -> None:
    first, second = (dict(enumerate(values)) for values in (one, other))
    there, back = paired(first, second), paired(second, first)
    assert there.difference.mean == pytest.approx(-(back.difference.mean or 0.0), abs=1e-12)
    assert there.p_rank == pytest.approx(back.p_rank)
    assert there.p_t == (None if back.p_t is None else pytest.approx(back.p_t))


def test_equal_cells_are_not_told_apart() -> None:
    found = paired({0: 0.5, 1: 0.7}, {0: 0.5, 1: 0.7})
    assert (found.difference.mean, found.p_t, found.p_rank) == (0.0, None, 1.0)
    assert found.note == "paired t: the difference is the same in every seed"


def test_only_seeds_of_both_count_and_one_is_too_few() -> None:
    found = paired({0: 0.5, 1: 0.7, 2: 0.1}, {1: 0.6, 2: 0.3, 9: 0.9})
    assert found.difference.n == 2
    assert found.difference.mean == pytest.approx(-0.05)
    one = paired({0: 0.5, 1: 0.75}, {1: 0.5})
    assert (one.difference.mean, one.difference.low, one.p_t, one.p_rank) == (0.25, None, None, None)
    assert one.note == "they share one seed; run at least two"
    assert paired({0: 0.5}, {1: 0.5}).note == "they share no seed"


# ---------------------------------------------------------------------- baselines


def cell(name: str, *, run: str = "runs", **config: Any) -> UtilityCell:
    base = {
        "data": {"name": "digits"},
        "encoder": {"name": "usps_cnn"},
        "model": {"adapter": None},
        "method": {"name": "fedproto", "pull": 0.1, "training": {"epochs": 2}},
        "defense": {"name": "igpp", "epsilon": 1.0},
        "rounds": 2,
        "split": {"pool": 0.6},
    }
    return UtilityCell(
        run=run,
        name=name,
        model="",
        config=base | config,
        data={"records.a": "1", "labels.a": "2", "features.a": "3"},
        runs=2,
        domains={"a": 0.4, "b": 0.6},
        by_seed={0: 0.4, 1: 0.6},
        promised=1.0,
    )


VPP = {"name": "vpp", "epsilon": 1.0}
ALONE = {"name": "local_only", "training": {"epochs": 2}}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"defense": {"name": "igpp", "epsilon": 2.0}}, "there is no igpp at the same epsilon"),
        ({"method": {"name": "fedproto", "pull": 0.2, "training": {"epochs": 2}}}, "there is no igpp"),
        ({"model": {"adapter": 4}}, "there is no igpp"),
        ({"rounds": 3}, "there is no igpp"),
        ({"split": {"pool": 0.5}}, "there is no igpp"),
        ({"mixed": [{"encoder": {"name": "usps_cnn"}}]}, "there is no igpp"),
    ],
)
def test_a_baseline_differs_in_its_defense_and_in_nothing_else(change: dict[str, Any], reason: str) -> None:
    one, other = cell("vpp", defense=VPP), cell("igpp", **change)
    found = baseline(one, [one, other], "igpp")
    assert found.cell is (None if reason else other)
    assert found.reason.startswith(reason)


def test_other_records_or_features_are_no_baseline() -> None:
    one = cell("vpp", defense=VPP)
    for name in ("records.a", "labels.a", "features.a"):
        other = replace(cell("igpp"), data={**one.data, name: "9"})
        assert baseline(one, [one, other], "igpp").cell is None
    # a cell that is named may have another encoder, not other records
    other = replace(cell("wide"), data={**one.data, "features.a": "9"})
    assert baseline(one, [one, other], "wide").cell is other
    assert baseline(one, [one, replace(other, data={**one.data, "records.a": "9"})], "wide").cell is None


@pytest.mark.parametrize("name", ["test.a", "things.a", "left_out.a", "classes", "records.b"])
def test_whatever_decides_the_records_must_agree_with_a_named_baseline(name: str) -> None:
    one = replace(cell("vpp", defense=VPP), data={**cell("vpp").data, name: "1" * 128})
    twin = replace(cell("named"), data=one.data)
    assert baseline(one, [one, twin], "named").cell is twin
    for data in ({**one.data, name: "2" * 128}, {k: v for k, v in one.data.items() if k != name}):
        other = replace(twin, data=data)
        found = baseline(one, [one, other], "named")
        assert (found.cell, found.reason.startswith("cell named has other ")) == (None, True)
        difference = utility_table.utility([one, other], against="named").records()[0]
        assert difference["difference"] is None
        assert "cell named has other" in difference["reason"]


def test_test_records_under_another_encoder_are_compared_by_label_and_setting() -> None:
    one = replace(cell("a"), data={**cell("a").data, "test.a": "1" * 64 + "3" * 64})
    wide = {**one.data, "features.a": "9", "test.a": "2" * 64 + "3" * 64}
    assert baseline(one, [one, replace(cell("wide"), data=wide)], "wide").cell is not None
    # the same encoder gives the same features
    same = {**one.data, "test.a": wide["test.a"]}
    assert baseline(one, [one, replace(cell("wide"), data=same)], "wide").cell is None
    labels = {**wide, "test.a": "2" * 64 + "4" * 64}
    assert baseline(one, [one, replace(cell("wide"), data=labels)], "wide").cell is None
    other = cell("wide", data={"name": "digits", "per_class": 9})
    assert baseline(one, [one, replace(other, data=wide)], "wide").cell is None


def test_another_split_is_no_baseline_and_says_so() -> None:
    one, other = cell("vpp"), cell("named", split={"pool": 0.5})
    assert baseline(one, [one, other], "named").reason == "cell named has another split"


def test_local_training_is_a_baseline_only_as_published() -> None:
    one, alone = cell("vpp", defense=VPP), cell("alone", method=ALONE, defense={"name": "none"})
    tuned = cell("tuned", method=ALONE, defense={"name": "dcr", "release": {"name": "none"}})
    assert baseline(one, [one, tuned, alone], "local_only").cell is alone
    longer = cell(
        "longer", method={"name": "local_only", "training": {"epochs": 9}}, defense={"name": "none"}
    )
    assert baseline(one, [one, longer], "local_only").cell is None


def test_of_several_baselines_that_of_the_same_folder_is_taken() -> None:
    one, near, far = cell("vpp", defense=VPP), cell("igpp"), cell("igpp", run="elsewhere")
    assert baseline(one, [far, near, one], "igpp").cell is near
    assert baseline(one, [far, one], "igpp").cell is far
    several = baseline(one, [near, cell("again"), one], "igpp")
    assert several.cell is None
    assert several.reason.endswith("(igpp, again); name one with --against")


def test_without_local_training_there_is_a_reason() -> None:
    (row,) = utility_table.utility([cell("igpp")]).records()
    assert row["against_local"] is None
    assert row["reason"] == "vs local: there is no local training of the same model on the same data"


def test_an_unknown_baseline_is_refused_with_what_there_is() -> None:
    with pytest.raises(
        InputError, match=r"baseline 'igp' is unknown; known are igpp, none, local_only, vpp\. Did you"
    ):
        utility_table.utility([cell("vpp", defense=VPP)], against="igp")


# ---------------------------------------------------------------------- the table


def test_reasons_say_what_is_missing(rows: Any) -> None:
    found = rows()
    assert found["vpp-8"]["reason"] == ""
    assert found["igpp-8"]["difference_text"] == "baseline"
    assert found["none"]["reason"].startswith("minus igpp: there is no igpp at the same epsilon")
    assert "vs local" not in found["local"]["reason"]
    assert "vs local" not in rows("--against", "local_only")["vpp-8"]["reason"]
    assert {row["epsilon_reason"] for row in found.values()} == {"not audited"}


def test_an_epsilon_that_is_no_promise_is_in_brackets(rows: Any) -> None:
    found = rows()
    assert {c: found[c]["promised_text"] for c in ("vpp-8", "oracle-8", "dcr-8", "none", "local")} == {
        "vpp-8": "8",
        "oracle-8": "(8)",
        "dcr-8": "8",
        "none": "",
        "local": "",
    }


def test_a_header_names_both_spreads_and_every_test(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head = printed(monkeypatch, capsys, "utility", trained)[1].splitlines()[0]
    for title in (
        "STD over domains (sample)",
        "sd over seeds (sample)",
        "AVG, 95 % t interval over seeds",
        "AVG − igpp [95 %], paired by seed",
        "p, paired t (Holm)",
        "p, exact signed rank (Holm)",
    ):
        assert f"| {title} |" in head


def test_percent_is_how_it_reads_and_not_what_it_is(
    rows: Any, trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, percent = rows(), rows("--percent")
    numbers = {k for k, v in plain["vpp-8"].items() if isinstance(v, float)}
    assert all(plain[c][k] == percent[c][k] for c in plain for k in numbers)
    markdown = printed(monkeypatch, capsys, "utility", trained, "--percent")[1].splitlines()
    assert "| AVG, % |" in markdown[0]
    line = next(line for line in markdown if "| local |" in line)
    assert f"| {100 * plain['local']['avg']:.2f} |" in line


def test_every_format_has_every_row(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    markdown = printed(monkeypatch, capsys, "utility", trained)[1].split("\n\n")[0]
    assert len(markdown.splitlines()) == 7 + 2
    latex = printed(monkeypatch, capsys, "utility", trained, "--format", "tex")[1]
    assert len(latex.split("\\end{tabular}")[0].splitlines()) == 7 + 5
    found = list(
        csv.DictReader(io.StringIO(printed(monkeypatch, capsys, "utility", trained, "--format", "csv")[1]))
    )
    assert len(found) == 7
    assert all(math.isfinite(float(row["avg"])) for row in found)


def test_many_domains_are_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    domains = {f"client-{i:02}": i / 20 for i in range(20)}
    table = utility_table.utility([replace(cell("many"), domains=domains)])
    assert "client-03" not in table.markdown()
    assert table.records()[0]["domain_client-03"] == 0.15
    columns = table.keys()
    assert [key for key in columns if key.startswith("domain_")] == [f"domain_{name}" for name in domains]


# ---------------------------------------------------------------------- beside an audit


def test_an_audit_of_just_these_runs_adds_what_it_found_and_changes_no_accuracy(
    rows: Any, trained: Path
) -> None:
    before = rows()
    audited = trained / "audit" / "findings.json"
    heads = {
        c: [
            json.loads((trained / c / f"seed-{s}" / "run.json").read_text())["progress"]["ledger"]["head"]
            for s in range(4)
        ]
        for c in ("igpp-8", "vpp-8")
    }
    findings = made.findings(cells=(made.cell("igpp-8", epsilon=8.0), made.cell("vpp-8", epsilon=8.0)))
    heads["vpp-8"] = heads["vpp-8"][:3]  # one seed was trained after the audit
    runs = {
        c: {**made.run(found), "ledger_heads": heads[c]} for found in findings.cells for c in [found.name]
    }
    findings_file.write(audited, replace(findings, provenance={**findings.provenance, "runs": runs}))
    try:
        after = rows()
    finally:
        audited.unlink()
        audited.parent.rmdir()
    assert after["igpp-8"]["epsilon"] == pytest.approx(8.0, abs=0.01)
    assert after["vpp-8"]["epsilon"] is None
    assert after["vpp-8"]["epsilon_reason"] == "not audited since these runs were made"
    for name, row in after.items():
        assert row["avg"] == before[name]["avg"]
        assert row["p_t_holm"] == before[name]["p_t_holm"]


def test_an_audit_alone_gives_the_same_differences_as_its_runs() -> None:
    findings = made.findings()
    found = utility_cells.of_findings("here", findings)
    for one, known in zip(found, findings.cells, strict=True):
        assert one.by_seed == (known.cost.per_seed if known.cost.accuracy else {})
        assert one.accuracy.mean == pytest.approx(known.cost.accuracy and known.cost.accuracy.mean)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ("utility", "runs", "--against", "vpp"),
            "baseline 'vpp' is unknown; known are igpp, none, local_only",
        ),
        (("attacks", "runs", "--against", "igpp"), "are about accuracy; leave them out"),
        (("attacks", "runs", "--percent"), "are about accuracy"),
        (("attacks", "runs", "--beside", "paper"), "are about accuracy"),
        (("utility", "runs", "--beside", "friend"), "'friend' is not 'paper'"),
        (("utility", "runs", "--against", ""), "baseline '' is unknown; known are igpp, none, local_only"),
        (("attacks", "runs", "--against", ""), "are about accuracy"),
        (("utility", "empty"), "empty holds no run; train one with `privkit train CONFIG --out empty`"),
        (("utility", "nowhere"), "nowhere does not exist; give a folder that `privkit train` or a Recorder"),
    ],
)
def test_what_cannot_be_tabulated_is_refused_in_one_sentence(
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    complaint: str,
) -> None:
    monkeypatch.chdir(trained.parent)
    (trained.parent / "empty").mkdir(exist_ok=True)
    code, out, err = printed(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert "Traceback" not in err


# ---------------------------------------------------------------------- what is read is checked


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    for name in ("igpp-8", "vpp-8", "local"):
        shutil.copytree(trained / name, tmp_path / "runs" / name)
    return tmp_path / "runs"


def changed_metrics(path: Path, change: Any) -> None:
    frame = change(pd.read_parquet(path))
    frame.to_parquet(path, index=False)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda f: f.assign(accuracy=1.5), "holds the accuracy 1.5, and it is a share from 0 to 1"),
        (lambda f: f.assign(accuracy=-0.1), "holds the accuracy -0.1"),
        (lambda f: f.assign(accuracy=float("inf")), "holds the accuracy inf"),
        (lambda f: f.assign(accuracy=None), "holds the accuracy"),
        (lambda f: f.iloc[1:], "does not hold one accuracy of each of 4 domains in each of 2 rounds"),
        (lambda f: f[f["domain"] != "syn"], "does not hold one accuracy"),
        (lambda f: f[f["round"] == 0], "does not hold one accuracy"),
        (lambda f: f.assign(domain="syn"), "does not hold one accuracy"),
        (lambda f: pd.concat([f, f]), "does not hold one accuracy"),
        (lambda f: f.drop(columns="domain"), "is no table of round, client, domain, accuracy"),
        (lambda f: f.assign(round="last"), "is no table of"),
        (lambda f: f.iloc[:0], "is no table of"),
    ],
)
def test_metrics_that_no_training_writes_are_refused_by_name(
    copied: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: Any,
    complaint: str,
) -> None:
    path = copied / "vpp-8" / "seed-2" / "metrics.parquet"
    changed_metrics(path, change)
    for command in (("table", "utility", copied), ("audit", "--run", copied)):
        code, out, err = commanded(monkeypatch, capsys, *command)
        assert (code, out, "Traceback" in err) == (2, "", False)
        assert f"privkit: {path} {complaint}" in err


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("metrics.parquet", b"", "is no parquet file ("),
        ("metrics.parquet", b"PAR1 and more", "is no parquet file ("),
        ("timing.json", b"{", "is not valid JSON"),
        ("timing.json", b"[]", "holds seconds=None and runs_in_batch=None"),
        ("timing.json", b'{"seconds": 1.0, "runs_in_batch": 0}', "holds seconds=1.0 and runs_in_batch=0"),
        ("timing.json", b'{"seconds": -1.0, "runs_in_batch": 2}', "holds seconds=-1.0"),
        ("timing.json", b'{"seconds": "1", "runs_in_batch": 2}', "holds seconds='1'"),
        (
            "timing.json",
            b'{"seconds": 1.0, "runs_in_batch": true}',
            "holds seconds=1.0 and runs_in_batch=True",
        ),
    ],
)
def test_damaged_files_are_refused_by_name(
    copied: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: bytes,
    complaint: str,
) -> None:
    path = copied / "vpp-8" / "seed-2" / name
    path.write_bytes(content)
    for command in (("table", "utility", copied), ("audit", "--run", copied)):
        code, out, err = commanded(monkeypatch, capsys, *command)
        assert (code, out, "Traceback" in err) == (2, "", False)
        assert f"privkit: {path} {complaint}" in err


def test_a_seed_without_metrics_is_not_hidden(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copied / "vpp-8" / "seed-2" / "metrics.parquet"
    path.unlink()
    for command in (("table", "utility", copied), ("audit", "--run", copied)):
        code, _, err = commanded(monkeypatch, capsys, *command)
        assert code == 2
        assert f"{path} is missing, and other runs of cell vpp-8 have theirs; restore it, or remove" in err
    (row,) = utility_table.utility([replace(cell("found"), runs=5)]).records()
    assert row["seeds"] == 2
    assert row["reason"].startswith("accuracy is of 2 of 5 seeds")


@pytest.mark.parametrize("again", ["../runs", "igpp-8", "link", "copy"])
def test_runs_count_once_under_however_many_paths(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], again: str
) -> None:
    alone = json.loads(printed(monkeypatch, capsys, "utility", copied, "--format", "json")[1])["rows"]
    (copied.parent / "link").symlink_to(copied)
    shutil.copytree(copied, copied.parent / "copy")
    other = {"link": copied.parent / "link", "copy": copied.parent / "copy"}.get(again, copied / again)
    code, out, _ = printed(monkeypatch, capsys, "utility", copied, other, "--format", "json")
    assert (code, json.loads(out)["rows"]) == (0, alone)
    shown = printed(monkeypatch, capsys, "utility", copied, other)[1]
    said = f"{other}: igpp-8 is the same runs as in {copied} and counts once."
    assert (said in shown) == (again in ("igpp-8", "copy"))


@pytest.mark.parametrize("cell", ["vpp-8", "local"])
def test_runs_that_two_folders_share_in_part_are_refused(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cell: str
) -> None:
    other = copied.parent / "copy"
    shutil.copytree(copied / cell, other)
    shutil.rmtree(other / "seed-3")
    code, out, err = printed(monkeypatch, capsys, "utility", copied, other)
    assert (code, out) == (2, "")
    assert f"{copied} and {other} share 3 of the runs of cell {cell}, and each run may count once" in err


# ---------------------------------------------------------------------- what is promised without an audit


def test_a_broken_promise_is_in_brackets_without_an_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from privkit.train.loop import train

    study = {**STUDY, "seeds": 1, "rounds": 1, "defense": {"name": "igpp", "epsilon": 8.0}}
    study["grid"] = {"m": {"frozen": {}, "adapted": {"model": {"adapter": 4}}}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    train(load(tmp_path / "study.yaml"), tmp_path / "runs", device="cpu")
    out = printed(monkeypatch, capsys, "utility", tmp_path / "runs", "--format", "json")[1]
    found = {row["cell"]: row for row in json.loads(out)["rows"]}
    assert [found[c]["promised_text"] for c in ("frozen", "adapted")] == ["8", "(8)"]
    assert [found[c]["epsilon_promised"] for c in ("frozen", "adapted")] == [8.0, 8.0]
    assert found["frozen"]["promise_broken"] == ""
    assert found["adapted"]["promise_broken"].startswith("A1: the encoder depends on private state")
    markdown = printed(monkeypatch, capsys, "utility", tmp_path / "runs")[1]
    assert "ε in brackets is no promise. A1: the encoder depends on private state" in markdown
    assert "(adapted)." in markdown
    assert "Not audited, so that the promised ε is untested: all cells that promise something." in markdown


# ---------------------------------------------------------------------- as wide as a page


@pytest.mark.parametrize("form", ["md", "tex"])
def test_what_all_rows_share_is_said_once_below(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    text = printed(monkeypatch, capsys, "utility", trained, "--format", form)[1]
    table = text.split("\n\n")[0] if form == "md" else text.split("\\end{tabular}")[0]
    assert str(trained) not in table
    assert "frozen encoder" not in table
    below = text[len(table) :]
    assert "data digits; model head; seeds 4." in below
    assert "Models: head = frozen encoder, trained head." in below
    machine = printed(monkeypatch, capsys, "utility", trained, "--format", "csv")[1]
    for row in csv.DictReader(io.StringIO(machine)):
        assert (row["data"], row["model"], row["seeds"]) == ("digits", "frozen encoder, trained head", "4")


def test_columns_that_no_row_has_are_left_out_with_a_sentence() -> None:
    one = replace(cell("only"), by_seed={0: 0.5}, domains={"a": 0.5}, runs=1)
    table = utility_table.utility([one])
    shown, below = table.markdown().split("\n\n", 1)
    assert "n/a" not in shown
    assert "Left out, as no row has them: STD over domains (sample), sd over seeds (sample)" in below
    assert {"std_seeds", "p_t_holm", "against_local"} <= set(table.keys())


def test_models_are_short_in_the_table_and_explained_once() -> None:
    wide = {"adapter": 16, "inside": True}
    cells = [
        replace(cell("a", model=wide), model=utility_cells.trained({"model": wide})),
        replace(cell("b"), model="frozen encoder, trained head"),
        replace(cell("c"), model="frozen encoder, trained head"),
    ]
    shown, below = utility_table.utility(cells).markdown().split("\n\n", 1)
    assert "| adapter 16, inside |" in shown
    assert shown.count("| head |") == 2
    assert below.count("adapter of width 16 inside every block of the frozen backbone, trained head") == 1


def test_an_unfinished_run_is_refused_with_the_way_out(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained / "none", tmp_path / "none")
    path = tmp_path / "none" / "seed-0" / "run.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["progress"]["rounds"] = 1
    path.write_text(json.dumps(document), encoding="utf-8")
    code, _, err = printed(monkeypatch, capsys, "utility", tmp_path)
    assert code == 2
    assert "stopped after 1 of 2 rounds; run the same training command again to finish it" in err
