"""Any frozen encoder exported to ONNX, used as a black box through onnxruntime."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32, UInt8
from pydantic import Field

from privkit.errors import InputError
from privkit.models._base import AbstractEncoder

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

BATCH = 512


class Onnx(AbstractEncoder):
    """A frozen ONNX model from grey images to vectors: its first input and its first output."""

    path: Path = Field(description="the model file")
    output_dim: int = Field(
        ge=1, description="numbers per vector; a model that gives another number is refused"
    )
    public_data: str = Field(
        min_length=1,
        description="what it was trained on, in words; private data would void every guarantee",
    )
    scale: float = Field(default=1 / 255, description="what a grey level, 0 to 255, is multiplied by")
    shift: float = Field(default=0.0, description="what is added after scaling")

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

    def encode(self, images: UInt8[np.ndarray, "N height width"]) -> Float32[np.ndarray, "N dim"]:
        """Return one vector per image; no image gives an array of no rows.

        Raises:
            InputError: onnxruntime is not installed, the file is missing or no ONNX model, its
                input is not float32 [N, 1, height, width] for images of this size, or its output
                is not [N, dim] of finite numbers.
        """
        session = self._session()
        self._check_input(session, images.shape[1], images.shape[2])
        vectors = np.empty((len(images), self.dim), np.float32)
        source = session.get_inputs()[0].name
        target = session.get_outputs()[0].name
        for start in range(0, len(images), BATCH):
            grey = images[start : start + BATCH, None].astype(np.float32)
            scaled = grey * np.float32(self.scale) + np.float32(self.shift)
            given = session.run([target], {source: scaled})[0]
            vectors[start : start + BATCH] = self._checked(given, len(grey))
        return vectors

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

    def _check_input(self, session: "InferenceSession", height: int, width: int) -> None:
        """Refuse a model whose input cannot be a batch of grey images of this size."""
        source = session.get_inputs()[0]
        wanted = (
            None,
            1,
            height,
            width,
        )  # a model may leave a length open: it is then a name, not a number
        fits = len(source.shape) == len(wanted) and all(
            not isinstance(length, int) or length == want
            for length, want in zip(source.shape, wanted, strict=True)
        )
        if not fits or source.type != "tensor(float)":
            raise InputError(
                f"{self.path.name} reads {source.type} {source.shape}; wanted is float32 "
                f"[N, 1, {height}, {width}] with N left open."
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
