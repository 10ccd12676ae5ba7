"""Where a data set is publicly known from, and what is said when its files are not there."""

from dataclasses import dataclass
from pathlib import Path

from privkit.errors import InputError


@dataclass(frozen=True)
class Published:
    """What a reader needs to get a data set, which privkit never downloads.

    Attributes:
        title: its name.
        layout: how its files lie below the root.
        source: who published it, where.
        twin: the data plug-in that needs no files of the user's.
        package: how a package manager gets the files, and where it puts them; empty where none has them.
    """

    title: str
    layout: str
    source: str
    twin: str
    package: str = ""

    def missing(self, what: str) -> InputError:
        """Return the one sentence for files that are not there."""
        ways = [
            "put it there",
            self.package,
            "name your folder with `privkit train CONFIG --data DIR`",
            f"or take data: {self.twin}, which needs no files of yours",
        ]
        return InputError(
            f"{what}; {self.title} is read as {self.layout} (docs/folders.md; {self.source}): "
            f"{', '.join(filter(None, ways))}."
        )

    def folder(self, root: Path) -> Path:
        """Return the root if it is a folder.

        Raises:
            InputError: it is a file, or is not there.
        """
        if root.is_file():
            raise InputError(f"root={str(root)!r} is a file; unpack it and give the folder, as --data DIR.")
        if not root.is_dir():
            raise self.missing(f"root={str(root)!r} does not exist")
        return root
