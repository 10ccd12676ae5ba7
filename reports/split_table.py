"""What servers of split learning rebuilt of a client's images, as a table and a grid of pictures."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attacks.statistics.ratio import Ratio
from reports import numbers
from reports.table import Column, Table


@dataclass(frozen=True, kw_only=True)
class Rebuilder:
    """One that rebuilds, and how far from the private images it ends.

    Attributes:
        name: of it.
        knows: what it has beside what the client sent, in words.
        mse: mean squared error of a pixel in [0, 1].
        psnr: mean over images, in dB.
        ssim: mean over images.
        ratio: the malicious server's error divided by this one's; ``None`` for itself.
        by_seed: the same of every seed.
    """

    name: str
    knows: str
    mse: float
    psnr: float
    ssim: float
    ratio: Ratio | None
    by_seed: tuple[float, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitFindings:
    """A split-learning study.

    Attributes:
        rebuilders: floor, passive ones and the malicious server.
        images: private images behind every number.
        seeds: studies behind it.
        shown: some images and what became of them, by name, each of shape [N, c, height, width].
    """

    rebuilders: tuple[Rebuilder, ...]
    images: int
    seeds: int
    shown: Mapping[str, np.ndarray]


def table(findings: SplitFindings) -> Table:
    """Return one row per rebuilder."""
    rows = [
        {
            "name": one.name,
            "mse": one.mse,
            "psnr": one.psnr,
            "ssim": one.ssim,
            "ratio": one.ratio and one.ratio.value,
            "low": one.ratio and one.ratio.low,
            "high": one.ratio and one.ratio.high,
            "ratio_text": one.ratio and numbers.interval(one.ratio.value, one.ratio.low, one.ratio.high),
            "seeds_text": " ".join(f"{ratio:.3f}" for ratio in one.by_seed) if one.ratio else None,
            "knows": one.knows,
        }
        for one in findings.rebuilders
    ]
    return Table(
        columns=(
            Column(key="name", title="rebuilt by"),
            Column(key="mse", title="MSE", show=lambda value: f"{value:.5f}", right=True),
            Column(key="psnr", title="PSNR, dB", show=lambda value: f"{value:.1f}", right=True),
            Column(key="ssim", title="SSIM", show=lambda value: f"{value:.3f}", right=True),
            Column(key="ratio_text", title="FSHA's MSE / this [95 %]", right=True, sort="ratio"),
            Column(key="seeds_text", title="by seed", right=True, rank=1),
            Column(key="knows", title="knows", rank=2),
        ),
        rows=rows,
        extra=("ratio", "low", "high"),
        notes=(
            f"{findings.images} private images, {findings.seeds} seed{'s' * (findings.seeds > 1)}. Intervals resample "
            "images, each with both of its errors, and hold for the networks as they were trained.",
        ),
    )


def grid(findings: SplitFindings, path: Path) -> None:
    """Write the pictures that are shown, one row for the private images and one per rebuilder."""
    from PIL import Image

    rows = [np.concatenate(list(images), axis=2) for images in findings.shown.values()]
    pixels = np.rint(np.clip(np.concatenate(rows, axis=1), 0, 1) * 255).astype(np.uint8)
    levels = pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)
    picture = Image.fromarray(levels)
    picture.resize((3 * picture.width, 3 * picture.height), Image.Resampling.NEAREST).save(path, format="PNG")
