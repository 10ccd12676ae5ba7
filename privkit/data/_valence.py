"""Sentences with the mean rating of at least twenty people, as the authors of VADER published them."""

import gzip
import io
import math
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from privkit.data._unpacked import at_most
from privkit.errors import InputError

FILES = {
    "tweets": "tweets_GroundTruth.txt",
    "movie": "movieReviewSnippets_GroundTruth.txt",
    "amazon": "amazonReviewSnippets_GroundTruth.txt",
    "nyt": "nytEditorialSnippets_GroundTruth.txt",
}
"""The file of each domain: tweets, sentences of film and product reviews, sentences of editorials."""

ARCHIVE = "hutto_ICWSM_2014.tar.gz"
FOLDERS = ("", "hutto_ICWSM_2014", "additional_resources")
LARGEST = 2**26
"""Bytes of a file; none that is published is a tenth as large."""
LARGEST_ARCHIVE = 2**28
"""Bytes of an archive, unpacked."""


@dataclass(frozen=True)
class Rated:
    """A sentence and its mean rating, from -4 (most negative) to 4."""

    text: str
    rating: float


def located(root: Path) -> dict[str, Path]:
    """Return the files of the four domains by their names, or the archive that holds them; nothing if not there."""
    if root.is_file():
        return {root.name: root}
    for folder in (root / name for name in FOLDERS):
        if all((folder / name).is_file() for name in FILES.values()):
            return {name: folder / name for name in FILES.values()}
        if (folder / ARCHIVE).is_file():
            return {ARCHIVE: folder / ARCHIVE}
    return {}


def contents(files: dict[str, Path]) -> dict[str, bytes]:
    """Return the bytes of the four files by their names; an archive is read, never unpacked.

    Raises:
        InputError: a file cannot be read, or an archive lacks one.
    """
    if files.keys() == set(FILES.values()):
        return {name: _bytes(path) for name, path in files.items()}
    (path,) = files.values()
    try:
        found = _in_archive(_bytes(path))
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path} is no archive that can be read ({error}); get it again.") from None
    missing = next((name for name in FILES.values() if name not in found), None)
    if missing is not None:
        raise InputError(f"{path} holds no {missing}; give the source package of vaderSentiment 3.3.2.")
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}); get it again.") from None


def _in_archive(content: bytes, *, inner: bool = False) -> dict[str, bytes]:
    """Return the wanted members of an archive, or of the one archive in it, by their file names."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(_unpacked(content)), mode="r:") as archive:
        for member in archive:
            name = PurePosixPath(member.name).name
            wanted = (name == ARCHIVE and not inner) or name in FILES.values()
            handle = archive.extractfile(member) if wanted and member.size <= LARGEST else None
            if handle is not None:
                found |= _in_archive(handle.read(), inner=True) if name == ARCHIVE else {name: handle.read()}
    return found


def _unpacked(archive: bytes) -> bytes:
    """Return an archive's bytes, unpacked if it is packed by gzip."""
    if not archive.startswith(b"\x1f\x8b"):
        return archive
    with gzip.GzipFile(fileobj=io.BytesIO(archive)) as file:
        content = at_most(file, LARGEST_ARCHIVE + 1)
    if len(content) > LARGEST_ARCHIVE:
        raise ValueError(f"it has more than {LARGEST_ARCHIVE:,} bytes, unpacked")
    return content


def rated(content: bytes, *, where: str) -> list[Rated]:
    """Return the sentences of a file: per line a number, a rating and a sentence, tabs between.

    Args:
        content: the file.
        where: its name, for messages.

    Raises:
        InputError: it is no UTF-8, or a line is not as above.
    """
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is no UTF-8 ({error}); get it again.") from None
    return [_rated(line, f"{where}, line {row}") for row, line in enumerate(lines, start=1) if line.strip()]


def _rated(line: str, where: str) -> Rated:
    parts = line.rstrip("\r").split("\t")
    try:
        _, rating, text = parts
        value = float(rating)
    except ValueError:
        raise InputError(
            f"{where}: {line[:60]!r} is not a number, a rating and a sentence; get it again."
        ) from None
    if not (math.isfinite(value) and -4 <= value <= 4):
        raise InputError(f"{where}: rating {value:g} is not between -4 and 4; get it again.")
    return Rated(text.strip(), value)


def first_of_each(domains: dict[str, list[Rated]]) -> dict[str, list[Rated]]:
    """Return the domains without sentences that occurred before, in theirs or an earlier one."""
    seen: set[str] = set()
    return {
        name: [s for s in found if not (s.text in seen or seen.add(s.text))]
        for name, found in domains.items()
    }


def binned(ratings: np.ndarray, edges: tuple[float, ...]) -> np.ndarray:
    """Return the class of each rating, from 0: class i holds ratings from the i-th edge, itself included, on.

    >>> binned(np.array([-3.0, -2.0, 0.0, 2.0]), (-2.0, -0.75, 0.75, 2.0))
    array([0, 1, 2, 4])
    """
    return np.digitize(ratings, edges).astype(np.int64)
