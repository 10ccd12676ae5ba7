"""One mini-batch of every client."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
        kept: what the method keeps of each client between steps, by name, each [G, ...].
        normals: standard normal numbers that the method asked for, shape [G, ...]; ``None`` where it asked for none.
    """

    x: "Tensor"
    y: "Tensor"
    weight: "Tensor"
    held: "Tensor | None" = None
    kept: "Mapping[str, Tensor]" = field(default_factory=dict)
    normals: "Tensor | None" = None
