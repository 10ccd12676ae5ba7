"""Certificates and tightness as people read them: every method in every format, a reason for each that is missing."""

import csv
import io
import json
from dataclasses import replace

import numpy as np

from attacks.statistics.certify import Certificate, NoCertificate
from attacks.statistics.certify.together import certificates
from reports import audit_files, audit_table, certificate_tables, page, paper_tables
from reports.findings import Findings
from tests import made

NO_NOISE = "there is no Gaussian noise"


def findings() -> Findings:
    """One cell with noise and one without, for which half of the methods do not apply."""
    rng = np.random.default_rng(0)
    cell = made.cell("with", each=400)
    bare = replace(
        cell,
        name="without",
        taken=tuple(
            replace(
                taken,
                tightness=None,
                certificates=certificates(
                    rng.normal(1, 1, 99), rng.normal(-1, 1, 99), delta=1e-5, not_gaussian=NO_NOISE
                ),
            )
            for taken in cell.taken
            if taken.certificates
        ),
    )
    return made.findings(cells=(cell, bare))


def test_every_certificate_is_a_row_at_full_precision_and_every_missing_one_has_a_reason() -> None:
    found = findings()
    rows = list(csv.DictReader(io.StringIO(audit_files.tables(found)["certificates"].csv())))
    wanted = [
        (cell.name, taken.attack, one)
        for cell in found.cells
        for taken in cell.taken
        for one in taken.certificates
    ]
    assert len(rows) == len(wanted) == 12
    for row, (cell, attack, one) in zip(rows, wanted, strict=True):
        assert (row["cell"], row["attack"], row["method"]) == (cell, attack, one.method)
        if isinstance(one, Certificate):
            assert float(row["epsilon_low"]) == one.epsilon_low
            assert row["mu_low"] == ("" if one.mu_low is None else repr(one.mu_low))
            assert row["assumptions"] == "; ".join(one.assumptions)
            assert row["evidence"] == one.evidence
        else:
            assert (row["epsilon_low"], row["reason"]) == ("", one.reason)
    assert sum(row["reason"] == NO_NOISE for row in rows) == 3


def test_the_same_methods_are_in_json_markdown_latex_and_on_the_page() -> None:
    found = findings()
    table = certificate_tables.certified(found)
    document = json.loads(json.dumps(audit_files.document(found), allow_nan=False))
    assert [row["method"] for row in document["certificates"]] == [row["method"] for row in table.rows]
    texts = (audit_files.markdown(found), table.latex(), page.html(found))
    for one in (one for cell in found.cells for taken in cell.taken for one in taken.certificates):
        assert all(one.method in text for text in texts)
        if isinstance(one, NoCertificate):
            assert all(f"n/a: {NO_NOISE}" in text for text in texts)


def test_an_audit_without_canaries_has_no_such_table() -> None:
    silent = made.findings(cells=(made.silent("alone"),))
    assert "certificates" not in audit_files.tables(silent)
    assert "Certified from below" not in audit_files.markdown(silent) + page.html(silent)


def test_the_attack_table_prints_the_first_that_applies() -> None:
    found = findings()
    methods = {
        row["cell"]: row["epsilon_low_method"]
        for row in audit_table.attacks(found).rows
        if row["epsilon_low"] is not None
    }
    assert methods == {"with": "Gaussian DP with Clopper-Pearson", "without": "Clopper-Pearson"}


def test_tightness_is_a_column_of_every_format_with_its_interval() -> None:
    found = findings()
    for table in (audit_table.attacks(found), paper_tables.attacks([("run", found)])):
        (column,) = (c for c in table.columns if c.key == "tightness_text")
        texts = {
            row["attack"]: column.show(row.get(column.key)) for row in table.rows if row["cell"] == "with"
        }
        (taken,) = (t for t in found.cells[0].taken if t.tightness is not None)
        share = taken.tightness
        assert share is not None
        assert texts.pop(taken.attack) == f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"
        assert set(texts.values()) == {""}
        for text in (table.markdown(), table.latex()):
            assert f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]" in text
        rows = list(csv.DictReader(io.StringIO(table.csv())))
        assert repr(share.value) in {row["tightness"] for row in rows}
        assert share.low in {row["tightness_low"] for row in json.loads(table.json())["rows"]}
