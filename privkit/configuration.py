"""What a study file needs of a kind of federation: read from plain values, and given back as such."""

from abc import abstractmethod
from typing import Any

from privkit.plug import Settings


class Configuration(Settings):
    """Everything that decides what one run computes, but its seed."""

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: Any, *, where: str) -> "Configuration":
        """Return the configuration that plain values describe; anything unknown is refused."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the configuration as plain values, defaults written out."""
