"""AG's news over many clients with label skew: headlines and first sentences in four classes."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from privkit.data._base import Labelled
from privkit.data._published import Published
from privkit.data._skew import AbstractSkewedData
from privkit.errors import InputError

CLASSES = 4
COLUMNS = 3
HEADER = "Class Index"
PUBLISHED = Published(
    title="AG's news",
    layout="train.csv and test.csv with class 1 to 4, title and description per line",
    source="Zhang et al., Character-level Convolutional Networks for Text Classification, NeurIPS 2015",
    twin="vader",
)


class AgNews(AbstractSkewedData):
    """AG's news: 120,000 training and 7,600 test texts on world, sports, business and science."""

    root: Path = Field(description="folder that holds train.csv and test.csv")
    per_class: int | None = Field(
        default=3000,
        ge=1,
        description="training records per class, the first in stored order; null: all 30,000",
    )
    chars: int = Field(
        default=512,
        ge=1,
        le=5000,
        description="characters of each text that are kept; encoders read about as many",
    )

    citation: ClassVar[str] = "zhang2015character, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 4: world, sports, business, science and technology."""
        return CLASSES

    def files(self) -> dict[str, Path]:
        """Return the two files by their names."""
        root = PUBLISHED.folder(self.root)
        for folder in (root, root / "ag_news_csv", root / "AG_NEWS"):
            paths = {name: folder / name for name in ("train.csv", "test.csv")}
            if all(path.is_file() for path in paths.values()):
                return paths
        raise PUBLISHED.missing(f"root={str(self.root)!r} lacks train.csv or test.csv")

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the training and the test texts: title and description, a blank between; at most ``chars`` of each."""
        train, test = (self._part(path) for path in self.files().values())
        return train, test

    def _part(self, path: Path) -> Labelled:
        labels, texts = [], []
        for label, text in _rows(path):
            labels.append(label)
            texts.append(text[: self.chars])
        if not labels:
            raise InputError(f"{path} holds no text; get it again.")
        return Labelled(np.array(texts, np.str_), np.array(labels, np.int64))


def _rows(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the class, from 0, and the text of each row; a header is passed over.

    The published files write a line break as a backslash, which becomes a blank.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file, strict=True), start=1):
                if number == 1 and row[:1] == [HEADER]:
                    continue
                if len(row) != COLUMNS or row[0] not in ("1", "2", "3", "4"):
                    raise InputError(
                        f"{path}, row {number}: {str(row)[:80]} is not class 1 to 4, title and description; "
                        "get it again."
                    )
                yield int(row[0]) - 1, " ".join(f"{row[1]} {row[2]}".replace("\\", " ").split())
    except (csv.Error, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}); get it again.") from None
