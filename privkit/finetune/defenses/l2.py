"""L2 regularisation: small weights, which hides nothing from who reads gradients."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.finetune.defenses._base import AbstractTuningDefense
from privkit.finetune.terms import Terms

if TYPE_CHECKING:
    from privkit.finetune.guard import Guard
    from privkit.finetune.model import Tuned
    from privkit.finetune.public import Public


class L2(AbstractTuningDefense):
    """Add ``strength / 2 |w|^2`` over everything but the head to the loss: ``strength w`` to the gradient."""

    citation: ClassVar[str] = "jiang2026fisguard"
    varied = "strength"

    strength: float = Field(default=1e-3, gt=0, description="lambda; FISGuard sweeps 1e-4, 1e-3, 1e-2, 1e-1")

    def guard(self, model: "Tuned", terms: Terms, public: "Public", *, clients: int, seed: int) -> "Guard":
        from privkit.finetune.defenses._l2 import L2Guard

        return L2Guard(terms, strength=self.strength)
