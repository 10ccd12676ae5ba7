"""Emoji sets as they are published, drawn on white."""

import io
import json
import tarfile
from typing import Protocol

import numpy as np
import resvg_py
from PIL import Image


def plain(hexcode: str) -> str:
    """Return an emoji's code points without U+FE0F, which some sets write and others do not.

    >>> plain("1F575-FE0F-200D-2642-FE0F")
    '1f575-200d-2642'
    """
    return "-".join(part for part in hexcode.lower().split("-") if part != "fe0f")


def content(package: tarfile.TarFile, name: str) -> bytes:
    """Return one file of a package."""
    file = package.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is no file.")
    return file.read()


class EmojiSet(Protocol):
    """Drawings by plain code points."""

    def __contains__(self, emoji: str) -> bool: ...

    def draw(self, emoji: str, side: int) -> np.ndarray:
        """Return one drawing on white, uint8 of shape [side, side, 3]."""
        ...


class Pictures:
    """A package of pictures named after code points, in colour with transparency."""

    def __init__(self, package: tarfile.TarFile) -> None:
        names = [name for name in package.getnames() if name.endswith(".webp")]
        self._files = {
            plain(name.rpartition("/")[2].removesuffix(".webp")): content(package, name) for name in names
        }

    def __contains__(self, emoji: str) -> bool:
        return emoji in self._files

    def draw(self, emoji: str, side: int) -> np.ndarray:
        """Return the picture on white, each pixel the mean of those it replaces."""
        picture = Image.open(io.BytesIO(self._files[emoji])).convert("RGBA")
        if picture.width != picture.height or picture.width % side:
            raise ValueError(f"{emoji} is {picture.size}, not a square of a multiple of {side}.")
        ground = Image.new("RGBA", picture.size, "white")
        ground.alpha_composite(picture)
        return np.asarray(ground.convert("RGB").resize((side, side), Image.Resampling.BOX))


class Vectors:
    """A package of vector drawings in Iconify's format; what has no colour of its own is black."""

    def __init__(self, package: tarfile.TarFile) -> None:
        icons = json.loads(content(package, "package/icons.json"))
        names = json.loads(content(package, "package/chars.json"))
        bodies = icons["icons"] | {
            name: icons["icons"][alias["parent"]]
            for name, alias in icons["aliases"].items()
            if set(alias) == {"parent"} and alias["parent"] in icons["icons"]
        }
        self._size = {"left": 0, "top": 0, "width": icons["width"], "height": icons["height"]}
        self._icons = {plain(code): bodies[name] for code, name in names.items() if name in bodies}

    def __contains__(self, emoji: str) -> bool:
        return emoji in self._icons

    def draw(self, emoji: str, side: int) -> np.ndarray:
        """Return the drawing in the middle of a square, in its own proportions."""
        icon = self._size | self._icons[emoji]
        length = max(icon["width"], icon["height"])
        left = icon["left"] - (length - icon["width"]) / 2
        top = icon["top"] - (length - icon["height"]) / 2
        svg = (
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'viewBox="{left} {top} {length} {length}">{icon["body"]}</svg>'
        )
        png = resvg_py.svg_to_bytes(
            svg_string=svg, width=side, height=side, background="white", skip_system_fonts=True
        )
        return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
