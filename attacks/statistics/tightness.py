"""How much of the claimed mu an attack has shown."""

import math

from scipy import special

from accountant import check
from attacks.statistics.estimate import Estimate


def tightness(auc: Estimate, *, mu: float) -> Estimate:
    r"""Return the mu that an AUC shows, as a share of the mu claimed.

    .. math:: \hat\mu / \mu = \sqrt 2\, \Phi^{-1}(AUC) / \mu

    For a canary, about 1 is a tight audit, below .7 a broken one (or a weak attacker), and a lower end above
    1 contradicts the claim.

    Args:
        auc: AUC of normal scores of equal variance, such as a canary's, with its interval.
        mu: claimed mu of everything the score has seen, > 0.

    Returns:
        Share, negative below an AUC of 0.5; ends of the interval are ``None`` where they are infinite. No
        value, with the reason, if the AUC has none, or is 0 or 1.

    >>> canary = Estimate(value=0.638, low=0.62, high=0.656, level=0.95, n_members=2000, n_non_members=2000)
    >>> round(tightness(canary, mu=0.5016).value, 3)
    0.996
    """
    check.positive(mu=mu)
    n = {"n_members": auc.n_members, "n_non_members": auc.n_non_members}
    value = _share(auc.value, mu)
    if value is None:
        return Estimate.missing(auc.note or f"an AUC of {auc.value} shows no finite mu", **n)
    return Estimate(
        value=value,
        low=_share(auc.low, mu),
        high=_share(auc.high, mu),
        level=auc.level,
        kind=f"from the AUC: {auc.kind}" if auc.kind else "",
        null=0.0,
        note=auc.note,
        **n,
    )


def _share(auc: float | None, mu: float) -> float | None:
    return None if auc in (None, 0.0, 1.0) else math.sqrt(2) * float(special.ndtri(auc)) / mu
