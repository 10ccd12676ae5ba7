"""Plug-ins: one method, defense, attack, data set or encoder is one file with one frozen config class.

The class is the config and the behaviour. It is found by its file name, which is also the name used in
config files, tables and on the command line. Files that start with an underscore are not plug-ins.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from privkit.errors import InputError


class Settings(BaseModel):
    """Base of every section of a configuration: frozen; an unknown key or a number that is none is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _number_is_no_truth_value(cls, value: Any, info: Any) -> Any:
        wanted = cls.model_fields[info.field_name].annotation
        if isinstance(value, bool) and {int, float} & {wanted, *get_args(wanted)}:
            raise ValueError("a truth value is no valid integer or number; give one")
        return value


class Plugin(Settings):
    """Base of every plug-in."""

    citation: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Return the file name, without its ending, that defines this plug-in."""
        return type(self).__module__.rpartition(".")[2]

    def settings(self) -> dict[str, Any]:
        """Return the plug-in as plain values, its name first."""
        return {"name": self.name, **self.model_dump(mode="json")}


def names(package: ModuleType | str) -> list[str]:
    """Return the plug-in names in a package, sorted, without importing them."""
    module = importlib.import_module(package) if isinstance(package, str) else package
    found = (info.name for info in pkgutil.iter_modules(module.__path__) if not info.ispkg)
    return sorted(name for name in found if not name.startswith("_"))


def find(package: str, name: str) -> type[Plugin]:
    """Return the plug-in class that ``package/name.py`` defines; exactly one, else it is refused."""
    known = names(package)
    if name not in known:
        raise InputError(unknown(_kind(package), name, known=known))
    module = importlib.import_module(f"{package}.{name}")
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Plugin) and value.__module__ == module.__name__
    ]
    if len(classes) != 1:
        raise TypeError(
            f"{module.__name__} defines {len(classes)} plug-in classes; a plug-in file defines one."
        )
    return classes[0]


def every(package: str) -> Iterator[tuple[str, type[Plugin]]]:
    """Yield the name and class of every plug-in in a package."""
    for name in names(package):
        yield name, find(package, name)


def build(package: str, settings: Any) -> Plugin:
    """Return the plug-in that settings such as ``{name: igpp, epsilon: 1.0}`` describe."""
    if isinstance(settings, str):
        settings = {"name": settings}
    kind = _kind(package)
    if not isinstance(settings, dict) or not isinstance(settings.get("name"), str):
        raise InputError(f"{kind} is {settings!r}; write a name, or name: with its settings below it.")
    fields = {key: value for key, value in settings.items() if key != "name"}
    cls = find(package, settings["name"])
    try:
        return cls.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"{kind} {settings['name']}: {describe(error, cls)}") from None


def _kind(package: str) -> str:
    """Return what a package's plug-ins are called in a configuration."""
    folder = package.rpartition(".")[2]
    return {"models": "encoder", "canaries": "kind of canaries"}.get(folder, folder.removesuffix("s"))


def describe(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first thing wrong with some settings as one sentence with the way out."""
    # a misspelt key also leaves the right one missing, and its list too short: say what is wrong, not what follows
    first = min(error.errors(), key=lambda found: found["type"] in ("missing", "too_short"))
    where = ".".join(str(part) for part in first["loc"]) or "settings"
    if first["type"] == "extra_forbidden":
        *path, key = first["loc"]
        return unknown_key(where, str(key), known=list(_section(model, path).model_fields))
    if first["type"] == "invalid_key":
        return f"key {first['loc'][-1]} is no name; does a number hold a comma where a point is meant?"
    if first["type"] == "missing":
        return f"{where} is missing; add it."
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    message += "" if message.endswith("?") else "."
    if (
        not first["loc"] and first["type"] == "value_error"
    ):  # of several settings together: the message names them
        return message
    return f"{where}={first['input']!r}: {message[0].lower()}{message[1:]}"


def unknown(kind: str, name: str, *, known: list[str]) -> str:
    """Return the sentence that refuses a name, with the known one that is closest to it."""
    return f"{kind} {name!r} is unknown; known are {', '.join(known)}.{_hint(name, known)}"


def unknown_key(where: str, key: str, *, known: list[str]) -> str:
    """Return the sentence that refuses a key, with the known one that is closest to it."""
    return f"unknown key {where!r}; known keys are {', '.join(known) or 'none'}.{_hint(key, known)}"


def _hint(name: str, known: list[str]) -> str:
    begun = [one for one in known if one.startswith(name)] if name else []
    close = begun if len(begun) == 1 else difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _section(model: type[BaseModel], path: Iterable[int | str]) -> type[BaseModel]:
    """Return the settings class that a path of keys leads to, as far as it can be followed."""
    for part in path:
        found = model.model_fields.get(str(part))
        if found is None:
            continue
        # a section that may be left out is annotated as itself or None
        for wanted in (found.annotation, *get_args(found.annotation)):
            if isinstance(wanted, type) and issubclass(wanted, BaseModel):
                model = wanted
    return model
