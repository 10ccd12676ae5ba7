"""What every torch encoder for images does, whatever the batch, and how it opens its blocks."""

import numpy as np
import pytest
import torch
from torch import Tensor

from privkit import plug
from privkit.errors import InputError
from privkit.models._backbone import Backbone
from privkit.models._base import Staged
from privkit.models._torch_image import TorchImageEncoder
from tests.image_encoders.made import COLOUR, GREY, SENTENCES, as_floats, close


def test_encode_module_and_opened_blocks_agree(encoder: TorchImageEncoder) -> None:
    z, x = encoder.encode(COLOUR), as_floats(encoder, COLOUR)
    assert z.shape == (5, encoder.dim)
    assert z.dtype == np.float32
    assert x.shape[1:] == encoder.image_shape
    staged = encoder.staged()
    assert isinstance(staged, Staged)
    with torch.no_grad():
        assert close(encoder.module()(x), z)
        assert close(staged.adapted(x, lambda i, h: h), z)


def test_a_vector_does_not_depend_on_its_batch(encoder: TorchImageEncoder) -> None:
    z = encoder.encode(COLOUR)
    assert close(np.concatenate([encoder.encode(COLOUR[i : i + 1]) for i in range(5)]), z)
    assert close(encoder.encode(np.concatenate([COLOUR] * 4))[15:], z)
    assert encoder.encode(COLOUR[:0]).shape == (0, encoder.dim)


def test_grey_is_read_as_colour_and_text_is_refused(encoder: TorchImageEncoder) -> None:
    assert close(encoder.encode(GREY), encoder.encode(np.repeat(GREY[..., None], 3, -1)), within=0)
    with pytest.raises(InputError, match=f"encoder {encoder.name} reads images, and these records are sent"):
        encoder.encode(SENTENCES)


def test_every_block_is_followed_by_what_one_puts_there(encoder: TorchImageEncoder) -> None:
    staged, x = encoder.staged(), as_floats(encoder, COLOUR)
    plain = staged.adapted(x, lambda i, h: h)
    seen = []

    def note(i: int, h: Tensor) -> Tensor:
        seen.append((i, h.shape[0], h.shape[2]))
        return h

    staged.adapted(x, note)
    assert seen == [(i, 5, width) for i, width in enumerate(staged.widths)]
    for block in range(len(staged.widths)):
        changed = staged.adapted(x, lambda i, h, block=block: h + (i == block) * h.roll(1, dims=2))
        assert not torch.allclose(changed, plain, rtol=1e-3, atol=1e-4), f"block {block}"
    assert torch.equal(staged.adapted(x, lambda i, h: h), plain)


def test_an_image_is_adapted_on_its_own(encoder: TorchImageEncoder) -> None:
    staged, x = encoder.staged(), as_floats(encoder, COLOUR)

    def after(i: int, h: Tensor) -> Tensor:
        return h * (1 + 0.1 * torch.arange(h.shape[2]) / h.shape[2])

    together = staged.adapted(x, after)
    assert close(torch.cat([staged.adapted(x[i : i + 1], after) for i in range(5)]), together)


def test_the_frozen_network_has_one_mode_and_passes_gradients(encoder: TorchImageEncoder) -> None:
    staged = encoder.staged()
    assert isinstance(staged, Backbone)
    before = {name: value.clone() for name, value in staged.state_dict().items()}
    x, scale = as_floats(encoder, COLOUR).requires_grad_(), torch.ones(1, requires_grad=True)
    out = staged.train().adapted(x, lambda i, h: h * scale)
    (out @ torch.linspace(-1, 1, encoder.dim)).sum().backward()
    assert close(out.detach(), encoder.encode(COLOUR))
    assert scale.grad is not None
    assert scale.grad.abs() > 0
    assert x.grad is not None
    assert (x.grad.abs().flatten(1).sum(1) > 0).all()
    assert not any(weight.requires_grad for weight in staged.parameters())
    assert all(torch.equal(before[name], value) for name, value in staged.state_dict().items())
    assert all(weight.requires_grad for weight in encoder.module().parameters())


def test_gradients_have_gradients(encoder: TorchImageEncoder) -> None:
    x = as_floats(encoder, COLOUR[:1]).requires_grad_()
    (first,) = torch.autograd.grad(encoder.module()(x)[0, :3].square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    assert second.abs().sum() > 0


def test_settings_come_back(encoder: TorchImageEncoder) -> None:
    assert plug.build("privkit.models", encoder.settings()) == encoder
