"""A configuration file: one run, or a study of several cells and seeds.

A study is a base configuration and, under ``cells``, what each cell changes. A section of a cell is
merged into the base's, unless it names another plug-in: then it replaces it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from privkit import plug
from privkit.data._base import AbstractData
from privkit.defenses._base import AbstractReleaseDefense
from privkit.errors import InputError
from privkit.methods._base import AbstractMethod
from privkit.models._base import AbstractEncoder
from privkit.personal import PersonalModel

_PLUGINS = {
    "data": "privkit.data",
    "encoder": "privkit.models",
    "method": "privkit.methods",
    "defense": "privkit.defenses",
}


class Split(BaseModel):
    """Shares of each class of each domain; what is left over is not used.

    Members and non-members are the two random halves of one pool, so they are exchangeable.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    pool: float = Field(
        default=0.6, gt=0, lt=1, description="share that is split into members (trained on) and non-members"
    )
    reference: float = Field(default=0.2, ge=0, lt=1, description="share that the attacker owns")
    test: float = Field(default=0.2, gt=0, lt=1, description="share that accuracy is measured on")

    @model_validator(mode="after")
    def _at_most_one(self) -> "Split":
        total = self.pool + self.reference + self.test
        if total > 1 + 1e-9:
            raise ValueError(f"pool + reference + test is {total:g}; they may add up to at most 1")
        return self


class Canaries(BaseModel):
    """Planted records: how many per client, and how far outside the ball."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    count: int = Field(default=0, ge=0, description="canaries per client and seed; 0 plants none")
    norm: float = Field(default=3.0, gt=0, description="length of a canary, in the units of the embedding")


class RunConfig(BaseModel):
    """Everything that decides what one run computes, but its seed."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    data: AbstractData
    encoder: AbstractEncoder
    model: PersonalModel = Field(default_factory=PersonalModel)
    method: AbstractMethod
    defense: AbstractReleaseDefense
    rounds: int = Field(ge=1, description="communication rounds, T")
    split: Split = Field(default_factory=Split)
    canaries: Canaries = Field(default_factory=Canaries)

    @classmethod
    def from_settings(cls, settings: Any, *, where: str) -> "RunConfig":
        """Return the configuration that plain values describe; anything unknown is refused."""
        if not isinstance(settings, dict):
            raise InputError(
                f"{where} holds {type(settings).__name__}; write sections such as data: and method:."
            )
        built = dict(settings)
        try:
            for section, package in _PLUGINS.items():
                if section in built:
                    built[section] = plug.build(package, built[section])
            return cls(**built)
        except ValidationError as error:
            raise InputError(f"{where}: {plug.describe(error, cls)}") from None
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    def settings(self) -> dict[str, Any]:
        """Return the configuration as plain values, defaults written out."""
        named = {name: getattr(self, name) for name in type(self).model_fields}
        return {
            name: value.settings()
            if isinstance(value, plug.Plugin)
            else value.model_dump(mode="json")
            if isinstance(value, BaseModel)
            else value
            for name, value in named.items()
        }


@dataclass(frozen=True)
class Study:
    """Named cells, each run with the seeds ``0 ... seeds-1``."""

    cells: dict[str, RunConfig]
    seeds: int


def load(path: Path, *, seeds: int | None = None) -> Study:
    """Return the study that a YAML file describes; ``seeds`` overrides the file's."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)  # noqa: S506
    except FileNotFoundError:
        raise InputError(
            f"{path} does not exist; give a configuration file such as configs/demo.yaml."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(document, dict):
        raise InputError(f"{path} holds no settings; write sections such as data: and method:.")
    base = dict(document)
    cells = base.pop("cells", None) or {path.stem: {}}
    count = base.pop("seeds", 1) if seeds is None else seeds
    base.pop("seeds", None)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InputError(f"{path}: seeds={count!r}; give a whole number of at least 1.")
    if not isinstance(cells, dict):
        raise InputError(
            f"{path}: cells is {type(cells).__name__}; write one name per cell, its changes below it."
        )
    return Study(
        cells={
            _cell_name(path, name): RunConfig.from_settings(
                merged(base, changes or {}), where=f"{path} cell {name}" if len(cells) > 1 else str(path)
            )
            for name, changes in cells.items()
        },
        seeds=count,
    )


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a base with changes laid over it, section by section.

    >>> merged({"defense": {"name": "igpp", "epsilon": 1}}, {"defense": {"epsilon": 8}})
    {'defense': {'name': 'igpp', 'epsilon': 8}}
    >>> merged({"defense": {"name": "igpp", "epsilon": 1}}, {"defense": {"name": "none"}})
    {'defense': {'name': 'none'}}
    """
    result = dict(base)
    for key, value in changes.items():
        before = result.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        same = both and value.get("name", before.get("name")) == before.get("name")
        result[key] = merged(before, value) if both and same else value
    return result


def _cell_name(path: Path, name: Any) -> str:
    text = str(name)
    if not text or not all(c.isalnum() or c in "-_." for c in text) or text.startswith("."):
        raise InputError(
            f"{path}: cell name {name!r} cannot name a folder; use letters, digits, - _ and dots."
        )
    return text


class _StrictLoader(yaml.SafeLoader):
    """A safe YAML loader that refuses the same key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
        if twice is not None:
            raise yaml.YAMLError(f"key {twice!r} appears twice{node.start_mark}")
        return super().construct_mapping(node, deep=deep)
