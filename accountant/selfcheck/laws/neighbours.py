"""What a claim costs when the neighbours are others than it says: factors on mu, and the true epsilon."""

import math

from accountant import check, gaussian, groupwise
from accountant.selfcheck.registry import law


def _spent(factor: float, claimed_eps: float, delta: float) -> float:
    """Return the epsilon of a claim whose mu is larger by a factor."""
    mu = gaussian.mu_from_epsilon(epsilon=claimed_eps, delta=delta)
    return gaussian.epsilon_from_mu(mu=factor * mu, delta=delta)


def _exceeded(factor: float, claimed_eps: float, delta: float) -> float:
    """Return the delta at the claimed epsilon of a claim whose mu is larger by a factor."""
    mu = gaussian.mu_from_epsilon(epsilon=claimed_eps, delta=delta)
    return gaussian.delta_from_mu(epsilon=claimed_eps, mu=factor * mu)


@law("mu_factor")
def label_change(*, n_a: float, n_b: float) -> float:
    """One of ``n_a`` leaves its class and joins ``n_b`` others; the noise stays that of the counts before."""
    moved_to = n_b / (n_b + 1) if math.isfinite(n_b) else 1.0
    check.positive(n_b=moved_to)
    return math.hypot(1.0, moved_to)


@law("epsilon")
def label_change_epsilon(*, claimed_eps: float, delta: float, n_a: float, n_b: float) -> float:
    return _spent(label_change(n_a=n_a, n_b=n_b), claimed_eps, delta)


@law("delta")
def label_change_delta(*, claimed_eps: float, delta: float, n_a: float, n_b: float) -> float:
    return _exceeded(label_change(n_a=n_a, n_b=n_b), claimed_eps, delta)


@law("mu_factor")
def global_clip(*, rho: float) -> float:
    """Noise of two groups, clipped as one: a record may put its whole norm into the group with less noise."""
    check.open_unit(rho=rho)
    kappa_a, kappa_b = math.sqrt(rho), math.sqrt(1 - rho)
    both = kappa_a + kappa_b
    return max(math.sqrt(kappa_b / both) / kappa_a, math.sqrt(kappa_a / both) / kappa_b)


@law("epsilon")
def global_clip_epsilon(*, claimed_eps: float, delta: float, rho: float) -> float:
    return _spent(global_clip(rho=rho), claimed_eps, delta)


@law("delta")
def global_clip_delta(*, claimed_eps: float, delta: float, rho: float) -> float:
    return _exceeded(global_clip(rho=rho), claimed_eps, delta)


@law("mu_factor")
def global_clip_of_coordinates(*, rho: float, d: int) -> float:
    """The same for ``ceil(rho d)`` of d coordinates."""
    return global_clip(rho=groupwise.size(dim=d, rho=rho) / d)


@law("epsilon")
def global_clip_of_coordinates_epsilon(*, claimed_eps: float, delta: float, rho: float, d: int) -> float:
    return _spent(global_clip_of_coordinates(rho=rho, d=d), claimed_eps, delta)


@law("mu_factor")
def copies(*, copies: int) -> float:
    """The same record several times in one release."""
    check.count(copies=copies)
    return float(copies)


@law("epsilon")
def copies_epsilon(*, claimed_eps: float, delta: float, copies: int) -> float:
    return _spent(float(copies), claimed_eps, delta)


@law("epsilon")
def factor_epsilon(*, claimed_eps: float, delta: float, mu_factor: float) -> float:
    return _spent(mu_factor, claimed_eps, delta)
