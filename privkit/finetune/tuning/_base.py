"""What every way of tuning gives: trained linear maps in a frozen transformer, and the same with fixed inputs."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from privkit.plug import Plugin

if TYPE_CHECKING:
    from torch.nn import Linear, Module


class AbstractTuning(Plugin):
    """Trained maps put into a transformer. Every one is a ``Linear``, so that its gradient is slopes times inputs."""

    @abstractmethod
    def insert(self, net: "Module") -> "Module":
        """Put trained maps into a frozen network, drawn from torch's current generator.

        Args:
            net: a base model of the transformers library; it is changed.

        Returns:
            what holds those maps that stand beside the network's own modules; it may be empty.

        Raises:
            InputError: the network has no place for them.
        """

    @abstractmethod
    def fix_inputs(self, net: "Module", beside: "Module", *, rank: int) -> "dict[str, Linear]":
        """Replace every pair of maps, in and out, by a fixed one of ``rank`` rows and a trained one that begins at 0.

        The model gives what it gave without any tuning then (FISGuard, Step 1.4).

        Returns:
            the fixed maps, whose weights [rank, d] are 0 until somebody sets them, by a name.

        Raises:
            InputError: ``rank`` is not below the width of an input.
        """
