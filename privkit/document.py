"""YAML files, read strictly: a key that is unknown, or stands there twice, is refused."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from privkit import plug
from privkit.errors import InputError

_READERS = (
    (("attacks",), "settings of an audit", "privkit audit --run RUNS --config"),
    (("method", "tuning"), "a federation to train", "privkit train"),
    (("steps",), "a study of split learning", "privkit hijack"),
)
"""Keys, the most telling first, by which a file is known, what such a file holds, and the command that reads it."""


def mapping(path: Path) -> dict[Any, Any]:
    """Return what a YAML file holds, if that is sections."""
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)  # noqa: S506
    except FileNotFoundError:
        raise InputError(
            f"{path} does not exist; give a configuration file such as configs/demo.yaml."
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}); give a configuration file.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} holds no settings; write sections such as data: and method:.")
    return found


def document(path: Path, *, known: Sequence[str]) -> dict[str, Any]:
    """Return what a YAML file holds, if that is sections of known names."""
    found = mapping(path)
    odd = next((key for key in found if key not in known), None)
    if odd is None:
        return found
    for keys, holds, command in _READERS:
        key = next((key for key in keys if key in found), None)
        if key is not None and set(keys).isdisjoint(known):
            raise InputError(f"{path} holds {key}, so it is {holds}; give it to `{command} {path}`.")
        if key is not None:
            break
    raise InputError(f"{path}: {plug.unknown_key(str(odd), str(odd), known=list(known))}")


class _StrictLoader(yaml.SafeLoader):
    """A safe YAML loader that refuses the same key twice."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [
            self.construct_object(key, deep=True)
            for key, _ in node.value
            if key.tag != "tag:yaml.org,2002:merge"
        ]
        twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
        if twice is not None:
            raise yaml.YAMLError(f"key {twice!r} appears twice{node.start_mark}")
        return node
