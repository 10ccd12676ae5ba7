"""Records, and tiny models in folders, for tests of encoders that read images."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from privkit.models._torch_image import TorchImageEncoder

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (5, 40, 50, 3)).astype(np.uint8)
GREY = COLOUR[..., 0]
SENTENCES = np.array(["a cat", "a dog"])


def vit_folder(folder: Path, *, weights: bool = True) -> Path:
    """Write a tiny Vision Transformer with a classifier, as published ones have it."""
    import transformers

    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=48,
        image_size=32,
        patch_size=8,
        initializer_range=0.3,  # so that the layers do something
    )
    if weights:
        transformers.ViTForImageClassification(config).save_pretrained(folder)
    else:
        config.save_pretrained(folder)
    transformers.ViTImageProcessor(
        size={"height": 32, "width": 32}, image_mean=[0.5] * 3, image_std=[0.25] * 3
    ).save_pretrained(folder)
    return folder


def resnet_folder(folder: Path) -> Path:
    """Write a tiny ResNet; its batch normalisation has seen something."""
    import transformers

    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 12], depths=[1, 2], layer_type="basic"
    )
    net = transformers.ResNetForImageClassification(config).train()
    net(torch.randn(16, 3, 32, 32))
    net.save_pretrained(folder)
    return folder


def as_floats(encoder: TorchImageEncoder, records: np.ndarray) -> Tensor:
    return torch.from_numpy(encoder.pixels(records)).float() / 255


def close(found: np.ndarray | Tensor, wanted: np.ndarray | Tensor, *, within: float = 1e-5) -> bool:
    """Return whether two arrays agree, relative to the largest number."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    return found.shape == wanted.shape and np.abs(found - wanted).max() <= within * np.abs(wanted).max()
