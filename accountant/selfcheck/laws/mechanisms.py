"""What the parameters of a mechanism mean. ``mu`` is of all rounds together; ``sigma`` and ``eps0`` are of one."""

import math
import re

from accountant import check, selection
from accountant.gaussian import mu_from_sigma
from accountant.selfcheck.numbers import number, whole
from accountant.selfcheck.privacy import (
    ApproximatePrivacy,
    ConcentratedPrivacy,
    GaussianPrivacy,
    LaplacePrivacy,
    NotUnderstoodError,
    Privacy,
    PurePrivacy,
    RangePrivacy,
    SubsampledPrivacy,
)
from accountant.selfcheck.registry import mechanism

_RELATIONS = (
    (r"replace|substitut|swap|bounded", 2.0),
    (r"add|remove|zero|unbounded", 1.0),
)
"""How many clip norms a record moves the released sum by; ``sigma`` counts in clip norms if a relation is named."""


def moved(relation: str) -> float:
    """Return by how many clip norms a record moves a sum; 1 where no relation is named: sigma counts in moves."""
    if not relation:
        return 1.0
    for pattern, clip_norms in _RELATIONS:
        if re.search(rf"\b(?:{pattern})", relation.replace("_", " "), re.IGNORECASE):
            return clip_norms
    raise NotUnderstoodError(f"relation {relation!r} is not known")


@mechanism("", "gaussian")
def gaussian(*, sigma: float, T: int = 1, relation: str = "") -> Privacy:
    return GaussianPrivacy(total_mu=moved(relation) * mu_from_sigma(sigma=sigma, rounds=T))


@mechanism("", "gaussian")
def gaussian_dp(*, mu: float) -> Privacy:
    return GaussianPrivacy(total_mu=mu)


@mechanism("", "gaussian")
def rounds_of_different_noise(*, sigmas: list, repeat: int = 1) -> Privacy:
    check.count(repeat=repeat)
    squares = [mu_from_sigma(sigma=number(sigma)) ** 2 for sigma in sigmas]
    return GaussianPrivacy(total_mu=math.sqrt(repeat * math.fsum(squares)))


@mechanism("", "gaussian")
def phases(*, sigmas: list, counts: list) -> Privacy:
    squares = [
        mu_from_sigma(sigma=number(sigma), rounds=whole(count)) ** 2
        for sigma, count in zip(sigmas, counts, strict=True)
    ]
    return GaussianPrivacy(total_mu=math.sqrt(math.fsum(squares)))


@mechanism("", "gaussian")
def groups(*, sigma_A: float, sigma_B: float, T: int = 1) -> Privacy:
    once = math.hypot(mu_from_sigma(sigma=sigma_A), mu_from_sigma(sigma=sigma_B))
    check.count(T=T)
    return GaussianPrivacy(total_mu=math.sqrt(T) * once)


@mechanism("", "gaussian")
def any_groups(*, sigma_groups: list, T: int = 1) -> Privacy:
    return rounds_of_different_noise(sigmas=sigma_groups, repeat=T)


@mechanism("", "gaussian")
def groups_by_reference(*, sigma_ref: float, T: int = 1) -> Privacy:
    return gaussian(sigma=sigma_ref, T=T)


@mechanism("", "gaussian")
def copies(*, sigma: float, copies: int, T: int = 1) -> Privacy:
    """Noise on a sum in which the same record is present several times."""
    check.count(copies=copies)
    return GaussianPrivacy(total_mu=copies * mu_from_sigma(sigma=sigma, rounds=T))


@mechanism("", "gaussian")
def subsampled(*, sigma: float, sampling_rate: float, T: int = 1) -> Privacy:
    return SubsampledPrivacy(noise_multiplier=sigma, sampling_rate=sampling_rate, steps=T)


@mechanism("", "pure")
def pure(*, eps0: float, T: int = 1) -> Privacy:
    return PurePrivacy(eps0=eps0, times=T)


@mechanism("", "gaussian", "pure")
def pure_next_to_gaussian(*, eps0: float, sigma: float, T: int = 1) -> Privacy:
    return PurePrivacy(eps0=eps0, times=T, total_mu=mu_from_sigma(sigma=sigma, rounds=T))


@mechanism("", "gaussian", "pure")
def pure_next_to_gaussian_dp(*, eps0: float, mu: float, T: int = 1) -> Privacy:
    return PurePrivacy(eps0=eps0, times=T, total_mu=mu)


@mechanism("", "gaussian", "pure")
def pure_next_to_groups(*, eps0: float, sigma_A: float, sigma_B: float, T: int = 1) -> Privacy:
    return PurePrivacy(eps0=eps0, times=T, total_mu=groups(sigma_A=sigma_A, sigma_B=sigma_B, T=T).mu())


@mechanism("laplace")
def laplace(*, eps0: float, T: int = 1) -> Privacy:
    return LaplacePrivacy(eps0=eps0, times=T)


@mechanism("laplace")
def laplace_next_to_gaussian(*, eps0: float, sigma: float, T: int = 1) -> Privacy:
    return LaplacePrivacy(eps0=eps0, times=T, total_mu=mu_from_sigma(sigma=sigma, rounds=T))


@mechanism("laplace")
def laplace_next_to_gaussian_dp(*, eps0: float, mu: float, T: int = 1) -> Privacy:
    return LaplacePrivacy(eps0=eps0, times=T, total_mu=mu)


@mechanism("", "gaussian", "laplace")
def named_laplace(*, laplace_eps0: float, mu: float = 0.0, T: int = 1) -> Privacy:
    return LaplacePrivacy(eps0=laplace_eps0, times=T, total_mu=mu)


@mechanism("", "gaussian", "laplace")
def named_laplace_next_to_sigma(*, laplace_eps0: float, sigma: float, T: int = 1) -> Privacy:
    return laplace_next_to_gaussian(eps0=laplace_eps0, sigma=sigma, T=T)


@mechanism("laplace")
def laplace_on_every_score(*, d: int, H: float, scale: float, T: int = 1) -> Privacy:
    check.positive(H=H, scale=scale)
    return LaplacePrivacy(eps0=H / scale, times=d * T)


@mechanism("", "bounded range")
def bounded_range(*, eta: float, n: int = 1, mu: float = 0.0) -> Privacy:
    return RangePrivacy(eta=eta, times=n, total_mu=mu)


@mechanism("", "bounded range")
def bounded_range_rounds(*, eta: float, T: int, mu: float = 0.0) -> Privacy:
    return RangePrivacy(eta=eta, times=T, total_mu=mu)


@mechanism("", "bounded range")
def gumbel_top_k(*, k: int, H: float, beta: float, T: int = 1, mu: float = 0.0) -> Privacy:
    """One-shot Gumbel noise is k picks of the exponential mechanism, each with a range of ``2 H / beta``."""
    check.count(k=k, T=T)
    check.positive(H=H, beta=beta)
    return RangePrivacy(eta=2 * H / beta, times=k * T, total_mu=mu)


@mechanism("", "gaussian")
def gaussian_on_every_score(*, d: int, H: float, sigma_s: float, T: int = 1) -> Privacy:
    check.positive(H=H)
    check.count(d=d)
    return gaussian(sigma=sigma_s / (H * math.sqrt(d)), T=T)


@mechanism("", "pure", "laplace")
def laplace_top_k(*, d: int, k: int, H: float, scale: float, T: int = 1, mu: float = 0.0) -> Privacy:
    once = selection.pure_epsilon(k=k, dim=d, score_bound=H, scale=scale)
    return PurePrivacy(eps0=once, times=T, total_mu=mu)


@mechanism("", "zcdp")
def concentrated(*, rho: float) -> Privacy:
    return ConcentratedPrivacy(total_rho=rho)


@mechanism("", "approximate")
def approximate(*, epsilon: float, delta: float) -> Privacy:
    return ApproximatePrivacy(at_epsilon=epsilon, at_delta=delta)
