"""Which published rows belong beside a cell, and how near its data and models are to theirs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from privkit.atomic import canonical_json
from reports.utility_cells import UtilityCell
from reports.utility_published import Published

FRAMEWORKS = {
    "fedproto": "FedProto",
    "fedpcl": "FedPCL",
    "fpl": "FPL",
    "fedplvm": "FedPLVM",
    "fedtgp": "FedTGP",
    "mpft": "MPFT",
}
DATASETS = {
    "pacs": "pacs",
    "office_caltech": "office_caltech10",
    "digits5": "digits",
    "cifar10": "cifar10",
}
STAND_INS = {"digits": "digits", "objects": "pacs", "fashion_mnist": "cifar10"}
"""Data sets of another kind that a study without downloads has in place of the published ones."""

_PAPER = {"d": 512, "r": 0.1}
"""What the other tables have where that of d and r varies both."""


class Beside(NamedTuple):
    """A published row, and whether a cell has its data; if not, a stand-in."""

    row: Published
    same_data: bool


def beside(cell: UtilityCell, rows: Sequence[Published]) -> list[Beside]:
    """Return the published rows of a cell's framework, defense and data set, whatever its epsilon and encoder."""
    data = (cell.config.get("data") or {}).get("name", "")
    dataset = DATASETS.get(data) or STAND_INS.get(data)
    framework, defense = FRAMEWORKS.get(cell.method.get("name", "")), _defense(cell.defense)
    if None in (dataset, framework, defense):
        return []
    found = [r for r in rows if (r.framework, r.defense, r.dataset) == (framework, defense, dataset)]
    return [Beside(row, data in DATASETS) for row in found if row.under == _under(cell, found)]


def _under(cell: UtilityCell, rows: Sequence[Published]) -> Mapping[str, Any]:
    """Return which of the rows are of a cell's kind: those of its alpha, its mixture, or its d and r, if any are."""
    data, mixed = cell.config.get("data") or {}, cell.config.get("mixed")
    if mixed:
        backbones = {canonical_json(_backbone(one["encoder"])) for one in mixed}
        return {"family": "HtC4" if len(backbones) == 1 else "HtFE4"}
    if data.get("alpha") is not None:
        return {"alpha": float(data["alpha"])}
    split = (cell.defense.get("partition") or {}).get("split")
    widths = {"d": cell.dim} | ({} if split is None else {"r": split})
    varied = widths != {key: _PAPER[key] for key in widths}
    return widths if varied and any(row.under == widths for row in rows) else {}


def _backbone(encoder: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an encoder's settings without the random projections behind it, which differ by client either way."""
    return _backbone(encoder["encoder"]) if encoder.get("name") == "projected" else encoder


def _defense(section: Mapping[str, Any]) -> str | None:
    """Return a defense's published name; ``None`` for one that was not published, such as a control."""
    name, release = section.get("name"), section.get("release") or {}
    if (section.get("partition") or {}).get("name", "laplace") != "laplace":
        return None
    if name == "dcr":
        return "DCR" if release.get("name") == "igpp" else None
    return {"igpp": "IGPP", "vpp": "VPP", "vpdr": "VPDR"}.get(str(name))
