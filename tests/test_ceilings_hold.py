"""No likelihood-ratio attack on a mechanism exceeds the ceiling of its event; some reach it."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import rankdata

from accountant.accountants import gaussian_mu_of
from accountant.claims import curve
from accountant.events import (
    ApproximateDP,
    Composed,
    Event,
    ExponentialTopK,
    Gaussian,
    GaussianTopK,
    GumbelTopK,
    LaplaceTopK,
    PureDP,
    Repeated,
    TopK,
)
from accountant.tradeoff import AbstractCurve, ApproximateCurve, GaussianCurve, LossyCurve

DRAWS = 200_000
FPRS = (1e-3, 1e-2, 0.1, 0.5)

# ---- simulated: the log-likelihood ratio of what was released, as a member and as another ---------------------


def responses(rng: np.random.Generator, *, epsilon: float, rounds: int, member: bool) -> np.ndarray:
    truth = 1 / (1 + math.exp(-epsilon))
    hits = rng.binomial(rounds, truth if member else 1 - truth, size=DRAWS)
    return (2 * hits - rounds) * epsilon


def gaussian_loss(rng: np.random.Generator, *, mu: float, member: bool) -> np.ndarray:
    return mu * rng.standard_normal(DRAWS) + (1 if member else -1) * mu * mu / 2


def lossy(rng: np.random.Generator, loss: np.ndarray, *, delta: float, member: bool) -> np.ndarray:
    given_away = rng.random(DRAWS) < delta
    return np.where(given_away, math.inf if member else -math.inf, loss)


def response_and_noise(rng: np.random.Generator, member: bool) -> np.ndarray:
    return responses(rng, epsilon=0.3, rounds=5, member=member) + gaussian_loss(rng, mu=0.8, member=member)


def strong_response(rng: np.random.Generator, member: bool) -> np.ndarray:
    return responses(rng, epsilon=2.0, rounds=1, member=member) + gaussian_loss(rng, mu=0.1, member=member)


def worst_approximate(rng: np.random.Generator, member: bool) -> np.ndarray:
    loss = response_and_noise(rng, member)
    return lossy(rng, loss, delta=1 - (1 - 0.01) ** 5, member=member)


MECHANISMS: dict[str, tuple[Callable[[np.random.Generator, bool], np.ndarray], Event]] = {
    "weak responses, Gaussian noise": (
        response_and_noise,
        Composed(
            events=(Repeated(event=PureDP(epsilon=0.3), count=5), Gaussian(noise_multiplier=1 / 0.8)),
        ),
    ),
    "a strong response, little of a Gaussian": (
        strong_response,
        Composed(events=(PureDP(epsilon=2.0), Gaussian(noise_multiplier=10.0))),
    ),
    "secrets given away": (
        worst_approximate,
        Composed(
            events=(
                Repeated(event=ApproximateDP(epsilon=0.3, delta=0.01), count=5),
                Gaussian(noise_multiplier=1 / 0.8),
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_best_attack_reaches_the_ceiling_and_stays_below(name: str) -> None:
    draw, event = MECHANISMS[name]
    rng, ceiling = np.random.default_rng(7), curve(event)
    member, other, apart = draw(rng, True), draw(rng, False), draw(rng, False)
    for fpr in FPRS:
        threshold = np.quantile(apart, 1 - fpr, method="higher")
        hit, alarm = float((member > threshold).mean()), float((other > threshold).mean())
        error = 4 * math.sqrt(max(alarm * (1 - alarm), 1e-6) / DRAWS)
        noise = 4 * math.sqrt(max(hit * (1 - hit), 1e-6) / DRAWS)
        assert hit <= ceiling.tpr(min(alarm + error, 1.0)) + noise
        assert hit >= ceiling.tpr(max(alarm - error, 0.0)) - noise
    ranks = rankdata(np.concatenate([member, other]))[:DRAWS].sum()
    auc = (ranks - DRAWS * (DRAWS + 1) / 2) / DRAWS**2
    assert auc == pytest.approx(ceiling.auc, abs=4 * math.sqrt(1 / (6 * DRAWS)))
    edges = np.concatenate([member[np.isfinite(member)][:2000], [-math.inf]])
    best = max(float((member > t).mean() - (other > t).mean()) for t in edges)
    assert best == pytest.approx(ceiling.advantage, abs=8 / math.sqrt(DRAWS))


# ---- exact: which coordinates of three are selected -----------------------------------------------------------

SCORES = list(itertools.product((0.0, 1.0), repeat=3))


def _laplace(x: float) -> tuple[float, float]:
    tail = math.exp(-abs(x)) / 2
    return tail, tail if x < 0 else 1 - tail


def _exponential(x: float) -> tuple[float, float]:
    return (math.exp(-x), -math.expm1(-x)) if x > 0 else (0.0, 0.0)


def _gumbel(x: float) -> tuple[float, float]:
    cdf = math.exp(-math.exp(-x)) if x > -700 else 0.0
    return cdf * math.exp(-x) if cdf else 0.0, cdf


def _normal(x: float) -> tuple[float, float]:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi), float(ndtr(x))


NOISES: dict[type[TopK], Callable[[float], tuple[float, float]]] = {
    LaplaceTopK: _laplace,
    ExponentialTopK: _exponential,
    GumbelTopK: _gumbel,
    GaussianTopK: _normal,
}


def selected(kind: type[TopK], scores: tuple[float, ...], scale: float, *, k: int) -> np.ndarray:
    """Return the law of the selected set of three coordinates: which is in it (k=1) or left out (k=2)."""
    law = NOISES[kind]

    def place(x: float, j: int) -> float:
        mass = law(x - scores[j] / scale)[0]
        for i in range(3):
            if i != j:
                below = law(x - scores[i] / scale)[1]
                mass *= below if k == 1 else 1 - below
        return mass

    cuts = sorted({s / scale for s in scores})
    edges = [cuts[0] - 60, *cuts, cuts[-1] + 60]
    found = [
        sum(
            quad(place, a, b, args=(j,), epsabs=1e-13, epsrel=1e-11, limit=200)[0]
            for a, b in itertools.pairwise(edges)
        )
        for j in range(3)
    ]
    assert sum(found) == pytest.approx(1.0, abs=1e-9)
    return np.array(found)


def attack(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return FPR and TPR at each corner of the likelihood-ratio test."""
    order = np.argsort(-p / q)
    return np.cumsum(q[order]), np.cumsum(p[order])


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("kind", NOISES)
def test_no_pair_of_score_vectors_exceeds_what_a_selection_costs(
    kind: type[TopK], scale: float, k: int
) -> None:
    event = kind(k=k, dim=3, score_bound=1.0, scale=scale)
    one_way = kind(k=k, dim=3, score_bound=1.0, scale=scale, monotone=True)
    laws = {scores: selected(kind, scores, scale, k=k) for scores in SCORES}
    worst = {False: 0.0, True: 0.0}
    for (s, p), (t, q) in itertools.product(laws.items(), repeat=2):
        rises = all(a <= b for a, b in zip(s, t, strict=True)) or all(
            a >= b for a, b in zip(s, t, strict=True)
        )
        made = one_way if rises else event
        fpr, tpr = attack(p, q)
        ceilings: list[AbstractCurve] = [curve(made), GaussianCurve(mu=gaussian_mu_of(made))]
        for ceiling in ceilings:
            assert all(
                hit <= ceiling.tpr(min(alarm, 1.0)) + 1e-9 for alarm, hit in zip(fpr, tpr, strict=True)
            )
            assert float((tpr - fpr).max()) <= ceiling.advantage + 1e-9
        worst[rises] = max(worst[rises], float(np.log(p / q).max()))
    if isinstance(event, LaplaceTopK | ExponentialTopK) and isinstance(
        one_way, LaplaceTopK | ExponentialTopK
    ):
        assert worst[False] <= event.epsilon * (1 + 1e-7)
        assert worst[True] <= one_way.epsilon * (1 + 1e-7)
        if isinstance(event, ExponentialTopK) and k == 2:
            assert worst[False] > 2 * 1 / scale  # so min(k, d - k) would be wrong here


# ---- identities of ceilings -----------------------------------------------------------------------------------

rates = st.floats(0.0, 1.0)


@given(st.floats(0.0, 20.0), st.floats(0.0, 1.0), rates)
def test_a_lossy_response_is_the_worst_of_approximate_privacy(
    epsilon: float, delta: float, fpr: float
) -> None:
    parts = LossyCurve(kept=1 - delta, rest=ApproximateCurve(epsilon=epsilon, delta=0.0))
    whole = ApproximateCurve(epsilon=epsilon, delta=delta)
    assert parts.tpr(fpr) == pytest.approx(whole.tpr(fpr), abs=1e-12)
    assert parts.auc == pytest.approx(whole.auc, abs=1e-12)
    assert parts.advantage == pytest.approx(whole.advantage, abs=1e-12)


@given(rates, rates, st.floats(0.0, 5.0), rates)
def test_two_chances_to_give_a_secret_away_are_one(one: float, other: float, mu: float, fpr: float) -> None:
    inner = LossyCurve(kept=one, rest=GaussianCurve(mu=mu))
    twice, once = LossyCurve(kept=other, rest=inner), LossyCurve(kept=one * other, rest=GaussianCurve(mu=mu))
    assert twice.tpr(fpr) == pytest.approx(once.tpr(fpr), abs=1e-9)
    assert twice.auc == pytest.approx(once.auc, abs=1e-12)
    assert twice.advantage == pytest.approx(once.advantage, abs=1e-12)


@pytest.mark.parametrize("kept", [1e-3, 0.5, 0.999])
def test_the_area_under_a_lossy_curve_is_its_auc(kept: float) -> None:
    lossy_curve = LossyCurve(kept=kept, rest=GaussianCurve(mu=0.7))
    area = quad(lossy_curve.tpr, 0, kept, epsabs=1e-11, limit=200)[0] + (1 - kept)
    assert area == pytest.approx(lossy_curve.auc, abs=1e-9)
    gap = max(lossy_curve.tpr(float(f)) - float(f) for f in np.linspace(0, kept, 4001))
    assert gap == pytest.approx(lossy_curve.advantage, abs=1e-6)
