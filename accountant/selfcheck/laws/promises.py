"""What any mechanism promises: epsilon, delta, the currencies between, and the ceiling of every attack."""

import math

from accountant import gaussian
from accountant.selfcheck.conversions import conversion_named
from accountant.selfcheck.privacy import Privacy
from accountant.selfcheck.registry import law


@law("epsilon", "eps")
def epsilon(privacy: Privacy, /, *, delta: float) -> float:
    return privacy.epsilon(delta=delta)


@law("epsilon", "eps")
def converted_epsilon(privacy: Privacy, /, *, delta: float, conversion: str, alphas: object = None) -> float:
    return conversion_named(conversion).epsilon(mu=math.sqrt(2 * privacy.rho()), delta=delta, orders=alphas)


@law("delta")
def delta(privacy: Privacy, /, *, epsilon: float) -> float:
    return math.exp(privacy.log_delta(epsilon=epsilon))


@law("log_delta")
def log_delta(privacy: Privacy, /, *, epsilon: float) -> float:
    return privacy.log_delta(epsilon=epsilon)


@law("rho")
def rho(privacy: Privacy, /) -> float:
    return privacy.rho()


@law("mu")
def mu(privacy: Privacy, /) -> float:
    return privacy.mu()


@law("mu")
def mu_of_a_budget(*, epsilon: float, delta: float) -> float:
    return gaussian.mu_from_epsilon(epsilon=epsilon, delta=delta)


@law("tpr")
def tpr(privacy: Privacy, /, *, fpr: float) -> float:
    return privacy.curve().tpr(fpr)


@law("auc")
def auc(privacy: Privacy, /) -> float:
    return privacy.curve().auc


@law("advantage", "tv")
def advantage(privacy: Privacy, /) -> float:
    return privacy.advantage()


@law("bayes_error")
def bayes_error(privacy: Privacy, /) -> float:
    return (1 - privacy.advantage()) / 2
