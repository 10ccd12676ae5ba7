"""The network behind ``hf_image``, apart from it because it needs torch to be defined."""

import inspect
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from privkit.errors import InputError


class HfNet(nn.Module):
    """A base model of the transformers library with its tokens, or its last feature maps, made one vector.

    Attributes:
        blocks: its encoder blocks, or its stages.
    """

    def __init__(self, net: nn.Module, settings: Any, *, from_cls: bool, side: int):
        super().__init__()
        self.net = net
        self.from_cls = from_cls
        self.patches = _patches(settings, side)
        self.blocks = _blocks(net, settings)
        # models that interpolate position embeddings only when told to; the others always do, or have none
        asks = "interpolate_pos_encoding" in inspect.signature(net.forward).parameters
        self.options = {"interpolate_pos_encoding": True} if asks else {}

    def forward(self, images: Float[Tensor, "N channels height width"]) -> Float[Tensor, "N dim"]:
        """Return one vector per image; normalised images."""
        h = self.net(pixel_values=images, **self.options).last_hidden_state
        if h.ndim == 4 and self.from_cls:
            raise InputError("the model gives feature maps and no CLS token; give pooling: mean.")
        return h.mean((2, 3)) if h.ndim == 4 else self._pooled(h)

    def _pooled(self, h: Float[Tensor, "N positions width"]) -> Float[Tensor, "N width"]:
        """Return the CLS token, or the mean over patches; tokens that are no patches come first."""
        others = h.shape[1] - self.patches
        if others < 0:
            raise InputError(
                f"the model gives {h.shape[1]} tokens for {self.patches} patches; give a Vision Transformer or a "
                "ResNet."
            )
        if self.from_cls and others == 0:
            raise InputError("the model gives patches and no CLS token; give pooling: mean.")
        return h[:, 0] if self.from_cls else h[:, others:].mean(1)


def _patches(settings: Any, side: int) -> int:
    """Return how many patches an image has; a model without patches gives feature maps, where it is not asked."""
    size = getattr(settings, "patch_size", None)
    return (side // (size if isinstance(size, int) else size[0])) ** 2 if size else 0


def _blocks(net: nn.Module, settings: Any) -> tuple[nn.Module, ...]:
    """Return the encoder blocks, or the stages: the first list of as many modules as the settings count."""
    count = len(getattr(settings, "depths", ())) or getattr(settings, "num_hidden_layers", 0)
    for part in net.modules():
        if isinstance(part, nn.ModuleList) and len(part) == count:
            return tuple(part)
    raise InputError(
        f"a {settings.model_type} model has no row of {count} blocks; give a Vision Transformer or a ResNet."
    )
