"""The acceptance numbers of the VPDR analysis, those that no other test holds.

The others are held where the thing itself is tested:

====================================================  =====================================================
sigma, c1 and what the published sigma really spends   test_vpp_calibration: the published table
lambda 4,120 and 6,160                                 test_selection: the scale is the paper's
VPP's allocation, and against IGPP                     test_groupwise: the published table
condition (19) to 1e-12                                test_groupwise: any partition costs what the reference costs
soft clip                                              test_distillation: the published lengths
noise on each group within 1 % over 4,000 draws        test_vpp: noise of each group is what the paper says
share of the teacher still at its start                test_distillation
FedProto's loss warns of no shapes                     test_fedproto: every warning is an error
FedPCL predicts labels, not positions                  test_fedpcl
====================================================  =====================================================
"""

import numpy as np
import pytest

from accountant.contract import DependsOn
from accountant.rdp import VPDR_ORDERS, sigma_classic
from accountant.tradeoff import GaussianCurve
from attacks.statistics import smirnov
from attacks.statistics.best_f1 import null_mean
from privkit.clip import clip_groups
from privkit.defenses.vpp import Vpp
from privkit.embeddings import Embeddings
from privkit.noise import SeededNoise
from privkit.partitions._scores import discriminability

DIM, ROUNDS, BOUND, EACH = 512, 20, 0.1, 40
SIZES = {0.2: 103, 0.3: 154}


def scored(scores_d: np.ndarray) -> Embeddings:
    """Return records of two classes whose coordinates have exactly these scores.

    Residuals are +-1, so that their variance is 2n / (2n - 2); means are +-a with 2n a^2 between classes.
    """
    sign = np.repeat([1.0, -1.0], EACH)
    residual = np.tile([1.0, -1.0], EACH)
    vectors = residual[:, None] + sign[:, None] * np.sqrt(scores_d / (2 * EACH - 2))
    labels = np.repeat([0, 1], EACH)
    return Embeddings(vectors=vectors, labels=labels, encoder=DependsOn.PUBLIC)


def separated(size: int) -> np.ndarray:
    """Return the scores that are easiest to select from: the bound on some coordinates, nothing on the rest."""
    return np.where(np.arange(DIM) < size, BOUND, 0.0)


def skewed(size: int) -> np.ndarray:
    """Return scores of which few are near the bound and most near nothing, all different."""
    return BOUND * ((np.arange(DIM)[::-1] + 0.5) / DIM) ** 5


def overlaps(scores_d: np.ndarray, *, epsilon: float, rho: float, draws: int = 400) -> np.ndarray:
    """Return the share of the best coordinates that each of some releases selects."""
    embeddings = scored(scores_d)
    np.testing.assert_allclose(discriminability(embeddings, stabiliser=0.0), scores_d, rtol=1e-9, atol=1e-12)
    mechanism = Vpp(epsilon=epsilon, rho=rho).mechanism(rounds=ROUNDS)
    noise, best = SeededNoise(np.random.default_rng(3)), np.arange(SIZES[rho])
    sent = (mechanism.privatize(embeddings, noise).hidden.groups for _ in range(draws))
    return np.array([(groups[best] == 0).mean() for groups in sent])


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize("rho", SIZES)
def test_the_selection_is_chance_even_from_the_easiest_scores(rho, epsilon):
    found = overlaps(separated(SIZES[rho]), epsilon=epsilon, rho=rho)
    chance = SIZES[rho] / DIM
    assert abs(found.mean() - chance) < 3 * found.std() / len(found) ** 0.5 + 0.004 * (epsilon == 1000.0)


@pytest.mark.parametrize(("rho", "easiest"), [(0.2, 0.703), (0.3, 0.661)])
def test_at_epsilon_100000_half_to_two_thirds_are_found(rho, easiest):
    """About .50 of the best coordinates from skewed scores, .70 at most."""
    best = overlaps(separated(SIZES[rho]), epsilon=1e5, rho=rho)
    usual = overlaps(skewed(SIZES[rho]), epsilon=1e5, rho=rho)
    assert best.mean() == pytest.approx(easiest, abs=4 * best.std() / len(best) ** 0.5)
    assert 0.47 < usual.mean() < 0.60


@pytest.mark.parametrize("rho", SIZES)
def test_groupwise_clipped_records_are_no_longer_than_the_clip_norm(rho):
    radius, rng = 5.0, np.random.default_rng(0)
    share = SIZES[rho] / DIM
    group_d = rng.permutation(np.where(np.arange(DIM) < SIZES[rho], 0, 1))
    norms = (radius * share**0.5, radius * (1 - share) ** 0.5)
    z = rng.standard_normal((200, DIM)) * rng.lognormal(0, 3, (200, 1))
    clipped = np.linalg.norm(clip_groups(z, group_d, norms=norms), axis=1)
    assert clipped.max() == pytest.approx(radius, rel=1e-12)
    assert (clipped <= radius * (1 + 1e-12)).all()


@pytest.mark.parametrize(("size", "advantage"), [(10, 0.233), (20, 0.174), (100, 0.084)])
def test_chance_reaches_this_advantage(size, advantage):
    """The analysis simulated it; exact values are held against all orders in test_advantage."""
    assert smirnov.null_mean(size, size) == pytest.approx(advantage, abs=1e-3)


def test_chance_reaches_this_f1():
    assert null_mean(10, 10)[0] == pytest.approx(0.697, abs=5e-4)


@pytest.mark.parametrize(
    ("epsilon", "rounds", "advantage", "auc", "tpr"),
    [
        (1.0, 1, 0.018, 0.513, 0.0112),
        (1.0, 20, 0.081, 0.557, 0.017),
        (2.0, 1, 0.036, 0.525, 0.0126),
        (2.0, 20, 0.159, 0.611, 0.027),
    ],
)
def test_no_attack_on_the_published_noise_can_do_more(epsilon, rounds, advantage, auc, tpr):
    """The ceilings of the analysis: mu is sqrt(rounds) over the noise that the authors calibrate for 20 rounds."""
    sigma = sigma_classic(epsilon=epsilon, delta=1e-5, rounds=20, orders=VPDR_ORDERS)
    curve = GaussianCurve(mu=rounds**0.5 / sigma)
    assert curve.advantage == pytest.approx(advantage, abs=6e-4)
    assert curve.auc == pytest.approx(auc, abs=6e-4)
    assert curve.tpr(0.01) == pytest.approx(tpr, abs=6e-4)
