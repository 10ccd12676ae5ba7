"""What every data set gives: labelled records, one domain per client."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from privkit.plug import Plugin

Records = np.ndarray
"""Images, uint8 of shape [N, height, width] (grey) or [N, height, width, 3] (colour); or sentences, str of [N]."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Records in a fixed order, and the class of each, from 0."""

    records: Records
    labels: Int64[np.ndarray, " N"]


@dataclass(frozen=True, eq=False)
class Domain(Labelled):
    """The records of one domain: what one client holds.

    Attributes:
        name: the domain's name, as tables print it.
        records: what is encoded.
        labels: class of each, from 0; a class may be missing.
        test: records that the data set itself keeps for testing. Domains may share them: the same object is encoded
            once. ``None``: test records are drawn from the domain's own.
        things: what each record shows, where several domains show the same things; records of one thing, in whatever
            domain, are all trained on, or all tested, or all left out. ``None``: every record is a thing of its own.
        left_out: names of records that cannot be used, and so are not here.
        notes: sentences on what is not here, for whoever loads the domain.
    """

    name: str
    test: Labelled | None = None
    things: Int64[np.ndarray, " N"] | None = None
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class AbstractData(Plugin):
    """A labelled data set in several domains; one client holds one domain."""

    @property
    @abstractmethod
    def num_classes(self) -> int:
        """Return the number of classes, the same in every domain."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Return what the classes are called, where files of the user's decide that; nothing otherwise."""
        return ()

    @abstractmethod
    def load(self) -> tuple[Domain, ...]:
        """Return the domains, always the same records in the same order.

        Raises:
            InputError: files are missing, damaged or not as expected; the message says how to get them.
        """
