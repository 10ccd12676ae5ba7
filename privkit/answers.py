"""truth/: who was a member, how canaries were planted, and, round by round, what was not sent."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from privkit import sealed, tensors
from privkit.errors import InputError
from privkit.manifest import Manifest
from privkit.truth import Hidden, Truth

_ANSWERS = "truth/answers.safetensors"
_OTHER = "planted."


def write(
    folder: Path,
    manifest: Manifest,
    *,
    members: np.ndarray,
    canary_signs: np.ndarray,
    others: Mapping[str, np.ndarray] | None = None,
) -> Manifest:
    """Replace the answers of a run; return the manifest that they belong to, which is not written yet."""
    named = {"members": members.astype(np.uint8), "canary_signs": canary_signs.astype(np.uint8)}
    named |= {f"{_OTHER}{kind}": answer.astype(np.uint8) for kind, answer in (others or {}).items()}
    return sealed.write(folder, manifest, _ANSWERS, named)


def write_hidden(folder: Path, round: int, hidden: Mapping[int, Hidden]) -> None:
    """Replace what each client did not send in one round; after a crash of the machine it may be missing."""
    named = {
        f"{m:06d}/{name}": array
        for m, h in hidden.items()
        for name, array in h._asdict().items()
        if array is not None
    }
    tensors.write(_path(folder, round), named, durable=False)


def read(folder: Path, manifest: Manifest) -> Truth:
    """Return the answers of a run, with what its clients did not send; damaged or edited ones are refused."""
    path = folder / _ANSWERS
    if not path.exists():
        raise InputError(
            f"{path} is missing: attacks cannot be judged without it; restore truth/ or train again."
        )
    named = sealed.read(folder, manifest, _ANSWERS, "members", "canary_signs")
    for name, answers in named.items():
        if answers.dtype != np.uint8 or answers.ndim != 1 or (answers > 1).any():
            raise InputError(f"{path}: {name} must be a row of 0 and 1; it was damaged or edited.")
    hidden = {
        (round, client): found
        for round in range(manifest.rounds)
        for client, found in _hidden(_path(folder, round)).items()
    }
    return Truth(
        members=named["members"].astype(bool),
        canary_signs=named["canary_signs"].astype(bool),
        hidden=hidden,
        others={
            name.removeprefix(_OTHER): answer.astype(bool)
            for name, answer in named.items()
            if name.startswith(_OTHER)
        },
    )


def _hidden(path: Path) -> dict[int, Hidden]:
    """Return what each client did not send in one round, as far as it was kept."""
    if not path.exists():
        return {}
    named = tensors.read(path)
    clients = {name.partition("/")[0] for name in named}
    optional = {f"{m}/{field}": None for m in clients for field in Hidden._field_defaults}
    named = {**optional, **named}
    try:
        return {int(m): Hidden(*(named[f"{m}/{field}"] for field in Hidden._fields)) for m in clients}
    except KeyError as error:
        raise InputError(f"{path} lacks {error}; restore it or train again.") from None


def _path(folder: Path, round: int) -> Path:
    return folder / "truth" / f"round-{round:06d}.safetensors"
