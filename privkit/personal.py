"""The part of the model that is trained: adapters after or inside the frozen encoder (or none), and a head."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from accountant.contract import DependsOn
from privkit.plug import Settings

if TYPE_CHECKING:
    from privkit.models._base import AbstractEncoder
    from privkit.network import Network


class PersonalModel(Settings):
    """Residual bottleneck adapters (or none), then a head of linear layers."""

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

    @model_validator(mode="after")
    def _something_inside(self) -> "PersonalModel":
        if self.inside and self.adapter is None:
            raise ValueError("inside: true needs an adapter width; set adapter")
        return self

    @property
    def encoder_depends_on(self) -> DependsOn:
        """Return what the map from record to embedding is computed from."""
        return DependsOn.PUBLIC if self.adapter is None else DependsOn.PRIVATE_STATE

    @property
    def placement(self) -> str:
        """Return, in words, what of the model is trained."""
        if self.adapter is None:
            return "frozen encoder, trained head"
        where = "inside every block of the frozen backbone" if self.inside else "after the frozen backbone"
        return f"adapter of width {self.adapter} {where}, trained head"

    def build(self, encoder: "AbstractEncoder") -> "Network":
        """Return the network that is trained on what an encoder gives, or inside it.

        Raises:
            InputError: adapters belong inside, and the encoder does not open its blocks.
        """
        from privkit.inside import InsideNetwork
        from privkit.network import Network

        return InsideNetwork(self, staged=encoder.staged()) if self.inside else Network(self)
