"""What is in a file of scores before any format is looked for: JSON's value, or a table."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privkit.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def document(path: Path) -> Any:
    """Return JSON's value, or a DataFrame of a CSV or Parquet file; which, says the ending of its name.

    Raises:
        InputError: another ending, no such file, or a file that is not what its ending says.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; give its files, such as '{path / '*.json'}'.")
    if path.suffix.lower() not in _READERS:
        raise InputError(f"{path} ends in {path.suffix or 'nothing'!r}; give a {', '.join(_READERS)} file.")
    if not path.is_file():
        raise InputError(f"{path} does not exist or is no file; give a file of scores.")
    try:
        return _READERS[path.suffix.lower()](path)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read ({error}); is it what its ending says?") from None


def _json(path: Path) -> Any:
    import json

    return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are there once: JSON's own rule would silently take the last."""
    keys = [key for key, _ in pairs]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise ValueError(f"key {twice!r} is there twice")
    return dict(pairs)


def _csv(path: Path) -> "pd.DataFrame":
    import pandas as pd

    return pd.read_csv(path, dtype=str)  # numbers too: pandas' own parser may be off in the last bit


def _parquet(path: Path) -> "pd.DataFrame":
    import pandas as pd

    return pd.read_parquet(path)


_READERS: Mapping[str, Callable[[Path], Any]] = {".json": _json, ".csv": _csv, ".parquet": _parquet}
