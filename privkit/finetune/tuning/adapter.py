"""Bottleneck adapters, one after every block, each beside a residual connection."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.finetune.tuning._base import AbstractTuning

if TYPE_CHECKING:
    from torch.nn import Linear, Module


class Adapter(AbstractTuning):
    """``h + Linear(width, d)(ReLU(Linear(d, width)(h)))`` after every block; maps are ``tuning.I.down`` and ``.up``.

    There is a residual connection in every family; ProjRes' code leaves it out for Llama and Qwen.
    """

    citation: ClassVar[str] = "houlsby2019adapter"

    width: int | None = Field(
        default=None, ge=1, description="units of the bottleneck; null: half the width of the model"
    )

    def insert(self, net: "Module") -> "Module":
        from torch.nn import ModuleList

        from privkit.finetune.tuning._blocks import blocks
        from privkit.finetune.tuning._bottleneck import After, Bottleneck

        d = int(net.config.hidden_size)  # pyright: ignore
        adapters = [Bottleneck(d, self.width or d // 2) for _ in blocks(net)]
        for block, adapter in zip(blocks(net), adapters, strict=True):
            block.register_forward_hook(After(adapter))
        return ModuleList(adapters)

    def fix_inputs(self, net: "Module", beside: "Module", *, rank: int) -> "dict[str, Linear]":
        from privkit.finetune.tuning._bottleneck import Bottleneck

        adapters = {f"tuning.{i}": adapter for i, adapter in beside.named_children()}
        return {
            name: adapter.fix_input(rank, where=name)
            for name, adapter in adapters.items()
            if isinstance(adapter, Bottleneck)
        }
