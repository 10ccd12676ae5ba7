"""The digits of all domains over many clients with label skew: what runs without a download."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from privkit.data._base import Domain, Labelled
from privkit.data._skew import AbstractSkewedData, capped, clients_of, mixed
from privkit.data.digits import NUM_CLASSES, Digits, DomainName


class SkewedDigits(AbstractSkewedData):
    """Ten digits in four styles, mixed and shared out over clients."""

    domains: tuple[DomainName, ...] = Field(
        default=("mnist", "optdigits", "pendigits", "syn"),
        min_length=1,
        description="styles that are mixed, in this order",
    )
    per_style: int = Field(
        default=200, ge=2, le=200, description="records per class and style, the first in stored order"
    )

    tests: Literal["own", "shared"] = Field(
        default="own",
        description="test each client on records of its own (split.test), or all on the last fifth of each class and "
        "style, which nobody trains on",
    )

    citation: ClassVar[str] = "lecun1998gradient, alpaydin1998optical, alpaydin1996pen, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 10."""
        return NUM_CLASSES

    def files(self) -> dict[str, Path]:
        """Return nothing: the records are stored with privkit."""
        return {}

    def load(self) -> tuple[Domain, ...]:
        if self.tests == "shared":
            return super().load()
        train, test = self.parts()
        whole = Labelled(*map(np.concatenate, zip(*map(_arrays, (train, test)), strict=True)))
        found = clients_of(
            capped(whole, self.per_class),
            test,
            clients=self.clients,
            alpha=self.alpha,
            seed=self.partition_seed,
            empty=self.empty,
        )
        return tuple(replace(domain, test=None) for domain in found)

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return four fifths of each class and style, and the last fifth of each, in stored order."""
        domains = Digits(domains=self.domains, per_class=self.per_style).load()
        return mixed(domains)


def _arrays(part: Labelled) -> tuple[np.ndarray, np.ndarray]:
    return part.records, part.labels
