"""Arrays of pickles, rebuilt from their bytes: numpy itself is never called with what a pickle says.

An array's dtype may have fields, and fields may be objects: numpy then takes the bytes of a pickle for the addresses
of objects. So what stands for numpy while a pickle is opened only keeps what it is given; arrays are made of it
afterwards, and only of plain numbers and text.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

_PLAIN = re.compile(r"b1|[iu][1248]|f[248]|[SU][1-9]\d{0,4}")
_ORDERS = ("<", ">", "=", "|")
_LAST_CHARACTER = 0x10FFFF


class Constructor:
    """A function as pickles name it: it can be called, and nothing about it can be changed."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        """Return what the function makes of a pickle's arguments."""
        return self._call(*arguments)

    def __setstate__(self, state: Any) -> None:
        """Refuse to be changed."""
        raise ValueError("it changes a function")


class Kind:
    """What stands for a dtype: truth values, whole numbers, floats up to 64 bits, bytes or text, of fixed size."""

    def __init__(self, code: Any, align: Any = False, copy: Any = False) -> None:
        text = code.decode("latin1") if isinstance(code, bytes) else code
        if not isinstance(text, str) or _PLAIN.fullmatch(text) is None:
            raise ValueError(f"an array of type {text!r}, not of numbers or text")
        self._code, self._order = text, "="

    def __setstate__(self, state: Any) -> None:
        """Take the byte order; fields, shapes and metadata are refused."""
        _, order, *inner = state
        order = order.decode("latin1") if isinstance(order, bytes) else order
        if order not in _ORDERS or any(part is not None for part in inner[:3]) or len(inner) > 6:
            raise ValueError("an array of records, not of numbers or text")
        self._order = order

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype."""
        return np.dtype(self._order.replace("|", "=") + self._code)


class Array:
    """What stands for an array, or for one number of an array, until it is made."""

    def __init__(self, state: Any = None, *, number: bool = False) -> None:
        self._number = number
        self._made: np.ndarray | None = None
        if state is not None:
            self.__setstate__(state)

    def __setstate__(self, state: Any) -> None:
        """Make the array of version, shape, dtype, whether columns come first, and bytes."""
        _, shape, kind, columns_first, content = state
        self._made = _array(shape, kind, content, order="F" if columns_first else "C")

    def made(self) -> Any:
        """Return the array, or the number."""
        if self._made is None:
            raise ValueError("an array without content")
        return self._made[()] if self._number else self._made


def _array(shape: Any, kind: Any, content: Any, *, order: Any) -> np.ndarray:
    if not isinstance(kind, Kind) or not isinstance(content, bytes | bytearray):
        raise TypeError("an array that is not bytes of one type")
    if not isinstance(shape, tuple) or len(shape) > 8 or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("an array whose shape is no few whole numbers")
    wanted = math.prod(shape) * kind.dtype.itemsize
    if len(content) != wanted:
        raise ValueError(f"an array with {len(content):,} bytes, not {wanted:,}")
    if kind.dtype.kind == "U":
        points = np.frombuffer(bytes(content), kind.dtype.byteorder + "u4")
        if points.size and int(points.max()) > _LAST_CHARACTER:
            raise ValueError("an array of text with what is no character")
    array = np.ndarray(shape, kind.dtype, bytes(content), order=order)
    return array.astype(kind.dtype.newbyteorder("="))  # a copy, aligned


def reconstruct(cls: Any, shape: Any, typecode: Any) -> Array:
    """Return an array to be filled."""
    return Array()


def scalar(kind: Any, content: Any) -> Array:
    """Return a number of one dtype."""
    return Array((1, (), kind, False, content), number=True)


def from_buffer(content: Any, kind: Any, shape: Any, order: Any) -> Array:
    """Return an array of bytes."""
    return Array((1, shape, kind, order in ("F", b"F"), content))


def no_array(*arguments: Any) -> None:
    """Refuse an array of a shape alone: it would hold whatever is in memory."""
    raise ValueError("an array without content")
