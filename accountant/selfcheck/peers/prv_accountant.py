"""Microsoft's PRV accountant: its upper limit on epsilon."""

from importlib import import_module
from typing import Any

from accountant.selfcheck.peers._peer import Peer, by_mechanism, refuse_large
from accountant.selfcheck.privacies import GaussianPrivacy, LaplacePrivacy, PurePrivacy

epsilon = by_mechanism()


@epsilon.register
def _gaussian(privacy: GaussianPrivacy, *, delta: float) -> float:
    return _upper([(_noise(privacy.total_mu), 1)], delta)


@epsilon.register
def _pure(privacy: PurePrivacy, *, delta: float) -> float:
    prv_accountant: Any = import_module("prv_accountant")

    one: Any = prv_accountant.PureDPMechanism(privacy.eps0)
    return _upper([(one, privacy.times), *_next_to(privacy.total_mu)], delta)


@epsilon.register
def _laplace(privacy: LaplacePrivacy, *, delta: float) -> float:
    prv_accountant: Any = import_module("prv_accountant")

    one: Any = prv_accountant.LaplaceMechanism(mu=privacy.eps0)
    return _upper([(one, privacy.times), *_next_to(privacy.total_mu)], delta)


def _next_to(mu: float) -> list[Any]:
    return [(_noise(mu), 1)] if mu > 0 else []


def _noise(mu: float) -> Any:
    prv_accountant: Any = import_module("prv_accountant")

    refuse_large(mu, largest=10.0)
    return prv_accountant.GaussianMechanism(noise_multiplier=1 / mu)


def _upper(mechanisms: list[Any], delta: float) -> float:
    prv_accountant: Any = import_module("prv_accountant")

    kinds, times = zip(*mechanisms, strict=True)
    accountant = prv_accountant.PRVAccountant(
        prvs=list(kinds),
        max_self_compositions=list(times),
        eps_error=0.01,
        delta_error=delta / 1000,
    )
    return float(accountant.compute_epsilon(delta=delta, num_self_compositions=list(times))[2])


PEERS = (Peer(name="prv-accountant, upper", package="prv_accountant", epsilon=epsilon),)
