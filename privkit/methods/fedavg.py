"""FedAvg (McMahan et al., 2017): clients send all that they train, and the server averages."""

from typing import ClassVar

from privkit.methods._weights import AbstractAverageOfModel, AbstractTestedAverage


class FedAvg(AbstractTestedAverage, AbstractAverageOfModel):
    """Federated averaging of the whole trained model: the map after the frozen encoder, and the head.

    A round's test uses the mean that arrived in it, or with ``personal`` what the client trained from it. McMahan et
    al. weigh the mean by record counts, and it is not so here.
    """

    citation: ClassVar[str] = "fedavg"
