"""One upload with everything that an attack may hold against it: its candidates, and the attacker's own records."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float64, Int64

from attacks._base import NotApplicableError
from attacks._known_noise import words
from attacks.gradient._noise import Noise, noise_of
from attacks.gradient._precision import TRANSPORTS, Floor, floor_of, rounding_variance, stored
from attacks.gradient._pull import Pull, pull_of
from privkit.exposure import BatchRecords, Exposure, GradientView, Trace
from privkit.release import Release, Update
from privkit.transcript import Records

Rows = Int64[np.ndarray, " N"]
Made = TypeVar("Made")

_NEARLY = 0.98
"""Share of a clip norm from which an upload counts as shortened: numbers of few bits do not keep a norm exactly."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Seen:
    """What one client sent in one round, and whose gradients may be in it.

    Attributes:
        view: all that the server has.
        release: the upload.
        rows: places of the candidates among all that are asked about, shape [N].
        candidates: their passes at the weights of this round.
        public: passes of the attacker's own records at the same weights; ``None`` where it owns none.
        sent: gradients [m, d] by map, of maps that were traced; up to one positive factor where a delta was sent, and
            without the multiple of the weights that a penalty adds, where that is known.
        raw: the same as they arrived.
        unknown: weights [m, d] of maps of which any multiple may have been added to what was sent.
        kept: what attacks made of the public records of this round, to be used again for other uploads.
    """

    view: GradientView
    release: Release
    rows: Rows
    candidates: Exposure
    public: Exposure | None
    sent: Mapping[str, np.ndarray]
    raw: Mapping[str, np.ndarray]
    unknown: Mapping[str, np.ndarray] = field(default_factory=dict)
    kept: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made under this key for another upload of the round, or make it."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    @property
    def batch_size(self) -> int:
        """Return the number of records behind the upload."""
        return self.view.sizes.get(self.release.client, self.view.batch_size)

    @property
    def is_gradient(self) -> bool:
        """Return whether the length of what was sent is that of a mean gradient, not that of an optimiser's step."""
        return isinstance(self.release.payload, Update) and self.release.payload.means == "gradient"

    @cached_property
    def has_length(self) -> bool:
        """Return whether the length of what was sent is that of a mean gradient, which no clip has shortened."""
        return self.is_gradient and not self._shortened

    @property
    def _shortened(self) -> bool:
        if self.view.clip is None or not isinstance(self.release.payload, Update):
            return False
        squares = sum(
            float(np.square(a, dtype=np.float64).sum()) for a in self.release.payload.named.values()
        )
        return squares**0.5 >= _NEARLY * self.view.clip

    @cached_property
    def noise(self) -> Noise:
        """Return the clip and the noise of the upload; every sender added noise of its own to its sum.

        Raises:
            NotApplicableError: they are not known.
        """
        return noise_of(self.release).of_many(self.view.senders)

    @cached_property
    def rounding(self) -> tuple[tuple[str, float], ...]:
        """Return the variance that rounding put on each number of the sum, by map.

        Of maps that were sent in coarse numbers; in float32 of those that hold something larger than the gradient.
        """
        found = {name: self._rounding(name, self.raw[name]) for name in self.sent if self._is_rounded(name)}
        return tuple(found.items())

    def rounding_of(self, gradients: Mapping[str, np.ndarray]) -> tuple[tuple[str, float], ...]:
        """Return the same of other gradients, if they were sent as this upload was."""
        return tuple(
            (name, self._rounding(name, g)) for name, g in gradients.items() if self._is_coarse(name)
        )

    def _rounding(self, name: str, gradient_md: np.ndarray) -> float:
        kind = stored(self.release.payload, name)
        return self.batch_size**2 * rounding_variance(gradient_md, transport=self.view.transport, stored=kind)

    def _is_coarse(self, name: str) -> bool:
        return self.view.transport != "fp32" or stored(self.release.payload, name) == np.float16

    def _is_rounded(self, name: str) -> bool:
        held = self.sent[name] is not self.raw[name] or (name in self.unknown and not self.noise.std)
        return held or self._is_coarse(name)

    @property
    def owned(self) -> Exposure:
        """Return the attacker's own records.

        Raises:
            NotApplicableError: it owns none, or none was traced in this round.
        """
        if self.public is None:
            raise NotApplicableError(
                f"the attacker owns no records traced at the weights of round {self.release.round}; give it public ones"
            )
        return self.public

    @property
    def head(self) -> str:
        """Return the name of the map that gives the logits: the last one.

        Raises:
            NotApplicableError: it was not trained, or not uploaded.
        """
        found = head_of(self.candidates)
        if found is not None and found in self.sent:
            return found
        last = list(self.candidates.traces)[-1]
        raise NotApplicableError(
            f"map {last} is the last one traced, gives {self.candidates.traces[last].slopes.shape[-1]} numbers and "
            f"{'was' if last in self.sent else 'was not'} sent; an attack on the head needs the gradient of the "
            f"map that gives the {self.candidates.logits.shape[1]} logits"
        )

    def only(self, name: str) -> "Seen":
        """Return what one map alone shows."""
        return replace(self, sent={name: self.sent[name]})


def seen(view: GradientView, candidates: Records) -> Iterator[Seen]:
    """Yield every upload that some candidate is asked about.

    Records that are no :class:`BatchRecords` are asked about in every round: was it in any of the batches?

    Raises:
        NotApplicableError: nobody sent a gradient; the passes of candidates are missing, or do not fit.
    """
    for round in _rounds(view, candidates):
        rows = _asked(candidates, round)
        passes, public, kept = _passes(view, round, len(rows)), _public(view, round), {}
        for client in np.unique(candidates.clients[rows]).tolist():
            own = np.flatnonzero(candidates.clients[rows] == client)
            release = _release(view, round, client)
            if release is None and isinstance(candidates, BatchRecords):
                raise NotApplicableError(f"client {client} sent nothing in round {round}")
            if release is None:
                continue
            sent = _maps(view, release, passes)
            pull = pulled(view, release, sent, passes)
            yield Seen(
                view=view,
                release=release,
                rows=rows[own],
                candidates=passes_of(passes, own),
                public=public,
                sent=pull.without(sent, weights_of(view, release)),
                raw=sent,
                unknown=pull.unknown,
                kept=kept,
            )


_PULLS: "WeakKeyDictionary[GradientView, dict[tuple[int, int], Pull]]" = WeakKeyDictionary()
"""Found once for all attacks."""


def pulled(view: GradientView, release: Release, sent: Mapping[str, np.ndarray], passes: Exposure) -> Pull:
    """Return what multiple of the weights that the server sent out is in an upload."""
    kept, key = _PULLS.setdefault(view, {}), (release.round, release.client)
    if key not in kept:
        weights = weights_of(view, release)
        kept[key] = (
            pull_of(sent, weights, partial(_floor, view, release, sent), head=head_of(passes))
            if view.transport in TRANSPORTS and not _noisy(release)
            else Pull(unknown={name: weights[name] for name in sent if np.any(weights.get(name, 0.0))})
        )
    return kept[key]


def _floor(view: GradientView, release: Release, sent: Mapping[str, np.ndarray], name: str) -> Floor:
    return floor_of(sent[name], transport=view.transport, stored=stored(release.payload, name))


def _noisy(release: Release) -> bool:
    """Return whether noise was, or may have been, put on an upload."""
    try:
        return noise_of(release).std > 0
    except NotApplicableError:
        return True


def weights_of(view: GradientView, release: Release) -> Mapping[str, np.ndarray]:
    """Return the weights that a round began with, by map; none where they are not known."""
    return view.weights.get(release.round, {})


def head_of(passes: Exposure) -> str | None:
    """Return the name of the map that gives the logits, the last one, if it was traced."""
    name, trace = list(passes.traces.items())[-1]
    return name if trace.slopes.shape[-1] == passes.logits.shape[1] else None


def passes_of(passes: Exposure, rows: Rows) -> Exposure:
    """Return the passes of some records, by their places."""
    traces = {
        name: Trace(
            inputs=trace.inputs[rows],
            slopes=trace.slopes[rows],
            present=trace.present[rows],
            pooled=trace.pooled[rows],
        )
        for name, trace in passes.traces.items()
    }
    return Exposure(traces=traces, logits=passes.logits[rows], losses=passes.losses[rows])


def sent_matrices(view: GradientView, release: Release) -> Mapping[str, np.ndarray]:
    """Return every gradient of a release, as wide numbers.

    Raises:
        NotApplicableError: it holds something else.
    """
    try:
        found = view.gradient(round=release.round, client=release.client)
    except TypeError:
        raise NotApplicableError(f"clients sent {words(release.payload)}, not gradients") from None
    return {name: array.astype(np.float64, copy=False) for name, array in found.items()}


def losses_of(view: GradientView, candidates: Records) -> Float64[np.ndarray, "N rounds"]:
    """Return the losses of all candidates at the weights of every round and after the last.

    Raises:
        NotApplicableError: they are not known, or not finite.
    """
    if view.losses.shape[0] != len(candidates) or view.losses.shape[1:] == (0,):
        raise NotApplicableError(
            f"the view has losses of shape {list(view.losses.shape)} for {len(candidates)} candidates; give one row "
            "per candidate and one column per round, and one after the last"
        )
    if not np.isfinite(view.losses).all():
        raise NotApplicableError("a loss of a candidate is not finite; leave out models that diverged")
    return view.losses


def _rounds(view: GradientView, candidates: Records) -> list[int]:
    """Return the rounds in which anything is asked."""
    if not isinstance(candidates, BatchRecords):
        return view.rounds if len(candidates) else []
    return np.unique(candidates.rounds).tolist()


def _asked(candidates: Records, round: int) -> Rows:
    if isinstance(candidates, BatchRecords):
        return np.flatnonzero(candidates.rounds == round)
    return np.arange(len(candidates))


def _passes(view: GradientView, round: int, count: int) -> Exposure:
    """Return the passes of a round's candidates, held against their number and checked to be finite."""
    passes = view.asked.get(round)
    if passes is None or len(passes.losses) != count:
        has = "none" if passes is None else f"those of {len(passes.losses)}"
        raise NotApplicableError(
            f"{count} candidates are asked about in round {round}, and the view has passes of {has}; trace each"
        )
    _refuse_odd(passes, f"a candidate of round {round}")
    return passes


def _public(view: GradientView, round: int) -> Exposure | None:
    passes = view.public.get(round)
    if passes is None or not len(passes.losses):
        return None
    _refuse_odd(passes, f"a public record of round {round}")
    return passes


def _refuse_odd(passes: Exposure, whose: str) -> None:
    """Raise if a trace holds a number that is not finite."""
    for name, trace in passes.traces.items():
        if not (np.isfinite(trace.inputs).all() and np.isfinite(trace.slopes).all()):
            raise NotApplicableError(
                f"the trace of {whose} in map {name} is not finite; leave that record out"
            )


def _release(view: GradientView, round: int, client: int) -> Release | None:
    return next((r for r in view.releases if (r.round, r.client) == (round, client)), None)


def _maps(view: GradientView, release: Release, passes: Exposure) -> Mapping[str, np.ndarray]:
    """Return the sent gradients of traced maps; a map that was not sent is left out, one of another shape refused."""
    sent = sent_matrices(view, release)
    found = {}
    for name, trace in passes.traces.items():
        wanted = (trace.slopes.shape[-1], trace.inputs.shape[-1])
        if name in sent and sent[name].shape != wanted:
            raise NotApplicableError(
                f"client {release.client} sent {name} of shape {list(sent[name].shape)}, and its trace is of a map of "
                f"shape {list(wanted)}"
            )
        if name in sent:
            found[name] = sent[name]
    if not found:
        raise NotApplicableError(
            f"client {release.client} sent {', '.join(sent)}, and traced are {', '.join(passes.traces)}; no map is both"
        )
    return found
