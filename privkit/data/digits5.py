"""The usual digit domains MNIST, USPS, SVHN and SYN in colour, from their public files.

``docs/folders.md`` has the layouts: those that torchvision leaves on disk, and FedBN's. Official test parts are whole;
the papers keep 10 % of the training parts (``keep: 0.1``).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from privkit.data import _digit_folders as folders
from privkit.data._digit_folders import Places, Stored
from privkit.data._pictures import AbstractPictureData
from privkit.data._published import Published
from privkit.data._unread import UnreadDomain
from privkit.errors import InputError

DomainName = Literal["mnist", "usps", "svhn", "syn"]

PLACES: dict[DomainName, Places] = {
    "mnist": Places(
        ("MNIST",), (folders.idx, folders.pickled), "MNIST/raw/train-images-idx3-ubyte[.gz] and its kin"
    ),
    "usps": Places(("USPS",), (folders.libsvm, folders.pickled), "USPS/usps.bz2 and usps.t.bz2"),
    "svhn": Places(("SVHN",), (folders.matlab, folders.pickled), "SVHN/train_32x32.mat and test_32x32.mat"),
    "syn": Places(
        ("synthetic_digits", "syn", "SynthDigits"),
        (folders.pictures, folders.pickled),
        "synthetic_digits/{imgs_train,imgs_valid}/{0..9}/<picture>",
    ),
}
PUBLISHED = Published(
    title="Digits",
    layout="; ".join(places.wanted for places in PLACES.values()),
    source="as in Li et al., FedBN, ICLR 2021",
    twin="digits",
)


class Digits5(AbstractPictureData):
    """MNIST, USPS, SVHN and synthetic digits: four domains, ten classes, with their official test parts."""

    root: Path = Field(description="folder that holds the folders MNIST, USPS, SVHN and synthetic_digits")
    side: int = Field(
        default=32,
        ge=1,
        le=2048,
        description="pixels; every picture is resized to side x side, in three channels",
    )
    domains: tuple[DomainName, ...] = Field(
        default=("mnist", "usps", "svhn", "syn"),
        min_length=1,
        description="domains to load, in this order; client i holds the i-th",
    )

    citation: ClassVar[str] = "lecun1998gradient, hull1994usps, netzer2011svhn, ganin2015, li2021fedbn"

    @field_validator("domains")
    @classmethod
    def _each_once(cls, domains: tuple[DomainName, ...]) -> tuple[DomainName, ...]:
        if len(set(domains)) < len(domains):
            raise ValueError("a domain is named twice; name each at most once")
        return domains

    @property
    def num_classes(self) -> int:
        """Return 10."""
        return len(folders.CLASSES)

    def files(self) -> dict[str, Path]:
        """Return every file of all domains that are there, by its path below the root."""
        root = PUBLISHED.folder(self.root)
        found = [stored for name, places in PLACES.items() if (stored := folders.located(root, name, places))]
        return {path.relative_to(root).as_posix(): path for stored in found for path in stored.files}

    def unread(self) -> Iterator[UnreadDomain]:
        """Yield the wanted domains, in order; of each only the bytes as stored are in memory, of one at a time."""
        for name in self.domains:
            stored = self._located(name)
            train, test = stored.train(), stored.test()
            if train.shape != test.shape:
                raise InputError(
                    f"{stored.folder} holds images of {train.shape} to train on and of {test.shape} to test on; "
                    "get its files again."
                )
            yield UnreadDomain(name, train, test)

    def _located(self, name: DomainName) -> Stored:
        stored = folders.located(PUBLISHED.folder(self.root), name, PLACES[name])
        if stored is None:
            raise PUBLISHED.missing(f"root={str(self.root)!r} holds no {PLACES[name].wanted}")
        return stored
