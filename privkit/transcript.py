"""Everything that left the clients of a run, in order. Attacks and accountants read this and nothing else."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int64

from accountant.events import Composed, Event
from privkit.errors import InputError
from privkit.release import ByClass, Release, Update


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """Labelled vectors, each belonging to one client's domain.

    Attributes:
        vectors: under the encoder that is public, shape [N, d].
        labels: class of each, shape [N].
        clients: whose domain each comes from, shape [N].
    """

    vectors: Float[np.ndarray, "N d"]
    labels: Int64[np.ndarray, " N"]
    clients: Int64[np.ndarray, " N"]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shared(self) -> Int64[np.ndarray, " N"]:
        """Return what records of one client have in common if the same releases are about them: their class."""
        return self.labels

    def of(self, client: int) -> "Records":
        """Return the records of one client's domain."""
        return self.where(self.clients == client)

    def where(self, keep_N: np.ndarray) -> "Records":
        """Return the records that a mask or an index of shape [N] keeps."""
        return Records(vectors=self.vectors[keep_N], labels=self.labels[keep_N], clients=self.clients[keep_N])


Mapped = Callable[[Mapping[str, np.ndarray], np.ndarray], np.ndarray]
"""Takes parameters by name and some vectors [N, d], and returns the mapped vectors [N, d]."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Setup:
    """What everybody knows of the model that clients train: settings, and no parameter.

    Attributes:
        temperature: tau of a head whose logits are ``tau w h / ||h||``; ``None``: a head that reads h as it is.
        before: what each client trains between the public embedding and the head, in words; empty: nothing.
        parameters: what the names of its parameters begin with; empty: it has none.
        mapped: what it does; ``None``: it is an adapter, or nothing.
        blocks: of equal width on its diagonal, where it is made of several.
    """

    temperature: float | None = None
    before: str = ""
    parameters: str = ""
    mapped: Mapped | None = None
    blocks: int = 1


@dataclass(frozen=True, eq=False)
class ServerView:
    """All that an honest-but-curious server has.

    Attributes:
        releases: every message, with the public parameters of its mechanism (its event).
        reference: records of the same populations that the attacker owns; members of no client.
            ``None`` when it owns none.
        setup: settings of the model that clients train, where they are known.
    """

    releases: tuple[Release, ...]
    reference: Records | None = None
    setup: Setup = Setup()

    @property
    def rounds(self) -> list[int]:
        """Return the rounds in which anything was released, ascending."""
        return sorted({release.round for release in self.releases})

    def only(self, round: int) -> "ServerView":
        """Return what one round alone shows."""
        return replace(self, releases=tuple(r for r in self.releases if r.round == round))

    def until(self, round: int) -> "ServerView":
        """Return what was seen up to a round, that one included."""
        return replace(self, releases=tuple(r for r in self.releases if r.round <= round))

    def prototypes(self, *, client: int, label: int) -> list[tuple[Release, int]]:
        """Return, in round order, each release of a client that holds this label, and the row it is in."""
        return self._rows.get((client, label), [])

    @cached_property
    def _rows(self) -> dict[tuple[int, int], list[tuple[Release, int]]]:
        found: dict[tuple[int, int], list[tuple[Release, int]]] = {}
        for release in self.releases:
            if isinstance(release.payload, ByClass):
                for row, label in enumerate(release.payload.labels.tolist()):
                    found.setdefault((release.client, label), []).append((release, row))
        return found


@dataclass(frozen=True, eq=False)
class InsiderView(ServerView):
    """What a server has, and the clients' personalised models, which no server is sent.

    Attributes:
        personal: trained weights of each client, as training left them.
    """

    personal: Mapping[int, Update] = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Transcript:
    """The releases of one run."""

    releases: tuple[Release, ...]

    @classmethod
    def of(cls, releases: Iterable[Release]) -> "Transcript":
        """Return a transcript in (round, client) order; the same pair twice is refused."""
        ordered = sorted(releases, key=lambda r: (r.round, r.client))
        keys = [(r.round, r.client) for r in ordered]
        twice = next((a for a, b in itertools.pairwise(keys) if a == b), None)
        if twice:
            raise InputError(
                f"client {twice[1]} has two releases in round {twice[0]}; send one message a round."
            )
        return cls(tuple(ordered))

    @property
    def clients(self) -> list[int]:
        """Return the clients that sent anything."""
        return sorted({r.client for r in self.releases})

    def cost(self, client: int) -> Event:
        """Return everything one client released, as one event."""
        return Composed(events=tuple(r.event for r in self.releases if r.client == client))

    def seen_by_server(self, reference: Records | None = None) -> ServerView:
        """Return what a server has seen, with the records it is assumed to own."""
        return ServerView(releases=self.releases, reference=reference)
