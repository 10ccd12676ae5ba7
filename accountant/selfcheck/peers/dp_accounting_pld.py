"""dp-accounting's privacy loss distributions."""

import math
from typing import Any

from accountant.selfcheck.peers._peer import Peer, by_mechanism, refuse_large
from accountant.selfcheck.privacies import GaussianPrivacy, LaplacePrivacy, PurePrivacy, SubsampledPrivacy

epsilon, delta = by_mechanism(), by_mechanism()


@epsilon.register
def _gaussian_epsilon(privacy: GaussianPrivacy, *, delta: float) -> float:
    return float(_gaussian(privacy.total_mu).get_epsilon_for_delta(delta))


@epsilon.register
def _pure_epsilon(privacy: PurePrivacy, *, delta: float) -> float:
    return float(_pure(privacy).get_epsilon_for_delta(delta))


@epsilon.register
def _laplace_epsilon(privacy: LaplacePrivacy, *, delta: float) -> float:
    return float(_laplace(privacy).get_epsilon_for_delta(delta))


@epsilon.register
def _subsampled_epsilon(privacy: SubsampledPrivacy, *, delta: float) -> float:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, pld

    refuse_large(math.sqrt(privacy.steps) * privacy.sampling_rate / privacy.noise_multiplier)
    step = PoissonSampledDpEvent(privacy.sampling_rate, GaussianDpEvent(privacy.noise_multiplier))
    accountant = pld.PLDAccountant()
    accountant.compose(step, privacy.steps)
    return float(accountant.get_epsilon(delta))


@delta.register
def _gaussian_delta(privacy: GaussianPrivacy, *, epsilon: float) -> float:
    return float(_gaussian(privacy.total_mu).get_delta_for_epsilon(epsilon))


@delta.register
def _pure_delta(privacy: PurePrivacy, *, epsilon: float) -> float:
    return float(_pure(privacy).get_delta_for_epsilon(epsilon))


@delta.register
def _laplace_delta(privacy: LaplacePrivacy, *, epsilon: float) -> float:
    return float(_laplace(privacy).get_delta_for_epsilon(epsilon))


def _gaussian(mu: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    refuse_large(mu)
    return privacy_loss_distribution.from_gaussian_mechanism(1 / mu)


def _pure(privacy: PurePrivacy) -> Any:
    from dp_accounting.pld import common, privacy_loss_distribution

    one = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(privacy.eps0, 0)
    )
    return _next_to_noise(one.self_compose(privacy.times), privacy.total_mu)


def _laplace(privacy: LaplacePrivacy) -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    one = privacy_loss_distribution.from_laplace_mechanism(1 / privacy.eps0)
    return _next_to_noise(one.self_compose(privacy.times), privacy.total_mu)


def _next_to_noise(composed: Any, mu: float) -> Any:
    return composed.compose(_gaussian(mu)) if mu > 0 else composed


PEERS = (Peer(name="dp-accounting PLD", package="dp_accounting", epsilon=epsilon, delta=delta),)
