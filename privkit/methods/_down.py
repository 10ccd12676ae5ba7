"""What the clients of a batch got from their servers, as stacked tensors."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Down:
    """A round's answers. ``down[name]`` has the client axis first, whether all clients of a run got the same or not.

    Attributes:
        each: what differs by client, by name, each of shape [G, ...].
        shared: what every client of a run got, by name, each of shape [R, ...]: held once per run.
        run_G: run of each client, an index into ``shared``.
    """

    each: "dict[str, Tensor]"
    shared: "dict[str, Tensor]"
    run_G: "Tensor"
    _spread: "dict[str, Tensor]" = field(default_factory=dict)
    _whole: "Down | None" = None
    _part: slice | None = None

    def __getitem__(self, name: str) -> "Tensor":
        if self._whole is not None:
            return self._whole[name][self._part]
        if name in self.each:
            return self.each[name]
        if name not in self._spread:
            self._spread[name] = self.shared[name][self.run_G]
        return self._spread[name]

    def __contains__(self, name: str) -> bool:
        if self._whole is not None:
            return name in self._whole
        return name in self.each or name in self.shared

    def part(self, clients: slice) -> "Down":
        """Return what some of the clients got; nothing is copied."""
        if self._whole is not None:
            raise ValueError("take parts of the whole only.")
        each = {name: tensor[clients] for name, tensor in self.each.items()}
        return Down(each=each, shared=self.shared, run_G=self.run_G[clients], _whole=self, _part=clients)

    def of(self, clients: "Tensor") -> "Down":
        """Return what the clients of some numbers got, as copies."""
        each = {name: tensor[clients] for name, tensor in self.each.items()}
        return Down(each=each, shared=self.shared, run_G=self.run_G[clients])

    def first(self, clients: int) -> "Down":
        """Return what the first so many clients got; nothing is copied."""
        return self.part(slice(clients))
