"""Audit a folder of runs from end to end."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from accountant.claims import curve
from accountant.contract import Relation
from accountant.cost import total
from accountant.events import Event, NonPrivate, leaves
from accountant.joint import gaussian_equivalent
from accountant.tradeoff import AbstractCurve, GaussianCurve
from attacks._base import AbstractAttack, NotApplicableError
from attacks.hijack.inversion import FeatureInversion
from attacks.statistics.multiple import Holm, holm
from attacks.statistics.residuals import scale_p_value, scale_ratio
from privkit import store
from privkit.audit import curves, taken
from privkit.audit.cells import Cell, cells
from privkit.audit.choice import Attack, every_attack
from privkit.audit.cost import controls, cost
from privkit.audit.inverted import invert
from privkit.audit.kept import over_budget
from privkit.audit.overlap import overlap
from privkit.audit.promised import kept_filter, overspent, promised, worst_event
from privkit.audit.scored import RunView
from privkit.audit.spending import spending
from privkit.audit.verdict import SIGNIFICANCE, Evidence, decide, worst
from privkit.transcript import Transcript
from reports import numbers
from reports.findings import CellFindings, Findings, Inversion, Line, NoiseScale, Promised, Taken

Progress = Callable[[str, int, int], None]


@dataclass(eq=False)
class _Work:
    """One cell on its way through the audit."""

    cell: Cell
    views: list[RunView]
    found: list[Taken] = field(default_factory=list)
    inversions: list[Inversion] = field(default_factory=list)
    canaries: taken.Judged | None = None
    p_values: dict[str, float | None] = field(default_factory=dict)
    residuals: dict[str, np.ndarray] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    shortest: float | None = None

    @cached_property
    def transcripts(self) -> list[Transcript]:
        """Return what each run released."""
        return [view.transcript for view in self.views]

    @cached_property
    def event(self) -> Event | None:
        """Return what the client that spends most released."""
        return worst_event(self.transcripts, delta=self.cell.delta)

    @cached_property
    def promised(self) -> Promised | None:
        """Return the claim; ``None`` when nothing was released."""
        return None if self.event is None else promised(self.cell, self.event, self.transcripts)

    @cached_property
    def limit(self) -> AbstractCurve | None:
        """Return what the mechanism alone allows, whatever its inputs depend on."""
        return _ceiling(self.cell, self.event)

    @property
    def mu(self) -> float | None:
        """Return the claimed mu of all Gaussian noise, which is what canaries test; ``None`` without any."""
        return total(self.event).mu or None if self.limit is not None and self.event is not None else None

    @property
    def mu_of_ceiling(self) -> float | None:
        """Return a mu whose ceiling is nowhere below the proof's: pure parts next to the noise raise it."""
        if self.mu is None or self.event is None:
            return None
        kept = kept_filter(self.cell, self.event)
        if kept is not None:
            return kept.mu
        pure = dict(total(self.event).pure)
        return math.hypot(self.mu, gaussian_equivalent(pure)) if pure else self.mu

    @property
    def clip_norm(self) -> float | None:
        """Return the largest clip norm that a contract declares."""
        parts = () if self.event is None else leaves(self.event)
        return max((n for leaf, _ in parts if (n := leaf.contract.clip_norm) is not None), default=None)


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
    failed: list[str] = []
    works = []
    steps = len(groups) * len(chosen)
    for done, cell in enumerate(groups):
        work = _Work(cell, [RunView.of(run) for run in cell.runs])
        if work.event is not None:
            failed += _attack(work, chosen, _from(progress, done * len(chosen), steps))
        works.append(work)
    progress("audit", steps, steps)
    family = holm(
        {f"{w.cell.name}/{name}": p for w in works for name, p in w.p_values.items()},
        significance=SIGNIFICANCE,
    )
    local = controls(groups)
    finished = tuple(_finish(work, family, local) for work in works)
    return Findings(
        cells=finished,
        verdict=worst(finished),
        adjusted_p=dict(family.adjusted),
        significance=SIGNIFICANCE,
        failed=tuple(failed),
        provenance=_provenance(groups, chosen),
    )


def _from(progress: Progress, start: int, total: int) -> Progress:
    """Return a progress function for one cell, whose steps begin at ``start`` of the whole audit."""

    def shifted(stage: str, done: int, of: int) -> None:
        if stage == "audit":
            progress(stage, start + done, total)
        else:
            progress(stage, done, of)

    return shifted


_UNASKED = {
    "records": "the run has no records to ask about; name some with recorder.ask(...), or split in a configuration",
    "canaries": "the run has no canaries to ask about; set canaries.count above 0, or give Recorder canaries=...",
}


def _attack(work: _Work, attacks: Sequence[Attack], progress: Progress) -> list[str]:
    """Run every attack on a cell; return a sentence for each that broke."""
    answers = taken.truths(work.cell, work.views)
    left = [taken.residuals(view, truth) for view, truth in zip(work.views, answers, strict=True)]
    work.residuals = _grouped(left)
    counts = [
        part
        for view, run in zip(work.views, left, strict=True)
        for part in taken.of_counts(view, run).values()
    ]
    if counts:
        work.residuals["noise of the counts"] = np.concatenate(counts)
    work.p_values |= {name: scale_p_value(found) for name, found in work.residuals.items()}
    work.repeated = [found for view in work.views if (found := taken.repeated(view))]
    failed = []
    for done, attack in enumerate(attacks):
        progress("audit", done, len(attacks))
        if isinstance(attack, FeatureInversion):
            failed += _invert(work, attack, answers, progress)
            continue
        if any(view.questions[attack.asks_about] is None for view in work.views):
            work.found.append(_nothing(attack, _UNASKED[attack.asks_about]))
            continue
        try:
            work.found.append(_one_attack(work, attack, answers))
        except NotApplicableError as reason:
            work.found.append(_nothing(attack, str(reason)))
        except Exception as error:
            failed.append(f"{attack.name} on {work.cell.name}: {type(error).__name__}: {error}")
            work.found.append(_nothing(attack, f"failed: {error}"))
    return failed


def _invert(
    work: _Work, attack: FeatureInversion, answers: list[taken.Truth], progress: Progress
) -> list[str]:
    """Run feature inversion on a cell; return a sentence if it broke."""
    try:
        work.inversions.append(invert(work.cell, work.views, answers, attack, progress=progress))
    except Exception as error:
        work.inversions.append(Inversion(attack=attack.name, tier=attack.tier, reason=f"failed: {error}"))
        return [f"{attack.name} ({attack.tier}) on {work.cell.name}: {type(error).__name__}: {error}"]
    return []


def _grouped(runs: list[dict[tuple[int, int], np.ndarray]]) -> dict[str, np.ndarray]:
    """Return all residuals, those of each client and those of each round: a fault may be in one of them only."""
    parts: dict[str, list[np.ndarray]] = {}
    for run in runs:
        for (round, client), found in run.items():
            for name in ("noise", f"noise of client {client}", f"noise of round {round}"):
                parts.setdefault(name, []).append(found)
    return {name: np.concatenate(found) for name, found in parts.items()}


def _one_attack(work: _Work, attack: AbstractAttack, answers: list[taken.Truth]) -> Taken:
    judged = taken.judge(attack, work.views, answers)
    limit = work.limit
    covered = work.promised is not None and work.promised.claim.covered
    is_canary = attack.asks_about == "canaries"
    if limit is not None and (covered or is_canary):
        for test in taken.against_ceiling(attack, judged, limit):
            work.p_values[f"{attack.name}/{test.statistic}"] = test.p_value
    if is_canary:
        work.p_values |= _by_client(work, attack, judged)
        work.canaries = judged
        work.shortest = min(
            float(np.linalg.norm(asked.vectors, axis=1).min())
            for view in work.views
            if (asked := view.questions["canaries"]) is not None
        )
    return taken.measure(
        attack,
        judged,
        limit=limit if covered else None,
        mu=work.mu,
        delta=work.cell.delta,
        rounds=work.cell.rounds,
    )


def _by_client(work: _Work, attack: AbstractAttack, judged: taken.Judged) -> dict[str, float | None]:
    """Return the tests of each client's canaries against the ceiling of that client's own events."""
    found: dict[str, float | None] = {}
    for client in np.unique(judged.clients).tolist():
        limit = _ceiling(work.cell, worst_event(work.transcripts, delta=work.cell.delta, client=client))
        if limit is None:
            continue
        for test in taken.against_ceiling(attack, judged.of(client), limit):
            found[f"{attack.name}/{test.statistic} of client {client}"] = test.p_value
    return found


def _ceiling(cell: Cell, event: Event | None) -> AbstractCurve | None:
    """Return what a mechanism allows; ``None`` where nothing was released, or something without noise."""
    if event is None or any(isinstance(leaf, NonPrivate) for leaf, _ in leaves(event)):
        return None
    kept = kept_filter(cell, event)
    return curve(event) if kept is None else GaussianCurve(mu=kept.mu)


def _nothing(attack: AbstractAttack, reason: str) -> Taken:
    threat = attack.threat
    return Taken(attack=attack.name, tier=threat.tier, who=threat.who, knows=threat.knows, reason=reason)


def _finish(work: _Work, family: Holm, local: dict[str, float]) -> CellFindings:
    """Return a cell's findings, once every p-value of the whole audit is known."""
    name = work.cell.name
    rejected = [test.removeprefix(f"{name}/") for test in family.rejected if test.startswith(f"{name}/")]
    violations = [_violation(work, test, family.adjusted[f"{name}/{test}"]) for test in rejected]
    violations += work.repeated
    claim = work.promised
    if claim is not None and overspent(claim):
        violations.append(overspent(claim))
    violations += filter(None, [over_budget(work.cell, work.transcripts)])
    tests = max(1, sum(p is not None for p in family.adjusted.values()))
    verdict, reasons = decide(
        claim,
        violations=violations,
        evidence=Evidence(
            mu=work.mu,
            mu_of_ceiling=work.mu_of_ceiling,
            planted=_planted(work.canaries),
            shortest=work.shortest,
            clip_norm=work.clip_norm,
            relation=Relation.REPLACE_SAME_LABEL if claim is None else claim.claim.relation,
            significance=SIGNIFICANCE / tests,
        ),
    )
    return CellFindings(
        name=name,
        seeds=len(work.cell.runs),
        model=_model(work.cell),
        promised=claim,
        taken=tuple(replace(t, adjusted_p=_smallest(family, name, t.attack)) for t in work.found),
        noise=_noise(work, family),
        cost=cost(work.cell, work.transcripts, local),
        verdict=verdict,
        reasons=reasons,
        ceiling=_ceiling_line(work),
        spending=spending(work.transcripts, work.canaries, delta=work.cell.delta, rounds=work.cell.rounds),
        inversions=tuple(work.inversions),
        overlap=overlap(work.cell),
        ended=_ended(work.cell),
    )


def _ended(cell: Cell) -> str:
    """Return why the runs ended before their planned rounds, as the first one's ledger proves; or nothing."""
    first, *_ = [run.ending for run in cell.runs]  # every run's proof is looked at
    return first


def _planted(canaries: taken.Judged | None) -> tuple[int, int]:
    """Return how many canaries were planted as they stand, and negated."""
    if canaries is None:
        return (0, 0)
    return int(canaries.members.sum()), int((~canaries.members).sum())


def _ceiling_line(work: _Work) -> Line | None:
    """Return the proof's limit, down to the smallest rate that some attack's ROC shows."""
    if work.promised is None or not work.promised.claim.covered:
        return None
    shown = [rate for found in work.found if found.roc for rate in found.roc.fpr if rate > 0]
    return curves.ceiling_line(work.limit, least=min(shown, default=1e-3))


def _violation(work: _Work, test: str, p: float | None) -> str:
    if test in work.residuals:
        ratio = scale_ratio(work.residuals[test])
        return f"the {test} is {ratio:.3f} of what was claimed (adjusted p {numbers.p_value(p)})"
    attack, _, statistic = test.partition("/")
    return f"{statistic} of {attack} is above the ceiling of the claim (adjusted p {numbers.p_value(p)})"


def _noise(work: _Work, family: Holm) -> NoiseScale | None:
    if "noise" not in work.residuals:
        return None
    return NoiseScale(
        ratio=scale_ratio(work.residuals["noise"]),
        coordinates=len(work.residuals["noise"]),
        adjusted_p=family.adjusted[f"{work.cell.name}/noise"],
    )


def _smallest(family: Holm, cell: str, attack: str) -> float | None:
    found = [
        p for test, p in family.adjusted.items() if test.startswith(f"{cell}/{attack}/") and p is not None
    ]
    return min(found, default=None)


def _model(cell: Cell) -> str:
    model = cell.first.info.config.get("model")
    if not isinstance(model, dict):
        return "recorded by other code" if model is None else str(model)
    width = model.get("adapter")
    return "frozen encoder" if width is None else f"adapter of width {width} after the backbone"


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
