"""dp-accounting's Renyi accountant."""

import math
from typing import Any

from accountant.selfcheck.peers._peer import Peer, by_mechanism
from accountant.selfcheck.privacies import (
    ConcentratedPrivacy,
    GaussianPrivacy,
    LaplacePrivacy,
    PurePrivacy,
    SubsampledPrivacy,
)

epsilon = by_mechanism()


@epsilon.register
def _gaussian(privacy: GaussianPrivacy, *, delta: float) -> float:
    from dp_accounting import GaussianDpEvent

    return _epsilon([(GaussianDpEvent(sigma), times) for sigma, times in privacy.parts], delta)


@epsilon.register
def _pure(privacy: PurePrivacy, *, delta: float) -> float:
    from dp_accounting import RandomizedResponseDpEvent

    response = RandomizedResponseDpEvent(2 / (1 + math.exp(privacy.eps0)), 2)
    # the accountant takes randomised response under this relation only, and Gaussian noise as under any other
    return _epsilon([(response, privacy.times), *_noise(privacy.total_mu)], delta, replace_one=True)


@epsilon.register
def _laplace(privacy: LaplacePrivacy, *, delta: float) -> float:
    from dp_accounting import LaplaceDpEvent

    return _epsilon([(LaplaceDpEvent(1 / privacy.eps0), privacy.times), *_noise(privacy.total_mu)], delta)


@epsilon.register
def _subsampled(privacy: SubsampledPrivacy, *, delta: float) -> float:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

    step = PoissonSampledDpEvent(privacy.sampling_rate, GaussianDpEvent(privacy.noise_multiplier))
    return _epsilon([(step, privacy.steps)], delta)


@epsilon.register
def _concentrated(privacy: ConcentratedPrivacy, *, delta: float) -> float:
    from dp_accounting import ZCDpEvent

    return _epsilon([(ZCDpEvent(privacy.total_rho), 1)], delta)


def of_sigma(*, sigma: float, delta: float = 1e-5) -> float:
    """Return epsilon of one release."""
    from dp_accounting import GaussianDpEvent

    return _epsilon([(GaussianDpEvent(sigma), 1)], delta)


def sigma(*, epsilon: float, delta: float, rounds: int) -> float:
    """Return the noise multiplier of so many releases."""
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent, calibrate_dp_mechanism, rdp

    return float(
        calibrate_dp_mechanism(
            rdp.RdpAccountant,
            lambda noise: SelfComposedDpEvent(GaussianDpEvent(noise), rounds),
            epsilon,
            delta,
        )
    )


def _noise(mu: float) -> list[Any]:
    from dp_accounting import GaussianDpEvent

    return [(GaussianDpEvent(1 / mu), 1)] if mu > 0 else []


def _epsilon(events: list[Any], delta: float, *, replace_one: bool = False) -> float:
    from dp_accounting import NeighboringRelation, rdp

    relation = NeighboringRelation.REPLACE_ONE if replace_one else NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = rdp.RdpAccountant(neighboring_relation=relation)
    for event, times in events:
        accountant.compose(event, times)
    return float(accountant.get_epsilon(delta))


PEERS = (
    Peer(name="dp-accounting RDP", package="dp_accounting", epsilon=epsilon, sigma=sigma, of_sigma=of_sigma),
)
