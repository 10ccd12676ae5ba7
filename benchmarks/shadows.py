"""What shadow models are trained on: features, classes, and which shadow has which record."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attacks.model._halves import halves
from attacks.model._stacked import Schedule, largest_eigenvalue

EPOCHS, BATCH, MOMENTUM, STEP, DECAY = 20, 256, 0.9, 0.5, 1e-4
SCHEDULE = Schedule(epochs=EPOCHS, batch_size=BATCH, step=STEP, decay=DECAY)


@dataclass(frozen=True, eq=False)
class Given:
    """Records and halves of them.

    Attributes:
        x: features, the last a constant, float32 of shape [N, d].
        y: class of each, shape [N].
        held: which shadow has which record, shape [S, N]; the last is the target.
        num_classes: of the heads.
    """

    x: np.ndarray
    y: np.ndarray
    held: np.ndarray
    num_classes: int

    @classmethod
    def of(cls, *, records: int, dim: int, num_classes: int, shadows: int) -> "Given":
        """Return records around one centre per class, near enough to each other for a head to learn some by heart."""
        rng = np.random.default_rng(0)
        y = rng.integers(0, num_classes, records)
        centres = 0.2 * rng.standard_normal((num_classes, dim - 1))
        x = centres[y] + rng.standard_normal((records, dim - 1))
        return cls(
            np.column_stack([x, np.ones(records)]).astype(np.float32),
            y,
            halves(records, shadows, seed=(1,)),
            num_classes,
        )

    @cached_property
    def curvature(self) -> float:
        return 0.5 * largest_eigenvalue(self.x)

    @property
    def rate(self) -> float:
        return STEP / self.curvature

    @property
    def decay(self) -> float:
        return DECAY * self.curvature
