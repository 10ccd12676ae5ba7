"""What an audit found, as values: promised, taken, cost, and one verdict."""

from dataclasses import dataclass
from enum import StrEnum

from accountant.claims import Claim
from attacks.statistics.certify.certificate import Certificate
from attacks.statistics.estimate import Estimate
from attacks.statistics.seeds import OverSeeds
from attacks.statistics.tpr import TprAtFpr


class Verdict(StrEnum):
    """What an audit says about a claim, worst first."""

    VIOLATION = "VIOLATION"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_COVERED = "NOT COVERED"
    OK = "OK"


@dataclass(frozen=True, kw_only=True)
class Promised:
    """What was promised, and what the noise really gives.

    Attributes:
        stated: epsilon that the configuration states for the whole run; ``None`` when it states none.
        claim: what the ledger's events cost the client that spends most.
    """

    stated: float | None
    claim: Claim


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What one attack got out of one cell.

    Attributes:
        attack: its name.
        tier: what it is assumed to know.
        auc: over all candidates of all seeds, with an interval that knows which share a release.
        macro_auc: mean over the cells (client, class) of each seed, of their AUCs.
        tpr: true-positive rate at 1 % false positives.
        advantage: TPR - FPR on held-out candidates.
        auc_by_seed: spread of the AUC over seeds.
        auc_ceiling: the proof's limit; ``None`` where no proof covers the cell.
        tpr_ceiling: likewise at 1 % false positives.
        tightness: mu that a canary shows / mu claimed; ``None`` for attacks that are no canary.
        certificate: epsilon certified from below; ``None`` likewise.
        adjusted_p: smallest Holm-corrected p-value of its tests against the ceiling.
        reason: why there are no numbers; empty when there are.
    """

    attack: str
    tier: str
    auc: Estimate | None = None
    macro_auc: float | None = None
    tpr: TprAtFpr | None = None
    advantage: Estimate | None = None
    auc_by_seed: OverSeeds | None = None
    auc_ceiling: float | None = None
    tpr_ceiling: float | None = None
    tightness: Estimate | None = None
    certificate: Certificate | None = None
    adjusted_p: float | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class NoiseScale:
    """The white-box check of the noise's size.

    Attributes:
        ratio: standard deviation drawn / claimed.
        coordinates: residuals behind it.
        adjusted_p: Holm-corrected, of "at least as large as claimed".
    """

    ratio: float
    coordinates: int
    adjusted_p: float | None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What the cell cost.

    Attributes:
        accuracy: mean over clients in the last round, over seeds; ``None`` if the run kept no metrics.
        by_domain: the same for each client, in their order.
        against_local: accuracy minus that of the local-only control of the same model, if there is one.
        bytes_per_round: sent by one client in one round, on average.
        seconds: training time of one run (its share of the batch it was trained in), if known.
    """

    accuracy: OverSeeds | None
    by_domain: dict[str, float]
    against_local: float | None
    bytes_per_round: float
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class CellFindings:
    """All there is to say about one configuration.

    Attributes:
        name: of the cell.
        seeds: number of runs behind it.
        model: what of the model was trained, in words.
        promised, taken, noise, cost: the three answers.
        verdict: about this cell's claim.
        reasons: one sentence each.
    """

    name: str
    seeds: int
    model: str
    promised: Promised | None
    taken: tuple[Taken, ...]
    noise: NoiseScale | None
    cost: Cost
    verdict: Verdict
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The whole audit.

    Attributes:
        cells: in the order of their names.
        verdict: the worst of theirs.
        adjusted_p: Holm-corrected p-value of every test there was, by cell and name.
        significance: that error.
        failed: attacks that broke, with cause; their cells are judged without them.
        provenance: config and data hashes, versions, seeds.
    """

    cells: tuple[CellFindings, ...]
    verdict: Verdict
    adjusted_p: dict[str, float | None]
    significance: float
    failed: tuple[str, ...]
    provenance: dict[str, object]

    @property
    def tests(self) -> int:
        """Return the number of tests behind the family-wise error."""
        return sum(p is not None for p in self.adjusted_p.values())
