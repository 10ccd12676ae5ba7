"""Adversarial regularisation: train against somebody who tells members from others by the model's answers."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.finetune.defenses._base import AbstractTuningDefense
from privkit.finetune.terms import Terms

if TYPE_CHECKING:
    from privkit.finetune.guard import Guard
    from privkit.finetune.model import Tuned
    from privkit.finetune.public import Public


class MinMax(AbstractTuningDefense):
    """Add ``strength log h`` to every record's loss, where h is how sure an adversary is that it is a member.

    Each client has an adversary of its own, which reads class probabilities and the label, and is trained on every
    batch against public records first. Source: Nasr, Shokri and Houmansadr (2018), Algorithm 1
    """

    citation: ClassVar[str] = "nasr2018adversarial, jiang2026fisguard"
    varied = "strength"

    strength: float = Field(default=1.0, gt=0, description="lambda; FISGuard sweeps 0.1, 0.3, 1, 3, 10")
    learning_rate: float = Field(
        default=3e-3, gt=0, description="of the adversary's Adam, new for every batch"
    )
    updates: int = Field(default=5, ge=1, description="steps of the adversary per batch")
    hidden: int = Field(default=128, ge=1, description="units of the adversary's hidden layer")
    non_members: int = Field(
        default=256,
        ge=1,
        description="public records that it is trained against; all of them where there are fewer",
    )

    def guard(self, model: "Tuned", terms: Terms, public: "Public", *, clients: int, seed: int) -> "Guard":
        from privkit.finetune.defenses._min_max import MinMaxGuard

        return MinMaxGuard(
            self, terms, public.first(self.non_members), model=model, clients=clients, seed=seed
        )
