"""What the parameters of all other mechanisms mean. ``mu`` is of all rounds together; ``sigma`` and ``eps0`` of one."""

import math

from accountant import check, selection
from accountant.gaussian import mu_from_sigma
from accountant.selfcheck.laws.gaussian_mechanisms import groups
from accountant.selfcheck.privacies import (
    ApproximatePrivacy,
    ConcentratedPrivacy,
    LaplacePrivacy,
    PurePrivacy,
    RangePrivacy,
)
from accountant.selfcheck.privacy import Privacy
from accountant.selfcheck.registry import mechanism


@mechanism("", "pure")
def pure(*, eps0: float, T: int = 1) -> Privacy:
    return PurePrivacy(eps0=eps0, times=T)


@mechanism("", "pure")
def randomized_response(*, noise_parameter: float, num_buckets: int = 2, T: int = 1) -> Privacy:
    """A uniform answer with probability ``noise_parameter``, else the true one."""
    check.open_unit(noise_parameter=noise_parameter)
    return pure(eps0=math.log1p(num_buckets * (1 - noise_parameter) / noise_parameter), T=T)


@mechanism("", "gaussian", "pure")
def pure_next_to_gaussian(*, eps0: float, sigma: float, T: int = 1) -> Privacy:
    return PurePrivacy(eps0=eps0, times=T, total_mu=mu_from_sigma(sigma=sigma, rounds=T))


@mechanism("", "gaussian", "pure")
def pure_next_to_gaussian_dp(*, eps0: float, mu: float, T: int = 1) -> Privacy:
    return PurePrivacy(eps0=eps0, times=T, total_mu=mu)


@mechanism("", "gaussian", "pure")
def pure_next_to_groups(*, eps0: float, sigma_A: float, sigma_B: float, T: int = 1) -> Privacy:
    return PurePrivacy(eps0=eps0, times=T, total_mu=groups(sigma_A=sigma_A, sigma_B=sigma_B, T=T).total_mu)


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


@mechanism("", "pure", "laplace")
def laplace_top_k(*, d: int, k: int, H: float, scale: float, T: int = 1, mu: float = 0.0) -> Privacy:
    once = selection.pure_epsilon(k=k, dim=d, score_bound=H, scale=scale)
    return PurePrivacy(eps0=once, times=T, total_mu=mu)


@mechanism("", "zcdp")
def concentrated(*, rho: float) -> Privacy:
    return ConcentratedPrivacy(total_rho=rho)


@mechanism("", "gaussian", "pure", "approximate")
def approximate_rounds(*, eps0: float, delta0: float, T: int = 1, mu: float = 0.0) -> Privacy:
    return PurePrivacy(eps0=eps0, times=T, total_mu=mu, each_lost=delta0)


@mechanism("", "approximate")
def approximate(*, epsilon: float, delta: float) -> Privacy:
    return ApproximatePrivacy(at_epsilon=epsilon, at_delta=delta)
