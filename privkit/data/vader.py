"""Sentences in four domains with their sentiment: the ground truth of VADER.

=======  ================================  =========
domain   sentences of                      published
=======  ================================  =========
tweets   tweets                            4,200
movie    film reviews                      10,605
amazon   product reviews                   3,708
nyt      editorials of the New York Times  5,190
=======  ================================  =========

Without ``root``, 200 of each that come with privkit, 40 in each of the five classes. With ``alpha``, all domains are
pooled and shared out over clients with label skew. Sentences that occur twice are taken once.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float64
from pydantic import Field, field_validator, model_validator

from privkit import shipped
from privkit.data import _share, _valence
from privkit.data._base import Domain, Labelled
from privkit.data._published import Published
from privkit.data._skew import Empty, clients_of
from privkit.data._stored import AbstractStoredData
from privkit.data._valence import FILES, Rated
from privkit.errors import InputError

FOLDER = Path(__file__).parent / "_vader"
DomainName = Literal["tweets", "movie", "amazon", "nyt"]
DOMAINS: tuple[DomainName, ...] = get_args(DomainName)
PUBLISHED = Published(
    title="the ground truth of VADER",
    layout=f"{{{','.join(FILES.values())}}}, {_valence.ARCHIVE}, or the source package of vaderSentiment 3.3.2",
    source="Hutto and Gilbert, VADER, ICWSM 2014",
    twin="vader without root",
)
SAMPLE: dict[DomainName, str] = {  # sha256 of the stored sentences
    "tweets": "a6cf1a2f4243d2d6b47f09e58eb1325348734de2fe25d6b780fbc993ef6e7ca8",
    "movie": "d4158d8d16969c91326d45fc385d822af3fc6b1b3fcf6041c43eb83e86297e35",
    "amazon": "b943bd0aa10d9b9f87c2021c2b74c47707f500d909bde197f393e5ad28d29c90",
    "nyt": "da2702f5e3ce8e00896c9c3213415bc8f6acd4f010979fafdc0c58712aaa0924",
}


@dataclass(frozen=True)
class Scale:
    """How ratings become classes.

    Attributes:
        edges: between neighbouring classes; an edge belongs to the upper one.
        unclear: ratings no further from 0 than this are left out; ``None`` leaves out none.
    """

    edges: tuple[float, ...]
    unclear: float | None = None

    def clear(self, ratings: Float64[np.ndarray, " N"]) -> Bool[np.ndarray, " N"]:
        """Return which ratings are kept."""
        if self.unclear is None:
            return np.ones(len(ratings), bool)
        return np.abs(ratings) > self.unclear


SCALES: dict[int, Scale] = {
    2: Scale((0.0,), unclear=0.5),
    3: Scale((-0.75, 0.75)),
    5: Scale((-2.0, -0.75, 0.75, 2.0)),
}


class Vader(AbstractStoredData):
    """Sentences of tweets, film reviews, product reviews and editorials, by the sentiment people see in them."""

    root: Path | None = Field(
        default=None,
        description="folder of the four published files, or an archive that holds them; null: 200 stored per domain",
    )
    domains: tuple[DomainName, ...] = Field(
        default=DOMAINS, min_length=1, description="domains to load, in this order; client i holds the i-th"
    )
    classes: Literal[2, 3, 5] = Field(
        default=2,
        description="2: negative and positive, ratings within 0.5 of 0 left out; 3: also neutral, within 0.75; 5: also "
        "very negative and very positive, beyond 2",
    )
    per_domain: Annotated[int, Field(ge=1, strict=True)] | None = Field(
        default=None, description="sentences per domain at most, chosen by their text; null: all"
    )
    alpha: float | None = Field(
        default=None,
        ge=0,
        le=1e6,
        description="pool the domains and share each class out over clients by a Dirichlet distribution of this "
        "concentration; 0: contiguous blocks; null: a domain per client",
    )
    clients: int = Field(default=20, ge=1, le=100_000, description="number of clients; only with alpha")
    partition_seed: int = Field(
        default=0, ge=0, description="seed of who gets which sentence; only with alpha"
    )
    empty: Empty = Field(
        default=Empty.REFUSE,
        description="clients without sentences: refuse, drop or redraw (at most 100 times); only with alpha",
    )
    test_per_class: int = Field(
        default=100,
        ge=1,
        description="sentences per class that all clients are tested on, at most half of them; only with alpha",
    )

    citation: ClassVar[str] = "hutto2014vader"

    @field_validator("domains")
    @classmethod
    def _each_once(cls, domains: tuple[DomainName, ...]) -> tuple[DomainName, ...]:
        if len(set(domains)) < len(domains):
            raise ValueError("a domain is named twice; name each at most once")
        return domains

    @model_validator(mode="after")
    def _manifest_of_files(self) -> "Vader":
        if self.manifest is not None and self.root is None:
            raise ValueError("a manifest lists files of yours; give root, or leave manifest out")
        return self

    @property
    def num_classes(self) -> int:
        """Return the number of classes."""
        return self.classes

    def files(self) -> dict[str, Path]:
        """Return the four files, or the archive, by their names; none for the stored sentences."""
        if self.root is None:
            return {}
        if not self.root.exists():
            raise PUBLISHED.missing(f"root={str(self.root)!r} does not exist")
        found = _valence.located(self.root)
        if not found:
            raise PUBLISHED.missing(f"root={str(self.root)!r} lacks one of {', '.join(FILES.values())}")
        return found

    def load(self) -> tuple[Domain, ...]:
        """Return a domain per source, or with ``alpha`` per client; records are text.

        Raises:
            InputError: files are missing, damaged or not those of the manifest, or a client has no sentences and
                ``empty`` is ``refuse``.
        """
        self.refuse_other_files()
        sentences = _valence.first_of_each(self._sentences())
        domains = tuple(self._domain(name, sentences[name]) for name in self.domains)
        if self.alpha is None:
            return domains
        train, test = self._parted(domains)
        return clients_of(
            train, test, clients=self.clients, alpha=self.alpha, seed=self.partition_seed, empty=self.empty
        )

    def _sentences(self) -> dict[str, list[Rated]]:
        """Return all sentences of all domains, in a fixed order."""
        if self.root is None:
            stored = {name: shipped.read(FOLDER / f"{name}.txt", sha256=SAMPLE[name]) for name in DOMAINS}
        else:
            found = _valence.contents(self.files())
            stored = {name: found[FILES[name]] for name in DOMAINS}
        return {name: _valence.rated(content, where=name) for name, content in stored.items()}

    def _domain(self, name: DomainName, sentences: list[Rated]) -> Domain:
        scale = SCALES[self.classes]
        ratings = np.array([sentence.rating for sentence in sentences], np.float64)
        rows = np.flatnonzero(scale.clear(ratings))
        if self.per_domain is not None:
            ranked = sorted(rows, key=lambda row: _share.rank(sentences[row].text, purpose="per_domain"))
            rows = np.sort(np.array(ranked[: self.per_domain], np.int64))
        if not len(rows):
            raise InputError(
                f"domain {name} has no sentence of {self.classes} classes; leave it out of domains."
            )
        texts = np.array([sentences[row].text for row in rows], np.str_)
        return Domain(texts, _valence.binned(ratings[rows], scale.edges), name)

    def _parted(self, domains: tuple[Domain, ...]) -> tuple[Labelled, Labelled]:
        """Return all domains as one, without and with only the sentences that are tested on."""
        texts = np.concatenate([domain.records for domain in domains])
        labels = np.concatenate([domain.labels for domain in domains])
        tested = np.zeros(len(labels), bool)
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            ranked = sorted(rows, key=lambda row: _share.rank(str(texts[row]), purpose="test"))
            tested[ranked[: min(self.test_per_class, len(rows) // 2)]] = True
        return Labelled(texts[~tested], labels[~tested]), Labelled(texts[tested], labels[tested])
