"""Scores from each round alone, of records that are asked about in many; a round's passes serve all attacks."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from attacks._base import AbstractAttack, NotApplicableError
from attacks.gradient._base import GradientAttack
from attacks.statistics.scores import as_scores
from privkit.audit import _tuned
from privkit.exposure import ClientRecords, GradientView
from privkit.store import Run
from privkit.transcript import Records, ServerView

Progress = Callable[[str, int, int], None]
Views = Callable[[], Iterator[tuple[int, GradientView]]]


class ByRound:
    """What attacks say of a run's candidates from one round at a time."""

    def __init__(self, run: Run, candidates: ClientRecords, views: Views | None = None) -> None:
        """Take a run, whose views are by default those of the gradient lab."""
        self._run, self._candidates = run, candidates
        self._views: Views = views or (lambda: _tuned.by_round(run))
        self._found: dict[str, dict[int, np.ndarray] | Exception] = {}

    def score(self, attacks: Iterable[GradientAttack], progress: Progress) -> None:
        """Score with all of some attacks; what breaks one is raised when its scores are asked for."""
        todo = [attack for attack in attacks if attack.label not in self._found]
        if not todo:
            return
        self._found.update({attack.label: {} for attack in todo})
        try:
            for round, view in self._views():
                progress("rounds", round, self._run.rounds)
                for attack in todo:
                    self._one(attack, round, view)
        except NotApplicableError as reason:
            self._found.update({attack.label: reason for attack in todo})
        progress("rounds", self._run.rounds, self._run.rounds)

    def _one(self, attack: GradientAttack, round: int, view: ServerView) -> None:
        found = self._found[attack.label]
        if isinstance(found, Exception):
            return
        try:
            found[round] = finite(attack, view, self._candidates)
        except Exception as error:
            self._found[attack.label] = error

    def of(self, attack: GradientAttack) -> Mapping[int, np.ndarray]:
        """Return an attack's scores by round; what broke it is raised."""
        found = self._found[attack.label]
        if isinstance(found, Exception):
            raise found
        return found


def finite(attack: AbstractAttack, view: ServerView, candidates: Records) -> np.ndarray:
    """Return an attack's scores, one finite number per candidate."""
    scores = as_scores(attack.score(view, candidates), name=attack.name)
    if len(scores) != len(candidates):
        raise ValueError(f"{attack.name} returned {len(scores)} scores for {len(candidates)} candidates")
    return scores
