"""A data set of any number of clients, and an encoder that reads it: what the whole training loop needs to run."""

import hashlib

import numpy as np
from jaxtyping import Float32
from pydantic import Field

from privkit.data._base import AbstractData, Domain
from privkit.models._base import AbstractEncoder

_SIDE = 8


class Blobs(AbstractData):
    """Grey pictures of 8 x 8 pixels around one random picture per class, the same number for every client."""

    clients: int = Field(ge=1, description="number of domains")
    records: int = Field(default=100, ge=10, description="records of each")

    @property
    def num_classes(self) -> int:
        return 10

    def load(self) -> tuple[Domain, ...]:
        rng = np.random.default_rng(0)
        means = rng.uniform(60, 190, size=(self.num_classes, _SIDE, _SIDE))
        y = np.arange(self.records) % self.num_classes
        return tuple(
            Domain(
                name=f"client-{m}",
                records=np.clip(means[y] + rng.normal(0, 40, (len(y), _SIDE, _SIDE)), 0, 255).astype(
                    np.uint8
                ),
                labels=y,
            )
            for m in range(self.clients)
        )


class Flat(AbstractEncoder):
    """Gives the pixels themselves, in [0, 1]."""

    @property
    def dim(self) -> int:
        return _SIDE * _SIDE

    @property
    def trained_on(self) -> str:
        return "nothing"

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(b"pixels / 255").hexdigest()

    def encode(self, records: np.ndarray) -> Float32[np.ndarray, "N dim"]:
        return records.reshape(len(records), -1).astype(np.float32) / 255
