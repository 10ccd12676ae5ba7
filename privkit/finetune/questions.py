"""The records that attacks on gradients are asked about, kept with the place of each in the data set."""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Int64

from privkit import sealed
from privkit.errors import InputError
from privkit.exposure import BatchRecords
from privkit.finetune.lab import Lab
from privkit.manifest import Manifest
from privkit.noise import Purpose, keyed
from privkit.store import Run
from privkit.transcript import Records

FILE = "candidates/records.safetensors"


@dataclass(frozen=True, eq=False, kw_only=True)
class AskedRecords(BatchRecords):
    """Candidates, and where the text of each is found again.

    Attributes:
        domains: number of the domain that each comes from; under secure aggregation no sender's number, shape [N].
        rows: place in that domain, shape [N].
    """

    domains: Int64[np.ndarray, " N"]
    rows: Int64[np.ndarray, " N"]

    def where(self, keep_N: np.ndarray) -> "AskedRecords":
        """Return the records that a mask or an index of shape [N] keeps."""
        return AskedRecords(**{f.name: getattr(self, f.name)[keep_N] for f in fields(self)})


def write(run: Run, lab: Lab) -> None:
    """Write candidates, the attacker's own records, and, apart from them, who is a member."""
    pairs = [(t, k) for t in lab.config.asked_rounds for k in _asked_clients(lab)]
    parts = [_of_batch(lab, round, client) for round, client in pairs]
    rows = np.concatenate([rows for rows, _ in parts])
    domains = np.repeat([k for _, k in pairs], [len(rows) for rows, _ in parts])
    rounds = np.repeat([t for t, _ in pairs], [len(rows) for rows, _ in parts])
    if not len(rows):
        raise InputError(
            "the batches that questions ask about are all empty; name other rounds, or take sampling: fixed."
        )
    public = lab.public
    own = [lab.clients[k].texts.take(np.array([r])) for k, r in zip(domains, rows, strict=True)]
    vectors = lab.embedded([*own, public.texts])
    asked = AskedRecords(
        vectors=vectors[: len(rows)],
        labels=np.array([lab.clients[k].labels[r] for k, r in zip(domains, rows, strict=True)], np.int64),
        clients=np.zeros_like(domains) if lab.config.secure_aggregation else domains,
        rounds=rounds,
        domains=domains,
        rows=rows,
    )
    reference = Records(vectors=vectors[len(rows) :], labels=public.labels, clients=public.clients)
    run.write_questions(records=asked, reference=reference, canaries=None)
    run.write_answers(members=np.concatenate([members for _, members in parts]))


def read(run: Run) -> AskedRecords:
    """Return the candidates of a run of the gradient lab.

    Raises:
        InputError: the run has none, or the file is not the one that it wrote.
    """
    wanted = [f.name for f in fields(AskedRecords)]
    named = sealed.read(run.path, Manifest.read(run.path / "run.json"), FILE, *wanted)
    return AskedRecords(**{name: named[name] for name in wanted})


def _asked_clients(lab: Lab) -> range:
    return range(min(lab.config.questions.clients, len(lab.clients)))


def _of_batch(lab: Lab, round: int, client: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, ascending, of a client's batch and of as many records that it never trains on; and which is which.

    Members and non-members are two random halves of one pool, so nothing but the upload tells them apart.
    """
    members = np.unique(np.concatenate(lab.rows(round, client)))
    others = lab.clients[client].parts.non_members
    rng = keyed(lab.seed, Purpose.SPLIT, round=round + 1, client=client)
    rows = np.concatenate([members, rng.choice(others, min(len(members), len(others)), replace=False)])
    order = np.argsort(rows)
    return rows[order], (np.arange(len(rows)) < len(members))[order]
