"""A small gradient lab: MiniLM with adapters after its blocks and a head on its first token, as hooks.

It is independent of the package's own lab, so that attacks are held against gradients of autograd and not of ours.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from accountant.contract import Contract, Query, Relation
from accountant.events import Event, Gaussian, NonPrivate
from privkit.data.vader import Vader
from privkit.exposure import BatchRecords, ClientRecords, Exposure, GradientView, Trace
from privkit.models import _transformers
from privkit.models.minilm import Minilm
from privkit.release import Release, Update

WIDTH, MOST_TOKENS, CLASSES, CHUNK = 384, 32, 2, 32
PLAIN = NonPrivate(contract=Contract())


@dataclass(frozen=True, kw_only=True)
class Net:
    """What is trained: a bottleneck adapter (down, ReLU, up) after each block, or one guarded by a fixed map.

    Attributes:
        layers: blocks that are kept.
        guard: rows of the fixed map Q, whose U starts at 0; 0 for the bottleneck of width 192.
        seed: of adapters and head.
    """

    layers: int = 2
    guard: int = 0
    seed: int = 0


@cache
def sentences() -> tuple[list[str], list[int]]:
    """Return the stored sentences of all domains, shuffled, and their classes."""
    found = [pair for one in Vader().load() for pair in zip(one.records.tolist(), one.labels, strict=True)]
    order = np.random.default_rng(5).permutation(len(found))
    return [found[i][0] for i in order], [int(found[i][1]) for i in order]


@cache
def exposed(net: Net, count: int = 679) -> Exposure:
    """Return the passes of the first sentences; all of them by default."""
    texts, labels = sentences()
    return passes(net, texts[:count], labels[:count])


def passes(net: Net, texts: Sequence[str], labels: Sequence[int]) -> Exposure:
    """Return the passes of some sentences, of every record alone: nothing couples records in evaluation mode."""
    torch.set_num_threads(1)
    folder = Minilm()._folder()
    settings = _transformers.config(folder)
    settings.num_hidden_layers = net.layers
    model = _transformers.model(folder, settings).requires_grad_(False)
    ids = _transformers.tokenizer(folder, max_length=MOST_TOKENS)(
        list(texts), truncation=True, max_length=MOST_TOKENS, padding="max_length", return_tensors="np"
    )
    with _adapters(model, net, ids) as kept:
        found = [
            _chunk(model, kept, ids, labels, slice(at, at + CHUNK)) for at in range(0, len(texts), CHUNK)
        ]
    return joined(found)


def joined(parts: Sequence[Exposure]) -> Exposure:
    """Return the passes of several sets of records as those of one."""
    traces = {
        name: Trace(
            inputs=np.concatenate([p.traces[name].inputs for p in parts]),
            slopes=np.concatenate([p.traces[name].slopes for p in parts]),
            present=np.concatenate([p.traces[name].present for p in parts]),
            pooled=np.concatenate([p.traces[name].pooled for p in parts]),
        )
        for name in parts[0].traces
    }
    return Exposure(
        traces=traces,
        logits=np.concatenate([p.logits for p in parts]),
        losses=np.concatenate([p.losses for p in parts]),
    )


def taken(passes: Exposure, rows: np.ndarray) -> Exposure:
    """Return the passes of some records."""
    traces = {
        name: Trace(
            inputs=t.inputs[rows], slopes=t.slopes[rows], present=t.present[rows], pooled=t.pooled[rows]
        )
        for name, t in passes.traces.items()
    }
    return Exposure(traces=traces, logits=passes.logits[rows], losses=passes.losses[rows])


def only(passes: Exposure, names: Sequence[str]) -> Exposure:
    """Return what some maps show."""
    return replace(passes, traces={name: passes.traces[name] for name in names})


@dataclass
class _Kept:
    """What hooks saw: inputs and outputs of each map, in the order of the model."""

    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    head: Any = None

    def through(self, name: str, x: Any, weight: Any) -> Any:
        y = x @ weight.T
        y.requires_grad_()
        self.inputs[name], self.outputs[name] = x, y
        return y


@contextmanager
def _adapters(model: Any, net: Net, ids: Any) -> Iterator[_Kept]:
    torch.manual_seed(net.seed)
    kept, handles = _Kept(), []
    down = [torch.randn(WIDTH // 2, WIDTH) / WIDTH**0.5 for _ in range(net.layers)]
    up = [torch.randn(WIDTH, WIDTH // 2) / WIDTH for _ in range(net.layers)]
    kept.head = torch.randn(CLASSES, WIDTH) / WIDTH**0.5
    bases = _public_bases(model, ids, net) if net.guard else []

    def insert(block: int) -> Any:
        def hook(_module: Any, _inputs: Any, given: Any) -> Any:
            h = given[0] if isinstance(given, tuple) else given
            if net.guard:
                added = kept.through(f"adapter.{block}.up", h @ bases[block].T, torch.zeros(WIDTH, net.guard))
            else:
                inner = kept.through(f"adapter.{block}.down", h, down[block]).relu()
                added = kept.through(f"adapter.{block}.up", inner, up[block])
            return (h + added, *given[1:]) if isinstance(given, tuple) else h + added

        return hook

    for block, layer in enumerate(model.encoder.layer):
        handles.append(layer.register_forward_hook(insert(block)))
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


def _public_bases(model: Any, ids: Any, net: Net) -> list[Any]:
    """Return the top right singular vectors of what each block gives for the last 100 sentences."""
    found: list[Any] = []

    def hook(_module: Any, _inputs: Any, given: Any) -> None:
        h = given[0] if isinstance(given, tuple) else given
        found.append(torch.linalg.svd(h[mask], full_matrices=False)[2][: net.guard])

    handles = [layer.register_forward_hook(hook) for layer in model.encoder.layer]
    mask = torch.from_numpy(ids["attention_mask"][-100:]).bool()
    with torch.no_grad():
        model(input_ids=torch.from_numpy(ids["input_ids"][-100:]), attention_mask=mask.long())
    for handle in handles:
        handle.remove()
    return found


def _chunk(model: Any, kept: _Kept, ids: Any, labels: Sequence[int], rows: slice) -> Exposure:
    tokens, mask = (torch.from_numpy(ids[key][rows]) for key in ("input_ids", "attention_mask"))
    y = torch.tensor(labels[rows])
    h = model(input_ids=tokens, attention_mask=mask).last_hidden_state
    logits = kept.through("head", h[:, :1], kept.head)[:, 0]
    losses = torch.nn.functional.cross_entropy(logits, y, reduction="none")
    slopes = torch.autograd.grad(losses.sum(), list(kept.outputs.values()))
    present, first = mask.bool(), torch.zeros(len(y), dtype=torch.int64)
    traces = {}
    for (name, x), slope in zip(kept.inputs.items(), slopes, strict=True):
        where = present if x.shape[1] > 1 else present[:, :1]
        traces[name] = Trace(
            inputs=(x.detach() * where[..., None]).numpy(),
            slopes=(slope * where[..., None]).numpy(),
            present=where.numpy(),
            pooled=first.numpy(),
        )
    return Exposure(traces=traces, logits=logits.detach().numpy(), losses=losses.detach().double().numpy())


# ---------------------------------------------------------------------- uploads of known batches


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """A view of uploads, the questions, and the answers."""

    view: GradientView
    records: BatchRecords
    members: np.ndarray

    def taking(self, order: np.ndarray) -> "Case":
        """Return the same with only some candidates, in an order."""
        asked = {}
        for round in self.view.asked:
            own = np.flatnonzero(self.records.rounds == round)
            place = np.full(len(self.records), -1)
            place[own] = np.arange(len(own))
            asked[round] = taken(self.view.asked[round], place[order[self.records.rounds[order] == round]])
        losses = self.view.losses[order] if len(self.view.losses) else self.view.losses
        view = replace(self.view, asked=asked, losses=losses)
        return Case(view=view, records=self.records.where(order), members=self.members[order])


def dp_event(*, sigma: float, clip: float) -> Gaussian:
    """Return the event of noise sigma times clip on each number of a sum of clipped gradients."""
    contract = Contract(relation=Relation.ADD_REMOVE, query=Query.RECORD_SUM, clip_norm=clip)
    return Gaussian(noise_multiplier=sigma, contract=contract)


def case(
    bank: Exposure,
    *,
    batch: int,
    uploads: int,
    public: int = 0,
    seed: int = 0,
    sigma: float | None = None,
    clip: float = 1.0,
    leaks: bool = True,
    asked: int | None = None,
    transport: str = "fp32",
) -> Case:
    """Return uploads of one round, one per client: mean gradients of batches drawn from a bank of passes.

    Args:
        bank: the first ``public`` records are the attacker's own, all others private.
        batch: records behind an upload.
        uploads: number of clients.
        public: records that the attacker owns.
        seed: of batches and noise.
        sigma: noise multiplier of DP-SGD; ``None`` without clip and noise.
        clip: norm of DP-SGD's clip.
        leaks: whether members were in the batch; else another batch was sent.
        asked: members, and as many others, asked about per upload; all of the batch by default.
        transport: numbers that are sent.
    """
    rng = np.random.default_rng(seed)
    pool = np.arange(public, len(bank.losses))
    asked = batch if asked is None else asked
    rows, members, clients, releases = [], [], [], []
    event: Event = PLAIN if sigma is None else dp_event(sigma=sigma, clip=clip)
    for client in range(uploads):
        drawn = rng.permutation(pool)
        inside, others, decoys = drawn[:batch], drawn[batch : batch + asked], drawn[batch + asked :][:batch]
        sent = taken(bank, inside if leaks else decoys)
        named = upload(sent, rng, sigma=sigma, clip=clip, transport=transport)
        releases.append(
            Release(round=0, client=client, payload=Update(named=named, means="gradient"), event=event)
        )
        rows += [*inside[:asked], *others]
        members += [True] * asked + [False] * len(others)
        clients += [client] * (asked + len(others))
    asked_about = taken(bank, np.array(rows))
    records = BatchRecords(
        vectors=np.zeros((len(rows), 1)),
        labels=np.zeros(len(rows), np.int64),
        clients=np.array(clients),
        rounds=np.zeros(len(rows), np.int64),
    )
    step = (
        0.05 * rng.standard_normal(len(rows)) - 0.1 * np.array(members) * leaks
    )  # made up: no model was trained
    losses = np.stack([asked_about.losses, asked_about.losses + step], axis=1)
    view = GradientView(
        tuple(releases),
        batch_size=batch,
        transport=transport,
        asked={0: asked_about},
        public={0: taken(bank, np.arange(public))} if public else {},
        losses=losses,
    )
    return Case(view=view, records=records, members=np.array(members))


def data_set(
    bank: Exposure, rng: np.random.Generator, *, rounds: int, batch: int, records: int, public: int
) -> tuple[GradientView, ClientRecords, np.ndarray]:
    """Return uploads of one client over many rounds of a model that stays as it is, and who is in its data set.

    Args:
        bank: the first ``public`` records are the attacker's own.
        rng: draws the data set and the batches.
        rounds: uploads.
        batch: records behind each, drawn from the data set.
        records: of the data set; as many others are asked about.
        public: records that the attacker owns.
    """
    drawn = rng.permutation(np.arange(public, len(bank.losses)))[: 2 * records]
    releases = []
    for round in range(rounds):
        sent = taken(bank, rng.choice(drawn[:records], batch, replace=False))
        named = upload(sent, rng, sigma=None, clip=1.0, transport="fp32")
        releases.append(
            Release(round=round, client=0, payload=Update(named=named, means="gradient"), event=PLAIN)
        )
    asked, owned = taken(bank, drawn), taken(bank, np.arange(public))
    view = GradientView(
        tuple(releases),
        batch_size=batch,
        asked=dict.fromkeys(range(rounds), asked),
        public=dict.fromkeys(range(rounds), owned),
    )
    zeros = np.zeros(2 * records, np.int64)
    about = ClientRecords(vectors=np.zeros((2 * records, 1)), labels=zeros, clients=zeros)
    return view, about, np.arange(2 * records) < records


def weights(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Return the weights of a map as linear maps are initialised."""
    return rng.uniform(-1, 1, shape) / shape[1] ** 0.5


def weights_of(passes: Exposure, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return weights of every traced map, by name."""
    return {n: weights(rng, (t.slopes.shape[-1], t.inputs.shape[-1])) for n, t in passes.traces.items()}


def penalised(case: Case, w: dict[str, np.ndarray], strength: float, *, known: bool = True) -> Case:
    """Return the same uploads with a multiple of the weights in every map but the head."""
    releases = []
    for client, r in enumerate(case.view.releases):
        assert isinstance(r.payload, Update)
        clip = 1 / (1 + client)  # of each client its own
        named = {
            n: np.asarray(clip * (g + (strength * w[n] if n != "head" else 0.0)), np.float32)
            for n, g in r.payload.named.items()
        }
        releases.append(replace(r, payload=Update(named=named, means="gradient")))
    view = replace(case.view, releases=tuple(releases), weights={0: w} if known else {})
    return replace(case, view=view)


def upload(
    passes: Exposure, rng: np.random.Generator, *, sigma: float | None, clip: float, transport: str
) -> dict[str, np.ndarray]:
    """Return the mean gradient of some records by map, in float32, clipped and with noise where asked for."""
    own = {name: trace.gradients().astype(np.float64) for name, trace in passes.traces.items()}
    count, std = len(passes.losses), 0.0
    factors = np.ones(count)
    if sigma is not None:
        norms = np.sqrt(sum((g**2).sum((1, 2)) for g in own.values()))
        factors, std = np.minimum(1.0, clip / norms), sigma * clip
    sums = {name: np.einsum("n,nmd->md", factors, g) for name, g in own.items()}
    noisy = {name: g + std * rng.standard_normal(g.shape) for name, g in sums.items()}
    return {name: rounded((g / count).astype(np.float32), transport) for name, g in noisy.items()}


def rounded(array: np.ndarray, transport: str) -> np.ndarray:
    """Return numbers as they arrive from a transport, as float32."""
    if transport == "fp16":
        return array.astype(np.float16).astype(np.float32)
    if transport == "bf16":
        return torch.from_numpy(array).bfloat16().float().numpy()
    if transport == "int8":
        step = np.abs(array).max() / 127
        return (np.round(array / step) * step).astype(np.float32)
    return array
