"""Shadow prototypes: as good as the exact likelihood ratio where records are Gaussian, and usable elsewhere."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from accountant.contract import Contract, DependsOn
from accountant.events import Gaussian, NonPrivate
from accountant.gaussian import sigma_from_epsilon
from attacks._base import NotApplicableError
from attacks.membership.likelihood_ratio import LikelihoodRatio
from attacks.membership.shadow import Shadow, simulated
from privkit.defenses.igpp import Igpp
from privkit.defenses.none import Nothing
from privkit.defenses.vpp import Vpp
from privkit.prototypes.finch import Finch
from privkit.prototypes.mean import Mean
from privkit.release import Prototypes, Release
from privkit.transcript import Records, ServerView
from tests import test_clustered_attacks as clustered
from tests.test_likelihood_ratio import CLASSES, CLIENTS, DIM, FALLING, FLAT, REFERENCE, area_in_theory, drawn


def seen(
    variances: np.ndarray, *, n: int, sigma: float, radius: float
) -> tuple[ServerView, Records, Records]:
    """Return the view of one round of noisy means, its members, and as many others."""
    rng = np.random.default_rng(7)
    members, others, reference = (drawn(rng, variances, each) for each in (n, n, REFERENCE))
    contract = Contract(clip_norm=radius, encoder=DependsOn.PUBLIC)
    event = (
        Gaussian(noise_multiplier=sigma, contract=contract)
        if sigma
        else NonPrivate(contract=Contract(encoder=DependsOn.PUBLIC))
    )
    means = members.vectors.reshape(CLIENTS, CLASSES, n, DIM).mean(2)
    noisy = means + sigma * 2 * radius / n * rng.standard_normal(means.shape)
    releases = tuple(
        Release(
            round=0,
            client=client,
            payload=Prototypes(vectors=noisy[client], labels=np.arange(CLASSES), counts=np.full(CLASSES, n)),
            event=event,
        )
        for client in range(CLIENTS)
    )
    return ServerView(releases=releases, reference=reference), members, others


@pytest.mark.parametrize(
    ("variances", "n", "epsilon", "radius"),
    [(FLAT, 50, None, 16.0), (FALLING, 50, None, 16.0), (FLAT, 50, 8.0, 16.0), (FALLING, 50, 8.0, 6.0)],
    ids=["flat", "falling", "flat eps=8", "falling eps=8"],
)
def test_success_is_that_of_the_exact_likelihood_ratio(variances, n, epsilon, radius):
    sigma = sigma_from_epsilon(epsilon=epsilon, delta=1e-5) if epsilon else 0.0
    view, members, others = seen(variances, n=n, sigma=sigma, radius=radius)
    truth = np.repeat([True, False], len(members))
    exact, shadow = (
        float(roc_auc_score(truth, np.concatenate([a.score(view, members), a.score(view, others)])))
        for a in (LikelihoodRatio(), Shadow())
    )
    in_theory = area_in_theory(variances, n=n, s=sigma * 2 * radius / n, n_ref=REFERENCE)
    assert shadow == pytest.approx(in_theory, abs=0.02)
    assert shadow == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("summary", [Mean(), Finch()], ids=["mean", "clusters"])
@pytest.mark.parametrize("defense", [Nothing(), Igpp(epsilon=8.0), Vpp(epsilon=8.0)], ids=lambda d: d.name)
def test_groups_of_noise_and_clusters_cost_it_nothing(defense, summary):
    members, others = clustered.drawn(1), clustered.drawn(2)
    view = clustered.view_of(defense, summary, members, rounds=2)
    exact, shadow = (clustered.area(a, view, members, others) for a in (LikelihoodRatio(), Shadow()))
    assert shadow > exact - 0.03
    if isinstance(defense, Nothing):
        assert shadow > 0.6


@pytest.mark.parametrize("defense", [Igpp(epsilon=1e-3), Vpp(epsilon=1e-3)], ids=lambda d: d.name)
def test_when_noise_hides_all_members_score_as_non_members_do(defense):
    members, others = clustered.drawn(1, 100), clustered.drawn(2, 100)
    view = clustered.view_of(defense, Finch(), members, rounds=2)
    n = len(members)
    found = clustered.area(Shadow(), view, members, others)
    assert abs(found - 0.5) < 3 * ((2 * n + 1) / (12 * n * n)) ** 0.5


def test_means_of_drawn_records_tell_mean_and_covariance_of_the_population():
    rng = np.random.default_rng(0)
    labels = np.repeat([2, 5], [3000, 2000])
    root = np.diag([2.0, 1.0, 0.5])
    vectors = rng.standard_normal((5000, 3)) @ root + labels[:, None]
    found = simulated(labels, vectors, shadows=3000, seed=0)
    assert found.sizes == {2: 3000, 5: 2000}
    for label in (2, 5):
        np.testing.assert_allclose(found.means[label], vectors[labels == label].mean(0), atol=0.01)
    np.testing.assert_allclose(found.covariance, root @ root, atol=0.2)


def test_few_records_are_not_taken_for_less_spread_than_they_show():
    rng = np.random.default_rng(1)
    spreads = [
        np.trace(
            simulated(np.zeros(8, np.int64), rng.standard_normal((8, 4)), shadows=500, seed=s).covariance
        )
        for s in range(60)
    ]
    assert np.mean(spreads) == pytest.approx(4, rel=0.15)


def test_the_seed_decides_which_records_are_drawn():
    records = clustered.drawn(3)
    one, same, other = (simulated(records.labels, records.vectors, shadows=8, seed=s) for s in (0, 0, 1))
    assert np.array_equal(one.covariance, same.covariance)
    assert not np.array_equal(one.covariance, other.covariance)


def test_one_shadow_has_no_covariance():
    members = clustered.drawn(1)
    view = clustered.view_of(Nothing(), Mean(), members, rounds=1)
    with pytest.raises(NotApplicableError, match="1 shadow prototype has no covariance; simulate at least 2"):
        Shadow(shadows=1).score(view, members)
    assert np.isfinite(Shadow(shadows=2).score(view, members)).all()
