"""Published G, P and C of FedOT's paper, which a table prints below measured ones; ``reports/published/README.md``."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from reports.generalization import by_identity
from reports.utility_published import FOLDER

DOMAINS = 4
"""N of every data set: with no other do rows of averaged methods obey the identity."""
_ROUNDED = 0.011
"""How far C may be from what G and P give, all rounded to two decimals."""


@dataclass(frozen=True, kw_only=True)
class PublishedGeneralization:
    """One row, in percent, as printed: means over five data sets under CLIP ViT-B/32.

    Attributes:
        method: as printed.
        g, p, c: of unseen domains, of clients, of both; ``None`` where nothing is printed.
        note: what is said of it.
    """

    method: str
    g: Decimal | None
    p: Decimal | None
    c: Decimal | None
    note: str

    @property
    def given(self) -> float | None:
        """Return the C that the printed G and P give, in percent."""
        g, p = (None if value is None else float(value) for value in (self.g, self.p))
        return by_identity(g, p, DOMAINS)

    @property
    def agrees(self) -> bool:
        """Return whether the printed C is what G and P give, up to rounding, or cannot be told."""
        return self.c is None or self.given is None or abs(float(self.c) - self.given) <= _ROUNDED


def published() -> Iterator[PublishedGeneralization]:
    """Yield every row of the main table."""
    with (FOLDER / "fedot_main.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            g, p, c = (_number(row[f"{key}_pct"]) for key in "GPC")
            yield PublishedGeneralization(method=row["method"], g=g, p=p, c=c, note=row["note"])


def _number(text: str) -> Decimal | None:
    return Decimal(text) if text else None
