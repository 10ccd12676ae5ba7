"""What one run of a federation computes that shares prototypes, weights or nothing."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_serializer, field_validator, model_validator

from accountant.budget import Budget
from accountant.contract import DependsOn
from privkit import canary, plug
from privkit.canaries._base import AbstractCanaries
from privkit.configuration import Configuration
from privkit.data._base import AbstractData
from privkit.data._split import Shares, SmallClasses
from privkit.defenses._base import AbstractReleaseDefense
from privkit.methods._base import AbstractMethod
from privkit.models._base import AbstractEncoder
from privkit.personal import PersonalModel
from privkit.servers._base import AbstractServer
from privkit.servers.honest import HonestServer


class Split(plug.Settings):
    """Shares of each class of each domain; what is left over is not used.

    Members and non-members are the two random halves of one pool, so they are exchangeable.
    """

    pool: float = Field(
        default=0.6, gt=0, lt=1, description="share that is split into members (trained on) and non-members"
    )
    reference: float = Field(default=0.2, ge=0, lt=1, description="share that the attacker owns")
    test: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        description="share that accuracy is measured on, where the data set keeps no test records of its own",
    )
    small_classes: SmallClasses = Field(
        default=SmallClasses.REFUSE,
        description="what happens to a class of a domain that is too small to be split: refuse, or drop it there",
    )

    @property
    def shares(self) -> Shares:
        """Return how each domain is divided."""
        return Shares(
            pool=self.pool, reference=self.reference, test=self.test, small_classes=self.small_classes
        )

    @model_validator(mode="after")
    def _at_most_one(self) -> "Split":
        total = self.pool + self.reference + self.test
        if total > 1 + 1e-9:
            raise ValueError(f"pool + reference + test is {total:g}; they may add up to at most 1")
        return self


class Canaries(plug.Settings):
    """Planted records: how many per client, and how far outside the ball."""

    count: int = Field(default=0, ge=0, description="canaries per client and seed; 0 plants none")
    norm: float = Field(default=3.0, gt=0, description="length of a canary, in the units of the embedding")
    per_class: int = Field(
        default=canary.PER_CLASS,
        ge=2,
        description="most canaries that share a class; few keep them independent where noise differs by group",
    )

    @field_validator("count")
    @classmethod
    def _not_one(cls, count: int) -> int:
        if count == 1:
            raise ValueError("plant at least 2 canaries, or 0; a coin negates each")
        return count


class OnExhausted(StrEnum):
    """What training does when a release would exceed the budget."""

    STOP = "stop"
    """It ends before the round, and keeps what was trained."""
    REFUSE = "refuse"
    """It does not begin."""


class Spending(plug.Settings):
    """The most that each client may spend in one run, all rounds together; no release that would exceed it is made."""

    epsilon: float = Field(gt=0, description="privacy loss, in nats")
    delta: float = Field(default=1e-5, gt=0, lt=1, description="probability that the promise fails")
    on_exhausted: OnExhausted = Field(
        default=OnExhausted.STOP,
        description="stop: end before the round that would exceed it; refuse: do not begin",
    )
    adaptive: bool = Field(
        default=False, description="whether noise, clip norm or rounds may be chosen from earlier outputs"
    )

    @property
    def budget(self) -> Budget:
        """Return what is kept, without what happens when it cannot be."""
        return Budget(epsilon=self.epsilon, delta=self.delta, adaptive=self.adaptive)


class Precision(StrEnum):
    """In which numbers forward and backward passes are computed; parameters are kept in float32."""

    FP32 = "fp32"
    BF16 = "bf16"


class Architecture(plug.Settings):
    """What one client of a mixed federation trains: an encoder, and what is trained of or on it."""

    encoder: AbstractEncoder
    model: PersonalModel = Field(default_factory=PersonalModel)

    @field_validator("encoder", mode="before")
    @classmethod
    def _built(cls, value: Any) -> Any:
        return value if isinstance(value, AbstractEncoder) else plug.build("privkit.models", value)

    @field_serializer("encoder")
    def _plain(self, encoder: AbstractEncoder) -> dict[str, Any]:
        return encoder.settings()


class RunConfig(Configuration):
    """Everything that decides what one run computes, but its seed."""

    plugins: ClassVar[Mapping[str, str]] = {
        "data": "privkit.data",
        "encoder": "privkit.models",
        "method": "privkit.methods",
        "defense": "privkit.defenses",
        "server": "privkit.servers",
    }
    example: ClassVar[str] = "data: and method:"

    data: AbstractData
    encoder: AbstractEncoder
    model: PersonalModel = Field(default_factory=PersonalModel)
    mixed: tuple[Architecture, ...] | None = Field(
        default=None,
        min_length=1,
        description="architectures of a mixed federation, dealt out to clients in turn, in place of encoder and model",
    )
    method: AbstractMethod
    defense: AbstractReleaseDefense
    rounds: int = Field(ge=1, description="communication rounds, T")
    participation: Annotated[int, Field(ge=1, strict=True)] | Annotated[float, Field(gt=0, lt=1)] | None = (
        Field(
            default=None,
            description="who takes part in a round, drawn anew for each: a number of clients (from 1), or a share of "
            "them (above 0, below 1; to the nearest whole client, at least one); all by default",
        )
    )
    split: Split = Field(default_factory=Split)
    canaries: Canaries = Field(default_factory=Canaries)
    other_canaries: tuple[AbstractCanaries, ...] | None = Field(
        default=None, min_length=1, description="canaries of other kinds, each kind once; none by default"
    )
    budget: Spending | None = Field(
        default=None, description="what each client may spend at most; nothing is enforced by default"
    )
    precision: Precision = Field(
        default=Precision.FP32, description="numbers that passes are computed in: fp32 or bf16"
    )
    held_out: str | None = Field(
        default=None,
        description="domain that nobody trains on, tested every round as a newcomer's; none by default",
    )
    server: AbstractServer | None = Field(
        default=None, description="who merges and answers: honest, unless a malicious one is named"
    )

    @property
    def answering(self) -> AbstractServer:
        """Return the server: the honest one, where none is named."""
        return self.server or HonestServer()

    @field_validator("other_canaries", mode="before")
    @classmethod
    def _built(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        kinds = [v if isinstance(v, AbstractCanaries) else plug.build("privkit.canaries", v) for v in value]
        names = [kind.name for kind in kinds]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} stands there twice; keep one")
        return tuple(kinds)

    def architecture(self, client: int) -> Architecture:
        """Return what a client trains."""
        if self.mixed is None:
            return Architecture(encoder=self.encoder, model=self.model)
        return self.mixed[client % len(self.mixed)]

    @property
    def architectures(self) -> tuple[Architecture, ...]:
        """Return every architecture in use."""
        return self.mixed or (self.architecture(0),)

    @property
    def encoder_depends_on(self) -> DependsOn:
        """Return the worst that what any client releases is computed from."""
        found = {self.method.encoder_depends_on(one.model) for one in self.architectures}
        return DependsOn.PUBLIC if found == {DependsOn.PUBLIC} else DependsOn.PRIVATE_STATE

    @model_validator(mode="after")
    def _newcomer_has_an_architecture(self) -> "RunConfig":
        if self.held_out is not None and self.mixed is not None:
            raise ValueError(
                "held_out and mixed are both given, and a newcomer has no architecture; leave out one"
            )
        return self

    @model_validator(mode="after")
    def _method_has_something_to_train(self) -> "RunConfig":
        for one in self.architectures:
            self.method.refuse_model(one.model)
        self.defense.refuse_method(self.method)
        return self

    @model_validator(mode="after")
    def _server_has_something_to_do(self) -> "RunConfig":
        self.answering.refuse_method(self.method)
        return self
