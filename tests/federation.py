"""A tiny federation, stacked: five clients of two runs, whose order says nothing about their run."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from privkit.batch import Batch
from privkit.methods._base import AbstractMethod, State
from privkit.methods._down import Down
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.release import ByClass, Prototypes, Update
from privkit.train.answers import stacked_answers

G, B, D, C = 5, 6, 8, 4  # clients, records, width, classes
RUN = (0, 1, 0, 0, 1)
CLIENT = (2, 0, 0, 1, 1)  # number of each within its run
NETWORK = Network(PersonalModel(adapter=3))

Arrays = Mapping[str, np.ndarray]


def params(seed: int = 0, method: AbstractMethod | None = None) -> dict[str, Tensor]:
    """Return parameters of every client, with what a method keeps beside the network's, float64."""
    rng = np.random.default_rng(seed)
    start = NETWORK.start(dim=D, num_classes=C, seed=seed)
    if method is not None:
        start = method.first(start, seed=seed)
    return {name: torch.from_numpy(0.7 * rng.standard_normal((G, *a.shape))) for name, a in start.items()}


def batch(classes: Sequence[int] = tuple(range(C))) -> Batch:
    """Return a batch of records of some classes; one client has fewer of them."""
    rng = np.random.default_rng(1)
    weight = torch.full((G, B), 1 / B, dtype=torch.float64)
    weight[4] = torch.tensor([0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
    y = torch.from_numpy(rng.choice(np.array(classes), (G, B)))
    return Batch(x=torch.from_numpy(rng.standard_normal((G, B, D))), y=y, weight=weight)


def part(whole: Batch, clients: slice) -> Batch:
    return Batch(whole.x[clients], whole.y[clients], whole.weight[clients])


def of(client: int, named: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor[client].numpy() for name, tensor in named.items()}


def sent(vectors: Mapping[int, Sequence[float] | np.ndarray], counts: int | None = None) -> Prototypes:
    """Return the message of one prototype for each of some classes."""
    return Prototypes(
        vectors=np.array(list(vectors.values()), dtype=np.float32),
        labels=np.array(list(vectors)),
        counts=None if counts is None else np.full(len(vectors), counts),
    )


def drawn(held: Mapping[int, Sequence[int]], *, seed: int = 0, size: float = 1.0) -> dict[int, ByClass]:
    """Return messages of clients that hold some classes each."""
    rng = np.random.default_rng(seed)
    return {m: sent({c: size * rng.standard_normal(D) for c in classes}) for m, classes in held.items()}


HELD = ({0: (0, 1, 2), 1: (1, 2), 2: (2,)}, {0: (0, 1, 2, 3), 1: (0, 3)})
"""Which classes the clients of each run hold: nobody in the first run holds class 3."""


def uploads(method: AbstractMethod, run: int, *, seed: int = 0) -> dict[int, ByClass] | dict[int, Update]:
    """Return what the clients of a run send in some round, whatever kind of method it is."""
    if not method.uploads:
        return {}
    found = drawn(HELD[run], seed=seed + run)
    if method.sends.value == "prototypes":
        return found
    rng = np.random.default_rng(seed + run)
    start = method.first(NETWORK.start(dim=D, num_classes=C, seed=0), seed=0)
    mine = {name: array for name, array in start.items() if method.sends_weight(name)}
    return {
        m: Update(
            named={
                **{n: rng.standard_normal(a.shape).astype(np.float32) for n, a in mine.items()},
                **besides(method, rng, HELD[run][m]),
            },
            means="weights",
        )
        for m in found
    }


def besides(
    method: AbstractMethod, rng: np.random.Generator, classes: Sequence[int]
) -> dict[str, np.ndarray]:
    """Return what a client that holds some classes sends besides weights."""
    y = torch.from_numpy(np.repeat(np.array(classes), 3))
    z = torch.from_numpy(rng.standard_normal((1, len(y), D)).astype(np.float32))
    found = method.sent_besides(z, y.unsqueeze(0), num_classes=C)
    return {name: tensor[0].numpy() for name, tensor in found.items()}


def states(method: AbstractMethod, *, rounds: int = 1) -> list[State]:
    """Return the server's state of each run after some rounds."""
    found = []
    for run in range(len(HELD)):
        state = method.start(dim=D, num_classes=C, seed=run)
        for round in range(rounds):
            state = method.merge(state, method.arrived(uploads(method, run, seed=10 * round)))
        found.append(state)
    return found


def answers(
    method: AbstractMethod, servers: Sequence[State], clients: Sequence[int] = tuple(range(G))
) -> Down:
    """Return what some clients get, as the loop stacks it, in float64."""
    runs = sorted({RUN[g] for g in clients})
    down = stacked_answers(
        [method.down(servers[RUN[g]], CLIENT[g]) for g in clients],
        [method.shared(servers[run]) for run in runs],
        torch.tensor([runs.index(RUN[g]) for g in clients]),
    )
    return Down(each=doubled(down.each), shared=doubled(down.shared), run_G=down.run_G)


def doubled(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: t.double() if t.is_floating_point() else t for name, t in named.items()}


def embedded(p: Arrays, x: np.ndarray) -> np.ndarray:
    return x + np.maximum(x @ p["adapter.down"], 0) @ p["adapter.up"]


def head(p: Arrays, u: np.ndarray) -> np.ndarray:
    return u @ p["head.weight"] + p["head.bias"]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    high = logits.max(-1, keepdims=True)
    return logits - high - np.log(np.exp(logits - high).sum(-1, keepdims=True))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def loss_of(method: AbstractMethod, p: dict[str, Tensor], records: Batch, down: Down) -> Tensor:
    """Return the sum of the losses of all phases of local training, shape [G]."""
    views = [(phase, phase.view(p)) for phase in method.phases]
    losses = [
        phase.loss(NETWORK, view, NETWORK.embed(view, records.x), records, down) for phase, view in views
    ]
    return sum(losses[1:], start=losses[0])


def gradients(
    method: AbstractMethod, p: Mapping[str, Tensor], records: Batch, down: Down
) -> dict[str, Tensor]:
    """Return the gradient of the summed loss; zeros for what it does not depend on."""
    live = {name: t.clone().requires_grad_(True) for name, t in p.items()}
    total = loss_of(method, live, records, down).sum()
    found = torch.autograd.grad(total, list(live.values()), allow_unused=True)
    return {n: torch.zeros_like(t) if g is None else g for (n, t), g in zip(live.items(), found, strict=True)}


def finite_differences(loss: Callable[[Arrays], float], p: Arrays) -> dict[str, np.ndarray]:
    """Return the gradient of a loss at some parameters, by central differences."""
    step, found = 1e-6, {}
    for name, value in p.items():
        found[name] = np.zeros_like(value)
        for at in np.ndindex(value.shape):
            above, below = value.copy(), value.copy()
            above[at] += step
            below[at] -= step
            found[name][at] = (loss({**p, name: above}) - loss({**p, name: below})) / (2 * step)
    return found


def assert_is_reference(
    method: AbstractMethod, down: Down, reference: Callable[[Arrays, int, Batch], float], records: Batch
) -> None:
    """Fail unless loss and gradient of every client are those of a function of its parameters."""
    own = params()
    losses, slopes = loss_of(method, own, records, down), gradients(method, own, records, down)
    for g in range(G):
        mine = of(g, own)
        np.testing.assert_allclose(losses[g].item(), reference(mine, g, records), rtol=1e-9)
        for name, wanted in finite_differences(lambda p, g=g: reference(p, g, records), mine).items():
            np.testing.assert_allclose(slopes[name][g].numpy(), wanted, rtol=1e-5, atol=1e-7, err_msg=name)
