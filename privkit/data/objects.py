"""The same objects drawn in four styles: what PACS asks, without a download.

====================  ==========================================  ==========
domain                drawings                                    licence
====================  ==========================================  ==========
fluent-3d             Microsoft's, rendered in three dimensions   MIT
noto                  Google's, shaded                            Apache-2.0
twemoji               Twitter's, flat                             CC BY 4.0
fluent-high-contrast  Microsoft's, black on white                 MIT
====================  ==========================================  ==========

The objects are the emoji of seven kinds that all four sets draw. One emoji is one thing, with the same number in
every domain; no image occurs twice. ``docs/data.md`` says how they were chosen and drawn.
"""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

import numpy as np
from jaxtyping import UInt8
from pydantic import Field, field_validator

from privkit import shipped
from privkit.data._base import AbstractData, Domain
from privkit.data._per_class import first_of_each_class
from privkit.data._repeats import refuse_repeats
from privkit.errors import InputError

FOLDER = Path(__file__).parent / "_objects"
CLASSES = ("animal", "building", "clothing", "face", "food", "person", "vehicle")
SMALLEST_CLASS = 33  # buildings
SIDE = 64
COLUMNS = 26  # of images in a stored sheet

DomainName = Literal["fluent-3d", "noto", "twemoji", "fluent-high-contrast"]
DOMAINS: tuple[DomainName, ...] = get_args(DomainName)

# sha256 of the stored files
SHEETS: dict[DomainName, str] = {
    "fluent-3d": "bb6e002cd7d90786181ac0153d9a762a8ebf04310844f25436f442227b25b346",
    "noto": "d455caec012b5d17cd235e76676592b5d7b09da461fe8d6a75eb1e59aadf2855",
    "twemoji": "7b0a074f1e3639055fbc7265e59beeb69e0d46f6cbc21d6e68b3bcb7235263fd",
    "fluent-high-contrast": "f5dfc36969f051bf688fa1a1237cfe6a5d19f1bd0a5bfa120044f648779379bd",
}
CONCEPTS = "bfe3a38672cda3d9161a942cb1a9ca8c9630bc3702a597e274a91a94d7ec0eda"


@dataclass(frozen=True)
class Concept:
    """What is drawn.

    Attributes:
        kind: its class, one of :data:`CLASSES`.
        hexcode: code points of the emoji, such as ``1F415-200D-1F9BA``.
        name: its name in Unicode's data, such as ``service dog``.
    """

    kind: str
    hexcode: str
    name: str


class Objects(AbstractData):
    """Emoji of seven kinds in four drawing styles, in colour on white, stored with privkit."""

    domains: tuple[DomainName, ...] = Field(
        default=DOMAINS, min_length=1, description="domains to load, in this order; client i holds the i-th"
    )
    per_class: Annotated[int, Field(ge=1, strict=True)] | None = Field(
        default=None,
        description=f"concepts per class, the same in every domain, 1 to {SMALLEST_CLASS}; null takes all, "
        "which are not equally many",
    )
    side: Literal[32, 64] = Field(
        default=SIDE, description="pixels a side: 64 as stored, or 32, each the mean of four"
    )

    citation: ClassVar[str] = "fluentemoji, notoemoji, twemoji"

    @field_validator("domains")
    @classmethod
    def _each_once(cls, domains: tuple[DomainName, ...]) -> tuple[DomainName, ...]:
        if len(set(domains)) < len(domains):
            raise ValueError("a domain is named twice; name each at most once")
        return domains

    @field_validator("per_class")
    @classmethod
    def _stored(cls, per_class: int | None) -> int | None:
        if per_class is not None and per_class > SMALLEST_CLASS:
            raise ValueError(
                f"building holds {SMALLEST_CLASS} concepts; ask for at most {SMALLEST_CLASS}, or null for all"
            )
        return per_class

    @property
    def num_classes(self) -> int:
        """Return 7."""
        return len(CLASSES)

    def load(self) -> tuple[Domain, ...]:
        """Return the domains as images, uint8 of shape [N, side, side, 3], always the same in the same order.

        Row i shows the same concept in every domain: ``things`` is its place in :func:`concepts`. With ``per_class``,
        these are the first so many concepts of every class in stored order, which was shuffled once: a smaller
        ``per_class`` gives a subset of a larger one.

        Raises:
            InputError: a stored file is missing or damaged.
        """
        labels = np.array([CLASSES.index(concept.kind) for concept in concepts()])
        things = np.arange(len(labels))
        if self.per_class is not None:
            things = first_of_each_class(labels, self.per_class)
        domains = tuple(
            Domain(_images(name, len(labels), self.side)[things], labels[things], name, things=things)
            for name in self.domains
        )
        refuse_repeats(domains)
        return domains


def concepts() -> tuple[Concept, ...]:
    """Return all concepts that are stored; concept i is the i-th.

    Raises:
        InputError: the stored list is missing or damaged.
    """
    content = shipped.read(FOLDER / "concepts.csv", sha256=CONCEPTS).decode()
    return tuple(Concept(**row) for row in csv.DictReader(io.StringIO(content)))


def _images(name: DomainName, count: int, side: int) -> UInt8[np.ndarray, "N {side} {side} 3"]:
    """Return one domain's images of all concepts, cut out of its stored sheet."""
    from PIL import Image, UnidentifiedImageError

    content = shipped.read(FOLDER / f"{name}.webp", sha256=SHEETS[name])
    try:
        sheet = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
    except UnidentifiedImageError:
        raise InputError(
            "the Pillow that is installed reads no WebP, which objects are stored as; install a wheel of pillow."
        ) from None
    tiles = sheet.reshape(-1, SIDE, COLUMNS, SIDE, 3).swapaxes(1, 2).reshape(-1, SIDE, SIDE, 3)[:count]
    if side == SIDE:
        return tiles
    fours = np.stack([tiles[:, i::2, j::2] for i in (0, 1) for j in (0, 1)]).sum(axis=0, dtype=np.uint16)
    return ((fours + 2) // 4).astype(np.uint8)
