"""FedUP: clients share a Gaussian per class, and both sides go by how uncertain models are of the class."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from privkit.batch import Batch
from privkit.evidential import annealed, evidence, evidential_loss, uncertainty
from privkit.methods._averages import class_averages
from privkit.methods._base import AbstractPrototypeMethod, State
from privkit.methods._down import Down
from privkit.methods._gated import alignment, gate, mean_over_classes, running, virtual
from privkit.methods._reliability import Merged, Reliability, merged
from privkit.network import Network
from privkit.prototypes._base import AbstractPrototypes
from privkit.prototypes.probabilistic import Probabilistic
from privkit.release import ByClass

if TYPE_CHECKING:
    from torch import Tensor

_GATE = "uncertainty"
_SCARCE = "scarce"


class FedUp(AbstractPrototypeMethod):
    r"""Uncertainty-aware personalised federated learning by probabilistic prototypes.

    The head gives evidence for classes (:mod:`privkit.evidential`). A client sends mean, spread and mean uncertainties
    of each class, and no counts; the server makes one Gaussian per class of them, in which reliable clients weigh
    more. The loss of a record z of class y is

    ``L_EDL + lambda gamma(z) |(z - mu_y) / sigma_y|^2 / d + mean over draws of -ln(alpha_c / S)``

    with a gate gamma that is larger the less evidence there is for the record, and draws from the global Gaussians of
    classes of which the client has few records, or none. The text that was at hand has no equation; which forms are
    inferred, and what is not stated, is in `docs/fedup.md`. Trained parameters stay with their client.

    Its ablations: `augment` off (FA), `weigh` off (UW: the gate is 1/2, clients and records weigh alike), and
    `barycenter: independent` (WA).

    Where only means arrive, as from defenses of prototypes, they are averaged as FedProto averages them, the spread of
    every class is 1 (so the pull is FedProto's mean square, gated) and nothing is drawn.
    """

    citation: ClassVar[str] = "fedup"
    says: ClassVar[tuple[str, ...]] = ("epistemic", "aleatoric")

    prototypes: AbstractPrototypes = Field(
        default_factory=Probabilistic,
        description="how a client's records become prototypes: probabilistic; mean sends no spread and no uncertainty",
    )
    pull: float = Field(
        default=0.1, ge=0, description="lambda_align, weight of the alignment; not stated in the paper"
    )
    sensitivity: float = Field(
        default=5.0, ge=0, description="beta, by how much the gate follows uncertainty, per nat"
    )
    temperature: float = Field(
        default=0.5, gt=0, description="tau, of the softmax over clients, in nats of uncertainty"
    )
    balance: float = Field(
        default=1.0,
        ge=0,
        description="lambda_unc, weight of aleatoric against epistemic uncertainty; not stated in the paper",
    )
    form: Literal["sum", "convex"] = Field(
        default="sum",
        description="how the two are combined: epistemic + balance aleatoric, or (1 - balance) epistemic + balance "
        "aleatoric, with balance at most 1",
    )
    scarce: int = Field(
        default=20,
        ge=0,
        description="n_min: classes of which a client has fewer records, none included, are drawn; not stated in the "
        "paper",
    )
    virtual: int = Field(
        default=4, ge=1, description="draws from each such class in a step; not stated in the paper"
    )
    anneal: int = Field(
        default=10,
        ge=0,
        description="rounds over which the divergence in the loss grows to its weight of 1; 0 starts with it",
    )
    prior: float = Field(
        default=1.0,
        gt=0,
        description="concentration of a class without evidence; the paper's S = 10 is this times C",
    )
    augment: bool = Field(default=True, description="FA: draw from global Gaussians where records are scarce")
    weigh: bool = Field(
        default=True,
        description="UW: gate the pull by epistemic uncertainty, and weigh records and clients by theirs",
    )
    barycenter: Literal["wasserstein", "mixture", "independent"] = Field(
        default="wasserstein",
        description="WA: what the server makes of a class's Gaussians: their 2-Wasserstein barycenter, the moments of "
        "their mixture, or the naive average, which is that of independent draws",
    )

    @model_validator(mode="after")
    def _convex_is_between(self) -> "FedUp":
        if self.form == "convex" and self.balance > 1:
            raise ValueError(
                f"balance {self.balance:g} with form: convex is above 1; lower it, or set form: sum"
            )
        return self

    @property
    def summary(self) -> AbstractPrototypes:
        rule = self.prototypes
        if isinstance(rule, Probabilistic) and not self.weigh:
            return rule.model_copy(update={"reliability": False})
        return rule

    # ------------------------------------------------------------------ the server

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        return {
            "prototypes": np.zeros((num_classes, dim), dtype=np.float32),
            "spread": np.ones((num_classes, dim), dtype=np.float32),
            "holders": np.zeros(num_classes, dtype=np.int64),
            "drawn": np.zeros(num_classes, dtype=bool),
            "round": np.array(-1),
        }

    def merge(self, server: State, uploads: Mapping[int, ByClass]) -> State:
        num_classes, dim = server["prototypes"].shape
        found, spread_known = self._merged(uploads, num_classes, dim)
        return {
            "prototypes": found.mean.astype(np.float32),
            "spread": found.spread.astype(np.float32),
            "holders": found.holders,
            "drawn": (found.holders > 0) & spread_known,
            "round": np.array(server["round"] + 1),
        }

    def _merged(self, uploads: Mapping[int, ByClass], num_classes: int, dim: int) -> tuple[Merged, bool]:
        """Return one Gaussian per class, and whether their spreads mean anything."""
        made = {client: sent.gaussians(num_classes=num_classes) for client, sent in uploads.items()}
        sent = {client: gaussians for client, gaussians in made.items() if gaussians is not None}
        if not sent or len(sent) < len(uploads):
            mean, holders = class_averages(uploads, num_classes=num_classes, dim=dim)
            return Merged(mean, np.ones((num_classes, dim)), holders), False
        reliability = Reliability(self.temperature, self.balance, self.form) if self.weigh else None
        floor = self.prototypes.floor if isinstance(self.prototypes, Probabilistic) else Probabilistic().floor
        return merged(
            sent,
            num_classes=num_classes,
            dim=dim,
            reliability=reliability,
            barycenter=self.barycenter,
            floor=floor,
        ), True

    def shared(self, server: State) -> State:
        named = {name: server[name] for name in ("prototypes", "spread", "drawn", "round")}
        return {**named, "present": server["holders"] > 0}

    # ------------------------------------------------------------------ the clients

    def kept(self, y_GN: "Tensor", *, num_classes: int) -> "dict[str, Tensor]":
        import torch

        records_GC = torch.stack([(y_GN == c).sum(-1) for c in range(num_classes)], dim=-1)
        running_mean_G2 = torch.zeros((len(y_GN), 2), device=y_GN.device)
        return {_GATE: running_mean_G2, _SCARCE: records_GC < self.scarce}

    def normals(self, down: Down) -> tuple[int, ...] | None:
        return (self.virtual, *down["prototypes"].shape[1:]) if self.augment else None

    def statistics(self, network: Network, params: "dict[str, Tensor]", x: "Tensor") -> "Tensor":
        import torch

        logits = network.logits(params, self.released(network, params, x)).double()
        found = uncertainty(evidence(logits) + self.prior)
        return torch.stack([found.epistemic, found.aleatoric], dim=-1)

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        e_GBC = evidence(_exact(network.logits(params, u_GBd)))
        weight_GB = batch.weight.to(e_GBC.dtype)
        anneal_G1 = annealed(down["round"].to(e_GBC.dtype), over=self.anneal).unsqueeze(-1)
        own_GB = evidential_loss(e_GBC, batch.y, prior=self.prior, anneal=anneal_G1)
        gate_GB = self._gate(e_GBC, batch) if self.weigh else 0.5
        pull_GB = self.pull * gate_GB * alignment(_exact(u_GBd), batch, down)
        return ((own_GB + pull_GB) * weight_GB).sum(-1) + self._augmented(network, params, batch, down)

    def _gate(self, e_GBC: "Tensor", batch: Batch) -> "Tensor":
        epistemic_GB = uncertainty(e_GBC.detach() + self.prior).epistemic
        return gate(epistemic_GB, self._running(epistemic_GB, batch), sensitivity=self.sensitivity)

    def _running(self, epistemic_GB: "Tensor", batch: Batch) -> "Tensor":
        before = batch.kept.get(_GATE)
        return running(
            epistemic_GB.new_zeros(len(epistemic_GB), 2) if before is None else before,
            epistemic_GB,
            batch.weight,
        )

    def _augmented(
        self, network: Network, params: "dict[str, Tensor]", batch: Batch, down: Down
    ) -> "Tensor | float":
        """Return each client's mean loss of virtual records, shape [G]; 0 where nothing is drawn or known as scarce."""
        if batch.normals is None or _SCARCE not in batch.kept:
            return 0.0
        drawn_GKd = virtual(batch.normals.to(down["spread"].dtype), down)
        alpha_GKC = evidence(_exact(network.logits(params, drawn_GKd))) + self.prior
        shape = batch.normals.shape[1:3]
        share_GVCC = (alpha_GKC / alpha_GKC.sum(-1, keepdim=True)).unflatten(1, shape)
        loss_GVC = -share_GVCC.diagonal(dim1=-2, dim2=-1).log()
        return mean_over_classes(loss_GVC, batch.kept[_SCARCE] & down["drawn"])

    def keep(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch
    ) -> "dict[str, Tensor]":
        if not self.weigh or _GATE not in batch.kept:
            return {}
        e_GBC = evidence(_exact(network.logits(params, u_GBd)))
        return {_GATE: self._running(uncertainty(e_GBC + self.prior).epistemic, batch)}


def _exact(tensor: "Tensor") -> "Tensor":
    """Return numbers of at least 32 bits: digammas of fewer are of no use."""
    import torch

    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
