"""Rows P9 to P11: shadow models, and what they are scored with.

Ours is what attacks of ``attacks/model/`` call. Peers, in ``attack_peers/``, follow the structure of other code; none
of it is copied. In P9 and P10 the last of the peer's (or of the ridge) heads is the target, and all others attack it.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.metrics import roc_auc_score

from attacks.model import _lira, _ridge, _stacked
from attacks.model._lira import Gaussians, online
from attacks.model._signals import hinges, rescaled_logits
from attacks.model.rmia import dominated
from benchmarks.pairs import Pair, Work
from benchmarks.protocol import Result
from benchmarks.shadows import SCHEDULE, Given

_row = partial(Pair, module="benchmarks.membership")

# ---------------------------------------------------------------------- P9: many shadows at once


def many() -> Given:
    return Given.of(records=4000, dim=256, num_classes=10, shadows=64)


def stacked_logits(given: Given) -> np.ndarray:
    """Return the logits of all records under every shadow, shape [S, N, C]."""
    weights_dCS = _stacked.train(
        given.x, given.y, given.held, num_classes=given.num_classes, schedule=SCHEDULE, seed=(2,)
    )[-1]
    flat = given.x @ weights_dCS.reshape(len(weights_dCS), -1)
    return flat.reshape(len(flat), given.num_classes, -1).transpose(2, 0, 1)


def stacked_shadows(given: Given) -> Work:
    return partial(stacked_logits, given)


def torch_loop(given: Given) -> Work:
    from benchmarks.attack_peers import shadow_loop

    return partial(shadow_loop.torch_logits, given)


def sklearn_loop(given: Given) -> Work:
    from benchmarks.attack_peers import logistic_loop

    return partial(logistic_loop.sklearn_logits, given)


def strength(given: Given, others_SN: np.ndarray, target_N: np.ndarray) -> float:
    """Return the AUC of LiRA against the last of the halves, by models on all others."""
    held = given.held[:-1]
    ins, outs = (
        Gaussians(_lira.mean(others_SN, used), _lira.std(others_SN, used, pooled=True))
        for used in (held, ~held)
    )
    return float(roc_auc_score(given.held[-1], online(target_N, ins, outs)))


def same_strength(given: Given, theirs: Work, *, allowed: float = 0.01) -> tuple[str, bool]:
    """Attack the peer's last head with all others of each side."""
    mine_SN, other_SN = (
        rescaled_logits(logits.astype(np.float64), given.y) for logits in (stacked_logits(given), theirs())
    )
    mine, other = (strength(given, values[:-1], other_SN[-1]) for values in (mine_SN, other_SN))
    return f"LiRA's AUC {mine:.3f} and {other:.3f}, {allowed:g} apart allowed", not abs(
        mine - other
    ) <= allowed


TARGETS = 4


def equal_strength(given: Given, theirs: Work, *, allowed: float = 0.01) -> tuple[str, bool]:
    """Attack some heads of each side with all others of that side: solvers differ, and heads must attack as well."""
    mine, other = (_on_its_own(given, logits) for logits in (stacked_logits(given), theirs()))
    said = f"LiRA's AUC on heads of its own kind {mine:.3f} and {other:.3f}, {allowed:g} apart allowed"
    return said, not abs(mine - other) <= allowed


def _on_its_own(given: Given, logits_SNC: np.ndarray) -> float:
    values_SN, found = rescaled_logits(logits_SNC.astype(np.float64), given.y), []
    for target in range(TARGETS):
        order = np.roll(np.arange(len(values_SN)), target)  # the last of these is the target
        values, turned = values_SN[order], replace(given, held=given.held[order])
        found.append(strength(turned, values[:-1], values[-1]))
    return float(np.mean(found))


# ---------------------------------------------------------------------- P10: both sides of every record, in closed form

PENALTY, FEW = 200.0, 16


def paired_margins(given: Given, shadows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the margins of all records with and without them, under so many ridge heads; shape [S, N] each."""
    found = _ridge.paired(
        given.x, given.y, given.held[:shadows], num_classes=given.num_classes, penalty=PENALTY
    )
    return hinges(found.ins, given.y), hinges(found.outs, given.y)


def paired_shadows(given: Given) -> Work:
    return partial(paired_margins, given, FEW)


def refits_and_strength(given: Given) -> tuple[str, bool]:
    """Compare closed forms with refits of some records, and 16 pairs with 63 ordinary heads against a ridge head."""
    apart = max(_from_refit(given, shadow, row) for shadow, row in ((0, 0), (1, 0), (2, 7), (15, 3999)))
    ins_SN, outs_SN = paired_margins(given, len(given.held))
    ordinary = np.where(given.held, ins_SN, outs_SN)
    plain = strength(given, ordinary[:-1], ordinary[-1])
    few_in, few_out = ins_SN[:FEW], outs_SN[:FEW]
    every = np.ones(few_in.shape, dtype=bool)
    ins, outs = (Gaussians(_lira.mean(v, every), _lira.std(v, every, pooled=True)) for v in (few_in, few_out))
    paired = float(roc_auc_score(given.held[-1], online(ordinary[-1], ins, outs)))
    said = f"refits {apart:.0e} apart, 1e-05 allowed; AUC of {FEW} pairs {paired:.3f}, of 63 ordinary {plain:.3f}"
    return said, not (apart <= 1e-5 and paired >= plain - 0.005)


def _from_refit(given: Given, shadow: int, row: int) -> float:
    found = _ridge.paired(
        given.x, given.y, given.held[[shadow]], num_classes=given.num_classes, penalty=PENALTY
    )
    x, target = given.x.astype(np.float64), np.eye(given.num_classes)[given.y]
    off = []
    for outputs, inside in ((found.ins, True), (found.outs, False)):
        held = given.held[shadow].copy()
        held[row] = inside
        gram = x[held].T @ x[held] + PENALTY * np.eye(x.shape[1])
        off.append(np.abs(outputs[0, row] - x[row] @ np.linalg.solve(gram, x[held].T @ target[held])).max())
    return float(max(off))


# ---------------------------------------------------------------------- P11: RMIA

A, GAMMA = 0.3, 2.0


def probabilities(n: int, shadows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities of candidates and population under the target, [n], and reference models, [n, S]."""
    rng = np.random.default_rng(3)
    return rng.random(n), rng.random((n, shadows)), rng.random(n), rng.random((n, shadows))


def sorted_scores(given: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    target_N, refs_NS, target_M, refs_MS = given
    ratio_N, ratio_M = (
        target / (0.5 * ((1 + A) * refs.mean(1) + (1 - A)))
        for target, refs in ((target_N, refs_NS), (target_M, refs_MS))
    )
    return dominated(ratio_N, ratio_M, gamma=GAMMA)


def rmia_sorted(n: int) -> Work:
    return partial(sorted_scores, probabilities(n, 64))


def rmia_matrix(n: int) -> Work:
    from benchmarks.attack_peers import rmia_matrix as peer

    given = probabilities(n, 64)
    return lambda: peer.scores(*given, a=A, gamma=GAMMA)


def same_scores(n: int) -> tuple[str, bool]:
    same = np.array_equal(rmia_sorted(n)(), rmia_matrix(n)())
    return f"scores {'identical' if same else 'differ'}", not same


_ROWS = [
    _row(
        id="P9",
        workload="64 shadow heads, n = 4000, d = 256",
        peer="torch, a loader per shadow",
        ours=lambda: stacked_shadows(many()),
        theirs=lambda: torch_loop(many()),
        check=lambda: same_strength(given := many(), torch_loop(given)),
        must=7.0,
        stretch=15.0,
        turns=3,
    ),
    _row(
        id="P9",
        workload="64 shadow heads, 20 passes each",
        peer="sklearn, a fit per shadow",
        ours=lambda: stacked_shadows(many()),
        theirs=lambda: sklearn_loop(many()),
        check=lambda: equal_strength(given := many(), sklearn_loop(given)),
        must=7.0,
        stretch=15.0,
        turns=3,
    ),
    _row(
        id="P10",
        workload="16 paired ridge shadows for 64",
        peer="torch, a loader per shadow",
        ours=lambda: paired_shadows(many()),
        theirs=lambda: torch_loop(many()),
        check=lambda: refits_and_strength(many()),
        must=25.0,
        stretch=60.0,
        turns=3,
        loops=3,
    ),
    _row(
        id="P11",
        workload="RMIA, n = m = 20000, 64 references",
        peer="a matrix of all pairs",
        ours=lambda: rmia_sorted(20_000),
        theirs=lambda: rmia_matrix(20_000),
        check=lambda: same_scores(20_000),
        must=40.0,
        stretch=80.0,
        turns=3,
        loops=3,
    ),
]

PAIRS = {pair.key: pair for pair in _ROWS}


def pair(key: str) -> list[Result]:
    return PAIRS[key].results()


ROWS = [partial(pair, key) for key in PAIRS]
