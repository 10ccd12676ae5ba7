"""One attack beside the others of its family: whichever is chosen afterwards, what is said of it holds."""

from attacks.statistics.auc import auc
from attacks.statistics.exchangeable import exchangeable_p_value
from attacks.statistics.scores import split
from privkit.audit.taken import Judged
from reports.findings import Compared

_ERROR = 0.05


def compared(judged: Judged, *, tried: int) -> Compared:
    """Return an attack's AUC with an interval for whoever takes the best of a family, and what chance makes of it.

    Each of ``tried`` intervals has an error of 0.05 / ``tried``, so all hold together, and that of the best too.

    Args:
        judged: its scores with the answers.
        tried: attacks of its family, fixed before any was scored; at least 1.

    Source: Dunn (1961), "Multiple comparisons among means", JASA 56: Bonferroni intervals, under any dependence.
    """
    members, others = split(judged.scores, judged.members)
    ids = (judged.clusters[judged.members], judged.clusters[~judged.members])
    return Compared(
        tried=tried,
        auc=auc(members, others, clusters=ids, level=1 - _ERROR / tried),
        chance=exchangeable_p_value(judged.scores, judged.members, judged.clusters),
        tied=bool((judged.scores == judged.scores[:1]).all()),
    )
