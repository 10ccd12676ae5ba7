r"""A learned decoder: a network from embeddings to images, trained on images that the attacker owns.

With the encoder h that the attacker holds, its own images x, and the decoder g, Adam on

.. math:: \overline{(g(h(x)) - x)^2} + \phi\, (1 - \cos(h(g(h(x))), h(x)))

and then one image ``g(p)`` for each released prototype p, of which only the direction is read. It costs one training,
however many prototypes there are, and what it draws looks like what it was trained on: also where a prototype is
nothing but noise, which is what the random directions beside it show.

Source: Dosovitskiy and Brox (2016), "Inverting visual representations with convolutional networks", Eq. 2 with a linear
layer first; the second term after the same authors' "Generating images with perceptual similarity metrics" (2016),
Eq. 3. Ours: network, cosine, number of steps.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float32
from pydantic import Field

from attacks._base import NotApplicableError
from attacks._kept import Kept
from attacks.hijack._attempts import Attempts
from attacks.hijack._base import AbstractHijack, Pictures, refuse_other_width
from attacks.hijack._goals import Goal

if TYPE_CHECKING:
    from torch import Tensor

    from attacks.hijack._base import Encoder
    from attacks.hijack._decoder_net import DecoderNet

_OWNS = "images of the same domains that no client holds"
# clients with the same encoder, and cells with the same too, share a decoder
_TRAINED: "Kept[DecoderNet]" = Kept(most=8)
_BLOCK = 512  # images embedded at once


class LearnedDecoder(AbstractHijack):
    """Draws, for some released prototypes, what a decoder trained on the attacker's own images makes of them."""

    citation: ClassVar[str] = "dosovitskiy2016"
    reads_pictures: ClassVar[bool] = True

    steps: int = Field(default=300, ge=1, description="steps of training, for each encoder that differs")
    batch_size: int = Field(default=32, ge=1, description="images per step, all that there are at most")
    learning_rate: float = Field(default=2e-3, gt=0, description="Adam step size")
    feature: float = Field(
        default=0.1,
        ge=0,
        description="phi, weight of 1 - cosine between embeddings, beside the squared pixel error",
    )
    channels: int = Field(default=32, ge=1, description="width of the decoder's convolutions")

    @property
    def knows(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*super().knows, _OWNS)))

    @property
    def effort(self) -> str:
        return f"{self.steps} steps of training"

    @property
    def per_goal(self) -> int:
        return 1

    def rebuild(
        self,
        goals: Sequence[Goal],
        encoder: "Encoder",
        *,
        image_shape: tuple[int, int, int],
        seed: int,
        owned: Pictures | None = None,
        done: int = 0,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Iterator[Attempts]:
        """Yield one attempt at every goal, client after client; a client's decoder is trained when it is its turn."""
        if owned is None or not len(owned):
            raise NotApplicableError(
                "the attacker owns no images to train a decoder on; set split.reference above 0"
            )
        turns = [(client, list(mine)) for client, mine in groupby(goals, key=lambda goal: goal.client)]
        total, before = self.steps * len(turns), 0
        for turn, (client, mine) in enumerate(turns):
            if before >= done:
                progress(self.steps * turn, total)
                yield self._drawn(
                    mine, client, encoder, image_shape, seed, owned,
                    lambda step, turn=turn: progress(self.steps * turn + step, total),
                )  # fmt: skip
            before += len(mine)
        progress(total, total)

    def _drawn(
        self,
        goals: list[Goal],
        client: int,
        encoder: "Encoder",
        image_shape: tuple[int, int, int],
        seed: int,
        owned: Pictures,
        after_step: Callable[[int], None],
    ) -> Attempts:
        import torch

        z_Nd = _embedded(encoder, owned, client)
        refuse_other_width(len(goals[0].vector), z_Nd.shape[1])
        if not np.isfinite(z_Nd).all():
            raise NotApplicableError("the encoder gives embeddings that are not finite for pixels in [0, 1]")
        net = _TRAINED.of(
            lambda: self._trained(
                z_Nd, owned, image_shape, lambda x: encoder(x, _all(client, x)), seed, after_step
            ),
            z_Nd,
            owned,
            settings=(self.settings(), image_shape, seed),
        )
        wanted = torch.tensor(np.array([goal.vector for goal in goals]), dtype=torch.float32)
        with torch.no_grad():
            images = net(wanted)
            cosines = torch.cosine_similarity(encoder(images, _all(client, images)), wanted).double().numpy()
        return Attempts(
            images=images.numpy(),
            losses=1 - cosines,
            cosines=cosines,
            steps=np.full(len(goals), self.steps),
            converged=np.zeros(len(goals), dtype=bool),
        )

    def _trained(
        self,
        z_Nd: Float32[np.ndarray, "N d"],
        owned: Pictures,
        image_shape: tuple[int, int, int],
        embed: "Callable[[Tensor], Tensor]",
        seed: int,
        after_step: Callable[[int], None],
    ) -> "DecoderNet":
        """Return a decoder of one encoder; two calls with the same arguments return the same weights."""
        import torch
        from torch.nn.functional import mse_loss

        from attacks.hijack._decoder_net import DecoderNet
        from attacks.hijack._losses import cosine_distance

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = DecoderNet(z_Nd.shape[1], image_shape, channels=self.channels)
        rows = torch.Generator().manual_seed(seed)
        z, x = torch.from_numpy(z_Nd), torch.from_numpy(owned)
        optimizer = torch.optim.Adam(net.parameters(), lr=self.learning_rate)
        for step in range(1, self.steps + 1):
            batch = torch.randperm(len(x), generator=rows)[: self.batch_size]
            drawn = net(z[batch])
            loss = mse_loss(drawn, x[batch])
            if self.feature:
                loss = loss + self.feature * cosine_distance(embed(drawn), z[batch]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            after_step(step)
        return net.requires_grad_(False).eval()


def _embedded(encoder: "Encoder", pictures: Pictures, client: int) -> Float32[np.ndarray, "N d"]:
    """Return the embedding of each picture under the encoder held for a client."""
    import torch

    with torch.no_grad():
        blocks = torch.from_numpy(pictures).split(_BLOCK)
        return torch.cat([encoder(block, _all(client, block)) for block in blocks]).float().numpy()


def _all(client: int, images: "Tensor") -> "Tensor":
    """Return the client of each image, where all are one client's."""
    import torch

    return torch.full((len(images),), client)
