"""Was the record +v or -v in the first round? In all later rounds it is not there at all.

Where noise is drawn anew, later rounds say nothing of it. Where noise is used again, the difference of two rounds is
free of noise, and shows it: a record that stays is hidden from such a difference as well.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from privkit.canaries._base import AbstractCanaries, beside, joined
from privkit.transcript import Records


class OneRound(AbstractCanaries):
    """Canaries that are planted in the first round, as they stand or negated; zeros are in their place later.

    A second record of zeros is in the class in every round, so that counts do not change and no class is of one record.
    """

    slot: ClassVar[int] = 1

    def planted(self, canaries: Records, yes_K: Bool[np.ndarray, " K"], *, round: int) -> Records:
        nothing = np.zeros_like(canaries.vectors)
        signed = np.where(yes_K[:, None], canaries.vectors, -canaries.vectors)
        return joined([beside(canaries, nothing if round else signed), beside(canaries, nothing)])
