"""Ten digits in four styles: what runs without a download.

=========  =======================================================  ==========  ==================
domain     records                                                  per class   licence
=========  =======================================================  ==========  ==================
mnist      handwriting, scanned; 28 x 28 averaged to 16 x 16        200         CC BY-SA 3.0
optdigits  handwriting, scanned; 8 x 8 counts, drawn twice as big   554 to 572  CC BY 4.0
pendigits  handwriting on a tablet; 8 pen positions, drawn          1055+       CC BY 4.0
syn        21 printed faces over photographs                        200         CC BY 2.0 (photos)
=========  =======================================================  ==========  ==================

No image occurs twice, in a domain or across domains: a record that is a member is never also a
non-member. ``docs/data.md`` says how each was made.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import UInt8
from pydantic import Field, field_validator, model_validator

from privkit import shipped
from privkit.data._base import AbstractData, Domain
from privkit.data._per_class import first_of_each_class
from privkit.data._render import draw_strokes, stretch, upscale
from privkit.data._repeats import refuse_repeats

FOLDER = Path(__file__).parent / "_digits"
NUM_CLASSES = 10

DomainName = Literal["mnist", "optdigits", "pendigits", "syn"]


@dataclass(frozen=True)
class Source:
    """One stored domain.

    Attributes:
        sha256: hash of its file.
        per_class: number of records in its smallest class.
        draw: what turns stored records into grey images.
    """

    sha256: str
    per_class: int
    draw: Callable[[np.ndarray], UInt8[np.ndarray, "N 16 16"]]


SOURCES: dict[DomainName, Source] = {
    "mnist": Source("d1a2d0e99faa5d97547c4dccd84073ad2f69d1a2421d94a17977cd27338b5bc1", 200, np.asarray),
    "optdigits": Source("84bc71c00600491e04ee5d3f24918fbfd7ec691f149692424cb82924d8cbf1b7", 554, upscale),
    "pendigits": Source(
        "28615de99b8bf3cf0415a07324b6686990e385d45ca7a0d38401d6bd4dd848d5", 1055, draw_strokes
    ),
    "syn": Source("d2030cbbaa7d23b929f0c48d66eb1a9c678d29476cd44aed98be951d33c6c486", 200, stretch),
}


class Digits(AbstractData):
    """Real and printed digits in four domains, 16 x 16 grey, ten classes, stored with privkit."""

    domains: tuple[DomainName, ...] = Field(
        default=("mnist", "optdigits", "pendigits", "syn"),
        min_length=1,
        description="domains to load, in this order; client i holds the i-th",
    )
    per_class: Annotated[int, Field(ge=1, strict=True)] | None = Field(
        default=200,
        description="records per class and domain, at least 1; null takes all that are stored",
    )

    citation: ClassVar[str] = "lecun1998gradient, alpaydin1998optical, alpaydin1996pen"

    @field_validator("domains")
    @classmethod
    def _each_once(cls, domains: tuple[DomainName, ...]) -> tuple[DomainName, ...]:
        if len(set(domains)) < len(domains):
            raise ValueError("a domain is named twice; name each at most once")
        return domains

    @model_validator(mode="after")
    def _stored(self) -> "Digits":
        for domain in self.domains:
            stored = SOURCES[domain].per_class
            if self.per_class is not None and self.per_class > stored:
                raise ValueError(f"{domain} holds {stored} records per class; ask for at most {stored}")
        return self

    @property
    def num_classes(self) -> int:
        """Return 10."""
        return NUM_CLASSES

    def load(self) -> tuple[Domain, ...]:
        """Return the domains as 16 x 16 images, always the same records in the same order.

        With ``per_class``, these are the first so many records of every class in stored order,
        which was shuffled once: a smaller ``per_class`` gives a subset of a larger one.

        Raises:
            InputError: a stored file is missing or damaged.
        """
        domains = tuple(_domain(name, self.per_class) for name in self.domains)
        refuse_repeats(domains)
        return domains


def _domain(name: DomainName, per_class: int | None) -> Domain:
    source = SOURCES[name]
    content = shipped.read(FOLDER / f"{name}.npz", sha256=source.sha256)
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        records, labels = stored["records"], stored["labels"].astype(np.int64)
    if per_class is not None:
        kept = first_of_each_class(labels, per_class)
        records, labels = records[kept], labels[kept]
    return Domain(source.draw(records), labels, name)
