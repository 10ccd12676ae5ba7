"""Which records each shadow model is trained on: random halves, in pairs that complement each other."""

import numpy as np
from jaxtyping import Bool

from attacks._base import OWN_MORE, NotApplicableError

LEAST_SHADOWS = 2
LEAST_RECORDS = 8


def halves(records: int, shadows: int, *, seed: tuple[int, ...]) -> Bool[np.ndarray, "S R"]:
    """Return which of so many records each shadow is trained on.

    Of every two shadows in a row, one has a random half and the other the rest: every record is left out by as many as
    it is in (one more or fewer where their number is odd), and always by one.

    Raises:
        NotApplicableError: too few of either.
    """
    if shadows < LEAST_SHADOWS:
        raise NotApplicableError(
            f"{shadows} shadow model leaves some records without a model that has not seen them; use at least "
            f"{LEAST_SHADOWS}"
        )
    if records < LEAST_RECORDS:
        raise NotApplicableError(
            f"the attacker owns {records} reference records of a client's domain, and shadow models need "
            f"{LEAST_RECORDS}; {OWN_MORE}"
        )
    rng = np.random.default_rng(seed)
    first = [rng.permutation(records) < records // 2 for _ in range(-(-shadows // 2))]
    return np.array([half for one in first for half in (one, ~one)][:shadows])
