"""The records that attacks on gradients are asked about, kept with the place of each in the data set."""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Int64

from privkit import fits, sealed
from privkit.errors import InputError
from privkit.exposure import BatchRecords, ClientRecords
from privkit.finetune.config import Kind
from privkit.finetune.lab import Lab
from privkit.manifest import Manifest
from privkit.noise import Purpose, keyed
from privkit.store import Run
from privkit.transcript import Records

FILE = "candidates/records.safetensors"


@dataclass(frozen=True, eq=False, kw_only=True)
class AskedRecords(BatchRecords):
    """Candidates of batches, and where the text of each is found again.

    Attributes:
        domains: number of the domain that each comes from; under secure aggregation no sender's number, shape [N].
        rows: place in that domain, shape [N].
    """

    domains: Int64[np.ndarray, " N"]
    rows: Int64[np.ndarray, " N"]

    def where(self, keep_N: np.ndarray) -> "AskedRecords":
        """Return the records that a mask or an index of shape [N] keeps."""
        return AskedRecords(**{f.name: getattr(self, f.name)[keep_N] for f in fields(self)})


@dataclass(frozen=True, eq=False, kw_only=True)
class AskedOfClients(ClientRecords):
    """Candidates of clients' data sets, and where the text of each is found again: as in :class:`AskedRecords`."""

    domains: Int64[np.ndarray, " N"]
    rows: Int64[np.ndarray, " N"]

    def where(self, keep_N: np.ndarray) -> "AskedOfClients":
        """Return the records that a mask or an index of shape [N] keeps."""
        return AskedOfClients(**{f.name: getattr(self, f.name)[keep_N] for f in fields(self)})


Asked = AskedRecords | AskedOfClients


def write(run: Run, lab: Lab) -> None:
    """Write candidates, the attacker's own records, and, apart from them, who is a member."""
    by_batch = lab.config.questions.kind is Kind.BATCH
    clients = range(min(lab.config.questions.clients, len(lab.clients)))
    pairs = [(t, k) for t in (lab.config.asked_rounds if by_batch else (-1,)) for k in clients]
    parts = [_of_batch(lab, t, k) if by_batch else _of_client(lab, k) for t, k in pairs]
    rows = np.concatenate([rows for rows, _ in parts])
    domains = np.repeat([k for _, k in pairs], [len(rows) for rows, _ in parts])
    if not len(rows):
        raise InputError(
            "the batches that questions ask about are all empty; name other rounds, or take sampling: fixed."
        )
    public = lab.public
    own = [lab.clients[k].texts.take(np.array([r])) for k, r in zip(domains, rows, strict=True)]
    vectors = lab.embedded([*own, public.texts])
    asked = {
        "vectors": vectors[: len(rows)],
        "labels": np.array([lab.clients[k].labels[r] for k, r in zip(domains, rows, strict=True)], np.int64),
        "clients": np.zeros_like(domains) if lab.config.secure_aggregation else domains,
        "domains": domains,
        "rows": rows,
    }
    if by_batch:
        asked["rounds"] = np.repeat([t for t, _ in pairs], [len(rows) for rows, _ in parts])
    reference = Records(vectors=vectors[len(rows) :], labels=public.labels, clients=public.clients)
    records = AskedRecords(**asked) if by_batch else AskedOfClients(**asked)
    members = np.concatenate([members for _, members in parts])
    _refuse_twins(lab, records, members)
    run.write_questions(records=records, reference=reference, canaries=None)
    run.write_answers(members=members)


def _refuse_twins(lab: Lab, records: Asked, members: np.ndarray) -> None:
    """Raise if a sentence that is trained on and one that is not are the same to the model."""
    try:
        fits.refuse_overlap("questions", records, members)
    except InputError:
        raise InputError(
            "a sentence that is trained on and one that is not are the same to the model, so nobody could tell "
            f"them apart; raise backbone.max_length ({lab.config.backbone.max_length}), or take repeated sentences "
            "out of the data."
        ) from None


def read(run: Run) -> Asked:
    """Return the candidates of a run of the gradient lab.

    Raises:
        InputError: the run has none, or the file is not the one that it wrote.
    """
    kind = AskedRecords if run.info.config["questions"]["kind"] == Kind.BATCH else AskedOfClients
    wanted = [f.name for f in fields(kind)]
    named = sealed.read(run.path, Manifest.read(run.path / "run.json"), FILE, *wanted)
    return kind(**{name: named[name] for name in wanted})


def _of_batch(lab: Lab, round: int, client: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of a client's batch and of as many records that it never trains on; and which is which."""
    rng = keyed(lab.seed, Purpose.SPLIT, round=round + 1, client=client)
    return _beside_others(lab, np.unique(np.concatenate(lab.rows(round, client))), client, rng)


def _of_client(lab: Lab, client: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of some records that a client trains on and of as many that it never does; and which is which."""
    own = lab.clients[client].parts
    rng = keyed(lab.seed, Purpose.SPLIT, round=lab.config.rounds + 1, client=client)
    count = min(lab.config.questions.records, len(own.members), len(own.non_members))
    return _beside_others(lab, rng.choice(own.members, count, replace=False), client, rng)


def _beside_others(
    lab: Lab, members: np.ndarray, client: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return members and as many others, ascending by row, and which is which.

    Both are random parts of one pool, so nothing but uploads tells them apart.
    """
    others = lab.clients[client].parts.non_members
    rows = np.concatenate([members, rng.choice(others, min(len(members), len(others)), replace=False)])
    order = np.argsort(rows)
    return rows[order], (np.arange(len(rows)) < len(members))[order]
