"""Any frozen encoder exported to ONNX, used as a black box through onnxruntime."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float32
from pydantic import Field, model_validator

from privkit.errors import InputError
from privkit.models import _pixels
from privkit.models._base import AbstractEncoder

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

BATCH = 512


class Onnx(AbstractEncoder):
    """A frozen ONNX model from images to vectors: its first input and its first output."""

    path: Path = Field(description="the model file")
    output_dim: int = Field(
        ge=1, description="numbers per vector; a model that gives another number is refused"
    )
    public_data: str = Field(
        min_length=1,
        description="what it was trained on, in words; private data would void every guarantee",
    )
    channels: Literal[1, 3] = Field(default=1, description="1: it reads grey images; 3: it reads colour")
    side: int | None = Field(
        default=None,
        ge=1,
        description="height and width that images are resized to, in pixels; none leaves them as they are",
    )
    scale: float | tuple[float, float, float] = Field(
        default=1 / 255,
        description="what a level, 0 to 255, is multiplied by; of colour, one number per channel if you like",
    )
    shift: float | tuple[float, float, float] = Field(default=0.0, description="what is added after scaling")

    @model_validator(mode="after")
    def _grey_has_one_channel(self) -> "Onnx":
        if self.channels == 1 and (isinstance(self.scale, tuple) or isinstance(self.shift, tuple)):
            raise ValueError(
                "scale and shift of grey images are one number each; give channels: 3 for colour"
            )
        return self

    @property
    def dim(self) -> int:
        """Return the declared length, which every call checks against the model."""
        return self.output_dim

    @property
    def trained_on(self) -> str:
        """Return what the settings say; nobody can check it here."""
        return self.public_data

    @property
    def fingerprint(self) -> str:
        """Return the sha256 of the model file; ``scale`` and ``shift`` are not part of it."""
        return hashlib.sha256(self._content()).hexdigest()

    def encode(self, records: np.ndarray) -> Float32[np.ndarray, "N dim"]:
        """Return one vector per image; no image gives an array of no rows.

        Args:
            records: images, uint8, grey or in colour.

        Raises:
            InputError: they are no images, onnxruntime is not installed, the file is missing or no ONNX model, its
                input is not float32 [N, channels, height, width] for images of this size, or its output
                is not [N, dim] of finite numbers.
        """
        records = _pixels.only_images(records, reader=self.name)
        session = self._session()
        self._check_input(session, *self._shape(records))
        vectors = np.empty((len(records), self.dim), np.float32)
        source = session.get_inputs()[0].name
        target = session.get_outputs()[0].name
        for start in range(0, len(records), BATCH):
            scaled = self._scaled(records[start : start + BATCH])
            given = session.run([target], {source: scaled})[0]
            vectors[start : start + BATCH] = self._checked(given, len(scaled))
        return vectors

    def _shape(self, records: np.ndarray) -> tuple[int, int, int]:
        """Return channels, height and width of what the model will be given."""
        height, width = (self.side, self.side) if self.side else records.shape[1:3]
        return self.channels, height, width

    def _scaled(self, records: np.ndarray) -> Float32[np.ndarray, "N channels height width"]:
        levels = _pixels.pixels(records, channels=self.channels, side=self.side, reader=self.name)
        scale, shift = (np.asarray(v, np.float32).reshape(-1, 1, 1) for v in (self.scale, self.shift))
        return levels.astype(np.float32) * scale + shift

    def _content(self) -> bytes:
        if not self.path.is_file():
            raise InputError(f"path={str(self.path)!r} is no file; give an ONNX model.")
        return self.path.read_bytes()

    def _session(self) -> "InferenceSession":
        content = self._content()
        try:
            import onnxruntime
        except ImportError:
            raise InputError(
                "the onnx encoder needs onnxruntime; run pip install 'privkit-audit[onnx]'."
            ) from None
        try:
            return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own errors share no public base class
            raise InputError(f"path={str(self.path)!r} cannot be read as an ONNX model: {error}") from None

    def _check_input(self, session: "InferenceSession", channels: int, height: int, width: int) -> None:
        """Refuse a model whose input cannot be a batch of images of this size."""
        source = session.get_inputs()[0]
        # a model may leave a length open: it is then a name, not a number
        wanted = (None, channels, height, width)
        fits = len(source.shape) == len(wanted) and all(
            not isinstance(length, int) or length == want
            for length, want in zip(source.shape, wanted, strict=True)
        )
        if not fits or source.type != "tensor(float)":
            raise InputError(
                f"{self.path.name} reads {source.type} {source.shape}; wanted is float32 "
                f"[N, {channels}, {height}, {width}] with N left open; set channels and side to what it reads."
            )

    def _checked(self, given: object, count: int) -> np.ndarray:
        """Return one batch of output if it is finite and of the declared length."""
        vectors = np.asarray(given)
        if vectors.shape != (count, self.output_dim):
            raise InputError(
                f"{self.path.name} gives {list(vectors.shape)} for {count} images, not "
                f"output_dim={self.output_dim} numbers each; set output_dim to what the model gives."
            )
        if not np.isfinite(vectors).all():
            raise InputError(f"{self.path.name} gives numbers that are not finite; check scale and shift.")
        return vectors
