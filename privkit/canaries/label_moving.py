"""Is the record in the one class or in the other? The worst case of replacing a record by one of another label.

All other records of both classes are at -v, so the record at +v moves the mean of either as far as a record can, and
sums and counts likewise: noise for one class lets both moves be seen, which is up to sqrt(2) of what was claimed.

Source: accounting analysis, E2 (``privkit explain E2``)
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from privkit.canaries._base import AbstractCanaries, beside, joined
from privkit.transcript import Records

OTHERS = 8
"""Other records in each of the two classes."""


class LabelMoving(AbstractCanaries):
    """Canaries that are planted in the first of two classes, or in the second."""

    slot: ClassVar[int] = 2
    classes_each: ClassVar[int] = 2

    def planted(self, canaries: Records, yes_K: Bool[np.ndarray, " K"], *, round: int) -> Records:
        first, second = canaries.where(yes_K), canaries.where(~yes_K)
        return joined(
            [
                beside(canaries, -canaries.vectors, label=0, times=OTHERS),
                beside(canaries, -canaries.vectors, label=1, times=OTHERS),
                beside(first, first.vectors, label=0),
                beside(second, second.vectors, label=1),
            ]
        )
