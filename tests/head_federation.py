"""Federations of heads behind rotations of clients' own, on drawn embeddings, and what their server can compute."""

from dataclasses import dataclass

import numpy as np
import torch

from accountant.events import NonPrivate
from attacks._models import Model
from attacks._passes import passes
from privkit.cayley import cayley
from privkit.exposure import ClientRecords, GradientView
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.release import Release, Update
from privkit.transcript import Records, Setup

TAU = 10.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """The last step of a federation: what its server sees, the questions, the answers, and the maps."""

    view: GradientView
    candidates: ClientRecords
    members: np.ndarray
    maps_Gdd: np.ndarray
    model: Model


def drawn(rng: np.random.Generator, centres_Cd: np.ndarray, clients: int, each: int) -> Records:
    """Draw so many embeddings of each client around centres of classes."""
    labels = rng.integers(0, len(centres_Cd), clients * each)
    vectors = centres_Cd[labels] + 1.5 * rng.standard_normal((len(labels), centres_Cd.shape[1]))
    return Records(
        vectors=vectors.astype(np.float32), labels=labels, clients=np.repeat(np.arange(clients), each)
    )


def federation(
    seed: int,
    *,
    rounds: int,
    blocks: int = 1,
    clients: int = 3,
    records: int = 16,
    classes: int = 20,
    dim: int = 256,
    rate: float = 0.1,
    turning_rate: float = 0.1,
    leaks: bool = True,
) -> Step:
    """Return the last of so many rounds of one step of SGD on head and rotation, as in FedOT.

    ``rate`` is the head's step size, ``turning_rate`` the rotation's. Where it does not leak, candidates are none of
    those that are trained on.
    """
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((classes, dim))
    inside, outside, own, elsewhere = (
        drawn(rng, centres, clients, n) for n in (records, records, 40, records)
    )
    trained = inside if leaks else elsewhere
    network = Network(
        PersonalModel.model_validate(
            {"transform": {"name": "rotation", "blocks": blocks}, "temperature": TAU}
        )
    )
    x, y = (
        torch.from_numpy(a).unflatten(0, (clients, records))
        for a in (trained.vectors.astype(float), trained.labels)
    )
    turning = torch.zeros(clients, blocks, dim // blocks, dim // blocks, dtype=torch.float64)
    head = torch.from_numpy(centres / np.linalg.norm(centres, axis=1, keepdims=True)).T.contiguous()
    began, sent = head, head.expand(clients, -1, -1)
    for _ in range(rounds):
        began = sent.mean(0)
        live = [began.expand(clients, -1, -1).clone().requires_grad_(), turning.requires_grad_()]
        params = {"head.vectors": live[0], "transform.x": live[1]}
        logits = network.logits(params, network.embed(params, x))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum") / records
        slopes = torch.autograd.grad(loss, live)
        rates = (rate, turning_rate)
        sent, turning = ((p - r * g).detach() for p, g, r in zip(live, slopes, rates, strict=True))
    maps_Grbb = cayley(turning).numpy()
    setup = Setup(temperature=TAU, before="rotation", parameters="transform.", blocks=blocks)
    model = Model({"head.vectors": began.numpy()}, setup)
    asked = joined(inside, outside)
    releases = tuple(
        Release(
            round=0,
            client=m,
            payload=Update(named={"head.vectors": (sent[m] - began).numpy().T}, means="delta"),
            event=NonPrivate(),
        )
        for m in range(clients)
    )
    view = GradientView(
        releases=releases,
        reference=own,
        setup=setup,
        batch_size=records,
        asked={0: passes(model, asked.vectors, asked.labels)},
        public={0: passes(model, own.vectors, own.labels)},
    )
    return Step(
        view=view,
        candidates=asked,
        members=np.arange(len(asked)) < len(inside),
        maps_Gdd=np.stack([_whole(m) for m in maps_Grbb]),
        model=model,
    )


def joined(inside: Records, outside: Records) -> ClientRecords:
    return ClientRecords(
        **{
            name: np.concatenate([getattr(inside, name), getattr(outside, name)])
            for name in ("vectors", "labels", "clients")
        }
    )


def _whole(blocks_rbb: np.ndarray) -> np.ndarray:
    from scipy.linalg import block_diag

    return np.asarray(block_diag(*blocks_rbb))
