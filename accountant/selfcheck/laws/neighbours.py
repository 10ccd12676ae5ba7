"""What a claim costs when the neighbours are others than it says: factors on mu, and the true epsilon."""

import math
from fractions import Fraction

from accountant import check, gaussian, groupwise
from accountant.counterexamples.e02_label_change import label_change_factor
from accountant.counterexamples.e08_global_clip import global_clip_factor
from accountant.selfcheck.numbers import whole
from accountant.selfcheck.registry import law


def spent(factor: float, claimed_eps: float, delta: float) -> float:
    """Return the epsilon of a claim whose mu is larger by a factor."""
    mu = gaussian.mu_from_epsilon(epsilon=claimed_eps, delta=delta)
    return gaussian.epsilon_from_mu(mu=factor * mu, delta=delta)


def exceeded(factor: float, claimed_eps: float, delta: float) -> float:
    """Return the delta at the claimed epsilon of a claim whose mu is larger by a factor."""
    mu = gaussian.mu_from_epsilon(epsilon=claimed_eps, delta=delta)
    return gaussian.delta_from_mu(epsilon=claimed_eps, mu=factor * mu)


@law("mu_factor")
def label_change(*, n_a: float, n_b: float) -> float:
    """One of ``n_a`` leaves its class and joins ``n_b`` others; the noise stays that of the counts before."""
    if math.isinf(n_a) and math.isinf(n_b):
        return math.sqrt(2)
    return label_change_factor(n_a=whole(n_a), n_b=whole(n_b))


@law("epsilon")
def label_change_epsilon(*, claimed_eps: float, delta: float, n_a: float, n_b: float) -> float:
    return spent(label_change(n_a=n_a, n_b=n_b), claimed_eps, delta)


@law("delta")
def label_change_delta(*, claimed_eps: float, delta: float, n_a: float, n_b: float) -> float:
    return exceeded(label_change(n_a=n_a, n_b=n_b), claimed_eps, delta)


@law("mu_factor")
def global_clip(*, rho: float) -> float:
    """Noise of two groups, clipped as one: a record may put its whole norm into the group with less noise."""
    check.open_unit(rho=rho)
    share = Fraction(repr(rho))
    return global_clip_factor(dim=share.denominator, k=share.numerator)


@law("epsilon")
def global_clip_epsilon(*, claimed_eps: float, delta: float, rho: float) -> float:
    return spent(global_clip(rho=rho), claimed_eps, delta)


@law("delta")
def global_clip_delta(*, claimed_eps: float, delta: float, rho: float) -> float:
    return exceeded(global_clip(rho=rho), claimed_eps, delta)


@law("mu_factor")
def global_clip_of_coordinates(*, rho: float, d: int) -> float:
    """The same for ``ceil(rho d)`` of d coordinates."""
    return global_clip_factor(dim=d, k=groupwise.size(dim=d, rho=rho))


@law("epsilon")
def global_clip_of_coordinates_epsilon(*, claimed_eps: float, delta: float, rho: float, d: int) -> float:
    return spent(global_clip_of_coordinates(rho=rho, d=d), claimed_eps, delta)


@law("mu_factor")
def copies(*, copies: int) -> float:
    """The same record several times in one release."""
    check.count(copies=copies)
    return float(copies)


@law("mu_factor")
def m_copies(*, m: int) -> float:
    return copies(copies=m)


@law("mu_factor")
def silos(*, silos: int) -> float:
    """The same record in several silos, each with noise of its own."""
    check.count(silos=silos)
    return math.sqrt(silos)


@law("epsilon")
def copies_epsilon(*, claimed_eps: float, delta: float, copies: int) -> float:
    return spent(float(copies), claimed_eps, delta)


@law("epsilon")
def factor_epsilon(*, claimed_eps: float, delta: float, mu_factor: float) -> float:
    return spent(mu_factor, claimed_eps, delta)
