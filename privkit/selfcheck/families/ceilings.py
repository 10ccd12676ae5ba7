"""What a claim allows an attack to reach."""

import math

from accountant import gaussian, rdp
from accountant.tradeoff import ApproximateCurve, GaussianCurve
from privkit.selfcheck.families._facts import fact
from privkit.selfcheck.families._tables import table


def _curves(eps: list, delta: float) -> list[ApproximateCurve]:
    return [ApproximateCurve(epsilon=float(epsilon), delta=delta) for epsilon in eps]


@fact("tpr")
def tpr(*, eps: list, delta: float, fpr: list) -> list[list[float]]:
    return [[curve.tpr(float(rate)) for rate in fpr] for curve in _curves(eps, delta)]


@fact("auc")
def auc(*, eps: list, delta: float) -> list[float]:
    return [curve.auc for curve in _curves(eps, delta)]


@fact("adv", "advantage")
def advantage(*, eps: list, delta: float) -> list[float]:
    return [curve.advantage for curve in _curves(eps, delta)]


@fact("tpr")
def gaussian_tpr(*, mu: list, fpr: list) -> list[list[float]]:
    return [[GaussianCurve(mu=float(one)).tpr(float(rate)) for rate in fpr] for one in mu]


@fact("auc")
def gaussian_auc(*, mu: list) -> list[float]:
    return [GaussianCurve(mu=float(one)).auc for one in mu]


@fact("adv", "advantage")
def gaussian_advantage(*, mu: list) -> list[float]:
    return [GaussianCurve(mu=float(one)).advantage for one in mu]


def _gaussian(eps: list, delta: float) -> list[GaussianCurve]:
    return [GaussianCurve(mu=gaussian.mu_from_epsilon(epsilon=float(one), delta=delta)) for one in eps]


@fact("tpr", family="gdp")
@fact("tpr_gdp", "tpr_gaussian")
def tpr_of_budget(*, eps: list, delta: float, fpr: list) -> list[list[float]]:
    return [[curve.tpr(float(rate)) for rate in fpr] for curve in _gaussian(eps, delta)]


@fact("auc", family="gdp")
@fact("auc_gdp", "auc_gaussian")
def auc_of_budget(*, eps: list, delta: float) -> list[float]:
    return [curve.auc for curve in _gaussian(eps, delta)]


@fact("adv", "advantage", family="gdp")
@fact("adv_gdp", "adv_gaussian")
def advantage_of_budget(*, eps: list, delta: float) -> list[float]:
    return [curve.advantage for curve in _gaussian(eps, delta)]


@fact("mu")
def mu(*, eps: list, delta: float) -> list[float]:
    return [curve.mu for curve in _gaussian(eps, delta)]


@fact("sigma")
def sigma_of_budget(*, eps: list, delta: float) -> list[float]:
    return [1 / curve.mu for curve in _gaussian(eps, delta)]


@table("sigma_calibration", answers=3)
def sigma(epsilon: float, rounds: int, /, *, delta: float) -> list[float]:
    exact = gaussian.sigma_from_epsilon(epsilon=float(epsilon), delta=delta, rounds=rounds)
    classic = rdp.sigma_classic(epsilon=float(epsilon), delta=delta, rounds=rounds)
    return [exact, classic, classic / exact]


@table("per_round_vs_aggregate", answers=2)
def one_round_and_all(epsilon: float, rounds: int, /, *, delta: float) -> list[float]:
    mu = gaussian.mu_from_epsilon(epsilon=float(epsilon), delta=delta)
    return [GaussianCurve(mu=mu / math.sqrt(rounds)).auc, GaussianCurve(mu=mu).auc]


@table("gdp_table", answers=5)
def gaussian_row(epsilon: float, /, *, delta: float) -> list[float]:
    """Return mu, sigma, AUC, advantage, and TPR at one per cent."""
    mu = gaussian.mu_from_epsilon(epsilon=float(epsilon), delta=delta)
    curve = GaussianCurve(mu=mu)
    return [mu, 1 / mu, curve.auc, curve.advantage, curve.tpr(0.01)]
