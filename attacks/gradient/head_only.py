"""The matched filter on the classifier head alone: what is left when adapters are protected and the head is not.

Its gradient is (probabilities - label) times the embedding that is classified: C rows, and no row space to speak of.
See :mod:`attacks.gradient.matched_filter`.

Source: Turin (1960), "An introduction to matched filters"; on heads ours.
"""

from typing import ClassVar

from attacks._base import ThreatModel
from attacks.gradient._base import BATCH, LABEL, NOISE, PUBLIC, server
from attacks.gradient._filter_attack import FilterAttack
from attacks.gradient._seen import Seen


class HeadOnly(FilterAttack):
    """Standardised inner product of a candidate's gradient with that of the head, in the metric of public ones."""

    citation: ClassVar[str] = "turin1960, martens2015"
    threat: ClassVar[ThreatModel] = server(LABEL, BATCH, NOISE, PUBLIC)
    family = "adaptive"

    def shown(self, seen: Seen) -> Seen:
        return seen.only(seen.head)
