"""From a file to an evaluation: the one format that recognises it reads it."""

from collections.abc import Iterator
from pathlib import Path

from privkit import plug
from privkit.errors import InputError
from privkit.scorefiles._base import AbstractScoreFile, Evaluation
from privkit.scorefiles._document import document

_PACKAGE = "privkit.scorefiles"


def formats() -> Iterator[AbstractScoreFile]:
    """Yield every format there is."""
    for _, cls in plug.every(_PACKAGE):
        made = cls()
        assert isinstance(made, AbstractScoreFile)
        yield made


def read(path: Path) -> tuple[str, Evaluation]:
    """Return the name of a file's format and what it holds.

    Raises:
        InputError: it is of no format, or something in it is not as the format says; the sentence names the file.
    """
    found = document(path)
    known = list(formats())
    chosen = next((one for one in known if one.recognises(found)), None)
    if chosen is None:
        kinds = "; or ".join(f"{one.name}: {one.looks_like}" for one in known)
        raise InputError(f"{path} is no file of scores that is known; give one of {kinds}.")
    try:
        return chosen.name, chosen.read(found, path)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
