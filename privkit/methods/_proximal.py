"""The pull to what arrived: FedProx and Ditto."""

from typing import TYPE_CHECKING

from privkit.methods._down import Down

if TYPE_CHECKING:
    from torch import Tensor


def half_square(params: "dict[str, Tensor]", down: Down) -> "Tensor":
    """Return half of each client's squared distance, over all parameters that arrived, to what arrived, shape [G]."""
    found = [(p - down[name]).square().flatten(1).sum(1) for name, p in params.items() if name in down]
    return 0.5 * sum(found[1:], start=found[0])
