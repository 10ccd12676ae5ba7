"""What fits a run that somebody else's training code records: its width, its classes and its clients."""

import numpy as np

from privkit.errors import InputError
from privkit.manifest import RunInfo
from privkit.release import ByClass, Head, Payload, frozen, frozen_whole
from privkit.transcript import Records


def records(info: RunInfo, vectors: np.ndarray, labels: np.ndarray, clients: np.ndarray) -> Records:
    """Return some real records; those of another width, class or client than the run has are refused."""
    z = frozen("vectors", vectors, ndim=2)
    y = frozen_whole("labels", labels, least=0)
    m = frozen_whole("clients", clients, least=0)
    if z.shape != (len(y), info.dim) or len(m) != len(y):
        raise InputError(
            f"vectors {z.shape}, labels {y.shape} and clients {m.shape} do not fit; "
            f"give [N, {info.dim}], [N] and [N]."
        )
    for name, values, end in (("labels", y, info.num_classes), ("clients", m, len(info.clients))):
        if (values >= end).any():
            raise InputError(f"{name} holds {values.max()}; this run numbers them from 0 to {end - 1}.")
    return Records(vectors=z, labels=y, clients=m)


def refuse_overlap(where: str, asked: Records, members: np.ndarray) -> None:
    """Raise if a member and a non-member of one client are the same record, byte for byte."""
    rows: dict[tuple[int, bytes], int] = {}
    for i, vector in enumerate(asked.vectors):
        twin = rows.setdefault((int(asked.clients[i]), vector.tobytes()), i)
        if members[twin] != members[i]:
            raise InputError(
                f"{where}: candidates {twin} and {i} are the same record, one a member and one not; remove one."
            )


def refuse_misfit(info: RunInfo, payload: Payload, *, canaries: Records | None) -> None:
    """Raise if a payload is of another width, lacks a canary, or is of a class that no record and no canary has."""
    if isinstance(payload, ByClass | Head):
        width = next(iter(payload.tensors().values())).shape[1]
        if width != info.dim:
            raise InputError(f"{payload.kind} of width {width}: this run was created with dim={info.dim}.")
    if isinstance(payload, ByClass):
        _refuse_missing_canaries(payload, canaries)
        end = info.num_classes if canaries is None else canaries.labels.max() + 1
        if (payload.labels >= end).any():
            raise InputError(
                f"label {payload.labels.max()} was released; this run was created with "
                f"num_classes={info.num_classes}, numbered from 0."
            )


def _refuse_missing_canaries(payload: ByClass, canaries: Records | None) -> None:
    """Raise if canaries were designed, but what was released holds no prototype of them."""
    missing = set() if canaries is None else set(canaries.labels) - set(payload.labels)
    if missing:
        raise InputError(
            f"the payload has no prototype of canary class {min(missing)}: release what plant() returned, "
            "not what was passed to it."
        )
