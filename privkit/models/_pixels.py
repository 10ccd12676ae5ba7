"""Images as networks read them: in colour or grey, square, channels first."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from privkit.errors import InputError

BICUBIC = 3  # as Pillow numbers its filters, and every preprocessor_config.json with it


@dataclass(frozen=True)
class Reading:
    """How a network wants its images.

    Attributes:
        channels: 3 for colour, 1 for grey.
        side: height and width.
        mean: what is subtracted from pixels in [0, 1], per channel or once for all.
        deviation: what they are then divided by.
        resample: Pillow's number of the filter that resizes.
    """

    channels: int
    side: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    resample: int = BICUBIC

    def __post_init__(self) -> None:
        for name, values in (("mean", self.mean), ("std", self.deviation)):
            if len(values) not in (1, self.channels):
                raise InputError(
                    f"{name} has {len(values)} numbers, and the model reads {self.channels} channels; give one number "
                    "for all, or one per channel."
                )

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Return channels, height and width."""
        return self.channels, self.side, self.side

    def pixels(self, records: np.ndarray, *, reader: str) -> UInt8[np.ndarray, "N channels side side"]:
        """Return records as the network wants them, times 255; as the function ``pixels`` says."""
        return pixels(records, channels=self.channels, side=self.side, reader=reader, resample=self.resample)


def pixels(
    records: np.ndarray, *, channels: int, side: int | None, reader: str, resample: int = BICUBIC
) -> UInt8[np.ndarray, "N {channels} height width"]:
    """Return records as images with ``channels`` channels, first, of ``side`` x ``side`` unless that is none.

    Raises:
        InputError: they are no images.
    """
    images = only_images(records, reader=reader)
    if channels == 1:
        images = grey(images)
    if side is not None:
        images = resized(images, side=side, resample=resample)
    return images[:, None] if channels == 1 else np.ascontiguousarray(colour(images).transpose(0, 3, 1, 2))


def only_images(records: np.ndarray, *, reader: str) -> UInt8[np.ndarray, "..."]:
    """Return the records if they are images, grey or in colour; ``reader`` is the encoder that asks."""
    if records.dtype.kind == "U":
        raise InputError(
            f"encoder {reader} reads images, and these records are sentences; take one that reads text, "
            "such as minilm."
        )
    shaped = records.ndim == 3 or (records.ndim == 4 and records.shape[-1] == 3)
    if records.dtype != np.uint8 or not shaped or 0 in records.shape[1:]:
        raise InputError(
            f"encoder {reader} reads uint8 images of shape [N, height, width] or [N, height, width, 3], not "
            f"{records.dtype} of {list(records.shape)}; change the records' shape and type."
        )
    return records


def colour(images: UInt8[np.ndarray, "N height width *c"]) -> UInt8[np.ndarray, "N height width 3"]:
    """Return images in colour; each channel of one that was grey is its grey level."""
    return images if images.ndim == 4 else np.repeat(images[..., None], 3, axis=-1)


def grey(images: UInt8[np.ndarray, "N height width *c"]) -> UInt8[np.ndarray, "N height width"]:
    """Return grey images: of colour, the luma of ITU-R BT.601 in whole numbers, as Pillow's mode L."""
    if images.ndim == 3:
        return images
    red, green, blue = np.moveaxis(images.astype(np.uint32), -1, 0)
    return ((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16).astype(np.uint8)


def resized(
    images: UInt8[np.ndarray, "N height width *c"], *, side: int, resample: int = BICUBIC
) -> UInt8[np.ndarray, "N {side} {side} *c"]:
    """Return images of ``side`` x ``side``; others than square ones are squeezed.

    Pillow computes in whole numbers and averages over what it shrinks, so the result is the same bytes everywhere.
    """
    from PIL import Image

    if images.shape[1:3] == (side, side):
        return images
    out = np.empty((len(images), side, side, *images.shape[3:]), np.uint8)
    for i, image in enumerate(images):
        out[i] = np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling(resample)))
    return out
