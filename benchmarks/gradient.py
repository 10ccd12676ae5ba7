"""Rows P7, P8 and P22: projection residuals, and the public subspace of FISGuard.

Ours is what ``attacks/gradient/`` calls. The peer of P7 and P8, in ``gradient_peers/``, follows the structure of the
code published with ProjRes; it is asked about few candidates and its time multiplied, since it does the same for
each.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.metrics import roc_auc_score

from attacks.gradient._precision import floor_of
from attacks.gradient._residual import relative_residuals
from attacks.gradient._subspace import leading_rows, subspace
from benchmarks.pairs import Pair, Work
from benchmarks.protocol import Result

_row = partial(Pair, module="benchmarks.gradient")

LAYERS, CANDIDATES, PROBED = 12, 200, 4


@dataclass(frozen=True)
class Size:
    """Of one row: m outputs and d inputs of each map, tokens in the batch, units that are dead."""

    m: int
    d: int
    tokens: int
    dead: int = 0


P7 = Size(m=384, d=768, tokens=64)
P8 = (Size(m=384, d=768, tokens=300), Size(m=768, d=768, tokens=690), Size(m=384, d=768, tokens=300, dead=20))


@dataclass(frozen=True, eq=False)
class Given:
    """Maps and candidates.

    Attributes:
        gradients: of each map, in float32.
        exact: the same without rounding.
        inputs_LNd: of candidates; the first few are tokens of the batch.
        members: how many.
    """

    gradients: list[np.ndarray]
    exact: list[np.ndarray]
    inputs_LNd: np.ndarray
    members: int

    @classmethod
    def of(cls, size: Size, *, layers: int = LAYERS, candidates: int = CANDIDATES) -> "Given":
        rng = np.random.default_rng(7)
        members = min(candidates // 2, size.tokens)
        gradients, exact, inputs = [], [], []
        for _ in range(layers):
            slopes, tokens, others = (
                rng.standard_normal(shape).astype(np.float32)
                for shape in (
                    (size.tokens, size.m),
                    (size.tokens, size.d),
                    (candidates - members, size.d),
                )
            )
            slopes[:, : size.dead] = 0
            gradients.append(slopes.T @ tokens)
            exact.append(slopes.T.astype(np.float64) @ tokens)
            inputs.append(np.concatenate([tokens[:members], others]))
        return cls(gradients, exact, np.stack(inputs), members)


def factored_once(given: Given) -> np.ndarray:
    """Return the residuals of all candidates in all maps, shape [L, N]; each gradient is factored once."""
    found = []
    for gradient_md, inputs_Nd in zip(given.gradients, given.inputs_LNd, strict=True):
        sent_md = gradient_md.astype(np.float64)
        floor = floor_of(sent_md, transport="fp32", stored=gradient_md.dtype)
        basis_kd = subspace(sent_md, floor).basis.astype(np.float32)
        found.append(relative_residuals(inputs_Nd, basis_kd))
    return np.stack(found)


def oracle(given: Given, tokens: int) -> np.ndarray:
    """Return the same from a singular value decomposition of the exact gradient, in float64."""
    found = []
    for exact_md, inputs_Nd in zip(given.exact, given.inputs_LNd, strict=True):
        basis_kd = np.linalg.svd(exact_md, full_matrices=False)[2][
            : min(tokens, (exact_md != 0).any(1).sum())
        ]
        found.append(relative_residuals(inputs_Nd.astype(np.float64), basis_kd))
    return np.stack(found)


def area(residuals_LN: np.ndarray, members: int) -> float:
    """Return the AUC of the least residual over maps."""
    return float(roc_auc_score(np.arange(residuals_LN.shape[1]) < members, -residuals_LN.min(0)))


def same_residuals(size: Size, *, allowed: float, layers: int = 2) -> tuple[str, bool]:
    """Hold ours against the oracle on a few maps."""
    given = Given.of(size, layers=layers)
    ours, wanted = factored_once(given), oracle(given, size.tokens)
    apart = float(np.abs(ours - wanted).max())
    mine, best = (area(one, given.members) for one in (ours, wanted))
    said = f"residuals {apart:.0e} from float64 SVD, {allowed:.0e} allowed; AUC {mine:.3f}, {best:.3f}"
    return said, not (apart <= allowed and mine == best == 1.0)


def ours(size: Size) -> Work:
    return partial(factored_once, Given.of(size))


def per_candidate(size: Size) -> Work:
    """Return the peer's work on a few of the candidates."""
    from benchmarks.gradient_peers import qr_per_candidate

    given = Given.of(size)
    return partial(qr_per_candidate.residuals, given.gradients, given.inputs_LNd[:, :: CANDIDATES // PROBED])


# ---------------------------------------------------------------------- P22: the public subspace of FISGuard

RECORDS, WIDTH, RANK = 2000, 768, 64


def public() -> np.ndarray:
    rng = np.random.default_rng(22)
    scale = np.arange(1, WIDTH + 1) ** -0.7
    turned = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0]
    return ((rng.standard_normal((RECORDS, WIDTH)) * scale) @ turned).astype(np.float32)


def gram_subspace() -> Work:
    return partial(leading_rows, public(), rank=RANK)


def svd_subspace() -> Work:
    import torch

    rows = torch.from_numpy(public())
    return lambda: torch.linalg.svd(rows, full_matrices=False)[2][:RANK].numpy()


def same_subspace() -> tuple[str, bool]:
    mine, other = gram_subspace()(), svd_subspace()().astype(np.float64)
    wanted = np.linalg.svd(public().astype(np.float64), full_matrices=False)[2][:RANK]
    angle, theirs = (float(np.linalg.norm(wanted - (wanted @ one.T) @ one, 2)) for one in (mine, other))
    return f"sine of the angle to float64 {angle:.0e}, theirs {theirs:.0e}, 1e-04 allowed", not angle <= 1e-4


_ROWS = [
    _row(
        id="P7",
        workload="ProjRes, 200 candidates x 12 maps, T = 64, 384 x 768",
        peer="one QR per candidate and map",
        ours=lambda: ours(P7),
        theirs=lambda: per_candidate(P7),
        check=lambda: same_residuals(P7, allowed=1e-4),
        must=300.0,
        stretch=700.0,
        turns=5,
        loops=3,
        probed=CANDIDATES // PROBED,
    ),
    *(
        _row(
            id="P8",
            workload=f"ProjRes, T = {size.tokens}, {size.m} x {size.d}"
            + (f", {size.dead} dead units" if size.dead else ""),
            peer="one QR per candidate and map",
            ours=partial(ours, size),
            theirs=partial(per_candidate, size),
            check=partial(same_residuals, size, allowed=2e-3),
            must=80.0,
            stretch=130.0,
            turns=5,
            loops=3,
            probed=CANDIDATES // PROBED,
        )
        for size in P8
    ),
    _row(
        id="P22",
        workload="FISGuard's subspace, 2000 x 768, r = 64",
        peer="torch.linalg.svd in float32",
        ours=gram_subspace,
        theirs=svd_subspace,
        check=same_subspace,
        must=2.0,
        stretch=4.0,
        loops=3,
    ),
]

PAIRS = {pair.key: pair for pair in _ROWS}


def pair(key: str) -> list[Result]:
    return PAIRS[key].results()


ROWS = [partial(pair, key) for key in PAIRS]
