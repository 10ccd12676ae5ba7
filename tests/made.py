"""Findings made by hand: every kind of cell that a page must show, without a training run behind them."""

import base64
import io
import math

import numpy as np
from PIL import Image

from accountant.claims import Claim, claim
from accountant.contract import Contract, Counts, DependsOn
from accountant.events import Event, Gaussian, NonPrivate, Repeated
from accountant.gaussian import epsilon_from_mu
from accountant.tradeoff import GaussianCurve
from attacks.statistics.auc import auc
from attacks.statistics.best_f1 import best_f1
from attacks.statistics.certify.together import certificates
from attacks.statistics.estimate import Estimate
from attacks.statistics.roc import roc
from attacks.statistics.seeds import over_seeds
from attacks.statistics.tightness import tightness
from attacks.statistics.tpr import tpr_at_fpr
from reports.findings import (
    CellFindings,
    Cost,
    Findings,
    Histogram,
    Inversion,
    Line,
    NoiseScale,
    Promised,
    Rebuilt,
    Spending,
    Taken,
    Verdict,
)

ROUNDS = 5
HEAD = "74991183dddeec02cd8237d1533a3add8ad788cc1d16c5737e93042e14c36cd9"
SERVER, NOBODY = "honest-but-curious server", "the public encoder"


def findings(*, each: int = 200, cells: tuple[CellFindings, ...] | None = None) -> Findings:
    """Return an audit of five cells: covered, uncovered, undefended, silent, and one that broke a promise."""
    made = cells if cells is not None else every_cell(each)
    return Findings(
        cells=made,
        verdict=min((c.verdict for c in made), key=list(Verdict).index, default=Verdict.OK),
        adjusted_p={f"{c.name}/{t.attack}/AUC": t.adjusted_p for c in made for t in c.taken},
        significance=0.001,
        failed=("tracing on frozen-none: ValueError: no <finite> score",),
        provenance={
            "attacks": [{"name": name} for name in ("cosine", "likelihood_ratio", "antipodal")],
            "runs": {cell.name: run(cell) for cell in made},
        },
    )


def every_cell(each: int) -> tuple[CellFindings, ...]:
    """Return one cell of each kind."""
    return (
        cell("adapter-igpp-8", each=each, epsilon=8.0, encoder=DependsOn.PRIVATE_STATE),
        cell("frozen-igpp-1", each=each, epsilon=1.0, inverted=True),
        cell("frozen-igpp-8", each=each, epsilon=8.0, fault=2.0),
        silent("frozen-local"),
        cell("frozen-none", each=each, epsilon=None, inverted=True),
    )


def cell(
    name: str,
    *,
    each: int = 200,
    epsilon: float | None = 8.0,
    encoder: DependsOn = DependsOn.PUBLIC,
    fault: float = 1.0,
    inverted: bool = False,
) -> CellFindings:
    """Return the findings of one cell.

    Args:
        name: of the cell.
        each: members and non-members that every attack scores.
        epsilon: that is promised, with delta 1e-5; ``None`` for no defense.
        encoder: what the encoder depends on.
        fault: how much more than allowed the canaries see.
        inverted: whether feature inversion was tried.
    """
    rng = np.random.default_rng(sum(name.encode()))
    mu = None if epsilon is None else {1.0: 0.268, 8.0: 1.666}[epsilon]
    promised = Promised(stated=epsilon, claim=claimed(mu, encoder))
    covered = promised.claim.covered
    limit = GaussianCurve(mu=mu) if covered and mu else None
    seen = 5.0 if mu is None else mu
    taken = (
        attack("cosine", rng, each, 0.02 * seen, limit, tier="public"),
        attack("likelihood_ratio", rng, each, 0.2 * seen, limit, tier="shadow"),
        attack("antipodal", rng, each, seen * fault, limit, tier="design"),
        Taken(attack="tracing", tier="shadow", reason="the attacker owns no reference records; set split"),
    )
    verdict, reasons = judged(promised.claim, fault)
    return CellFindings(
        name=name,
        seeds=3,
        model="frozen encoder",
        promised=promised,
        taken=taken,
        noise=None if mu is None else NoiseScale(ratio=1 / fault, coordinates=5120, adjusted_p=0.5),
        cost=cost(rng, sent=6300.0),
        verdict=verdict,
        reasons=reasons,
        ceiling=None if limit is None else curve_of(limit),
        spending=spending(mu, seen),
        inversions=(inversion("public"), inversion("white")) if inverted else (),
    )


def silent(name: str) -> CellFindings:
    """Return a cell that released nothing."""
    return CellFindings(
        name=name,
        seeds=3,
        model="frozen encoder",
        promised=None,
        taken=(),
        noise=None,
        cost=cost(np.random.default_rng(1), sent=0.0),
        verdict=Verdict.OK,
        reasons=("nothing left the clients",),
    )


def claimed(mu: float | None, encoder: DependsOn) -> Claim:
    """Return the claim of Gaussian releases that make ``mu`` in all, or of releases without noise."""
    contract = Contract(
        clip_norm=1.0,
        encoder=encoder,
        assignment=DependsOn.PUBLIC,
        counts=Counts.PUBLIC,
        hyperparameters=DependsOn.PUBLIC,
        fresh_noise=True,
    )
    one: Event = (
        NonPrivate(reason="no noise is added", contract=contract)
        if mu is None
        else Gaussian(noise_multiplier=math.sqrt(ROUNDS) / mu, contract=contract)
    )
    return claim(Repeated(event=one, count=ROUNDS), delta=1e-5)


def judged(claim: Claim, fault: float) -> tuple[Verdict, tuple[str, ...]]:
    """Return a verdict and its reasons."""
    if fault > 1:
        return Verdict.VIOLATION, ("AUC of antipodal is above the ceiling of the claim (adjusted p 1e-12)",)
    if not claim.covered:
        return Verdict.NOT_COVERED, tuple(f"{b.id}: {b.reason}" for b in claim.broken) or (
            "nothing was promised",
        )
    return Verdict.OK, ("nothing significantly above its ceiling; power 0.998",)


def attack(
    name: str, rng: np.random.Generator, each: int, mu: float, limit: GaussianCurve | None, *, tier: str
) -> Taken:
    """Return what an attack whose scores are normal, ``mu`` apart, got."""
    n = each if tier != "design" else each // 2
    members, others = rng.normal(mu, 1.0, n), rng.normal(0.0, 1.0, n)
    area, found = auc(members, others), tpr_at_fpr(members, others, fpr="0.01")
    share = [area.value if area.value is not None else 0.5] * 3
    alone = 0.5 + (share[0] - 0.5) / math.sqrt(ROUNDS)
    return Taken(
        attack=name,
        tier=tier,
        who=SERVER,
        knows=(NOBODY,),
        auc=area,
        macro_auc=area.value,
        tpr=found,
        best_f1=best_f1(members, others),
        auc_by_seed=over_seeds(share),
        auc_ceiling=None if limit is None else limit.auc,
        tpr_ceiling=None if limit is None else limit.tpr(0.01),
        tightness=tightness(area, mu=limit.mu) if tier == "design" and limit else None,
        certificates=certificates(members - mu / 2, others - mu / 2, delta=1e-5) if tier == "design" else (),
        adjusted_p=None if limit is None else 1.0,
        roc=roc_line(members, others),
        histogram=histogram(members, others),
        by_round=tuple(alone for _ in range(ROUNDS)),
        cumulative=tuple(0.5 + (alone - 0.5) * math.sqrt(t + 1) for t in range(ROUNDS)),
    )


def roc_line(members: np.ndarray, others: np.ndarray) -> Line:
    """Return at most 200 points of an ROC, dense where rates are small."""
    curve = roc(members, others)
    keep = np.unique(np.geomspace(1, len(curve.threshold_K), 200).astype(int)) - 1
    return Line(
        fpr=tuple((curve.false_positives_K[keep] / len(others)).tolist()),
        tpr=tuple((curve.true_positives_K[keep] / len(members)).tolist()),
    )


def curve_of(limit: GaussianCurve) -> Line:
    """Return a ceiling as points."""
    fpr = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 60)])
    return Line(fpr=tuple(fpr.tolist()), tpr=tuple(limit.tpr(float(x)) for x in fpr))


def histogram(members: np.ndarray, others: np.ndarray) -> Histogram:
    """Return counts in 30 bins."""
    edges = np.histogram_bin_edges(np.concatenate([members, others]), bins=30)
    inside, outside = (np.histogram(x, edges)[0] for x in (members, others))
    return Histogram(
        edges=tuple(edges.tolist()), members=tuple(inside.tolist()), non_members=tuple(outside.tolist())
    )


def spending(mu: float | None, seen: float) -> Spending:
    """Return what was spent and certified after each round."""
    grown = [math.sqrt((t + 1) / ROUNDS) for t in range(ROUNDS)]
    return Spending(
        spent=tuple(math.inf if mu is None else epsilon_from_mu(mu=mu * g, delta=1e-5) for g in grown),
        certified=tuple(epsilon_from_mu(mu=0.8 * seen * g, delta=1e-5) for g in grown),
    )


def cost(rng: np.random.Generator, *, sent: float) -> Cost:
    """Return a cost with three seeds and four domains."""
    seeds = {s: float(a) for s, a in enumerate(rng.uniform(0.6, 0.9, 3))}
    accuracy = over_seeds(list(seeds.values()))
    mean = accuracy.mean or 0.0
    domains = ("mnist", "optdigits", "pendigits", "syn")
    return Cost(
        accuracy=accuracy,
        by_domain={d: mean + x for d, x in zip(domains, (0.1, 0.05, -0.05, -0.1), strict=True)},
        by_round=tuple(mean - 0.3 * 0.5**t for t in range(ROUNDS)),
        per_seed=seeds,
        against_local=mean - 0.86,
        bytes_per_round=sent,
        seconds=0.5,
    )


def inversion(tier: str) -> Inversion:
    """Return an inversion of four prototypes."""
    return Inversion(
        attack="inversion",
        tier=tier,
        who=SERVER,
        knows=(NOBODY,),
        target="the last release of every client",
        budget="4 targets, 2 restarts of 200 steps",
        seeds=1,
        cosine=0.61,
        cosine_random=0.21,
        cosine_between=0.35,
        cosine_released=0.97,
        centred=0.30,
        cffd=0.84,
        cffd_random=1.30,
        cffd_least=0.40,
        top1=Estimate(value=0.75, low=0.2, high=0.99, level=0.95, n_members=4, n_non_members=0, null=0.1),
        top1_undone=1.0,
        rebuilt=tuple(rebuilt(client, label) for client in range(2) for label in range(2)),
    )


def rebuilt(client: int, label: int) -> Rebuilt:
    """Return one rebuilt picture, which is noise."""
    seed = 10 * client + label
    return Rebuilt(
        client=client,
        label=label,
        to_released=0.97,
        to_clean=0.61,
        centred=0.3,
        random=0.21,
        between=0.35,
        hit=label == 0,
        steps=180,
        converged=True,
        picture=png(seed),
        nearest=png(seed + 100),
        mean=png(seed + 200),
    )


def png(seed: int) -> str:
    """Return a 16 x 16 grey picture as base64 PNG."""
    pixels = np.random.default_rng(seed).integers(0, 256, (16, 16)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()


def run(cell: CellFindings) -> dict[str, object]:
    """Return the provenance of a cell's runs."""
    released = cell.promised is not None
    defended = released and cell.promised is not None and cell.promised.stated is not None
    return {
        "seeds": [0, 1, 2],
        "config": {
            "data": {"name": "digits", "per_class": 200},
            "encoder": {"name": "usps_cnn", "normalize": True},
            "method": {"name": "fedproto" if released else "local_only"},
            "defense": {"name": "igpp" if defended else "none"},
            "rounds": ROUNDS,
        },
        "data": {"images.mnist": HEAD},
        "versions": {"numpy": "2.4.6", "privkit-audit": "0.1.0"},
        "ledger_heads": [HEAD, HEAD[::-1], HEAD[1:] + "0"],
    }
