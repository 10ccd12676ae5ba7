"""One release of a real mechanism with 3,584 orthonormal canaries: what is certified, and what a shared coin fools."""

import math

import numpy as np
import pytest

from accountant.contract import DependsOn
from attacks.canary.antipodal import Antipodal
from attacks.statistics.certify import Certificate
from attacks.statistics.certify.together import certificates
from privkit import canary
from privkit.defenses.igpp import Igpp
from privkit.embeddings import Embeddings
from privkit.noise import SeededNoise
from privkit.release import Release
from privkit.transcript import Transcript

CLASSES, DIM = 7, 512
DELTA = 1e-5
ANY_NOISE = ("one run", "one run, Gaussian DP")


def certified(epsilon: float, *, seed: int) -> dict[str, float]:
    """Return what each method certifies from one release of one client at a claimed epsilon."""
    planted = canary.design(
        clients=1, count=CLASSES * DIM, dim=DIM, norm=3.0, num_classes=0, seed=seed, per_class=DIM
    )
    rng = np.random.default_rng(seed)
    signs = rng.random(len(planted)) < 0.5  # coins, as the one-run limits want
    mine = canary.planted(planted, signs)
    held = Embeddings(vectors=mine.vectors, labels=mine.labels, encoder=DependsOn.PUBLIC)
    payload, event, _ = (
        Igpp(epsilon=epsilon, clip_norm=1.0).mechanism(rounds=1).privatize(held, SeededNoise(rng))
    )
    view = Transcript.of([Release(round=0, client=0, payload=payload, event=event)]).seen_by_server()
    scores = Antipodal().score(view, planted)
    return low(scores, signs, delta=DELTA)


def low(scores: np.ndarray, signs: np.ndarray, *, delta: float) -> dict[str, float]:
    found = certificates(scores[signs], scores[~signs], delta=delta)
    return {one.method: one.epsilon_low for one in found if isinstance(one, Certificate)}


@pytest.mark.parametrize(("epsilon", "share"), [(2.0, 0.7), (8.0, 0.9)])
def test_one_release_certifies_most_of_the_claim(epsilon: float, share: float) -> None:
    found = certified(epsilon, seed=1)
    assert (
        share * epsilon <= max(found["Gaussian DP with Clopper-Pearson"], found["normal scores"]) <= epsilon
    )
    # the limits that assume nothing about the noise are lower, and above 0
    assert all(0.1 * epsilon < found[method] < epsilon for method in ANY_NOISE)


def test_a_correct_mechanism_is_not_refuted() -> None:
    above = [max(low for method, low in certified(2.0, seed=s).items()) > 2.0 for s in range(10)]
    assert sum(above) <= 2  # six limits of 95 % each


def test_a_coin_that_all_canaries_share_fools_all_but_the_limit_that_assumes_nothing_of_it():
    """With probability 0.1 all signs are shown, else none: (0, 0.1)-DP, so no epsilon above 0 is true at delta 0.1.

    They are shown one time in ten, more often than limits of 95 % may fail: 400 trials are one trial. The limit for
    Gaussian curves needs no independence, but no curve of a coin is Gaussian, as its assumptions say.
    """
    rng, runs, fooled = np.random.default_rng(0), 400, dict[str, int]()
    for _ in range(runs):
        signs = rng.random(400) < 0.5
        seen = np.where(signs, 1.0, -1.0) * (rng.random() < 0.1)
        for name, epsilon in low(seen + 0.01 * rng.standard_normal(400), signs, delta=0.1).items():
            fooled[name] = fooled.get(name, 0) + (epsilon > 0)
    allowed = (0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)) * runs
    assert {name for name, count in fooled.items() if count <= allowed} == {"one run"}
