"""Models of published shapes whose weights are drawn anew: for costs, shapes and ranks, not for accuracy."""

import hashlib
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from pydantic import Field

from privkit.atomic import canonical_json
from privkit.errors import InputError
from privkit.finetune.backbones._base import AbstractBackbone
from privkit.finetune.backbones._shipped import folder
from privkit.models import _transformers

if TYPE_CHECKING:
    from torch.nn import Module


class AbstractRandom(AbstractBackbone):
    """An untrained transformer. It reads the word pieces of BERT (30,522), which come with MiniLM."""

    weights_seed: int = Field(
        default=0, ge=0, description="seed of its weights; the seeds of runs do not change them"
    )

    @abstractmethod
    def shape(self) -> Any:
        """Return the settings of the model, all of its blocks included."""

    @property
    def fingerprint(self) -> str:
        """Return the sha256 of its settings, which decide its weights in one version of torch."""
        return hashlib.sha256(canonical_json([self.settings(), "bert word pieces"]).encode()).hexdigest()

    def net(self) -> "Module":
        return _transformers.random_model(self.kept(self.shape()), seed=self.weights_seed)

    def tokenizer(self) -> Any:
        if self.max_length > self.reads:
            raise InputError(
                f"max_length={self.max_length}: the model reads {self.reads} tokens; give no more than that."
            )
        cutter = _transformers.tokenizer(folder(), max_length=min(self.max_length, 512))
        return _Bare(cutter) if self.causal else cutter

    @property
    @abstractmethod
    def reads(self) -> int:
        """Return the most tokens that it reads."""


class _Bare:
    """A cutter that adds no special tokens, as those of decoders."""

    def __init__(self, cutter: Any) -> None:
        self._cutter = cutter

    def __call__(self, sentences: list[str], **how: Any) -> Any:
        return self._cutter(sentences, **{**how, "add_special_tokens": False})
