"""Local training as DP-SGD: each record's gradient is clipped, and the sum over a Poisson sample has noise."""

from pydantic import Field

from privkit.defenses._local import LocalRule


class RecordNoise(LocalRule):
    """Clip and noise of every step; the training loop draws samples and noise, keyed by (seed, round, client)."""

    clip_norm: float = Field(
        gt=0, description="largest l2 norm of one record's gradient, over all that a step trains"
    )
    noise_std: float = Field(
        gt=0, description="standard deviation of the noise on the sum of gradients, in the units of clip_norm"
    )
