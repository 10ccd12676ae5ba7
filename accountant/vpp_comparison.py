"""Every calibration of VPP's noise in use, side by side, each held against the joint one."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from accountant import gaussian, joint, paper, rdp
from accountant.comparison import Calibration, compare, sigma_by_pld
from accountant.groupwise import Allocation
from accountant.vpp import SplitCalibration, after_selection, sigma_joint, sigma_ref, sigma_zcdp


@dataclass(frozen=True, kw_only=True)
class VppCalibration:
    """What one method makes of VPP's budget.

    Attributes:
        reference: its sigma_ref, held against the joint one; ``true_epsilon`` and ``valid`` count the selection as
            randomised response, the worst of its kind.
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
        scale: lambda of the selection's Laplace noise, > 0.
        with_pld: whether to ask dp-accounting's privacy loss distributions too, which takes seconds.

    >>> for row in vpp_calibrations(
    ...     epsilon=8.0, delta=1e-5, rounds=50, split=0.1, allocation=Allocation.of(dim=512, rho=0.1), scale=650.0
    ... )[::4]:
    ...     print(f"{row.reference.method}: {row.reference.sigma:.4f}, {row.note}")
    joint: 4.2541, the least noise known to keep the budget: selection and noise accounted together
    split, formula, c1 = 1: 3.3323, breaks the budget: the noise alone really costs epsilon 10.76
    """
    budget = {"epsilon": epsilon, "delta": delta, "rounds": rounds, "split": split}
    least = sigma_joint(**budget)
    pure = {split * epsilon / rounds: rounds}
    methods = (*_METHODS, _PLD) if with_pld else _METHODS
    references = compare(
        [(name, calibrate) for name, calibrate, _ in methods],
        budget,
        smallest=least,
        true_epsilon=lambda sigma: joint.epsilon(delta=delta, mu=math.sqrt(rounds) / sigma, pure=pure),
        true_delta=lambda sigma: joint.delta(epsilon=epsilon, mu=math.sqrt(rounds) / sigma, pure=pure),
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


def _note(reference: Calibration, cause: str, *, alone: float, epsilon: float) -> str:
    if reference.valid:
        wasted = max(reference.excess_percent or 0.0, 0.0)
        return cause.format(excess=f"{wasted:.1f} % more noise than needed")
    if alone > epsilon:
        return f"breaks the budget: the noise alone really costs epsilon {alone:.4g}"
    return f"breaks the budget: with the selection it may cost epsilon {reference.true_epsilon:.4g}"


_ADDED = "adds the selection's loss to the noise's"
_FORMULA = "{excess} here; no constant is right at every epsilon"
_Method = tuple[str, Callable[..., float], str]
_METHODS: tuple[_Method, ...] = (
    (
        "joint",
        sigma_joint,
        "the least noise known to keep the budget: selection and noise accounted together",
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
