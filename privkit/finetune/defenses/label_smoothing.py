"""Label smoothing: softer targets."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.finetune.defenses._base import AbstractTuningDefense
from privkit.finetune.terms import Terms

if TYPE_CHECKING:
    from privkit.finetune.guard import Guard
    from privkit.finetune.model import Tuned
    from privkit.finetune.public import Public


class LabelSmoothing(AbstractTuningDefense):
    """Train towards ``1 - alpha + alpha / C`` for the true class and ``alpha / C`` for every other one."""

    citation: ClassVar[str] = "szegedy2016rethinking, jiang2026fisguard"
    varied = "alpha"

    alpha: float = Field(default=0.1, gt=0, lt=1, description="FISGuard sweeps 0.02, 0.05, 0.1, 0.2, 0.4")

    def guard(self, model: "Tuned", terms: Terms, public: "Public", *, clients: int, seed: int) -> "Guard":
        from privkit.finetune.defenses._label_smoothing import SmoothingGuard

        return SmoothingGuard(terms, alpha=self.alpha)
