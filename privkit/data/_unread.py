"""Images whose labels are known and which are decoded only when they are wanted: streamed into one array."""

import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64, UInt8

from privkit.data._base import Labelled
from privkit.data._folders import Picture
from privkit.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

THREADS = 2
NAMED = 3


@dataclass(frozen=True, eq=False)
class Unread:
    """Records in a fixed order.

    Attributes:
        names: unique in the data set; what subsets are chosen by, and messages say.
        labels: class of each, from 0.
        open: returns the image of a row, grey or in colour.
    """

    names: tuple[str, ...]
    labels: Int64[np.ndarray, " N"]
    open: "Callable[[int], Image]"


@dataclass(frozen=True, eq=False)
class UnreadDomain:
    """A domain before anything is decoded; ``test`` is what the data set itself keeps for testing."""

    name: str
    records: Unread
    test: Unread | None


def of_pictures(pictures: Iterable[Picture]) -> Unread:
    """Return picture files as records."""
    kept = tuple(pictures)
    labels = np.array([picture.label for picture in kept], np.int64)
    return Unread(tuple(p.name for p in kept), labels, lambda row: _in_colour(kept[row].path))


def of_array(images: Callable[[int], np.ndarray], labels: Int64[np.ndarray, " N"], *, name: str) -> Unread:
    """Return images in memory as records.

    Args:
        images: returns a row's grey levels, uint8 of shape [height, width] or [height, width, 3].
        labels: class of each row.
        name: what the rows are named after.
    """
    from PIL import Image

    names = tuple(f"{name}[{row}]" for row in range(len(labels)))
    return Unread(names, labels, lambda row: Image.fromarray(images(row)))


def read(unread: Unread, rows: Int64[np.ndarray, " M"], *, side: int, skip_bad: bool) -> Labelled:
    """Return rows as colour images, uint8 of shape [M, side, side, 3], and their classes.

    Each image is resized to a square without keeping its proportions, bicubic with antialiasing: what the
    papers do with ``Resize((224, 224))``, but for their filter, which is bilinear. Grey images have three equal
    channels; transparency is ignored.

    Args:
        unread: where the rows are.
        rows: row numbers.
        side: pixels.
        skip_bad: whether images that cannot be read are left out, with a warning that counts them.

    Raises:
        InputError: images cannot be read; the first three are named, all are counted.
    """
    records = np.empty((len(rows), side, side, 3), np.uint8)
    bad: dict[int, str] = {}

    def fill(start: int) -> None:
        for place in range(start, len(rows), THREADS):
            try:
                records[place] = _squared(unread.open(int(rows[place])), side)
            except Exception as error:  # Pillow's decoders raise what they like on a damaged file
                bad[place] = str(error) or type(error).__name__

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(fill, range(THREADS)))
    kept = np.array([place for place in range(len(rows)) if place not in bad], np.int64)
    if bad:
        reasons = {unread.names[rows[place]]: bad[place] for place in sorted(bad)}
        refuse_bad(reasons, total=len(rows), skip_bad=skip_bad)
        for target, place in enumerate(kept):  # in place: a copy would double the memory
            records[target] = records[place]
    return Labelled(records[: len(kept)], unread.labels[rows[kept]])


def refuse_bad(reasons: dict[str, str], *, total: int, skip_bad: bool) -> None:
    """Say how many records cannot be used and name the first three: in a warning if they may be left out.

    Raises:
        InputError: they may not.
    """
    if not reasons:
        return
    first = "; ".join(f"{name}: {reason}" for name, reason in list(reasons.items())[:NAMED])
    more = ", …" if len(reasons) > NAMED else ""
    said = f"{len(reasons):,} of {total:,} images cannot be used ({first}{more})"
    if not skip_bad:
        raise InputError(f"{said}; replace them, or set skip_bad: true to leave them out.")
    warnings.warn(f"{said}; they are left out.", stacklevel=2)


def _in_colour(path: Path) -> "Image":
    """Return a picture file's pixels in three channels."""
    from PIL import Image

    with Image.open(path) as image:
        if "transparency" in image.info:  # a palette's transparency goes through RGBA, or Pillow warns
            return image.convert("RGBA").convert("RGB")
        return image.convert("RGB")


def _squared(image: "Image", side: int) -> UInt8[np.ndarray, "side side 3"]:
    from PIL.Image import Resampling

    colour = image.convert("RGB")
    if colour.size != (side, side):
        colour = colour.resize((side, side), Resampling.BICUBIC)
    return np.asarray(colour)
