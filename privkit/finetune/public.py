"""Records that the server and any attacker own."""

from dataclasses import dataclass

import numpy as np

from privkit.finetune.texts import Texts

STANDARDISING = 200
"""Public records that the head's features are centred and scaled by, at most."""


@dataclass(frozen=True, eq=False)
class Public:
    """Labelled texts, members of no client.

    Attributes:
        texts: what they say.
        labels: class of each, shape [N].
        clients: of whose domain each is, shape [N].
        rows: place of each in its domain, shape [N].
    """

    texts: Texts
    labels: np.ndarray
    clients: np.ndarray
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, n: int) -> "Public":
        """Return the first so many of them."""
        return Public(
            self.texts.take(np.arange(min(n, len(self)))), self.labels[:n], self.clients[:n], self.rows[:n]
        )
