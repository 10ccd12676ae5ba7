import json
import math
from dataclasses import replace

from accountant.consequences import Broken
from attacks.statistics.seeds import over_seeds
from reports import assumption_tables, audit_files
from reports.findings import Elsewhere, Findings, Overlap
from tests import made


def found(**changes: object) -> Findings:
    """Findings whose first promising cell is changed."""
    whole = made.findings()
    at = next(i for i, cell in enumerate(whole.cells) if cell.promised is not None)
    promised = whole.cells[at].promised
    assert promised is not None
    claim = replace(promised.claim, **{k: v for k, v in changes.items() if k == "broken"})
    elsewhere = {k: v for k, v in changes.items() if k == "elsewhere"}
    cell = replace(whole.cells[at], promised=replace(promised, claim=claim, **elsewhere))
    return replace(whole, cells=(cell,))


def broken(epsilon: float | None) -> Broken:
    return Broken(id="A1", reason="because", cost="it moves: a lot", epsilon=epsilon, examples=("E7",))


def test_every_broken_assumption_has_its_price_and_its_example() -> None:
    table = assumption_tables.broken(found(broken=(broken(779.2), broken(math.inf), broken(None))))
    assert [row["true"] for row in table.rows] == ["779.2", "∞ (δ = 1)", "unknown"]
    assert {row["example"] for row in table.rows} == {"E7"}
    assert "| A1 |" in table.markdown()


def test_a_report_lists_prices_and_relations() -> None:
    whole = found(
        broken=(broken(779.2),),
        elsewhere=(
            Elsewhere(relation="replace one record, same label", epsilon=1.0),
            Elsewhere(relation="add or remove one record", epsilon=None, reason="counts change."),
        ),
    )
    text = audit_files.markdown(whole)
    assert "## Broken assumptions, and what they cost" in text
    assert "## The same releases, other neighbours" in text
    assert "undefined: counts change." in text
    assert {"broken", "relations"} <= set(audit_files.tables(whole))


def test_an_epsilon_in_brackets_is_sorted_and_exported_as_a_number() -> None:
    same = Elsewhere(relation="replace one record, same label", epsilon=0.125)
    table = assumption_tables.relations(found(broken=(broken(779.2),), elsewhere=(same,)))
    assert table.records()[0][same.relation] == "(0.125)"
    assert table.records()[0][f"epsilon, {same.relation}"] == 0.125
    assert "(0.125),0.125" in table.csv()
    assert table.columns[1].sort == f"epsilon, {same.relation}"


def test_what_promises_nothing_is_written_down_too() -> None:
    nothing = Elsewhere(relation="replace one record, same label", epsilon=math.inf)
    whole = found(broken=(broken(math.inf),), elsewhere=(nothing,))
    assert "Infinity" not in json.dumps(audit_files.document(whole))
    assert json.loads(json.dumps(audit_files.document(whole), allow_nan=False))["relations"]


def test_nothing_broken_makes_no_table() -> None:
    assert not assumption_tables.broken(found(broken=())).rows
    assert "Broken assumptions" not in audit_files.markdown(found(broken=()))


def test_a_run_that_its_budget_ended_and_what_its_partition_chose_are_in_the_report() -> None:
    whole = made.findings()
    chosen = Overlap(share=over_seeds([0.25, 0.35]), chance=0.2)
    cell = replace(whole.cells[0], ended="stopped before round 13 of 20: client 0 has spent", overlap=chosen)
    text = audit_files.markdown(replace(whole, cells=(cell, *whole.cells[1:])))
    assert f"{cell.name} stopped before round 13 of 20" in text
    record = audit_files.tables(replace(whole, cells=(cell,)))["cells"].records()[0]
    assert (record["overlap"], record["overlap_chance"]) == (0.3, 0.2)
