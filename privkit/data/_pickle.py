"""Published pickles, opened without running what is in them: only lists, text, numbers and numpy arrays."""

import io
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from privkit.data import _pickled_arrays as arrays
from privkit.errors import InputError

LARGEST = 2**30
"""Bytes of a file; the largest that is published has 155 million."""

_CORES = ("numpy.core", "numpy._core")
_PLAIN = (str, bytes, int, float, type(None))
_UNFINISHED = object()


def read(path: Path) -> Any:
    """Return what a pickle holds, if that is lists, tuples, dicts, text, bytes, numbers and numpy arrays.

    Text of Python 2 comes back as bytes. Nothing else is ever built: a pickle that names any other class or
    function, as one that runs code must, is refused before that is looked up. numpy's own are not looked up either;
    its arrays are made of their bytes, see :mod:`privkit.data._pickled_arrays`.

    Raises:
        InputError: it names something else, is damaged, is larger than 1 GiB, or is no pickle.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} has more than {LARGEST:,} bytes; get the published file.")
        content = path.read_bytes()
        _refuse_far_notes(content)
        return _Plain().of(_PlainUnpickler(io.BytesIO(content), path).load())
    except InputError:
        raise
    except Exception as error:  # a damaged pickle raises whatever its bytes happen to ask for
        raise InputError(f"{path} is no pickle of arrays and lists ({error}); get it again.") from None


def _refuse_far_notes(content: bytes) -> None:
    """Refuse numbers of notes that are larger than the file: memory for all smaller ones would be taken."""
    for opcode, argument, _ in pickletools.genops(content):
        if (
            opcode.name in ("PUT", "BINPUT", "LONG_BINPUT")
            and isinstance(argument, int)
            and argument > len(content)
        ):
            raise ValueError(f"note {argument:,} in {len(content):,} bytes")


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that knows numpy's arrays, by what stands for them, and nothing else."""

    def __init__(self, file: Any, path: Path) -> None:
        super().__init__(file, encoding="bytes")
        self._path = path

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Return what stands for one of numpy's constructors, or refuse."""
        found = _KNOWN.get((module_name, global_name))
        if found is None:
            raise InputError(
                f"{self._path} names {module_name}.{global_name}, which could run code; only pickles of lists, text "
                "and numpy arrays are opened, so get the published file."
            )
        return arrays.Constructor(found)


class _Plain:
    """Puts arrays where something stands for them."""

    def __init__(self) -> None:
        self._done: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """Return a value with its arrays made; each part once, however often it occurs."""
        if id(value) not in self._done:
            self._done[id(value)] = _UNFINISHED
            self._done[id(value)] = self._made(value)
        if self._done[id(value)] is _UNFINISHED:
            raise ValueError("a list that holds itself")
        return self._done[id(value)]

    def _made(self, value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(self.of(part) for part in value)
        if type(value) is dict:
            return {self.of(key): self.of(part) for key, part in value.items()}
        if isinstance(value, arrays.Array):
            return value.made()
        if isinstance(value, _PLAIN):
            return value
        raise ValueError(f"a {type(value).__name__}, which is no list, text, number or array")


def _latin_1(text: str, encoding: str) -> bytes:
    """Return bytes that were written as text, as old protocols do."""
    if encoding != "latin1":
        raise ValueError(f"bytes written as {encoding!r}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """Return no bytes, which old protocols write as a call."""
    return b""


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): arrays.no_array,
    ("numpy", "dtype"): arrays.Kind,
    ("_codecs", "encode"): _latin_1,
    ("__builtin__", "bytes"): _no_bytes,
    **{(f"{core}.multiarray", "_reconstruct"): arrays.reconstruct for core in _CORES},
    **{(f"{core}.multiarray", "scalar"): arrays.scalar for core in _CORES},
    **{(f"{core}.numeric", "_frombuffer"): arrays.from_buffer for core in _CORES},
}
