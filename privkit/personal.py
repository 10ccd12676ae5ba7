"""The part of the model that is trained: adapters or another map after the frozen encoder (or none), and a head."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_serializer, field_validator, model_serializer, model_validator

from accountant.contract import DependsOn
from privkit import plug
from privkit.plug import Settings
from privkit.transforms._base import AbstractTransform

if TYPE_CHECKING:
    from privkit.models._base import AbstractEncoder
    from privkit.network import Network


class PersonalModel(Settings):
    """Residual bottleneck adapters, another map, or none of these; then a head of linear layers.

    With a temperature tau, the head is FedOT's: ``logits = tau * w h / ||h||``, without bias. An embedding of zeros
    stays one, so that all its logits are 0; it moves no parameter.
    """

    adapter: int | None = Field(
        default=None, ge=1, description="bottleneck width of the adapter; none leaves the encoder frozen"
    )
    inside: bool = Field(
        default=False,
        description="put an adapter after every block inside the backbone instead of one after it; its features "
        "can then not be cached",
    )
    hidden: tuple[Annotated[int, Field(ge=1, strict=True)], ...] = Field(
        default=(), description="widths of the head's hidden layers; none makes it one linear layer"
    )
    dropout: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="share of hidden units of adapters and head that a step leaves out",
    )
    transform: AbstractTransform | None = Field(
        default=None,
        description="map between frozen embedding and head, in place of an adapter: rotation, linear or gate",
    )
    temperature: float | None = Field(
        default=None,
        gt=0,
        description="tau of a head that multiplies embeddings of length 1 by it and has no bias; none leaves "
        "embeddings as they are",
    )
    first_head: Literal["random", "records"] | tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default="random",
        description="what the head starts as: random; records, the class means of public records; or one sentence "
        "about each class, as an encoder of text embeds it; each of length 1",
    )

    @field_validator("transform", mode="before")
    @classmethod
    def _built(cls, value: Any) -> Any:
        return (
            value
            if value is None or isinstance(value, AbstractTransform)
            else plug.build("privkit.transforms", value)
        )

    @field_serializer("transform")
    def _plain(self, transform: AbstractTransform | None) -> dict[str, Any] | None:
        return None if transform is None else transform.settings()

    @model_serializer(mode="wrap")
    def _without_what_is_not_there(self, plain: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Leave out what older runs, which are still read and resumed, could not have."""
        new = {"transform": None, "temperature": None, "first_head": "random"}
        return {name: value for name, value in plain(self).items() if name not in new or value != new[name]}

    @model_validator(mode="after")
    def _one_map_and_one_layer(self) -> "PersonalModel":
        if self.transform is not None and self.adapter is not None:
            raise ValueError("adapter and transform are both given; keep one")
        if self.hidden and self.temperature is not None:
            raise ValueError("temperature is of a head of one linear layer; leave out hidden")
        if self.hidden and self.first_head != "random":
            raise ValueError("first_head is for a head of one linear layer; leave out hidden")
        return self

    @model_validator(mode="after")
    def _something_inside(self) -> "PersonalModel":
        if self.inside and self.adapter is None:
            raise ValueError("inside: true needs an adapter width; set adapter")
        return self

    @property
    def encoder_depends_on(self) -> DependsOn:
        """Return what the map from record to embedding is computed from."""
        frozen = self.adapter is None and self.transform is None
        return DependsOn.PUBLIC if frozen else DependsOn.PRIVATE_STATE

    @property
    def placement(self) -> str:
        """Return, in words, what of the model is trained."""
        head = (
            "trained head"
            if self.temperature is None
            else f"trained head at temperature {self.temperature:g}"
        )
        if self.transform is not None:
            return f"{self.transform.in_words} after the frozen backbone, {head}"
        if self.adapter is None:
            return f"frozen encoder, {head}"
        where = "inside every block of the frozen backbone" if self.inside else "after the frozen backbone"
        return f"adapter of width {self.adapter} {where}, {head}"

    @property
    def in_short(self) -> str:
        """Return the same in the few words that a column has room for."""
        if self.transform is not None:
            return self.transform.in_words
        if self.adapter is None:
            return "head"
        return f"adapter {self.adapter}, {'inside' if self.inside else 'after'}"

    def build(self, encoder: "AbstractEncoder") -> "Network":
        """Return the network that is trained on what an encoder gives, or inside it.

        Raises:
            InputError: adapters belong inside, and the encoder does not open its blocks.
        """
        from privkit.inside import InsideNetwork
        from privkit.network import Network

        return InsideNetwork(self, staged=encoder.staged()) if self.inside else Network(self)
