"""FedAvg (McMahan et al., 2017) of the head: clients send the trained head itself, and the server averages."""

from typing import ClassVar

from pydantic import Field

from privkit.methods._weights import ADAPTER, HEAD, AbstractTestedAverage


class FedAvgHead(AbstractTestedAverage):
    """Federated averaging of the head, so that attacks on parameters have something real to read.

    A round's test uses the mean that arrived in it, or with ``personal`` the head that was trained from it. McMahan et
    al. weigh the mean by record counts, and it is not so here.
    """

    citation: ClassVar[str] = "fedavg"
    way_out: ClassVar[str] = "set method.adapters to false"

    adapters: bool = Field(default=False, description="send adapters besides the head, where there are any")

    @property
    def averaged(self) -> tuple[str, ...]:
        return (HEAD, ADAPTER) if self.adapters else (HEAD,)
