"""SST-5 over many clients: sentences of film reviews in five classes of sentiment."""

import re
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from privkit.data._base import Labelled
from privkit.data._published import Published
from privkit.data._skew import AbstractSkewedData
from privkit.errors import InputError

CLASSES = 5
FILES = ("train.txt", "dev.txt")
_TREE = re.compile(r"\(([0-4]) .+\)")
_LEAF = re.compile(r"\([0-4] ([^()\s]+)\)")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")"}
PUBLISHED = Published(
    title="SST-5",
    layout="train.txt and dev.txt with one tree per line, each node its class from 0 to 4 and a word or two nodes",
    source="Socher et al., Recursive Deep Models for Semantic Compositionality, EMNLP 2013",
    twin="vader with classes: 5",
)


class Sst5(AbstractSkewedData):
    """The Stanford Sentiment Treebank: 8,544 sentences to train on and 1,101 to test on; phrases are not used."""

    root: Path = Field(description="folder that holds train.txt and dev.txt, or a folder trees with both")

    citation: ClassVar[str] = "socher2013recursive, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 5: very negative, negative, neutral, positive, very positive."""
        return CLASSES

    def files(self) -> dict[str, Path]:
        """Return the two files by their names."""
        root = PUBLISHED.folder(self.root)
        for folder in (root, root / "trees"):
            paths = {name: folder / name for name in FILES}
            if all(path.is_file() for path in paths.values()):
                return paths
        raise PUBLISHED.missing(f"root={str(self.root)!r} lacks train.txt or dev.txt")

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the training and the validation sentences, words with a blank between."""
        train, test = (_part(path) for path in self.files().values())
        return train, test


def _part(path: Path) -> Labelled:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}); get it again.") from None
    rows = [
        _sentence(line.strip(), f"{path}, line {n}") for n, line in enumerate(lines, start=1) if line.strip()
    ]
    if not rows:
        raise InputError(f"{path} holds no sentence; get it again.")
    return Labelled(
        np.array([text for _, text in rows], np.str_), np.array([label for label, _ in rows], np.int64)
    )


def _sentence(tree: str, where: str) -> tuple[int, str]:
    """Return the class of a tree's root and its words."""
    root, words = _TREE.fullmatch(tree), [leaf[1] for leaf in _LEAF.finditer(tree)]
    if root is None or not words or tree.count("(") != tree.count(")"):
        raise InputError(f"{where}: {tree[:60]!r} is not a tree such as (3 (2 A) (3 delight)); get it again.")
    text = (
        " ".join(_BRACKETS.get(str(word), str(word)) for word in words)
        .replace("\\/", "/")
        .replace("\\*", "*")
    )
    return int(root[1]), text
