"""The score of a coordinate when one record is replaced."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from accountant.counterexamples.e09_unclipped_score import anova_score
from accountant.selfcheck.numbers import number, whole
from accountant.selfcheck.privacy import NotUnderstoodError, refuse_large
from accountant.selfcheck.registry import law

_GROUP = re.compile(r"^\s*(\d+)\s*x\s*\(?([^()]+)\)?\s*$")
_REPLACED = re.compile(r"class[- _]?(?P<label>\w+)\s+value\s+(?P<old>\S+)\s*->\s*(?P<new>\S+)")


@law("score_pair")
def score_pair(*, classes: object, zeta: float, replaced: str) -> tuple[float, float]:
    """Return the score before and after one value of one class is replaced.

    ``classes`` maps each label to its values, as a list or as ``"50x(+1)"``; ``replaced`` reads
    ``one class-0 value +1 -> -1``.
    """
    found = _REPLACED.search(replaced)
    if not isinstance(classes, Mapping) or found is None or found["label"] not in classes:
        raise NotUnderstoodError(f"the replacement {replaced!r} is not understood")
    before = {label: _values(values) for label, values in classes.items()}
    after = {label: list(values) for label, values in before.items()}
    after[found["label"]].remove(number(found["old"]))
    after[found["label"]].append(number(found["new"]))
    return _score(list(before.values()), zeta), _score(list(after.values()), zeta)


def _score(classes: list[list[float]], zeta: float) -> float:
    labels = np.repeat(np.arange(len(classes)), [len(values) for values in classes])
    return anova_score(np.concatenate(classes), labels, zeta=zeta)


def _values(values: Any) -> list[float]:
    if isinstance(values, list):
        return [number(value) for value in values]
    parts = [_GROUP.match(part) for part in str(values).split(",")]
    if not all(parts):
        raise NotUnderstoodError(f"the values {values!r} are not understood")
    groups = [(whole(part[1]), number(part[2])) for part in parts if part]
    refuse_large(records=sum(times for times, _ in groups))
    return [value for times, value in groups for _ in range(times)]
