"""Data sets that lie in the user's own files, which a manifest can pin down."""

from abc import abstractmethod
from pathlib import Path

from pydantic import Field, field_validator

from privkit.data import _manifest
from privkit.data._base import AbstractData
from privkit.data._manifest import Manifest


class AbstractStoredData(AbstractData):
    """A data set in files of the user's."""

    manifest: Path | None = Field(
        default=None,
        description="file that lists every file of the data set with its sha256; others are refused; null: not checked",
    )

    @field_validator("root", "manifest", check_fields=False)
    @classmethod
    def _in_the_home_folder(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser()

    @abstractmethod
    def files(self) -> dict[str, Path]:
        """Return every file that the data set can be read from, by its path below the data set's folder.

        Which domains or how many records are loaded makes no difference.

        Raises:
            InputError: files are missing.
        """

    def current_manifest(self) -> Manifest:
        """Return the size and sha256 of every file as it is now; ``digest`` is one number for them all.

        Raises:
            InputError: files are missing or cannot be read.
        """
        return _manifest.of(self.files())

    def write_manifest(self, path: Path | str) -> None:
        """Write :meth:`current_manifest` to a file, for the setting ``manifest``."""
        self.current_manifest().write(Path(path))

    def refuse_other_files(self) -> None:
        """Refuse files that are not those of ``manifest``, where one is set.

        Raises:
            InputError: files differ, are missing or are extra; they are named.
        """
        if self.manifest is not None:
            _manifest.read(self.manifest).refuse_other(self.current_manifest(), kept=self.manifest)
