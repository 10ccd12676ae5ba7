"""Published numbers beside measured ones: exactly as printed, marked, and in no mean and no test."""

import csv
from collections import Counter
from decimal import Decimal
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from reports import utility_table
from reports.utility_beside import DATASETS, STAND_INS, beside
from reports.utility_cells import UtilityCell
from reports.utility_published import DOMAINS, FOLDER, Published, published

ROWS = published()
SOURCES = Path(__file__).parents[2] / "shared" / "paper"


def printed(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((FOLDER / f"vpdr_{name}.csv").read_text(encoding="utf-8").splitlines()))


def row(table: str, **wanted: Any) -> Published:
    (found,) = [r for r in ROWS if r.table == table and all(getattr(r, k) == v for k, v in wanted.items())]
    return found


# ---------------------------------------------------------------------- what was printed


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.csv")), ids=lambda path: path.stem)
def test_files_are_the_transcription(path: Path) -> None:
    source = SOURCES / f"paper_{path.name}"
    if not source.exists():
        pytest.skip("the transcription is not beside this checkout")
    assert path.read_bytes() == source.read_bytes()


def test_every_printed_row_is_there_once() -> None:
    assert Counter(r.table for r in ROWS) == {
        "main accuracy table": 36,
        "Appendix E.3, conditions not stated": 36,
        "ablation table": 4,
        "label-skew table": 60,
        "Appendix E.7": 12,
        "model-heterogeneity table": 24,
    }
    keys = [(r.table, r.framework, r.defense, r.dataset, tuple(r.under.items())) for r in ROWS]
    assert len(set(keys)) == len(keys)


def test_some_cells_as_the_paper_prints_them() -> None:
    found = row("main accuracy table", framework="FedPCL", defense="VPDR", dataset="pacs")
    assert found.domains == {
        "photo": Decimal("98.5"),
        "art_painting": Decimal("91.93"),
        "cartoon": Decimal("87.18"),
        "sketch": Decimal("68.03"),
    }
    assert (found.avg, found.std) == (Decimal("86.91"), Decimal("11.84"))
    assert (found.avg_agrees, found.std_agrees) == (False, False)
    assert found.recomputed_avg == pytest.approx(86.41)
    assert row("label-skew table", framework="FPL", defense="VPDR", under={"alpha": 0.1}).avg == Decimal(
        "37.18"
    )
    assert row("Appendix E.7", defense="VPDR", under={"d": 1024, "r": 0.2}).avg == Decimal("92.28")
    assert row("ablation table", defense="DCR", dataset="pacs").std == Decimal("6.29")
    mixed = row("model-heterogeneity table", framework="FedTGP", dataset="office_caltech10", defense="IGPP",
                under={"family": "HtC4"})  # fmt: skip
    assert mixed.avg == Decimal("72.67")


@pytest.mark.parametrize("name", ["accuracy_main", "accuracy_appendixE3"])
def test_what_was_recomputed_for_the_files_is_recomputed_here(name: str) -> None:
    tables = {
        "accuracy_main": "main accuracy table",
        "accuracy_appendixE3": "Appendix E.3, conditions not stated",
    }
    for line in printed(name):
        found = row(tables[name], framework=line["framework"], defense=line["ldp"], dataset=line["dataset"])
        cells = [float(line[f"acc_domain{i}_percent"]) for i in range(1, 5)]
        assert list(map(float, found.domains.values())) == cells
        assert tuple(found.domains) == DOMAINS[line["dataset"]]
        assert found.recomputed_avg == pytest.approx(mean(cells))
        assert found.recomputed_std == pytest.approx(stdev(cells))
        assert found.avg_agrees == (line["avg_matches"] == "yes")
        assert found.std_agrees == (line["std_matches"] == "sample")


def test_how_many_rows_do_not_follow_from_their_cells() -> None:
    main = [r for r in ROWS if r.table == "main accuracy table"]
    odd = {(r.framework, r.defense, r.dataset) for r in main if not r.avg_agrees}
    assert odd == {
        ("FedPCL", "VPDR", "pacs"),
        ("FPL", "VPDR", "digits"),
        ("MPFT", "VPDR", "office_caltech10"),
    }
    assert sum(r.std_agrees for r in main) == 8
    assert all(r.avg_agrees and r.std_agrees for r in ROWS if r.table.startswith("Appendix E.3"))


# ---------------------------------------------------------------------- which belong beside a cell


def cell(data: Any = "pacs", method: str = "fedproto", dim: int = 512, **config: Any) -> UtilityCell:
    settings = {
        "data": {"name": data} if isinstance(data, str) else data,
        "encoder": {"name": "projected"},
        "model": {"adapter": None},
        "method": {"name": method},
        "defense": {"name": "igpp", "epsilon": 1.0},
    }
    return UtilityCell(
        run="runs",
        name=f"{data}-{method}",
        model="frozen",
        config=settings | config,
        data={"records.a": "1"},
        dim=dim,
        runs=2,
        domains={"photo": 0.9, "sketch": 0.7},
        by_seed={0: 0.79, 1: 0.81},
        promised=1.0,
    )


VPDR = {"name": "vpdr", "epsilon": 1.0, "partition": {"name": "laplace", "split": 0.1}}


def tables(one: UtilityCell) -> list[str]:
    return [found.row.table for found in beside(one, ROWS)]


@pytest.mark.parametrize("defense", [{"name": "igpp", "epsilon": 8.0}, VPDR])
@pytest.mark.parametrize("data", ["pacs", "office_caltech", "digits5", "digits", "objects"])
@pytest.mark.parametrize("method", ["fedproto", "fedpcl", "fpl", "fedplvm", "fedtgp", "mpft"])
def test_framework_defense_and_data_find_both_accuracy_tables(data: str, method: str, defense: dict) -> None:
    found = beside(cell(data, method, defense=defense), ROWS)
    assert [f.row.table for f in found] == ["main accuracy table", "Appendix E.3, conditions not stated"]
    assert {f.row.defense for f in found} == {defense["name"].upper()}
    assert {f.row.framework.lower() for f in found} == {method}
    assert {f.same_data for f in found} == {data in DATASETS}
    assert {f.row.dataset for f in found} == {(DATASETS | STAND_INS)[data]}


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (cell(method="local_only"), []),
        (cell(data="ag_news"), []),
        (cell(defense={"name": "none"}), []),
        (cell(defense={**VPDR, "partition": {"name": "random"}}), []),
        (cell(defense={"name": "dcr", "release": {"name": "none"}}), []),
        (cell(defense={"name": "dcr", "release": {"name": "igpp", "epsilon": 1.0}}), ["ablation table"]),
        (cell(defense={**VPDR, "name": "vpp"}), ["ablation table"]),
        (cell(dim=256), ["Appendix E.7"]),
        (cell(dim=1024, defense={**VPDR, "partition": {"name": "laplace", "split": 0.05}}), ["Appendix E.7"]),
        (cell(dim=512, defense={**VPDR, "partition": {"name": "laplace", "split": 0.2}}), ["Appendix E.7"]),
        (cell(data="cifar10") , []),
    ],
)  # fmt: skip
def test_controls_have_no_published_twin_and_variants_have_their_own(
    one: UtilityCell, expected: list[str]
) -> None:
    assert tables(one) == expected


def test_label_skew_is_found_by_alpha_and_mixtures_by_their_kind() -> None:
    skewed = cell(method="fedplvm", defense=VPDR, data={"name": "cifar10", "alpha": 5})
    (found,) = beside(skewed, ROWS)
    assert (found.row.under, found.row.avg, found.same_data) == ({"alpha": 5.0}, Decimal("95.47"), True)
    two = [{"encoder": {"name": "timm_image"}}, {"encoder": {"name": "hf_image"}}]
    assert [f.row.under for f in beside(cell(mixed=two), ROWS)] == [{"family": "HtFE4"}]
    alike = [{"encoder": {"name": "projected", "encoder": two[0]["encoder"], "seed": i}} for i in range(4)]
    assert [f.row.under for f in beside(cell(mixed=alike), ROWS)] == [{"family": "HtC4"}]


# ---------------------------------------------------------------------- in the table


def test_published_rows_follow_their_cell_once_and_are_marked() -> None:
    cells = [cell(), cell(defense={"name": "igpp", "epsilon": 8.0}), cell(method="mpft")]
    table = utility_table.utility(cells, published=ROWS)
    records = table.records()
    assert [r["run"] for r in records] == [
        "runs",
        "runs",
        "published",
        "published",
        "runs",
        "published",
        "published",
    ]
    assert [r["source"] for r in records] == [
        "measured" if r["run"] == "runs" else "published" for r in records
    ]
    first = records[2]
    assert (first["cell"], first["data"], first["framework"]) == (
        "published: VPDR, main accuracy table",
        "PACS",
        "FedProto",
    )
    assert [first[f"domain_{n}"] for n in ("photo", "sketch")] == [0.977, 0.8037]
    assert (first["avg"], first["std_domains"]) == (0.9058, 0.0731)
    assert first["seeds"] is None
    assert first["reason"].endswith("that your folder holds PACS is not checked")
    assert [r["cell"] for r in utility_table.utility(cells).records()] == ["pacs-fedproto"] * 2 + [
        "pacs-mpft"
    ]


def test_what_was_inferred_is_said_to_be_where_it_is_printed() -> None:
    skewed = cell(method="fedplvm", defense=VPDR, data={"name": "cifar10", "alpha": 5})
    table = utility_table.utility([skewed, cell(dim=256), cell()], published=ROWS)
    found = {r["cell"]: (r["framework"], r["data"]) for r in table.records() if r["source"] == "published"}
    assert found == {
        "published: VPDR, label-skew table, alpha 5.0": ("FedPLVM", "CIFAR-10 (inferred)"),
        "published: VPDR, Appendix E.7, d 256": ("FedProto (inferred)", "PACS (inferred)"),
        "published: VPDR, main accuracy table": ("FedProto", "PACS"),
        "published: VPDR, Appendix E.3, conditions not stated": ("FedProto", "PACS"),
    }
    assert {r.inferred for r in ROWS if r.table not in ("label-skew table", "Appendix E.7")} == {()}
    assert "| CIFAR-10 (inferred) |" in table.markdown()


def test_columns_about_measured_rows_alone_leave_the_table_and_published_rows_stay_marked() -> None:
    table = utility_table.utility([cell(), cell(method="mpft")], published=ROWS).markdown()
    head, *rows = table.split("\n\n")[0].splitlines()
    assert not {"run", "model", "seeds"} & {title.strip() for title in head.split("|")}
    assert sum(row.startswith("| published: VPDR") for row in rows) == 4
    assert "In every measured row: run runs; model head; " in table


def test_published_rows_enter_no_mean_and_no_test() -> None:
    cells = [cell(), cell(defense=VPDR), cell(data="objects")]
    alone, beside_them = utility_table.utility(cells), utility_table.utility(cells, published=ROWS)
    measured = [r for r in beside_them.records() if r["source"] == "measured"]
    for one, other in zip(alone.records(), measured, strict=True):
        assert {k: v for k, v in one.items() if not k.endswith("_text")} == {
            k: v for k, v in other.items() if not k.endswith("_text")
        }
    for r in beside_them.records():
        if r["source"] == "published":
            assert {
                r[key] for key in ("p_t", "p_rank", "p_t_holm", "p_rank_holm", "difference", "std_seeds")
            } == {None}


def test_a_disagreeing_number_is_printed_with_what_its_cells_give() -> None:
    table = utility_table.utility([cell(method="fedpcl", defense=VPDR)], published=ROWS, percent=True)
    assert "86.91 (its cells give 86.41)" in table.markdown()
    assert "11.84 (its cells give 13.10)" in table.markdown()
    assert table.records()[1]["avg_recomputed"] == pytest.approx(0.8641)
    agreeing = utility_table.utility([cell()], published=ROWS, percent=True).markdown()
    assert "90.58 (its" not in agreeing
    assert "| 7.31 |" in agreeing


@pytest.mark.parametrize("data", sorted(STAND_INS.keys() - {"fashion_mnist"}))
def test_a_stand_in_is_said_to_be_one_and_shares_no_domain_column(data: str) -> None:
    table = utility_table.utility([cell(data, defense=VPDR)], published=ROWS)
    for r in table.records()[1:]:
        assert r["data"].endswith(f"(not the same data as {data})")
        assert [r[key] for key in r if key.startswith("domain_")] == [None, None]
        assert r["avg"] is not None
