"""Methods that divide what is trained into a base, which is averaged, and a head."""

from typing import ClassVar

from privkit.methods._weights import ADAPTER, KEEP_MAPS, TRANSFORM, AbstractAverageOfWeights
from privkit.personal import PersonalModel

BASE = (ADAPTER, TRANSFORM)
"""What the names of a base's parameters begin with: the map between frozen embedding and head."""


class AbstractBaseAndHead(AbstractAverageOfWeights):
    """Federated averaging of the base; a round is tested with the base that arrived in it and the client's own head."""

    serves_newcomers: ClassVar[bool] = False
    way_out: ClassVar[str] = KEEP_MAPS

    @property
    def averaged(self) -> tuple[str, ...]:
        return BASE

    def refuse_model(self, model: PersonalModel) -> None:
        if model.adapter is None and model.transform is None:
            raise ValueError(
                f"method {self.name} averages the map in front of the head, and the model has none; set model.adapter "
                "or model.transform, or take method fedavg"
            )
