"""Everything that decides what one run of the gradient lab computes, but its seed."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from privkit import plug
from privkit.config import Split
from privkit.configuration import Configuration
from privkit.data._base import AbstractData
from privkit.finetune.backbones._base import AbstractBackbone
from privkit.finetune.defenses._base import AbstractTuningDefense
from privkit.finetune.terms import Terms, UploadKind
from privkit.finetune.tuning._base import AbstractTuning


class Kind(StrEnum):
    """What is asked about a record."""

    BATCH = "batch"
    """Was it in the batch behind this upload?"""
    CLIENT = "client"
    """Is it in the data set that this client trains on, whose uploads of many rounds are at hand?"""


class Questions(plug.Settings):
    """What attacks are asked: of every chosen client, about the batch of every chosen round, or about its data set.

    Members are the records of that batch, or some that the client trains on; non-members are as many that the same
    client holds and never trains on.
    """

    kind: Kind = Field(
        default=Kind.BATCH,
        description="batch: was it in this batch; client: is it in the client's data set, asked of all rounds together",
    )
    rounds: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(
        default=None,
        min_length=1,
        description="rounds, from 0, whose uploads are looked at; null: the last one, or all if kind is client",
    )
    clients: int = Field(
        default=7, ge=1, description="the first so many clients; 7 batches of 16 are 112 members"
    )
    records: int = Field(
        default=32,
        ge=1,
        description="members per client where kind is client, and as many others; each passes the model in every round",
    )


class Keep(StrEnum):
    """Which rounds' uploads a run stores; the weights that the server sent out are stored of every round."""

    ASKED = "asked"
    ALL = "all"


class FinetuneConfig(Terms, Configuration):
    """One federation that tunes a transformer; the defaults are FISGuard's setup where it states one (V-A)."""

    plugins: ClassVar[Mapping[str, str]] = {
        "data": "privkit.data",
        "backbone": "privkit.finetune.backbones",
        "tuning": "privkit.finetune.tuning",
        "defense": "privkit.finetune.defenses",
    }
    defaults: ClassVar[Mapping[str, str]] = {"backbone": "minilm", "tuning": "adapter", "defense": "none"}
    example: ClassVar[str] = "data: and tuning:"

    data: AbstractData
    backbone: AbstractBackbone
    tuning: AbstractTuning
    defense: AbstractTuningDefense
    split: Split = Field(default_factory=Split)
    standardise: bool = Field(
        default=False,
        description="whether what the head reads is centred and scaled by public records before training; an encoder "
        "whose classified token was never trained for that hardly learns otherwise",
    )
    public: int = Field(
        default=2000,
        ge=1,
        description="records that server and attacker own at most, of those that split names",
    )
    questions: Questions = Field(default_factory=Questions)
    keep: Keep = Field(
        default=Keep.ASKED,
        description="rounds whose uploads are stored: asked (those of questions) or all; of others digests are",
    )

    @model_validator(mode="after")
    def _consistent(self) -> "FinetuneConfig":
        if self.upload is UploadKind.GRADIENT and self.local_steps > 1:
            raise ValueError("a gradient is of one step; with local_steps above 1, upload delta or weights")
        late = next((t for t in self.questions.rounds or () if t >= self.rounds), None)
        if late is not None:
            raise ValueError(f"questions.rounds names round {late}, and the last one is {self.rounds - 1}")
        self.defense.refuse_terms(self)
        return self

    @property
    def asked_rounds(self) -> tuple[int, ...]:
        """Return the rounds that attacks are asked about, ascending."""
        default = range(self.rounds) if self.questions.kind is Kind.CLIENT else (self.rounds - 1,)
        return tuple(sorted(set(self.questions.rounds or default)))

    @property
    def kept_rounds(self) -> tuple[int, ...]:
        """Return the rounds whose uploads are stored, ascending."""
        return tuple(range(self.rounds)) if self.keep is Keep.ALL else self.asked_rounds
