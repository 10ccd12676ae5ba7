"""LoRA as the peft library does it: ``W0 x + (alpha / rank) B A x``, where B begins at 0."""

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from privkit.errors import InputError
from privkit.finetune.tuning._base import AbstractTuning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch.nn import Linear, Module

TARGETS = {"bert": ("query", "value"), "gpt2": ("c_attn",)}
"""Where families are tuned by default; others are tuned in ``q_proj`` and ``v_proj``. As peft does."""


class Lora(AbstractTuning):
    """Low-rank maps beside linear maps of every block; A is drawn as peft draws it, so its first gradient is 0."""

    citation: ClassVar[str] = "hu2022lora"

    rank: int = Field(default=8, ge=1, description="rows of A; FISGuard puts its own rank in their place")
    alpha: float | None = Field(
        default=None,
        gt=0,
        description="alpha / rank scales B A; null: alpha = rank, so that nothing is scaled",
    )
    targets: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="names that the tuned modules end with; null: query and value, c_attn, or q_proj and v_proj",
    )

    def insert(self, net: "Module") -> "Module":
        from torch.nn import ModuleList

        try:
            from peft import LoraConfig, inject_adapter_in_model
        except ImportError:
            raise InputError("tuning lora needs peft; run pip install 'privkit-audit[hf]'.") from None

        kind = str(net.config.model_type)  # pyright: ignore
        targets = list(self.targets or TARGETS.get(kind, ("q_proj", "v_proj")))
        settings = LoraConfig(
            r=self.rank,
            lora_alpha=self.rank if self.alpha is None else self.alpha,  # pyright: ignore[reportArgumentType]
            target_modules=targets,
            fan_in_fan_out=kind == "gpt2",  # its maps are stored transposed
        )
        try:
            inject_adapter_in_model(settings, net)
        except ValueError as error:
            first = str(error).strip().partition("\n")[0]
            raise InputError(
                f"targets={targets}: {first.rstrip('.')}; name linear maps of its blocks."
            ) from None
        return ModuleList()

    def fix_inputs(self, net: "Module", beside: "Module", *, rank: int) -> "dict[str, Linear]":
        from privkit.finetune.tuning._fixed import fixed_map, zero_map

        fixed: dict[str, Linear] = {}
        for name, layer in _layers(net):
            before, after = layer.lora_A["default"], layer.lora_B["default"]
            fixed[name] = layer.lora_A["default"] = fixed_map(before.in_features, rank, where=name)
            layer.lora_B["default"] = zero_map(rank, after.out_features)
            layer.r["default"], layer.lora_alpha["default"], layer.scaling["default"] = rank, rank, 1.0
        return fixed


def _layers(net: "Module") -> "Iterator[tuple[str, Any]]":
    """Yield the tuned layers of a network by name."""
    from peft.tuners.lora import LoraLayer

    for name, module in net.named_modules():
        if isinstance(module, LoraLayer):
            yield f"net.{name}", module
