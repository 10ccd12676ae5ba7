"""Encode once: features are kept by the content of images and weights, and never computed twice."""

import hashlib
import os
from pathlib import Path

import numpy as np
from jaxtyping import Float32, UInt8

from privkit import tensors
from privkit.atomic import canonical_json
from privkit.models._base import AbstractEncoder


def folder() -> Path:
    """Return where features are kept: $PRIVKIT_CACHE, else the user's cache folder."""
    base = os.environ.get("PRIVKIT_CACHE")
    return Path(base) if base else Path.home() / ".cache" / "privkit"


def sha256_of(array: np.ndarray) -> str:
    """Return the sha256 of an array's type, shape and bytes, in hexadecimal."""
    header = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(header + np.ascontiguousarray(array).tobytes()).hexdigest()


def features(
    encoder: AbstractEncoder, images: UInt8[np.ndarray, "N height width"]
) -> Float32[np.ndarray, "N dim"]:
    """Return one vector per image, from the cache if these images were encoded before."""
    content = [encoder.settings(), encoder.fingerprint, sha256_of(images)]
    key = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    path = folder() / "features" / f"{key}.safetensors"
    if not path.exists():
        tensors.write(path, {"features": encoder.encode(images)})
    return tensors.read(path)["features"]
