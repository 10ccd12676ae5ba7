"""A federation that is about to tune: every client's records as tokens, the public ones, and the model."""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch

from privkit.data._base import Domain, Labelled
from privkit.data._split import Parts, divide
from privkit.errors import InputError
from privkit.finetune import batches
from privkit.finetune.batches import Batch
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.guard import Guard
from privkit.finetune.model import Tuned, Weights, build, embed
from privkit.finetune.public import STANDARDISING, Public
from privkit.finetune.terms import Aggregation
from privkit.finetune.texts import Texts, joined, tokenised
from privkit.models._cache import sha256_of
from privkit.noise import Purpose, keyed


@dataclass(frozen=True, eq=False)
class Tested:
    """Texts that accuracy is measured on, and their classes."""

    texts: Texts
    labels: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Client:
    """One client's records.

    Attributes:
        name: of its domain.
        texts: all of its domain's records.
        labels: class of each.
        parts: which of them it trains on, never trains on, and so on.
        test: what it is tested on; clients may share one.
    """

    name: str
    texts: Texts
    labels: np.ndarray
    parts: Parts
    test: Tested


@dataclass(frozen=True, eq=False, kw_only=True)
class Lab:
    """Everything that a run is computed from.

    Attributes:
        config: of the run.
        seed: of the run.
        clients: in the order of the data set's domains.
        public: what server and attackers own.
        hashes: of records, labels and backbone, by name.
        device: where passes are computed.
    """

    config: FinetuneConfig
    seed: int
    clients: tuple[Client, ...]
    public: Public
    hashes: dict[str, str]
    device: torch.device

    @classmethod
    def open(cls, config: FinetuneConfig, *, seed: int, device: torch.device) -> "Lab":
        """Return the lab of a configuration; nothing is trained, and the model is not built yet.

        Raises:
            InputError: data or backbone cannot be had, a text has no token, or a class is too small to be split.
        """
        domains = config.data.load()
        clients = _clients(config, domains, seed)
        hashes = {f"records.{d.name}": sha256_of(d.records) for d in domains}
        hashes |= {f"labels.{d.name}": sha256_of(d.labels) for d in domains}
        hashes |= {f"test.{d.name}": _digest(d.test) for d in domains if d.test is not None}
        hashes["encoder"] = config.backbone.fingerprint
        return cls(
            config=config,
            seed=seed,
            clients=clients,
            public=_public(clients, most=config.public, seed=seed),
            hashes=hashes,
            device=device,
        )

    @property
    def model(self) -> Tuned:
        """Return the model, the defense's changes made; its weights are those that were loaded last."""
        return self._built[0]

    @cached_property
    def _built(self) -> tuple[Tuned, Weights]:
        config = self.config
        model = build(
            config.backbone,
            config.tuning,
            classes=config.data.num_classes,
            seed=self.seed,
        )
        model = model.to(self.device)
        if config.standardise:
            model.standardise(self.public.first(STANDARDISING).texts)
            _refuse_nothing_to_read(model)
        config.defense.prepare(model, self.public, seed=self.seed)
        model = model.to(self.device).eval()
        return model, model.snapshot()

    @property
    def start(self) -> Weights:
        """Return what the first round begins with, whatever the model was loaded with since."""
        return self._built[1]

    def guard(self) -> Guard:
        """Return what the defense does in training."""
        return self.config.defense.guard(
            self.model, self.config, self.public, clients=len(self.clients), seed=self.seed
        )

    @property
    def shares(self) -> dict[int, float]:
        """Return the share of each client in the server's mean."""
        equal = self.config.aggregation is Aggregation.EQUAL
        sizes = {k: 1.0 if equal else float(len(c.parts.members)) for k, c in enumerate(self.clients)}
        return {k: n / sum(sizes.values()) for k, n in sizes.items()}

    def records_behind(self) -> dict[int, int]:
        """Return how many records are behind an upload of each client: on average, where they are drawn one by one."""
        return {
            k: min(self.config.batch, len(c.parts.members)) * self.config.local_steps
            for k, c in enumerate(self.clients)
        }

    def rows(self, round: int, client: int) -> list[np.ndarray]:
        """Return the rows of a client's records behind each of its steps in a round."""
        members = self.clients[client].parts.members
        return batches.drawn(members, self.config, seed=self.seed, round=round, client=client)

    def batch(self, round: int, step: int, clients: list[int]) -> Batch:
        """Return one step's records of some clients."""
        rows = {k: self.rows(round, k)[step] for k in clients}
        own = [self.clients[k].texts.take(r) for k, r in rows.items()]
        return Batch(
            texts=joined(own),
            labels=np.concatenate([self.clients[k].labels[r] for k, r in rows.items()]),
            clients=np.repeat(clients, [len(r) for r in rows.values()]),
            sizes={k: batches.size(self.config, r) for k, r in rows.items()},
            round=round,
            step=step,
        )

    def embedded(self, texts: list[Texts]) -> np.ndarray:
        """Return the vector of each text under the backbone as everybody knows it, without any tuning."""
        net = self.config.backbone.net().to(self.device)
        return embed(net, joined(texts), causal=self.config.backbone.causal)


def _digest(records: Labelled) -> str:
    return sha256_of(records.records) + sha256_of(records.labels)


def _clients(config: FinetuneConfig, domains: tuple[Domain, ...], seed: int) -> tuple[Client, ...]:
    shared: dict[int, Tested] = {}
    found: list[Client] = []
    cut = partial(tokenised, config.backbone.tokenizer(), max_length=config.backbone.max_length)
    for m, domain in enumerate(domains):
        texts = cut(domain.records)
        parts = divide(
            domain.labels,
            num_classes=config.data.num_classes,
            shares=config.split.shares,
            seed=seed,
            client=m,
            name=domain.name,
            tests=None if domain.test is None else domain.test.labels,
        )
        test = _tested(config, domain, texts, parts.test, shared)
        found.append(Client(name=domain.name, texts=texts, labels=domain.labels, parts=parts, test=test))
    return tuple(found)


def _tested(
    config: FinetuneConfig, domain: Domain, texts: Texts, rows: np.ndarray, shared: dict[int, Tested]
) -> Tested:
    """Return what a client is tested on: records of its domain, or those that the data set keeps for all."""
    if domain.test is None:
        return Tested(texts.take(rows), domain.labels[rows])
    key = id(domain.test)
    if key not in shared:
        shared[key] = Tested(config.backbone.texts(domain.test.records), domain.test.labels)
    return shared[key]


def _public(clients: tuple[Client, ...], *, most: int, seed: int) -> Public:
    """Return the records that the attacker owns, in a random order, at most so many."""
    owners = np.repeat(np.arange(len(clients)), [len(c.parts.reference) for c in clients])
    if not len(owners):
        raise InputError("split.reference leaves no public records, and a server needs some; raise it.")
    rows = np.concatenate([c.parts.reference for c in clients])
    texts = joined([c.texts.take(c.parts.reference) for c in clients])
    labels = np.concatenate([c.labels[c.parts.reference] for c in clients])
    chosen = keyed(seed, Purpose.SERVER).permutation(len(rows))[:most]
    return Public(texts.take(chosen), labels[chosen], owners[chosen], rows[chosen])


def _refuse_nothing_to_read(model: Tuned) -> None:
    """Raise if the head reads zeros alone, from which nothing is learned and nothing is told."""
    if model.spread.isinf().all():
        raise InputError(
            "standardise: the public records that centre and scale what the head reads are all alike to the model; own "
            "more of them (public, split.reference), or set standardise to false."
        )
