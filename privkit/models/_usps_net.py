"""The network behind ``usps_cnn``, apart from it because it needs torch to be defined."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

# Grey level of the USPS training images, in [0, 1]: what the published weights were trained with.
MEAN, DEVIATION = 0.2471, 0.2994


class UspsNet(nn.Module):
    """Two convolutions and one linear layer; batch normalisation is folded into the convolutions.

    It has neither running statistics nor dropout, so training and evaluation mode are the same.
    """

    widths: tuple[int, ...] = (32, 64)

    def __init__(self, *, normalize: bool):
        super().__init__()
        self.normalize = normalize
        self.conv1 = nn.Conv2d(1, 32, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, kernel_size=3, padding=1)
        self.hidden = nn.Linear(64 * 4 * 4, 128)

    def forward(self, images: Float[Tensor, "N 1 16 16"]) -> Float[Tensor, "N 128"]:
        """Return one vector per image; grey levels in [0, 1], ink bright."""
        return self.adapted(images, lambda i, h: h)

    def adapted(
        self, pixels: Float[Tensor, "N 1 16 16"], after: Callable[[int, Tensor], Tensor]
    ) -> Float[Tensor, "N 128"]:
        """Return one vector per image, with something behind each convolution, as ``Staged`` says."""
        x = (pixels - MEAN) / DEVIATION
        for i, convolution in enumerate((self.conv1, self.conv2)):
            x = functional.max_pool2d(functional.relu(convolution(x)), 2)
            x = after(i, x.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(x.shape)
        z = self.hidden(x.flatten(1))
        return functional.normalize(z) if self.normalize else z
