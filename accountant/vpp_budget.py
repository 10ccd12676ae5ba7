"""What VPP's budget buys: every private selection at the paper's noise, and the noise that none of them would leave.

A selection can be run in every round or once, and with noise of several kinds (:mod:`accountant.selection_budget`).
Held at the same total and the same Gaussian noise, they differ in how much of the true set they can find at best. If
none finds more than chance does, a partition that costs nothing (drawn at random, or read off noisy prototypes that
are public already) is as good, and the whole budget is left for the release.
"""

import math
from dataclasses import dataclass
from typing import Any

from accountant import check, gaussian, vpp
from accountant.beside import sigma_beside
from accountant.bracket import safe_root
from accountant.groupwise import Allocation
from accountant.selection import Fidelity, fidelity
from accountant.selection_budget import KINDS, AbstractSelectionKind, Budget

_COIN_TOSS = 0.01  # as in :mod:`accountant.selection`
_LEAST_SCALE = 1 / 80  # scale / H at which a selection misses the true set with probability e^-80
_MOST_SCALE = 1e6  # scale / H beyond which every selection is chance


@dataclass(frozen=True, kw_only=True)
class Option:
    """One way to select, at the noise of the paper's split.

    Attributes:
        kind: the noise and how it is accounted.
        selections: how often it runs: once, or in every round.
        scale: of its noise / H, the range of a score.
        fidelity: what it finds of the true set, at best.
    """

    kind: AbstractSelectionKind
    selections: int
    scale: float
    fidelity: Fidelity

    @property
    def std(self) -> float:
        """Return the standard deviation of its noise / H."""
        return self.kind.noise.std * self.scale

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "selection": self.kind.name,
            "selections": self.selections,
            "scale_over_score_bound": self.scale,
            "std_over_score_bound": self.std,
            "expected_overlap": self.fidelity.expected_overlap,
            "advantage": self.fidelity.advantage,
        }


@dataclass(frozen=True, kw_only=True)
class Reached:
    """The least noise that a wanted overlap leaves for the release.

    Attributes:
        option: how to select.
        sigma: noise multiplier of the release beside it.
        split: the share of epsilon that this takes from the release, VPDR's r.
        energy: total noise energy of the release in VPP's groups / that of isotropic noise without a selection.
    """

    option: Option
    sigma: float
    split: float
    energy: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            **self.option.to_dict(),
            "sigma_ref": self.sigma,
            "split": self.split,
            "energy_vs_isotropic": self.energy,
        }


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to do with a budget.

    Attributes:
        budget: the total and the paper's split of it.
        allocation: the two groups.
        options: every way to select at the noise of the paper's split, the paper's own first.
        sigma_coded: noise multiplier by the Renyi accountant of the authors' code; None if it has no answer.
    """

    budget: Budget
    allocation: Allocation
    options: tuple[Option, ...]
    sigma_coded: float | None

    @property
    def sigma_free(self) -> float:
        """Return the noise multiplier beside a partition that costs nothing."""
        budget = self.budget
        return gaussian.sigma_from_epsilon(epsilon=budget.epsilon, delta=budget.delta, rounds=budget.rounds)

    @property
    def best(self) -> Option:
        """Return the option that finds most."""
        return max(self.options, key=lambda option: option.fidelity.advantage)

    @property
    def chance(self) -> bool:
        """Return whether even the best option finds no more than chance does."""
        return self.best.fidelity.share < _COIN_TOSS

    @property
    def saved_percent(self) -> float:
        """Return how much less noise a free partition needs than the paper's split."""
        return 100 * (1 - self.sigma_free / self.budget.sigma)

    @property
    def saved_percent_of_code(self) -> float | None:
        """Return how much less noise a free partition needs than the authors' code adds."""
        return None if self.sigma_coded is None else 100 * (1 - self.sigma_free / self.sigma_coded)

    @property
    def advice(self) -> str:
        """Return what to do, in a sentence."""
        saved = f"{self.saved_percent:.1f} % of sigma against the paper's split"
        if self.saved_percent_of_code is not None:
            saved += f" and {self.saved_percent_of_code:.1f} % against the authors' code"
        if self.chance:
            source = "noisy prototypes that are public already" if self.budget.rounds > 1 else "public data"
            return (
                f"no private selection beats chance at this budget: take the partition from {source}, or a random "
                f"one, and save {saved}"
            )
        best = self.best
        return (
            f"{best.kind.name} noise {times(best.selections)} finds at best {best.fidelity.expected_overlap:.4f} of "
            f"the true set, where chance finds {best.fidelity.chance:.4f}; a free partition would save {saved}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "sigma_split": self.budget.sigma,
            "sigma_coded": self.sigma_coded,
            "sigma_free": self.sigma_free,
            "saved_percent": self.saved_percent,
            "saved_percent_of_code": self.saved_percent_of_code,
            "beats_chance": not self.chance,
            "advice": self.advice,
            "chance": self.best.fidelity.chance,
            "options": [option.to_dict() for option in self.options],
        }


def times(selections: int) -> str:
    """Return how often a selection runs, in words."""
    return "once" if selections == 1 else f"{selections} times"


def plan(*, epsilon: float, delta: float, rounds: int, split: float, allocation: Allocation) -> Plan:
    """Return every way to select at VPP's budget, and what leaving it out saves.

    Args:
        epsilon: total of selections and releases over all rounds, in nats, > 0.
        delta: total, in (0, 1).
        rounds: at least 1.
        split: share of epsilon that the paper sets aside for selections, in (0, 1).
        allocation: the two groups; the first one is selected.

    >>> found = plan(epsilon=1.0, delta=1e-5, rounds=50, split=0.1, allocation=Allocation.of(dim=512, rho=0.1))
    >>> for option in found.options[:6]:
    ...     print(f"{option.kind.name:21} {option.std:9,.0f} {option.fidelity.expected_overlap:.4f}")
    Laplace, as the paper    73,539 0.1016
    Laplace, joint            9,247 0.1016
    Laplace, whole vector     2,531 0.1016
    exponential, joint        6,538 0.1016
    Gumbel                      732 0.1017
    Gaussian                  1,428 0.1017
    >>> round(found.saved_percent, 1), round(found.saved_percent_of_code, 1)
    (9.2, 31.3)
    """
    budget = Budget(epsilon=epsilon, delta=delta, rounds=rounds, split=split)
    k, dim = allocation.sizes[0], allocation.dim
    runs = dict.fromkeys((rounds, 1))
    try:
        coded = vpp.sigma_ref(
            vpp.SplitCalibration.CODED, epsilon=epsilon, delta=delta, rounds=rounds, split=split
        )
    except ValueError:  # its orders do not reach every epsilon
        coded = None
    return Plan(
        budget=budget,
        allocation=allocation,
        options=tuple(
            _option(kind, kind.scale(budget, k=k, dim=dim, selections=selections), k, dim, selections)
            for selections in runs
            for kind in KINDS
        ),
        sigma_coded=coded,
    )


def least_noise(
    overlap: float, *, epsilon: float, delta: float, rounds: int, allocation: Allocation
) -> Reached | None:
    """Return the selection that reaches an overlap, at best, and leaves the release the least noise.

    Args:
        overlap: wanted share of the true set, between chance and 1.
        epsilon: total of selections and releases over all rounds, in nats, > 0.
        delta: total, in (0, 1).
        rounds: at least 1.
        allocation: the two groups.

    Returns:
        None if every selection that reaches it spends the whole budget.
    """
    k, dim = allocation.sizes[0], allocation.dim
    check.open_unit(overlap=overlap)
    if overlap <= k / dim:
        raise ValueError(
            f"overlap={overlap} is no more than chance, {k / dim:.4g}; ask for more, or for no selection."
        )
    found: list[tuple[float, Option]] = []
    for kind in {kind.event: kind for kind in KINDS}.values():
        scale = _scale_reaching(overlap, kind, k, dim)
        for selections in dict.fromkeys((rounds, 1)):
            option = _option(kind, scale, k, dim, selections)
            event = kind.event(k=k, dim=dim, score_bound=1.0, scale=scale)
            try:
                sigma = sigma_beside(
                    event, epsilon=epsilon, delta=delta, rounds=rounds, selections=selections
                )
            except ValueError:  # it spends the whole budget
                continue
            found.append((sigma, option))
    if not found:
        return None
    sigma, option = min(found, key=lambda pair: pair[0])
    left = gaussian.epsilon_from_mu(mu=gaussian.mu_from_sigma(sigma=sigma, rounds=rounds), delta=delta)
    free = gaussian.sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=rounds)
    energy = allocation.energy_ratio * (sigma / free) ** 2
    return Reached(option=option, sigma=sigma, split=max(1 - left / epsilon, 0.0), energy=energy)


def _option(kind: AbstractSelectionKind, scale: float, k: int, dim: int, selections: int) -> Option:
    found = fidelity(dim=dim, k=k, scale_over_range=scale, noise=kind.noise)
    return Option(kind=kind, selections=selections, scale=scale, fidelity=found)


def _scale_reaching(overlap: float, kind: AbstractSelectionKind, k: int, dim: int) -> float:
    """Return the largest scale / H at which a selection reaches an overlap."""

    def missing(log_scale: float) -> float:
        found = fidelity(dim=dim, k=k, scale_over_range=math.exp(log_scale), noise=kind.noise)
        return overlap - found.expected_overlap

    return math.exp(
        safe_root(missing, safe=math.log(_LEAST_SCALE), unsafe=math.log(_MOST_SCALE), tolerance=1e-7)
    )
