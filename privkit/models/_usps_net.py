"""The network behind ``usps_cnn``, apart from it because it needs torch to be defined."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

# Grey level of the USPS training images, in [0, 1]: what the published weights were trained with.
MEAN, DEVIATION = 0.2471, 0.2994


class UspsNet(nn.Module):
    """Two convolutions and one linear layer; batch normalisation is folded into the convolutions.

    It has neither running statistics nor dropout, so training and evaluation mode are the same.
    """

    def __init__(self, *, normalize: bool):
        super().__init__()
        self.normalize = normalize
        self.conv1 = nn.Conv2d(1, 32, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, kernel_size=3, padding=1)
        self.hidden = nn.Linear(64 * 4 * 4, 128)

    def forward(self, images: Float[Tensor, "N 1 16 16"]) -> Float[Tensor, "N 128"]:
        """Return one vector per image; grey levels in [0, 1], ink bright."""
        x = (images - MEAN) / DEVIATION
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        z = self.hidden(x.flatten(1))
        return functional.normalize(z) if self.normalize else z
