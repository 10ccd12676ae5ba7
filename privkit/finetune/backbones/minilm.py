"""all-MiniLM-L6-v2 with its published weights: the default that needs no files of the user's."""

from typing import TYPE_CHECKING, Any, ClassVar

from privkit.finetune.backbones._base import AbstractBackbone
from privkit.finetune.backbones._shipped import folder
from privkit.models import _transformers, minilm

if TYPE_CHECKING:
    from torch.nn import Module


class Minilm(AbstractBackbone):
    """Six blocks of width 384, a small BERT; its first token is classified."""

    citation: ClassVar[str] = "wang2020minilm, reimers2019sentence"

    @property
    def fingerprint(self) -> str:
        return minilm.WEIGHTS_SHA256

    @property
    def causal(self) -> bool:
        return False

    def net(self) -> "Module":
        return _transformers.model(folder(), self.kept(_transformers.config(folder())))

    def tokenizer(self) -> Any:
        return _transformers.tokenizer(folder(), max_length=self.max_length)
