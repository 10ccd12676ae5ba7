"""Rows O1 to O3: steps of FedOT, rotating rows without making the rotation, and barycenters of Gaussians.

Ours is the engine that ``privkit train`` uses. The peer, in ``orthogonal_peers/``, is torch's own orthogonal
parametrisation by the Cayley map, client by client. O1 is of two amounts of work: 8 blocks against one rotation of all
512 coordinates, as FedOT(+B) has less to do than FedOT; O1b is of the same. O3 has FedUP's iteration for its peer, on
covariance matrices as printed; O3b on their diagonals alone, for as many steps as an error of 1e-9 takes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.federation import Engine, Federation, farthest
from benchmarks.orthogonal_peers.fixed_point import barycenter_by_iteration, diagonal_by_iteration
from benchmarks.orthogonal_peers.parametrized import LoopServer
from benchmarks.pairs import Pair, Work
from benchmarks.protocol import Result
from privkit.barycenter import wasserstein
from privkit.cayley import cayley, rotate
from privkit.methods._base import LocalTraining
from privkit.methods.fedot import FedOt
from privkit.personal import PersonalModel

_row = partial(Pair, module="benchmarks.orthogonal")

CLIENTS, DIM, CLASSES, BATCH = 75, 512, 10, 64
STEP = LocalTraining(epochs=1, batch_size=BATCH)
"""One step a round: every client has one batch of records."""
PLAIN = LocalTraining(epochs=1, batch_size=BATCH, optimizer="sgd", learning_rate=0.1, weight_decay=0.0)


# ---------------------------------------------------------------------- O1: a step of every client


def federation(blocks: int, *, clients: int = CLIENTS) -> Federation:
    """Return clients of one batch each, whose rotations begin away from the identity, as a lower triangle."""
    model = PersonalModel.model_validate(
        {"transform": {"name": "rotation", "blocks": blocks}, "temperature": 10.0}
    )
    given = Federation.of([BATCH] * clients, dim=DIM, num_classes=CLASSES, model=model)
    x = given.start["transform.x"]
    given.start["transform.x"][:] = 0.01 * np.tril(np.random.default_rng(0).standard_normal(x.shape), -1)  # type: ignore[index]
    return given


def engine_step(given: Federation, training: LocalTraining) -> tuple[Engine, Work]:
    """Return our engine, and what trains every client of it for one step on the mean of heads."""
    engine = Engine(given, FedOt(training=training))
    return engine, partial(engine.train, engine.exchange())


def same_step(blocks: int, *, clients: int = 3) -> tuple[str, bool]:
    """Compare heads and lower triangles after one step of SGD in float64.

    torch's parametrisation has the lower triangle alone: its gradient is that of ours. A second step would differ,
    since ours has moved the upper one too.
    """
    given = federation(blocks, clients=clients).double()
    ours, work = engine_step(given, PLAIN)
    theirs = LoopServer(given, PLAIN)
    work()
    theirs.round()
    mine = [named | {"transform.x": np.tril(named["transform.x"], -1)} for named in ours.named()]
    moved = max(float(np.abs(one["transform.x"] - given.start["transform.x"]).max()) for one in mine)
    apart = farthest(mine, theirs.named())
    said = f"after a step, of which {blocks} blocks moved by {moved:.0e}, {apart:.0e} apart, 1e-10 allowed"
    return said, not (apart <= 1e-10 and moved > 1e-6)


def both_same() -> tuple[str, bool]:
    """Compare with 8 blocks and with one."""
    found = [same_step(blocks) for blocks in (8, 1)]
    return "; ".join(said for said, _ in found), any(void for _, void in found)


def ours(blocks: int) -> Work:
    return engine_step(federation(blocks), STEP)[1]


def theirs(blocks: int) -> Work:
    return LoopServer(federation(blocks), STEP).round


# ---------------------------------------------------------------------- O2: rows of one client


def operands(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an unconstrained matrix and a batch of rows."""
    rng = np.random.default_rng(0)
    x, h = 0.01 * rng.standard_normal((1, 1, DIM, DIM)), rng.standard_normal((1, BATCH, DIM))
    return torch.from_numpy(x).to(dtype).requires_grad_(True), torch.from_numpy(h).to(dtype)


def solved(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    return rotate(x, h)


def made(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    return h @ cayley(x)[:, 0].mT


def slope(way: Any, operand: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Return the gradient of a sum over what a way of rotating gives."""
    x, h = operand
    (found,) = torch.autograd.grad((way(x, h)[..., 0] * h[..., 1]).sum(), x)
    return found


def same_rows() -> tuple[str, bool]:
    """Compare rotated rows and gradients in float64."""
    operand = operands(torch.float64)
    rows = float((solved(*operand) - made(*operand)).detach().abs().max())
    slopes = float((slope(solved, operand) - slope(made, operand)).abs().max())
    return f"rows {rows:.0e} and gradients {slopes:.0e} apart, 1e-10 allowed", not max(rows, slopes) <= 1e-10


def rotating(way: Any) -> Work:
    return partial(slope, way, operands())


# ---------------------------------------------------------------------- O3: one Gaussian for those of all clients

HOLDERS, WIDTH = 20, 64
STEPS = 30
"""An error of the iteration halves with every step."""


def gaussians() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and standard deviations of clients that hold a class, and their weights."""
    rng = np.random.default_rng(0)
    mean_Md, raw_M = rng.standard_normal((HOLDERS, WIDTH)), rng.random(HOLDERS)
    return mean_Md, rng.uniform(0.05, 0.5, (HOLDERS, WIDTH)), raw_M / raw_M.sum()


def closed_form() -> Work:
    return partial(wasserstein, *gaussians())


def on_matrices() -> Work:
    _, spread_Md, weight_M = gaussians()
    covariance_Mdd = np.stack([np.diag(spread_d**2) for spread_d in spread_Md])
    return partial(barycenter_by_iteration, covariance_Mdd, weight_M, steps=STEPS)


def on_diagonals() -> Work:
    _, spread_Md, weight_M = gaussians()
    return partial(diagonal_by_iteration, spread_Md**2, weight_M, steps=STEPS)


def same_barycenter(peer: Callable[[], Work]) -> tuple[str, bool]:
    """Compare standard deviations."""
    found = peer()()
    variance_d = found if found.ndim == 1 else np.diag(found)
    apart = float(np.abs(np.sqrt(variance_d) / closed_form()().spread - 1).max())
    return f"spreads {apart:.0e} apart, 1e-8 allowed", not apart <= 1e-8


_ROWS = [
    _row(
        id="O1",
        workload=f"FedOT(+B) step, {CLIENTS} clients, r = 8",
        peer="torch's parametrisation per client, r = 1",
        ours=lambda: ours(8),
        theirs=lambda: theirs(1),
        check=both_same,
        must=10.0,
        stretch=20.0,
        turns=3,
        loops=3,
    ),
    _row(
        id="O1b",
        workload=f"FedOT(+B) step, {CLIENTS} clients, r = 8, on both sides",
        peer="torch's parametrisation per client",
        ours=lambda: ours(8),
        theirs=lambda: theirs(8),
        check=lambda: same_step(8),
        must=2.0,
        stretch=4.0,
        turns=3,
        loops=3,
    ),
    _row(
        id="O2",
        workload=f"rotate {BATCH} rows of width {DIM} and go back, r = 1",
        peer="the rotation made first",
        ours=lambda: rotating(solved),
        theirs=lambda: rotating(made),
        check=same_rows,
        must=3.0,
        stretch=3.5,
        loops=10,
    ),
    _row(
        id="O3",
        workload=f"barycenter of {HOLDERS} Gaussians, diagonal",
        peer="the printed iteration, matrices",
        ours=closed_form,
        theirs=on_matrices,
        check=lambda: same_barycenter(on_matrices),
        must=50.0,
        stretch=1000.0,
        loops=1000,
    ),
    _row(
        id="O3b",
        workload=f"barycenter of {HOLDERS} Gaussians, diagonal",
        peer="the printed iteration, diagonals",
        ours=closed_form,
        theirs=on_diagonals,
        check=lambda: same_barycenter(on_diagonals),
        must=10.0,
        stretch=50.0,
        loops=100,
    ),
]

PAIRS = {pair.key: pair for pair in _ROWS}


def pair(key: str) -> list[Result]:
    return PAIRS[key].results()


ROWS = [partial(pair, key) for key in PAIRS]
