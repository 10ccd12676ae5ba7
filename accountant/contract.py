"""What must be true of a release for its event to cost what it says.

A noise multiplier alone proves nothing. It means "noise standard deviation divided by sensitivity",
and the sensitivity holds only for a neighbouring relation, a clip set, and inputs that depend on
nothing private. A contract writes that down next to the number, so that an accountant can say which
part of a claim does not hold. What is not declared is never assumed.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from accountant import check


class Relation(StrEnum):
    """Which two data sets count as neighbours."""

    REPLACE_SAME_LABEL = "replace one record, same label"
    REPLACE_ANY_LABEL = "replace one record, any label"
    ADD_REMOVE = "add or remove one record"
    ZERO_OUT = "zero out one record"
    REPLACE_CLIENT = "replace one client's data"
    ZERO_OUT_CLIENT = "zero out one client"

    @property
    def about_clients(self) -> bool:
        """Return whether neighbours differ in all that one client holds, not in a record of it."""
        return self in (Relation.REPLACE_CLIENT, Relation.ZERO_OUT_CLIENT)


class DependsOn(StrEnum):
    """What a part of the pipeline was computed from."""

    PUBLIC = "public data"
    PAST_OUTPUTS = "past private outputs"
    PRIVATE_STATE = "private state"


class Query(StrEnum):
    """What noise was added to; it says how far one record can move it (:mod:`accountant.relations`)."""

    CLASS_MEANS = "means of classes"
    CLASS_SUMS = "sums of classes"
    SUMS_AND_COUNTS = "sums and counts of classes"
    MOMENTS = "sums of moments of classes"
    RECORD_SUM = "one sum over all records"
    CLIENT_UPDATE = "one client's whole update"
    BOUNDED_SCORES = "scores of bounded range"


class Counts(StrEnum):
    """Whether the number of records behind a released vector is part of the secret."""

    PUBLIC = "public"
    PRIVATE = "private"
    NOT_USED = "not used"  # no exact count scales the noise, weighs a merge or leaves with the payload


@dataclass(frozen=True, kw_only=True)
class Contract:
    """Conditions under which an event's cost is what its numbers say.

    Attributes:
        relation: neighbouring relation for which the sensitivity was computed.
        query: what noise was added to; without it, the release is priced for its own relation only.
        unit: whose presence is hidden, in words.
        clip_norm: largest l2 norm of one record inside the average, in the units of the embedding.
        encoder: what the map from raw record to vector was computed from.
        assignment: what the grouping of records into released vectors was computed from
            (the label itself counts as public under a same-label relation).
        counts: whether the record counts that scale the noise are public.
        hyperparameters: what clip norm, noise and rounds were chosen from.
        fresh_noise: whether every release draws independent noise.
        class_counts: records behind each released vector of real classes, where these are public: what a broken
            assumption costs depends on them. Empty when not declared.
        weights: of sums of moments, what each part was multiplied by before one noise was added to all of them
            (:mod:`accountant.moments`). Empty when not declared.

    A field left at ``None`` is undeclared, and a claim that needs it is then not covered.
    """

    relation: Relation = Relation.REPLACE_SAME_LABEL
    query: Query | None = None
    unit: str = "one record of one client"
    clip_norm: float | None = None
    encoder: DependsOn | None = None
    assignment: DependsOn | None = None
    counts: Counts | None = None
    hyperparameters: DependsOn | None = None
    fresh_noise: bool | None = None
    class_counts: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.clip_norm is not None:
            check.positive(clip_norm=self.clip_norm)
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if value is not None or name == "relation":
                object.__setattr__(self, name, _member(name, kind, value))
        if not isinstance(self.fresh_noise, bool | None):
            raise ValueError(  # noqa: TRY004 a declaration, not a programming error
                f"fresh_noise={self.fresh_noise!r}; say True or False, or leave it undeclared."
            )
        if not hasattr(self.class_counts, "__iter__"):
            raise ValueError(f"class_counts={self.class_counts!r}; give a tuple, one whole number per class.")
        for n in self.class_counts:
            check.count(class_count=n)
        object.__setattr__(self, "class_counts", tuple(int(n) for n in self.class_counts))
        object.__setattr__(self, "weights", tuple(float(a) for a in self.weights))

    def to_dict(self) -> dict[str, Any]:
        """Return the declared fields as plain values, undeclared ones left out."""
        named = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: _plain(v) for k, v in named.items() if v is not None and v != ()}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Contract":
        """Read what :meth:`to_dict` wrote; an unknown field is refused."""
        unknown = sorted(set(plain) - {f.name for f in fields(cls)})
        if unknown:
            raise ValueError(f"contract has unknown field {unknown[0]!r}; was it written by a newer privkit?")
        named = {k: _member(k, _KINDS[k], v) if k in _KINDS else v for k, v in plain.items()}
        lists = {name: tuple(named.get(name, ())) for name in ("class_counts", "weights")}
        return cls(**{**named, **lists})


_KINDS: dict[str, type[StrEnum]] = {
    "relation": Relation,
    "query": Query,
    "encoder": DependsOn,
    "assignment": DependsOn,
    "counts": Counts,
    "hyperparameters": DependsOn,
}


def _member(name: str, kind: type[StrEnum], value: Any) -> Any:
    """Return the member of an enumeration that a value names, or refuse it."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(repr(member.value) for member in kind)
        raise ValueError(f"{name}={value!r} is unknown; known are {known}.") from None


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value.value
    return list(value) if isinstance(value, tuple) else value
