"""The matched filter on the classifier head alone: what is left when adapters are protected and the head is not.

Its gradient is (probabilities - label) times the embedding that is classified: C rows, and no row space to speak of.
See :mod:`attacks.gradient.matched_filter`.

Source: Turin (1960), "An introduction to matched filters"; on heads ours.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks._base import ThreatModel
from attacks.gradient._base import BATCH, LABEL, NOISE, PUBLIC, GradientAttack, server
from attacks.gradient._filters import Estimator, filtered
from attacks.gradient._seen import Seen


class HeadOnly(GradientAttack):
    """Standardised inner product of a candidate's gradient with that of the head, in the metric of public ones."""

    citation: ClassVar[str] = "turin1960, martens2015"
    threat: ClassVar[ThreatModel] = server(LABEL, BATCH, NOISE, PUBLIC)
    family = "adaptive"

    estimator: Estimator = Field(
        default="both",
        description="of the covariance: kronecker (two small factors), dual (public gradients), or half of each",
    )
    ridge: float | None = Field(
        default=None, gt=0, description="what is added to the covariance, as in matched_filter"
    )

    def of_upload(self, seen: Seen) -> Float64[np.ndarray, " N"]:
        return filtered(seen.only(seen.head), self.estimator, ridge=self.ridge)
