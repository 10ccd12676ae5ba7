"""Data sets that are one folder per domain, in it one per class."""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from privkit import plug
from privkit.data._domain_folders import DomainFolders, walk
from privkit.data._lists import Listed, divided
from privkit.data._pictures import AbstractPictureData
from privkit.data._published import Published
from privkit.data._unread import UnreadDomain, of_pictures
from privkit.errors import InputError


class AbstractFolderData(AbstractPictureData):
    """Pictures in class folders: what is in the folders decides the classes."""

    root: Path = Field(
        description="folder that holds the data set's folder, or the domain folders themselves"
    )
    domains: tuple[str, ...] = Field(
        min_length=1, description="domains to load, in this order; client i holds the i-th"
    )
    lists: bool = Field(
        default=False,
        description="whether the published lists beside the domains say which pictures are for testing",
    )

    known: ClassVar[tuple[str, ...]]
    titles: ClassVar[tuple[str, ...]]
    published: ClassVar[Published]
    list_names: ClassVar[tuple[str, ...]]
    """File names of a domain's lists, the training list first; ``{}`` stands for the domain."""

    @field_validator("domains")
    @classmethod
    def _known_and_each_once(cls, domains: tuple[str, ...]) -> tuple[str, ...]:
        for name in domains:
            if name not in cls.known:
                raise ValueError(plug.unknown("domain", name, known=list(cls.known)))
        if len(set(domains)) < len(domains):
            raise ValueError("a domain is named twice; name each at most once")
        return domains

    @abstractmethod
    def entries(self, path: Path, domain: str, classes: tuple[str, ...]) -> Iterator[Listed]:
        """Yield the entries of a domain's list.

        Raises:
            InputError: the file is not such a list.
        """

    @property
    def num_classes(self) -> int:
        """Return the number of class folders of all domains together, loaded or not."""
        return len(self.class_names)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Return the names of the class folders of all domains together; class i is the i-th."""
        return self._walk().classes

    def files(self) -> dict[str, Path]:
        """Return every picture and list of all domains that are there, by its path below their folder."""
        found = self._walk()
        pictures = [p for d in found.domains.values() for part in (d.pictures, d.test or ()) for p in part]
        lists = [path for name in found.domains for path in self._list_paths(found, name) if path.is_file()]
        return {p.name: p.path for p in pictures} | {path.name: path for path in lists}

    def unread(self) -> Iterator[UnreadDomain]:
        """Yield the wanted domains, in order, before anything is decoded."""
        found = self._walk()
        for name in self.domains:
            if name not in found.domains:
                raise self.published.missing(f"{found.home} holds no {name}")
            domain = found.domains[name]
            test = None if domain.test is None else of_pictures(domain.test)
            yield (
                self._divided(found, name)
                if self.lists
                else UnreadDomain(name, of_pictures(domain.pictures), test)
            )

    def _walk(self) -> DomainFolders:
        return walk(self.root, self.known, titles=self.titles, published=self.published)

    def _list_paths(self, found: DomainFolders, domain: str) -> list[Path]:
        """Return where a domain's lists are: beside the domains, or in ``splits`` beside or above them."""
        names = [name.format(domain) for name in self.list_names]
        folders = [found.home, found.home / "splits", found.home.parent / "splits"]
        there = (folder for folder in folders if any((folder / name).is_file() for name in names))
        folder = next(there, found.home)
        return [folder / name for name in names]

    def _divided(self, found: DomainFolders, name: str) -> UnreadDomain:
        if found.domains[name].test is not None:
            raise InputError(f"domain {name} has folders train and test; set lists: false to use these.")
        paths = self._list_paths(found, name)
        for path in paths:
            if not path.is_file():
                raise InputError(f"{path} is missing; add it, or set lists: false.")
        train, *others = [list(self.entries(path, name, found.classes)) for path in paths]
        held_out = [entry for entries in others for entry in entries]
        return divided(name, found.domains[name].pictures, train, held_out)
