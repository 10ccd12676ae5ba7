"""What every data set gives: labelled images, one domain per client."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64, UInt8

from privkit.plug import Plugin


@dataclass(frozen=True, eq=False)
class Domain:
    """The records of one domain, in a fixed order.

    Attributes:
        name: the domain's name, as tables print it.
        images: grey images, uint8, 0 background to 255 ink.
        labels: class of every image, from 0.
    """

    name: str
    images: UInt8[np.ndarray, "N height width"]
    labels: Int64[np.ndarray, " N"]


class AbstractData(Plugin):
    """A labelled data set in several domains; one client holds one domain."""

    @property
    @abstractmethod
    def num_classes(self) -> int:
        """Return the number of classes, the same in every domain."""

    @abstractmethod
    def load(self) -> tuple[Domain, ...]:
        """Return the domains, always the same records in the same order."""
