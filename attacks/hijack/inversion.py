r"""Feature inversion: an image whose embedding points where a released prototype points.

The "hijack" of the VPDR paper, as its public code has it: with ``x = sigmoid(logits)``, Adam on

.. math:: 1 - \cos(h(x), \tilde p) + \tau\, TV(x) + \lambda\, \overline{x^2}
    + \kappa\, (1 - \cos(h(\text{shift}(x)), h(x)))

from several starts; the start kept is the one with the smallest loss, which is all that the attacker can see.
It is no generator trained against a client (Pasquini et al., 2021): prototypes give no channel for that.

Published: the loss but its last term's form, Adam at 0.01, weight 1e-3 on the total variation, at most 100,000
steps, at least 100, patience 500 at 1e-6, batches of 16, one image for each of 3 classes. Ours: what a
prototype is averaged from, means over pixels, the shifts, the number of starts, and a budget of seconds.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64
from pydantic import Field

from attacks._averaged import averaged
from attacks._base import NotApplicableError
from attacks._known_noise import prototypes
from privkit.plug import Plugin
from privkit.release import Release, SumsAndCounts
from privkit.transcript import ServerView

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from attacks.hijack._optimise import Loss

    Encoder = Callable[[Tensor, Tensor], Tensor]

Tier = Literal["public", "shadow", "client"]

_KNOWS: dict[Tier, tuple[str, ...]] = {
    "public": ("the public backbone", "the weights that training started from"),
    "shadow": (
        "the public backbone",
        "the weights that training started from",
        "how clients train",
        "records of the same domains that no client holds",
    ),
    "client": ("the client's own trained encoder, which no server has: an upper bound",),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Goal:
    """Where an image's embedding is to point.

    Attributes:
        client, label: whose prototype.
        vector: the direction wanted, shape [d].
        control: whether the vector is a random direction, and not the prototype: the floor of the budget.
    """

    client: int
    label: int
    vector: np.ndarray
    control: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Attempts:
    """Rebuilt images and all that the attacker knows of each.

    Attributes:
        images: pixels in [0, 1], shape [N, c, height, width].
        losses: what was minimised, shape [N].
        cosines: between the image's embedding under the attacker's encoder and its goal, shape [N].
        steps: optimisation steps, shape [N].
        converged: whether the stop rule, not the budget, ended it; shape [N].
    """

    images: Float32[np.ndarray, "N c height width"]
    losses: Float64[np.ndarray, " N"]
    cosines: Float64[np.ndarray, " N"]
    steps: Int64[np.ndarray, " N"]
    converged: Bool[np.ndarray, " N"]

    def __len__(self) -> int:
        return len(self.losses)

    @classmethod
    def joined(cls, parts: "Sequence[Attempts]") -> "Attempts":
        """Return several lots of attempts as one."""
        return cls(**{name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])})

    def best_of(self, restarts: int) -> "Attempts":
        """Return, of every ``restarts`` attempts in a row, the one with the smallest loss."""
        rows = self.losses.reshape(-1, restarts).argmin(1) + restarts * np.arange(len(self) // restarts)
        return Attempts(**{name: array[rows] for name, array in vars(self).items()})


class FeatureInversion(Plugin):
    """Rebuilds, for some released prototypes, an image with the same embedding direction."""

    citation: ClassVar[str] = "vpdr"
    who: ClassVar[str] = "honest-but-curious server"

    tier: Tier = Field(
        default="public",
        description="encoder it holds: as broadcast; with an adapter trained on its own records; the client's own",
    )
    targets: int = Field(
        default=3, ge=1, description="prototypes to invert per run, spread over clients and classes"
    )
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
    seeds: int = Field(default=1, ge=1, description="runs of a cell that are attacked")
    largest_image: int | None = Field(
        default=4096,
        ge=1,
        description="numbers (channels x height x width) of the largest image that is rebuilt; larger ones take "
        "minutes per cell, and are only rebuilt where this is null",
    )
    round: int | None = Field(
        default=None,
        ge=0,
        description="round whose prototypes are inverted; none averages all rounds by the precision of their noise; "
        "several prototypes of a class are made its mean, weighted by the counts that were sent, or alike without any",
    )

    @property
    def knows(self) -> tuple[str, ...]:
        """Return, in words, everything the attacker has beside the transcript."""
        return _KNOWS[self.tier]

    @property
    def target(self) -> str:
        """Return, in words, which releases are inverted."""
        if self.round is None:
            return "prototypes averaged over all rounds by the precision of their noise"
        return f"prototypes of round {self.round}"

    def refuse_large(self, image_shape: tuple[int, int, int]) -> None:
        """Raise if images of some channels, height and width are larger than wanted.

        Raises:
            NotApplicableError: they are.
        """
        channels, height, width = image_shape
        if self.largest_image is not None and channels * height * width > self.largest_image:
            raise NotApplicableError(
                f"images of {channels} x {height} x {width} take minutes per cell; set largest_image: null for "
                "inversion, as configs/hijack.yaml does, and give the file to --config"
            )

    def goals(self, view: ServerView, *, num_classes: int, seed: int) -> list[Goal]:
        """Return what to rebuild, then as many random directions to compare with.

        Args:
            view: what the server saw.
            num_classes: labels from here on are no classes of records, and are left alone.
            seed: decides which prototypes are chosen, and the directions.

        Raises:
            NotApplicableError: there is no prototype, none of the wanted round, or its noise is not known.
        """
        self._refuse_round(view)
        pairs = {
            (release.client, int(label))
            for release in view.releases
            if self.round in (None, release.round)
            for label in prototypes(release).labels
            if label < num_classes
        }
        if not pairs:
            raise NotApplicableError("no prototype was released; inversion needs one")
        chosen = spread(sorted(pairs), self.targets, seed=seed)
        wanted = [Goal(client=c, label=y, vector=self._vector(view, c, y)) for c, y in chosen]
        return wanted + [_control(goal, seed) for goal in wanted]

    def _refuse_round(self, view: ServerView) -> None:
        rounds = [release.round for release in view.releases]
        if rounds and self.round is not None and self.round not in rounds:
            raise NotApplicableError(
                f"round={self.round} was not released; give one of {min(rounds)} to {max(rounds)}, or none for all"
            )

    def _vector(self, view: ServerView, client: int, label: int) -> np.ndarray:
        if self.round is None:
            return averaged(view, client=client, label=label, drifts=False).vector
        found = view.prototypes(client=client, label=label)
        rows = [(release, row) for release, row in found if release.round == self.round]
        vectors_Pd = np.array([prototypes(release).vectors[row] for release, row in rows], dtype=np.float64)
        return np.average(
            vectors_Pd, axis=0, weights=[_records_behind(release, row) for release, row in rows]
        )

    def rebuild(
        self,
        goals: Sequence[Goal],
        encoder: "Encoder",
        *,
        image_shape: tuple[int, int, int],
        seed: int,
        done: int = 0,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Iterator[Attempts]:
        """Yield, batch after batch, ``restarts`` attempts at every goal, in the order of the goals.

        Every attempt draws from a stream of its own, keyed by (seed, client, label, control, restart).

        Args:
            goals: where embeddings are to point.
            encoder: maps images [N, c, height, width], pixels in [0, 1], and the client of each, [N], to
                embeddings [N, d], with gradients; no image may change another's embedding.
            image_shape: channels, height and width.
            seed: of the starts and shifts.
            done: attempts made already: that many are left out, a whole number of batches.
            progress: called with steps done, and of how many.

        Raises:
            NotApplicableError: a goal is not as wide as an embedding, or embeddings are not finite.
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
            if z.shape[1] != wanted_Nd.shape[1]:
                raise NotApplicableError(
                    f"prototypes have {wanted_Nd.shape[1]} numbers and embeddings {z.shape[1]}; inversion needs "
                    "prototypes in the space of the embeddings"
                )
            found = cosine_distance(z, wanted_Nd[rows])
            found = found + self.total_variation * total_variation(images) + self.l2 * mean_square(images)
            if self.consistency:
                moved = shifted(images, [streams[row] for row in rows.tolist()])
                found = found + self.consistency * cosine_distance(encoder(moved, clients_N[rows]), z)
            return found

        return loss


def spread(pairs: Sequence[tuple[int, int]], count: int, *, seed: int) -> list[tuple[int, int]]:
    """Return some (client, class) pairs, in random order, that repeat clients and classes as little as can be.

    All of them, if there are no more than ``count``.

    >>> len({client for client, _ in spread([(m, c) for m in range(3) for c in range(9)], 3, seed=0)})
    3
    """
    order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 0))).permutation(len(pairs))
    left, chosen = [pairs[i] for i in order], []
    while left and len(chosen) < count:
        used = [value for pair in chosen for value in (("client", pair[0]), ("label", pair[1]))]
        rarest = min(left, key=lambda pair: used.count(("client", pair[0])) + used.count(("label", pair[1])))
        left.remove(rarest)
        chosen.append(rarest)
    return chosen


def _records_behind(release: Release, row: int) -> float:
    """Return how many records one prototype counts for: as many as were sent, noisy or not; 1 where none were."""
    if isinstance(release.payload, SumsAndCounts):
        return max(1.0, float(release.payload.totals[row]))
    counts = prototypes(release).counts
    return 1.0 if counts is None else float(counts[row])


def _control(goal: Goal, seed: int) -> Goal:
    """Return the same goal with a uniformly random direction in place of the prototype."""
    key = (0, goal.client, goal.label, 0)
    direction = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)).standard_normal(
        len(goal.vector)
    )
    return Goal(
        client=goal.client, label=goal.label, vector=direction / np.linalg.norm(direction), control=True
    )


def _stream(seed: int, goal: Goal, restart: int) -> "Generator":
    """Return the random stream of one attempt, which no other attempt shares."""
    import torch

    key = (1, goal.client, goal.label, int(goal.control), restart)
    state = np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]))
