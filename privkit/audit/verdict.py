"""One verdict per claim, with a family-wise error over everything that was tried."""

import math

from attacks.statistics.power import noise_fault_power, trials_for_power
from attacks.statistics.residuals import scale_power
from reports.findings import CellFindings, Promised, Verdict

SIGNIFICANCE = 0.001
POWER = 0.9
_ORDER = list(Verdict)


def worst(cells: tuple[CellFindings, ...]) -> Verdict:
    """Return the worst verdict of several cells."""
    return min((cell.verdict for cell in cells), key=_ORDER.index, default=Verdict.OK)


def decide(
    promised: Promised | None,
    *,
    violations: list[str],
    mu: float | None,
    canaries: tuple[int, int],
    residual_coordinates: int,
    significance: float,
) -> tuple[Verdict, tuple[str, ...]]:
    """Return the verdict on one cell, and why.

    Args:
        promised: its claim; ``None`` when nothing was released.
        violations: a sentence for every way in which the claim is contradicted.
        mu: claimed mu of the whole run, if the claim is Gaussian.
        canaries: planted as they stand, and negated.
        residual_coordinates: coordinates of known noise.
        significance: what one test gets of the family-wise error.
    """
    if violations:
        return Verdict.VIOLATION, tuple(violations)
    if promised is None:
        return Verdict.OK, ("nothing left the clients",)
    if not promised.claim.covered:
        broken = tuple(f"{name}: {reason}" for name, reason in promised.claim.broken)
        return Verdict.NOT_COVERED, broken or ("nothing was promised",)
    power = _power(mu, canaries, residual_coordinates, significance)
    if power >= POWER:
        return Verdict.OK, (f"nothing above its ceiling; power {power:.3f} to see half the noise missing",)
    return Verdict.INCONCLUSIVE, (_what_would_settle(mu, power, significance),)


def _power(mu: float | None, canaries: tuple[int, int], coordinates: int, significance: float) -> float:
    found = [0.0]
    if mu and min(canaries) >= 2:
        found.append(
            noise_fault_power(
                mu=mu, n_members=canaries[0], n_non_members=canaries[1], significance=significance
            )
        )
    if coordinates:
        found.append(scale_power(coordinates, significance=significance))
    return max(found)


def _what_would_settle(mu: float | None, power: float, significance: float) -> str:
    seen = f"power {power:.2f} to see half the noise missing, {POWER} is wanted"
    if not mu or math.isinf(mu):
        return f"{seen}; plant canaries"
    try:
        trials = 2 * trials_for_power(mu=mu, significance=significance, power=POWER)
    except ValueError:
        return f"{seen}; at mu = {mu:.3g} no number of canaries would settle it, only vectors before noise"
    return f"{seen}; {trials} canaries in all would settle it"
