"""privkit: what a federated release promises, what can be taken from it, and what it cost."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privkit.recorder import Recorder as Recorder

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import the face lazily, so that the command line and ``import accountant`` stay light."""
    if name == "Recorder":
        from privkit.recorder import Recorder

        return Recorder
    raise AttributeError(f"module 'privkit' has no attribute {name!r}")
