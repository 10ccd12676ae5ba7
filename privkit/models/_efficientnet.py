"""The network behind ``efficientnet_lite0``, apart from it because it needs torch to be defined."""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

# a convolution, and the batch normalisation that follows it, as the source names them
OUTSIDE = (("_conv_stem", "_bn0"), ("_conv_head", "_bn1"))
IN_A_BLOCK = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))


class Features(nn.Module):
    """Everything before the classifier, with batch normalisation folded into the convolutions."""

    def __init__(self, source: Any, *, normalize: bool):
        super().__init__()
        self.source = source
        self.normalize = normalize
        self.blocks = tuple(source._blocks)

    @classmethod
    def read(cls, weights: Path, *, side: int, normalize: bool) -> "Features":
        """Return the network with weights from a file that was checked, for images of ``side`` x ``side``."""
        from efficientnet_lite_pytorch import EfficientNet

        source: Any = EfficientNet.from_name("efficientnet-lite0", image_size=side)
        source.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True), strict=True)
        source.eval()
        source._fc = nn.Identity()
        _fold(source, OUTSIDE)
        for block in source._blocks:
            _fold(block, IN_A_BLOCK)
        source.requires_grad_(True)  # folding makes new biases, which would not be trained
        return cls(source, normalize=normalize)

    def forward(self, images: Float[Tensor, "N 3 height width"]) -> Float[Tensor, "N 1280"]:
        """Return one vector per image; normalised images."""
        z = self.source.extract_features(images).mean((2, 3))
        return functional.normalize(z) if self.normalize else z


def _fold(parent: nn.Module, pairs: tuple[tuple[str, str], ...]) -> None:
    """Let each convolution do what its batch normalisation does; the first block expands nothing."""
    for convolution, norm in pairs:
        if hasattr(parent, convolution):
            fused = fuse_conv_bn_eval(getattr(parent, convolution), getattr(parent, norm))
            setattr(parent, convolution, fused)
            setattr(parent, norm, nn.Identity())
