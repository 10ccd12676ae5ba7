"""What a rebuilt image is judged by while it is optimised: one number per image, from that image alone.

Image statistics are means over pixels, so that a weight means the same at every image size.
Shapes: N images, c channels, d embedding width.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

_SHIFT = 16  # an image may move by this fraction of its side, by one pixel at least


def cosine_distance(z_Nd: Float[Tensor, "N d"], target_Nd: Float[Tensor, "N d"]) -> Float[Tensor, " N"]:
    """Return 1 - cosine of each pair of rows, in [0, 2]; 1 where one of the two is zero."""
    return 1 - functional.cosine_similarity(z_Nd, target_Nd, dim=1)


def total_variation(images: Float[Tensor, "N c height width"]) -> Float[Tensor, " N"]:
    """Return the mean absolute difference of neighbours, down and across added; in [0, 2] for pixels in [0, 1].

    Source: Rudin, Osher and Fatemi (1992), "Nonlinear total variation based noise removal algorithms", in
    its anisotropic form.
    """
    down = images.diff(dim=2).abs().flatten(1)
    across = images.diff(dim=3).abs().flatten(1)
    # an image of one row has no neighbours down
    return down.sum(1) / max(1, down.shape[1]) + across.sum(1) / max(1, across.shape[1])


def mean_square(images: Float[Tensor, "N c height width"]) -> Float[Tensor, " N"]:
    """Return the mean squared pixel of each image."""
    return images.square().flatten(1).mean(1)


def shifted(
    images: Float[Tensor, "N c height width"], generators: Sequence[torch.Generator]
) -> Float[Tensor, "N c height width"]:
    """Return each image moved around its edges by a few pixels, drawn from a generator of its own."""
    moved = []
    for image, generator in zip(images, generators, strict=True):
        reach = [max(1, side // _SHIFT) for side in image.shape[1:]]
        by = [int(torch.randint(-r, r + 1, (), generator=generator)) for r in reach]
        moved.append(image.roll(by, dims=(1, 2)))
    return torch.stack(moved)
