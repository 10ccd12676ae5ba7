"""BERT with random weights, in published sizes."""

from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field

from privkit.finetune.backbones._random import AbstractRandom


class Size(StrEnum):
    """Blocks, width, heads and inner width of a model."""

    TINY = "tiny"
    BASE = "base"
    LARGE = "large"


SIZES = {Size.TINY: (2, 32, 2, 64), Size.BASE: (12, 768, 12, 3072), Size.LARGE: (24, 1024, 16, 4096)}


class RandomBert(AbstractRandom):
    """An encoder whose first token is classified: tiny 2 x 32, base 12 x 768, large 24 x 1024 (blocks x width)."""

    citation: ClassVar[str] = "devlin2019bert"

    size: Size = Field(default=Size.BASE, description="tiny, base (110 million weights) or large")

    @property
    def causal(self) -> bool:
        return False

    @property
    def reads(self) -> int:
        return 512

    def shape(self) -> Any:
        from transformers import BertConfig

        blocks, width, heads, inner = SIZES[self.size]
        return BertConfig(
            num_hidden_layers=blocks,
            hidden_size=width,
            num_attention_heads=heads,
            intermediate_size=inner,
            max_position_embeddings=self.reads,
        )
