"""Canaries through the real mechanism: success is the proof's, and a fault shows."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from accountant.contract import DependsOn, Relation
from accountant.events import Gaussian
from accountant.gaussian import mu_from_epsilon
from attacks._base import NotApplicableError
from attacks.canary.antipodal import Antipodal
from privkit import canary
from privkit.defenses._base import NOTHING, Known, Mechanism, Privatized
from privkit.defenses.faults.low_noise import LowNoise
from privkit.defenses.faulty_igpp import FaultyIgpp
from privkit.defenses.igpp import GaussianMeans, Igpp
from privkit.defenses.none import Nothing
from privkit.defenses.sumcount import GaussianSums, SumCount
from privkit.defenses.vpp import Vpp
from privkit.embeddings import Embeddings
from privkit.noise import Noise, Purpose, SeededNoise, keyed
from privkit.partitions.random import Random
from privkit.release import Release
from privkit.transcript import Transcript

CLIENTS, COUNT, DIM, RADIUS = 8, 256, 128, 2.0
REAL = 300  # records of a real class beside the canaries


def in_theory(epsilon: float, *, times: float = 1.0) -> float:
    """Return the AUC that mu-GDP allows, with mu larger by a factor where something is broken."""
    return float(norm.cdf(times * mu_from_epsilon(epsilon=epsilon, delta=1e-5) / 2**0.5))


def standard_error(area: float, n: int) -> float:
    """Return the standard error of an AUC of n against n binormal scores of equal spread."""
    x = norm.ppf(area)
    rng = np.random.default_rng(0)  # P(two members both beat one non-member), by a million draws
    both = np.mean(norm.cdf(2**0.5 * x + rng.standard_normal(1_000_000)) ** 2)
    return float(((area * (1 - area) + 2 * (n - 1) * (both - area**2)) / n**2) ** 0.5)


def attacked(
    mechanism: Mechanism, *, rounds: int, length: float = 3.0, per_class: int | None = None
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the AUC of all canaries of some clients, with scores and signs."""
    planted = canary.design(
        clients=CLIENTS,
        count=COUNT,
        dim=DIM,
        norm=length * RADIUS,
        num_classes=1,
        seed=3,
        per_class=per_class,
    )
    signs = canary.signs(planted, seed=3)
    real = np.random.default_rng(9).standard_normal((REAL, DIM)) / 3
    releases = []
    for client in range(CLIENTS):
        mine = canary.planted(planted, signs).of(client)
        held = Embeddings(vectors=real, labels=np.zeros(REAL, np.int64), encoder=DependsOn.PUBLIC)
        known = Known(labels=np.union1d([0, 1], mine.labels))
        for t in range(rounds):
            noise = SeededNoise(keyed(3, Purpose.RELEASE, round=t, client=client))
            payload, event, _ = mechanism.privatize(
                held.with_records(mine.vectors, mine.labels), noise, known
            )
            releases.append(Release(round=t, client=client, payload=payload, event=event))
    scores = Antipodal().score(Transcript.of(releases).seen_by_server(), planted)
    return float(roc_auc_score(signs, scores)), scores, signs


EACH = CLIENTS * COUNT // 2  # canaries of each sign


@pytest.mark.parametrize("rounds", [1, 20])
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 8.0])
def test_success_of_all_rounds_is_what_the_proof_allows(epsilon, rounds):
    defense = Igpp(epsilon=epsilon, clip_norm=RADIUS)
    area, _, _ = attacked(defense.mechanism(rounds=rounds), rounds=rounds)
    wanted = in_theory(epsilon)
    assert wanted == pytest.approx({1.0: 0.575, 2.0: 0.639, 8.0: 0.881}[epsilon], abs=1e-3)
    assert abs(area - wanted) < 3 * standard_error(wanted, EACH)


@pytest.mark.parametrize("length", [1.0, 0.5])
def test_a_canary_inside_the_ball_is_moved_by_its_own_length(length):
    area, _, _ = attacked(Igpp(epsilon=8.0, clip_norm=RADIUS).mechanism(rounds=1), rounds=1, length=length)
    wanted = in_theory(8.0, times=length)
    assert abs(area - wanted) < 3 * standard_error(wanted, EACH)


@pytest.mark.parametrize("rounds", [1, 20])
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 8.0])
def test_under_noise_by_group_success_of_all_rounds_is_what_the_proof_allows(epsilon, rounds):
    """Groups are drawn anew in every round, and the attacker has to guess them."""
    defense = Vpp(epsilon=epsilon, clip_norm=RADIUS, partition=Random())
    area, _, _ = attacked(defense.mechanism(rounds=rounds), rounds=rounds, length=6.0, per_class=4)
    wanted = in_theory(epsilon)
    assert abs(area - wanted) < 3 * standard_error(wanted, EACH)


@pytest.mark.parametrize("clip", ["groupwise", "ellipsoid"])
def test_under_noise_by_group_a_canary_reaches_the_proof_whatever_it_is_clipped_into(clip):
    """Orthogonal only nearly, four to a class: an AUC at the ceiling, not above it."""
    defense = Vpp(epsilon=8.0, clip_norm=RADIUS, partition=Random(), clip=clip)
    area, scores, signs = attacked(defense.mechanism(rounds=1), rounds=1, length=6.0, per_class=4)
    wanted = in_theory(8.0)
    assert abs(area - wanted) < 4 * standard_error(wanted, EACH)
    mu = mu_from_epsilon(epsilon=8.0, delta=1e-5)
    assert scores[signs].mean() == pytest.approx(mu**2 / 2, rel=0.15)


@pytest.mark.parametrize("rounds", [1, 20])
@pytest.mark.parametrize("relation", [Relation.REPLACE_ANY_LABEL, Relation.REPLACE_SAME_LABEL])
def test_in_a_sum_a_canary_reaches_the_proof_although_its_count_is_noisy(relation, rounds):
    defense = SumCount(epsilon=8.0, clip_norm=RADIUS, relation=relation)
    area, scores, signs = attacked(defense.mechanism(rounds=rounds), rounds=rounds)
    wanted = in_theory(8.0)
    assert abs(area - wanted) < 3 * standard_error(wanted, EACH)
    mu = mu_from_epsilon(epsilon=8.0, delta=1e-5)
    assert scores[signs].mean() == pytest.approx(mu**2 / 2, abs=3 * mu / EACH**0.5)


def test_half_the_noise_on_sums_shows():
    mechanism = SumCount(epsilon=2.0, clip_norm=RADIUS).mechanism(rounds=1)
    area, _, _ = attacked(Halved(mechanism), rounds=1)
    assert area > in_theory(2.0) + 8 * standard_error(in_theory(2.0), EACH)
    assert abs(area - in_theory(2.0, times=2)) < 3 * standard_error(in_theory(2.0, times=2), EACH)


def test_a_canary_is_no_question_where_records_come_and_go():
    mechanism = SumCount(epsilon=2.0, clip_norm=RADIUS, relation=Relation.ADD_REMOVE).mechanism(rounds=1)
    with pytest.raises(NotApplicableError, match="no neighbours under 'add or remove one record'"):
        attacked(mechanism, rounds=1)


@dataclass(frozen=True)
class Halved(Mechanism):
    """Sums and counts with half of the noise that the event claims."""

    claimed: GaussianSums

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Gaussian:
        return self.claimed.event(embeddings, known)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        half = replace(self.claimed, noise_multiplier=self.claimed.noise_multiplier / 2)
        return half.privatize(embeddings, noise, known)._replace(event=self.event(embeddings, known))


@dataclass(frozen=True)
class Misclipped(Mechanism):
    """IGPP with something else in place of its clip, under an event that says otherwise."""

    claimed: GaussianMeans
    clip: Callable[[np.ndarray], np.ndarray]

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Gaussian:
        return self.claimed.event(embeddings, known)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        event = self.event(embeddings)
        nobody_is_outside = replace(
            self.claimed,
            clip_norm=100.0 * RADIUS,
            noise_multiplier=self.claimed.noise_multiplier / 100,  # so the noise is what was claimed
        )
        sent = nobody_is_outside.privatize(embeddings.with_vectors(self.clip(embeddings.vectors)), noise)
        return Privatized(sent.payload, event, sent.hidden)


CLAIMED = Igpp(epsilon=2.0, clip_norm=RADIUS)


def misclipped(clip: Callable[[np.ndarray], np.ndarray]) -> Mechanism:
    return Misclipped(CLAIMED.mechanism(rounds=1), clip)


def under_noised(factor: float) -> Mechanism:
    return FaultyIgpp(claims=CLAIMED, fault=LowNoise(factor=factor)).mechanism(rounds=1)


@pytest.mark.parametrize(
    ("mechanism", "times"),
    [
        (misclipped(lambda vectors: vectors), 3),
        (misclipped(lambda vectors: np.clip(vectors, -RADIUS, RADIUS)), 3),
        (under_noised(0.5), 2),
        (under_noised(128 / (REAL + COUNT)), (REAL + COUNT) / 128),
    ],
    ids=["no clip", "clip per coordinate", "half the noise, or sensitivity R/n", "n of the whole client"],
)
def test_a_fault_is_far_above_the_proof_and_as_far_as_theory_says(mechanism, times):
    area, _, _ = attacked(mechanism, rounds=1)
    claimed, wanted = in_theory(2.0), in_theory(2.0, times=times)
    assert area > claimed + 8 * standard_error(claimed, EACH)
    assert abs(area - wanted) < 3 * standard_error(wanted, EACH)


def test_without_noise_every_canary_is_told():
    area, scores, signs = attacked(Nothing().mechanism(rounds=2), rounds=2)
    assert area == 1.0
    assert np.array_equal(scores > 0, signs)


def test_scores_are_log_likelihood_ratios():
    _, scores, signs = attacked(Igpp(epsilon=8.0, clip_norm=RADIUS).mechanism(rounds=4), rounds=4)
    mu = mu_from_epsilon(epsilon=8.0, delta=1e-5)
    for mine, sign in ((scores[signs], 1), (scores[~signs], -1)):  # N(+-mu^2/2, mu^2) between neighbours
        assert mine.mean() == pytest.approx(sign * mu**2 / 2, abs=3 * mu / EACH**0.5)
        assert mine.std() == pytest.approx(mu, rel=3 / (2 * EACH) ** 0.5)


def test_the_same_noise_in_every_round_is_no_better_than_one_round():
    """Repeated noise does not average out, though the attack takes it to be fresh."""
    defense = Igpp(epsilon=8.0, clip_norm=RADIUS)
    fresh, _, _ = attacked(defense.mechanism(rounds=1), rounds=4)
    stuck, _, _ = attacked(Stuck(defense.mechanism(rounds=1)), rounds=4)
    assert fresh == pytest.approx(in_theory(8.0, times=2), abs=0.02)
    assert stuck == pytest.approx(in_theory(8.0), abs=0.03)


@dataclass(frozen=True)
class Stuck(Mechanism):
    """A mechanism that draws the same noise every time."""

    claimed: GaussianMeans

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Gaussian:
        return self.claimed.event(embeddings, known)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        key = int(abs(embeddings.vectors[-1, 0]) * 1e6)
        return self.claimed.privatize(embeddings, SeededNoise(keyed(key, Purpose.RELEASE)))
