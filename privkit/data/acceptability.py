"""Short sentences over many clients, as they were written or with two neighbouring words exchanged.

It stands in for CoLA where that is not at hand: sentences of VADER's ground truth of at most 12 words and marks, each
used once. Nobody has judged them: a sentence counts as unacceptable (0) because its order was changed, and as
acceptable (1) because it was not.
"""

import re
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from privkit.data import _share
from privkit.data._base import Labelled
from privkit.data._skew import AbstractSkewedData
from privkit.data.vader import Vader

HELD_OUT = 0.2
_PIECE = re.compile(r"\w+|[^\w\s]")


class Acceptability(AbstractSkewedData):
    """Sentences of at most 12 words and marks; of about a half, two neighbouring words are exchanged."""

    root: Path | None = Field(
        default=None,
        description="folder of VADER's four published files, or an archive that holds them; null: those of 800 stored "
        "sentences that are short enough",
    )
    most_words: int = Field(default=12, ge=2, description="words and marks of a sentence at most")

    citation: ClassVar[str] = "hutto2014vader, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 2: exchanged and as written."""
        return 2

    def files(self) -> dict[str, Path]:
        """Return the four files, or the archive, by their names; none for the stored sentences."""
        return Vader(root=self.root).files()

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the sentences that are trained on, and a fifth of each class that is tested on, chosen by text."""
        every = Vader(root=self.root, classes=5).load()  # with five classes, no rating is left out
        written = [str(text) for domain in every for text in domain.records]
        short = [text for text in written if len(text.split()) > 1 and self._is_short(text)]
        judged = [_judged(text) for text in short]
        texts = np.array([text for text, _ in judged], np.str_)
        labels = np.array([label for _, label in judged], np.int64)
        tested = np.zeros(len(labels), bool)
        tested[_share.of_each_class(labels, tuple(short), share=HELD_OUT, purpose="test", leave=1)] = True
        return Labelled(texts[~tested], labels[~tested]), Labelled(texts[tested], labels[tested])

    def _is_short(self, text: str) -> bool:
        return len(_PIECE.findall(text)) <= self.most_words


def _judged(text: str) -> tuple[str, int]:
    """Return a sentence as it is, or with two neighbouring words exchanged that differ, and its class."""
    words = text.split()
    drawn = int.from_bytes(_share.rank(text, purpose="acceptability")[:8])
    places = [i for i in range(len(words) - 1) if words[i].lower() != words[i + 1].lower()]
    if drawn % 2 or not places:
        return text, 1
    place = places[drawn // 2 % len(places)]
    words[place], words[place + 1] = words[place + 1], words[place]
    return " ".join(words), 0
