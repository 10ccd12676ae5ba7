"""autodp: Renyi accounting, and its analytic Gaussian."""

import math
from typing import Any

from accountant.selfcheck.peers._peer import Peer, by_mechanism
from accountant.selfcheck.privacies import GaussianPrivacy, LaplacePrivacy, PurePrivacy

epsilon = by_mechanism()


@epsilon.register
def _gaussian(privacy: GaussianPrivacy, *, delta: float) -> float:
    return of_sigma(sigma=1 / privacy.total_mu, delta=delta)


@epsilon.register
def _pure(privacy: PurePrivacy, *, delta: float) -> float:
    from autodp import mechanism_zoo  # type: ignore

    return _composed([(mechanism_zoo.PureDP_Mechanism(privacy.eps0), privacy.times)], privacy.total_mu, delta)


@epsilon.register
def _laplace(privacy: LaplacePrivacy, *, delta: float) -> float:
    from autodp import mechanism_zoo  # type: ignore

    return _composed(
        [(mechanism_zoo.LaplaceMechanism(1 / privacy.eps0), privacy.times)], privacy.total_mu, delta
    )


def of_sigma(*, sigma: float, delta: float = 1e-5) -> float:
    """Return epsilon of one release."""
    from autodp import mechanism_zoo  # type: ignore

    return float(mechanism_zoo.ExactGaussianMechanism(sigma).get_approxDP(delta))


def sigma(*, epsilon: float, delta: float, rounds: int) -> float:
    """Return the noise multiplier of so many releases."""
    from autodp import calibrator_zoo, mechanism_zoo  # type: ignore

    calibrate = calibrator_zoo.ana_gaussian_calibrator()
    mechanism = calibrate(mechanism_zoo.ExactGaussianMechanism, epsilon, delta)
    return math.sqrt(rounds) * float(mechanism.params["sigma"])


def _composed(mechanisms: list[Any], mu: float, delta: float) -> float:
    from autodp import mechanism_zoo, transformer_zoo  # type: ignore

    if mu > 0:
        mechanisms = [*mechanisms, (mechanism_zoo.ExactGaussianMechanism(1 / mu), 1)]
    kinds, times = zip(*mechanisms, strict=True)
    return float(transformer_zoo.Composition()(list(kinds), list(times)).get_approxDP(delta))


PEERS = (Peer(name="autodp", package="autodp", epsilon=epsilon, sigma=sigma, of_sigma=of_sigma),)
