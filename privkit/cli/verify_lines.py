"""What a verification says, line by line."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accountant.rounded import rounded_down, rounded_up

if TYPE_CHECKING:
    from accountant.verify import Verification


def lines(found: "Verification") -> Iterator[str]:
    """Yield what is true, whether the stated number is, and what other neighbours cost where that is known."""
    if found.claim.unbounded is not None:
        yield f"true: no epsilon holds, {found.claim.unbounded}"
        yield "FALSE: no noise anywhere else makes up for that"
        return
    claim = found.claim
    yield (
        f"true: {_epsilon(found)} at delta {found.delta:g}; delta {found.true_delta:.4g} at epsilon {found.epsilon:g} "
        f"({claim.relation.value}; {claim.bound.of(claim.method)})"
    )
    yield f"{_verdict(found)}: {_noise(found)}"
    if found.least_c1 is not None:
        yield f"smallest c1 that is right here: {found.least_c1:.5g}"
    yield from _known_relations(found)
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


def _epsilon(found: "Verification") -> str:
    """Return the true number, in brackets where an assumption that it rests on is broken."""
    number = f"epsilon {found.claim.epsilon:.6g}"
    if not found.broken:
        return number
    ids = dict.fromkeys(broken.id for broken in found.broken)
    return f"({number}, did {' and '.join(ids)} hold)"


def _known_relations(found: "Verification") -> Iterator[str]:
    for relation, under in found.under.items():
        if relation is found.claim.relation:
            continue
        if under.at_fixed_counts is not None:
            yield f"{relation.value}: {_number(under.at_fixed_counts)} at fixed counts, which it changes"
        elif under.epsilon is not None:
            yield f"{relation.value}: {_number(under.epsilon)}"


def _number(epsilon: float) -> str:
    return "no epsilon" if math.isinf(epsilon) else f"epsilon {epsilon:.4g}"


def unknown_relations(found: "Verification") -> tuple[str, ...]:
    """Return under which neighbours no number is known, a sentence for each reason; none where none holds at all."""
    if found.claim.unbounded is not None:
        return ()
    reasons: dict[str, list[str]] = {}
    for relation, epsilon in found.relations.items():
        if isinstance(epsilon, str):
            reasons.setdefault(_without(relation.value, epsilon), []).append(relation.value)
    return tuple(f"{'; '.join(relations)}: not known, {reason}" for reason, relations in reasons.items())


def _without(relation: str, reason: str) -> str:
    """Return a reason without the relation that it names, so that equal ones are said once."""
    return reason.replace(f" under {relation!r}", "")
