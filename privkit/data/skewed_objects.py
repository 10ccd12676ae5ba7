"""The drawings of all styles over many clients with label skew: what runs without a download.

A thing is drawn in every style: those that are tested on are nobody's to train on, in no style. Of a thing that is not,
different clients may hold different drawings.
"""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from privkit.data._base import Labelled
from privkit.data._skew import AbstractSkewedData, mixed
from privkit.data.objects import CLASSES, DOMAINS, SIDE, DomainName, Objects


class SkewedObjects(AbstractSkewedData):
    """Emoji of seven kinds in four styles, mixed and shared out over clients; the last fifth of each kind is tested."""

    domains: tuple[DomainName, ...] = Field(
        default=DOMAINS, min_length=1, description="styles that are mixed, in this order"
    )
    side: Literal[32, 64] = Field(
        default=SIDE, description="pixels a side: 64 as stored, or 32, each the mean of four"
    )

    citation: ClassVar[str] = "fluentemoji, notoemoji, twemoji, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 7."""
        return len(CLASSES)

    def files(self) -> dict[str, Path]:
        """Return nothing: the records are stored with privkit."""
        return {}

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the drawings of four fifths of the things of each kind, and of the last fifth, in stored order."""
        domains = Objects(domains=self.domains, side=self.side).load()
        return mixed(domains)
