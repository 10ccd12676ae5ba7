"""The configuration of a split-learning study: ``privkit hijack`` reads it."""

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_serializer, field_validator

from attacks.split.fsha import Fsha
from privkit import plug
from privkit.config import Split
from privkit.data._base import AbstractData
from privkit.document import document
from privkit.errors import InputError


class SplitSettings(plug.Settings):
    """Everything that decides what a split-learning study computes."""

    data: AbstractData
    split: Split = Field(
        default_factory=Split,
        description="members are the client's images, the attacker's reference records are the public ones",
    )
    channels: int = Field(default=16, ge=1, description="of the features that the client sends")
    steps: int = Field(default=2500, ge=1, description="batches that the client sends")
    batch_size: int = Field(default=32, ge=1, description="images per batch, all that there are at most")
    learning_rate: float = Field(default=3e-4, gt=0, description="Adam step size of the client")
    server_rate: float = Field(
        default=1e-3, gt=0, description="Adam step size of the honest server, and of the passive decoders"
    )
    attack: Fsha = Field(default_factory=Fsha, description="the malicious server")
    seeds: int = Field(default=1, ge=1, description="studies, each with a split and weights of its own")

    @field_validator("data", mode="before")
    @classmethod
    def _data(cls, value: Any) -> Any:
        return value if isinstance(value, AbstractData) else plug.build("privkit.data", value)

    @field_validator("attack", mode="before")
    @classmethod
    def _attack(cls, value: Any) -> Any:
        return value if isinstance(value, Fsha) else plug.build("attacks.split", value)

    @field_serializer("data", "attack")
    def _plain(self, plugin: plug.Plugin) -> dict[str, Any]:
        return plugin.settings()


def load(path: Path) -> SplitSettings:
    """Return the study that a YAML file describes.

    Raises:
        InputError: the file, a key or a value is not one of a split-learning study.
    """
    found = document(path, known=tuple(SplitSettings.model_fields))
    try:
        return SplitSettings.model_validate(found)
    except ValidationError as error:
        raise InputError(f"{path}: {plug.describe(error, SplitSettings)}") from None
