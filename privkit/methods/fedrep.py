"""FedRep (Collins et al., 2021), FedPer and FedBABU: the base is averaged, the head stays with the client."""

from typing import ClassVar, Literal

from pydantic import Field

from privkit.methods._base_and_head import BASE, AbstractBaseAndHead
from privkit.methods._phases import Phase
from privkit.methods._weights import HEAD


class FedRep(AbstractBaseAndHead):
    """A shared base under personal heads; what of them is trained, and when, tells three methods apart.

    ============  ======================  ===========================================================
    ``order``     method                  a round
    ============  ======================  ===========================================================
    in_turns      FedRep                  the head with the base fixed, then the base with that head fixed
    together      FedPer (Arivazhagan)    both together
    base_only     FedBABU (Oh)            the base under the head that all begin with
    ============  ======================  ===========================================================

    FedBABU's last step, in which each client tunes its whole model after the last round, is not reproduced: nothing of
    it is sent. In turns, ``training.epochs`` are those of the base, and head and base have optimisers of their own.
    """

    citation: ClassVar[str] = "fedrep"

    head_epochs: int = Field(
        default=1, ge=0, description="passes that train the head alone, before the base; in_turns only"
    )
    order: Literal["in_turns", "together", "base_only"] = Field(
        default="in_turns", description="what a round trains: FedRep, FedPer or FedBABU"
    )

    @property
    def phases(self) -> tuple[Phase, ...]:
        epochs = self.training.epochs
        head = Phase(epochs=self.head_epochs, loss=self.loss, trained=(HEAD,))
        base = Phase(epochs=epochs, loss=self.loss, trained=BASE)
        both = Phase(epochs=epochs, loss=self.loss, trained=(HEAD, *BASE))
        return {"in_turns": (head, base), "together": (both,), "base_only": (base,)}[self.order]
