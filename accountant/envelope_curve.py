"""Ceiling of several guarantees that hold at once."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from accountant import check
from accountant.tradeoff import AbstractCurve, ApproximateCurve, GaussianCurve

_CELLS = 4000  # of the area, half of them below a false-positive rate of 1/2
_NEAREST = 1e-12  # false-positive rate at which the first cell ends

Rates = Float[np.ndarray, " N"]


@dataclass(frozen=True, kw_only=True)
class EnvelopeCurve(AbstractCurve):
    """Ceiling of a mechanism that keeps every one of several promises.

    No attack exceeds any of the promises, hence none exceeds the lowest of their ceilings.

    Attributes:
        guarantees: pairs (epsilon, delta), each of them kept; epsilon in nats, at least 0, delta in [0, 1].
        mu: the mechanism is also mu-GDP; left out if it is not known to be.

    Raises:
        ValueError: there is no promise.

    >>> curve = EnvelopeCurve(guarantees=((0.1, 0.02), (1.0, 1e-5)))
    >>> round(curve.tpr(0.001), 5), round(curve.tpr(0.2), 5), round(curve.advantage, 5)
    (0.00273, 0.24103, 0.06896)

    Source: Dong, Roth and Su (2022), Propositions 2.5 and 2.12, https://arxiv.org/abs/1905.02383
    """

    guarantees: tuple[tuple[float, float], ...]
    mu: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "guarantees", tuple((eps, delta) for eps, delta in self.guarantees))
        if not self._curves:
            raise ValueError("guarantees=() and no mu promise nothing; give one, or use NoPromise.")

    def tpr(self, fpr: float, /) -> float:
        """Return the lowest of the promises' true-positive rates."""
        check.closed_unit(fpr=fpr)
        return float(self._rates(np.array([float(fpr)]))[0])

    @property
    def auc(self) -> float:
        """Return the area below the curve, at most 1e-6 too large."""
        half = np.concatenate([[0.0], np.geomspace(_NEAREST, 0.5, _CELLS // 2)])
        edges = np.concatenate([half, 1 - half[-2::-1]])
        middles = (edges[1:] + edges[:-1]) / 2
        # the curve is concave: a cell's middle is not below its mean
        area = float(np.sum(self._rates(middles) * np.diff(edges)))
        return min([area, *(curve.auc for curve in self._curves)])

    @property
    def advantage(self) -> float:
        """Return the smallest of the promises' advantages.

        Every ceiling is its own mirror image in the line TPR = 1 - FPR and therefore farthest from chance on it.
        """
        return min(curve.advantage for curve in self._curves)

    @cached_property
    def _curves(self) -> list[AbstractCurve]:
        curves: list[AbstractCurve] = [ApproximateCurve(epsilon=e, delta=d) for e, d in self.guarantees]
        return curves if self.mu is None else [*curves, GaussianCurve(mu=self.mu)]

    def _rates(self, fpr: Rates) -> Rates:
        lowest = np.ones_like(fpr) if self.mu is None else ndtr(ndtri(fpr) + self.mu)
        if self.guarantees:
            epsilon, delta = np.array(self.guarantees, dtype=np.float64).T[:, :, None]
            with np.errstate(divide="ignore"):
                lifted = np.exp(np.minimum(epsilon + np.log(fpr), 0.0)) + delta
            mirrored = np.exp(-epsilon) * (delta + fpr) - np.expm1(-epsilon)
            lowest = np.minimum(lowest, np.minimum(lifted, mirrored).min(axis=0))
        return np.minimum(lowest, 1.0)
