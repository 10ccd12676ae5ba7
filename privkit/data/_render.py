"""Small records turned into 16 x 16 grey images, with the same bytes on every machine.

Only whole numbers and single correctly rounded float64 operations are used: no sums whose order a
processor could choose, so a hash of the images is the same everywhere.
"""

import numpy as np
from jaxtyping import Float64, UInt8

SIDE = 16
MARGIN = 1.25
HALF_WIDTH = 0.75
BLOCK = 1024


def upscale(grids: UInt8[np.ndarray, "N 8 8"]) -> UInt8[np.ndarray, "N 16 16"]:
    """Return grids of 0 to 16 as grey images of twice the side, bilinear with half-pixel centres.

    Raises:
        ValueError: a cell is above 16.

    >>> upscale(np.full((1, 8, 8), 16, np.uint8)).min()
    np.uint8(255)
    """
    if grids.size and grids.max() > 16:
        raise ValueError(f"grid cell={grids.max()} must lie between 0 and 16.")
    sixteenths = _double(_double(grids.astype(np.uint32), axis=1), axis=2)
    return ((sixteenths * 255 + 128) // 256).astype(np.uint8)


def _double(values: np.ndarray, axis: int) -> np.ndarray:
    """Return twice as many values along an axis, each 3 of the nearer and 1 of the further cell."""
    last = values.shape[axis] - 1
    cells = np.arange(2 * (last + 1))
    further = np.clip(cells // 2 + np.where(cells % 2, 1, -1), 0, last)
    return 3 * values.take(cells // 2, axis) + values.take(further, axis)


def stretch(levels: UInt8[np.ndarray, "N 16 16"]) -> UInt8[np.ndarray, "N 16 16"]:
    """Return images of 16 grey levels, 0 to 15, as grey levels 0 to 255.

    Raises:
        ValueError: a level is above 15.
    """
    if levels.size and levels.max() > 15:
        raise ValueError(f"grey level={levels.max()} must lie between 0 and 15.")
    return levels * np.uint8(17)


def draw_strokes(points: UInt8[np.ndarray, "N 8 2"]) -> UInt8[np.ndarray, "N 16 16"]:
    """Return the polyline through eight pen positions, inked one pixel and a half wide.

    The grey of a pixel falls linearly from 255 to 0 over one pixel across the edge of the stroke.

    Args:
        points: pen positions in writing order, x to the right and y up, each 0 to 100.

    Raises:
        ValueError: a coordinate is above 100.

    >>> draw_strokes(np.full((1, 8, 2), 50, np.uint8))[0, 8, 7:9]
    array([138, 138], dtype=uint8)
    """
    if points.size and points.max() > 100:
        raise ValueError(f"pen coordinate={points.max()} must lie between 0 and 100.")
    images = np.empty((len(points), SIDE, SIDE), np.uint8)
    for start in range(0, len(points), BLOCK):
        images[start : start + BLOCK] = _draw_block(points[start : start + BLOCK])
    return images


def _draw_block(points: np.ndarray) -> np.ndarray:
    path = MARGIN + points * ((SIDE - 2 * MARGIN) / 100)
    x, y = path[..., 0], SIDE - path[..., 1]
    nearest = np.full((len(points), SIDE, SIDE), np.inf)
    for i in range(points.shape[1] - 1):
        segment = _squared_distance(x[:, i], y[:, i], x[:, i + 1], y[:, i + 1])
        np.minimum(nearest, segment, out=nearest)
    ink = np.clip(HALF_WIDTH + 0.5 - np.sqrt(nearest), 0, 1)
    return np.floor(255 * ink + 0.5).astype(np.uint8)


def _squared_distance(
    x0: Float64[np.ndarray, " N"],
    y0: Float64[np.ndarray, " N"],
    x1: Float64[np.ndarray, " N"],
    y1: Float64[np.ndarray, " N"],
) -> Float64[np.ndarray, "N 16 16"]:
    """Return the squared distance of every pixel centre to one segment per record."""
    centre = np.arange(SIDE) + 0.5
    dx, dy = x1 - x0, y1 - y0
    length = dx * dx + dy * dy
    along = (centre - x0[:, None]) * dx[:, None]
    across = (centre - y0[:, None]) * dy[:, None]
    share = (along[:, None, :] + across[:, :, None]) / np.where(length > 0, length, 1)[:, None, None]
    share = np.clip(share, 0, 1)
    off_x = centre - (x0[:, None, None] + share * dx[:, None, None])
    off_y = centre[:, None] - (y0[:, None, None] + share * dy[:, None, None])
    return off_x * off_x + off_y * off_y
