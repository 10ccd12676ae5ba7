r"""Whitened gradient matched filter: the best linear test for one record's gradient in a sum of others.

:math:`g^T M (X - B \mu) / \sqrt{g^T M g}` with the candidate's own gradient g, the sum X of the batch, and the
inverse M of the covariance of everything else (:mod:`attacks.gradient._matched`). It asks for no row space, so a
fixed map in front of the trained one, which ends projection residuals, does not end it. Three ways to know S:

* ``kronecker``: a product of two small second moments per map. It serves from about 25 public records, and does not
  know how maps and tokens of one record go together, which is what noise leaves.
* ``dual``: public gradients themselves, with a ridge. It knows that, and little of what they do not span.
* ``both``, the default: half of each, the product in place of the ridge. On MiniLM with 300 public records and a guard
  of 16 rows it reached .999 without noise and .973 at sigma = .1, the product .997 and .781, the sample .999 and .971.

How well it can do is known beforehand: :mod:`attacks.gradient._snr`.

Source: Turin (1960), "An introduction to matched filters"; Martens and Grosse (2015) for the Kronecker product.
"""

from typing import ClassVar

from attacks._base import ThreatModel
from attacks.gradient._base import BATCH, LABEL, NOISE, PUBLIC, server
from attacks.gradient._filter_attack import FilterAttack
from attacks.gradient._seen import Seen


class MatchedFilter(FilterAttack):
    """Standardised inner product of a candidate's gradient with the upload, in the metric of public gradients."""

    citation: ClassVar[str] = "turin1960, martens2015"
    threat: ClassVar[ThreatModel] = server(LABEL, BATCH, NOISE, PUBLIC)
    family = "adaptive"

    def shown(self, seen: Seen) -> Seen:
        return seen
