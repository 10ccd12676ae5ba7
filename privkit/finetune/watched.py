"""What goes into and comes out of trained maps while a model runs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from privkit.errors import InputError

Seen = dict[str, tuple[Tensor, Tensor]]
"""Input and output of each map, by the name of its weights."""


@contextmanager
def watched(maps: Mapping[str, nn.Linear]) -> Iterator[Seen]:
    """Give a dictionary that each pass through a model fills; empty it between two passes.

    Raises:
        InputError: a map is used twice in one pass, so that it has no one input.
    """
    seen: Seen = {}
    handles = [m.register_forward_hook(partial(_note, seen, name)) for name, m in maps.items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _note(seen: Seen, name: str, module: nn.Module, given: tuple[Any, ...], out: Tensor) -> None:
    if name in seen:
        raise InputError(f"{name} is used twice in one pass; blocks that share weights are not supported.")
    seen[name] = (given[0].detach(), out)
