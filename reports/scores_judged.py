"""What a file of scores shows: each attack with its intervals, and which attacks cannot be told apart."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from attacks.statistics.advantage import max_advantage
from attacks.statistics.area import Area, delong, obuchowski
from attacks.statistics.auc import auc
from attacks.statistics.bootstrap import bootstrap_tpr
from attacks.statistics.clusters import Clusters, number_clusters
from attacks.statistics.estimate import Estimate
from attacks.statistics.multiple import holm
from attacks.statistics.paired_area import AreaDifference, paired_difference, unpaired_difference
from attacks.statistics.tpr import TprAtFpr, tpr_at_fpr
from privkit.errors import InputError
from privkit.scorefiles._base import Direction, Evaluation, Pairing, Scored

FPR = 0.01
SIGNIFICANCE = 0.05
"""Family-wise error of the comparisons within one file."""


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgedAttack:
    """One attack of a file.

    Attributes:
        attack: its name.
        member_has: its declared direction.
        auc: with its interval.
        tpr: at a false-positive rate of 1 %, with counts; its threshold is in the unit of the file.
        advantage: the largest TPR - FPR, with its mean and p-value without any skill.
        remark: what is unusual about the scores, in words; may be empty.
    """

    attack: str
    member_has: Direction
    auc: Estimate
    tpr: TprAtFpr
    advantage: Estimate
    remark: str

    @property
    def balanced_accuracy(self) -> float | None:
        """Return the best (TPR + TNR) / 2 over thresholds."""
        return _balanced(self.advantage.value)

    @property
    def balanced_accuracy_null(self) -> float | None:
        """Return what a score without any skill reaches on average."""
        return _balanced(self.advantage.null)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "attack": self.attack,
            "member_has": self.member_has.value,
            "n_members": self.auc.n_members,
            "n_non_members": self.auc.n_non_members,
            "auc": self.auc.to_dict(),
            "tpr_at_fpr": self.tpr.to_dict(),
            "max_advantage": self.advantage.to_dict(),
            "best_balanced_accuracy": self.balanced_accuracy,
            "best_balanced_accuracy_null": self.balanced_accuracy_null,
            "remark": self.remark,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgedPair:
    """Two attacks of a file, the one with the larger AUC first.

    Attributes:
        first: name of one.
        second: name of the other.
        difference: of their AUCs, at least 0.
        paired: whether they were compared candidate by candidate.
        adjusted_p: after Holm, over all pairs of the file; ``None`` where there was no test.
    """

    first: str
    second: str
    difference: AreaDifference
    paired: bool
    adjusted_p: float | None

    @property
    def within_noise(self) -> bool | None:
        """Return whether the difference is no more than chance gives; ``None`` where there was no test."""
        return None if self.adjusted_p is None else self.adjusted_p > SIGNIFICANCE

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "first": self.first,
            "second": self.second,
            "paired": self.paired,
            "adjusted_p": self.adjusted_p,
            "within_noise": self.within_noise,
            "difference": self.difference.to_dict(),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgedFile:
    """One file of scores.

    Attributes:
        file: its path, as it was given.
        format: name of its format.
        evaluation: what it holds.
        attacks: in the order of the file.
        pairs: all pairs of attacks that have an AUC.
        unpaired: whether candidates were asked to be taken as different ones.
    """

    file: str
    format: str
    evaluation: Evaluation
    attacks: list[JudgedAttack]
    pairs: list[JudgedPair]
    unpaired: bool

    @property
    def pairing(self) -> Pairing:
        """Return whether attacks are taken to have scored the same candidates, and who says so."""
        return Pairing.DIFFERENT if self.unpaired else self.evaluation.pairing

    @property
    def released(self) -> bool:
        """Return whether releases, not records, are the independent units."""
        return any(scored.releases is not None for scored in self.evaluation.attacks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "file": self.file,
            "format": self.format,
            "model": self.evaluation.model,
            "data": self.evaluation.data,
            "same_candidates": self.pairing.value,
            "independent_units": "releases" if self.released else "records",
            "attacks": [found.to_dict() for found in self.attacks],
            "pairs": [found.to_dict() for found in self.pairs],
        }


def judge(file: str, format: str, evaluation: Evaluation, *, unpaired: bool = False) -> JudgedFile:
    """Return what the scores of one file show.

    Args:
        file: what to call it.
        format: name of its format.
        evaluation: what it holds.
        unpaired: compare AUCs as those of different candidates, whatever the file says.

    Raises:
        InputError: a score is not a finite number, or release ids do not fit; the sentence names file and attack.
    """
    attacks = [_attack(file, scored) for scored in evaluation.attacks]
    paired = not unpaired and evaluation.pairing is not Pairing.DIFFERENT
    by_value = sorted(
        ((found.auc.value, scored) for found, scored in zip(attacks, evaluation.attacks, strict=True)
         if found.auc.value is not None),
        key=lambda valued: -valued[0],
    )  # fmt: skip
    pairs = list(_compared([scored for _, scored in by_value], paired=paired))
    return JudgedFile(
        file=file,
        format=format,
        evaluation=evaluation,
        attacks=attacks,
        pairs=_adjusted(pairs),
        unpaired=unpaired,
    )


def _attack(file: str, scored: Scored) -> JudgedAttack:
    try:
        members, non_members = scored.toward_member()
        area = auc(members, non_members, clusters=scored.releases)
        return JudgedAttack(
            attack=scored.attack,
            member_has=scored.member_has,
            auc=area,
            tpr=_tpr(members, non_members, scored),
            advantage=max_advantage(members, non_members),
            remark=_remark(area, np.concatenate([members, non_members])),
        )
    except ValueError as error:
        raise InputError(f"{file}: attack {scored.attack!r}: {error}") from None


def _remark(area: Estimate, scores: np.ndarray) -> str:
    """Return what makes the variance of an AUC vanish, if anything does."""
    if area.value in (0.0, 1.0):
        return (
            "scores of members and non-members do not overlap: the AUC's interval is exact (Clopper-Pearson), and a "
            "difference to it has the variance of the other AUC alone"
        )
    if area.value is not None and np.ptp(scores) == 0:
        return "all scores are the same: they tell nobody apart, and the AUC's interval is exact (Clopper-Pearson)"
    return ""


def _tpr(members: np.ndarray, non_members: np.ndarray, scored: Scored) -> TprAtFpr:
    """Return the rate; its interval over members, or over releases where several members share one."""
    found = tpr_at_fpr(members, non_members, fpr=FPR)
    if scored.releases is not None and found.estimate.value is not None and _shared(scored.releases[0]):
        over = bootstrap_tpr(members, non_members, fpr=FPR, seed=0, clusters=scored.releases)
        found = replace(found, estimate=over)
    point = found.confusion
    if point is None or point.threshold is None:
        return found
    in_file = scored.member_has.sign * point.threshold + 0.0
    return replace(found, confusion=replace(point, threshold=in_file))


def _shared(ids: Any) -> bool:
    return len(set(np.asarray(ids).tolist())) < len(ids)


def _compared(attacks: list[Scored], *, paired: bool) -> Iterator[JudgedPair]:
    for first, second in combinations(attacks, 2):
        together = paired and _alike(first, second)
        difference = _paired(first, second) if together else unpaired_difference(_area(first), _area(second))
        yield JudgedPair(
            first=first.attack,
            second=second.attack,
            difference=difference,
            paired=together,
            adjusted_p=difference.p_value,
        )


def _alike(first: Scored, second: Scored) -> bool:
    """Return whether two attacks scored as many candidates, of the same releases."""
    sizes = [(len(one.members), len(one.non_members)) for one in (first, second)]
    ids = [_ids(one.releases) for one in (first, second)]
    return sizes[0] == sizes[1] and ids[0] == ids[1]


def _ids(releases: Clusters | None) -> list[Any] | None:
    return None if releases is None else [np.asarray(part).tolist() for part in releases]


def _paired(first: Scored, second: Scored) -> AreaDifference:
    return paired_difference(first.toward_member(), second.toward_member(), clusters=first.releases)


def _area(scored: Scored) -> Area:
    members, non_members = scored.toward_member()
    if scored.releases is None:
        return delong(members, non_members)
    ids: Clusters = scored.releases
    return obuchowski(members, non_members, *number_clusters(ids, len(members), len(non_members)))


def _adjusted(pairs: list[JudgedPair]) -> list[JudgedPair]:
    found = holm({str(i): pair.adjusted_p for i, pair in enumerate(pairs)}, significance=SIGNIFICANCE)
    return [replace(pair, adjusted_p=found.adjusted[str(i)]) for i, pair in enumerate(pairs)]


def _balanced(advantage: float | None) -> float | None:
    return None if advantage is None else (1 + advantage) / 2
