"""Dropout on intermediate features, in training only."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.finetune.defenses._base import AbstractTuningDefense
from privkit.finetune.terms import Terms

if TYPE_CHECKING:
    from privkit.finetune.guard import Guard
    from privkit.finetune.model import Tuned
    from privkit.finetune.public import Public


class Dropout(AbstractTuningDefense):
    """Drop features that the head, an adapter's up projection and LoRA's A read; FISGuard does not say where it does.

    What an adapter's down projection reads is left as it is: hiding it would be another defense.
    """

    citation: ClassVar[str] = "srivastava2014dropout, jiang2026fisguard"
    varied = "p"

    p: float = Field(
        default=0.1, gt=0, lt=1, description="share of features dropped; FISGuard sweeps 0.05 to 0.4"
    )

    def guard(self, model: "Tuned", terms: Terms, public: "Public", *, clients: int, seed: int) -> "Guard":
        from privkit.finetune.defenses._dropout import DropoutGuard

        return DropoutGuard(terms, p=self.p, seed=seed)
