"""Opacus' three accountants of (subsampled) Gaussian noise."""

from functools import partial
from typing import Any

from accountant.selfcheck.peers._peer import Answer, CannotAnswerError, Peer, by_mechanism, refuse_large
from accountant.selfcheck.privacies import GaussianPrivacy, SubsampledPrivacy

_SLOWEST_EPSILON = 50.0  # beyond it the PRV accountant raises after a minute, or hangs


def _epsilon(history: list[tuple[float, float, int]], delta: float, *, accountant: str) -> float:
    from opacus.accountants import create_accountant

    made: Any = create_accountant(accountant)
    made.history = history
    return float(made.get_epsilon(delta=delta))


def _answers(accountant: str, *, largest_mu: float) -> Answer:
    epsilon = by_mechanism()

    @epsilon.register
    def _gaussian(privacy: GaussianPrivacy, *, delta: float) -> float:
        refuse_large(privacy.total_mu, largest=largest_mu)
        return _epsilon([(sigma, 1.0, times) for sigma, times in privacy.parts], delta, accountant=accountant)

    @epsilon.register
    def _subsampled(privacy: SubsampledPrivacy, *, delta: float) -> float:
        return _epsilon(
            [(privacy.noise_multiplier, privacy.sampling_rate, privacy.steps)], delta, accountant=accountant
        )

    return epsilon


def _sigma(*, epsilon: float, delta: float, rounds: int, accountant: str) -> float:
    from opacus.accountants.utils import get_noise_multiplier

    if accountant == "prv" and epsilon > _SLOWEST_EPSILON:
        raise CannotAnswerError(f"epsilon={epsilon:g} is known to hang")
    return float(
        get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=1.0, steps=rounds, accountant=accountant
        )
    )


def _of_sigma(*, sigma: float, delta: float = 1e-5, accountant: str) -> float:
    return _epsilon([(sigma, 1.0, 1)], delta, accountant=accountant)


PEERS = tuple(
    Peer(
        name=f"opacus {accountant.upper()}",
        package="opacus",
        epsilon=_answers(accountant, largest_mu=largest_mu),
        sigma=partial(_sigma, accountant=accountant),
        of_sigma=partial(_of_sigma, accountant=accountant),
    )
    for accountant, largest_mu in (("rdp", 1e6), ("gdp", 1e6), ("prv", 10.0))
)
