"""GPT-2 with random weights, in published sizes."""

from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field

from privkit.finetune.backbones._random import AbstractRandom


class Size(StrEnum):
    """Blocks, width and heads of a model."""

    TINY = "tiny"
    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


SIZES = {
    Size.TINY: (2, 32, 2),
    Size.SMALL: (12, 768, 12),
    Size.MEDIUM: (24, 1024, 16),
    Size.LARGE: (36, 1280, 20),
}
WORD_PIECES = 30_522


class RandomGpt2(AbstractRandom):
    """A decoder whose last token is classified: tiny 2 x 32, small 12 x 768, medium 24 x 1024, large 36 x 1280."""

    citation: ClassVar[str] = "radford2019language"

    size: Size = Field(
        default=Size.SMALL, description="tiny, small (124 million weights), medium or large (774)"
    )

    @property
    def causal(self) -> bool:
        return True

    @property
    def reads(self) -> int:
        return 512

    def shape(self) -> Any:
        from transformers import GPT2Config

        blocks, width, heads = SIZES[self.size]
        return GPT2Config(
            n_layer=blocks,
            n_embd=width,
            n_head=heads,
            n_positions=1024,
            vocab_size=WORD_PIECES,
            bos_token_id=None,
            eos_token_id=None,
        )
