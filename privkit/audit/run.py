"""Audit a folder of runs from end to end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accountant.contract import DependsOn, Relation
from attacks.statistics.estimate import Estimate
from attacks.statistics.multiple import Holm, holm
from privkit import plug, store
from privkit.audit import _tuned, curves, taken
from privkit.audit.attacked import Progress, attack_cell, keep_scores
from privkit.audit.cells import Cell, cells
from privkit.audit.choice import Attack, every_attack
from privkit.audit.cost import controls, cost
from privkit.audit.kept import over_budget
from privkit.audit.overlap import overlap
from privkit.audit.promised import overspent
from privkit.audit.scored import RunView
from privkit.audit.spending import spending
from privkit.audit.verdict import SIGNIFICANCE, Evidence, decide, worst
from privkit.audit.work import Work
from privkit.errors import InputError
from privkit.measured import of_cell
from privkit.methods._base import AbstractMethod
from privkit.personal import PersonalModel
from reports import numbers
from reports.findings import CellFindings, Findings, Line, NoiseScale, Verdict
from reports.utility_cells import trained


def audit(
    root: Path,
    *,
    attacks: Sequence[Attack] | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> Findings:
    """Return what was promised, what can be taken and what it cost, for every cell below a folder.

    Args:
        root: a run directory, or a folder of them.
        attacks: which to run; all with their default settings by default.
        progress: called with a stage's name, how much of it is done, and of how much.

    Raises:
        InputError: no run there, an unfinished or damaged one, or one without truth.
    """
    chosen = list(every_attack() if attacks is None else attacks)
    groups = cells(store.find(root))
    works = [
        Work(cell, [RunView.of(run) for run in cell.runs], of_cell(cell.name, cell.runs)) for cell in groups
    ]
    failed = _attack(works, chosen, progress)
    family = family_of(works)
    local = controls(works)
    finished = tuple(_finish(work, family, local) for work in works)
    return Findings(
        cells=finished,
        verdict=worst(finished),
        adjusted_p=dict(family.adjusted),
        significance=SIGNIFICANCE,
        failed=tuple(failed),
        provenance=_provenance(groups, chosen),
    )


def _attack(works: Sequence[Work], attacks: Sequence[Attack], progress: Progress) -> list[str]:
    """Run every attack on every cell; return a sentence for each that broke.

    Where an answer is lost or damaged the audit is refused, but no score depends on one: all are kept first.
    """
    failed, steps = list[str](), len(works) * len(attacks)
    released = [(done, work) for done, work in enumerate(works) if work.event is not None]
    try:
        for done, work in released:
            failed += attack_cell(work, attacks, _from(progress, done * len(attacks), steps))
    except InputError:
        for _, work in released:
            keep_scores(work, attacks)
        raise
    progress("audit", steps, steps)
    return failed


def _from(progress: Progress, start: int, total: int) -> Progress:
    """Return a progress function for one cell, whose steps begin at ``start`` of the whole audit."""

    def shifted(stage: str, done: int, of: int) -> None:
        if stage == "audit":
            progress(stage, start + done, total)
        else:
            progress(stage, done, of)

    return shifted


def _finish(work: Work, family: Holm, local: dict[str, float]) -> CellFindings:
    """Return a cell's findings, once every p-value of the whole audit is known."""
    name, cell = work.cell.name, work.cell
    verdict, reasons = judged(work, family)
    return CellFindings(
        name=name,
        seeds=len(cell.runs),
        model=of_model(cell.first.info.config),
        promised=work.promised,
        taken=tuple(replace(t, adjusted_p=_smallest(family, name, t.attack)) for t in work.found),
        noise=_noise(work, family),
        cost=cost(work, local),
        verdict=verdict,
        reasons=reasons,
        ceiling=_ceiling_line(work),
        spending=spending(
            work.transcripts,
            work.canaries,
            delta=cell.delta,
            rounds=cell.rounds,
            not_gaussian=work.not_gaussian,
        ),
        inversions=tuple(work.inversions),
        overlap=overlap(cell),
        ended=_ended(cell),
    )


def judged(work: Work, family: Holm) -> tuple[Verdict, tuple[str, ...]]:
    """Return the verdict on one cell, and why, given the p-values of the whole audit."""
    name, claim = work.cell.name, work.promised
    rejected = [test.removeprefix(f"{name}/") for test in family.rejected if test.startswith(f"{name}/")]
    violations = [_violation(work, test, family.adjusted[f"{name}/{test}"]) for test in rejected]
    violations += work.repeated
    if claim is not None and overspent(claim):
        violations.append(overspent(claim))
    violations += filter(None, [over_budget(work.cell, work.transcripts)])
    tests = max(1, sum(p is not None for p in family.adjusted.values()))
    evidence = Evidence(
        mu=work.mu,
        mu_of_ceiling=work.mu_of_ceiling,
        planted=_planted(work.canaries),
        shortest=work.shortest,
        clip_norm=work.clip_norm,
        relation=Relation.REPLACE_SAME_LABEL if claim is None else claim.claim.relation,
        significance=SIGNIFICANCE / tests,
        tightness=_tightness(work),
        share=work.canary_share,
        plants=work.plants,
    )
    return decide(claim, violations=violations, evidence=evidence)


def family_of(works: Sequence[Work]) -> Holm:
    """Return every test of some cells, corrected for all of them."""
    every = {f"{work.cell.name}/{name}": p for work in works for name, p in work.p_values.items()}
    return holm(every, significance=SIGNIFICANCE)


def _ended(cell: Cell) -> str:
    """Return why the runs ended before their planned rounds, as the first one's ledger proves; or nothing."""
    first, *_ = [run.ending for run in cell.runs]  # every run's proof is looked at
    return first


def _tightness(work: Work) -> Estimate | None:
    """Return how much of the claimed mu the first kind of canaries shows that shows a finite one."""
    found = (one.tightness for one in work.found)
    return next((one for one in found if one is not None and one.high is not None), None)


def _planted(canaries: taken.Judged | None) -> tuple[int, int]:
    """Return how many canaries were planted as they stand, and negated."""
    if canaries is None:
        return (0, 0)
    return int(canaries.members.sum()), int((~canaries.members).sum())


def _ceiling_line(work: Work) -> Line | None:
    """Return the proof's limit, down to the smallest rate that some attack's ROC shows."""
    if work.promised is None or not work.promised.claim.covered:
        return None
    shown = [rate for found in work.found if found.roc for rate in found.roc.fpr if rate > 0]
    return curves.ceiling_line(work.limit, least=min(shown, default=1e-3))


def _violation(work: Work, test: str, p: float | None) -> str:
    if test in work.checks:
        return f"{work.checks[test].says} (adjusted p {numbers.p_value(p)})"
    attack, _, statistic = test.partition("/")
    return f"{statistic} of {attack} is above the ceiling of the claim (adjusted p {numbers.p_value(p)})"


def _noise(work: Work, family: Holm) -> NoiseScale | None:
    if work.noise is None:
        return None
    return NoiseScale(
        ratio=work.noise.ratio,
        coordinates=work.noise.coordinates,
        adjusted_p=family.adjusted[f"{work.cell.name}/noise"],
    )


def _smallest(family: Holm, cell: str, attack: str) -> float | None:
    found = [
        p for test, p in family.adjusted.items() if test.startswith(f"{cell}/{attack}/") and p is not None
    ]
    return min(found, default=None)


def of_model(config: Mapping[str, Any]) -> str:
    """Return, in words, what the clients of a run train, from its configuration as plain values."""
    if _tuned.tunes(config):
        return trained(config)
    model, mixed = config.get("model"), config.get("mixed")
    if not isinstance(model, dict) or "method" not in config:
        return "recorded by other code" if model is None else str(model)
    method = plug.build("privkit.methods", config["method"])
    assert isinstance(method, AbstractMethod)
    if not mixed:
        return _placement(method, model)
    parts = [f"{one['encoder']['name']}: {_placement(method, one['model'])}" for one in mixed]
    return f"{len(mixed)} architectures ({'; '.join(parts)})"


def _placement(method: AbstractMethod, settings: Mapping[str, object]) -> str:
    """Return, in words, what of one model is trained, and whether what is released leaves that out."""
    model = PersonalModel.model_validate(settings)
    trained = model.encoder_depends_on is not DependsOn.PUBLIC
    unseen = trained and method.encoder_depends_on(model) is DependsOn.PUBLIC
    return f"{model.placement}; releases from the frozen backbone" if unseen else model.placement


def _provenance(groups: list[Cell], attacks: Sequence[Attack]) -> dict[str, object]:
    return {
        "attacks": [attack.settings() for attack in attacks],
        "runs": {
            cell.name: {
                "seeds": [run.info.seed for run in cell.runs],
                "config": dict(cell.first.info.config),
                "data": dict(cell.first.info.data),
                "versions": dict(cell.first.info.versions),
                "ledger_heads": [run.anchor.head for run in cell.runs],
            }
            for cell in groups
        },
    }
