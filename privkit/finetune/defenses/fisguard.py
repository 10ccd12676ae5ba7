"""FISGuard: trained maps read a fixed subspace of public directions, so that gradients span it for everybody."""

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.finetune.defenses._base import AbstractTuningDefense
from privkit.finetune.terms import Terms

if TYPE_CHECKING:
    from privkit.finetune.guard import Guard
    from privkit.finetune.model import Tuned
    from privkit.finetune.public import Public


class Basis(StrEnum):
    """Where the fixed directions come from."""

    PUBLIC = "public"
    """The leading right singular vectors of what the map reads of public records: every token a row, uncentred."""
    RANDOM = "random"
    """Random orthonormal rows: FFA-LoRA."""


class RankAudit(StrEnum):
    """What a client does about a map whose gradient does not have full rank, before it sends it."""

    OFF = "off"
    """It is sent, as in the paper."""
    LOWER = "lower"
    """It is sent for as many leading directions as it has full rank on; 0 is sent for the others."""
    REFUSE = "refuse"
    """Nothing of it is sent: 0 in every place."""


class Fisguard(AbstractTuningDefense):
    """Every trained map becomes ``W0 x + U Q x`` with fixed Q and W0, and U trained from 0.

    An adapter becomes ``h + U Q h``, LoRA's A is Q and its B is U, and the head, if it is protected, keeps its initial
    weights beside U Q and trains its bias. It makes no promise: gradient vectors leak what their row space hides.
    Source: Jiang and Shen (2026), Section IV; Sun et al. (2024) for random directions.
    """

    citation: ClassVar[str] = "jiang2026fisguard, sun2024ffalora"
    varied = "rank"

    rank: int = Field(
        default=16,
        ge=1,
        description="directions kept, r, below the width of every map's input; FISGuard gives no value",
    )
    basis: Basis = Field(default=Basis.PUBLIC, description="public (singular vectors) or random (FFA-LoRA)")
    protect_head: bool = Field(
        default=True,
        description="whether the head is reparameterised too, as the method's own criterion asks",
    )
    rank_audit: RankAudit = Field(
        default=RankAudit.OFF,
        description="what a client does where the gradient's rank is below r: off (the paper), lower or refuse",
    )

    def prepare(self, model: "Tuned", public: "Public", *, seed: int) -> None:
        from privkit.finetune.defenses._fisguard import reparameterise

        reparameterise(self, model, public, seed=seed)

    def guard(self, model: "Tuned", terms: Terms, public: "Public", *, clients: int, seed: int) -> "Guard":
        from privkit.finetune.defenses._fisguard import RankGuard

        return RankGuard(self, terms, model)
