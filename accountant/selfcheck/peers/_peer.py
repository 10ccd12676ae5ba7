"""What a library can be asked."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from importlib.util import find_spec
from typing import Any

from accountant.selfcheck.privacy import Privacy

Answer = Callable[..., float]


class CannotAnswerError(ValueError):
    """A library has no answer, or one that is known to take too long or too much memory."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One way in which one library accounts.

    Attributes:
        name: as the table shows it.
        package: that must be installed.
        epsilon: from a privacy and ``delta``; a single-dispatch function, as a library knows some mechanisms only.
        delta: from a privacy and ``epsilon``, in the same way.
        advantage: from a privacy, in the same way.
        tpr: from a privacy and ``fpr``, in the same way.
        sigma: from ``epsilon``, ``delta`` and ``rounds``, for Gaussian noise.
        of_sigma: epsilon from any ``sigma``, also one that must be refused.
    """

    name: str
    package: str
    epsilon: Answer
    delta: Answer | None = None
    advantage: Answer | None = None
    tpr: Answer | None = None
    sigma: Answer | None = None
    of_sigma: Answer | None = None

    @property
    def installed(self) -> bool:
        """Return whether its package can be imported."""
        return find_spec(self.package) is not None


def by_mechanism() -> Any:
    """Return a function that has no answer for any mechanism, to be registered for those it knows."""

    @singledispatch
    def answer(privacy: Privacy, **asked: float) -> float:
        raise CannotAnswerError(f"{type(privacy).__name__} is not among its mechanisms")

    return answer


def refuse_large(mu: float, *, largest: float = 100.0) -> None:
    """Refuse what would take gigabytes or minutes on a grid of privacy losses."""
    if mu > largest:
        raise CannotAnswerError(f"mu={mu:.3g} is known to hang or to run out of memory")
