"""What a mechanism promises, in every currency that a case may ask for."""

import math

from accountant.tradeoff import AbstractCurve


class NotUnderstoodError(ValueError):
    """A case asks for something that no law is known for."""


LARGEST_SET = 1_000_000
"""Records or coordinates beyond which a case is not run."""


def refuse_large(**named: int) -> None:
    """Refuse a case that asks for more records or coordinates than are run."""
    for name, value in named.items():
        if value > LARGEST_SET:
            raise NotUnderstoodError(f"{name}={value:g} is not run; at most {LARGEST_SET:,} are")


class Privacy:
    """The privacy of one mechanism, composed over all its rounds; what a subclass leaves out is not known of it."""

    def epsilon(self, *, delta: float) -> float:
        """Return the smallest known epsilon at a delta."""
        raise NotUnderstoodError(f"no epsilon is known of {self!r}")

    def log_delta(self, *, epsilon: float) -> float:
        """Return ln of the smallest known delta at an epsilon."""
        raise NotUnderstoodError(f"no delta is known of {self!r}")

    def rho(self) -> float:
        """Return the zCDP constant."""
        raise NotUnderstoodError(f"no zCDP constant is known of {self!r}")

    def mu(self) -> float:
        """Return the Gaussian-DP parameter."""
        raise NotUnderstoodError(f"no Gaussian-DP parameter is known of {self!r}")

    def curve(self) -> AbstractCurve:
        """Return the ceiling of every attack."""
        raise NotUnderstoodError(f"no trade-off curve is known of {self!r}")

    def advantage(self) -> float:
        """Return the largest TPR - FPR, which is delta at epsilon 0."""
        return math.exp(self.log_delta(epsilon=0.0))
