"""A small network that learnt to read USPS envelopes: the encoder that comes with privkit."""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float32, UInt8
from pydantic import Field

from privkit import shipped
from privkit.errors import InputError
from privkit.models._base import AbstractEncoder

if TYPE_CHECKING:
    from privkit.models._usps_net import UspsNet

WEIGHTS = Path(__file__).parent / "_weights" / "usps_cnn.safetensors"
WEIGHTS_SHA256 = "30867d18a9920c0839ee67cc7a446c5624327773eebfa98441db6ad240385a83"
DIM = 128
SIDE = 16
BATCH = 512


class UspsCnn(AbstractEncoder):
    """Two convolutions trained on USPS; gives the last hidden layer before its ReLU."""

    normalize: bool = Field(
        default=True,
        description="scale every vector to Euclidean length 1, which bounds it without clipping",
    )

    citation: ClassVar[str] = "chen2026ccexam"

    @property
    def dim(self) -> int:
        """Return 128."""
        return DIM

    @property
    def trained_on(self) -> str:
        """Return the public data it was trained on: USPS, in no domain of ours."""
        return "USPS training images (public; none of them is in a domain of the digits data set)"

    @property
    def fingerprint(self) -> str:
        """Return the sha256 of the weights file; ``normalize`` is not part of it."""
        return WEIGHTS_SHA256

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Return (1, 16, 16): grey."""
        return 1, SIDE, SIDE

    def module(self) -> "UspsNet":
        """Return a new torch module with the published weights, float32 on the CPU.

        It maps grey levels in [0, 1], shape [N, 1, 16, 16], to what ``encode`` returns, with
        gradients. It has no batch normalisation and no dropout, so ``train()`` changes nothing.

        Raises:
            InputError: the weights file is missing or damaged.
        """
        from safetensors.torch import load

        from privkit.models._usps_net import UspsNet

        net = UspsNet(normalize=self.normalize)
        net.load_state_dict(load(shipped.read(WEIGHTS, sha256=WEIGHTS_SHA256)))
        return net.eval()

    def staged(self) -> "UspsNet":
        """Return the network with its two convolutions as blocks, frozen.

        Raises:
            InputError: the weights file is missing or damaged.
        """
        return self.module().requires_grad_(False)

    def pixels(self, records: np.ndarray) -> UInt8[np.ndarray, "N 1 16 16"]:
        """Return grey images of 16 x 16 with their channel named.

        Raises:
            InputError: they are something else.
        """
        if records.dtype != np.uint8 or records.shape[1:] != (SIDE, SIDE):
            raise InputError(
                f"usps_cnn reads grey images of 16 x 16, not {' x '.join(map(str, records.shape[1:])) or 'text'}; "
                "resize them, or take another encoder."
            )
        return records[:, None]

    def encode(self, records: np.ndarray) -> Float32[np.ndarray, "N dim"]:
        """Return one vector of 128 numbers per image, of length 1 if ``normalize``.

        Args:
            records: grey images of 16 x 16, 0 background to 255 ink; none gives an array of no rows.

        Raises:
            InputError: the images are not 16 x 16, or the weights file is missing or damaged.
        """
        import torch

        pixels, net = self.pixels(records), self.module()
        vectors = np.empty((len(pixels), DIM), np.float32)
        with torch.inference_mode():
            for start in range(0, len(pixels), BATCH):
                grey = torch.from_numpy(pixels[start : start + BATCH].astype(np.float32))
                vectors[start : start + BATCH] = net(grey / 255).numpy()
        return vectors
