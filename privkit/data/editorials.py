"""Long texts over many clients: passages of editorials of the New York Times, by their mean sentiment."""

from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from privkit.data import _share, _valence
from privkit.data._base import Labelled
from privkit.data._editorials import passages
from privkit.data._skew import AbstractSkewedData
from privkit.data.vader import PUBLISHED
from privkit.errors import InputError

HELD_OUT = 0.2


class Editorials(AbstractSkewedData):
    """Six consecutive sentences of one editorial each (641 texts of about 141 tokens): below 0 on average, or not."""

    root: Path = Field(description="folder of VADER's four published files, or an archive that holds them")
    sentences: int = Field(default=6, ge=1, description="consecutive sentences of one text")

    citation: ClassVar[str] = "hutto2014vader, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 2: negative and positive."""
        return 2

    def files(self) -> dict[str, Path]:
        """Return the four files, or the archive, by their names."""
        if not self.root.exists():
            raise PUBLISHED.missing(f"root={str(self.root)!r} does not exist")
        found = _valence.located(self.root)
        if not found:
            raise PUBLISHED.missing(f"root={str(self.root)!r} lacks {_valence.FILES['nyt']}")
        return found

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the texts that are trained on, and a fifth of each class that is tested on, chosen by their text."""
        content = _valence.contents(self.files())[_valence.FILES["nyt"]]
        found = list(passages(content, sentences=self.sentences, where=_valence.FILES["nyt"]))
        if not found:
            raise InputError(f"no editorial has {self.sentences} sentences; lower sentences.")
        texts = np.array([one.text for one in found], np.str_)
        labels = (np.array([one.rating for one in found]) >= 0).astype(np.int64)
        tested = np.zeros(len(labels), bool)
        names = tuple(f"{row}\0{one.text}" for row, one in enumerate(found))
        tested[_share.of_each_class(labels, names, share=HELD_OUT, purpose="test", leave=1)] = True
        return Labelled(texts[~tested], labels[~tested]), Labelled(texts[tested], labels[tested])
