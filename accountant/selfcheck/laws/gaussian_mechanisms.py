"""What the parameters of Gaussian noise mean. ``mu`` is of all rounds together, ``sigma`` of one."""

import math
import re

from accountant import check
from accountant.contract import Query, Relation
from accountant.groupwise import Allocation
from accountant.relations import reach
from accountant.selfcheck.numbers import number, whole
from accountant.selfcheck.privacies import GaussianPrivacy, SubsampledPrivacy
from accountant.selfcheck.privacy import NotUnderstoodError, Privacy
from accountant.selfcheck.registry import mechanism

_RELATIONS = (
    (r"replace|substitut|swap|bounded", Relation.REPLACE_ANY_LABEL),
    (r"add|remove|unbounded", Relation.ADD_REMOVE),
)
"""Neighbours by a word in their name. If a case names them, ``sigma`` counts in clip norms; else in moves."""


def relation_named(words: str) -> Relation:
    """Return the relation that some words name."""
    for pattern, relation in _RELATIONS:
        if re.search(rf"\b(?:{pattern})", words.replace("_", " "), re.IGNORECASE):
            return relation
    raise NotUnderstoodError(f"relation {words!r} is not known")


def moved(words: str) -> float:
    """Return by how many clip norms a record moves a sum; 1 where no relation is named."""
    return reach(Query.RECORD_SUM, relation_named(words)) if words else 1.0


@mechanism("", "gaussian")
def gaussian(*, sigma: float, T: int = 1, relation: str = "") -> GaussianPrivacy:
    check.positive(sigma=sigma)
    check.count(T=T)
    return GaussianPrivacy(parts=((sigma / moved(relation), T),))


@mechanism("", "gaussian")
def gaussian_dp(*, mu: float) -> GaussianPrivacy:
    check.positive(mu=mu)
    return GaussianPrivacy(parts=((1 / mu, 1),))


@mechanism("", "gaussian")
def rounds_of_different_noise(*, sigmas: list, repeat: int = 1, T: int = 1) -> GaussianPrivacy:
    return phases(sigmas=sigmas, counts=[repeat * T] * len(sigmas))


@mechanism("", "gaussian")
def phases(*, sigmas: list, counts: list) -> GaussianPrivacy:
    pairs = [(number(sigma), whole(count)) for sigma, count in zip(sigmas, counts, strict=True)]
    for sigma, count in pairs:
        check.positive(sigma=sigma)
        check.count(count=count)
    return GaussianPrivacy(parts=tuple(pairs))


@mechanism("", "gaussian")
def groups(*, sigma_A: float, sigma_B: float, T: int = 1) -> GaussianPrivacy:
    return any_groups(sigma_groups=[sigma_A, sigma_B], T=T)


@mechanism("", "gaussian")
def any_groups(*, sigma_groups: list, T: int = 1) -> GaussianPrivacy:
    return rounds_of_different_noise(sigmas=sigma_groups, repeat=T)


@mechanism("", "gaussian")
def groups_by_reference(*, sigma_ref: float, d: int, rho: float, T: int = 1) -> GaussianPrivacy:
    a, b = Allocation.of(dim=d, rho=rho).multipliers(sigma_ref)
    return groups(sigma_A=a, sigma_B=b, T=T)


@mechanism("", "gaussian")
def reference(*, sigma_ref: float, T: int = 1) -> GaussianPrivacy:
    return gaussian(sigma=sigma_ref, T=T)


@mechanism("", "gaussian")
def history(*, history: list) -> GaussianPrivacy:
    """Noise multiplier, sampling rate and steps of each phase, as Opacus keeps them; without sampling."""
    if not all(isinstance(phase, list) and len(phase) == 3 and number(phase[1]) == 1 for phase in history):
        raise NotUnderstoodError("a history is known only of triples whose sampling rate is 1")
    return phases(sigmas=[phase[0] for phase in history], counts=[phase[2] for phase in history])


@mechanism("", "gaussian")
def gaussian_dp_parts(*, mus: list) -> GaussianPrivacy:
    return gaussian_dp(mu=math.hypot(*map(number, mus)))


@mechanism("", "gaussian")
def copies(*, sigma: float, copies: int, T: int = 1) -> GaussianPrivacy:
    """Noise on a sum in which the same record is present several times."""
    check.count(copies=copies)
    return gaussian(sigma=sigma / copies, T=T)


@mechanism("", "gaussian")
def subsampled(*, sigma: float, sampling_rate: float, T: int = 1, relation: str = "add or remove") -> Privacy:
    return SubsampledPrivacy(
        noise_multiplier=sigma, sampling_rate=sampling_rate, steps=T, relation=relation_named(relation)
    )


@mechanism("", "gaussian")
def gaussian_on_every_score(*, d: int, H: float, sigma_s: float, T: int = 1) -> Privacy:
    check.positive(H=H)
    check.count(d=d)
    return gaussian(sigma=sigma_s / (H * math.sqrt(d)), T=T)
