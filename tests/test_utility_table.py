"""The utility table, straight from runs: its numbers against pandas and scipy, its baselines, its refusals."""

import csv
import io
import itertools
import json
import math
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
from privkit.config import load
from privkit.errors import InputError
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
    monkeypatch.setattr(sys, "argv", ["privkit", "table", *map(str, arguments)])
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
    assert len(printed(monkeypatch, capsys, "utility", trained)[1].strip().splitlines()) == 7 + 2
    assert (
        len(printed(monkeypatch, capsys, "utility", trained, "--format", "tex")[1].strip().splitlines())
        == 7 + 6
    )
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
        (("utility", "empty"), "empty has no audit; run `privkit audit --run"),
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


def test_an_unfinished_run_is_refused_with_the_way_out(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    shutil.copytree(trained / "none", tmp_path / "none")
    path = tmp_path / "none" / "seed-0" / "run.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["progress"]["rounds"] = 1
    path.write_text(json.dumps(document), encoding="utf-8")
    code, _, err = printed(monkeypatch, capsys, "utility", tmp_path)
    assert code == 2
    assert "stopped after 1 of 2 rounds; run the same training command again to finish it" in err
