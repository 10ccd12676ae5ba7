"""A lower limit on epsilon with what it rests on."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from accountant import check
from accountant.gaussian import epsilon_from_mu


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A statement that a mechanism leaks at least so much.

    Attributes:
        method: name of the method, with its source.
        epsilon_low: lower limit on epsilon at ``delta``, in nats, at least 0; 0 shows nothing.
        mu_low: lower limit on mu of Gaussian differential privacy, at least 0; ``None`` if not assessed.
        delta: the delta that epsilon belongs to.
        level: probability that the limit holds (for the Bayesian method: posterior probability).
        assumptions: what must be true for the limit to hold, in words.
        threshold_source: what the threshold was chosen from, in words; empty where there is no threshold.
        evidence: the counts behind it.
    """

    method: str
    epsilon_low: float
    mu_low: float | None
    delta: float
    level: float
    assumptions: tuple[str, ...]
    threshold_source: str
    evidence: str

    def __post_init__(self) -> None:
        check.non_negative(epsilon_low=self.epsilon_low)
        if self.mu_low is not None:
            check.non_negative(mu_low=self.mu_low)
        check.open_unit(level=self.level)
        object.__setattr__(self, "assumptions", tuple(self.assumptions))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {**asdict(self), "assumptions": list(self.assumptions)}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Certificate":
        """Read what :meth:`to_dict` wrote; an unknown or a missing field is refused."""
        known = {field.name for field in fields(cls)}
        if set(plain) != known:
            odd = sorted(set(plain) ^ known)[0]
            raise ValueError(
                f"certificate field {odd!r} is unknown or missing; fields are {', '.join(sorted(known))}."
            )
        return cls(**{**plain, "assumptions": tuple(plain["assumptions"])})


@dataclass(frozen=True, kw_only=True)
class NoCertificate:
    """Why a method states no limit.

    Attributes:
        method: its name.
        reason: in words.
    """

    method: str
    reason: str


def epsilon_or_zero(mu_low: float, *, delta: float) -> float:
    """Return epsilon of mu-GDP, 0 for mu = 0."""
    check.open_unit(delta=delta)
    return epsilon_from_mu(mu=mu_low, delta=delta) if mu_low > 0 else 0.0
