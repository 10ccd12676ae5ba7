"""What tables, figures and sentences about defenses of the gradient lab are made of: one value per cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from attacks._base import Family
from attacks.statistics.multiple import holm
from attacks.statistics.seeds import OverSeeds, over_seeds
from privkit import plug
from privkit.atomic import canonical_json
from privkit.finetune.defenses._base import AbstractTuningDefense
from reports import numbers, sections, utility_cells, utility_once
from reports.attacks_once import Audit
from reports.findings import CellFindings, Compared, Findings, Taken
from reports.utility_cells import UtilityCell

FAMILIES: Mapping[Family, str] = {
    "projection": "ProjRes",
    "rival": "best rival",
    "adaptive": "best adaptive",
}
"""Families that are compared, and what each one's best attack is called."""

SIGNIFICANCE = 0.05
"""Largest probability, for one cell, that any of its attacks is said to beat chance and does not (Holm)."""

_DEFENSES = "privkit.finetune.defenses"
_NOT_COMPARED = ("defense", "sampling")  # DP-SGD samples as its accountant wants it


@dataclass(frozen=True, eq=False, kw_only=True)
class Tried:
    """One attack on a cell, with a number.

    Attributes:
        taken: what it got.
        compared: the same with an interval that holds though it was chosen as the best of its family.
        chance: p-value against chance, corrected for all attacks on the cell; ``None`` where untested.
        above_ceiling: whether the audit rejects that it is below the ceiling.
    """

    taken: Taken
    compared: Compared
    chance: float | None
    above_ceiling: bool

    @property
    def name(self) -> str:
        """Return what it is called in a sentence."""
        return "ProjRes" if self.taken.family == "projection" else self.taken.attack.replace("_", " ")

    @property
    def value(self) -> float:
        """Return its AUC."""
        assert self.compared.auc.value is not None
        return self.compared.auc.value

    @property
    def text(self) -> str:
        """Return its AUC with that interval."""
        auc = self.compared.auc
        return numbers.interval(auc.value, auc.low, auc.high)

    @property
    def beats_chance(self) -> bool:
        """Return whether it tells members from others, by the test of :data:`SIGNIFICANCE`, else by its interval."""
        if self.chance is None:
            return self.compared.auc.low is not None and self.compared.auc.low > 0.5
        return self.chance <= SIGNIFICANCE


@dataclass(frozen=True, eq=False, kw_only=True)
class DefenseCell:
    """One configuration of the gradient lab that was audited.

    Attributes:
        cell: its configuration and what it cost.
        group: what it shares with the cells that differ from it in nothing but the defense.
        data, backbone, tuning: names.
        defense: name, and in brackets the settings that are not the default ones and not its strength.
        varied: name of the setting that is its strength; empty if it has none.
        strength: that setting.
        tried: attacks of the families that are compared, those that gave a number.
    """

    cell: UtilityCell
    group: str
    data: str
    backbone: str
    tuning: str
    defense: str
    varied: str
    strength: float | None
    tried: tuple[Tried, ...]

    @property
    def found(self) -> CellFindings:
        """Return what its audit found."""
        assert self.cell.audited is not None
        return self.cell.audited

    @property
    def where(self) -> str:
        """Return what it trains on what, in words."""
        return f"{self.data}, {self.backbone}, {self.tuning}"

    @property
    def protected(self) -> bool:
        """Return whether there is a defense."""
        return self.cell.defense.get("name") != "none"

    @property
    def setting(self) -> str:
        """Return its strength in words, such as ``rank 8``; empty if it has none."""
        return "" if self.strength is None else f"{self.varied.replace('_', ' ')} {self.strength:g}"

    @property
    def title(self) -> str:
        """Return the defense and its strength."""
        if not self.setting:
            return self.defense
        name, _, others = self.defense.partition(" (")
        return f"{name} ({', '.join([*filter(None, [others.removesuffix(')')]), self.setting])})"

    @cached_property
    def best(self) -> Mapping[Family, Tried]:
        """Return the attack of the largest AUC of each family, the first of several; some may have none."""
        found: dict[Family, Tried] = {}
        for one in sorted(self.tried, key=lambda one: -one.value):
            if one.taken.family is not None:
                found.setdefault(one.taken.family, one)
        return found

    @property
    def ceiling(self) -> float | None:
        """Return the largest AUC that the noise allows; ``None`` where no proof covers the cell."""
        return max((c for t in self.found.taken if (c := t.auc_ceiling) is not None), default=None)

    @cached_property
    def accuracy(self) -> OverSeeds | None:
        """Return the accuracy over seeds or, of one seed, over the clients' test sets; ``None`` if not measured.

        Clients that are tested on the same records have the same accuracy, and count once.
        """
        cost = self.found.cost
        if cost.accuracy is None or cost.accuracy.n > 1:
            return cost.accuracy
        sets = {self.cell.data.get(f"test.{client}", client): a for client, a in cost.by_domain.items()}
        return over_seeds(list(sets.values()))

    @property
    def accuracy_over(self) -> str:
        """Return what the interval of the accuracy is over."""
        seeds = self.found.cost.accuracy
        return "seeds" if seeds is not None and seeds.n > 1 else "clients"


def of_findings(run: str, findings: Findings) -> list[DefenseCell]:
    """Return the cells of the gradient lab in one audit, in the order of :func:`of_audits`."""
    return sorted(_cells(run, findings), key=_order)


def of_audits(audits: Sequence[Audit]) -> tuple[list[DefenseCell], list[str]]:
    """Return the cells of the gradient lab in several audits, and a sentence about each that is there twice.

    They come by data, backbone, tuning, defense and strength, undefended ones first.

    Raises:
        InputError: two audits share some of the runs of a cell, not all.
    """
    found = [one for run, findings in audits for one in _cells(run, findings)]
    kept, said = utility_once.once([one.cell for one in found])
    return sorted((one for one in found if one.cell in kept), key=_order), said


def _order(one: DefenseCell) -> tuple[Any, ...]:
    where = (one.data, one.backbone, one.tuning, one.group)
    return (*where, one.protected, one.defense, one.strength is not None, one.strength or 0.0)


def groups(cells: Sequence[DefenseCell]) -> list[list[DefenseCell]]:
    """Return cells that differ in nothing but the defense together, in their order."""
    found: dict[str, list[DefenseCell]] = {}
    for cell in cells:
        found.setdefault(cell.group, []).append(cell)
    return list(found.values())


def _cells(run: str, findings: Findings) -> list[DefenseCell]:
    runs = findings.provenance.get("runs", {})
    assert isinstance(runs, dict)
    tuned = tuple(cell for cell in findings.cells if "tuning" in runs.get(cell.name, {}).get("config", {}))
    cells = utility_cells.of_findings(run, replace(findings, cells=tuned))
    return [_cell(cell, findings.significance) for cell in cells]


def _cell(cell: UtilityCell, significance: float) -> DefenseCell:
    config = cell.config
    built = plug.build(_DEFENSES, config["defense"])
    assert isinstance(built, AbstractTuningDefense)
    varied = built.varied
    others = built.model_dump(mode="json", exclude_defaults=True, exclude={varied})
    assert cell.audited is not None
    return DefenseCell(
        cell=cell,
        group=canonical_json({key: value for key, value in config.items() if key not in _NOT_COMPARED}),
        data=config["data"]["name"],
        backbone=config["backbone"]["name"],
        tuning=config["tuning"]["name"],
        defense=f"{built.name} ({sections.named(others)})" if others else built.name,
        varied=varied,
        strength=float(getattr(built, varied)) if varied else None,
        tried=_tried(cell.audited.taken, significance),
    )


def _tried(taken: Sequence[Taken], significance: float) -> tuple[Tried, ...]:
    known = [
        (t, t.compared)
        for t in taken
        if t.family in FAMILIES and t.compared is not None and t.compared.auc.value is not None
    ]
    chance = holm({str(i): found.chance for i, (_, found) in enumerate(known)}).adjusted
    return tuple(
        Tried(
            taken=t,
            compared=found,
            chance=chance[str(i)],
            above_ceiling=t.adjusted_p is not None and t.adjusted_p <= significance,
        )
        for i, (t, found) in enumerate(known)
    )
