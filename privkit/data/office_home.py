"""Office-Home: 65 kinds of everyday objects as art, cliparts, products and photographs, from your folder.

Any pictures in this layout are read, whatever their class folders are called. ``docs/folders.md`` has the layouts.
"""

from typing import ClassVar

from pydantic import Field

from privkit.data._folder_data import AbstractFolderData
from privkit.data._published import Published

DOMAINS = ("art", "clipart", "product", "real_world")


class OfficeHome(AbstractFolderData):
    """Office-Home, or any pictures in its layout: four domains, one folder per class."""

    domains: tuple[str, ...] = Field(
        default=DOMAINS, min_length=1, description="domains to load, in this order; client i holds the i-th"
    )

    known: ClassVar[tuple[str, ...]] = DOMAINS
    titles: ClassVar[tuple[str, ...]] = ("OfficeHomeDataset_10072016", "Office-Home")
    published: ClassVar[Published] = Published(
        title="Office-Home",
        layout="OfficeHomeDataset_10072016/{Art,Clipart,Product,Real World}/<class>/<picture>",
        source="Venkateswara et al., Deep Hashing Network for Unsupervised Domain Adaptation, CVPR 2017",
        twin="objects",
    )
    citation: ClassVar[str] = "venkateswara2017"
