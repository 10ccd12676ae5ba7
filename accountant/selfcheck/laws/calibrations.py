"""How much noise a budget needs."""

import math

from accountant import check, gaussian, joint, sequential, subsampled, target
from accountant.selfcheck.conversions import conversion_named
from accountant.selfcheck.laws.gaussian_mechanisms import moved
from accountant.selfcheck.privacy import NotUnderstoodError
from accountant.selfcheck.registry import law

_SPLITS = {"joint": joint.sigma_from_epsilon, "sequential": sequential.sigma_from_epsilon}


@law("sigma")
def sigma(*, epsilon: float, delta: float, T: int = 1, relation: str = "") -> float:
    return moved(relation) * gaussian.sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=T)


@law("sigma")
def sigma_next_to_selection(
    *, epsilon: float, delta: float, r: float, T: int = 1, selection: str = "", accounting: str = "joint"
) -> float:
    """Return it for selections that are pure and spend ``r epsilon`` together, whatever the text says of them."""
    if accounting not in _SPLITS:
        raise NotUnderstoodError(f"accounting {accounting!r} is not known")
    return _SPLITS[accounting](epsilon=epsilon, delta=delta, rounds=T, selection_share=r)


@law("sigma", mechanisms=("", "gaussian", "pure"))
def sigma_next_to_pure(*, epsilon: float, delta: float, eps0: float, T: int = 1) -> float:
    check.count(T=T)
    return math.sqrt(T) / joint.mu_from_epsilon(epsilon=epsilon, delta=delta, pure={eps0: T})


@law("sigma")
def sigma_by_renyi(
    *, epsilon: float, delta: float, conversion: str, T: int = 1, alphas: object = None
) -> float:
    return conversion_named(conversion).sigma(epsilon=epsilon, delta=delta, rounds=T, orders=alphas)


@law("sigma")
def sigma_subsampled(*, epsilon: float, delta: float, sampling_rate: float, T: int = 1) -> float:
    return subsampled.sigma_from_epsilon(epsilon=epsilon, delta=delta, sampling_rate=sampling_rate, steps=T)


@law("sigma")
def sigma_of_mu(*, mu: float, T: int = 1) -> float:
    return target.sigma_for(target.Mu(largest=mu), rounds=T)


@law("sigma")
def sigma_of_advantage(*, advantage: float, T: int = 1) -> float:
    return target.sigma_for(target.Advantage(advantage=advantage), rounds=T)


@law("sigma")
def sigma_of_auc(*, auc: float, T: int = 1) -> float:
    return target.sigma_for(target.Auc(auc=auc), rounds=T)


@law("sigma")
def sigma_of_tpr(*, tpr: float, fpr: float, T: int = 1) -> float:
    return target.sigma_for(target.TprAtFpr(tpr=tpr, fpr=fpr), rounds=T)
