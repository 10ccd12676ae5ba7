"""One data set shared out over many clients, who all test on the same records."""

from abc import abstractmethod
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from jaxtyping import Bool, Int64
from pydantic import Field

from privkit.data import _dirichlet
from privkit.data._base import Domain, Labelled
from privkit.data._per_class import first_of_each_class
from privkit.data._stored import AbstractStoredData
from privkit.errors import InputError
from privkit.noise import Purpose, keyed

_HELD_OUT = 0.2
TRIES = 100
"""Most draws of ``empty: redraw``."""


class Empty(StrEnum):
    """What becomes of clients that the draw leaves without records."""

    REFUSE = "refuse"
    """Nothing is loaded."""
    DROP = "drop"
    """They take no part; the others keep their numbers."""
    REDRAW = "redraw"
    """All is drawn again, at most 100 times in all; this is no longer one Dirichlet draw."""


class AbstractSkewedData(AbstractStoredData):
    """A labelled data set whose training records are shared out over clients with label skew."""

    clients: int = Field(default=20, ge=1, le=100_000, description="number of clients")
    alpha: float = Field(
        default=0.5,
        ge=0,
        le=1e6,
        description="concentration of the Dirichlet distribution of each class over clients; small: a class has few "
        "owners; 0: contiguous equal blocks in stored order",
    )
    partition_seed: int = Field(
        default=0, ge=0, description="seed of who gets which record; the seeds of runs do not change it"
    )
    empty: Empty = Field(
        default=Empty.REFUSE,
        description="clients without records: refuse them, drop them (numbers are kept), or redraw (at most 100 times)",
    )
    per_class: int | None = Field(
        default=None, ge=1, description="training records per class, the first in stored order; null: all"
    )
    test_per_class: int | None = Field(
        default=100, ge=1, description="test records per class, the first in stored order; null: all"
    )

    @abstractmethod
    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the training and the test records, all of them, in stored order."""

    def load(self) -> tuple[Domain, ...]:
        """Return one domain per client, named ``client-00`` and so on; all share one test object.

        Raises:
            InputError: files are missing, damaged or not those of the manifest, or a client has no records and
                ``empty`` is ``refuse``.
        """
        self.refuse_other_files()
        train, test = self.parts()
        return clients_of(
            capped(train, self.per_class),
            capped(test, self.test_per_class),
            clients=self.clients,
            alpha=self.alpha,
            seed=self.partition_seed,
            empty=self.empty,
        )


def mixed(domains: Sequence[Labelled]) -> tuple[Labelled, Labelled]:
    """Return four fifths of each class of every domain, and the last fifth of each, at least one, in stored order."""
    x = np.concatenate([domain.records for domain in domains])
    y = np.concatenate([domain.labels for domain in domains])
    tested = np.concatenate([_last_fifth(domain.labels) for domain in domains])
    return Labelled(x[~tested], y[~tested]), Labelled(x[tested], y[tested])


def _last_fifth(labels: Int64[np.ndarray, " N"]) -> Bool[np.ndarray, " N"]:
    found = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        found[rows[len(rows) - max(1, int(_HELD_OUT * len(rows))) :]] = True
    return found


def capped(labelled: Labelled, per_class: int | None) -> Labelled:
    """Return the first records of each class, in their order; ``None`` takes all."""
    if per_class is None or not len(labelled.labels):
        return labelled
    kept = first_of_each_class(labelled.labels, per_class)
    return Labelled(labelled.records[kept], labelled.labels[kept])


def clients_of(
    train: Labelled, test: Labelled, *, clients: int, alpha: float, seed: int, empty: Empty
) -> tuple[Domain, ...]:
    """Return one domain per client, all with the same test object.

    Args:
        train: what is shared out.
        test: what every client is tested on.
        clients: how many there are.
        alpha: see :func:`privkit.data._dirichlet.shared_out`; 0 gives contiguous blocks.
        seed: of the draw.
        empty: what becomes of clients without records.

    Raises:
        InputError: a client has none, and they are not dropped or drawn anew; or 100 draws were not enough; or either
            part has no records, or their images are of two sizes.
    """
    for part, found in (("training", train), ("test", test)):
        if not len(found.labels):
            raise InputError(f"there are no {part} records; add some, or take another data set.")
    if train.records.shape[1:] != test.records.shape[1:]:
        raise InputError(
            f"training images are of shape {list(train.records.shape[1:])} and test images of "
            f"{list(test.records.shape[1:])}; get both parts of one data set."
        )
    rows = _rows(train.labels, clients=clients, alpha=alpha, seed=seed, empty=empty)
    notes = _without(rows)
    return tuple(
        Domain(train.records[own], train.labels[own], _name(client, clients), test, notes=notes)
        for client, own in enumerate(rows)
        if len(own)
    )


def _without(rows: list[Int64[np.ndarray, "..."]]) -> tuple[str, ...]:
    """Return a sentence about the clients that got nothing, if there are any."""
    missing = [_name(client, len(rows)) for client, own in enumerate(rows) if not len(own)]
    if not missing:
        return ()
    return (f"{missing[0]}{_more(missing)} of {len(rows):,} clients got no records and take no part.",)


def _more(missing: list[str]) -> str:
    return f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""


def _name(client: int, clients: int) -> str:
    return f"client-{client:0{max(2, len(str(clients - 1)))}}"


def _rows(
    labels: Int64[np.ndarray, " N"], *, clients: int, alpha: float, seed: int, empty: Empty
) -> list[Int64[np.ndarray, " n"]]:
    """Return each client's rows; there are none of a client only if such clients are dropped."""
    draws = TRIES if empty is Empty.REDRAW and alpha else 1
    rows = []
    for attempt in range(draws):
        rows = _drawn(labels, clients=clients, alpha=alpha, seed=seed, attempt=attempt)
        if empty is Empty.DROP or all(map(len, rows)):
            return rows
    missing = [_name(client, clients) for client, own in enumerate(rows) if not len(own)]
    raise InputError(
        f"{missing[0]}{_more(missing)} of {clients:,} clients got none of {len(labels):,} records (alpha={alpha:g}, "
        f"draws: {draws}); raise alpha, take fewer clients or more records, or set empty: drop to leave such clients "
        "out."
    )


def _drawn(
    labels: Int64[np.ndarray, " N"], *, clients: int, alpha: float, seed: int, attempt: int
) -> list[Int64[np.ndarray, " n"]]:
    if not alpha:
        return _dirichlet.blocks(len(labels), clients=clients)
    rng = keyed(seed, Purpose.PARTITION, round=attempt)
    return _dirichlet.shared_out(labels, clients=clients, alpha=alpha, rng=rng)
