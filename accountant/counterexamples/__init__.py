"""The smallest data sets for which a claim fails, each a file: exact truth, and a run of the mechanism that shows it.

``find("E5").facts()`` is what is true next to what was claimed; ``find("E5").simulate(...)`` releases both data sets
many times and estimates the same numbers. The formulas stand alone too, as functions of the numbers that they need::

    label_change.label_change_factor    noise_scale.noise_scale_leak     kmeans.kmeans_factor
    encoder.encoder_ratio               encoder.encoder_factor           global_clip.global_clip_factor
    unclipped_score.anova_score         per_round.per_round_epsilon      copies.copies_factor, silos_factor

each in the file of that ending, such as :mod:`accountant.counterexamples.e02_label_change`.

Source: the assumptions of :mod:`accountant.assumptions`; each file names the one that it breaks.
"""

import difflib
import importlib
import pkgutil
import re
from collections.abc import Iterator

from accountant.counterexamples._base import Counterexample as Counterexample
from accountant.counterexamples._base import Estimate as Estimate
from accountant.counterexamples._base import Fact as Fact
from accountant.counterexamples._base import described as described

_FILE = re.compile(r"e(\d\d)_[a-z_]+")


def ids() -> tuple[str, ...]:
    """Return the ids of all counterexamples, E1 first, without importing them.

    >>> ids()[:3]
    ('E1', 'E2', 'E3')
    """
    return tuple(_files())


def find(id: str) -> Counterexample:
    """Return a counterexample by its id, with its usual numbers; capitals do not matter.

    Raises:
        ValueError: there is none of that id.

    >>> find("e5").breaks
    ('A5',)
    """
    files = _files()
    if id.upper() not in files:
        close = difflib.get_close_matches(id.upper(), files, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ValueError(f"counterexample {id!r} is unknown; known are {', '.join(files)}.{hint}")
    module = importlib.import_module(f"{__name__}.{files[id.upper()]}")
    (cls,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Counterexample)
        and value.__module__ == module.__name__
    )
    return cls()


def every() -> Iterator[Counterexample]:
    """Yield all counterexamples, E1 first."""
    yield from map(find, ids())


def breaking(assumption: str) -> tuple[str, ...]:
    """Return the ids of the counterexamples that break an assumption, such as ``"A5"``.

    >>> breaking("A5")
    ('E5', 'E6')
    """
    return tuple(example.id for example in every() if assumption in example.breaks)


def _files() -> dict[str, str]:
    """Return module names by id, in order of their numbers."""
    found = ((_FILE.fullmatch(info.name), info.name) for info in pkgutil.iter_modules(__path__))
    return dict(
        sorted(((f"E{int(match[1])}", name) for match, name in found if match), key=lambda pair: pair[1])
    )
