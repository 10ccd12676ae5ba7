"""Data sets in folders, with published lists that say which pictures are for testing."""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from privkit.data._domain_folders import DomainFolders
from privkit.data._folder_data import AbstractFolderData
from privkit.data._lists import Listed, divided
from privkit.data._unread import UnreadDomain
from privkit.errors import InputError


class AbstractListedFolderData(AbstractFolderData):
    """Pictures in class folders, divided by lists where that is asked for."""

    lists: bool = Field(
        default=False,
        description="whether the published lists beside the domains say which pictures are for testing",
    )

    list_names: ClassVar[tuple[str, ...]]
    """File names of a domain's lists, the training list first; ``{}`` stands for the domain."""

    @abstractmethod
    def entries(self, path: Path, domain: str, classes: tuple[str, ...]) -> Iterator[Listed]:
        """Yield the entries of a domain's list.

        Raises:
            InputError: the file is not such a list.
        """

    def files(self) -> dict[str, Path]:
        """Return every picture and list of all domains that are there, by its path below their folder."""
        found = self._walk()
        lists = [path for name in found.domains for path in self._list_paths(found, name) if path.is_file()]
        return super().files() | {path.name: path for path in lists}

    def _unread(self, found: DomainFolders, name: str) -> UnreadDomain:
        return self._divided(found, name) if self.lists else super()._unread(found, name)

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
