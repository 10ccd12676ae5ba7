"""Published pickles, opened without running what is in them: only lists, text, numbers and numpy arrays."""

import pickle
from pathlib import Path
from typing import Any

from privkit.errors import InputError

_NUMPY = frozenset(
    {("numpy", "ndarray"), ("numpy", "dtype")}
    | {
        (f"numpy.{core}.multiarray", name)
        for core in ("core", "_core")
        for name in ("_reconstruct", "scalar")
    }
    | {(f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")}
)


def read(path: Path) -> Any:
    """Return what a pickle holds, if that is lists, tuples, dicts, text, bytes, numbers and numpy arrays.

    Text of Python 2 comes back as bytes. Nothing else is ever built: a pickle that names any other class or
    function, as one that runs code must, is refused before that is looked up.

    Raises:
        InputError: it names something else, is damaged, or is no pickle.
    """
    try:
        with path.open("rb") as file:
            return _PlainUnpickler(file, path).load()
    except InputError:
        raise
    except Exception as error:  # a damaged pickle raises whatever its bytes happen to ask for
        raise InputError(f"{path} is no pickle of arrays and lists ({error}); get it again.") from None


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that knows numpy's arrays and nothing else."""

    def __init__(self, file: Any, path: Path) -> None:
        super().__init__(file, encoding="bytes")
        self._path = path

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Return one of numpy's own constructors, or refuse."""
        wanted = (module_name, global_name)
        if wanted in _NUMPY:
            return super().find_class(module_name.replace("numpy.core.", "numpy._core."), global_name)
        if wanted == ("_codecs", "encode"):
            return _latin_1
        raise InputError(
            f"{self._path} names {module_name}.{global_name}, which could run code; only pickles of lists, text and "
            "numpy arrays are opened, so get the published file."
        )


def _latin_1(text: str, encoding: str) -> bytes:
    """Return bytes that were written as text, as old protocols do."""
    if encoding != "latin1":
        raise ValueError(f"bytes written as {encoding!r}")
    return text.encode("latin1")
