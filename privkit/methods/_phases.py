"""What local training consists of: one phase after the other, each with parameters and a loss of its own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privkit.batch import Batch
from privkit.methods._down import Down
from privkit.network import Network

if TYPE_CHECKING:
    from torch import Tensor

Loss = Callable[[Network, "dict[str, Tensor]", "Tensor", Batch, Down], "Tensor"]
"""Each client's loss on its batch, shape [G]: see ``AbstractMethod.loss``."""

Keep = Callable[[Network, "dict[str, Tensor]", "Tensor", Batch], "dict[str, Tensor]"]
"""What the clients of a batch keep after its step, by name: see ``AbstractMethod.keep``."""

Passes = Callable[[int, float], Iterator[tuple[slice, Batch]]]
"""Yields some clients at a time and a mini-batch of theirs, in one pass over a share of everybody's own records.

Its arguments are the number of records of a mini-batch, and the share, in (0, 1]: which records these are is drawn
once for a round, so every pass is over the same ones.
"""


def nothing_kept(
    network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch
) -> "dict[str, Tensor]":
    """Return nothing to keep."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A number of passes over a client's records in which some of its parameters are trained on one loss.

    Each phase has an optimiser of its own. Phases that train one model see mini-batches of one stream, in turn; those
    of another model see the same ones from the beginning.

    Attributes:
        epochs: passes, at least 0.
        loss: what is made small.
        model: what the names of the trained model's parameters begin with; the loss sees them without it.
        trained: what their names begin with after that; the others stay as they are.
        keep: what clients keep after each step.
    """

    epochs: int
    loss: Loss
    model: str = ""
    trained: tuple[str, ...] = ("",)
    keep: Keep = nothing_kept

    def trains(self, name: str) -> bool:
        """Return whether a parameter, by its full name, is trained."""
        return name.startswith(tuple(f"{self.model}{part}" for part in self.trained))

    def view(self, params: "dict[str, Tensor]") -> "dict[str, Tensor]":
        """Return the parameters of the phase's model by the names that the network knows."""
        return {n.removeprefix(self.model): p for n, p in params.items() if n.startswith(self.model)}
