"""What every backbone gives: a frozen row of blocks, the cutter of its tokens, and the token that is classified."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from privkit.errors import InputError
from privkit.finetune.texts import Texts, tokenised
from privkit.plug import Plugin

if TYPE_CHECKING:
    from torch.nn import Module


class AbstractBackbone(Plugin):
    """A transformer of the transformers library, whose weights no client trains."""

    max_length: int = Field(
        default=128, ge=2, description="tokens after which a text is cut, special tokens included"
    )
    layers: int | None = Field(
        default=None, ge=1, description="keep only so many of the first blocks; none keeps all"
    )

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Return the sha256 of what decides its weights and tokens, in hexadecimal."""

    @property
    @abstractmethod
    def causal(self) -> bool:
        """Return whether a token sees earlier ones only; then the last one is classified, otherwise the first."""

    @abstractmethod
    def net(self) -> "Module":
        """Return the base model, float32 on the CPU, in evaluation mode, with the kept blocks only.

        Raises:
            InputError: files or packages are missing, or it has fewer blocks.
        """

    @abstractmethod
    def tokenizer(self) -> Any:
        """Return what cuts texts into its tokens.

        Raises:
            InputError: files are missing, or it reads fewer than ``max_length`` tokens.
        """

    def texts(self, records: np.ndarray) -> Texts:
        """Return records of a data set as token numbers; see :func:`privkit.finetune.texts.tokenised`."""
        return tokenised(self.tokenizer(), records, max_length=self.max_length)

    def kept(self, settings: Any) -> Any:
        """Return a model's settings with only the wanted number of blocks, and without a decoder's memory.

        Raises:
            InputError: the model has fewer.
        """
        settings.use_cache = False
        if self.layers is not None:
            if self.layers > settings.num_hidden_layers:
                raise InputError(
                    f"layers={self.layers}: the model has {settings.num_hidden_layers}; give no more than that."
                )
            settings.num_hidden_layers = self.layers
        return settings
