"""The objects that come with privkit as files, in the folder layouts of public data sets."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from privkit import plug
from privkit.data.objects import CLASSES, DomainName, Objects
from privkit.errors import InputError


@dataclass(frozen=True)
class Layout:
    """How a public data set lies on a disk.

    Attributes:
        folder: name of its folder.
        drawn: its domains, and in which style the objects stand for each.
    """

    folder: str
    drawn: dict[str, DomainName]


LAYOUTS = {
    "pacs": Layout(
        "PACS",
        {
            "photo": "fluent-3d",
            "art_painting": "noto",
            "cartoon": "twemoji",
            "sketch": "fluent-high-contrast",
        },
    ),
    "office-caltech": Layout(
        "Office-Caltech-10",
        {"amazon": "fluent-3d", "caltech": "noto", "dslr": "twemoji", "webcam": "fluent-high-contrast"},
    ),
}

_ABOUT = """\
This folder is in the layout of {folder} and holds none of its pictures. They are emoji, written by
"privkit export-data": folders that people read with the data set's own loader, to try it.

{drawn}

pic_017.png shows the same emoji in every domain. Nothing but its number says so.

Fluent Emoji: Copyright (c) Microsoft Corporation, MIT licence, https://github.com/microsoft/fluentui-emoji
Noto Emoji: Copyright 2013 Google, Inc., Apache License 2.0, https://github.com/googlefonts/noto-emoji
Twemoji: Copyright Twitter, Inc. and other contributors, CC BY 4.0, https://creativecommons.org/licenses/by/4.0/
All drawn at {side} x {side} pixels on white. The licences in full are in the NOTICE of privkit: pass it on with copies.
"""


def export(objects: Objects, *, layout: str, out: Path) -> Path:
    """Write objects as ``out/<data set>/<domain>/<class>/pic_<concept>.png``, whole or not at all.

    Args:
        objects: which are written; the layout says which style stands for which domain.
        layout: one of :data:`LAYOUTS`.
        out: folder for the data set's folder; made if it is not there.

    Returns:
        The data set's folder. The number in a file's name is the concept's place in
        :func:`privkit.data.objects.concepts`, the same in every domain.

    Raises:
        InputError: the layout is unknown, ``out`` is a file, or the data set's folder is there and not empty.
    """
    if layout not in LAYOUTS:
        raise InputError(plug.unknown("layout", layout, known=list(LAYOUTS)))
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder.")
    chosen = LAYOUTS[layout]
    target = out / chosen.folder
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise InputError(f"{target} is there already and not empty; remove it, or choose another folder.")
    unfinished = out / f".{chosen.folder}.tmp"
    shutil.rmtree(unfinished, ignore_errors=True)  # of an export that was killed
    _write(objects, chosen, unfinished)
    if target.exists():
        target.rmdir()
    return unfinished.rename(target)


def _write(objects: Objects, layout: Layout, folder: Path) -> None:
    from PIL import Image

    drawn = objects.model_copy(update={"domains": tuple(layout.drawn.values())})
    for name, domain in zip(layout.drawn, drawn.load(), strict=True):
        for kind in CLASSES:
            (folder / name / kind).mkdir(parents=True)
        assert domain.things is not None
        for image, label, thing in zip(domain.records, domain.labels, domain.things, strict=True):
            Image.fromarray(image).save(folder / name / CLASSES[label] / f"pic_{thing:03}.png")
    lines = "\n".join(f"{name}: {style}" for name, style in layout.drawn.items())
    about = _ABOUT.format(folder=layout.folder, drawn=lines, side=objects.side)
    (folder / "README.txt").write_text(about, encoding="utf-8")
