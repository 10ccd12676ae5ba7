"""One mu in every unit that people state a budget in."""

from dataclasses import dataclass
from typing import Any

from accountant import check
from accountant.gaussian import epsilon_from_mu
from accountant.tradeoff import GaussianCurve

FPRS = (0.01, 0.001)
"""False-positive rates at which a true-positive rate is stated."""


@dataclass(frozen=True, kw_only=True)
class Equivalents:
    """What mu-Gaussian differential privacy means.

    Attributes:
        mu: > 0.
        delta: of the epsilon, in (0, 1).

    >>> found = Equivalents(mu=0.26805112, delta=1e-5)
    >>> round(found.epsilon, 4), round(found.advantage, 4), round(found.auc, 4), round(found.tprs[0.01], 5)
    (1.0, 0.1066, 0.5752, 0.01978)
    """

    mu: float
    delta: float

    def __post_init__(self) -> None:
        check.positive(mu=self.mu)
        check.open_unit(delta=self.delta)

    @property
    def epsilon(self) -> float:
        """Return the smallest epsilon at delta, in nats."""
        return epsilon_from_mu(mu=self.mu, delta=self.delta)

    @property
    def advantage(self) -> float:
        """Return the largest TPR - FPR of any membership attack."""
        return GaussianCurve(mu=self.mu).advantage

    @property
    def auc(self) -> float:
        """Return the largest area under the ROC curve of any membership attack."""
        return GaussianCurve(mu=self.mu).auc

    @property
    def tprs(self) -> dict[float, float]:
        """Return the largest true-positive rate of any membership attack at each of :data:`FPRS`."""
        return {fpr: GaussianCurve(mu=self.mu).tpr(fpr) for fpr in FPRS}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "mu": self.mu,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "advantage": self.advantage,
            "auc": self.auc,
            "tpr_at_fpr": {f"{fpr:g}": tpr for fpr, tpr in self.tprs.items()},
        }
