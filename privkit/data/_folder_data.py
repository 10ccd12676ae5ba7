"""Data sets that are one folder per domain, in it one per class."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from privkit import plug
from privkit.data._domain_folders import DomainFolders, walk
from privkit.data._pictures import AbstractPictureData
from privkit.data._published import Published
from privkit.data._unread import UnreadDomain, of_pictures


class AbstractFolderData(AbstractPictureData):
    """Pictures in class folders: what is in the folders decides the classes."""

    root: Path = Field(
        description="folder that holds the data set's folder, or the domain folders themselves"
    )
    domains: tuple[str, ...] = Field(
        min_length=1, description="domains to load, in this order; client i holds the i-th"
    )

    known: ClassVar[tuple[str, ...]]
    titles: ClassVar[tuple[str, ...]]
    published: ClassVar[Published]

    @field_validator("domains")
    @classmethod
    def _known_and_each_once(cls, domains: tuple[str, ...]) -> tuple[str, ...]:
        for name in domains:
            if name not in cls.known:
                raise ValueError(plug.unknown("domain", name, known=list(cls.known)))
        if len(set(domains)) < len(domains):
            raise ValueError("a domain is named twice; name each at most once")
        return domains

    @property
    def num_classes(self) -> int:
        """Return the number of class folders of all domains together, loaded or not."""
        return len(self.class_names)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Return the names of the class folders of all domains together; class i is the i-th."""
        return self._walk().classes

    def files(self) -> dict[str, Path]:
        """Return every picture of all domains that are there, by its path below their folder."""
        domains = self._walk().domains.values()
        return {p.name: p.path for d in domains for part in (d.pictures, d.test or ()) for p in part}

    def unread(self) -> Iterator[UnreadDomain]:
        """Yield the wanted domains, in order, before anything is decoded."""
        found = self._walk()
        for name in self.domains:
            if name not in found.domains:
                raise self.published.missing(f"{found.home} holds no {name}")
            yield self._unread(found, name)

    def _unread(self, found: DomainFolders, name: str) -> UnreadDomain:
        domain = found.domains[name]
        test = None if domain.test is None else of_pictures(domain.test)
        return UnreadDomain(name, of_pictures(domain.pictures), test)

    def _walk(self) -> DomainFolders:
        return walk(self.root, self.known, titles=self.titles, published=self.published)
