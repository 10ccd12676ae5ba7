"""A network is tried once before it is used: what draws at random or is of another width is refused."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from privkit.errors import InputError
from privkit.models._backbone import Backbone
from privkit.models._pixels import Reading
from tests.image_encoders.made import close


class Rows(nn.Module):
    """Two blocks on [N, positions, 2]; the first gives a tuple, as attention layers may."""

    def __init__(self, *, dim: int = 2, random: bool = False):
        super().__init__()
        self.first, self.second = Pair(), nn.Identity()
        self.dim, self.random = dim, random

    def forward(self, x: Tensor) -> Tensor:
        h, _ = self.first(x.flatten(2)[:, :2].transpose(1, 2))
        z = self.second(h).mean(1)[:, : self.dim]
        return z + torch.rand(z.shape) if self.random else z


class Pair(nn.Module):
    def forward(self, h: Tensor) -> tuple[Tensor, str]:
        return 2 * h, "weights of attention"


PLAIN = Reading(channels=3, side=4, mean=(0.0,), deviation=(1.0,))


def rows(**settings: Any) -> Backbone:
    net = Rows(**settings)
    return Backbone(net, [net.first, net.second], reading=PLAIN, dim=2)


def test_a_block_may_give_a_tuple() -> None:
    x = torch.rand(3, 3, 4, 4)
    expected = 3 * (2 * 2 * x.flatten(2)[:, :2] + 1).mean(2)
    assert close(rows().adapted(x, lambda i, h: 2 * h + 1 if i == 0 else 3 * h), expected)


def test_a_model_of_another_width_is_refused() -> None:
    with pytest.raises(InputError, match=r"gives \[2, 1\] for 2 images, and its settings say 2 numbers each"):
        rows(dim=1)


def test_a_model_that_draws_at_random_is_refused() -> None:
    with pytest.raises(InputError, match="different vectors for two equal images, so it draws at random"):
        rows(random=True)


def test_what_was_put_behind_a_block_is_gone_after_an_error() -> None:
    net, x = rows(), torch.rand(1, 3, 4, 4)

    def fail(i: int, h: Tensor) -> Tensor:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        net.adapted(x, fail)
    assert torch.equal(net(x), rows()(x))
