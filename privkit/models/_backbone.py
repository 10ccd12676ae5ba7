"""A frozen network for images as a row of blocks, apart from the encoders because it needs torch to be defined."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from privkit.errors import InputError
from privkit.models._pixels import Reading

After = Callable[[int, Tensor], Tensor]


class Backbone(nn.Module):
    """A network in evaluation mode for good: ``train()`` moves no statistics and drops nothing.

    Attributes:
        widths: channels after each block.
    """

    widths: tuple[int, ...]
    mean: Tensor
    deviation: Tensor

    def __init__(self, net: nn.Module, blocks: Sequence[nn.Module], *, reading: Reading, dim: int):
        """Wrap a network; try it once.

        Args:
            net: from normalised images, shape [N, channels, side, side], to vectors [N, dim].
            blocks: parts of it, in the order in which they run; each gives [N, positions, width] or
                [N, width, height, width].
            reading: how it wants its images.
            dim: numbers per vector.

        Raises:
            InputError: it gives another number of values, different ones for equal images, or blocks of another form.
        """
        super().__init__()
        self.net = net
        self._blocks = tuple(blocks)
        for name, values in (("mean", reading.mean), ("deviation", reading.deviation)):
            self.register_buffer(name, torch.tensor(values).reshape(1, -1, 1, 1), persistent=False)
        self.eval()
        self.widths = self._tried(reading, dim)

    def train(self, mode: bool = True) -> "Backbone":
        """Return itself unchanged: a frozen network has one mode."""
        return super().train(False)

    def forward(self, pixels: Float[Tensor, "N channels height width"]) -> Float[Tensor, "N dim"]:
        """Return one vector per image; pixels in [0, 1]."""
        return self.net((pixels - self.mean) / self.deviation)

    def adapted(
        self, pixels: Float[Tensor, "N channels height width"], after: After
    ) -> Float[Tensor, "N dim"]:
        """Return one vector per image, with something behind each block, as ``Staged`` says."""
        with _behind(self._blocks, after):
            return self(pixels)

    def _tried(self, reading: Reading, dim: int) -> tuple[int, ...]:
        """Return the channels after each block, as two equal images show them."""
        widths = []

        def note(block: int, h: Tensor) -> Tensor:
            widths.append(h.shape[-1])
            return h

        with torch.no_grad():
            vectors = self.adapted(torch.full((2, *reading.image_shape), 0.5), note)
        if vectors.shape != (2, dim):
            raise InputError(
                f"the model gives {list(vectors.shape)} for 2 images, and its settings say {dim} numbers each; "
                "take the settings that belong to the weights."
            )
        if not torch.allclose(vectors[0], vectors[1], rtol=1e-3, atol=1e-4):
            raise InputError(
                "the model gives different vectors for two equal images, so it draws at random; "
                "take one that does not."
            )
        return tuple(widths)


@contextmanager
def _behind(blocks: Sequence[nn.Module], after: After) -> Iterator[None]:
    """Put something behind each block for as long as the context lasts."""
    handles = [block.register_forward_hook(partial(_changed, i, after)) for i, block in enumerate(blocks)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _changed(block: int, after: After, module: nn.Module, inputs: Any, output: Any) -> Any:
    """Return a block's output with its hidden state changed; some give a tuple that starts with it."""
    if isinstance(output, tuple):
        return _changed_state(block, after, output[0]), *output[1:]
    return _changed_state(block, after, output)


def _changed_state(block: int, after: After, h: Tensor) -> Tensor:
    if h.ndim == 3:
        return after(block, h)
    rows = h.flatten(2).transpose(1, 2)
    return after(block, rows).transpose(1, 2).reshape(h.shape)
