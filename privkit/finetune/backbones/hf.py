"""Any encoder or decoder of the transformers library: from a folder, or by a name that was downloaded before."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from privkit.errors import InputError
from privkit.finetune.backbones._base import AbstractBackbone
from privkit.models import _transformers

if TYPE_CHECKING:
    from torch.nn import Module


class Classified(StrEnum):
    """Which token of a text is classified."""

    AUTO = "auto"
    """The first one of models that were trained to fill gaps, the last one of those that only write on."""
    FIRST = "first"
    LAST = "last"


class Hf(AbstractBackbone):
    """A model such as BERT, GPT-2 or Llama, with its tokenizer, as ``save_pretrained`` wrote it; never downloaded."""

    citation: ClassVar[str] = "wolf2020transformers"

    path: Path = Field(
        description="folder with config.json, model.safetensors and the tokenizer's files, or the name of a model in "
        "the local cache of the hub, such as gpt2-large"
    )
    public_data: str = Field(
        min_length=1,
        description="what it was trained on, in words; private data would void every guarantee",
    )
    classified: Classified = Field(
        default=Classified.AUTO,
        description="token that is classified: first, last, or auto (last for models that only write on, as GPT-2)",
    )

    @property
    def fingerprint(self) -> str:
        return _transformers.fingerprint(self._folder())

    @property
    def causal(self) -> bool:
        if self.classified is not Classified.AUTO:
            return self.classified is Classified.LAST
        kind = _transformers.config(self._folder()).model_type
        from transformers.models.auto import modeling_auto as known

        return (
            kind in known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
            and kind not in known.MODEL_FOR_MASKED_LM_MAPPING_NAMES
        )

    def net(self) -> "Module":
        settings = _transformers.config(self._folder())
        if settings.is_encoder_decoder:
            raise InputError(
                f"path={str(self.path)!r} is a {settings.model_type} model, which is not one row of blocks; give an "
                "encoder such as BERT, or a decoder such as GPT-2."
            )
        return _transformers.model(self._folder(), self.kept(settings))

    def tokenizer(self) -> Any:
        return _transformers.tokenizer(self._folder(), max_length=self.max_length)

    def _folder(self) -> Path:
        """Return the folder of the model; a name is looked up in the hub's local cache only."""
        if self.path.expanduser().exists():
            return self.path.expanduser()
        try:
            from huggingface_hub import snapshot_download

            return Path(snapshot_download(str(self.path), local_files_only=True))
        except (ImportError, OSError, ValueError):
            raise InputError(
                f"path={str(self.path)!r} is no folder here, and no model of that name was downloaded before; give "
                "the folder that save_pretrained wrote."
            ) from None
