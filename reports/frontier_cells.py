"""What a privacy-utility frontier is made of: each audited cell with its strongest attack on records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attacks.statistics.seeds import OverSeeds
from reports import attacks_once, sections, utility_cells
from reports.attacks_once import Audit
from reports.findings import CellFindings, Taken
from reports.utility_cells import UtilityCell, by_number

OUTSIDE = ("insider", "client")
"""Tiers that have what no server has; no claim is about them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FrontierCell:
    """One audited configuration.

    Attributes:
        cell: its configuration.
        found: what its audit found.
        system: method, or what is tuned of which transformer.
        strongest: attack on records with the largest AUC, of those whose attacker has what a server has; ``None`` where
            none gave a number.
        tried: attacks that gave a number.
        unattacked: whether nothing left a client, so that there was nothing to attack.
    """

    cell: UtilityCell
    found: CellFindings
    system: str
    strongest: Taken | None
    tried: int
    unattacked: bool

    @property
    def data(self) -> str:
        """Return the name of the data set; empty if other code recorded it."""
        return str((self.cell.config.get("data") or {}).get("name", ""))

    @property
    def accuracy(self) -> OverSeeds | None:
        """Return the accuracy over seeds; ``None`` if it was not measured."""
        return self.found.cost.accuracy

    @property
    def auc(self) -> float | None:
        """Return the AUC of the strongest attack; one half where nothing was sent, ``None`` where it is not known."""
        if self.unattacked:
            return 0.5
        return None if self.strongest is None or self.strongest.auc is None else self.strongest.auc.value

    @property
    def ceiling(self) -> float | None:
        """Return the largest AUC that the proof leaves the strongest attack; ``None`` where no proof covers it."""
        return None if self.strongest is None else self.strongest.auc_ceiling

    def beaten_by(self, other: "FrontierCell") -> bool:
        """Return whether another cell is at least as good in accuracy and in AUC, and better in one of them."""
        mine, theirs = point(self), point(other)
        if mine is None or theirs is None:
            return False
        return theirs[0] >= mine[0] and theirs[1] <= mine[1] and theirs != mine


def of_audits(audits: Sequence[Audit]) -> tuple[list[FrontierCell], list[str]]:
    """Return the cells of several audits, by data and name, and a sentence about each that is there twice.

    Raises:
        InputError: two audits share some of the runs of a cell, not all.
    """
    audits, said = attacks_once.once(audits)
    found = [_cell(cell) for run, findings in audits for cell in utility_cells.of_findings(run, findings)]
    return sorted(found, key=lambda one: (one.data, one.cell.run, by_number(one.cell.name))), said


def frontier(cells: Sequence[FrontierCell]) -> list[FrontierCell]:
    """Return the cells that no other one of the same data set beats; those without both numbers are on no frontier."""
    known = [one for one in cells if point(one) is not None]
    return [
        one for one in known if not any(one.beaten_by(other) for other in known if other.data == one.data)
    ]


def point(one: FrontierCell) -> tuple[float, float] | None:
    """Return accuracy and AUC of a cell; ``None`` where one of them is not known."""
    accuracy, auc = one.accuracy, one.auc
    return None if accuracy is None or accuracy.mean is None or auc is None else (accuracy.mean, auc)


def _cell(cell: UtilityCell) -> FrontierCell:
    assert cell.audited is not None
    of_records = [t for t in cell.audited.taken if not t.asks_about_canaries and t.tier not in OUTSIDE]
    known = [(t.auc.value, t) for t in of_records if t.auc is not None and t.auc.value is not None]
    strongest = max(known, key=lambda pair: pair[0])[1] if known else None
    return FrontierCell(
        cell=cell,
        found=cell.audited,
        system=_system(cell.config),
        strongest=strongest,
        tried=len(known),
        unattacked=not cell.audited.cost.bytes_per_round,
    )


def _system(config: Any) -> str:
    """Return what is trained together, in a few words; empty if other code recorded it."""
    method, tuning = config.get("method") or {}, config.get("tuning") or {}
    if tuning:
        return f"{config['backbone']['name']} with {tuning['name']}"
    if not method:
        return ""
    model = utility_cells.in_short(config)
    return f"{method['name']} ({model})" if model else str(method["name"])


def defense_of(one: FrontierCell) -> str:
    """Return its defense with the settings that it was given; empty if other code recorded it."""
    defense = dict(one.cell.defense)
    name = defense.pop("name", "")
    told = {key: value for key, value in defense.items() if key in _TOLD and value is not None}
    return f"{name} ({sections.named(told)})" if told else str(name)


_TOLD = ("epsilon", "noise_multiplier", "rank", "strength", "p", "alpha")
"""Settings that say how strong a defense is."""
