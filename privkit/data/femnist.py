"""FEMNIST as LEAF divides it: characters by who wrote them, one client per writer, from your files.

LEAF's scripts leave ``.json`` files in ``train`` and ``test``, each with some writers. A writer has few characters of
each kind: ``classes: digits`` takes the ten digits alone, and ``split: {small_classes: drop}`` leaves out kinds that
are too rare to be split.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from privkit.data import _labels
from privkit.data._base import Domain, Labelled
from privkit.data._folders import natural
from privkit.data._published import Published
from privkit.data._stored import AbstractStoredData
from privkit.errors import InputError

SIDE = 28
CLASSES = {"digits": 10, "all": 62}
PUBLISHED = Published(
    title="FEMNIST",
    layout="femnist/data/{train,test}/*.json",
    source="Caldas et al., LEAF, 2018, arXiv:1812.01097",
    twin="digits",
)


class Femnist(AbstractStoredData):
    """The writers of FEMNIST with the most characters for training, 28 x 28 grey."""

    root: Path = Field(
        description="folder that holds train and test, or femnist, data or femnist/data that do"
    )
    clients: int = Field(default=75, ge=1, description="number of writers: those with the most records")
    classes: Literal["digits", "all"] = Field(
        default="digits", description="the ten digits, classes 0 to 9, or all 62 characters"
    )

    citation: ClassVar[str] = "caldas2018leaf"

    @property
    def num_classes(self) -> int:
        """Return 10 or 62."""
        return CLASSES[self.classes]

    def files(self) -> dict[str, Path]:
        """Return every ``.json`` file in ``train`` and ``test``, by its path below the folder of these."""
        found = self._located()
        return {f"{part}/{path.name}": path for part, paths in found.items() for path in paths}

    def load(self) -> tuple[Domain, ...]:
        """Return one domain per writer, the one with the most records first; tested on the writer's own test records.

        Raises:
            InputError: files are missing, damaged or not those of the manifest, or there are fewer writers that have
                records in both parts.
        """
        self.refuse_other_files()
        found = self._located()
        train, test = self._writers(found["train"]), self._writers(found["test"])
        both = [name for name in train if name in test]
        if len(both) < self.clients:
            raise InputError(
                f"{len(both)} writers have records of classes {self.classes} in train and in test, and clients is "
                f"{self.clients}; set clients to at most as many."
            )
        chosen = sorted(both, key=lambda name: (-len(train[name].labels), name))[: self.clients]
        return tuple(Domain(train[n].records, train[n].labels, n, test[n]) for n in chosen)

    def _writers(self, paths: list[Path]) -> dict[str, Labelled]:
        """Return the records of every writer in some files that are of a wanted class."""
        found: dict[str, Labelled] = {}
        for path in paths:
            for name, content in _users(path):
                if name in found:
                    raise InputError(
                        f"{path} has writer {name}, and so has an earlier file; keep one of them."
                    )
                own = _records(content, path=path, writer=name)
                wanted = own.labels < self.num_classes
                if wanted.any():
                    found[name] = Labelled(own.records[wanted], own.labels[wanted])
        return found

    def _located(self) -> dict[str, list[Path]]:
        root = PUBLISHED.folder(self.root)
        for folder in (root, root / "data", root / "femnist", root / "femnist" / "data"):
            found = {
                part: sorted((folder / part).glob("*.json"), key=lambda path: natural(path.name))
                for part in ("train", "test")
            }
            if all(found.values()):
                return found
        raise PUBLISHED.missing(f"root={str(self.root)!r} holds no train and test with .json files in them")


def _users(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield every writer of a file with what it holds of him or her."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"{path} cannot be read as JSON ({said}); get it again.") from None
    users = held.get("user_data") if isinstance(held, dict) else None
    if not isinstance(users, dict):
        raise InputError(f"{path} holds no writers under 'user_data'; it is no file of LEAF, get it again.")
    yield from users.items()


def _records(content: Any, *, path: Path, writer: str) -> Labelled:
    """Return a writer's characters, uint8 of shape [N, 28, 28], and their classes; the file has levels in [0, 1]."""
    x, y = (content.get(key) if isinstance(content, dict) else None for key in ("x", "y"))
    try:
        pixels = np.array(x, np.float64)
    except (TypeError, ValueError):
        pixels = np.zeros((0, 0))
    if pixels.shape[1:] != (SIDE * SIDE,) or not ((pixels >= 0) & (pixels <= 1)).all():
        raise InputError(
            f"{path} holds no rows of {SIDE * SIDE} numbers from 0 to 1 for writer {writer}; get it again."
        )
    labels = _labels.whole(y, path=path, what="y")
    _labels.refuse_odd(labels, count=len(pixels), classes=CLASSES["all"], path=path)
    return Labelled(np.rint(255 * pixels).astype(np.uint8).reshape(-1, SIDE, SIDE), labels)
