"""One step of DP-SGD."""

from dataclasses import dataclass

from accountant.events._base import Leaf, keep_positive


@dataclass(frozen=True, kw_only=True)
class SubsampledGaussian(Leaf):
    """Gaussian noise on a sum over a Poisson sample: every record is in it independently, and secretly.

    Sampling amplifies privacy under every relation; to replace a record moves the sum by two clip norms, so a
    ``noise_multiplier`` stated for it is half of that for adding or removing one.

    Attributes:
        noise_multiplier: noise standard deviation / l2 sensitivity under the contract's relation; > 0.
        sampling_rate: probability that a record is in the sample, in (0, 1].
    """

    noise_multiplier: float
    sampling_rate: float

    def __post_init__(self) -> None:
        keep_positive(self, "noise_multiplier", "sampling_rate")
        if self.sampling_rate > 1:
            raise ValueError(f"sampling_rate={self.sampling_rate} must be a probability above 0, at most 1.")

    @property
    def amplified(self) -> bool:
        """Return whether a step costs less than that of the plain Gaussian mechanism."""
        return self.sampling_rate < 1
