"""Clients of a clustered method, made by hand: parameters, a batch, and global prototypes with filler among them."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from privkit.batch import Batch
from privkit.methods._base import AbstractMethod
from privkit.methods._down import Down
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.release import Prototypes

G, B, D, C = 4, 6, 5, 6  # clients, records, width, classes
NETWORK = Network(PersonalModel(adapter=2))
LABELS = (
    [0, 0, 0, 1, 2, 2, 4],  # class 3 and 5 have none
    [1, 1, 3],
    [2],  # one cluster in all
    [],  # nothing has arrived yet
)
MOST = 7

Loss = Callable[[dict[str, np.ndarray], int], float]


def params() -> dict[str, Tensor]:
    rng = np.random.default_rng(0)
    shapes = {
        "adapter.down": (G, D, 2),
        "adapter.up": (G, 2, D),
        "head.weight": (G, D, C),
        "head.bias": (G, C),
    }
    return {name: torch.from_numpy(rng.standard_normal(shape)) for name, shape in shapes.items()}


def batch() -> Batch:
    rng = np.random.default_rng(1)
    weight = torch.full((G, B), 1 / B, dtype=torch.float64)
    weight[1] = torch.tensor([0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
    y = rng.integers(0, C, (G, B))
    y[0], y[1], y[2] = [0, 1, 2, 3, 4, 5], [1, 3, 3, 0, 2, 1], [2, 2, 2, 0, 1, 5]
    return Batch(x=torch.from_numpy(rng.standard_normal((G, B, D))), y=torch.from_numpy(y), weight=weight)


def answers(*, filler: int = 0) -> dict[str, Tensor]:
    """Return what each client got; ``filler`` more rows of it mean nothing."""
    rng = np.random.default_rng(2)
    centres = 0.7 * rng.standard_normal((G, MOST + filler, D))
    labels = np.full((G, MOST + filler), -1)
    prototypes, present = np.zeros((G, C, D)), np.zeros((G, C), dtype=bool)
    for g, own in enumerate(LABELS):
        centres[g] = np.random.default_rng(10 + g).standard_normal((MOST + filler, D))
        labels[g, : len(own)] = own
        for c in own:
            prototypes[g, c] = centres[g, labels[g] == c].mean(0)
            present[g, c] = True
    named = {"centres": centres, "labels": labels, "prototypes": prototypes, "present": present}
    return {name: torch.from_numpy(array) for name, array in named.items()}


def got(each: Mapping[str, Tensor]) -> Down:
    """Return answers that differ by client, as each got them."""
    return Down(each=dict(each), shared={}, run_G=torch.zeros(G, dtype=torch.int64))


def loss_of(method: AbstractMethod, params: dict[str, Tensor], batch: Batch, down: Down) -> Tensor:
    return method.loss(NETWORK, params, NETWORK.embed(params, batch.x), batch, down)


def of(client: int, named: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: t[client].numpy() for name, t in named.items()}


def embedded(params: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    return x + np.maximum(x @ params["adapter.down"], 0) @ params["adapter.up"]


def cross_entropy(params: Mapping[str, np.ndarray], u: np.ndarray, y: int) -> float:
    logits = u @ params["head.weight"] + params["head.bias"]
    return float(np.log(np.exp(logits).sum()) - logits[y])


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def finite_differences(loss: Loss, params: dict[str, np.ndarray], client: int) -> dict[str, np.ndarray]:
    """Return the gradient of a loss at one client's parameters, by central differences."""
    step, found = 1e-6, {}
    for name, value in params.items():
        found[name] = np.zeros_like(value)
        for at in np.ndindex(value.shape):
            moved = {**params, name: value.copy()}
            moved[name][at] += step
            above = loss(moved, client)
            moved[name][at] -= 2 * step
            found[name][at] = (above - loss(moved, client)) / (2 * step)
    return found


def sent(vectors: np.ndarray, labels: list[int], counts: list[int] | None = None) -> Prototypes:
    return Prototypes(
        vectors=np.asarray(vectors, dtype=np.float32),
        labels=np.array(labels),
        counts=None if counts is None else np.array(counts),
    )
