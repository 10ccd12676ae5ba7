"""What a federated method is: pure functions of dicts of tensors, and no loop.

The loop in :mod:`privkit.train` calls them in the order of the papers: embed and release, ``merge`` at the server,
``shared`` and ``down`` to the clients, ``receive``, then local training on ``loss``, and a test with ``logits``. Server
state and downlink may differ, and the downlink may differ by client.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_serializer, field_validator, model_validator

from accountant.contract import DependsOn
from privkit import plug
from privkit.batch import Batch
from privkit.clip import clip_to_ball
from privkit.methods._down import Down
from privkit.methods._phases import Passes, Phase
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.plug import Plugin, Settings
from privkit.prototypes._base import AbstractPrototypes
from privkit.prototypes.mean import Mean
from privkit.release import ByClass

if TYPE_CHECKING:
    from torch import Tensor

State = dict[str, np.ndarray]


class Sends(Enum):
    """What the clients of a method send every round."""

    NOTHING = "nothing"
    PROTOTYPES = "prototypes"
    """Vectors that summarise the records of a class: what a defense makes of their embeddings."""
    WEIGHTS = "weights"
    """Trained parameters."""


class LocalTraining(Settings):
    """How a client trains between two releases: on mini-batches of its own records."""

    epochs: int = Field(default=2, ge=1, description="passes over the client's records per round")
    batch_size: int = Field(default=64, ge=1, description="records per step")
    optimizer: Literal["adamw", "sgd"] = Field(
        default="adamw",
        description="AdamW as in the VPDR paper, or SGD as in FedProto's own code, PFLlib and most of its kin; its "
        "memory lasts from round to round",
    )
    learning_rate: float = Field(default=1e-3, gt=0, description="step size")
    momentum: float = Field(default=0.0, ge=0, lt=1, description="momentum of SGD; AdamW has none")
    weight_decay: float = Field(default=5e-4, ge=0, description="weight decay; AdamW's is decoupled")

    @model_validator(mode="after")
    def _momentum_is_of_sgd(self) -> "LocalTraining":
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(
                f"momentum {self.momentum:g} is SGD's; set optimizer: sgd, or leave momentum out"
            )
        return self


class AbstractMethod(Plugin):
    """A federated method. Tensors of a client have the client axis first; arrays of a server have none."""

    sends: ClassVar[Sends]
    tests_arrivals: ClassVar[bool] = False
    """Whether a round is tested before it is trained, on what arrived in it."""
    serves_newcomers: ClassVar[bool] = False
    """Whether what the server sends to all is a model for somebody who never trained."""
    reads_only_in_phases: ClassVar[bool] = True
    """Whether all that a client sends follows from what its phases of local training train."""
    says: ClassVar[tuple[str, ...]] = ()
    """What a client's model says of each of its records, beside the embedding, to whoever makes its message."""

    training: LocalTraining = Field(
        default_factory=LocalTraining, description="local training between two releases"
    )

    @property
    def uploads(self) -> bool:
        """Return whether anything leaves a client."""
        return self.sends is not Sends.NOTHING

    @property
    def summary(self) -> AbstractPrototypes:
        """Return how a client's records become prototypes; class means, where a method does not say."""
        return Mean()

    def encoder_depends_on(self, model: PersonalModel) -> DependsOn:
        """Return what the map from record to released embedding is computed from."""
        return model.encoder_depends_on

    def sends_weight(self, name: str) -> bool:
        """Return whether a parameter is sent, where trained weights are."""
        return self.sends is Sends.WEIGHTS

    def replaces(self, name: str) -> bool:
        """Return whether what arrives takes the place of a client's own parameter."""
        return self.sends_weight(name)

    def refuse_model(self, model: PersonalModel) -> None:
        """Raise if the method has no meaning for what clients train; asked of every architecture of a configuration.

        Raises:
            ValueError: it has none.
        """

    def first(self, start: State, *, seed: int) -> State:
        """Return what every client of a run begins with: the network's own parameters, and what it keeps besides.

        Args:
            start: the network's parameters, without client axis.
            seed: of the run.
        """
        return start

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Return what local training consists of; by default, training everything on :meth:`loss`."""
        return (Phase(epochs=self.training.epochs, loss=self.loss, keep=self.keep),)

    def steps(self, records: int) -> int:
        """Return how many steps of local training a client with so many records takes in a round, in all phases."""
        return sum(phase.epochs for phase in self.phases) * -(-records // self.training.batch_size)

    def sampling_rate(self, records: int) -> float:
        """Return which share of its records a step is made of, in (0, 1]."""
        return min(1.0, self.training.batch_size / records)

    def sent_besides(self, z_GNd: "Tensor", y_GN: "Tensor", *, num_classes: int) -> "dict[str, Tensor]":
        """Return what clients send besides trained weights, by name, with the client axis first; by default, nothing.

        Args:
            z_GNd: embedding of each of a client's training records, by the parameters that it sends.
            y_GN: class of each; -1 where a row is empty.
            num_classes: number of classes.
        """
        return {}

    def released(self, network: Network, params: "dict[str, Tensor]", x: "Tensor") -> "Tensor":
        """Return the embedding of each record that a release is made from, shape [G, N, d]."""
        return network.embed(params, x)

    def statistics(self, network: Network, params: "dict[str, Tensor]", x: "Tensor") -> "Tensor":
        """Return the numbers that :attr:`says` names, of each record, shape [G, N, q]; nothing by default."""
        return x.new_zeros(*x.shape[:2], 0)

    @abstractmethod
    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        """Return the server's state before the first round."""

    @abstractmethod
    def merge(self, server: State, uploads: Mapping[int, Any]) -> State:
        """Return the server's state after one round's messages (payloads), keyed by client."""

    def refuse_unusable(self, uploads: Mapping[int, Any]) -> None:
        """Raise if the server cannot merge such messages; asked of the first ones before anything is trained.

        Raises:
            InputError: it cannot.
        """

    def arrived(self, uploads: Mapping[int, Any]) -> Mapping[int, Any]:
        """Return one round's messages as the server takes them; by default, as they are."""
        return uploads

    def shared(self, server: State) -> State:
        """Return what the server sends to all clients alike.

        Lengths of a first axis may differ from run to run: rows are then filled up, labels with -1, floats with 0.
        """
        return {}

    def down(self, server: State, client: int) -> State:
        """Return what the server sends to one client besides; a name given here hides a shared one."""
        return {}

    def receive(self, params: "dict[str, Tensor]", down: Down) -> None:
        """Put what arrived in the place of each client's own parameters, before it trains: all that it replaces."""
        for name, p in params.items():
            if self.replaces(name):
                p.copy_(down[name])

    def adapt(
        self, network: Network, params: "dict[str, Tensor]", down: Down, passes: Passes, clients: int
    ) -> None:
        """Change each client's parameters by what it got and by its own records, in place, before it trains.

        By default, :meth:`receive`.

        Args:
            network: what is trained.
            params: its parameters.
            down: what each client got from the server.
            passes: goes over each client's own records.
            clients: number of clients, G.
        """
        self.receive(params, down)

    @abstractmethod
    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        """Return each client's loss on its batch, shape [G].

        Args:
            network: what is trained.
            params: its parameters.
            u_GBd: embedding of each record of the batch, as the defense lets the loss see it.
            batch: the records.
            down: what each client got from the server.
        """

    def kept(self, y_GN: "Tensor", *, num_classes: int) -> "dict[str, Tensor]":
        """Return what each client keeps from step to step, before its first; each tensor has the client axis first.

        It is saved and restored with the parameters; :meth:`loss` finds it in the batch.

        Args:
            y_GN: class of each training record; -1 where a row is empty.
            num_classes: number of classes.
        """
        return {}

    def keep(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch
    ) -> "dict[str, Tensor]":
        """Return what the clients of a batch keep after its step, by name; what is not named stays as it was.

        Asked without gradients, with what :meth:`loss` got, before the step is taken.
        """
        return {}

    def normals(self, down: Down) -> tuple[int, ...] | None:
        """Return the shape of standard normal numbers that one client's loss reads in a step; by default none.

        They are keyed by (seed, round, client), whoever a client's neighbours are.

        Args:
            down: what arrived in the round.
        """
        return None

    def recall(self, z_GNd: "Tensor", y_GN: "Tensor", *, num_classes: int) -> "dict[str, Tensor]":
        """Return what clients keep of their own training records to classify with; by default, nothing.

        Args:
            z_GNd: embedding of each, after local training, before any defense.
            y_GN: class of each; -1 where a row is empty.
            num_classes: number of classes.
        """
        return {}

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        """Return class scores of some inputs, shape [G, N, C]; the largest is predicted; by default, the head's."""
        return network.logits(params, network.embed(params, x))


class AbstractPrototypeMethod(AbstractMethod):
    """A method whose clients send prototypes."""

    sends: ClassVar[Sends] = Sends.PROTOTYPES

    prototypes: AbstractPrototypes = Field(
        default_factory=Mean, description="how a client's records become prototypes: mean, kmeans or finch"
    )

    cap: float | None = Field(
        default=None,
        gt=0,
        description="largest norm of an arriving prototype; the server shortens longer ones, which costs no privacy",
    )

    @field_validator("prototypes", mode="before")
    @classmethod
    def _built(cls, value: Any) -> Any:
        return value if isinstance(value, AbstractPrototypes) else plug.build("privkit.prototypes", value)

    @field_serializer("prototypes")
    def _plain(self, prototypes: AbstractPrototypes) -> dict[str, Any]:
        return prototypes.settings()

    @property
    def summary(self) -> AbstractPrototypes:
        return self.prototypes

    def arrived(self, uploads: Mapping[int, ByClass]) -> Mapping[int, ByClass]:
        if self.cap is None:
            return uploads
        return {client: _capped(sent, self.cap) for client, sent in uploads.items()}

    @abstractmethod
    def merge(self, server: State, uploads: Mapping[int, ByClass]) -> State:
        """Return the server's state after one round's prototypes, keyed by client."""


def _capped(sent: ByClass, norm: float) -> ByClass:
    """Return a message that makes prototypes of at most some norm; sums stay sums, so their totals weigh them still."""
    numerators, denominators = sent.shares()
    records_P1 = np.maximum(denominators, 1.0)[:, None]
    vectors_Pd = numerators / records_P1
    short_Pd = clip_to_ball(vectors_Pd, norm=norm)
    # what is short enough stays as it is, bit for bit
    same_P1 = (short_Pd == vectors_Pd).all(1, keepdims=True)
    capped_Pd = np.where(same_P1, numerators, short_Pd * records_P1)
    return replace(sent, vectors=capped_Pd.astype(sent.vectors.dtype))


def cross_entropy(logits_GBC: "Tensor", batch: Batch) -> "Tensor":
    """Return each client's weighted mean cross-entropy, shape [G]."""
    from privkit.methods._by_hand import CrossEntropy

    return CrossEntropy.apply(logits_GBC, batch.y, batch.weight)
