"""True-positive rate at a false-positive rate: exact counts, unsplit ties, and what no skill would reach."""

from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from accountant import check
from attacks.statistics.binomial import clopper_pearson
from attacks.statistics.confusion import Confusion
from attacks.statistics.estimate import Estimate, empty_class
from attacks.statistics.no_skill import no_skill_p_value, no_skill_tpr
from attacks.statistics.scores import as_scores

Rate = float | int | str | Fraction | Decimal


@dataclass(frozen=True, kw_only=True)
class TprAtFpr:
    """A true-positive rate with everything that is needed to read it.

    Attributes:
        fpr: the false-positive rate asked for, a fraction in (0, 1).
        allowed: false positives it allows, ``floor(fpr * N)`` in exact arithmetic.
        confusion: counts at the lowest threshold that allows no more; ``None`` if a class is empty.
        randomised: TPR of a test that splits the next block of ties at random to spend exactly ``fpr``.
        estimate: the TPR with its interval, no-skill value and p-value; no value if N < 1/fpr.
    """

    fpr: float
    allowed: int
    confusion: Confusion | None
    randomised: float | None
    estimate: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return asdict(self)


def exact_rate(fpr: Rate) -> Fraction:
    """Return a false-positive rate as the decimal fraction that was written, not as its binary neighbour.

    Args:
        fpr: a fraction strictly between 0 and 1: a float, a text such as "0.001" or "1/1000", or a Fraction.

    Raises:
        ValueError: not a number, or outside (0, 1). Ten per cent is 0.1; 10 is refused.

    >>> exact_rate(0.29) * 100
    Fraction(29, 1)
    """
    try:
        rate = fpr if isinstance(fpr, Fraction) else Fraction(str(fpr))
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"fpr={fpr!r} is not a number; write 1 % as 0.01 or '1/100'.") from None
    if not 0 < rate < 1:
        raise ValueError(f"fpr={fpr} must be a fraction strictly between 0 and 1; write 1 % as 0.01.")
    return rate


def allowed_false_positives(n_non_members: int, *, fpr: Rate) -> int:
    """Return how many of N non-members a rate allows to be flagged: ``floor(fpr * N)``, exactly.

    In floating point 0.29 * 100 is below 29:

    >>> allowed_false_positives(100, fpr=0.29)
    29
    """
    check.count(n_non_members=n_non_members)
    return int(exact_rate(fpr) * n_non_members)


def operating_point(members: ArrayLike, non_members: ArrayLike, *, allowed: int) -> Confusion:
    """Return the counts at the lowest threshold that flags at most ``allowed`` non-members.

    A block of tied scores is flagged whole or not at all. The threshold is a score that occurs, or ``None``
    when even the highest block holds too many non-members; then nobody is flagged.

    Args:
        members: scores of members, at least one.
        non_members: scores of non-members, at least one.
        allowed: non-members that may be flagged, at least 0.

    >>> point = operating_point([3, 2, 2, 0], [2, 1, 1, 0], allowed=1)
    >>> str(point), point.threshold
    ('TP 3/4, FP 1/4', 2.0)
    """
    check.non_negative(allowed=allowed)
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    flagged_M = member_M > _first_excess(non_member_N, allowed)
    flagged_N = non_member_N > _first_excess(non_member_N, allowed)
    flagged = np.concatenate([member_M[flagged_M], non_member_N[flagged_N]])
    return Confusion(
        true_positives=int(flagged_M.sum()),
        n_members=len(member_M),
        false_positives=int(flagged_N.sum()),
        n_non_members=len(non_member_N),
        threshold=float(flagged.min()) if len(flagged) else None,
        threshold_source=f"these scores: lowest with at most {_false_positives(allowed)}",
    )


def tpr_at_fpr(members: ArrayLike, non_members: ArrayLike, *, fpr: Rate, level: float = 0.95) -> TprAtFpr:
    """Return the true-positive rate at a false-positive rate.

    | scores | result |
    |---|---|
    | a class is empty | no value, with the reason |
    | N < 1/fpr | no value: N non-members cannot show such a rate; counts at 0 false positives are kept |
    | N < 10/fpr | value, and the note says how coarse the realised rate is |
    | more than floor(fpr N) non-members in the top block | 0, nobody flagged |

    Args:
        members: scores of members, higher = member.
        non_members: scores of non-members.
        fpr: fraction strictly between 0 and 1, read as the decimal that was written.
        level: confidence level of the two-sided Clopper-Pearson interval. It is conditional on the threshold,
            and on the release if scores share one: then see :func:`attacks.statistics.bootstrap.bootstrap_tpr`.

    Returns:
        The rate, the counts behind it, its no-skill mean ``(k + 1) / (N + 1)`` and its exact p-value.

    Source: no-skill law: the (k+1)-th largest of N exchangeable scores, Beta(k+1, N-k).

    >>> found = tpr_at_fpr([1.0] * 30 + [0.5] * 70, [1.0] * 3 + [0.2] * 97, fpr=0.01)
    >>> found.estimate.value, round(found.randomised, 3)
    (0.0, 0.1)
    """
    check.open_unit(level=level)
    rate = exact_rate(fpr)
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    m, n = len(member_M), len(non_member_N)
    allowed = int(rate * n)
    reason = empty_class(m, n)
    if reason:
        missing = Estimate.missing(reason, n_members=m, n_non_members=n)
        return TprAtFpr(fpr=float(rate), allowed=allowed, confusion=None, randomised=None, estimate=missing)
    point = operating_point(member_M, non_member_N, allowed=allowed)
    return TprAtFpr(
        fpr=float(rate),
        allowed=allowed,
        confusion=point,
        randomised=_randomised(member_M, non_member_N, point, rate),
        estimate=_estimate(point, rate, allowed, level),
    )


def _false_positives(count: int) -> str:
    return f"{count} false positive{'s' * (count != 1)}"


def _first_excess(non_member_N: Float[np.ndarray, " N"], allowed: int) -> float:
    """Return the largest non-member score that may not be flagged; minus infinity if all may."""
    n = len(non_member_N)
    if allowed >= n:
        return -np.inf
    return float(np.partition(non_member_N, n - 1 - allowed)[n - 1 - allowed])


def _randomised(
    member_M: Float[np.ndarray, " M"],
    non_member_N: Float[np.ndarray, " N"],
    point: Confusion,
    rate: Fraction,
) -> float:
    """Return the TPR when the next block of ties is flagged with the probability that spends the rate."""
    block = _first_excess(non_member_N, int(rate * len(non_member_N)))
    members_in, non_members_in = int((member_M == block).sum()), int((non_member_N == block).sum())
    share = (rate * len(non_member_N) - point.false_positives) / non_members_in
    return float((point.true_positives + share * members_in) / len(member_M))


def _estimate(point: Confusion, rate: Fraction, allowed: int, level: float) -> Estimate:
    m, n = point.n_members, point.n_non_members
    null = no_skill_tpr(n, allowed=allowed)
    if rate * n < 1:
        needed = -(-rate.denominator // rate.numerator)
        reason = (
            f"{n} non-members cannot show a false-positive rate of {float(rate):g}; at least {needed} can"
        )
        return Estimate.missing(reason, n_members=m, n_non_members=n, null=null)
    low, high = clopper_pearson(point.true_positives, m, level=level)
    coarse = f"coarse: only {_false_positives(allowed)} allowed; {int(10 / rate):,} non-members are advised"
    return Estimate(
        value=point.tpr,
        low=low,
        high=high,
        level=level,
        kind="Clopper-Pearson, two-sided, conditional on the threshold",
        n_members=m,
        n_non_members=n,
        null=null,
        p_value=no_skill_p_value(point.true_positives, m, allowed=allowed, n_non_members=n),
        note=coarse if rate * n < 10 else "",
    )
