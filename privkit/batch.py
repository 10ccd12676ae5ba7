"""One mini-batch of every client."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """Records of every client that still trains, stacked.

    Attributes:
        x: features of each record, shape [G, B, d].
        y: class of each record, shape [G, B].
        weight: weight of each record in its client's mean, shape [G, B]; each row sums to 1.
        held: records that each client trains on in all, floats of shape [G]; ``None`` where nobody said.
    """

    x: "Tensor"
    y: "Tensor"
    weight: "Tensor"
    held: "Tensor | None" = None
