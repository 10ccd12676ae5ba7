"""What a verification says, line by line."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accountant.rounded import rounded_down, rounded_up

if TYPE_CHECKING:
    from accountant.verify import Verification


def lines(found: "Verification") -> Iterator[str]:
    """Yield what is true, whether the stated number is, and what other neighbours would cost."""
    if found.claim.unbounded is not None:
        yield f"true: no epsilon holds, {found.claim.unbounded}"
        yield "FALSE: no noise anywhere else makes up for that"
        return
    yield (
        f"true: epsilon {found.claim.epsilon:.6g} at delta {found.delta:g}; "
        f"delta {found.true_delta:.4g} at epsilon {found.epsilon:g} ({found.claim.method}, {found.claim.bound.value})"
    )
    yield f"{_verdict(found)}: {_noise(found)}"
    if found.least_c1 is not None:
        yield f"smallest c1 that is right here: {found.least_c1:.5g}"
    yield from _relations(found)
    if found.examples:
        yield f"why: privkit explain {' '.join(found.examples)}"


def noise_printed(sigma: float, *, valid: bool) -> str:
    """Return a noise multiplier to six digits: never as more than misses a number, nor as less than keeps it."""
    return (rounded_up if valid else rounded_down)(sigma)


def _verdict(found: "Verification") -> str:
    if not found.valid:
        return "FALSE"
    return "NOT COVERED" if found.broken else "TRUE"


def _noise(found: "Verification") -> str:
    excess = found.excess_percent
    if excess is None or found.least_sigma is None:
        nothing = "there is no Gaussian noise to compare"
        return (
            nothing
            if found.sigma is None
            else "no noise keeps it, the rest alone spends more than is claimed"
        )
    least = rounded_up(found.least_sigma)
    if not found.valid:
        return f"{-excess:.3g} % of the noise is missing, sigma {least} is needed"
    if excess < 0.05:
        return "as little noise as any analysis here allows"
    return f"{excess:.3g} % more noise than needed, sigma {least} is enough"


def _relations(found: "Verification") -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for relation, epsilon in found.relations.items():
        if isinstance(epsilon, str):
            reasons.setdefault(_without(relation.value, epsilon), []).append(relation.value)
        elif relation is not found.claim.relation:
            number = "no epsilon" if math.isinf(epsilon) else f"epsilon {epsilon:.4g}"
            yield f"{relation.value}: {number}"
    for reason, relations in reasons.items():
        yield f"{'; '.join(relations)}: not known, {reason}"


def _without(relation: str, reason: str) -> str:
    """Return a reason without the relation that it names, so that equal ones are said once."""
    return reason.replace(f" under {relation!r}", "")
