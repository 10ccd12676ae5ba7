"""The overhead table of the VPDR paper: what VPP adds to making prototypes, and DCR to local training.

Every time is the CPU time of functions that training itself calls, on VPDR's four clients with features in memory, and
every number a share of the same stage without the defense: over cached features, and with the backbone's pass over the
pictures, which the stage needs where nothing is cached. The published shares stand beside; their times have no unit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch

from accountant.contract import DependsOn
from benchmarks.federation import Engine
from benchmarks.protocol import Result, cpu_seconds, spread
from benchmarks.training import four, vpdr
from privkit.batch import Batch
from privkit.defenses._base import NOTHING
from privkit.defenses._clipped import clipped_means
from privkit.defenses._distillation import ClippingRegularization, _divergence
from privkit.defenses._means import class_means
from privkit.defenses.none import PlainMeans
from privkit.defenses.vpp import GroupwiseMeans, Vpp
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.methods._down import Down
from privkit.noise import SeededNoise
from privkit.partitions._base import largest
from privkit.partitions._scores import discriminability
from privkit.partitions.laplace import Laplace
from privkit.train.answers import stacked_answers

TURNS, EPOCHS, BATCH = 5, 2, 256
NORM = 20.0
PICTURES = 16  # that the backbone's pass is timed on

PUBLISHED = {
    "ProtoGen": (1057.0, {"statistics": 13.22, "top-k": 9.78}),
    "local training": (2055.0, {"soft clip": 1.58, "teacher": 1.59, "KL": 1.38}),
}
"""Times of VPDR's overhead table, in a unit that it does not state: without the defense, and what each part adds."""

Seconds = dict[str, float]


def measured() -> list[Result]:
    """Return the table: every part of both stages, and the whole, as percentages of the stage without it."""
    stages: dict[str, Callable[[], Seconds]] = {
        "ProtoGen": Prototypes(vpdr(four(), batch_size=BATCH, rule=None)).seconds,
        "local training": Training().seconds,
    }
    picture, words = picture_seconds()
    found: list[Result] = []
    for stage, seconds in stages.items():
        turns = [seconds() for _ in range(TURNS + 1)][1:]
        pictures = sum(len(c.y) for c in four().clients) * (EPOCHS if stage == "local training" else 1)
        for name, extra in (("cached features", 0.0), (words, picture * pictures)):
            found += _results(stage, name, turns, extra)
    return found


def _results(stage: str, where: str, turns: list[Seconds], extra: float) -> Iterator[Result]:
    whole, parts = PUBLISHED[stage]
    for part in (name for name in turns[0] if name != "base"):
        time = sum(parts.values()) if part == "all" else parts.get(part)
        published = "not published" if time is None else f"published {100 * time / whole:.2f} %"
        base = np.median([turn["base"] for turn in turns]) + extra
        yield Result(
            id="OV",
            workload=f"{stage}: {part}",
            peer=where,
            **spread([100 * turn[part] / (turn["base"] + extra) for turn in turns]),
            unit="%",
            check=f"of {1e3 * base:.0f} ms; {published}",
        )


@dataclass(frozen=True, eq=False)
class Prototypes:
    """The stage that makes prototypes; without the defense, records are embedded and averaged."""

    engine: Engine

    def seconds(self) -> Seconds:
        """Return the CPU time of the stage and of each part of VPP, once over all clients."""
        plain, held = PlainMeans(), self._held()
        embedded = cpu_seconds(lambda: list(self.engine.fleet.released(self.engine.method)))
        means = cpu_seconds(lambda: [plain.privatize(e, self._noise) for e in self._held()])
        noisy = cpu_seconds(lambda: [self._vpp.privatize(e, self._noise) for e in self._held()])
        averaged = cpu_seconds(lambda: [class_means(e) for e in held])
        clipped = cpu_seconds(lambda: [self._clipped(e) for e in held])
        return {
            "base": embedded + means,
            "statistics": cpu_seconds(lambda: [discriminability(e, stabiliser=1e-6) for e in held]),
            "top-k": cpu_seconds(lambda: [self._chosen() for _ in held]),
            "clip": clipped - averaged,
            "noise": cpu_seconds(lambda: [self._drawn(e) for e in held]),
            "all": noisy - means,
        }

    @cached_property
    def _vpp(self) -> GroupwiseMeans:
        return Vpp(epsilon=1.0, clip_norm=NORM).mechanism(rounds=20)

    @cached_property
    def _noise(self) -> SeededNoise:
        return SeededNoise(np.random.default_rng(0))

    @cached_property
    def _vectors(self) -> list[np.ndarray]:
        return list(self.engine.fleet.released(self.engine.method))

    def _held(self) -> list[Embeddings]:
        """Return what the clients are about to release, as new as it is in every round."""
        clients = self.engine.fleet.cohort.clients
        return [
            Embeddings(vectors=z, labels=client.y, encoder=DependsOn.PRIVATE_STATE)
            for z, client in zip(self._vectors, clients, strict=True)
        ]

    def _chosen(self) -> np.ndarray:
        """Return a choice: noise on clipped scores, and the largest."""
        partition, dim = Laplace(), self.engine.given.dim
        size = round(self._vpp.rho * dim)
        scale = partition.top_k(self._vpp.budget, size=size, dim=dim).scale
        bounded_d = np.minimum(np.ones(dim), partition.score_bound)
        return largest(bounded_d + scale * partition.draw(self._noise, (dim,)), size)

    def _clipped(self, held: Embeddings) -> Any:
        group_d = (np.arange(held.vectors.shape[1]) % 5 > 0).astype(np.int64)
        return clipped_means(held, NOTHING, clip=self._vpp.clip, group_d=group_d, norms=(NORM / 2, NORM))

    def _drawn(self, held: Embeddings) -> np.ndarray:
        shape = (self.engine.given.num_classes, held.vectors.shape[1])
        return self._noise.normal(shape) * np.ones(shape[1]) / np.ones((shape[0], 1))


class Training:
    """The stage of local training; without the defense, FedProto's."""

    def __init__(self) -> None:
        self.rule = ClippingRegularization(radius=NORM)
        self.plain = vpdr(four(), batch_size=BATCH, rule=None)
        self.regularized = vpdr(four(), batch_size=BATCH, rule=self.rule)

    def seconds(self) -> Seconds:
        """Return the CPU time of a round and of each part of DCR in it, backward passes included."""
        down = self._down
        base = cpu_seconds(lambda: self.plain.fleet.train_round(0, self.plain.method, down))
        whole = cpu_seconds(lambda: self.regularized.fleet.train_round(0, self.regularized.method, down))
        each = {"soft clip": self._soft_clip, "teacher": self._teacher, "KL": self._divergence}
        parts = {name: self._steps * cpu_seconds(part, loops=5) for name, part in each.items()}
        return {"base": base, **parts, "all": whole - base}

    @cached_property
    def _down(self) -> Down:
        self.plain.round()
        shared = [self.plain.server.shared(self.plain.method, self.plain.state)]
        cohort = self.plain.fleet.cohort
        return stacked_answers([{} for _ in cohort.clients], shared, cohort.runs)

    @property
    def _steps(self) -> int:
        return EPOCHS * -(-int(self.plain.fleet.cohort.n.max()) // BATCH)

    @cached_property
    def _batch(self) -> Batch:
        cohort, shape = self.plain.fleet.cohort, (len(self.plain.fleet.cohort.n), BATCH)
        return Batch(x=cohort.x[:, :BATCH], y=cohort.y[:, :BATCH], weight=torch.full(shape, 1 / BATCH))

    @cached_property
    def _embedded(self) -> torch.Tensor:
        fleet = self.regularized.fleet
        return fleet.network.embed(fleet.params, self._batch.x).requires_grad_(True)

    @cached_property
    def _logits(self) -> torch.Tensor:
        fleet = self.regularized.fleet
        return fleet.network.logits(fleet.params, self._embedded).detach().requires_grad_(True)

    def _soft_clip(self) -> Any:
        u = self.rule.bound(self._embedded)
        return torch.autograd.grad(u, self._embedded, torch.ones_like(u))

    def _teacher(self) -> Any:
        """One pass of the teacher, and its move towards the head."""
        fleet = self.regularized.fleet
        teacher = {name: m for name, m in fleet.memory.items() if name != "steps"}
        with torch.no_grad():
            taught = fleet.network.still.logits({**fleet.params, **teacher}, self._embedded)
        self.rule.after_step(fleet.params, fleet.memory, active=len(taught))
        return taught

    def _divergence(self) -> Any:
        found = _divergence(
            self._logits.detach() / self.rule.temperature, self._logits / self.rule.temperature
        )
        return torch.autograd.grad((found * self._batch.weight).sum(), self._logits)


def picture_seconds() -> tuple[float, str]:
    """Return the CPU time of a real backbone's pass over one picture of 224 x 224, and what it is called."""
    from privkit.models.efficientnet_lite0 import EfficientnetLite0

    pictures = np.random.default_rng(0).integers(0, 256, (PICTURES, 224, 224, 3), dtype=np.uint8)
    try:
        encode = partial(EfficientnetLite0(side=224).encode, pictures)
        encode()
    except InputError as error:
        return float("nan"), f"n/a: {error}"
    return cpu_seconds(encode) / PICTURES, "with EfficientNet-Lite0"


ROWS = [measured]
