r"""FedWBA (Wei et al., 2025): clients send particles of their posterior, and the server takes their W2 barycenter.

A particle is a whole set of trained parameters. Client i moves its M particles ``w_m`` by Stein variational gradient
descent (Liu and Wang, 2016, Eq. 8),

``w_m <- w_m + step * (1/M) sum_j [k(w_j, w_m) grad log p(w_j) + grad_{w_j} k(w_j, w_m)]``,

with ``log p(w) = -n CE(w) + log (1/M) sum_j exp(-|w - g_j|^2 / (2 h^2))``: the likelihood of its n records, and a
kernel density of the particles ``g_j`` that arrived, as prior. k is a Gaussian kernel of median width.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from privkit.batch import Batch
from privkit.methods._base import State, cross_entropy
from privkit.methods._down import Down
from privkit.methods._free_support import free_support_barycenter
from privkit.methods._phases import Phase
from privkit.methods._weights import KEEP_MAPS, AbstractAverageOfWeights, refuse_different
from privkit.network import Network
from privkit.noise import Purpose, keyed
from privkit.personal import PersonalModel
from privkit.release import Update

if TYPE_CHECKING:
    from torch import Tensor

PARTICLES = "particles."


class FedWba(AbstractAverageOfWeights):
    """Wasserstein barycenter aggregation of particle posteriors; a client sends M times what FedAvg sends.

    Predictions are the mean over particles of class probabilities: the client's own after training, or those that
    arrived. The barycenter has free support and is found by exact transport from the particles that were sent out
    before. As in local training everywhere here, a step is one mini-batch, divided by n, of the method's optimiser: the
    paper has 30 to 75 full steps of a step size of its own. The published code averages over all clients, those absent
    included; here over those who sent.
    """

    citation: ClassVar[str] = "fedwba, liu2016svgd"
    way_out: ClassVar[str] = KEEP_MAPS

    particles: int = Field(default=10, ge=1, description="M, particles of each client")
    bandwidth: float = Field(
        default=0.55, gt=0, description="h, width of the prior's kernels, in units of parameters"
    )
    spread: float = Field(
        default=0.1,
        ge=0,
        description="standard deviation, in units of parameters, of the first particles around the initial parameters",
    )
    personal: bool = Field(
        default=True,
        description="classify by the client's own particles after training, not by those that arrived",
    )

    @property
    def averaged(self) -> tuple[str, ...]:
        return (PARTICLES,)

    def first(self, start: State, *, seed: int) -> State:
        rng = keyed(seed, Purpose.INIT, round=1)
        found = dict(start)
        for name, array in start.items():
            drawn = self.spread * rng.standard_normal((self.particles, *array.shape))
            found[f"{PARTICLES}{name}"] = (array + drawn).astype(np.float32)
        return found

    @property
    def phases(self) -> tuple[Phase, ...]:
        return (Phase(epochs=self.training.epochs, loss=self.loss, trained=self.averaged),)

    def refuse_model(self, model: PersonalModel) -> None:
        if model.dropout:
            raise ValueError("method fedwba has particles in the place of dropout; leave out model.dropout")

    def refuse_unusable(self, uploads: Mapping[int, Update]) -> None:
        named = {
            m: {name.removeprefix(PARTICLES): array for name, array in sent.named.items()}
            for m, sent in uploads.items()
        }
        refuse_different(named, self.way_out)

    def merge(self, server: State, uploads: Mapping[int, Update]) -> State:
        self.refuse_unusable(uploads)
        clouds = [uploads[m].named for m in sorted(uploads)]
        names = sorted(clouds[0])
        start = _flat(server or clouds[0], names)
        found_MD = free_support_barycenter(np.stack([_flat(cloud, names) for cloud in clouds]), start)
        return _named(found_MD, {name: clouds[0][name].shape[1:] for name in names})

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        """Return each client's loss, shape [G]; its slope by a particle is minus its Stein direction, divided by n."""
        import torch

        own = {n: p for n, p in params.items() if n.startswith(PARTICLES)}
        with torch.enable_grad():
            loose = {name: p.detach().requires_grad_(True) for name, p in own.items()}
            energy_GM = self._energy(network, loose, batch, down)
            slopes = torch.autograd.grad(energy_GM.sum(), list(loose.values()))
        x_GMD = torch.cat([p.flatten(2) for p in loose.values()], 2).detach()
        slope_GMD = torch.cat([s.flatten(2) for s in slopes], 2)
        records_G11 = _held(batch).view(-1, 1, 1)
        direction_GMD = stein_direction(x_GMD, -slope_GMD, repulsion=1 / records_G11)
        live_GMD = torch.cat([p.flatten(2) for p in own.values()], 2)
        # worth the energy, with the slope of Stein's direction
        value_G = energy_GM.detach().mean(1)
        return value_G - ((live_GMD - x_GMD) * direction_GMD).sum((1, 2))

    def _energy(self, network: Network, particles: "dict[str, Tensor]", batch: Batch, down: Down) -> "Tensor":
        """Return minus the logarithm of each particle's posterior density, divided by the number of records, [G, M]."""
        import torch

        of_each = cross_entropy(
            _logits(network, particles, batch.x).flatten(0, 1), _repeated(batch, self.particles)
        )
        x_GMD = torch.cat([p.flatten(2) for p in particles.values()], 2)
        prior_GMD = torch.cat([down[name].flatten(2).to(x_GMD.dtype) for name in particles], 2)
        squares_GMM = torch.cdist(x_GMD, prior_GMD, compute_mode="donot_use_mm_for_euclid_dist").square()
        log_prior_GM = (-squares_GMM / (2 * self.bandwidth**2)).logsumexp(2) - np.log(self.particles)
        return of_each.view(-1, self.particles) - log_prior_GM / _held(batch).unsqueeze(1)

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        """Return the logarithm of the mean over particles of each class's probability, shape [G, N, C]."""
        held = {n: p if self.personal else down[n] for n, p in params.items() if n.startswith(PARTICLES)}
        return _logits(network, held, x).float().log_softmax(-1).logsumexp(1) - np.log(self.particles)


def stein_direction(x_GMD: "Tensor", score_GMD: "Tensor", *, repulsion: "Tensor") -> "Tensor":
    """Return where each particle moves, shape [G, M, D].

    The kernel is ``exp(-|x - y|^2 / w)`` with ``w`` the median squared distance of two particles / log M, as in Liu and
    Wang (2016), Section 5; a single particle follows its score.

    Args:
        x_GMD: particles.
        score_GMD: gradient of the log density at each.
        repulsion: what the gradient of the kernel is multiplied by, which broadcasts with [G, 1, 1].
    """
    import torch

    count = x_GMD.shape[1]
    away_GMM = torch.cdist(x_GMD, x_GMD, compute_mode="donot_use_mm_for_euclid_dist").square()
    if count == 1:
        return score_GMD
    others = ~torch.eye(count, dtype=torch.bool, device=x_GMD.device)
    width_G11 = away_GMM[:, others].median(1).values.view(-1, 1, 1) / np.log(count)
    kernel_GMM = (-away_GMM / width_G11.clamp(min=1e-12)).exp()
    pull_GMD = kernel_GMM @ score_GMD
    push_GMD = 2 / width_G11.clamp(min=1e-12) * (kernel_GMM.sum(2, keepdim=True) * x_GMD - kernel_GMM @ x_GMD)
    return (pull_GMD + repulsion * push_GMD) / count


def _logits(network: Network, particles: "Mapping[str, Tensor]", x: "Tensor") -> "Tensor":
    """Return the logits of every particle, shape [G, M, B, C]."""
    clients, count = next(iter(particles.values())).shape[:2]
    flat = {name.removeprefix(PARTICLES): p.flatten(0, 1) for name, p in particles.items()}
    repeated = x.repeat_interleave(count, 0)
    logits = network.logits(flat, network.embed(flat, repeated))
    return logits.unflatten(0, (clients, count))


def _repeated(batch: Batch, count: int) -> Batch:
    """Return the batch of each client as many times as it has particles."""
    x, y, weight = (t.repeat_interleave(count, 0) for t in (batch.x, batch.y, batch.weight))
    return Batch(x=x, y=y, weight=weight)


def _held(batch: Batch) -> "Tensor":
    """Return how many records each client has, floats of shape [G]; those of the batch, where nobody said."""
    return (batch.weight > 0).sum(1).to(batch.weight) if batch.held is None else batch.held


def _flat(cloud: Mapping[str, np.ndarray], names: list[str]) -> np.ndarray:
    """Return particles as rows, shape [M, D]."""
    return np.concatenate([cloud[name].reshape(len(cloud[name]), -1) for name in names], 1).astype(np.float64)


def _named(rows_MD: np.ndarray, shapes: Mapping[str, tuple[int, ...]]) -> State:
    """Return rows as particles by name, float32."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])[:-1]
    parts = np.split(rows_MD, ends, axis=1)
    return {
        name: part.reshape(len(rows_MD), *shape).astype(np.float32)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
