r"""FedPAC (Xu et al., 2023): the base is averaged and aligned by prototypes, and every client gets a head mixed for it.

Client i sends base, head, class means ``mu_c``, and two statistics of its embeddings z: with class shares ``p_c``,

``h_i = (p_c mu_c)_c`` of shape [C, d],  ``V_i = (sum_c p_c E|z|^2_c - sum_c p_c^2 |mu_c|^2) / n``.

The server averages bases and class means, and mixes the heads for client i with the weights ``a`` on the simplex that
make ``a^T (diag V + D_i) a`` smallest, ``D_i[j, k] = <h_i - h_j, h_i - h_k>`` (Eq. 9); those below 1e-3 become 0.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from privkit.batch import Batch
from privkit.methods._base import AbstractMethod, State
from privkit.methods._base_and_head import BASE, AbstractBaseAndHead
from privkit.methods._down import Down
from privkit.methods._phases import Phase
from privkit.methods._pull import distance_to_own
from privkit.methods._simplex import smallest_form
from privkit.methods._weights import HEAD
from privkit.network import Network
from privkit.release import Update

if TYPE_CHECKING:
    from torch import Tensor

STATISTICS = "statistics."
_MIXED, _CLIENTS = "mixed.", "clients"
_LEAST = 1e-3


class FedPac(AbstractBaseAndHead):
    """Personalised federated learning with feature alignment and classifier collaboration.

    All that a client sends is made with the parameters that it sends, and is in the transcript: ``statistics.*``
    beside the weights, of which ``statistics.marginal_means`` (h) shows its class shares. Nothing is weighted by record
    counts, but ``V`` falls with their number.

    A client's head is mixed when it sends one, and given to it when it is next there; a client that has never sent gets
    the mean of the round's heads. Weights that were set to 0 are missing in the others' sum in the original code; here
    the rest is scaled to add up to 1. The original computes ``h`` and ``V`` before a round's local training.
    """

    citation: ClassVar[str] = "fedpac"
    reads_only_in_phases: ClassVar[bool] = False

    pull: float = Field(
        default=1.0,
        ge=0,
        description="lambda, weight of the mean squared distance to the global prototype of a record's class",
    )
    head_epochs: int = Field(default=1, ge=1, description="passes that train the head alone, before the base")

    @property
    def averaged(self) -> tuple[str, ...]:
        return (HEAD, *BASE)

    @property
    def phases(self) -> tuple[Phase, ...]:
        head = Phase(epochs=self.head_epochs, loss=super().loss, trained=(HEAD,))
        return (head, Phase(epochs=self.training.epochs, loss=self.loss, trained=BASE))

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        base = super().loss(network, params, u_GBd, batch, down)
        return base + self.pull * distance_to_own(u_GBd, batch, down)

    def sent_besides(self, z_GNd: "Tensor", y_GN: "Tensor", *, num_classes: int) -> "dict[str, Tensor]":
        import torch

        member_GCN = (y_GN.unsqueeze(1) == torch.arange(num_classes, device=y_GN.device).unsqueeze(-1)).to(
            z_GNd
        )
        counts_GC = member_GCN.sum(-1)
        records_G1 = counts_GC.sum(-1, keepdim=True).clamp(min=1)
        least_GC, share_GC = counts_GC.clamp(min=1), counts_GC / records_G1
        means_GCd = member_GCN @ z_GNd / least_GC.unsqueeze(-1)
        squares_GC = (member_GCN @ z_GNd.square().sum(-1, keepdim=True)).squeeze(-1) / least_GC
        spread_G = (share_GC * squares_GC - share_GC.square() * means_GCd.square().sum(-1)).sum(-1)
        found = {
            "prototypes": means_GCd,
            "present": (counts_GC > 0).to(z_GNd),
            "marginal_means": share_GC.unsqueeze(-1) * means_GCd,
            "variance": spread_G / records_G1.squeeze(-1),
        }
        return {f"{STATISTICS}{name}": tensor for name, tensor in found.items()}

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        return {
            "prototypes": np.zeros((num_classes, dim), np.float32),
            "present": np.zeros(num_classes, bool),
        }

    def merge(self, server: State, uploads: Mapping[int, Update]) -> State:
        self.refuse_unusable(uploads)
        ids = sorted(uploads)
        stacked = {
            n: np.stack([uploads[m].named[n] for m in ids]).astype(np.float64) for n in uploads[ids[0]].named
        }
        h, v = (stacked[f"{STATISTICS}{name}"] for name in ("marginal_means", "variance"))
        weights_MM = np.stack([mixing_weights(h, np.maximum(v, 0.0), own=i) for i in range(len(ids))])
        base = {name: array.mean(0) for name, array in stacked.items() if name.startswith(BASE)}
        heads = {name: array for name, array in stacked.items() if name.startswith(HEAD)}
        mixed = {name: np.tensordot(weights_MM, array, 1) for name, array in heads.items()}
        plain = {name: array.mean(0) for name, array in heads.items()}
        found = _averages(stacked) | base | plain | _kept(server, ids, mixed)
        return {name: a.astype(np.float32) if a.dtype == np.float64 else a for name, a in found.items()}

    def shared(self, server: State) -> State:
        named = (*BASE, "prototypes", "present")
        return {name: array for name, array in server.items() if name.startswith(named)}

    def down(self, server: State, client: int) -> State:
        """Return the head that was mixed for a client; the mean of heads where none was."""
        heads = [name for name in server if name.startswith(HEAD)]
        at = np.flatnonzero(server.get(_CLIENTS, np.zeros(0)) == client)
        return {name: server[f"{_MIXED}{name}"][at[0]] if len(at) else server[name] for name in heads}

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        """Return the scores of the base that arrived, under the client's own head."""
        arrived = {name: down[name] if name.startswith(BASE) else p for name, p in params.items()}
        return AbstractMethod.logits(self, network, arrived, x, down, own)


def mixing_weights(
    h_MCd: Float64[np.ndarray, "M C d"], variance_M: Float64[np.ndarray, " M"], *, own: int
) -> Float64[np.ndarray, " M"]:
    """Return with which weights the heads of M clients are mixed for one of them; they add up to 1.

    Args:
        h_MCd: class share times class mean, of each client.
        variance_M: V of each, at least 0.
        own: row of the client that the head is for.
    """
    away_MD = (h_MCd[own] - h_MCd).reshape(len(h_MCd), -1)
    a_M = smallest_form(np.diag(variance_M) + away_MD @ away_MD.T)
    kept_M = np.where(a_M < _LEAST, 0.0, a_M)
    return kept_M / kept_M.sum()


def _averages(stacked: Mapping[str, np.ndarray]) -> State:
    """Return each class's mean over the clients that hold it, unweighted, and which classes anybody holds."""
    held_MC = stacked[f"{STATISTICS}present"] > 0.5
    total_Cd = (stacked[f"{STATISTICS}prototypes"] * held_MC[..., None]).sum(0)
    holders_C = held_MC.sum(0)
    return {"prototypes": total_Cd / np.maximum(holders_C, 1)[:, None], "present": holders_C > 0}


def _kept(server: State, ids: list[int], mixed: Mapping[str, np.ndarray]) -> State:
    """Return the mixed heads of all clients that ever sent one: the round's, and the last of those that are absent."""
    before = server.get(_CLIENTS, np.zeros(0, np.int64))
    absent = ~np.isin(before, ids)
    found: State = {_CLIENTS: np.concatenate([np.array(ids), before[absent]])}
    for name, heads in mixed.items():
        old = server.get(f"{_MIXED}{name}", np.zeros((0, *heads.shape[1:])))[absent]
        found[f"{_MIXED}{name}"] = np.concatenate([heads, old])
    return found
