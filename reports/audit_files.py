"""Write an audit down: HTML, Markdown, CSV, LaTeX and JSON, each whole or not at all."""

import math
from pathlib import Path

from accountant.assumptions import ASSUMPTIONS, Assumption
from accountant.bound import Bound
from privkit import atomic
from reports import (
    assumption_tables,
    audit_table,
    certificate_tables,
    defense_sentences,
    defense_table,
    findings_file,
    gains,
    page_tables,
    predicted,
    sections,
)
from reports.findings import Findings, Verdict
from reports.table import Table, finite

SCHEMA = 1
_SOMETIMES = frozenset({"defenses", "certificates", "inversions", "gains", "broken", "relations"})
"""Tables that are only written if they have rows."""


def write(findings: Findings, folder: Path) -> Path:
    """Write every format into a folder, and return the page for people."""
    findings_file.write(folder / findings_file.NAME, findings)
    found = tables(findings)
    for name in _SOMETIMES - set(found):  # an earlier audit may have had rows where this one has none
        for suffix in ("csv", "tex"):
            (folder / f"{name}.{suffix}").unlink(missing_ok=True)
    for name, table in found.items():
        _text(folder / f"{name}.csv", table.csv())
        _text(folder / f"{name}.tex", table.latex() + "\n")
    atomic.write_json(folder / "audit.json", document(findings))
    atomic.write_json(folder / "claims.json", claims(findings))
    _text(folder / "audit.md", markdown(findings))
    return write_page(findings, folder / "report.html")


def write_page(findings: Findings, path: Path) -> Path:
    """Write the page for people, and return where it is."""
    from reports import page

    _text(path, page.html(findings))
    return path


def tables(findings: Findings) -> dict[str, Table]:
    """Return the tables that are written apart; those beside cells and attacks only if they have rows."""
    found = {"cells": audit_table.cells(findings), "attacks": audit_table.attacks(findings)}
    others = {
        "defenses": defense_table.of_findings(findings),
        "certificates": certificate_tables.certified(findings),
        "inversions": page_tables.inversions(findings),
        "gains": gains.gains(findings),
        "broken": assumption_tables.broken(findings),
        "relations": assumption_tables.relations(findings),
    }
    return found | {name: table for name, table in others.items() if table.rows}


def claims(findings: Findings) -> dict[str, object]:
    """Return every claim with its assumptions and what breaks them, as plain values."""
    return {
        cell.name: None if cell.promised is None else cell.promised.claim.to_dict() for cell in findings.cells
    }


def document(findings: Findings) -> dict[str, object]:
    """Return the whole audit as plain values; what is not finite is null, with its reason beside it."""
    return {
        "schema": SCHEMA,
        "verdict": findings.verdict.value,
        "family_wise_error": findings.significance,
        "tests": findings.tests,
        "adjusted_p": findings.adjusted_p,
        "failed_attacks": list(findings.failed),
        "cells": finite(audit_table.cells(findings).records()),
        "attacks": finite(audit_table.attacks(findings).records()),
        "defenses": finite(defense_table.of_findings(findings).records()),
        "certificates": finite(certificate_tables.certified(findings).records()),
        "inversions": finite(page_tables.inversions(findings).records()),
        "claims": claims(findings),
        "relations": {
            cell.name: finite([vars(found) for found in cell.promised.elsewhere])
            for cell in findings.cells
            if cell.promised is not None
        },
        "provenance": findings.provenance,
    }


def markdown(findings: Findings) -> str:
    """Return the audit as a page of Markdown, verdict first."""
    lines = [
        "# Audit",
        "",
        f"**{findings.verdict.value}** ({tally(findings)}); family-wise error {findings.significance:g} over "
        f"{findings.tests} tests.",
        "",
        "## Promised, and what it cost",
        "",
        audit_table.cells(findings).markdown(),
        "",
        "Why:",
        "",
        *(f"- {cell.name}: {cell.verdict.value}: {'; '.join(cell.reasons)}." for cell in findings.cells),
        "",
        *_assumption_tables(findings),
        *_defenses(findings),
        *_taken(findings),
        *_certified(findings),
        *_inversions(findings),
        *_gains(findings),
        *(line for note in notes(findings) for line in (note, "")),
        "## What was run",
        "",
        *settings(findings),
        "",
        "## What a claim rests on",
        "",
        *assumptions(findings),
    ]
    return "\n".join(lines) + "\n"


def _assumption_tables(findings: Findings) -> list[str]:
    broken, relations = assumption_tables.broken(findings), assumption_tables.relations(findings)
    reasons = [f"- undefined: {reason}" for reason in assumption_tables.undefined(findings)]
    return [
        *(["## Broken assumptions, and what they cost", "", broken.markdown(), ""] if broken.rows else []),
        *(
            ["## The same releases, other neighbours", "", relations.markdown(), "", *reasons, ""]
            if relations.rows
            else []
        ),
    ]


def _defenses(findings: Findings) -> list[str]:
    table = defense_table.of_findings(findings)
    said = [f"- {sentence}" for sentence in defense_sentences.of_audit(findings)]
    return ["## What each defense stops", "", *said, "", table.markdown(), ""] if table.rows else []


def _taken(findings: Findings) -> list[str]:
    table = audit_table.attacks(findings)
    return ["## Taken", "", table.markdown(), ""] if table.rows else []


def _certified(findings: Findings) -> list[str]:
    table = certificate_tables.certified(findings)
    return ["## Certified from below", "", table.markdown(), ""] if table.rows else []


def _gains(findings: Findings) -> list[str]:
    table = gains.gains(findings)
    return ["## What malicious servers gained", "", table.markdown(), ""] if table.rows else []


def _inversions(findings: Findings) -> list[str]:
    table = page_tables.inversions(findings)
    return ["## Inversion", "", table.markdown(), ""] if table.rows else []


def tally(findings: Findings) -> str:
    """Return how many cells got which verdict, worst first."""
    counts = {verdict: sum(cell.verdict is verdict for cell in findings.cells) for verdict in Verdict}
    return ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count)


def notes(findings: Findings) -> list[str]:
    """Return what a reader must know to read the numbers."""
    empty = _without_number(findings)
    return [
        *_scopes(findings),
        *(f"{cell.name} {cell.ended}." for cell in findings.cells if cell.ended),
        *_READING,
        *predicted.notes(findings),
        *(["No number: " + " ".join(empty)] if empty else []),
        *(
            ["Failed: " + " ".join(f"{why.rstrip('.')}." for why in findings.failed)]
            if findings.failed
            else []
        ),
    ]


def _without_number(findings: Findings) -> list[str]:
    """Return a sentence for each reason that an attack gave no number, with the attacks and cells that it is about."""
    found: dict[str, dict[str, list[str]]] = {}
    for cell in findings.cells:
        for taken in cell.taken:
            if taken.reason:
                found.setdefault(taken.reason.rstrip("."), {}).setdefault(cell.name, []).append(taken.attack)
    return [
        f"{'; '.join(f'{cell}, ' + ', '.join(attacks) for cell, attacks in by_cell.items())}: {reason}."
        for reason, by_cell in found.items()
    ]


def _scopes(findings: Findings) -> list[str]:
    """Return what every epsilon is about and how it was computed; cells are named where they differ."""
    found: dict[str, list[str]] = {}
    for cell in findings.cells:
        if cell.promised is not None and math.isfinite(cell.promised.claim.epsilon):
            c = cell.promised.claim
            bound = "exact" if c.bound is Bound.EXACT else f"an upper bound ({c.method})"
            text = f"is for {c.unit} ({c.relation}), over {c.releases} mechanisms run: {bound}."
            found.setdefault(text, []).append(cell.name)
    if len(found) < 2:
        return [f"ε {text}" for text in found]
    return [f"ε of {', '.join(cells)} {text}" for text, cells in found.items()]


_READING = (
    "An ε in brackets is what the noise would give if the assumptions of the claim held; they do not.",
    "Intervals of records' AUCs know which candidates share a release; those of TPR hold for the releases and the "
    "threshold as they are, and may lie above a ceiling by the chance of either: what is tested against ceilings are "
    "the AUC and rates at a threshold fixed beforehand. Ceilings hold under the claimed guarantee. Verdicts test at a "
    "family-wise error of 0.001.",
    "Canaries test the mechanism, whatever the encoder: they have a p-value even where the claim is not covered "
    "and no ceiling is printed. Their ε is certified from below at 95 % by the first method that applies, of an order "
    "fixed beforehand; all methods are listed with what each assumes. A share of the claimed μ below 0.7 means that "
    "the attacker is weaker than the claim allows for, or that the audit is broken.",
)


def settings(findings: Findings) -> list[str]:
    """Return what was run, one line per cell."""
    runs = findings.provenance["runs"]
    assert isinstance(runs, dict)
    return [f"- {cell}: {sections.setting(run['config'], run['seeds'])}." for cell, run in runs.items()]


def assumptions(findings: Findings) -> list[str]:
    """Return every assumption that some claim rests on, one line each."""
    return [f"- {a.id}: {a.statement}." for a in needed(findings)]


def needed(findings: Findings) -> list[Assumption]:
    """Return every assumption that some claim rests on."""
    names = {name for c in findings.cells if c.promised for name in c.promised.claim.needs}
    return [a for a in ASSUMPTIONS if a.id in names]


def _text(path: Path, text: str) -> None:
    atomic.write_bytes(path, text.encode())
