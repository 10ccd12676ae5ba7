r"""Feature inversion: an image whose embedding points where a released prototype points.

The "hijack" of the VPDR paper, as its public code has it: with ``x = sigmoid(logits)``, Adam on

.. math:: 1 - \cos(h(x), \tilde p) + \tau\, TV(x) + \lambda\, \overline{x^2}
    + \kappa\, (1 - \cos(h(\text{shift}(x)), h(x)))

from several starts; the start kept is the one with the smallest loss, which is all that the attacker can see.
It is no generator trained against a client (Pasquini et al., 2021): :mod:`attacks.split.fsha` is that one.

Published: the loss but its last term's form, Adam at 0.01, weight 1e-3 on the total variation, at most 100,000
steps, at least 100, patience 500 at 1e-6, batches of 16, one image for each of 3 classes. Ours: what a
prototype is averaged from, means over pixels, the shifts, the number of starts, and a budget of seconds.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from attacks._base import NotApplicableError
from attacks.hijack._attempts import Attempts
from attacks.hijack._base import AbstractHijack, Pictures, refuse_other_width
from attacks.hijack._goals import Goal

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from attacks.hijack._base import Encoder
    from attacks.hijack._optimise import Loss


class FeatureInversion(AbstractHijack):
    """Rebuilds, for some released prototypes, an image with the same embedding direction."""

    citation: ClassVar[str] = "vpdr"

    restarts: int = Field(default=2, ge=1, description="starts per target; the smallest loss is kept")
    steps: int = Field(default=60, ge=1, description="optimisation steps per start, at most")
    learning_rate: float = Field(
        default=0.1,
        gt=0,
        description="Adam step size, in logits of a pixel; published 0.01, which needs thousands of steps",
    )
    total_variation: float = Field(default=1e-3, ge=0, description="weight of the total variation per pixel")
    l2: float = Field(default=0.0, ge=0, description="weight of the mean squared pixel")
    consistency: float = Field(
        default=0.0,
        ge=0,
        description="weight of 1 - cosine between the embeddings of an image and of a shift of it",
    )
    patience: int = Field(default=500, ge=1, description="steps without progress before an image is done")
    tolerance: float = Field(default=1e-6, ge=0, description="decrease of the loss that counts as progress")
    least_steps: int = Field(
        default=100, ge=1, description="steps before patience may end it, never above steps"
    )
    batch_size: int = Field(
        default=16, ge=1, description="images optimised at once; changes time and memory only"
    )

    @property
    def effort(self) -> str:
        return f"{self.restarts} restarts, at most {self.steps} steps"

    @property
    def per_goal(self) -> int:
        return self.restarts

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
        """Yield, batch after batch, ``restarts`` attempts at every goal; nothing that the attacker owns is needed.

        Every attempt draws from a stream of its own, keyed by (seed, client, label, control, restart).
        """
        attempts = [(goal, restart) for goal in goals for restart in range(self.restarts)]
        starts = range(done, len(attempts), self.batch_size)
        total = self.steps * -(-len(attempts) // self.batch_size)
        for start in starts:
            before = self.steps * (start // self.batch_size)
            progress(before, total)
            yield self._descend(
                attempts[start : start + self.batch_size],
                encoder,
                image_shape,
                seed,
                lambda step, before=before: progress(before + step, total),
            )
        if starts:
            progress(total, total)

    def _descend(
        self,
        batch: list[tuple[Goal, int]],
        encoder: "Encoder",
        image_shape: tuple[int, int, int],
        seed: int,
        after_step: Callable[[int], None],
    ) -> Attempts:
        import torch

        from attacks.hijack._optimise import StopRule, descend

        streams = [_stream(seed, goal, restart) for goal, restart in batch]
        clients = torch.tensor([goal.client for goal, _ in batch])
        wanted = torch.tensor(np.array([goal.vector for goal, _ in batch]), dtype=torch.float32)
        rule = StopRule(
            steps=self.steps,
            patience=self.patience,
            tolerance=self.tolerance,
            least_steps=min(self.least_steps, self.steps),
        )
        found = descend(
            torch.stack([torch.randn(image_shape, generator=stream) for stream in streams]),
            self._loss(encoder, clients, wanted, streams),
            learning_rate=self.learning_rate,
            rule=rule,
            after_step=after_step,
        )
        if not found.losses.isfinite().all():
            raise NotApplicableError("the encoder gives embeddings that are not finite for pixels in [0, 1]")
        with torch.no_grad():
            cosines = torch.cosine_similarity(encoder(found.images, clients), wanted)
        return Attempts(
            images=found.images.numpy(),
            losses=found.losses.double().numpy(),
            cosines=cosines.double().numpy(),
            steps=found.steps.numpy(),
            converged=found.converged.numpy(),
        )

    def _loss(
        self, encoder: "Encoder", clients_N: "Tensor", wanted_Nd: "Tensor", streams: "Sequence[Generator]"
    ) -> "Loss":
        """Return the function of images and their rows that is minimised."""
        from attacks.hijack._losses import cosine_distance, mean_square, shifted, total_variation

        def loss(images: "Tensor", rows: "Tensor") -> "Tensor":
            z = encoder(images, clients_N[rows])
            refuse_other_width(wanted_Nd.shape[1], z.shape[1])
            found = cosine_distance(z, wanted_Nd[rows])
            found = found + self.total_variation * total_variation(images) + self.l2 * mean_square(images)
            if self.consistency:
                moved = shifted(images, [streams[row] for row in rows.tolist()])
                found = found + self.consistency * cosine_distance(encoder(moved, clients_N[rows]), z)
            return found

        return loss


def _stream(seed: int, goal: Goal, restart: int) -> "Generator":
    """Return the random stream of one attempt, which no other attempt shares."""
    import torch

    key = (1, goal.client, goal.label, int(goal.control), restart)
    state = np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]))
