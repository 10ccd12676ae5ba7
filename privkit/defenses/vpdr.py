"""VPDR: VPP for the release, DCR for local training."""

from typing import Any, ClassVar

from pydantic import Field, model_validator

from privkit.defenses._distillation import ClippingRegularization
from privkit.defenses.vpp import Vpp


class Vpdr(Vpp):
    """The whole defense of the VPDR paper. DCR pulls embeddings towards VPP's clip norm."""

    citation: ClassVar[str] = "vpdr"

    rule: ClippingRegularization = Field(
        default_factory=ClippingRegularization, description="the local rule; its radius is the clip norm"
    )

    @model_validator(mode="before")
    @classmethod
    def _one_radius(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or not isinstance(fields.get("rule", {}), dict):
            return fields
        norm = fields.get("clip_norm", cls.model_fields["clip_norm"].default)
        return {**fields, "rule": {"radius": norm, **fields.get("rule", {})}}

    @property
    def local(self) -> ClippingRegularization:
        return self.rule
