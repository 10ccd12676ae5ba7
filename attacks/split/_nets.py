"""The networks of split learning at small scale: a client's first layers, and what servers put behind them.

None has a layer that mixes the images of a batch or that behaves differently in training, except the critic's loss.
Sides of images are multiples of 4.
"""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

Shape = tuple[int, int, int]
Net = TypeVar("Net", bound=nn.Module)

_SLOPE = 0.2


def drawn(make: Callable[[], Net], seed: int) -> Net:
    """Return a network whose initial weights only a seed decides."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def features(image: Shape, channels: int) -> Shape:
    """Return the shape of what a client sends of one image."""
    return channels, image[1] // 2, image[2] // 2


def client_net(image: Shape, channels: int) -> nn.Sequential:
    """Return a client's layers: two convolutions, the first of which halves the image."""
    return nn.Sequential(
        nn.Conv2d(image[0], channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
    )


def classifier_net(image: Shape, channels: int, classes: int) -> nn.Sequential:
    """Return the honest server's layers: from features to one logit per class."""
    _, height, width = features(image, channels)
    return nn.Sequential(
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * channels * (height // 2) * (width // 2), classes),
    )


def decoder_net(image: Shape, channels: int) -> nn.Sequential:
    """Return an attacker's decoder: from features to pixels in [0, 1]."""
    return nn.Sequential(
        nn.Conv2d(channels, 2 * channels, 3, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * channels, channels, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, image[0], 3, padding=1),
        nn.Sigmoid(),
    )


def critic_net(image: Shape, channels: int) -> nn.Sequential:
    """Return a critic: from features to one unbounded number, large where they look like those of public images."""
    _, height, width = features(image, channels)
    return nn.Sequential(
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        nn.LeakyReLU(_SLOPE),
        nn.Conv2d(2 * channels, 2 * channels, 3, padding=1),
        nn.LeakyReLU(_SLOPE),
        nn.Flatten(),
        nn.Linear(2 * channels * (height // 2) * (width // 2), 1),
    )
