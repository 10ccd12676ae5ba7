"""IMDb over many clients: film reviews, negative or positive."""

from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from privkit.data import _share
from privkit.data._base import Labelled
from privkit.data._published import Published
from privkit.data._skew import AbstractSkewedData
from privkit.errors import InputError

SIDES = ("neg", "pos")
PUBLISHED = Published(
    title="IMDb",
    layout="train/neg and train/pos with one review per .txt file",
    source="Maas et al., Learning Word Vectors for Sentiment Analysis, ACL 2011",
    twin="editorials",
)


class Imdb(AbstractSkewedData):
    """The Large Movie Review Dataset: of its 25,000 training reviews, a tenth is held out to test on (FISGuard)."""

    root: Path = Field(description="folder that holds train/neg and train/pos, or a folder aclImdb with both")
    held_out: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="share of each class that is tested on, chosen by the files' names",
    )

    citation: ClassVar[str] = "maas2011imdb, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 2: negative and positive."""
        return len(SIDES)

    def files(self) -> dict[str, Path]:
        """Return every training review by its path below the folder ``train``."""
        root = PUBLISHED.folder(self.root)
        for folder in (root / "train", root / "aclImdb" / "train"):
            found = {
                f"{side}/{path.name}": path
                for side in SIDES
                for path in sorted((folder / side).glob("*.txt"))
            }
            if {name.partition("/")[0] for name in found} == set(SIDES):
                return found
        raise PUBLISHED.missing(f"root={str(self.root)!r} lacks reviews in train/neg or train/pos")

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the reviews that are trained on and those that are held out; line breaks become blanks."""
        files = self.files()
        names = tuple(files)
        labels = np.array([SIDES.index(name.partition("/")[0]) for name in names], np.int64)
        texts = np.array([_review(path) for path in files.values()], np.str_)
        tested = np.zeros(len(names), bool)
        tested[_share.of_each_class(labels, names, share=self.held_out, purpose="imdb", leave=1)] = True
        return Labelled(texts[~tested], labels[~tested]), Labelled(texts[tested], labels[tested])


def _review(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}); get it again.") from None
    found = " ".join(text.replace("<br />", " ").split())
    if not found:
        raise InputError(f"{path} holds no text; get it again.")
    return found
