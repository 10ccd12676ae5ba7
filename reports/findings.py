"""What an audit found, as values: promised, taken, cost, and one verdict."""

from dataclasses import dataclass
from enum import StrEnum

from accountant.claims import Claim
from attacks._base import Family
from attacks.statistics.certify.certificate import Certificate, NoCertificate
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
class Elsewhere:
    """What the same releases cost under one neighbouring relation.

    Attributes:
        relation: in words.
        epsilon: at the claim's delta, in nats; ``None`` where none is defined.
        reason: why there is none; empty if there is.
        at_fixed_counts: what it would be if the record did not change the counts; ``None`` where that is no question.
    """

    relation: str
    epsilon: float | None
    reason: str = ""
    at_fixed_counts: float | None = None


@dataclass(frozen=True, kw_only=True)
class Promised:
    """What was promised, and what the noise really gives.

    Attributes:
        stated: epsilon that the configuration states for the whole run; ``None`` when it states none.
        claim: what the ledger's events cost the client that spends most.
        elsewhere: the same under every neighbouring relation.
    """

    stated: float | None
    claim: Claim
    elsewhere: tuple[Elsewhere, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Line:
    """Points of a curve that a figure draws: rates in [0, 1], both of one length, ``fpr`` ascending."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """How scores are spread: counts of members and non-members between neighbouring edges.

    The outermost bins hold what lies beyond.
    """

    edges: tuple[float, ...]
    members: tuple[int, ...]
    non_members: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What one attack on gradients found, for tables that choose the best of its family.

    Attributes:
        tried: attacks of its family in the audit, itself included.
        auc: its AUC with an interval that holds whichever of these turns out best.
        chance: p-value of "who is a member of an upload could be any of its candidates"; ``None`` where untested.
        tied: whether all candidates have one score, which tells none from another.
    """

    tried: int
    auc: Estimate
    chance: float | None
    tied: bool = False


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What one attack got out of one cell.

    Attributes:
        attack: its name.
        tier: what it is assumed to know, in one word.
        who: the attacker's role, in words.
        knows: everything it has beside the transcript, in words.
        auc: over all candidates of all seeds, with an interval that knows which share a release.
        macro_auc: mean over the cells (client, class) of each seed, of their AUCs.
        tpr: true-positive rate at 1 % false positives.
        advantage: TPR - FPR on held-out candidates.
        best_f1: F1 at the threshold that is best on these very candidates: optimistic, to be read beside its null.
        auc_by_seed: spread of the AUC over seeds.
        auc_of_run: the AUC of every run, in their order; ``None`` where a run has none.
        auc_ceiling: the proof's limit; ``None`` where no proof covers the cell.
        tpr_ceiling: likewise at 1 % false positives.
        tightness: mu that a canary shows / mu claimed; ``None`` for attacks that are no canary.
        certificates: epsilon certified from below by every method, or why it states none; empty likewise.
        adjusted_p: smallest Holm-corrected p-value of its tests against the ceiling.
        roc: its ROC, every point or as many as a figure can show.
        histogram: of its scores.
        by_round: AUC from each round alone, in their order; ``None`` where there is none.
        predicted: AUC that the attacker expected from its own records, before any upload; ``None`` where no law tells.
        predicted_by_round: the same for the uploads of each round, in their order.
        cumulative: AUC from all rounds up to each.
        family: what tables of defenses compare it as; ``None`` for attacks on anything but gradients.
        compared: what these tables need of it; ``None`` likewise, or without numbers.
        reason: why there are no numbers; empty when there are.
    """

    attack: str
    tier: str
    who: str = ""
    knows: tuple[str, ...] = ()
    auc: Estimate | None = None
    macro_auc: float | None = None
    tpr: TprAtFpr | None = None
    advantage: Estimate | None = None
    best_f1: Estimate | None = None
    auc_by_seed: OverSeeds | None = None
    auc_of_run: tuple[float | None, ...] = ()
    auc_ceiling: float | None = None
    tpr_ceiling: float | None = None
    tightness: Estimate | None = None
    certificates: tuple[Certificate | NoCertificate, ...] = ()
    adjusted_p: float | None = None
    roc: Line | None = None
    histogram: Histogram | None = None
    by_round: tuple[float | None, ...] = ()
    predicted: float | None = None
    predicted_by_round: tuple[float | None, ...] = ()
    cumulative: tuple[float | None, ...] = ()
    family: Family | None = None
    compared: Compared | None = None
    reason: str = ""

    @property
    def asks_about_canaries(self) -> bool:
        """Return whether its candidates are canaries, which test the mechanism, and not records."""
        return self.tier == "design"

    @property
    def certificate(self) -> Certificate | None:
        """Return the first certificate that applies, which tables print; their order is fixed beforehand."""
        return next((one for one in self.certificates if isinstance(one, Certificate)), None)


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    """One image rebuilt from a released prototype, and what it is to be compared with.

    Attributes:
        client, label: whose prototype.
        to_released: cosine between the rebuilt image's embedding and what was released.
        to_clean: cosine to the mean of the class's member embeddings, before clip and noise.
        centred: the same after the client's mean over all classes is taken from both.
        random: cosine to that mean of an image rebuilt, with the same budget, from a random direction.
        between: mean cosine of that mean to those of the client's other classes.
        hit: whether, among the client's class means, its own is the nearest by cosine.
        steps: optimisation steps of the restart that was kept.
        converged: whether the stop rule, not the budget, ended it.
        picture: the rebuilt image, as a base64 PNG.
        nearest: the member of the class whose embedding is nearest, likewise.
        mean: the mean image of the class's members, likewise.
        psnr: of the rebuilt image to the class's nearest member in pixels, in dB.
        ssim: to the same member.
        rank: of that member among the class's members and as many exchangeable records; 1 is nearest.
    """

    client: int
    label: int
    to_released: float
    to_clean: float
    centred: float
    random: float
    between: float
    hit: bool
    steps: int
    converged: bool
    picture: str
    nearest: str
    mean: str
    psnr: float | None = None
    ssim: float | None = None
    rank: int | None = None


@dataclass(frozen=True, kw_only=True)
class Inversion:
    """What rebuilding images got out of one cell: the three published measures and those of pixels, beside floors.

    Attributes:
        attack: its name.
        tier: what it is assumed to know, in one word.
        who, knows: the attacker, in words.
        target: which releases are inverted, in words.
        budget: targets, restarts and steps, in words.
        seeds: runs behind it.
        cosine: mean cosine to the clean class mean.
        cosine_random: the same for images rebuilt from random directions: the floor of the budget.
        cosine_between: mean cosine between clean means of different classes: the floor of the data.
        cosine_released: mean cosine to what was released: did the optimiser converge?
        centred: mean centred cosine; 0 without skill.
        cffd: class-wise Frechet distance of rebuilt to real embeddings.
        cffd_random: the same for the random directions.
        cffd_least: what rebuilding every class mean exactly would give, ``Tr S_c`` on average.
        top1: share of targets that hit their own class, with interval; its no-skill value is 1/C.
        top1_undone: the same share for the released vectors themselves, no attack made.
        psnr: mean PSNR to the nearest member in pixels, in dB.
        psnr_random: the same for the images rebuilt from random directions.
        psnr_class: the same for the mean image of the class's non-members: what knowing the class alone gives.
        ssim, ssim_random, ssim_class: the same of the SSIM to that member.
        rank: mean rank of the nearest member among members and non-members of the class.
        rank_chance: the same without any memory of who was a member.
        of_run: cosine, centred cosine, Top-1, PSNR, SSIM and rank of every run that was attacked, by name.
        rebuilt: every target.
        reason: why there are no numbers; empty when there are.
    """

    attack: str
    tier: str
    who: str = ""
    knows: tuple[str, ...] = ()
    target: str = ""
    budget: str = ""
    seeds: int = 0
    cosine: float | None = None
    cosine_random: float | None = None
    cosine_between: float | None = None
    cosine_released: float | None = None
    centred: float | None = None
    cffd: float | None = None
    cffd_random: float | None = None
    cffd_least: float | None = None
    top1: Estimate | None = None
    top1_undone: float | None = None
    psnr: float | None = None
    psnr_random: float | None = None
    psnr_class: float | None = None
    ssim: float | None = None
    ssim_random: float | None = None
    ssim_class: float | None = None
    rank: float | None = None
    rank_chance: float | None = None
    of_run: tuple[dict[str, float], ...] = ()
    rebuilt: tuple[Rebuilt, ...] = ()
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Spending:
    """How the promise is used up: one entry per round, after that round.

    Attributes:
        spent: epsilon of everything released so far, in nats; infinite where nothing is promised.
        certified: epsilon that the canaries certify from below so far; ``None`` where there are none.
    """

    spent: tuple[float, ...] = ()
    certified: tuple[float | None, ...] = ()


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
class Overlap:
    """The share of the true top-k coordinates that was in VPP's informative group.

    Attributes:
        share: mean over rounds and clients of a run, in [0, 1], over seeds.
        chance: what a random group of the same size reaches on average, k / d.
    """

    share: OverSeeds
    chance: float


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What the cell cost.

    Attributes:
        accuracy: mean over clients in the last round, over seeds; ``None`` if the run kept no metrics.
        by_domain: the same for each client, in their order.
        by_round: mean over clients and seeds after each round.
        per_seed: mean over clients in the last round, of each seed.
        against_local: accuracy minus that of the local-only control of the same model, if there is one.
        bytes_per_round: sent by one client in one round, on average.
        seconds: training time of one run (its share of the batch it was trained in), if known.
    """

    accuracy: OverSeeds | None
    by_domain: dict[str, float]
    by_round: tuple[float, ...]
    per_seed: dict[int, float]
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
        ceiling: the proof's limit as a curve; ``None`` where no proof covers the cell.
        spending: epsilon after each round.
        inversions: feature inversion, one entry per tier tried.
        overlap: how much of the coordinates that matter a partition chose; ``None`` where none was chosen.
        ended: why the runs ended before all planned rounds; empty when they did not.
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
    ceiling: Line | None = None
    spending: Spending = Spending()
    inversions: tuple[Inversion, ...] = ()
    overlap: Overlap | None = None
    ended: str = ""


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
