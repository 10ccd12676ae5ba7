"""Any text model of the transformers library, from a folder on this machine, as a sentence encoder."""

from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Float32
from pydantic import Field

from privkit.errors import InputError
from privkit.models import _sentences, _transformers
from privkit.models._base import AbstractEncoder


class HfText(AbstractEncoder):
    """A frozen text model as ``save_pretrained`` wrote it, and its tokenizer; never downloaded.

    A sentence's vector is the mean over its tokens after the last layer that is kept.
    """

    citation: ClassVar[str] = "wolf2020transformers"

    path: Path = Field(description="folder with config.json, model.safetensors and the tokenizer's files")
    public_data: str = Field(
        min_length=1,
        description="what it was trained on, in words; private data would void every guarantee",
    )
    max_length: int = Field(default=128, ge=2, description="tokens after which a sentence is cut")
    layers: int | None = Field(
        default=None, ge=1, description="keep only so many of the first layers; none keeps all"
    )
    normalize: bool = Field(default=False, description="scale every vector to Euclidean length 1")

    @property
    def dim(self) -> int:
        """Return the width of a layer."""
        settings = _transformers.config(self.path)
        width = getattr(settings, "hidden_size", None)
        if settings.is_encoder_decoder or not isinstance(width, int):
            raise InputError(
                f"path={str(self.path)!r} is a {settings.model_type} model, which is not one row of layers; give an "
                "encoder such as BERT, or a decoder such as GPT-2."
            )
        return width

    @property
    def trained_on(self) -> str:
        """Return what the settings say; nobody can check it here."""
        return self.public_data

    @property
    def fingerprint(self) -> str:
        """Return the sha256 of weights, settings and vocabulary in the folder."""
        return _transformers.fingerprint(self.path)

    def encode(self, records: np.ndarray) -> Float32[np.ndarray, "N dim"]:
        """Return one vector per sentence; no sentence gives an array of no rows.

        Args:
            records: str of shape [N].

        Raises:
            InputError: they are no sentences, or one has no token; transformers is missing; the folder's files do not
                belong together; or a setting asks for more layers or tokens than the model has.
        """
        return _sentences.vectors(
            self.path,
            _sentences.only_sentences(records, reader=self.name),
            dim=self.dim,
            max_length=self.max_length,
            layers=self.layers,
            normalize=self.normalize,
        )
