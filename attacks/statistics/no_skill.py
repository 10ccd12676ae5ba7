"""What a score without any skill reaches at a false-positive rate: more than the rate, and how much by luck."""

from accountant import check
from attacks.statistics import hypergeometric


def no_skill_tpr(n_non_members: int, *, allowed: int) -> float:
    """Return the mean TPR at ``allowed`` false positives of a continuous score without any skill.

    It is above ``allowed / N``, because the threshold sits between two non-members.

    >>> no_skill_tpr(100, allowed=1)
    0.019801980198019802
    """
    check.count(n_non_members=n_non_members)
    check.non_negative(allowed=allowed)
    return min(1.0, (allowed + 1) / (n_non_members + 1))


def no_skill_p_value(true_positives: int, n_members: int, *, allowed: int, n_non_members: int) -> float:
    """Return the probability of so many true positives or more at ``allowed`` false positives without skill.

    The count is beta-binomial(M, k+1, N-k): at least x members above the (k+1)-th largest non-member, that is
    at most k non-members among the top x + k of all. Exact for continuous scores, an upper bound under ties.

    >>> round(no_skill_p_value(5, 100, allowed=1, n_non_members=100), 6)
    0.105824
    """
    check.count(n_members=n_members, n_non_members=n_non_members)
    check.non_negative(allowed=allowed)
    if not 0 <= true_positives <= n_members:
        raise ValueError(f"true_positives={true_positives} must lie from 0 to n_members={n_members}.")
    if true_positives == 0 or allowed >= n_non_members:
        return 1.0
    return hypergeometric.probability_at_most(
        allowed, draws=true_positives + allowed, good=n_non_members, bad=n_members
    )
