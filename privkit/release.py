"""What left a client: a payload, and the event that says what it cost.

Both are born in the same call, ``privatize(embeddings, noise) -> (payload, event)``, so they cannot
disagree. Payloads are read-only arrays; no autograd graph and no private value hangs on to them.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from accountant.events import Event
from privkit.errors import InputError
from privkit.evidential import largest_epistemic
from privkit.whole import whole

_FLOATS = (np.float16, np.float32, np.float64)


def frozen(name: str, array: object, *, ndim: int) -> np.ndarray:
    """Return a read-only C-ordered copy of some floats; another rank, type or a non-finite value is refused by name."""
    value = np.asarray(array)
    if value.ndim != ndim or value.dtype.newbyteorder("=") not in _FLOATS:
        raise InputError(
            f"{name} has shape {value.shape} and type {value.dtype}; give {ndim} axes of floats of at most 64 bits."
        )
    if not np.isfinite(value).all():
        where = np.argwhere(~np.isfinite(value))[0].tolist()
        raise InputError(f"{name}{where} is {value[tuple(where)]}; only finite numbers can be released.")
    value = np.array(value, dtype=value.dtype.newbyteorder("<"), order="C")
    value.setflags(write=False)
    return value


def frozen_whole(name: str, array: object, *, least: int) -> np.ndarray:
    """Return a read-only int64 copy of one axis of whole numbers of at least ``least``, else refuse them by name."""
    value = np.asarray(array)
    if value.ndim != 1 or (value.dtype.kind not in "iu" and value.size):
        raise InputError(
            f"{name} has shape {value.shape} and type {value.dtype}; give one axis of whole numbers."
        )
    if (value < least).any() or (value > np.iinfo(np.int64).max).any():
        raise InputError(f"{name}={value.tolist()}: give whole numbers of at least {least}.")
    value = value.astype("<i8")
    value.setflags(write=False)
    return value


class Payload(ABC):
    """The values that left a client."""

    kind: ClassVar[str]

    @abstractmethod
    def tensors(self) -> dict[str, np.ndarray]:
        """Return the named arrays that were sent, and nothing else."""

    @classmethod
    @abstractmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> "Payload":
        """Read what :meth:`tensors` returned."""

    @property
    def nbytes(self) -> int:
        """Return the number of bytes sent."""
        return sum(array.nbytes for array in self.tensors().values())

    def digest(self) -> str:
        """Return the sha256 of everything sent, in hexadecimal."""
        state = hashlib.sha256(self.kind.encode())
        for name, array in sorted(self.tensors().items()):
            state.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            state.update(np.ascontiguousarray(array).tobytes())
        return state.hexdigest()


@dataclass(frozen=True, eq=False, kw_only=True)
class ByClass(Payload):
    """Rows that are about classes: one per class (or per cluster of a class).

    Attributes:
        vectors: floats of shape [P, d].
        labels: class of each row, whole numbers from 0, shape [P].
    """

    vectors: np.ndarray
    labels: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", frozen("vectors", self.vectors, ndim=2))
        object.__setattr__(self, "labels", frozen_whole("labels", self.labels, least=0))
        if len(self.labels) != len(self.vectors):
            raise InputError(
                f"{len(self.labels)} labels for {len(self.vectors)} vectors; give one label per vector."
            )

    @abstractmethod
    def only(self, keep_P: np.ndarray) -> "ByClass":
        """Return the rows that a boolean mask of shape [P] keeps."""

    @abstractmethod
    def prototypes(self) -> "Prototypes":
        """Return the prototypes that anybody can make of it."""

    def gaussians(self, *, num_classes: int) -> "ProbabilisticPrototypes | None":
        """Return the Gaussian of each class that anybody can make of it; ``None`` where nothing tells a spread."""
        return None

    def present(self) -> "ByClass":
        """Return the rows that a server should take for something; by default all."""
        return self

    @abstractmethod
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return numerators [P, d] and denominators [P] of prototypes: clients are merged by adding up both."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Prototypes(ByClass):
    """One vector per class (or per cluster of a class).

    Attributes:
        vectors: floats of shape [P, d].
        labels: class of each vector, whole numbers from 0, shape [P].
        counts: records behind each vector, shape [P], each at least 1; ``None`` when not sent.
    """

    kind: ClassVar[str] = "prototypes"
    counts: np.ndarray | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.counts is not None:
            object.__setattr__(self, "counts", frozen_whole("counts", self.counts, least=1))
            if len(self.counts) != len(self.labels):
                raise InputError(f"counts={self.counts.tolist()}: give one count per vector.")

    def tensors(self) -> dict[str, np.ndarray]:
        named = {"vectors": self.vectors, "labels": self.labels}
        return named if self.counts is None else {**named, "counts": self.counts}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> "Prototypes":
        return cls(vectors=tensors["vectors"], labels=tensors["labels"], counts=tensors.get("counts"))

    def only(self, keep_P: np.ndarray) -> "Prototypes":
        counts = None if self.counts is None else self.counts[keep_P]
        return Prototypes(vectors=self.vectors[keep_P], labels=self.labels[keep_P], counts=counts)

    def prototypes(self) -> "Prototypes":
        return self

    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the prototypes, one unit each: exact record counts would be a second release."""
        return self.vectors, np.ones(len(self.labels))


@dataclass(frozen=True, eq=False, kw_only=True)
class SumsAndCounts(ByClass):
    """The sum of each class's vectors and the number of its records, both with noise.

    Attributes:
        vectors: sums, floats of shape [P, d].
        labels: class of each sum, whole numbers from 0, shape [P].
        totals: noisy numbers of records, floats of shape [P]; they may be below 0.
    """

    kind: ClassVar[str] = "sums_and_counts"
    totals: np.ndarray

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "totals", frozen("totals", self.totals, ndim=1))
        if len(self.totals) != len(self.labels):
            raise InputError(
                f"{len(self.totals)} totals for {len(self.labels)} sums; give one total per sum."
            )

    def tensors(self) -> dict[str, np.ndarray]:
        return {"vectors": self.vectors, "labels": self.labels, "totals": self.totals}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> "SumsAndCounts":
        return cls(vectors=tensors["vectors"], labels=tensors["labels"], totals=tensors["totals"])

    def only(self, keep_P: np.ndarray) -> "SumsAndCounts":
        return SumsAndCounts(
            vectors=self.vectors[keep_P], labels=self.labels[keep_P], totals=self.totals[keep_P]
        )

    def prototypes(self) -> Prototypes:
        """Return each sum divided by its total, or by 1 where the total is less, and no counts."""
        means = self.vectors / np.maximum(self.totals, 1.0)[:, None]
        return Prototypes(vectors=means.astype(self.vectors.dtype), labels=self.labels)

    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return sums and totals as they are: added up over clients, their noise counts for less."""
        return self.vectors, self.totals


@dataclass(frozen=True, eq=False, kw_only=True)
class Moments(SumsAndCounts):
    """Sums over each class of vectors, of their squares and of two uncertainties, and numbers of records; all noisy.

    Attributes:
        vectors: sums, floats of shape [P, d].
        labels: class of each sum, whole numbers from 0, shape [P].
        totals: noisy numbers of records, floats of shape [P].
        squares: sums of squares, coordinate by coordinate, shape [P, d]; ``None`` when not sent.
        epistemic: sums of epistemic uncertainties as shares of the largest there is, shape [P]; ``None`` when not sent.
        aleatoric: sums of aleatoric uncertainties as shares of ``ln C``, shape [P]; ``None`` when not sent.
        least: total below which a class is taken for absent.
    """

    kind: ClassVar[str] = "moments"
    squares: np.ndarray | None = None
    epistemic: np.ndarray | None = None
    aleatoric: np.ndarray | None = None
    least: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _freeze_rows(self, squares=2, epistemic=1, aleatoric=1)
        if not np.isfinite(self.least) or self.least <= 0:
            raise InputError(f"least={self.least}; give a finite number of records above 0.")

    def others(self) -> dict[str, np.ndarray]:
        """Return what was sent besides sums and counts, by name, float64 of shape [P, columns]."""
        named = {name: getattr(self, name) for name in ("squares", "epistemic", "aleatoric")}
        return {
            name: np.asarray(array if array.ndim == 2 else array[:, None], dtype=np.float64)
            for name, array in named.items()
            if array is not None
        }

    def tensors(self) -> dict[str, np.ndarray]:
        sent = {name: getattr(self, name) for name in self.others()}
        return {**super().tensors(), **sent, "least": frozen("least", np.array([self.least]), ndim=1)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> "Moments":
        named = {name: array for name, array in tensors.items() if name != "least"}
        return cls(**named, least=float(tensors["least"][0]))

    def only(self, keep_P: np.ndarray) -> "Moments":
        rows = {name: array[keep_P] for name, array in self.tensors().items() if name != "least"}
        return Moments(**rows, least=self.least)

    def present(self) -> "Moments":
        """Return the classes whose total is at least :attr:`least`: of others, all that was sent is noise."""
        return self.only(self.totals >= self.least)

    def gaussians(self, *, num_classes: int) -> "ProbabilisticPrototypes | None":
        """Return means, spreads and mean uncertainties, each sum divided by its total, or by 1 where that is less.

        A variance that noise makes negative is 0; the spread is inflated as where nothing is hidden (FedUP, Eq. 11).
        """
        if self.squares is None:
            return None
        records_P1 = np.maximum(self.totals, 1.0)[:, None]
        mean_Pd, square_Pd = self.vectors / records_P1, self.squares / records_P1
        epistemic_P = _share(self.epistemic, records_P1[:, 0], largest_epistemic(num_classes))
        aleatoric_P = _share(self.aleatoric, records_P1[:, 0], math.log(num_classes))
        inflated_P = 1.0 if aleatoric_P is None else 1.0 + aleatoric_P[:, None]
        spread_Pd = np.sqrt(np.maximum(square_Pd - mean_Pd**2, 0.0)) * inflated_P
        return ProbabilisticPrototypes(
            vectors=mean_Pd.astype(self.vectors.dtype),
            labels=self.labels,
            spread=spread_Pd.astype(self.vectors.dtype),
            epistemic=epistemic_P,
            aleatoric=aleatoric_P,
        )


def _share(sums_P: np.ndarray | None, records_P: np.ndarray, largest: float) -> np.ndarray | None:
    """Return mean uncertainties in nats, within their range."""
    return None if sums_P is None else largest * np.clip(sums_P / records_P, 0.0, 1.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbabilisticPrototypes(ByClass):
    """One Gaussian with independent coordinates per class, and how uncertain a client is of the class.

    Attributes:
        vectors: means, floats of shape [P, d].
        labels: class of each, whole numbers from 0, shape [P].
        spread: standard deviations, at least 0, shape [P, d].
        epistemic: mean epistemic uncertainty of the class's records in nats, at least 0, shape [P]; ``None`` when not
            sent.
        aleatoric: the same of the aleatoric one.
    """

    kind: ClassVar[str] = "probabilistic_prototypes"
    spread: np.ndarray
    epistemic: np.ndarray | None = None
    aleatoric: np.ndarray | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _freeze_rows(self, spread=2, epistemic=1, aleatoric=1)
        for name in ("spread", "epistemic", "aleatoric"):
            array = getattr(self, name)
            if array is not None and (array < 0).any():
                raise InputError(f"{name} holds {array.min():.6g}; give numbers of at least 0.")

    def tensors(self) -> dict[str, np.ndarray]:
        named = {name: getattr(self, name) for name in ("epistemic", "aleatoric")}
        sent = {name: array for name, array in named.items() if array is not None}
        return {"vectors": self.vectors, "labels": self.labels, "spread": self.spread, **sent}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> "ProbabilisticPrototypes":
        return cls(**tensors)

    def only(self, keep_P: np.ndarray) -> "ProbabilisticPrototypes":
        return ProbabilisticPrototypes(**{name: array[keep_P] for name, array in self.tensors().items()})

    def prototypes(self) -> Prototypes:
        """Return the means; how many records are behind each was not sent."""
        return Prototypes(vectors=self.vectors, labels=self.labels)

    def gaussians(self, *, num_classes: int) -> "ProbabilisticPrototypes":
        return self

    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means, one unit each."""
        return self.vectors, np.ones(len(self.labels))


def _freeze_rows(payload: ByClass, **ndims: int) -> None:
    """Make some arrays of a new payload read-only; one that does not have a row for each label is refused."""
    for name, ndim in ndims.items():
        given = getattr(payload, name)
        if given is None:
            continue
        array = frozen(name, given, ndim=ndim)
        wanted = payload.vectors.shape[:ndim]
        if array.shape != wanted:
            raise InputError(f"{name} has shape {array.shape}; give {list(wanted)}, a row for each vector.")
        object.__setattr__(payload, name, array)


@dataclass(frozen=True, eq=False, kw_only=True)
class Head(Payload):
    """A classifier head: one row of weights per class, shape [K, d]."""

    kind: ClassVar[str] = "head"
    weights: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen("weights", self.weights, ndim=2))

    def tensors(self) -> dict[str, np.ndarray]:
        return {"weights": self.weights}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> "Head":
        return cls(weights=tensors["weights"])


@dataclass(frozen=True, eq=False, kw_only=True)
class Update(Payload):
    """Named model tensors of one client: its gradient, its optimiser's step, or its weights.

    Attributes:
        named: floats of any shape, by parameter name; leave out counters such as ``num_batches_tracked``.
        means: what the numbers are: ``gradient``, ``delta`` or ``weights``.
    """

    kind: ClassVar[str] = "update"
    named: Mapping[str, np.ndarray]
    means: str

    def __post_init__(self) -> None:
        if self.means not in ("gradient", "delta", "weights"):
            raise InputError(f"means={self.means!r}; say gradient, delta or weights.")
        if not self.named:
            raise InputError("an update needs at least one tensor; named is empty.")
        arrays = {name: frozen(name, array, ndim=np.ndim(array)) for name, array in self.named.items()}
        object.__setattr__(self, "named", arrays)

    def tensors(self) -> dict[str, np.ndarray]:
        return {f"{self.means}.{name}": array for name, array in self.named.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> "Update":
        split = {name.partition(".")[::2]: array for name, array in tensors.items()}
        means = {m for m, _ in split}
        if len(means) != 1:
            raise InputError(f"an update holds {sorted(means)}; one kind of tensor per update.")
        return cls(named={name: array for (_, name), array in split.items()}, means=means.pop())


@dataclass(frozen=True, eq=False, kw_only=True)
class NotKept(Payload):
    """A message that was sent and counted, of which the run keeps digest and size only.

    Attributes:
        of: kind of the message. sha256: its digest, in hexadecimal. size: its bytes, at least 0.
    """

    kind: ClassVar[str] = "not_kept"
    of: str
    sha256: str
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole("size", self.size, least=0))

    def tensors(self) -> dict[str, np.ndarray]:
        return {}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> "NotKept":
        raise InputError("what was not kept cannot be read from tensors; train again and keep every upload.")

    @property
    def nbytes(self) -> int:
        return self.size

    def digest(self) -> str:
        return self.sha256


PAYLOADS: dict[str, type[Payload]] = {
    kind.kind: kind for kind in (Prototypes, SumsAndCounts, Head, Update, ProbabilisticPrototypes, Moments)
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """One message from one client in one round.

    Attributes:
        round: communication round, from 0.
        client: sender, from 0.
        payload: what left.
        event: what it cost.
    """

    round: int
    client: int
    payload: Payload
    event: Event

    def __post_init__(self) -> None:
        object.__setattr__(self, "round", whole("round", self.round, least=0))
        object.__setattr__(self, "client", whole("client", self.client, least=0))
        if not isinstance(self.payload, Payload):
            kinds = ", ".join(kind.__name__ for kind in PAYLOADS.values())
            raise InputError(f"payload is {type(self.payload).__name__}; give one of {kinds}.")
        if not isinstance(self.event, Event):
            raise InputError(f"event is {type(self.event).__name__}; give one of accountant.events.")
