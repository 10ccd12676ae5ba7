"""Any Vision Transformer or ResNet of the transformers library, from a folder on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from privkit.errors import InputError
from privkit.models import _transformers
from privkit.models._pixels import BICUBIC, Reading
from privkit.models._torch_image import TorchImageEncoder

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PreTrainedConfig

    from privkit.models._backbone import Backbone

RESCALE = 1 / 255  # what a preprocessor multiplies pixels by before mean and deviation


class HfImage(TorchImageEncoder):
    """A frozen image backbone as ``save_pretrained`` wrote it; it is never downloaded.

    Vision transformers open every encoder block (``staged``), with CLS and register tokens among the positions;
    ResNets open every stage. The VPDR paper's ViT is pooled by ``mean``.
    """

    citation: ClassVar[str] = "wolf2020transformers"

    path: Path = Field(description="folder with config.json and model.safetensors")
    public_data: str = Field(
        min_length=1,
        description="what it was trained on, in words; private data would void every guarantee",
    )
    side: int | None = Field(
        default=None,
        ge=8,
        le=1024,
        description="height and width that images are resized to, in pixels; none: what the folder says. Position "
        "embeddings are interpolated",
    )
    mean: tuple[float, ...] | None = Field(
        default=None,
        min_length=1,
        description="what is subtracted from each channel of pixels in [0, 1]; none: what preprocessor_config.json "
        "says",
    )
    std: tuple[Annotated[float, Field(gt=0)], ...] | None = Field(
        default=None,
        min_length=1,
        description="what they are then divided by; none: what preprocessor_config.json says",
    )
    pooling: Literal["mean", "cls"] = Field(
        default="mean",
        description="one vector from the last layer's tokens: the mean over patches, or the CLS token; both after "
        "the final layer normalisation. A ResNet takes the mean",
    )
    random_seed: int | None = Field(
        default=None,
        ge=0,
        description="draw random weights with this seed; only for a folder that holds none",
    )

    @property
    def dim(self) -> int:
        """Return the width of the last layer."""
        settings = self._config()
        return settings.hidden_sizes[-1] if hasattr(settings, "hidden_sizes") else settings.hidden_size

    @property
    def trained_on(self) -> str:
        """Return what the settings say, which nobody can check here; or that the weights are random."""
        return (
            self.public_data
            if self.random_seed is None
            else f"nothing: random weights, seed {self.random_seed}"
        )

    @property
    def fingerprint(self) -> str:
        """Return the sha256 of weights and settings in the folder, or of the weights that were drawn."""
        if self.random_seed is None:
            return _transformers.fingerprint(self.path)
        return _transformers.drawn(self._model(self._config()))

    @property
    def reading(self) -> Reading:
        """Return size, mean and deviation, from the settings or else from the folder.

        Raises:
            InputError: neither says one of them.
        """
        settings = self._config()
        told = _transformers.said(self.path, "preprocessor_config.json")
        if told.get("do_rescale", True) and abs(told.get("rescale_factor", RESCALE) - RESCALE) > 1e-6:
            raise InputError(
                f"path={str(self.path)!r}: its preprocessor rescales by {told['rescale_factor']}, not 1/255; remove "
                "preprocessor_config.json, and give side, mean and std for pixels in [0, 1]."
            )
        plain = {"image_mean": (0.0,), "image_std": (1.0,)} if told.get("do_normalize") is False else told
        return Reading(
            channels=settings.num_channels,
            side=self.side
            or self._known(_side(told) or _square(getattr(settings, "image_size", None)), "side"),
            mean=tuple(self.mean or self._known(plain.get("image_mean"), "mean")),
            deviation=tuple(self.std or self._known(plain.get("image_std"), "std")),
            resample=told.get("resample", BICUBIC),
        )

    def module(self) -> "Backbone":
        """Return a new torch module with the folder's weights, float32 on the CPU, as ``AbstractEncoder`` says.

        Raises:
            InputError: transformers is missing, weights and settings do not belong together, or it is another kind
                of model.
        """
        from privkit.models._backbone import Backbone
        from privkit.models._hf_net import HfNet

        settings, reading = self._config(), self.reading
        net = HfNet(self._model(settings), settings, from_cls=self.pooling == "cls", side=reading.side)
        return Backbone(net, net.blocks, reading=reading, dim=self.dim)

    def _config(self) -> "PreTrainedConfig":
        """Return the folder's settings if they are those of one network for images."""
        settings = _transformers.config(self.path)
        sized = hasattr(settings, "hidden_sizes") or hasattr(settings, "hidden_size")
        if not sized or not hasattr(settings, "num_channels"):
            raise InputError(
                f"path={str(self.path)!r} is a {settings.model_type} model, which is not one network for images; give "
                "a Vision Transformer or a ResNet."
            )
        return settings

    def _model(self, settings: "PreTrainedConfig") -> "Module":
        if self.random_seed is None:
            return _transformers.model(self.path, settings)
        if _transformers.has_weights(self.path):
            raise InputError(
                f"random_seed={self.random_seed}: path={str(self.path)!r} has weights; leave random_seed out, or give "
                "a folder with config.json alone."
            )
        return _transformers.random_model(settings, seed=self.random_seed)

    def _known(self, value: Any, field: str) -> Any:
        if value is None:
            raise InputError(
                f"{field} is unknown: path={str(self.path)!r} has no preprocessor_config.json that says it; "
                f"give {field}."
            )
        return value


def _side(told: dict[str, Any]) -> int | None:
    """Return the size a preprocessor resizes or crops to, if it says one."""
    size = (told.get("do_center_crop") and told.get("crop_size")) or told.get("size")
    return (size.get("height") or size.get("shortest_edge")) if isinstance(size, dict) else _square(size)


def _square(size: int | list[int] | None) -> int | None:
    """Return one number of a size that may be written as two."""
    return size[0] if isinstance(size, list) else size
