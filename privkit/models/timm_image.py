"""Any image backbone of the timm library by its name, with weights from a file on this machine."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from privkit.errors import InputError
from privkit.models import _package
from privkit.models._pixels import Reading
from privkit.models._torch_image import TorchImageEncoder

if TYPE_CHECKING:
    from privkit.models._backbone import Backbone


class TimmImage(TorchImageEncoder):
    """A frozen backbone of timm without its classifier, pooled as timm pools it; it is never downloaded.

    ``staged`` opens it where timm takes features (``feature_info``): every block of a Vision Transformer, the stem and
    the stages of a convolutional network. Networks that keep channels last, such as Swin, are not opened.
    """

    citation: ClassVar[str] = "wightman2019timm"

    model: str = Field(description="timm's name of the model, such as vit_tiny_patch16_224.augreg_in21k")
    weights: Path = Field(description="safetensors file with timm's names of the tensors")
    public_data: str = Field(
        min_length=1,
        description="what it was trained on, in words; private data would void every guarantee",
    )
    side: int | None = Field(
        default=None,
        ge=8,
        le=1024,
        description="height and width that images are resized to, in pixels; none: the size it was trained with",
    )

    @property
    def dim(self) -> int:
        """Return the width of what timm pools."""
        return self._empty().head_hidden_size

    @property
    def trained_on(self) -> str:
        """Return what the settings say; nobody can check it here."""
        return self.public_data

    @property
    def fingerprint(self) -> str:
        """Return the sha256 of the weights file; the name of the model is not part of it."""
        return _package.digest(self._file())

    @property
    def reading(self) -> Reading:
        """Return size, mean, deviation and filter as timm's configuration of the model says.

        Raises:
            InputError: timm is missing, the model is unknown, or it reads images of one size and ``side`` is another.
        """
        from PIL import Image

        net = self._empty()
        told = _timm().data.resolve_model_data_config(net)
        channels, trained, _ = told["input_size"]
        side = self.side or trained
        if side != trained and net.pretrained_cfg.get("fixed_input_size"):
            raise InputError(f"side={side}: {self.model} reads images of {trained} only; leave side out.")
        resample = Image.Resampling[told["interpolation"].upper()]
        return Reading(channels, side, tuple(told["mean"]), tuple(told["std"]), resample)

    def module(self) -> "Backbone":
        """Return a new torch module with the file's weights, float32 on the CPU, as ``AbstractEncoder`` says.

        Raises:
            InputError: timm is missing, or model and weights do not belong together.
        """
        from privkit.models._backbone import Backbone

        reading, net = self.reading, self._loaded()
        blocks = [net.get_submodule(part["module"]) for part in net.feature_info]
        return Backbone(net, blocks, reading=reading, dim=self.dim)

    def staged(self) -> "Backbone":
        """Return the network block by block, frozen.

        Raises:
            InputError: as for ``module``, or its blocks keep channels last.
        """
        backbone = super().staged()
        channels = tuple(part["num_chs"] for part in self._empty().feature_info)
        if backbone.widths != channels:
            raise InputError(
                f"encoder {self.name}: the blocks of {self.model} do not give {channels} channels first, so no adapter "
                "fits inside; put adapters after it (model.inside: false)."
            )
        return backbone

    def _empty(self) -> Any:
        """Return the model without memory for its weights."""
        import torch

        timm = _timm()
        if not timm.is_model(self.model):  # a name with hf-hub: in front would be looked up on the network
            raise InputError(
                f"model={self.model!r} is unknown to timm {timm.__version__}; see timm.list_models()."
            )
        with torch.device("meta"):
            return timm.create_model(self.model, num_classes=0)

    def _loaded(self) -> Any:
        """Return the model with its weights, in evaluation mode."""
        import safetensors.torch

        net = _timm().create_model(self.model, num_classes=0)
        try:
            loaded = net.load_state_dict(safetensors.torch.load_file(self._file()), strict=False)
        except Exception as error:  # safetensors and torch share no class of errors
            first = str(error).partition("\n")[0].rstrip(".:")
            raise InputError(
                f"weights={str(self.weights)!r} cannot be read as {self.model} ({first}); give a safetensors file of "
                "timm's."
            ) from None
        if loaded.missing_keys:
            raise InputError(
                f"weights={str(self.weights)!r} lacks {len(loaded.missing_keys)} tensors of {self.model}, "
                f"{loaded.missing_keys[0]} for one; give a file saved from that model."
            )
        return net.eval()

    def _file(self) -> Path:
        if not self.weights.is_file():
            raise InputError(f"weights={str(self.weights)!r} is no file; give a safetensors file.")
        return self.weights


def _timm() -> Any:
    try:
        return importlib.import_module("timm")
    except (ImportError, RuntimeError) as error:  # torchvision for another torch raises the second
        raise InputError(
            f"the timm_image encoder needs timm, which needs the torchvision of this torch ({error}); run "
            "pip install 'privkit-audit[timm]'."
        ) from None
