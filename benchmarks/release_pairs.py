"""Row P6: VPP's release of one client, from embeddings in memory to noisy prototypes."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from accountant.contract import DependsOn
from accountant.groupwise import Allocation
from benchmarks.pairs import Pair, Work
from privkit.defenses.vpp import GroupwiseMeans, Vpp
from privkit.embeddings import Embeddings
from privkit.noise import SeededNoise
from privkit.partitions.laplace import Laplace

RECORDS, DIM, ROUNDS, NORM = 10_000, 512, 20, 5.0


@dataclass(frozen=True)
class LaplaceOnly:
    """Laplace noise that both sides get, and no Gaussian noise."""

    laplace_d: np.ndarray

    def normal(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape)

    def laplace(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.laplace_d


def embeddings(num_classes: int, *, shuffled: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return one client's features, float32, and their labels: class by class, as folders list them, or shuffled."""
    rng = np.random.default_rng(0)
    y = np.arange(RECORDS) % num_classes
    y = rng.permutation(y) if shuffled else np.sort(y)
    means = 0.3 * rng.normal(size=(num_classes, DIM))
    return (means[y] + rng.normal(size=(RECORDS, DIM))).astype(np.float32), y


def mechanism() -> GroupwiseMeans:
    return Vpp(epsilon=1.0, clip_norm=NORM).mechanism(rounds=ROUNDS)


def ours(num_classes: int, shuffled: bool) -> Work:
    x, y = embeddings(num_classes, shuffled=shuffled)
    wide, vpp = x.astype(np.float64), mechanism()  # the engine hands embeddings over in float64
    noise = SeededNoise(np.random.default_rng(0))

    def release() -> Any:
        return vpp.privatize(Embeddings(vectors=wide, labels=y, encoder=DependsOn.PUBLIC), noise)

    return release


def theirs(num_classes: int, shuffled: bool) -> Work:
    import torch

    from benchmarks.training_peers import vpdr_release

    loader = vpdr_release.loader(*embeddings(num_classes, shuffled=shuffled))
    release, scale = settings(noisy=True)
    lap = torch.distributions.Laplace(0.0, scale)
    return lambda: release.prototypes(loader, lap.sample((DIM,)))


def settings(*, noisy: bool) -> tuple[Any, float]:
    """Return the peer's release with the noise of ours, and the scale of its Laplace noise."""
    from benchmarks.training_peers.vpdr_release import Release

    vpp = mechanism()
    groups = Allocation.of(dim=DIM, rho=vpp.rho)
    event = groups.release(sigma_ref=vpp.noise_multiplier, clip_norm=NORM, clip=vpp.clip)
    one, other = np.multiply(event.noise_multipliers, event.clip_norms) * float(noisy)
    partition, size = Laplace(), groups.sizes[0]
    choice = partition.top_k(vpp.budget, size=size, dim=DIM)
    release = Release(
        clip_norm=NORM,
        size=size,
        stds=(float(one), float(other)),
        score_bound=partition.score_bound,
        stabiliser=partition.stabiliser,
    )
    return release, choice.scale


def same_prototypes(num_classes: int, shuffled: bool) -> tuple[str, bool]:
    """Compare prototypes without Gaussian noise, on coordinates that the same Laplace noise chose."""
    import torch

    from benchmarks.training_peers import vpdr_release

    x, y = embeddings(num_classes, shuffled=shuffled)
    laplace_d = np.random.default_rng(1).laplace(size=DIM)
    records = Embeddings(vectors=x.astype(np.float64), labels=y, encoder=DependsOn.PUBLIC)
    mine = mechanism().privatize(records, LaplaceOnly(laplace_d)).payload
    release, scale = settings(noisy=False)
    other = release.prototypes(vpdr_release.loader(x, y), torch.from_numpy(scale * laplace_d).float())
    stacked = np.stack([other[label].numpy() for label in mine.labels.tolist()])
    apart = float(np.abs(mine.vectors - stacked).max())
    return f"prototypes {apart:.0e} apart without noise, 1e-06 allowed", not apart <= 1e-6


def _row(num_classes: int, *, shuffled: bool, must: float) -> Pair:
    order = "shuffled" if shuffled else "by class"
    return Pair(
        module="benchmarks.training",
        id="P6",
        workload=f"VPP release, C = {num_classes}, {order}",
        peer="VPDR's structure",
        ours=partial(ours, num_classes, shuffled),
        theirs=partial(theirs, num_classes, shuffled),
        check=partial(same_prototypes, num_classes, shuffled),
        must=must,
        stretch=60.0,
        loops=3,
    )


ROWS = [
    *(_row(num_classes, shuffled=False, must=8.0) for num_classes in (7, 10, 100)),
    # every record is copied once more to put it beside its class
    _row(10, shuffled=True, must=5.0),
]
