"""Findings on disk come back equal; any other file is refused in one sentence."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accountant.contract import DependsOn
from attacks.statistics.estimate import Estimate
from privkit.cli.report import report
from privkit.errors import InputError
from reports import findings_file
from reports.findings import Findings, Line, Promised, Spending, Verdict
from tests import made

numbers = st.floats(allow_nan=False)


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    findings = made.findings()
    findings_file.write(tmp_path / "findings.json", findings)
    found = findings_file.read(tmp_path / "findings.json")
    assert found == findings
    assert list(found.adjusted_p) == list(findings.adjusted_p)
    assert list(found.cells[0].cost.by_domain) == list(findings.cells[0].cost.by_domain)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    epsilon=st.floats(min_value=0.0),
    rates=st.lists(numbers, max_size=5),
    certified=st.lists(st.none() | numbers, max_size=5),
    names=st.lists(st.text(), max_size=3, unique=True),
)
def test_any_number_and_any_text_is_read_back_equal(tmp_path: Path, epsilon, rates, certified, names) -> None:
    cell = made.silent("<script>alert('ε')</script>")
    changed = replace(
        cell,
        # an infinite epsilon is no promise, and a file that calls one kept is refused
        verdict=cell.verdict if math.isfinite(epsilon) else Verdict.NOT_COVERED,
        promised=Promised(
            stated=epsilon, claim=replace(made.claimed(None, DependsOn.PUBLIC), epsilon=epsilon)
        ),
        ceiling=Line(fpr=tuple(rates), tpr=tuple(rates)),
        spending=Spending(spent=tuple(rates), certified=tuple(certified)),
        cost=replace(cell.cost, by_domain=dict.fromkeys(names, epsilon)),
    )
    findings = made.findings(cells=(changed,))
    findings_file.write(tmp_path / "findings.json", findings)
    assert findings_file.read(tmp_path / "findings.json") == findings


def test_the_file_is_json_without_bare_infinities(tmp_path: Path) -> None:
    path = tmp_path / "findings.json"
    findings_file.write(path, made.findings())

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)["schema"] == 6


def changed(**changes: Any) -> Findings:
    """Findings whose first attacked cell that promises something is changed, as by a hand."""
    whole = made.findings()
    at = next(i for i, c in enumerate(whole.cells) if c.promised and c.promised.claim.broken and c.taken)
    cell = whole.cells[at]
    assert cell.promised is not None
    claim = replace(cell.promised.claim, epsilon=changes.get("epsilon", cell.promised.claim.epsilon))
    auc = Estimate(value=changes.get("auc", 0.5), n_members=1, n_non_members=1)
    f1 = Estimate(value=changes.get("f1", 0.7), n_members=1, n_non_members=1)
    taken = replace(cell.taken[0], auc=auc, best_f1=f1, auc_ceiling=changes.get("ceiling"))
    other = replace(
        cell,
        promised=replace(cell.promised, claim=claim),
        taken=(taken, *cell.taken[1:]),
        verdict=changes.get("verdict", cell.verdict),
    )
    cells = (*whole.cells[:at], other, *whole.cells[at + 1 :])
    return replace(whole, cells=cells, verdict=changes.get("whole", whole.verdict))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"epsilon": -1.0}, r"holds ε -1 in \S+, and none is below 0; it was edited"),
        ({"auc": 7.0}, r"holds 7 as the AUC of \w+ in \S+, and it is a share from 0 to 1"),
        ({"auc": -0.1}, "holds -0.1 as the AUC"),
        ({"f1": 1.1}, r"holds 1\.1 as the best F1 of \w+"),
        ({"ceiling": 1.5}, r"holds 1\.5 as the ceiling of the AUC"),
        ({"verdict": Verdict.OK}, r"holds verdict OK in \S+, whose claim is not covered"),
        ({"whole": Verdict.OK}, r"holds verdict OK, and the worst of its cells is"),
    ],
)
def test_what_no_audit_finds_is_refused_in_one_sentence(tmp_path: Path, changes, complaint: str) -> None:
    path = tmp_path / "findings.json"
    findings_file.write(path, changed())
    assert findings_file.read(path) == changed()
    findings_file.write(path, changed(**changes))
    with pytest.raises(InputError, match=complaint):
        findings_file.read(path)


@pytest.mark.parametrize("below", ["", "audit"])
def test_a_report_is_written_where_the_findings_are(tmp_path: Path, below: str) -> None:
    """A page beside the findings is the one that is drawn again, whichever folder is named."""
    folder = tmp_path / "audit" / "partial" if below == "" else tmp_path / "audit"
    findings_file.write(folder / "findings.json", made.findings())
    report(run=folder if below == "" else tmp_path, out=None)
    assert (folder / "report.html").is_file()
    assert not (folder / "audit").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"schema": 99, "findings": {}}', "has schema 99; this version reads 6"),
        ("[]", "has schema None"),
        ('{"schema": 6', "not valid JSON"),
        ('{"schema": 6}', "does not hold an audit's findings"),
        ('{"schema": 5}', "has schema 5"),
        ('{"schema": 6, "findings": {"cells": []}}', r"does not hold an audit's findings \(verdict\)"),
    ],
)
def test_another_file_is_refused_in_one_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "findings.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=complaint) as refusal:
        findings_file.read(path)
    assert "\n" not in str(refusal.value)


def test_a_folder_without_an_audit_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no audit; run `privkit audit --run"):
        findings_file.of_run(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        findings_file.of_run(tmp_path / "nowhere")


def test_a_field_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "findings.json"
    findings_file.write(path, made.findings())
    text = path.read_text(encoding="utf-8")
    assert findings_file.read(path) == made.findings()
    path.write_text(text.replace('"adjusted_p"', '"adjusted_q"', 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"holds a field that this version does not know|does not hold"):
        findings_file.read(path)
