"""VLCS: five kinds of things in four collections of photographs, from your folder.

Any pictures in this layout are read, whatever their class folders are called. ``docs/folders.md`` has the layouts.
"""

from typing import ClassVar

from pydantic import Field

from privkit.data._folder_data import AbstractFolderData
from privkit.data._published import Published

DOMAINS = ("caltech101", "labelme", "sun09", "voc2007")


class Vlcs(AbstractFolderData):
    """VLCS, or any pictures in its layout: four domains, one folder per class."""

    domains: tuple[str, ...] = Field(
        default=DOMAINS, min_length=1, description="domains to load, in this order; client i holds the i-th"
    )

    known: ClassVar[tuple[str, ...]] = DOMAINS
    titles: ClassVar[tuple[str, ...]] = ("VLCS",)
    published: ClassVar[Published] = Published(
        title="VLCS",
        layout="VLCS/{Caltech101,LabelMe,SUN09,VOC2007}/<class>/<picture>",
        source="Fang et al., Unbiased Metric Learning, ICCV 2013",
        twin="objects",
    )
    citation: ClassVar[str] = "fang2013"
