"""run.json: what a run is, which runs it is trained with, and how far it got."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accountant.budget import Budget
from privkit import atomic, ledger
from privkit.errors import InputError
from privkit.whole import whole

SCHEMA = 1
_COMPARED = ("config", "data", "seed", "rounds", "clients", "num_classes", "dim", "promise", "budget")


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What a run is: fixed when it is created, and compared when it is resumed.

    Attributes:
        cell: name of its configuration; runs that differ in nothing but the seed share it.
        seed: of every keyed draw; ``None`` when the noise was cryptographic.
        rounds: planned communication rounds.
        clients: one name per client.
        num_classes: real classes; canary classes come after them.
        dim: width of an embedding.
        promise: the (epsilon, delta) that was promised for the whole run, if any.
        budget: what each client may spend at most (:class:`accountant.budget.Budget`), if that is kept.
        config: the full configuration, as plain values.
        data: sha256 of what the run was computed from, by name.
        versions: of the software that made it; written down, not compared.
    """

    cell: str
    seed: int | None
    rounds: int
    clients: tuple[str, ...]
    num_classes: int
    dim: int
    promise: Mapping[str, float] | None = None
    budget: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("rounds", "num_classes", "dim"):
            whole(name, getattr(self, name), least=1)
        whole("clients", len(self.clients), least=1)
        if self.budget is not None:
            Budget.from_dict(self.budget)

    def to_dict(self) -> dict[str, Any]:
        """Return the information as plain values."""
        return json.loads(atomic.canonical_json(vars(self)))

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "RunInfo":
        """Read what :meth:`to_dict` returned."""
        return cls(**{**plain, "clients": tuple(plain["clients"])})

    def difference(self, other: "RunInfo") -> str:
        """Return, in words, the first thing that makes another run a different one; empty if there is none."""
        before, now = self.to_dict(), other.to_dict()
        found = (_difference(before[name], now[name], name) for name in _COMPARED)
        return next((text for text in found if text), "")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of a run.json.

    Attributes:
        info: what the run is.
        batch: the runs that are trained together with it, by path below their common folder.
        rounds: how many are committed.
        ended: whether there will be no more of them, although more were planned: a budget is spent.
        anchor: where the ledger ends.
        files: sha256 of the questions and answers that belong to it, by path below the run.
    """

    info: RunInfo
    batch: tuple[str, ...] = ()
    rounds: int = 0
    ended: bool = False
    anchor: ledger.Anchor = field(default_factory=ledger.Anchor)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return whether every planned round is committed, or the run ended before."""
        return self.ended or self.rounds >= self.info.rounds

    @property
    def budget(self) -> Budget | None:
        """Return what each client may spend at most, if that is kept."""
        return None if self.info.budget is None else Budget.from_dict(self.info.budget)

    def write(self, path: Path) -> None:
        """Replace a run.json."""
        progress = {"rounds": self.rounds, "ledger": self.anchor.to_dict()}
        document = {
            "schema": SCHEMA,
            "run": self.info.to_dict(),
            "batch": list(self.batch),
            "progress": progress | ({"ended": True} if self.ended else {}),
            "files": dict(self.files),
        }
        atomic.write_json(path, document)

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """Return what a run.json holds; one of another schema, or a damaged one, is refused."""
        document = atomic.read_json(path)
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMA:
            raise InputError(
                f"{path} has schema {schema!r}, this privkit reads {SCHEMA}; use the version that wrote it."
            )
        try:
            return cls(
                info=RunInfo.from_dict(document["run"]),
                batch=tuple(document["batch"]),
                rounds=whole("progress", document["progress"]["rounds"], least=0),
                ended=document["progress"].get("ended", False) is True,
                anchor=ledger.Anchor.from_dict(document["progress"]["ledger"]),
                files={str(name): str(digest) for name, digest in document["files"].items()},
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path} is incomplete ({type(error).__name__}: {error}); it was damaged or edited."
            ) from None


def _difference(before: Any, now: Any, name: str) -> str:
    """Return the first difference of two plain values in words, or nothing."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            found = _difference(before.get(key), now.get(key), f"{name}.{key}")
            if found:
                return found
        return ""
    return "" if before == now else f"{name}: {before!r} there, {now!r} now"
