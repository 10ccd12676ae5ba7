"""Images whose labels are known and which are decoded only when they are wanted: streamed into one array."""

import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64, UInt8

from privkit.data._base import Labelled
from privkit.data._decode import in_colour
from privkit.data._folders import Picture

if TYPE_CHECKING:
    from PIL.Image import Image

THREADS = 2


@dataclass(frozen=True, eq=False)
class Unread:
    """Records in a fixed order.

    Attributes:
        names: unique in the data set; what subsets are chosen by, and messages say.
        labels: class of each, from 0.
        open: returns the image of a row, grey or in colour.
        shape: of each image, where all have one; ``None``: of any.
    """

    names: tuple[str, ...]
    labels: Int64[np.ndarray, " N"]
    open: "Callable[[int], Image]"
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class UnreadDomain:
    """A domain before anything is decoded.

    Attributes:
        name: the domain's.
        records: to train on, or to be split.
        test: what the data set itself keeps for testing.
        wrong: pictures that lists leave out, and why, by name.
        absent: what lists name but is not there.
    """

    name: str
    records: Unread
    test: Unread | None
    wrong: dict[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()


def of_pictures(pictures: Iterable[Picture]) -> Unread:
    """Return picture files as records."""
    kept = tuple(pictures)
    labels = np.array([picture.label for picture in kept], np.int64)
    return Unread(tuple(p.name for p in kept), labels, lambda row: _opened(kept[row]))


def _opened(picture: Picture) -> "Image":
    if picture.wrong:
        raise ValueError(picture.wrong)
    return in_colour(picture.path)


def of_array(images: UInt8[np.ndarray, "N ..."], labels: Int64[np.ndarray, " N"], *, name: str) -> Unread:
    """Return images in memory as records.

    Args:
        images: grey levels, uint8 of shape [N, height, width] or [N, height, width, 3].
        labels: class of each.
        name: what the rows are named after.
    """
    from PIL import Image

    names = tuple(f"{name}[{row}]" for row in range(len(labels)))
    return Unread(names, labels, lambda row: Image.fromarray(images[row]), images.shape[1:])


def read(unread: Unread, rows: Int64[np.ndarray, " M"], *, side: int) -> tuple[Labelled, dict[str, str]]:
    """Return rows as colour images, uint8 of shape [M, side, side, 3], with their classes; and what cannot be read.

    Each image is resized to a square without keeping its proportions, bicubic with antialiasing: what the
    papers do with ``Resize((224, 224))``, but for their filter, which is bilinear. Grey images have three equal
    channels; transparency is ignored.

    Args:
        unread: where the rows are.
        rows: row numbers.
        side: pixels.

    Returns:
        The images that can be read, in the order of the rows; and of each other the reason, by its name.
    """
    from PIL.Image import DecompressionBombWarning

    records = np.empty((len(rows), side, side, 3), np.uint8)
    bad: dict[int, str] = {}

    def fill(start: int) -> None:
        for place in range(start, len(rows), THREADS):
            try:
                records[place] = _squared(unread.open(int(rows[place])), side)
            except Exception as error:  # Pillow's decoders raise what they like on a damaged file
                bad[place] = getattr(error, "strerror", None) or str(error) or type(error).__name__

    with warnings.catch_warnings(), ThreadPoolExecutor(THREADS) as pool:
        warnings.simplefilter("error", DecompressionBombWarning)
        list(pool.map(fill, range(THREADS)))
    kept = np.array([place for place in range(len(rows)) if place not in bad], np.int64)
    if bad:
        for target, place in enumerate(kept):  # in place: a copy would double the memory
            records[target] = records[place]
    reasons = {unread.names[rows[place]]: bad[place] for place in sorted(bad)}
    return Labelled(records[: len(kept)], unread.labels[rows[kept]]), reasons


def _squared(image: "Image", side: int) -> UInt8[np.ndarray, "side side 3"]:
    from PIL.Image import Resampling

    colour = image.convert("RGB")
    if colour.size != (side, side):
        colour = colour.resize((side, side), Resampling.BICUBIC)
    return np.asarray(colour)
