"""Office-Caltech-10: ten kinds of objects of an office from four sources, from your folder.

``docs/folders.md`` has the layouts. The papers draw a fifth of each domain for testing and keep 30 % of the rest:
``test_share: 0.2, keep: 0.3``. ``dslr`` then has three or four training pictures per class.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from pydantic import Field

from privkit.data import _pickle
from privkit.data._folders import spelling
from privkit.data._listed_folder_data import AbstractListedFolderData
from privkit.data._lists import Listed
from privkit.data._published import Published
from privkit.errors import InputError

DOMAINS = ("amazon", "caltech", "dslr", "webcam")
NO_CLASS = -1


class OfficeCaltech(AbstractListedFolderData):
    """Office-Caltech-10, or any pictures in its layout: four domains, one folder per class."""

    domains: tuple[str, ...] = Field(
        default=DOMAINS, min_length=1, description="domains to load, in this order; client i holds the i-th"
    )

    known: ClassVar[tuple[str, ...]] = DOMAINS
    titles: ClassVar[tuple[str, ...]] = ("Office-Caltech-10", "office_caltech")
    published: ClassVar[Published] = Published(
        title="Office-Caltech-10",
        layout="Office-Caltech-10/{amazon,caltech,dslr,webcam}[/{train,test}]/<class>/<picture>",
        source="Gong et al., Geodesic Flow Kernel for Unsupervised Domain Adaptation, CVPR 2012",
        twin="objects",
    )
    list_names: ClassVar[tuple[str, ...]] = ("{}_train.pkl", "{}_test.pkl")
    citation: ClassVar[str] = "gong2012gfk"

    def entries(self, path: Path, domain: str, classes: tuple[str, ...]) -> Iterator[Listed]:
        """Yield the entries of one of the lists that FedBN published: paths, and as many class names."""
        paths, names = _two_lists(_pickle.read(path), path)
        numbers = {spelling(name): label for label, name in enumerate(classes)}
        for given, name in zip(paths, names, strict=True):
            parts = PurePosixPath(str(given).replace("\\", "/")).parts
            places = [i for i, part in enumerate(parts) if spelling(part) == spelling(domain)]
            if not places:
                raise InputError(
                    f"{path}: {str(given)!r} is no path of a picture of {domain}; get the list again."
                )
            below = "/".join(parts[places[0] + 1 :])
            yield Listed(below, numbers.get(spelling(str(name)), NO_CLASS), said=repr(str(name)))


def _two_lists(found: Any, path: Path) -> tuple[list[Any], list[Any]]:
    """Return the two lists that a pickle must be, equally long."""
    try:
        paths, names = (list(part) for part in found)
    except (TypeError, ValueError):
        raise InputError(f"{path} is not a pair of paths and class names; get the list again.") from None
    if len(paths) != len(names):
        raise InputError(f"{path} has {len(paths)} paths but {len(names)} class names; get the list again.")
    return paths, names
