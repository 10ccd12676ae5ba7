"""An audit as one HTML file: verdict first, every figure inline, nothing fetched from anywhere."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from reports import (
    assumption_tables,
    audit_files,
    audit_table,
    certificate_tables,
    defense_cells,
    defense_sentences,
    defense_table,
    page_parts,
    page_tables,
)
from reports.figures import accuracy, by_strength, learning, privacy_utility, spending
from reports.findings import Findings, Verdict

_MEANING = {
    Verdict.OK: "Nothing that was tried beats the proof, and what was tried could have seen a fault.",
    Verdict.VIOLATION: "What left the clients is not what was claimed.",
    Verdict.INCONCLUSIVE: "Nothing that was tried beats the proof, but too little was tried to say that it holds.",
    Verdict.NOT_COVERED: "The assumptions of a claim do not hold for some of these runs: their ε is no promise.",
}


def html(findings: Findings) -> str:
    """Return the page; equal findings give equal bytes."""
    shared, defended = learning.limits(findings), defense_cells.of_findings("", findings)
    return _template().render(
        findings=findings,
        meaning=_MEANING[findings.verdict],
        tally=audit_files.tally(findings),
        scopes=page_parts.scopes(findings),
        attackers=page_parts.attackers(findings),
        stopped=defense_sentences.of_audit(findings),
        defenses=defense_table.table(defended).printed(),
        privacy_utility=privacy_utility.privacy_utility(defended),
        auc_by_strength=by_strength.auc(defended),
        accuracy_by_strength=by_strength.accuracy(defended),
        promised=page_tables.promised(findings),
        attacks=audit_table.attacks(findings),
        certified=certificate_tables.certified(findings),
        cell_figures=page_parts.cell_figures(findings),
        inversions=page_tables.inversions(findings),
        pictures=page_parts.pictures(findings),
        cost=page_tables.cost(findings),
        accuracy=accuracy.accuracy(findings.cells),
        learning=page_parts.by_cell(findings, lambda cell: learning.learning(cell, accuracy=shared)),
        spending=page_parts.by_cell(findings, spending.spending),
        broken=assumption_tables.broken(findings),
        relations=assumption_tables.relations(findings),
        undefined=assumption_tables.undefined(findings),
        needed=audit_files.needed(findings),
        notes=audit_files.notes(findings),
        provenance=page_parts.provenance(findings),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.j2")
