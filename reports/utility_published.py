"""Published accuracies that a table prints beside measured ones; they enter no mean and no test.

``reports/published/README.md`` says where they come from. Everything is kept as it was printed, in percent; AVG and
STD are computed again from the printed cells of the domains, since some printed ones do not follow from them.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from statistics import stdev
from typing import Any

FOLDER = Path(__file__).parent / "published"
DOMAINS = {
    "digits": ("mnist", "usps", "svhn", "syn"),
    "office_caltech10": ("amazon", "caltech", "dslr", "webcam"),
    "pacs": ("photo", "art_painting", "cartoon", "sketch"),
}
TITLES = {
    "digits": "MNIST, USPS, SVHN, SYN",
    "office_caltech10": "Office-Caltech-10",
    "pacs": "PACS",
    "cifar10": "CIFAR-10",
}
_ROUNDED_UP, _CUT = -0.005 - 1e-9, 0.01
"""How far a value may be from what is printed of it with two decimals, rounded or cut."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """One row of a published table.

    Attributes:
        table: where it is printed, in words.
        framework: method, as printed.
        defense: ``IGPP``, ``VPP``, ``DCR`` or ``VPDR``.
        dataset: as in :data:`DOMAINS`, or ``cifar10``.
        under: what else distinguishes its table's rows: ``alpha``, ``d`` and ``r``, or ``family``.
        domains: accuracy of each domain, in percent; none if the table has only the mean.
        avg: mean over domains, in percent.
        std: over domains, in percentage points; ``None`` if the table has none.
        inferred: which of ``framework`` and ``dataset`` the table does not say, and was inferred.
    """

    table: str
    framework: str
    defense: str
    dataset: str
    avg: Decimal
    std: Decimal | None = None
    domains: Mapping[str, Decimal] = field(default_factory=dict)
    under: Mapping[str, Any] = field(default_factory=dict)
    inferred: tuple[str, ...] = ()

    def said(self, name: str, text: str) -> str:
        """Return a text about ``framework`` or ``dataset``, marked if that was inferred."""
        return f"{text} (inferred)" if name in self.inferred else text

    @property
    def recomputed_avg(self) -> float | None:
        """Return the mean of the printed domain cells, in percent; ``None`` without them."""
        return float(sum(self.domains.values()) / len(self.domains)) if self.domains else None

    @property
    def recomputed_std(self) -> float | None:
        """Return their sample standard deviation, in percentage points; ``None`` without them."""
        return float(stdev(self.domains.values())) if self.domains else None

    @property
    def avg_agrees(self) -> bool:
        """Return whether the printed mean is that of the printed cells, rounded or cut."""
        return _agree(self.avg, self.recomputed_avg)

    @property
    def std_agrees(self) -> bool:
        """Return whether the printed spread is the sample standard deviation of the printed cells."""
        return _agree(self.std, self.recomputed_std)


def _agree(printed: Decimal | None, computed: float | None) -> bool:
    return printed is None or computed is None or _ROUNDED_UP <= computed - float(printed) < _CUT


def published() -> list[Published]:
    """Return every published row there is, table by table."""
    return [*_accuracies(), *_ablation(), *_label_skew(), *_widths(), *_mixed()]


def _accuracies() -> Iterator[Published]:
    tables = {"main": "main accuracy table", "appendixE3": "Appendix E.3, conditions not stated"}
    for file, table in tables.items():
        for row in _rows(f"vpdr_accuracy_{file}.csv"):
            yield Published(
                table=table,
                framework=row["framework"],
                defense=row["ldp"],
                dataset=row["dataset"],
                domains=_domains(row),
                avg=Decimal(row["avg_published_percent"]),
                std=Decimal(row["std_published_pp"]),
            )


def _ablation() -> Iterator[Published]:
    """Yield the rows that the main table does not have: one of the two parts alone."""
    names = {("1", "0"): "VPP", ("0", "1"): "DCR"}
    for row in _rows("vpdr_ablation.csv"):
        if (row["vpp"], row["dcr"]) in names:
            yield Published(
                table="ablation table",
                framework=row["framework"],
                defense=names[row["vpp"], row["dcr"]],
                dataset=row["dataset"],
                domains=_domains(row),
                avg=Decimal(row["avg_percent"]),
                std=Decimal(row["std_pp"]),
            )


def _label_skew() -> Iterator[Published]:
    for row in _rows("vpdr_label_skew_alpha.csv"):
        yield Published(
            table="label-skew table",
            framework=row["framework"],
            defense=row["ldp"],
            dataset=row["dataset_inferred"],
            under={"alpha": float(row["dirichlet_alpha"])},
            inferred=("dataset",),
            avg=Decimal(row["accuracy_percent"]),
        )


def _widths() -> Iterator[Published]:
    for row in _rows("vpdr_d_r.csv"):
        split = {"r": float(row["split_ratio_r"])} if row["split_ratio_r"] else {}
        yield Published(
            table="Appendix E.7",
            framework="FedProto",
            defense=row["ldp"],
            dataset="pacs",
            under={"d": int(row["embedding_dim_d"]), **split},
            inferred=("framework", "dataset"),
            avg=Decimal(row["avg_accuracy_percent"]),
        )


def _mixed() -> Iterator[Published]:
    for row in _rows("vpdr_model_heterogeneity.csv"):
        yield Published(
            table="model-heterogeneity table",
            framework=row["framework"],
            defense=row["ldp"],
            dataset=row["dataset"],
            under={"family": row["model_family"]},
            avg=Decimal(row["avg_accuracy_percent"]),
        )


def _domains(row: Mapping[str, str]) -> dict[str, Decimal]:
    names = DOMAINS[row["dataset"]]
    return {name: Decimal(row[f"acc_domain{i}_percent"]) for i, name in enumerate(names, start=1)}


def _rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
