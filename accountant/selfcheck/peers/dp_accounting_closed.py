"""dp-accounting's closed form of Gaussian noise."""

import math

from accountant.selfcheck.peers._peer import Peer, by_mechanism
from accountant.selfcheck.privacies import GaussianPrivacy

epsilon = by_mechanism()


@epsilon.register
def _gaussian(privacy: GaussianPrivacy, *, delta: float) -> float:
    return of_sigma(sigma=1 / privacy.total_mu, delta=delta)


def of_sigma(*, sigma: float, delta: float = 1e-5) -> float:
    """Return epsilon of one release."""
    from dp_accounting import get_epsilon_gaussian

    return float(get_epsilon_gaussian(sigma, delta))


def sigma(*, epsilon: float, delta: float, rounds: int) -> float:
    """Return the noise multiplier of so many releases."""
    from dp_accounting import get_sigma_gaussian

    return math.sqrt(rounds) * float(get_sigma_gaussian(epsilon, delta))


PEERS = (
    Peer(
        name="dp-accounting closed form",
        package="dp_accounting",
        epsilon=epsilon,
        sigma=sigma,
        of_sigma=of_sigma,
    ),
)
