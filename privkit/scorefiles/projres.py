"""Files published with ProjRes: FedLLM/ProjRes @ c1b8608, Section 4.2, one JSON per model and data set.

For each attack two lists, ``<key>_positive_sample`` (members) and ``<key>_negative_sample``; times and memory beside
them. One pass of the published script's last loop (``MIA_Bert_On_CoLA.py``) is one trial: one upload of client 0, one
member of its batch and one non-member, both scored by every attack, which appends one number to every list. So entry i
of all lists belongs to trial i: attacks are paired, and a trial's member and non-member share a release.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import TypeAdapter, ValidationError

from privkit.errors import InputError
from privkit.scorefiles._base import AbstractScoreFile, Direction, Evaluation, Pairing, Score, Scored


class Published(NamedTuple):
    """One attack of the files."""

    attack: str
    member_has: Direction


ATTACKS: Mapping[str, Published] = {
    "P_MIA": Published("ProjRes", Direction.LOWER),
    "Fed_loss": Published("FedLoss", Direction.LOWER),
    "Cosine": Published("Cosine", Direction.HIGHER),
    "gradient_diff": Published("GradDiff", Direction.HIGHER),
    "Score_diff": Published("ScoreDiff", Direction.LOWER),
    "Score_Ratio": Published("ScoreRatio", Direction.LOWER),
    "FTA": Published("FTA", Direction.HIGHER),
    "FedMIA": Published("FedMIA", Direction.HIGHER),
}
"""Key in the files, name, and direction: those that the authors' Section4.2/results/plot_figure.py draws with."""

_SCORES = re.compile(r"(?P<key>.+)_(?P<sample>positive|negative)_sample(_res)?")
_COSTS = re.compile(r".+_(Time|Memory)_use")
_NAME = re.compile(r"mia_(?P<model>[^_]+)_(?P<data>[^_]+)_results.*")
_LIST = TypeAdapter(list[Score])


class ProjRes(AbstractScoreFile):
    """JSON with lists ``<attack>_positive_sample`` and ``<attack>_negative_sample``."""

    looks_like: ClassVar[str] = (
        'JSON as published with ProjRes, lists "P_MIA_positive_sample_res", "P_MIA_negative_sample_res" and the like'
    )

    def recognises(self, document: Any) -> bool:
        """Return whether there is a list of scores by its name."""
        return isinstance(document, dict) and any(_SCORES.fullmatch(key) for key in document)

    def read(self, document: Any, path: Path) -> Evaluation:
        """Return the evaluation; times and memory are left out, an attack without a declared direction is refused."""
        lists: dict[str, dict[str, list[float | None]]] = {}
        for key, value in document.items():
            found = _SCORES.fullmatch(key)
            if found is not None:
                lists.setdefault(found["key"], {})[found["sample"]] = _numbers(key, value)
            elif not _COSTS.fullmatch(key):
                raise InputError(
                    f"key {key!r} is neither scores nor a cost; a ProjRes file has <attack>_positive_sample, "
                    "<attack>_negative_sample, <attack>_Time_use and <attack>_Memory_use."
                )
        name = _NAME.fullmatch(path.stem)
        return Evaluation(
            attacks=[_scored(key, samples) for key, samples in lists.items()],
            pairing=Pairing.STATED,
            model=None if name is None else name["model"].lower(),
            data=None if name is None else name["data"].lower(),
            notes=(
                "ProjRes files: the published code scores one member and one non-member of one upload per trial with "
                "every attack; so attacks are paired trial by trial, and trials are the independent units.",
            ),
        )


def _numbers(key: str, value: Any) -> list[float | None]:
    try:
        return _LIST.validate_python(value)
    except ValidationError as error:
        where = "".join(f"[{part}]" for part in error.errors()[0]["loc"][:1])
        raise InputError(
            f"{key}{where} is no number or no list of numbers; give one number per trial."
        ) from None


def _scored(key: str, samples: Mapping[str, list[float | None]]) -> Scored:
    if key not in ATTACKS:
        raise InputError(
            f"attack {key!r} has no declared direction; known are {', '.join(ATTACKS)}: write others in privkit's own "
            "format, which declares it (docs/scores.md)."
        )
    absent = {"positive", "negative"} - set(samples)
    if absent:
        raise InputError(
            f"{key} has no {absent.pop()} sample; give the scores of members and of non-members."
        )
    members, non_members = samples["positive"], samples["negative"]
    return Scored(
        attack=ATTACKS[key].attack,
        member_has=ATTACKS[key].member_has,
        members=members,
        non_members=non_members,
        releases=(range(len(members)), range(len(non_members))),
    )
