"""Where each of the digit domains lies: the first usual place that has its files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from privkit.data import _digit_files as files
from privkit.data import _idx
from privkit.data._digit_files import Digits
from privkit.data._folders import classes_in, natural, pictures_in, spelling, subfolders
from privkit.data._unread import Unread, of_array, of_pictures
from privkit.errors import InputError

CLASSES = tuple("0123456789")
PARTITIONS = tuple(f"train_part{number}.pkl" for number in range(10))


@dataclass(frozen=True, eq=False)
class Stored:
    """A digit domain in files.

    Attributes:
        folder: where they are.
        files: all of them.
        train: reads the training part.
        test: reads the test part.
    """

    folder: Path
    files: tuple[Path, ...]
    train: Callable[[], Unread]
    test: Callable[[], Unread]


Finder = Callable[[Path], Stored | None]
"""Looks for a domain's files in one folder."""


@dataclass(frozen=True)
class Places:
    """Where a domain may lie.

    Attributes:
        folders: names of its folder, below the root; any spelling of them is found.
        finders: what looks into that folder.
        wanted: its usual files, for messages.
    """

    folders: tuple[str, ...]
    finders: tuple[Finder, ...]
    wanted: str


def located(root: Path, domain: str, places: Places) -> Stored | None:
    """Return a domain's files, or nothing if there are none.

    Raises:
        InputError: they are there twice.
    """
    found = [
        stored
        for folder in _candidates(root, places)
        for finder in places.finders
        if (stored := finder(folder))
    ]
    if len(found) > 1:
        raise InputError(
            f"{domain} is in {found[0].folder} and in {found[1].folder}; move one away, or give another root."
        )
    return found[0] if found else None


def _candidates(root: Path, places: Places) -> Iterator[Path]:
    """Yield the domain's folders below the root or below ``digit_dataset``, and ``raw`` in any of them."""
    names = {spelling(name) for name in places.folders}
    inside = subfolders(root)
    bundles = [folder for folder in inside if spelling(folder.name) == "digitdataset"]
    own = [f for above in (root, *bundles) for f in subfolders(above) if spelling(f.name) in names]
    for folder in own:
        yield folder
        if (folder / "raw").is_dir():
            yield folder / "raw"


def idx(folder: Path) -> Stored | None:
    """Find MNIST's four idx files."""
    parts = _idx.located(folder)
    if parts is None:
        return None
    train, test = parts["train"], parts["test"]
    return Stored(folder, (*train, *test), _reader(files.idx, *train), _reader(files.idx, *test))


def libsvm(folder: Path) -> Stored | None:
    """Find USPS's two packed text files."""
    return _pair(folder, "usps.bz2", "usps.t.bz2", files.libsvm)


def matlab(folder: Path) -> Stored | None:
    """Find SVHN's two MATLAB files of cropped digits."""
    return _pair(folder, "train_32x32.mat", "test_32x32.mat", files.matlab)


def pickled(folder: Path) -> Stored | None:
    """Find the partitions and the test file that FedBN published."""
    train = tuple(folder / "partitions" / name for name in PARTITIONS)
    test = folder / "test.pkl"
    if not all(path.is_file() for path in (*train, test)):
        return None
    return Stored(folder, (*train, test), _reader(files.pickled, *train), _reader(files.pickled, test))


def pictures(folder: Path) -> Stored | None:
    """Find folders of pictures, one per digit, in ``imgs_train`` and ``imgs_valid``, or ``train`` and ``val``."""
    for train, test in (("imgs_train", "imgs_valid"), ("train", "val")):
        if (folder / train).is_dir() and (folder / test).is_dir():
            both = [folder / train, folder / test]
            _refuse_other_classes(classes_in(both), folder)
            found = [tuple(p.path for p in pictures_in(part, CLASSES, home=folder)) for part in both]
            return Stored(folder, (*found[0], *found[1]), *(partial(_unread, part) for part in both))
    return None


def _unread(folder: Path) -> Unread:
    return of_pictures(pictures_in(folder, CLASSES, home=folder.parent))


def _refuse_other_classes(found: tuple[str, ...], folder: Path) -> None:
    other = sorted(set(found) - set(CLASSES), key=natural)
    if other:
        raise InputError(f"{folder} has a class folder {other[0]!r}; wanted are 0 to 9, so move it away.")


def _pair(folder: Path, train: str, test: str, read: Callable[[Path], Digits]) -> Stored | None:
    paths = (folder / train, folder / test)
    if not all(path.is_file() for path in paths):
        return None
    return Stored(folder, paths, _reader(read, paths[0]), _reader(read, paths[1]))


def _reader(read: Callable[..., Digits], *paths: Path) -> Callable[[], Unread]:
    """Return what reads files into memory once it is called."""

    def unread() -> Unread:
        images, labels = read(*paths)
        # packed or not, the same records have the same names, by which shares are chosen
        return of_array(images, labels, name=paths[0].name.removesuffix(".gz"))

    return unread
