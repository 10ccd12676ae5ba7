"""One step of DP-SGD."""

from dataclasses import dataclass

from accountant import check
from accountant.contract import Relation
from accountant.events._base import Leaf

_AMPLIFIED = (Relation.ADD_REMOVE, Relation.ZERO_OUT)


@dataclass(frozen=True, kw_only=True)
class SubsampledGaussian(Leaf):
    """Gaussian noise on a sum over a Poisson sample: every record is in it independently, and secretly.

    Sampling amplifies privacy where the contract's relation is to add or remove one record, or to zero one out;
    under the others a step is priced as if nothing were sampled.

    Attributes:
        noise_multiplier: noise standard deviation / l2 sensitivity under the contract's relation; > 0.
        sampling_rate: probability that a record is in the sample, in (0, 1].
    """

    noise_multiplier: float
    sampling_rate: float

    def __post_init__(self) -> None:
        check.positive(noise_multiplier=self.noise_multiplier)
        check.positive(sampling_rate=self.sampling_rate)
        if self.sampling_rate > 1:
            raise ValueError(f"sampling_rate={self.sampling_rate} must be a probability above 0, at most 1.")

    @property
    def amplified(self) -> bool:
        """Return whether a step is priced below that of the plain Gaussian mechanism."""
        return self.sampling_rate < 1 and self.contract.relation in _AMPLIFIED
