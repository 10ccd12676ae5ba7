"""The network behind ``projected``, apart from it because it needs torch to be defined."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from privkit.models._base import Staged


class ProjectedStages(nn.Module):
    """Another network's blocks, and a linear map behind the last one."""

    widths: tuple[int, ...]

    def __init__(self, inner: Staged, linear: nn.Linear):
        super().__init__()
        self.inner = inner
        self.linear = linear
        self.widths = inner.widths

    def adapted(
        self, pixels: Float[Tensor, "N channels height width"], after: Callable[[int, Tensor], Tensor]
    ) -> Float[Tensor, "N dim"]:
        """Return one vector per image, with something behind each block, as ``Staged`` says."""
        return self.linear(self.inner.adapted(pixels, after))
