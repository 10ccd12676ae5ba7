"""What a utility table is made of: each cell's accuracy by seed, from its runs or from an audit's findings."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.claims import Claim
from attacks.statistics.seeds import OverSeeds, over_seeds
from privkit import ledger, measured
from privkit.measured import Measured
from privkit.personal import PersonalModel
from privkit.store import Run
from reports import utility_promise
from reports.findings import CellFindings, Findings

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, eq=False, kw_only=True)
class UtilityCell:
    """One configuration with what its runs measured in their last round.

    Attributes:
        run: the folder that it is in.
        name: of the cell.
        model: what of the model was trained, in words.
        config: its configuration, as plain values; empty if other code recorded it.
        data: sha256 of all that it was computed from, by name.
        dim: width of an embedding, if known.
        runs: number of runs.
        domains: accuracy of each domain, in [0, 1], mean over seeds; none if the runs kept no metrics.
        by_seed: mean over domains, of each seed.
        promised: epsilon that was promised for the whole run, if any.
        audited: what an audit of these runs found, if there was one.
        unaudited: why there is none.
        seconds: training time of one run (its share of the batch it was trained in), if known.
        ended: why the runs ended before all planned rounds; empty if they did not.
        broken: why epsilon is no promise, one sentence each; none if it is one, or if nothing is promised.
        marks: of each run that can be told from others: the head of its ledger, or, without releases, its accuracy.
    """

    run: str
    name: str
    model: str
    config: Mapping[str, Any]
    data: Mapping[str, str]
    dim: int | None = None
    runs: int
    domains: Mapping[str, float]
    by_seed: Mapping[int, float]
    promised: float | None
    audited: CellFindings | None = None
    unaudited: str = ""
    seconds: float | None = None
    ended: str = ""
    broken: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def accuracy(self) -> OverSeeds:
        """Return the mean over domains, over seeds."""
        return over_seeds(list(self.by_seed.values()))

    @property
    def method(self) -> Mapping[str, Any]:
        """Return the method's settings; empty if other code recorded the runs."""
        return self.config.get("method") or {}

    @property
    def defense(self) -> Mapping[str, Any]:
        """Return the defense's settings; empty likewise."""
        return self.config.get("defense") or {}

    @property
    def epsilon(self) -> float | None:
        """Return the epsilon that the noise was made for, promised or not; ``None`` where there is no such number."""
        if not self.method or self.method.get("name") == "local_only":
            return None
        return _epsilon(self.defense)


def _epsilon(defense: Mapping[str, Any]) -> float | None:
    inner = defense.get("release")
    return defense.get("epsilon") or (_epsilon(inner) if isinstance(inner, Mapping) else None)


def by_number(name: str) -> list[tuple[str, float]]:
    """Return what names are sorted by so that numbers in them count as such.

    >>> sorted(["b1", "a10-igpp", "a5-igpp", "a0.5-vpdr", "a0.5-igpp"], key=by_number)
    ['a0.5-igpp', 'a0.5-vpdr', 'a5-igpp', 'a10-igpp', 'b1']
    """
    words, numbers = _NUMBER.split(name), [float(found) for found in _NUMBER.findall(name)]
    return list(zip(words, [*numbers, 0.0], strict=True))


def of_runs(folder: str, name: str, runs: Sequence[Run], findings: Findings | None) -> UtilityCell:
    """Return a cell from its complete runs, one per seed, with what an audit found of just these."""
    kept = measured.of_cell(name, runs)
    last = {run.info.seed: one.last for run, one in zip(runs, kept, strict=True) if one.last}
    info = runs[0].info
    audited, reason = _found(name, runs, findings)
    by_seed = {s: float(np.mean(list(d.values()))) for s, d in last.items() if s is not None}
    heads = [run.anchor.head for run in runs]
    return UtilityCell(
        run=folder,
        name=name,
        model=trained(info.config),
        config=info.config,
        data=info.data,
        dim=info.dim,
        runs=len(runs),
        domains=_mean_by_domain(list(last.values())),
        by_seed=by_seed,
        promised=None if info.promise is None else info.promise["epsilon"],
        audited=audited,
        unaudited=reason,
        seconds=_seconds(kept),
        ended=""
        if runs[0].rounds == info.rounds
        else f"ended after {runs[0].rounds} of {info.rounds} rounds",
        broken=() if info.promise is None else _broken(audited, runs[0]),
        marks=_marks(heads, [run.info.seed for run in runs], by_seed),
    )


def _broken(audited: CellFindings | None, run: Run) -> tuple[str, ...]:
    """Return why a stated epsilon is no promise: as an audit found, or as the ledger of a run says without one."""
    if audited is None or audited.promised is None:
        return utility_promise.broken_in(run)
    return _claim_broken(audited.promised.claim)


def _claim_broken(claim: Claim) -> tuple[str, ...]:
    reasons = tuple(f"{found.id}: {found.reason}" for found in claim.broken)
    return reasons if claim.unbounded is None else (*reasons, claim.unbounded)


def _marks(
    heads: Sequence[str], seeds: Sequence[int | None], by_seed: Mapping[int, float]
) -> tuple[str, ...]:
    found = [
        head if head != ledger.START else "" if seed is None else f"seed {seed}: {by_seed.get(seed)!r}"
        for head, seed in zip(heads, seeds, strict=True)
    ]
    return tuple(mark for mark in found if mark)


def _found(name: str, runs: Sequence[Run], findings: Findings | None) -> tuple[CellFindings | None, str]:
    """Return what an audit found of some runs, or why there is nothing."""
    if findings is None:
        return None, "not audited"
    found = next((cell for cell in findings.cells if cell.name == name), None)
    if found is None or _provenance(findings, name).get("ledger_heads") != [run.anchor.head for run in runs]:
        return None, "not audited since these runs were made"
    return found, ""


def of_findings(folder: str, findings: Findings) -> list[UtilityCell]:
    """Return every cell of an audit whose runs are not at hand."""
    return [_of_finding(folder, cell, _provenance(findings, cell.name)) for cell in findings.cells]


def _of_finding(folder: str, cell: CellFindings, known: Mapping[str, Any]) -> UtilityCell:
    claim = None if cell.promised is None or cell.promised.stated is None else cell.promised.claim
    by_seed = cell.cost.per_seed if cell.cost.accuracy else {}
    return UtilityCell(
        run=folder,
        name=cell.name,
        model=cell.model,
        config=known.get("config", {}),
        data=known.get("data", {}),
        runs=cell.seeds,
        domains=cell.cost.by_domain,
        by_seed=by_seed,
        promised=None if cell.promised is None else cell.promised.stated,
        audited=cell,
        seconds=cell.cost.seconds,
        ended=cell.ended,
        broken=() if claim is None else _claim_broken(claim),
        marks=_marks(known.get("ledger_heads", []), known.get("seeds", []), by_seed),
    )


def _provenance(findings: Findings, cell: str) -> Mapping[str, Any]:
    runs = findings.provenance.get("runs")
    return runs.get(cell, {}) if isinstance(runs, Mapping) else {}


def trained(config: Mapping[str, Any]) -> str:
    """Return, in words, what the clients of a configuration train."""
    model, mixed = config.get("model"), config.get("mixed")
    if config.get("tuning"):
        return f"{config['tuning']['name']} inside {config['backbone']['name']}, trained head"
    if not isinstance(model, Mapping):
        return "recorded by other code" if model is None else str(model)
    if not mixed:
        return PersonalModel.model_validate(model).placement
    parts = [
        f"{one['encoder']['name']}: {PersonalModel.model_validate(one['model']).placement}" for one in mixed
    ]
    return f"{len(mixed)} architectures ({'; '.join(parts)})"


def in_short(config: Mapping[str, Any]) -> str:
    """Return the same in the few words that a column has room for; empty where it is not known."""
    model, mixed = config.get("model"), config.get("mixed")
    if mixed:
        return f"{len(mixed)} architectures"
    if not isinstance(model, Mapping):
        return ""
    return PersonalModel.model_validate(model).in_short


def _mean_by_domain(last: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = last[0] if last else {}
    return {name: float(np.mean([found[name] for found in last])) for name in names}


def _seconds(runs: Sequence[Measured]) -> float | None:
    spent = [one.seconds for one in runs if one.seconds is not None]
    return float(np.mean(spent)) if spent else None
