"""CoLA over many clients: sentences that linguists found acceptable, or not."""

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

COLUMNS = 4
LAYOUTS = (
    ("", "train.tsv", ("dev.tsv",)),
    ("CoLA", "train.tsv", ("dev.tsv",)),
    ("", "in_domain_train.tsv", ("in_domain_dev.tsv", "out_of_domain_dev.tsv")),
    ("raw", "in_domain_train.tsv", ("in_domain_dev.tsv", "out_of_domain_dev.tsv")),
    ("cola_public/raw", "in_domain_train.tsv", ("in_domain_dev.tsv", "out_of_domain_dev.tsv")),
)
"""Folder, training file and files that are tested on: as GLUE packs them, and as the authors do."""
PUBLISHED = Published(
    title="CoLA",
    layout="train.tsv and dev.tsv, or in_domain_train.tsv, in_domain_dev.tsv and out_of_domain_dev.tsv, with source, "
    "label 0 or 1, original mark and sentence per line",
    source="Warstadt et al., Neural Network Acceptability Judgments, TACL 2019",
    twin="acceptability",
)


class Cola(AbstractSkewedData):
    """The Corpus of Linguistic Acceptability: 8,551 sentences to train on and 1,043 to test on, in two classes."""

    root: Path = Field(description="folder that holds the files of GLUE's CoLA, or those of cola_public")

    citation: ClassVar[str] = "warstadt2019cola, hsu2019"

    @property
    def num_classes(self) -> int:
        """Return 2: unacceptable and acceptable."""
        return 2

    def files(self) -> dict[str, Path]:
        """Return the files by their names, the training file first."""
        root = PUBLISHED.folder(self.root)
        for folder, train, tests in LAYOUTS:
            paths = {name: root / folder / name for name in (train, *tests)}
            if all(path.is_file() for path in paths.values()):
                return paths
        raise PUBLISHED.missing(f"root={str(self.root)!r} lacks train.tsv or dev.tsv")

    def parts(self) -> tuple[Labelled, Labelled]:
        """Return the training sentences, and those of all files that are tested on."""
        train, *tests = self.files().values()
        return _part([train]), _part(tests)


def _part(paths: list[Path]) -> Labelled:
    rows = [row for path in paths for row in _rows(path)]
    if not rows:
        raise InputError(f"{paths[0]} holds no sentence; get it again.")
    return Labelled(
        np.array([text for _, text in rows], np.str_), np.array([label for label, _ in rows], np.int64)
    )


def _rows(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the class and the sentence of each line."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
                if len(row) != COLUMNS or row[1] not in ("0", "1") or not row[3].strip():
                    raise InputError(
                        f"{path}, row {number}: {str(row)[:80]} is not source, label 0 or 1, mark and sentence; "
                        "get it again."
                    )
                yield int(row[1]), row[3].strip()
    except (csv.Error, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}); get it again.") from None
