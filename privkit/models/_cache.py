"""Encode once: features are kept by the content of images and weights, and never computed twice."""

import hashlib
import os
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from privkit import tensors
from privkit.atomic import canonical_json
from privkit.errors import InputError
from privkit.models._base import AbstractEncoder


def folder() -> Path:
    """Return where features are kept: $PRIVKIT_CACHE, else the user's cache folder."""
    base = os.environ.get("PRIVKIT_CACHE")
    return Path(base) if base else Path.home() / ".cache" / "privkit"


def sha256_of(array: np.ndarray) -> str:
    """Return the sha256 of an array's type, shape and bytes, in hexadecimal."""
    header = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(header + np.ascontiguousarray(array).tobytes()).hexdigest()


def features(encoder: AbstractEncoder, records: np.ndarray) -> Float32[np.ndarray, "N dim"]:
    """Return one vector per record, from the cache if these were encoded before."""
    content = [encoder.settings(), encoder.fingerprint, sha256_of(records)]
    key = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    path = folder() / "features" / f"{key}.safetensors"
    kept = _read(path)
    if kept is not None:
        return kept
    vectors = encoder.encode(records)
    _write(path, vectors)
    return vectors


def _read(path: Path) -> np.ndarray | None:
    """Return the features a file holds, or nothing if it is missing, damaged or changed."""
    try:
        named = tensors.read(path, "features", "sha256")
    except InputError:
        return None
    sound = sha256_of(named["features"]) == named["sha256"].tobytes().hex()
    return named["features"] if sound else None


def _write(path: Path, vectors: np.ndarray) -> None:
    digest = np.frombuffer(bytes.fromhex(sha256_of(vectors)), dtype=np.uint8)
    own = path.with_suffix(f".{os.getpid()}")  # another process may encode the same images at the same time
    try:
        tensors.write(own, {"features": vectors, "sha256": digest}, durable=False)
        own.replace(path)
    except OSError as error:
        raise InputError(
            f"{folder()} cannot be written ({error}); set PRIVKIT_CACHE to a folder that can be."
        ) from None
