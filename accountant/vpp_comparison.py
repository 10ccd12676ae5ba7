"""Every calibration of VPP's noise in use, side by side, each held against the joint one.

The joint one counts the selection as any pure mechanism of its epsilon, and holds for each. The selection at hand is
known: Laplace noise on scores of which every one moves by at most H. What a row truly costs is counted with that.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from accountant import gaussian, paper, rdp
from accountant.accountants import smallest
from accountant.beside import sigma_beside
from accountant.comparison import Calibration, compare, percent, refuse_huge, sigma_by_pld
from accountant.events import Composed, Gaussian, LaplaceTopK, Repeated
from accountant.groupwise import Allocation
from accountant.selection import scale as scale_of_the_paper
from accountant.vpp import SplitCalibration, after_selection, sigma_joint, sigma_ref, sigma_zcdp


@dataclass(frozen=True, kw_only=True)
class VppCalibration:
    """What one method makes of VPP's budget.

    Attributes:
        reference: its sigma_ref, held against the joint one; ``true_epsilon`` and ``valid`` are by all that is known
            of the selection.
        multipliers: noise standard deviation / l2 sensitivity of groups A and B; None if it has no answer.
        scale: lambda of the selection's Laplace noise per round, in the unit of a score; the same for every method.
        note: what the method wastes or breaks, in a sentence.
    """

    reference: Calibration
    multipliers: tuple[float, float] | None
    scale: float
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        row = self.reference.to_dict()
        sigma_a, sigma_b = self.multipliers or (None, None)
        noise = {"sigma_ref": row.pop("sigma"), "sigma_A": sigma_a, "sigma_B": sigma_b, "lambda": self.scale}
        return {"method": row.pop("method"), **noise, **row, "note": self.note}


def vpp_calibrations(
    *,
    epsilon: float,
    delta: float,
    rounds: int,
    split: float,
    allocation: Allocation,
    scale: float,
    with_pld: bool = False,
) -> tuple[VppCalibration, ...]:
    """Return the calibrations of VPP's noise by every method, the joint one first.

    Args:
        epsilon: total of selection and release over all rounds, in nats, > 0.
        delta: total, in (0, 1).
        rounds: at least 1.
        split: share of epsilon that the selections spend, in (0, 1).
        allocation: the two groups.
        scale: lambda of the selection's Laplace noise, > 0; shown, not used: its ratio to H follows from the budget.
        with_pld: whether to ask dp-accounting's privacy loss distributions too, which takes seconds.

    >>> for row in vpp_calibrations(
    ...     epsilon=8.0, delta=1e-5, rounds=50, split=0.1, allocation=Allocation.of(dim=512, rho=0.1), scale=650.0
    ... )[::5]:
    ...     print(f"{row.reference.method}: {row.reference.sigma:.4f}, {row.note}")
    joint: 4.2541, selection and noise accounted together, the selection as any pure one of its epsilon
    split, formula, c1 = 1: 3.3323, breaks the budget: the noise alone really costs epsilon 10.76
    """
    refuse_huge(epsilon)
    budget = {"epsilon": epsilon, "delta": delta, "rounds": rounds, "split": split}
    least = sigma_joint(**budget)
    selection = _selection(allocation, apart=split * epsilon, rounds=rounds)
    methods = (*_methods(selection), _PLD) if with_pld else _methods(selection)

    def true_epsilon(sigma: float) -> float:
        parts = (selection, Gaussian(noise_multiplier=sigma))
        return smallest(Repeated(event=Composed(events=parts), count=rounds), delta=delta).epsilon

    references = compare(
        [(name, calibrate) for name, calibrate, _ in methods],
        budget,
        smallest=least,
        true_epsilon=true_epsilon,
        keeps=lambda sigma: sigma >= least or true_epsilon(sigma) <= epsilon,
    )

    def row(reference: Calibration, cause: str) -> VppCalibration:
        sigma = reference.sigma
        if sigma is None:
            return VppCalibration(reference=reference, multipliers=None, scale=scale, note=reference.reason)
        mu = gaussian.mu_from_sigma(sigma=sigma, rounds=rounds)
        alone = gaussian.epsilon_from_mu(mu=mu, delta=delta)
        return VppCalibration(
            reference=reference,
            multipliers=allocation.multipliers(sigma),
            scale=scale,
            note=_note(reference, cause, alone=alone, epsilon=epsilon),
        )

    return tuple(row(found, cause) for found, (_, _, cause) in zip(references, methods, strict=True))


def _selection(allocation: Allocation, *, apart: float, rounds: int) -> LaplaceTopK:
    """Return one round's selection, scores in units of H."""
    k, dim = allocation.sizes[0], allocation.dim
    scale = scale_of_the_paper(k=k, score_bound=1.0, epsilon_total=apart, rounds=rounds)
    return LaplaceTopK(k=k, dim=dim, score_bound=1.0, scale=scale)


def _methods(selection: LaplaceTopK) -> "tuple[_Method, ...]":
    def beside(*, epsilon: float, delta: float, rounds: int, split: float) -> float:
        return sigma_beside(selection, epsilon=epsilon, delta=delta, rounds=rounds)

    joint, *others = _METHODS
    return (joint, (_KNOWN, beside, f"the least noise known to keep the budget: {_ON_ALL}"), *others)


def _note(reference: Calibration, cause: str, *, alone: float, epsilon: float) -> str:
    if reference.valid:
        wasted = max(reference.excess_percent or 0.0, 0.0)
        return cause.format(excess=f"{percent(wasted, '.1f')} more noise than joint")
    if alone > epsilon:
        return f"breaks the budget: the noise alone really costs epsilon {alone:.4g}"
    return f"breaks the budget: with the selection it may cost epsilon {reference.true_epsilon:.6g}"


_ADDED = "adds the selection's loss to the noise's"
_KNOWN = "joint, Laplace on all scores"
_ON_ALL = (
    "selection and noise accounted together, the selection as Laplace noise on all scores where that is less"
)
_FORMULA = "{excess} here; no constant is right at every epsilon"
_Method = tuple[str, Callable[..., float], str]
_METHODS: tuple[_Method, ...] = (
    (
        "joint",
        sigma_joint,
        "selection and noise accounted together, the selection as any pure one of its epsilon",
    ),
    ("split, exact", partial(sigma_ref, SplitCalibration.SPLIT), f"{{excess}}: {_ADDED}"),
    (
        "split, RDP as VPDR coded it",
        partial(sigma_ref, SplitCalibration.CODED),
        f"{{excess}}: {_ADDED}, and converts Renyi divergence by the classic rule",
    ),
    (
        "split, RDP best conversion",
        after_selection(rdp.sigma_best),
        f"{{excess}}: {_ADDED}, and accounts by Renyi divergence",
    ),
    ("split, formula, c1 = 1", after_selection(paper.sigma_from_formula), _FORMULA),
    (
        "split, formula, c1 = sqrt 2",
        after_selection(partial(paper.sigma_from_formula, c1=math.sqrt(2))),
        _FORMULA,
    ),
    ("joint RDP", sigma_zcdp, "{excess}: accounts jointly, but by Renyi divergence"),
)
_PLD: _Method = ("split, PLD", after_selection(sigma_by_pld), f"{{excess}}: {_ADDED}")
