"""What every kind of federation's configuration can do: be read from plain values, and be given back as such."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ValidationError

from privkit import plug
from privkit.errors import InputError

Kind = TypeVar("Kind", bound="Configuration")


class Configuration(plug.Settings):
    """Everything that decides what one run computes, but its seed."""

    plugins: ClassVar[Mapping[str, str]]
    """Sections that hold a plug-in, and the package of each."""
    defaults: ClassVar[Mapping[str, str]] = {}
    """Plug-ins of sections that may be left out."""
    example: ClassVar[str]
    """Two sections that such a configuration has, as a refusal names them."""

    @classmethod
    def from_settings(cls: type[Kind], settings: Any, *, where: str) -> Kind:
        """Return the configuration that plain values describe; anything unknown is refused."""
        if not isinstance(settings, dict):
            raise InputError(
                f"{where} holds {type(settings).__name__}; write sections such as {cls.example}."
            )
        built = {**cls.defaults, **settings}
        try:
            for section, package in cls.plugins.items():
                if section in built:
                    built[section] = plug.build(package, built[section])
            return cls.model_validate(built)
        except ValidationError as error:
            raise InputError(f"{where}: {plug.describe(error, cls)}") from None
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    def settings(self) -> dict[str, Any]:
        """Return the configuration as plain values, defaults written out; a section that is not there is left out."""
        named = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: _plain(value) for name, value in named.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, plug.Plugin):
        return value.settings()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Enum):
        return value.value
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
