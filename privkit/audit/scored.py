"""Scores of every candidate, computed once: kept by the content of transcript, candidates and attack."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np

import attacks
from attacks._base import BEYOND, AbstractAttack, NotApplicableError
from attacks.gradient._base import GradientAttack, PersonalMap
from privkit import atomic, by_content, plug
from privkit.audit import _tuned, heads
from privkit.audit._beyond import personal, seen_by
from privkit.audit.by_round import ByRound, Progress, finite
from privkit.audit.heads import NO_MAP, Steps, asked, shows_steps
from privkit.audit.setup import config_of, setup_of
from privkit.errors import InputError
from privkit.exposure import BatchRecords, ClientRecords, GradientView
from privkit.models._cache import sha256_of
from privkit.store import Run
from privkit.transcript import InsiderView, Records, ServerView, Transcript

_MOST_ROUNDS = 20
_FEW_ROUNDS = 4  # between which a curve is drawn


@dataclass(frozen=True, eq=False)
class Scores:
    """What one attack says about every candidate of a run.

    Attributes:
        expected: AUC that it expected on what each is asked about; not a number where no law told, shape [N].
        whole: from all rounds together, shape [N].
        each: from one round alone, by round; a round it cannot work on is missing.
        until: from all rounds up to one, by round; of attacks on records only some rounds.
    """

    whole: np.ndarray
    each: Mapping[int, np.ndarray]
    until: Mapping[int, np.ndarray]
    expected: np.ndarray


@dataclass(frozen=True, eq=False)
class RunView:
    """One run, read and checked once."""

    run: Run
    transcript: Transcript
    reference: Records | None
    questions: dict[str, Records | None]
    _by_round: "dict[PersonalMap, ByRound | None]" = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> "RunView":
        """Return a run's transcript and questions; a question that is not finite is refused."""
        others = {name: asked for name in plug.names("privkit.canaries") if (asked := run.records(name))}
        records = _tuned.asked(run) if _tuned.tunes(run.info.config) else run.records("records")
        questions = {"records": records, "canaries": run.records("canaries"), **others}
        reference = run.records("reference")
        for name, asked in {**questions, "reference": reference}.items():
            if asked is not None and not np.isfinite(asked.vectors).all():
                row = int(np.argwhere(~np.isfinite(asked.vectors))[0, 0])
                raise InputError(
                    f"{run.path}: vector {row} of {name} is not finite; remove it and record again."
                )
        return cls(run, run.transcript(), reference, questions)

    @cached_property
    def gradients(self) -> GradientView:
        """Return what the server of a run has of gradients, or of steps; computing it passes every candidate."""
        if self._steps is not None:
            return self._steps.whole()
        return _tuned.seen(self.run)

    @property
    def reads(self) -> tuple[str, ...]:
        """Return what attacks can read in this run."""
        if _tuned.tunes(self.run.info.config):
            return ("gradients",)
        return ("prototypes", "weights") if self._steps is None else ("prototypes", "weights", "gradients")

    @cached_property
    def server(self) -> ServerView:
        """Return what the server saw and owns, and what is public of the model."""
        seen = self.transcript.seen_by_server(self.reference)
        return seen if _tuned.tunes(self.run.info.config) else replace(seen, setup=setup_of(self.run))

    def asked(self, attack: AbstractAttack) -> Records | None:
        """Return the candidates of an attack: of steps between messages, with the question that they answer."""
        found = self.questions.get(attack.asks_about)
        if self._steps is None or attack.reads != "gradients" or found is None:
            return found
        return self._steps.candidates

    @cached_property
    def _steps(self) -> "Steps | None":
        """Return what the server of a run that sends heads has of the steps between messages."""
        records = self.questions["records"]
        config = None if _tuned.tunes(self.run.info.config) else config_of(self.run)
        if records is None or config is None or not shows_steps(self.run, config):
            return None
        return Steps(self.server, asked(records), config, self.run.info, partial(personal, self.run))

    def score(self, attack: AbstractAttack) -> Scores:
        """Return finite scores of each candidate the attack asks about, from the cache if they are there."""
        candidates = self.asked(attack)
        if candidates is None:
            raise KeyError(attack.asks_about)
        tier = attack.assumed.tier
        if isinstance(candidates, BatchRecords | ClientRecords):
            return self._on_gradients(attack, candidates)
        view, candidates = seen_by(tier, self, candidates)
        path = self._kept(attack)
        key = self._key(attack, view, candidates)
        cached = _read(path, key)
        if cached is not None:
            return cached
        asks_canaries = attack.about_canaries
        rounds = [] if tier in BEYOND else shown_rounds(view)
        grown = rounds if asks_canaries or not rounds else shown_rounds(view, _FEW_ROUNDS)
        scores = Scores(
            _scored(attack, view, candidates),
            _by_round(attack, view.only, candidates, rounds),
            _by_round(attack, view.until, candidates, grown),
            np.full(len(candidates), np.nan),
        )
        _write(path, key, candidates, scores)
        return scores

    def prepare(self, attacks: Iterable[AbstractAttack], progress: Progress) -> None:
        """Score what is asked about in many rounds with all attacks at once, where scores are not kept already."""
        todo: dict[PersonalMap, list[GradientAttack]] = {}
        for attack in attacks:
            own = self.asked(attack)
            if isinstance(attack, GradientAttack) and own is not None and self._cached(attack, own) is None:
                todo.setdefault(attack.personal_map, []).append(attack)
        for personal_map, several in todo.items():
            if (rounds := self._rounds(personal_map)) is not None:
                rounds.score(several, progress)

    def _rounds(self, personal_map: PersonalMap) -> ByRound | None:
        """Return what scores candidates round by round, behind some map; ``None`` where each is asked about in one."""
        if personal_map not in self._by_round:
            self._by_round[personal_map] = self._passed(personal_map)
        return self._by_round[personal_map]

    def _passed(self, personal_map: PersonalMap) -> ByRound | None:
        if self._steps is not None:
            return ByRound(self.run, self._steps.candidates, partial(self._steps.by_round, personal_map))
        asked = self.questions["records"]
        return ByRound(self.run, asked) if isinstance(asked, ClientRecords) else None

    def _on_gradients(self, attack: AbstractAttack, candidates: Records) -> Scores:
        """Return scores from all that was sent. Ties are an answer: what covers everything says of all the same."""
        scores = self._cached(attack, candidates)
        if scores is None:
            scores = self._scored_on_gradients(attack, candidates)
            _write(self._kept(attack), self._key_on_gradients(attack, candidates), candidates, scores)
        return scores

    def _scored_on_gradients(self, attack: AbstractAttack, candidates: Records) -> Scores:
        if not isinstance(attack, GradientAttack):
            return _at_once(attack, self.gradients, candidates)
        if self._steps is None and attack.personal_map != "identity":
            raise NotApplicableError(NO_MAP)
        rounds = self._rounds(attack.personal_map)
        if rounds is None:
            return _at_once(attack, self.gradients, candidates)
        rounds.score([attack], lambda stage, done, total: None)
        return _over_rounds(attack, rounds.of(attack))

    def _cached(self, attack: AbstractAttack, candidates: Records) -> Scores | None:
        return _read(self._kept(attack), self._key_on_gradients(attack, candidates))

    def _key_on_gradients(self, attack: AbstractAttack, candidates: Records) -> str:
        view = self.server
        if self._steps is not None and isinstance(attack, GradientAttack) and attack.personal_map == "own":
            view = seen_by("insider", self, candidates)[0]
        return self._key(attack, view, candidates)

    def _kept(self, attack: AbstractAttack) -> Path:
        """Return the file of an attack's scores: cosine.parquet, or cosine-client.parquet if it says what it is."""
        return self.run.path / "audit" / f"{attack.label.replace(' (', '-').removesuffix(')')}.parquet"

    def _key(self, attack: AbstractAttack, view: ServerView, candidates: Records) -> str:
        arrays = [*vars(candidates).values(), *(vars(view.reference).values() if view.reference else ())]
        if isinstance(view, InsiderView):
            arrays += [array for held in view.personal.values() for array in held.named.values()]
        content = [attack.settings(), _code(), self.run.anchor.head, [sha256_of(array) for array in arrays]]
        return hashlib.sha256(atomic.canonical_json(content).encode()).hexdigest()


def shown_rounds(view: ServerView, most: int = _MOST_ROUNDS) -> list[int]:
    """Return the rounds that are also looked at alone: all, or so many from the first to the last."""
    rounds = view.rounds
    chosen = np.linspace(0, len(rounds) - 1, min(len(rounds), most)).round().astype(int)
    return [rounds[i] for i in np.unique(chosen)]


def _by_round(
    attack: AbstractAttack,
    seen: Callable[[int], ServerView],
    candidates: Records,
    rounds: list[int],
) -> dict[int, np.ndarray]:
    found = {}
    for round in rounds:
        try:
            found[round] = _scored(attack, seen(round), candidates)
        except NotApplicableError:
            continue
    return found


def _at_once(attack: AbstractAttack, view: ServerView, candidates: Records) -> Scores:
    """Return the scores of records that are each asked about in one round, with what was expected of them."""
    expected = attack.expected(view, candidates)
    unknown_N = np.full(len(candidates), np.nan)
    return Scores(finite(attack, view, candidates), {}, {}, unknown_N if expected is None else expected)


def _over_rounds(attack: GradientAttack, each: Mapping[int, np.ndarray]) -> Scores:
    """Return the scores of records that are asked about in all rounds, from each and from all up to it."""
    scores_RN = np.stack(list(each.values()))
    until = {round: attack.over_rounds(scores_RN[: i + 1]) for i, round in enumerate(each)}
    return Scores(until[max(until)], each, until, np.full(scores_RN.shape[1], np.nan))


def _scored(attack: AbstractAttack, view: ServerView, candidates: Records) -> np.ndarray:
    scores = finite(attack, view, candidates)
    if len(scores) > 1 and (scores == scores[0]).all():
        raise NotApplicableError(f"every candidate has the score {scores[0]:g}: it tells none from another")
    return scores


@cache
def _code() -> str:
    """Return the sha256 of all attack code, steps of heads included: other code's scores are computed again."""
    files = [*sorted(Path(attacks.__file__).parent.rglob("*.py")), Path(heads.__file__)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _write(path: Path, key: str, candidates: Records, scores: Scores) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "client": candidates.clients,
        "label": candidates.labels,
        "score": scores.whole,
        "expected": scores.expected,
    }
    for kind in ("each", "until"):
        columns |= {f"{kind} {round}": found for round, found in getattr(scores, kind).items()}
    seal = by_content.sealed(key, columns)
    table = pa.table(columns).replace_schema_metadata({"privkit.key": seal})
    atomic.write_with(path, lambda tmp: pq.write_table(table, tmp))


def _read(path: Path, key: str) -> Scores | None:
    """Return the scores a file holds if they were computed from the same content and are as written, else nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        return None
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError):
        return None
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    if (table.schema.metadata or {}).get(b"privkit.key") != by_content.sealed(key, columns).encode():
        return None
    by_round = {
        kind: {int(name.split()[1]): c for name, c in columns.items() if name.startswith(kind + " ")}
        for kind in ("each", "until")
    }
    return Scores(columns["score"], by_round["each"], by_round["until"], columns["expected"])
