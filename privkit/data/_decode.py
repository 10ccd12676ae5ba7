"""Picture files to pixels in three channels; what would be ruined on the way is refused."""

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

if TYPE_CHECKING:
    from PIL.Image import Image

PIXELS = 2**26
"""Most pixels of a picture that is decoded."""

FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF")
"""What is read, whatever the file is called; no format that another program would have to be run for."""


def in_colour(path: Path) -> "Image":
    """Return a picture file's pixels in three channels.

    Grey levels of 16 bits become v / 257, rounded: 65,535 is 255. Colours of 16 bits lose their lower eight.

    Raises:
        ValueError: it is no file, has no pixel or more than :data:`PIXELS`, or its levels have no known range.
        OSError: it cannot be read.
    """
    from PIL import Image

    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would never end
        raise ValueError("it is a folder, not a file" if path.is_dir() else "it is no ordinary file")
    try:
        with Image.open(path, formats=FORMATS) as image:
            _refuse_size(*image.size)
            return _channels(image)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise ValueError(f"it has more than {PIXELS:,} pixels") from None
    except Image.UnidentifiedImageError:
        raise ValueError("it is no picture of a kind that is read") from None


def _refuse_size(width: int, height: int) -> None:
    if not width * height:
        raise ValueError("it has no pixels")
    if width * height > PIXELS:
        raise ValueError(f"it has {width:,} x {height:,} pixels, more than {PIXELS:,}")


def _channels(image: "Image") -> "Image":
    from PIL import Image

    # Pillow opens grey levels of 16 bits as I;16, but those of a PGM, which it brings to 0 to 65,535, as I
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM"):
        return Image.fromarray(_eight_bits(np.asarray(image))).convert("RGB")
    if image.mode in ("I", "F"):
        raise ValueError("its grey levels are 32-bit numbers of no known range; save it with 8 or 16 bits")
    if "transparency" in image.info:  # a palette's transparency goes through RGBA, or Pillow warns
        return image.convert("RGBA").convert("RGB")
    return image.convert("RGB")


def _eight_bits(levels: np.ndarray) -> UInt8[np.ndarray, "height width"]:
    return ((levels.astype(np.int64) + 128) // 257).astype(np.uint8)
