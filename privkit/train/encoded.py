"""Data sets under frozen encoders: each is encoded once, whatever the number of runs that use it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from privkit import plug
from privkit.atomic import canonical_json
from privkit.config import Architecture, RunConfig
from privkit.data._base import Domain, Labelled
from privkit.errors import InputError
from privkit.models._base import AbstractEncoder
from privkit.models._cache import features, sha256_of

Progress = Callable[[str, int, int], None]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Inputs:
    """Some labelled records as encoders and networks read them.

    Attributes:
        x: features under the frozen encoder, float32 of shape [N, d].
        y: class of each record, shape [N].
        pixels: what adapters inside the backbone read, uint8 of shape [N, channels, height, width]; ``None`` for
            adapters after it, which read the features.
    """

    x: np.ndarray
    y: np.ndarray
    pixels: np.ndarray | None = None

    @property
    def read(self) -> np.ndarray:
        """Return what the network reads."""
        return self.x if self.pixels is None else self.pixels


@dataclass(frozen=True, eq=False, kw_only=True)
class Encoded:
    """A data set under the encoder of each client, one entry per domain.

    Attributes:
        names: of the domains.
        own: records of each domain.
        test: records kept for testing; the domain's own entry where it keeps none.
        things: what each record shows, where domains share things.
        num_classes: of the data set.
        hashes: of records, labels, features, encoders and names of classes, by name; and how many records a domain
            had to leave out.
        notes: sentences on records that the data set left out, for the reader.
        whole: the same with the domain that is held out; ``None`` if none is.
        held_out: its number there.
    """

    names: tuple[str, ...]
    own: tuple[Inputs, ...]
    test: tuple[Inputs, ...]
    things: tuple[np.ndarray | None, ...]
    num_classes: int
    hashes: dict[str, str]
    notes: tuple[str, ...] = ()
    whole: "Encoded | None" = None
    held_out: int = -1

    def without(self, name: str) -> "Encoded":
        """Return all domains but one, which is held out: nobody trains on it.

        Raises:
            InputError: there is no such domain, or no other.
        """
        if name not in self.names:
            raise InputError(plug.unknown("domain held_out", name, known=list(self.names)))
        if len(self.names) < 2:
            raise InputError(f"held_out is {name}, the only domain; train on at least one other.")
        at = self.names.index(name)

        def rest(every: Sequence[T]) -> tuple[T, ...]:
            return (*every[:at], *every[at + 1 :])

        return replace(
            self,
            names=rest(self.names),
            own=rest(self.own),
            test=rest(self.test),
            things=rest(self.things),
            hashes=self.hashes | {"held_out": name},
            whole=self,
            held_out=at,
        )

    @property
    def x(self) -> tuple[np.ndarray, ...]:
        """Return the features of each domain."""
        return tuple(inputs.x for inputs in self.own)

    @property
    def y(self) -> tuple[np.ndarray, ...]:
        """Return the labels of each domain."""
        return tuple(inputs.y for inputs in self.own)

    @property
    def dim(self) -> int:
        """Return the width of an embedding."""
        return self.own[0].x.shape[1]

    def keeps_tests(self, client: int) -> bool:
        """Return whether a domain's test records are apart from its own."""
        return self.test[client] is not self.own[client]


def encode(config: RunConfig) -> Encoded:
    """Return the configuration's data under its encoders, from the feature cache where possible."""
    for one in config.architectures:
        one.model.build(
            one.encoder
        )  # an encoder that takes no adapters inside is refused before anything is done
    domains = config.data.load()
    seen: dict[tuple[int, str], Inputs] = {}
    own = tuple(_inputs(d, config.architecture(m), seen) for m, d in enumerate(domains))
    test = tuple(
        own[m] if d.test is None else _inputs(d.test, config.architecture(m), seen)
        for m, d in enumerate(domains)
    )
    _refuse_widths(config, [inputs.x.shape[1] for inputs in own])
    every = Encoded(
        names=tuple(domain.name for domain in domains),
        own=own,
        test=test,
        things=tuple(domain.things for domain in domains),
        num_classes=config.data.num_classes,
        hashes=_hashes(config, domains, own, test),
        notes=tuple(note for domain in domains for note in domain.notes),
    )
    return every if config.held_out is None else every.without(config.held_out)


def _inputs(records: Labelled, architecture: Architecture, seen: dict[tuple[int, str], Inputs]) -> Inputs:
    key = (id(records), canonical_json(architecture.model_dump(mode="json")))
    if key not in seen:
        encoder, inside = architecture.encoder, architecture.model.inside
        seen[key] = Inputs(
            _features(encoder, records.records),
            records.labels,
            encoder.pixels(records.records) if inside else None,
        )
    return seen[key]


def _features(encoder: AbstractEncoder, records: np.ndarray) -> np.ndarray:
    found = features(encoder, records)
    if found.shape != (len(records), encoder.dim):
        raise InputError(
            f"encoder {encoder.name} gave an array of shape {found.shape} for {len(records)} records, and says that it "
            f"embeds each into {encoder.dim} numbers; correct its settings."
        )
    return found


def _refuse_widths(config: RunConfig, widths: list[int]) -> None:
    odd = next((m for m, width in enumerate(widths) if width != widths[0]), None)
    if odd is not None:
        raise InputError(
            f"client 0 embeds into {widths[0]} numbers ({config.architecture(0).encoder.name}) and client {odd} into "
            f"{widths[odd]} ({config.architecture(odd).encoder.name}); give all encoders one width, with encoder "
            "projected and its output_dim."
        )


def _hashes(
    config: RunConfig, domains: tuple[Domain, ...], own: tuple[Inputs, ...], test: tuple[Inputs, ...]
) -> dict[str, str]:
    found = {f"records.{d.name}": sha256_of(d.records) for d in domains}
    found |= {f"labels.{d.name}": sha256_of(d.labels) for d in domains}
    found |= {f"features.{d.name}": sha256_of(i.x) for d, i in zip(domains, own, strict=True)}
    found |= {f"things.{d.name}": sha256_of(d.things) for d in domains if d.things is not None}
    found |= {f"left_out.{d.name}": str(len(d.left_out)) for d in domains if d.left_out}
    if config.data.class_names:
        found["classes"] = sha256_of(np.array(config.data.class_names, np.str_))
    shared: dict[int, str] = {}
    for domain, inputs, mine in zip(domains, test, own, strict=True):
        if inputs is not mine:
            digest = shared.setdefault(id(inputs), sha256_of(inputs.x) + sha256_of(inputs.y))
            found[f"test.{domain.name}"] = digest
    prints = [one.encoder.fingerprint for one in config.architectures]
    return found | (
        {"encoder": prints[0]} if len(prints) == 1 else {f"encoder.{i}": p for i, p in enumerate(prints)}
    )


def source(config: RunConfig) -> str:
    """Return what decides a configuration's features."""
    architectures = [[one.encoder.settings(), one.model.inside] for one in config.architectures]
    return canonical_json([config.data.settings(), architectures, config.held_out])


def encode_all(configs: Iterable[RunConfig], progress: Progress) -> dict[str, Encoded]:
    """Return the features of every data set that some configurations use, by :func:`source`."""
    distinct = {source(config): config for config in configs}
    encoded = {}
    for done, (name, config) in enumerate(distinct.items()):
        progress("encode", done, len(distinct))
        encoded[name] = encode(config)
    progress("encode", len(distinct), len(distinct))
    return encoded
