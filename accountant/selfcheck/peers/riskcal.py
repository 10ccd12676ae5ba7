"""riskcal: what attacks can reach, from a guarantee."""

from importlib import import_module
from typing import Any

from accountant.selfcheck.peers._peer import Peer, by_mechanism
from accountant.selfcheck.privacies import ApproximatePrivacy, GaussianPrivacy

epsilon, advantage, tpr = by_mechanism(), by_mechanism(), by_mechanism()


@advantage.register
def _gaussian_advantage(privacy: GaussianPrivacy) -> float:
    return float(_analysis().get_advantage_for_mu(privacy.total_mu))


@advantage.register
def _approximate_advantage(privacy: ApproximatePrivacy) -> float:
    return float(_analysis().get_advantage_for_epsilon_delta(privacy.at_epsilon, privacy.at_delta))


@tpr.register
def _gaussian_tpr(privacy: GaussianPrivacy, *, fpr: float) -> float:
    return 1 - float(_analysis().get_beta_for_mu(privacy.total_mu, fpr))


@tpr.register
def _approximate_tpr(privacy: ApproximatePrivacy, *, fpr: float) -> float:
    return 1 - float(_analysis().get_beta_for_epsilon_delta(privacy.at_epsilon, privacy.at_delta, fpr))


def _analysis() -> Any:
    return import_module("riskcal.analysis")


PEERS = (Peer(name="riskcal", package="riskcal", epsilon=epsilon, advantage=advantage, tpr=tpr),)
