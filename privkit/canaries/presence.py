"""Is the record there at all? The worst case of adding or removing one.

Its class is one record larger with it, so a noise scale or a message that follows the count tells as well.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from privkit.canaries._base import AbstractCanaries, beside, joined
from privkit.transcript import Records

OTHERS = 2
"""Other records in its class."""


class Presence(AbstractCanaries):
    """Canaries that are planted, or not, in a class of records at -v."""

    slot: ClassVar[int] = 3

    def planted(self, canaries: Records, yes_K: Bool[np.ndarray, " K"], *, round: int) -> Records:
        there = canaries.where(yes_K)
        return joined([beside(canaries, -canaries.vectors, times=OTHERS), beside(there, there.vectors)])
