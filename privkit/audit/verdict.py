"""One verdict per claim, with a family-wise error over everything that was tried."""

import math
from dataclasses import dataclass

from accountant.contract import Relation
from attacks.statistics.estimate import Estimate
from attacks.statistics.power import noise_fault_power, trials_for_power
from reports import numbers
from reports.findings import CellFindings, Promised, Verdict

SIGNIFICANCE = 0.001
POWER = 0.9
MOST_REASONS = 3
OUTSIDE = 2.0  # a missing clip then shows at least as well as half the noise missing
_ORDER = list(Verdict)
_MISSING = {
    Relation.ADD_REMOVE: "no canary was planted or left out, which is the question under",
    Relation.ZERO_OUT: "canaries test a replacement and do not apply under",
    Relation.REPLACE_CLIENT: "no canary stands for a whole client under",
    Relation.ZERO_OUT_CLIENT: "no canary stands for a whole client under",
}
_WAYS_OUT = {
    Relation.ADD_REMOVE: "add {name: presence} to other_canaries",
    Relation.ZERO_OUT: "claim 'replace one record' to have it tested",
}
_REPLACEMENTS = (Relation.REPLACE_SAME_LABEL, Relation.REPLACE_ANY_LABEL)


def worst(cells: tuple[CellFindings, ...]) -> Verdict:
    """Return the worst verdict of several cells."""
    return min((cell.verdict for cell in cells), key=_ORDER.index, default=Verdict.OK)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a verdict of OK may rest on: tests that were made, not tests that could have been.

    Attributes:
        mu: claimed mu of all Gaussian noise of the run, if there is any.
        mu_of_ceiling: the same with what selections next to the noise add to the ceiling.
        planted: canaries of each answer that were scored; zeros when none was.
        shortest: length of the shortest canary; ``None`` when none was scored.
        clip_norm: that the contracts declare, if any.
        relation: that is claimed; each kind of canaries tests one relation and nothing else.
        significance: what one test gets of the family-wise error.
        tightness: mu that canaries show / mu claimed, with its interval; ``None`` when none was scored.
        share: mu that canaries can show at most / mu claimed, in (0, 1]: what they move of everything noise was put on.
        plants: whether canaries can be planted in such a run at all.
    """

    mu: float | None
    mu_of_ceiling: float | None
    planted: tuple[int, int]
    shortest: float | None
    clip_norm: float | None
    relation: Relation
    significance: float
    tightness: Estimate | None = None
    share: float = 1.0
    plants: bool = True

    @property
    def power(self) -> float:
        """Return the power of the canaries to see half the noise missing; 0 when none was scored."""
        ratio = self.ratio
        if not self.mu_of_ceiling or ratio is None or min(self.planted) < 2:
            return 0.0
        return noise_fault_power(
            mu=self.mu_of_ceiling,
            n_members=self.planted[0],
            n_non_members=self.planted[1],
            significance=self.significance,
            noise_ratio=ratio,
        )

    @property
    def ratio(self) -> float | None:
        """Return by how much half the noise falls short of the ceiling; ``None`` where it does not."""
        if not self.mu or not self.mu_of_ceiling:
            return None
        ratio = self.mu_of_ceiling / (2 * self.mu * self.share)
        return ratio if ratio < 1 else None


def decide(
    promised: Promised | None, *, violations: list[str], evidence: Evidence
) -> tuple[Verdict, tuple[str, ...]]:
    """Return the verdict on one cell, and why.

    Args:
        promised: its claim; ``None`` when nothing was released.
        violations: a sentence for every way in which the claim is contradicted.
        evidence: what was tested.
    """
    if violations:
        more = len(violations) - MOST_REASONS
        return Verdict.VIOLATION, (
            *violations[:MOST_REASONS],
            *([f"{more} more tests say so"] if more > 0 else []),
            *_shown(evidence),
        )
    if promised is None:
        return Verdict.OK, ("nothing left the clients",)
    if not promised.claim.covered:
        broken = tuple(f"{b.id}: {b.reason}" for b in promised.claim.broken)
        return Verdict.NOT_COVERED, broken or ("nothing was promised",)
    doubt = _doubt(evidence)
    if doubt:
        return Verdict.INCONCLUSIVE, (doubt, *_shown(evidence))
    power = f"power {evidence.power:.3f} to see half the noise missing everywhere"
    return Verdict.OK, (f"nothing significantly above its ceiling; {power}", *_shown(evidence))


def _shown(evidence: Evidence) -> tuple[str, ...]:
    """Return the sentence that says how much of the claimed mu canaries show, or nothing."""
    found = evidence.tightness
    if found is None or None in (found.value, found.low, found.high, found.level):
        return ()
    interval = f"{numbers.rate(found.low)} to {numbers.rate(found.high)} at 95 %"
    return (f"canaries show {numbers.rate(found.value)} of the claimed mu ({interval})",)


def _doubt(evidence: Evidence) -> str:
    """Return why nothing above a ceiling does not yet mean that all is well, or nothing."""
    if evidence.relation.about_clients:
        return (
            f"{_MISSING[evidence.relation]} {evidence.relation.value!r}; clip and noise are as claimed where what was "
            "computed before the noise is in hand, and no attack of its own tests them"
        )
    if not evidence.plants:
        return (
            "no canary can be planted in a run that tunes a transformer, so a missing clip would go unseen; that the "
            "noise is as large as claimed was tested on what was sent"
        )
    if evidence.relation not in _REPLACEMENTS and evidence.shortest is None:
        return (
            f"{_MISSING[evidence.relation]} {evidence.relation.value!r}, so a missing clip would go unseen; "
            f"{_WAYS_OUT[evidence.relation]}"
        )
    if evidence.shortest is None:
        return (
            f"no canary was scored by attack antipodal, so a missing clip would go unseen{_enough(evidence)}"
        )
    if evidence.clip_norm is not None and evidence.shortest < OUTSIDE * evidence.clip_norm:
        return (
            f"canaries of length {evidence.shortest:.3g} lie within {OUTSIDE:g} times the clip norm "
            f"{evidence.clip_norm:.3g}, so a missing clip would go unseen; plant them further out"
        )
    if evidence.power < POWER:
        return (
            f"power {evidence.power:.2f} to see half the noise missing, {POWER} is wanted{_enough(evidence)}"
        )
    return ""


def _enough(evidence: Evidence) -> str:
    """Return how many canaries would settle it, as the end of a sentence."""
    mu, ratio = evidence.mu_of_ceiling, evidence.ratio
    if not mu or math.isinf(mu):
        return "; plant canaries"
    never = f"; at mu = {mu:.3g} no number of canaries would settle it"
    if ratio is None:
        return never
    try:
        trials = trials_for_power(mu=mu, significance=evidence.significance, power=POWER, noise_ratio=ratio)
    except ValueError:
        return never
    return f"; {2 * trials} canaries in all would settle it"
