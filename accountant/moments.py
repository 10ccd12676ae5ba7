r"""How far one record can move sums of class moments, under each neighbouring relation.

A record ``(z, y)`` with ``|z| <= R`` puts ``q = (a0, a1 z/R, a2 (z*z)/R^2, a3 v, a4 w)`` into the block of its class
and nothing into any other; ``v`` and ``w`` are bounded by 0 and 1 (uncertainties, say). All weights are at least 0,
and of those that are 0 nothing is released. In units of the query:

* **add, remove, zero out**: one block moves by ``q``. ``|z*z| = sqrt(sum z_i^4) <= sum z_i^2 <= R^2``, so the length
  is at most ``S = sqrt(a0^2 + a1^2 + a2^2 + a3^2 + a4^2)``, which ``z = R e_1``, ``v = w = 1`` reaches.
* **replace, another label**: two blocks move, by ``q`` and by ``q'``: at most ``sqrt(2) S``, which is reached.
* **replace, same label**: one block moves by ``q - q'``; its first entry is 0, the last two are at most ``a3, a4``
  long. With ``R = 1``, ``u = z - z'``, ``v = z + z'``: ``z_i^2 - z'_i^2 = u_i v_i``, and ``|z|, |z'| <= 1`` say that
  ``|u|^2 + |v|^2 + 2 t <= 4`` for ``t = |u . v|``. Numbers ``u_i v_i`` that add up to ``+-t`` with absolute values
  that add up to ``h <= |u||v|`` have squares that add up to at most ``P^2 + N^2 = (h^2 + t^2) / 2`` (P, N: the sums of
  the positive and of the negative ones). So for ``s = |u|^2`` the move squared is at most
  ``a1^2 s + a2^2 (s (4 - 2t - s) + t^2) / 2``, convex in t, so largest at one end of ``0 <= t <= |u||v|``.

  At ``t = 0`` that is ``a1^2 s + a2^2 s (4 - s) / 2``, largest at ``s = min(4, 2 + a1^2/a2^2)``, where it is at least
  what ``s = 2`` gives, ``2 a1^2 + 2 a2^2``. At ``t = |u||v|``, so ``|u| + |v| = 2``, it is
  ``a1^2 s + a2^2 s (2 - sqrt s)^2``: more than at ``t = 0`` only while ``sqrt s < 2/3``, and there below
  ``4/9 a1^2 + 64/81 a2^2``, so never the largest. So the largest move squared is

  ``a3^2 + a4^2 + 4 a1^2`` if ``a1^2 >= 2 a2^2``, else ``a3^2 + a4^2 + (a1^2 + 2 a2^2)^2 / (2 a2^2)``,

  reached in two dimensions or more by unit vectors with ``u = sqrt(s/2) (1, 1)``, ``v = sqrt((4-s)/2) (1, -1)``.
* **replace, any label**: the larger of the last two. Neither always is: with ``a = (.5, 1, 0, 0, 0)`` a record of the
  same label moves 2, one of another 1.58.

Source: corrections to the analysis of probabilistic prototypes; the same-label case is derived here
"""

import math
from collections.abc import Sequence

from accountant.contract import Relation

RELATIONS = (
    Relation.REPLACE_SAME_LABEL,
    Relation.REPLACE_ANY_LABEL,
    Relation.ADD_REMOVE,
    Relation.ZERO_OUT,
)
"""Which data sets may be neighbours: those that differ in a record."""
NAMES = ("count", "sum", "squares", "epistemic", "aleatoric")
"""What the five weights are of, in order."""


def moments_sensitivity(weights: Sequence[float], relation: Relation) -> float:
    """Return how far one record can move sums of weighted moments, over all classes, in l2 norm.

    Args:
        weights: ``a0`` to ``a4``, each finite and at least 0, the first two above 0.
        relation: which data sets are neighbours.

    Returns:
        above 0, in units of the query: a whole count is ``a0``, a whole clip norm ``a1``.

    Raises:
        ValueError: there are not five such weights, or the relation is not about records.

    >>> round(moments_sensitivity((1.0, 1.0, 1.0, 0.0, 0.0), Relation.REPLACE_ANY_LABEL), 4)
    2.4495
    """
    refuse_no_weights(weights)
    alone = math.hypot(*weights)
    match relation:
        case Relation.ADD_REMOVE | Relation.ZERO_OUT:
            return alone
        case Relation.REPLACE_SAME_LABEL:
            return _same_label(*weights[1:])
        case Relation.REPLACE_ANY_LABEL:
            return max(_same_label(*weights[1:]), math.sqrt(2) * alone)
        case _:
            raise ValueError(
                f"sums of moments have no sensitivity under {relation.value!r}; claim one about records."
            )


def _same_label(a1: float, a2: float, a3: float, a4: float) -> float:
    # in products of a1 with ratios at most 1: squares of weights may underflow
    if a1 * a1 >= 2 * a2 * a2:
        return math.hypot(2 * a1, a3, a4)
    return math.hypot((a1 * (a1 / a2) + 2 * a2) / math.sqrt(2), a3, a4)


def refuse_no_weights(weights: Sequence[float]) -> None:
    """Raise unless there are five weights, finite and at least 0, of which count and sum have some."""
    found = tuple(weights)
    fine = len(found) == len(NAMES) and all(math.isfinite(a) and a >= 0 for a in found) and min(found[:2]) > 0
    if not fine:
        raise ValueError(
            f"weights={found}: sums of moments need five, of {', '.join(NAMES)}, each finite and at least 0, the first "
            "two above 0."
        )
