"""Data sets under a frozen encoder: each is encoded once, whatever the number of runs that use it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from privkit.atomic import canonical_json
from privkit.config import RunConfig
from privkit.models._cache import features, sha256_of

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Encoded:
    """A data set under a frozen encoder, one entry per domain."""

    names: tuple[str, ...]
    x: tuple[np.ndarray, ...]
    y: tuple[np.ndarray, ...]
    num_classes: int
    hashes: dict[str, str]


def encode(config: RunConfig) -> Encoded:
    """Return the configuration's data under its encoder, from the feature cache where possible."""
    domains = config.data.load()
    x = tuple(features(config.encoder, domain.records) for domain in domains)
    hashes = {f"images.{d.name}": sha256_of(d.records) for d in domains}
    hashes |= {f"labels.{d.name}": sha256_of(d.labels) for d in domains}
    hashes |= {f"features.{d.name}": sha256_of(f) for d, f in zip(domains, x, strict=True)}
    return Encoded(
        names=tuple(domain.name for domain in domains),
        x=x,
        y=tuple(domain.labels for domain in domains),
        num_classes=config.data.num_classes,
        hashes={**hashes, "encoder": config.encoder.fingerprint},
    )


def source(config: RunConfig) -> str:
    """Return what decides a configuration's features."""
    return canonical_json([config.data.settings(), config.encoder.settings()])


def encode_all(configs: Iterable[RunConfig], progress: Progress) -> dict[str, Encoded]:
    """Return the features of every data set that some configurations use, by :func:`source`."""
    distinct = {source(config): config for config in configs}
    encoded = {}
    for done, (name, config) in enumerate(distinct.items()):
        progress("encode", done, len(distinct))
        encoded[name] = encode(config)
    progress("encode", len(distinct), len(distinct))
    return encoded
