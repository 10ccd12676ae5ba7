"""MPFT (Zhang et al., 2025): the server trains an adapter and a classifier on prototypes; clients learn from both."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from accountant.contract import DependsOn
from privkit import plug
from privkit.batch import Batch
from privkit.methods._averages import pooled
from privkit.methods._base import AbstractPrototypeMethod, State, cross_entropy
from privkit.methods._down import Down
from privkit.methods._server_training import ServerTraining, trained
from privkit.network import Drops, Network
from privkit.noise import Purpose, keyed
from privkit.personal import PersonalModel
from privkit.prototypes._base import AbstractPrototypes
from privkit.release import ByClass

if TYPE_CHECKING:
    from torch import Tensor

_TEACHER = "teacher."


class MpftTraining(ServerTraining):
    """Server training as in the VPDR paper's code.

    The original has optimizer adamw, weight_decay 0.01, batch_size 10, epochs 200, warm_up 10, cosine, clip_gradient 1
    and settled 0.001.
    """

    momentum: float = Field(default=0.9, ge=0, lt=1, description="momentum of SGD, beta_1 of AdamW")
    weight_decay: float = Field(default=5e-4, ge=0, description="weight decay; AdamW's is decoupled")


def _kmeans() -> AbstractPrototypes:
    found = plug.build("privkit.prototypes", {"name": "kmeans", "ratio": 0.1})
    assert isinstance(found, AbstractPrototypes)
    return found


class Mpft(AbstractPrototypeMethod):
    r"""Multi-domain prototype-based federated fine-tuning.

    Clients send several centres of each class's embeddings under the frozen backbone, so what they send depends on no
    trained parameter. The server trains a residual adapter, ``h + up(drop(relu(down(h))))``, and a classifier on all of
    them with cross-entropy, goes on from its last round's in the next, and sends both. They are the clients' teacher:

    ``cross-entropy + distillation * KL( softmax(teacher / T) || softmax(student / T) )``

    The teacher reads what prototypes are made of, without dropout and without a gradient; the head classifies.

    Not reproduced: the original's classifier made of a text encoder's embeddings (here it starts as every client's head
    does), clients that start from the global adapter, and its averaging of clients' adapters, which would void the
    guarantee. ``published_teacher`` is a fault of the VPDR paper's code.
    k-means centres void the sensitivity of a mean, which the audit says; class means (prototypes: mean) do not.
    """

    citation: ClassVar[str] = "mpft"

    prototypes: AbstractPrototypes = Field(
        default_factory=_kmeans, description="how a client's records become prototypes: kmeans, mean or finch"
    )
    embeddings: Literal["backbone", "adapted"] = Field(
        default="backbone",
        description="make prototypes of what the frozen backbone gives, or of the client's own adapted embeddings",
    )
    distillation: float = Field(default=0.3, ge=0, description="beta, weight of the teacher")
    temperature: float = Field(default=4.0, gt=0, description="T, of both softmaxes in the distillation")
    scaled: bool = Field(
        default=False,
        description="multiply the distillation loss by T squared, as the VPDR paper's code does",
    )
    reduction: int = Field(
        default=8, ge=1, description="width of an embedding, divided by the server's adapter's (at least 1)"
    )
    hidden: tuple[int, ...] = Field(
        default=(),
        description="widths of the server's classifier's hidden layers; none makes it one linear layer",
    )
    dropout: float = Field(
        default=0.1, ge=0, lt=1, description="share of hidden units that a step on the server leaves out"
    )
    server: MpftTraining = Field(default_factory=MpftTraining, description="training on the server")
    published_teacher: bool = Field(
        default=False,
        description="leave the trained adapter out of the teacher, and train it in the first round only, as the VPDR "
        "paper's code does",
    )

    def encoder_depends_on(self, model: PersonalModel) -> DependsOn:
        return DependsOn.PUBLIC if self.embeddings == "backbone" else model.encoder_depends_on

    def released(self, network: Network, params: "dict[str, Tensor]", x: "Tensor") -> "Tensor":
        return network.backbone(x) if self.embeddings == "backbone" else network.embed(params, x)

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        teacher = self._teacher(dim).start(dim=dim, num_classes=num_classes, seed=seed)
        named = {f"{_TEACHER}{name}": array for name, array in teacher.items()}
        return {**named, "seed": np.array(seed), "round": np.array(0)}

    def merge(self, server: State, uploads: Mapping[int, ByClass]) -> State:
        import torch

        sent, round = pooled(uploads), int(server["round"]) + 1
        p, y = torch.tensor(sent.vectors, dtype=torch.float32), torch.tensor(sent.labels)
        before = {n.removeprefix(_TEACHER): a for n, a in server.items() if n.startswith(_TEACHER)}
        fixed = {n: torch.tensor(a) for n, a in before.items() if self._stays(n, round)}
        rng = keyed(int(server["seed"]), Purpose.SERVER, round=round)
        network = self._teacher(sent.vectors.shape[1])
        if self.dropout:
            network = network.training(_dropping(rng, self.dropout))

        def loss(live: "Mapping[str, Tensor]", chosen: "Tensor") -> "Tensor":
            params = {name: tensor.unsqueeze(0) for name, tensor in {**fixed, **live}.items()}
            logits = network.logits(params, network.embed(params, p[chosen].unsqueeze(0)))
            return torch.nn.functional.cross_entropy(logits.squeeze(0), y[chosen])

        start = {name: array for name, array in before.items() if name not in fixed}
        after = trained(self.server, start, loss, rows=len(y), rng=rng)
        named = {f"{_TEACHER}{name}": array for name, array in after.items()}
        return {**server, **named, "round": np.array(round)}

    def shared(self, server: State) -> State:
        return {name: array for name, array in server.items() if name.startswith(_TEACHER)}

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        student = network.logits(params, u_GBd)
        taught = self._taught(network, params, batch, down)
        log_p, log_q = ((logits / self.temperature).log_softmax(-1) for logits in (taught, student))
        divergence_GB = (log_p.exp() * (log_p - log_q)).sum(-1)
        scale = self.distillation * (self.temperature**2 if self.scaled else 1.0)
        return cross_entropy(student, batch) + scale * (divergence_GB * batch.weight).sum(-1)

    def _taught(self, network: Network, params: "dict[str, Tensor]", batch: Batch, down: Down) -> "Tensor":
        """Return the teacher's logits, shape [G, B, C]."""
        import torch

        with torch.no_grad():
            h = self.released(network.still, params, batch.x)
            teacher = self._teacher(h.shape[-1])
            got = {
                n.removeprefix(_TEACHER): down[n]
                for n in (*down.shared, *down.each)
                if n.startswith(_TEACHER)
            }
            return teacher.logits(got, h if self.published_teacher else teacher.embed(got, h))

    def _teacher(self, dim: int) -> Network:
        width = max(1, dim // self.reduction)
        return Network(PersonalModel(adapter=width, hidden=self.hidden, dropout=self.dropout))

    def _stays(self, name: str, round: int) -> bool:
        """Return whether a parameter of the teacher is left as it is in a round, counted from 1."""
        return self.published_teacher and round > 1 and name.startswith("adapter.")


def _dropping(rng: np.random.Generator, share: float) -> Drops:
    """Return what leaves out a share of hidden units, drawn anew at every call."""
    import torch

    def dropped(h: "Tensor") -> "Tensor":
        kept = rng.random(tuple(h.shape), np.float32) >= share
        return h * torch.from_numpy(kept / np.float32(1 - share)).to(h.dtype)

    return dropped
