"""TerraIncognita: animals before camera traps at four places, from your folder.

Any pictures in this layout are read, whatever their class folders are called. ``docs/folders.md`` has the layouts.
"""

from typing import ClassVar

from pydantic import Field

from privkit.data._folder_data import AbstractFolderData
from privkit.data._published import Published

DOMAINS = ("location_38", "location_43", "location_46", "location_100")


class TerraIncognita(AbstractFolderData):
    """TerraIncognita, or any pictures in its layout: four domains, one folder per class."""

    domains: tuple[str, ...] = Field(
        default=DOMAINS, min_length=1, description="domains to load, in this order; client i holds the i-th"
    )

    known: ClassVar[tuple[str, ...]] = DOMAINS
    titles: ClassVar[tuple[str, ...]] = ("terra_incognita",)
    published: ClassVar[Published] = Published(
        title="TerraIncognita",
        layout="terra_incognita/{location_38,location_43,location_46,location_100}/<class>/<picture>",
        source="Beery et al., Recognition in Terra Incognita, ECCV 2018",
        twin="objects",
    )
    citation: ClassVar[str] = "beery2018"
