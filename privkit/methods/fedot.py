"""FedOT (Kong et al., 2026): the head is everybody's, the map in front of it is the client's own."""

from typing import ClassVar, Literal

from pydantic import Field

from privkit.methods._weights import ADAPTER, HEAD, TRANSFORM, AbstractAverageOfWeights


class FedOt(AbstractAverageOfWeights):
    """A shared head behind a personal map, trained together; FedOT and what it is compared with, by the model.

    ==================================================  ===================================================
    model                                               method
    ==================================================  ===================================================
    ``transform: rotation``, ``temperature``            FedOT; with ``blocks`` above 1, FedOT(+B)
    the same, and ``maps: averaged``                    FedOT (All Global): the mean is of the matrices that
                                                        rotations are made of, since one of rotations is none
    the same, and method ``local_only``                 FedOT (All Local)
    ``transform: linear``, ``temperature``              FedLT
    ``adapter``, ``temperature``                        FedAdapter
    neither                                             federated averaging of a head on frozen embeddings
    any, for one round                                  no training: zero-shot by ``first_head``
    ==================================================  ===================================================

    A round is tested before it is trained: by the head that arrived, behind the client's own map, which was trained in
    earlier rounds together with what that head is the mean of. So the first test is of the initial head, and what is
    trained in the last round is tested by nobody. A newcomer has no map of its own: it starts as the identity.

    The paper's optimiser, step size, temperature and numbers of rounds and epochs are not known here. It does not say
    whether optimisers begin anew in every round; here they do not.
    """

    citation: ClassVar[str] = "fedot"
    tests_arrivals: ClassVar[bool] = True
    way_out: ClassVar[str] = "set method.maps to personal"

    maps: Literal["personal", "averaged"] = Field(
        default="personal",
        description="keep the map between embedding and head at the client, or average it as the head is",
    )

    @property
    def averaged(self) -> tuple[str, ...]:
        return (HEAD,) if self.maps == "personal" else (HEAD, ADAPTER, TRANSFORM)
