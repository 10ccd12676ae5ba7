"""What a command line changes in a study: where its data are, in which numbers it is computed, which cells are run."""

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from privkit.config import Precision, RunConfig
from privkit.errors import InputError
from privkit.study import Study


def with_root(study: Study[Any], root: Path) -> Study[Any]:
    """Return a study whose data sets are read from a folder, wherever they are read from one.

    Raises:
        InputError: no cell's data set is read from a folder.
    """
    return _with_data(study, "root", root, "is read from a folder of yours; leave --data out")


def skipping_bad(study: Study[Any]) -> Study[Any]:
    """Return a study that leaves out records that cannot be used, wherever a data set may do that.

    Raises:
        InputError: no cell's data set may.
    """
    return _with_data(study, "skip_bad", True, "can leave records out; leave --skip-bad out")


def with_precision(study: Study[Any], precision: Precision) -> Study[Any]:
    """Return a study whose passes are all computed in some numbers.

    Raises:
        InputError: a cell's are always computed in float32.
    """
    fixed = next((name for name, config in study.cells.items() if not isinstance(config, RunConfig)), None)
    if fixed is not None:
        raise InputError(f"cell {fixed} tunes a transformer, which is computed in fp32; leave --dtype out.")
    changed = {
        name: config.model_copy(update={"precision": precision}) for name, config in study.cells.items()
    }
    return replace(study, cells=changed)


def only(study: Study[Any], patterns: list[str]) -> Study[Any]:
    """Return the cells of a study whose names match one of some patterns, such as ``digits-*``, in their order.

    Raises:
        InputError: a pattern matches no cell.
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in study.cells):
            raise InputError(
                f"no cell is named {pattern!r}; cells are {', '.join(study.cells)} (* stands for any characters)."
            )
    kept = {
        name: config
        for name, config in study.cells.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    return replace(study, cells=kept, partial=study.partial or len(kept) < len(study.cells))


def _with_data(study: Study[Any], field: str, value: Any, refusal: str) -> Study[Any]:
    if not any(_has(config, field) for config in study.cells.values()):
        names = ", ".join(sorted({config.data.name for config in study.cells.values()}))
        raise InputError(f"no data set of this study ({names}) {refusal}.")
    return replace(
        study, cells={name: _changed(config, field, value) for name, config in study.cells.items()}
    )


def _changed(config: Any, field: str, value: Any) -> Any:
    if not _has(config, field):
        return config
    # built anew, so that whatever a data set checks is checked again
    fields = {name: getattr(config.data, name) for name in type(config.data).model_fields}
    data = type(config.data).model_validate({**fields, field: value})
    return config.model_copy(update={"data": data})


def _has(config: Any, field: str) -> bool:
    return field in type(config.data).model_fields
