"""What an attacker makes of its own records: the same as from a whole covariance, at a fraction of the time."""

import numpy as np
import pytest

from attacks._base import NotApplicableError
from attacks.membership._population import Population, best_shrinkage, population

AMOUNTS = np.geomspace(1e-4, 1.0, 9)


def by_eigenvalues(centred_Nd: np.ndarray, amount: float | None = None) -> np.ndarray | float:
    """Return the shrunk covariance, or, without an amount, the best one, from all d eigenvalues."""
    if amount is not None:
        variances, basis = np.linalg.eigh(centred_Nd)
        return (basis * ((1 - amount) * variances + amount * variances.mean())) @ basis.T
    likelihood = np.zeros(len(AMOUNTS))
    for fold in range(5):
        left = np.arange(len(centred_Nd)) % 5 == fold
        kept = centred_Nd[~left]
        for i, each in enumerate(AMOUNTS):
            covariance = by_eigenvalues(kept.T @ kept / len(kept), float(each))
            _, logdet = np.linalg.slogdet(covariance)
            squares = (centred_Nd[left] * np.linalg.solve(covariance, centred_Nd[left].T).T).sum(1)
            likelihood[i] -= logdet + squares.mean()
    return float(AMOUNTS[np.argmax(likelihood)])


def drawn(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    return labels, labels[:, None] + rng.normal(size=(n, d)) * rng.exponential(size=d)


@pytest.mark.parametrize(("n", "d"), [(30, 100), (200, 20), (40, 40), (8, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_the_covariance_is_the_one_of_all_eigenvalues(n: int, d: int, seed: int) -> None:
    labels, vectors = drawn(n, d, seed)
    found = Population.of(labels, vectors)
    centred = vectors - np.array([found.means[int(label)] for label in labels])
    amount = by_eigenvalues(centred)
    assert best_shrinkage(centred) == amount
    wanted = by_eigenvalues(centred.T @ centred / (n - 2), float(amount))
    np.testing.assert_allclose(found.covariance, wanted, rtol=0, atol=1e-12 * np.trace(found.covariance))


def test_records_that_are_all_alike_have_a_covariance_nevertheless() -> None:
    found = Population.of(np.zeros(20, dtype=int), np.ones((20, 4)))
    np.testing.assert_array_equal(found.covariance, 1e-12 * np.eye(4))


def test_few_records_are_no_population() -> None:
    with pytest.raises(NotApplicableError, match="too few reference records"):
        Population.of(np.array([0, 0, 1, 1, 2, 2]), np.eye(6))


def test_the_same_records_are_looked_at_once() -> None:
    labels, vectors = drawn(30, 5, 0)
    assert population(labels, vectors) is population(labels.copy(), vectors.copy())
