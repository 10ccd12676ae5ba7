"""Runs of the gradient lab: what clients send, what the server makes of it, and the same bytes after any kill."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from privkit import measured
from privkit.errors import DivergedError, InputError
from privkit.finetune import questions
from privkit.finetune.batches import drawn
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.guard import Guard
from privkit.finetune.lab import Lab
from privkit.finetune.local import changes
from privkit.finetune.loop import TOGETHER, train
from privkit.finetune.model import Weights
from privkit.finetune.optimizers import OPTIMIZERS
from privkit.finetune.questions import AskedRecords
from privkit.finetune.replay import lab_of, weights, weights_at
from privkit.finetune.server import Server
from privkit.finetune.terms import Optimizer, Transport
from privkit.finetune.upload import message, rounded
from privkit.finetune.view import view
from privkit.release import NotKept, Update
from privkit.store import Run
from tests.finetuned import TINY, config, new_lab, tensors

SETTINGS = TINY | {
    "defense": {"name": "min_max", "hidden": 8, "non_members": 20},
    "questions": {"rounds": [0, 2]},
}

KILL = """
import json, os, signal, sys
from dataclasses import replace
from pathlib import Path

import pandas, pyarrow.parquet, safetensors.numpy, torch, transformers

from privkit.finetune.config import FinetuneConfig
from privkit.finetune.lab import Lab
from privkit.finetune.loop import train

os.fsync = lambda handle: None
rename = Path.replace
config = FinetuneConfig.from_settings(json.loads(sys.argv[1]), where="test")

Lab.open(config, seed=0, device=torch.device("cpu"))  # whatever is kept per process is there before the forks


def train_until(moment, root):
    left = moment

    def replace(self, target):
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return rename(self, target)

    Path.replace = replace
    train(config, root, device="cpu")
    os._exit(0)


for moment, root in zip(sys.argv[2::2], sys.argv[3::2], strict=True):
    child = os.fork() or train_until(int(moment), Path(root))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture(scope="module", autouse=True)
def fast_disk() -> Iterator[None]:
    """Wait for no disk: only a power cut needs that, a kill does not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(config(**SETTINGS), tmp_path_factory.mktemp("finished") / "run", device="cpu")


def asked_of(run: Run) -> AskedRecords:
    found = questions.read(run)
    assert isinstance(found, AskedRecords)
    return found


def files(root: Path) -> dict[str, bytes]:
    """Return everything that must be the same again."""
    found = {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
    # a hidden file is what a kill left of one that was being written, or the lock
    return {name: data for name, data in found.items() if name != "timing.json" and not name.startswith(".")}


# ---------------------------------------------------------------------- the same bytes


def test_the_same_run_has_the_same_bytes(finished, tmp_path):
    again = train(config(**SETTINGS), tmp_path / "run", device="cpu")
    assert files(again.path) == files(finished.path)
    before = files(again.path)
    train(config(**SETTINGS), again.path, device="cpu")
    assert files(again.path) == before


# Renames before the kill. A run takes 4 to begin (run.json, candidates, the attacker's, answers), and 4 for a round.
MOMENTS = {2: 0, 7: 0, 14: 2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_training_killed_anywhere_goes_on_to_the_same_bytes(finished, tmp_path):
    roots = [tmp_path / str(moment) for moment in MOMENTS]
    pairs = [part for moment, root in zip(MOMENTS, roots, strict=True) for part in (str(moment), str(root))]
    done = subprocess.run(
        [sys.executable, "-c", KILL, json.dumps(SETTINGS), *pairs],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert [int(line) for line in done.stdout.split()] == [-9] * len(MOMENTS)
    for root, committed in zip(roots, MOMENTS.values(), strict=True):
        assert Run(root).completed == committed
        train(config(**SETTINGS), root, device="cpu")
        assert files(root) == files(finished.path)


def test_another_configuration_is_refused_in_the_same_folder(finished):
    with pytest.raises(InputError, match=r"was created with another config\.batch: 4 there, 5 now"):
        train(config(**SETTINGS | {"batch": 5}), finished.path, device="cpu")
    with pytest.raises(InputError, match="was created with another seed"):
        train(config(**SETTINGS), finished.path, seed=1, device="cpu")


def test_a_run_reads_its_own_configuration(finished):
    read = FinetuneConfig.from_settings(dict(finished.info.config), where="run.json")
    assert read == config(**SETTINGS)


# ---------------------------------------------------------------------- what is in the folder


def test_every_client_sends_one_gradient_in_every_round(finished):
    sent = [(r.round, r.client) for r in finished.transcript().releases]
    assert sent == [(t, k) for t in range(3) for k in range(3)]
    kinds = {r.payload.means for r in finished.transcript().releases if isinstance(r.payload, Update)}
    assert kinds == {"gradient"}
    names = set(new_lab(config(**SETTINGS)).model.trained())
    assert all(
        set(r.payload.named) == names for r in finished.transcript().releases if isinstance(r.payload, Update)
    )


def test_accuracies_are_those_of_every_client_in_every_round(finished):
    (found,) = measured.of_cell("tiny", [finished])
    assert len(found.accuracies) == 3
    assert set(found.last) == {"client-00", "client-01", "client-02"}


def test_members_are_the_records_of_the_batch_and_others_are_in_no_batch(finished):
    lab, asked, members = lab_of(finished), asked_of(finished), finished.truth().members
    assert sorted(set(asked.rounds.tolist())) == [0, 2]
    for round in (0, 2):
        for client in range(3):
            here = (asked.rounds == round) & (asked.clients == client)
            batch = np.concatenate(lab.rows(round, client))
            assert set(asked.rows[here & members]) == set(batch)
            assert (here & ~members).sum() == len(batch)
    ever = {(k, r) for t in range(3) for k in range(3) for r in np.concatenate(lab.rows(t, k)).tolist()}
    others = zip(asked.domains[~members].tolist(), asked.rows[~members].tolist(), strict=True)
    assert not ever & set(others)


def test_the_text_of_a_candidate_can_be_found_again(finished):
    asked = asked_of(finished)
    domains = config(**SETTINGS).data.load()
    lab = lab_of(finished)
    for place in range(0, len(asked), 5):
        domain, row = int(asked.domains[place]), int(asked.rows[place])
        text = lab.config.backbone.texts(domains[domain].records[[row]])
        assert np.array_equal(text.ids, lab.clients[domain].texts.take(np.array([row])).ids)
        assert domains[domain].labels[row] == asked.labels[place]


def test_without_the_answers_a_view_is_the_same(finished, tmp_path):
    shutil.copytree(finished.path, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "truth")
    here, there = (view(run, public=10) for run in (finished, Run(tmp_path / "run")))
    assert np.array_equal(here.losses, there.losses)
    assert np.array_equal(here.asked[2].logits, there.asked[2].logits)


# ---------------------------------------------------------------------- replay and view


def test_uploads_give_every_round_s_weights_again(tmp_path):
    run = train(config(keep="all"), tmp_path / "run", device="cpu")
    lab = lab_of(run)
    server, sent = Server(lab.start, lab.config), run.transcript().releases
    every = list(weights(run))
    assert len(every) == 4
    for round, found in enumerate(every):
        assert all(torch.equal(w, found[n]) for n, w in server.weights.items())
        updates = {r.client: r.payload for r in sent if r.round == round and isinstance(r.payload, Update)}
        if updates:
            server.merge(updates, lab.shares)
    assert all(torch.equal(w, every[1][n]) for n, w in weights_at(run, 1).items())
    with pytest.raises(InputError, match="has weights of rounds 0 to 3"):
        weights_at(run, 4)


def test_rounds_that_are_not_asked_about_leave_digests_and_sizes(finished, tmp_path):
    whole = train(config(keep="all", **SETTINGS), tmp_path / "all", device="cpu").transcript().releases
    found = finished.transcript().releases
    assert [isinstance(r.payload, NotKept) for r in found] == [r.round == 1 for r in found]
    assert [r.payload.digest() for r in found] == [r.payload.digest() for r in whole]
    assert [r.payload.nbytes for r in found] == [r.payload.nbytes for r in whole]
    assert [r.event for r in found] == [r.event for r in whole]
    assert not (finished.path / "uploads" / "round-000001.safetensors").exists()


def test_changed_or_missing_weights_are_refused(finished, tmp_path):
    shutil.copytree(finished.path, tmp_path / "run")
    path = tmp_path / "run" / "broadcast" / "round-000001.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="is not the file that this run wrote"):
        weights_at(Run(tmp_path / "run"), 1)
    with pytest.raises(InputError, match="no weights were written down before round 7"):
        finished.broadcast(7)


def test_a_digest_is_not_committed_in_place_of_a_message(tmp_path):
    run = train(config(rounds=2), tmp_path / "run", device="cpu")
    sent = [
        replace(r, payload=NotKept(of="update", sha256="0" * 64, size=1)) for r in run.transcript().releases
    ]
    with pytest.raises(InputError, match="is a digest; commit the message itself"):
        run.commit(1, [r for r in sent if r.round == 1])


def test_a_view_holds_what_candidates_and_public_records_put_into_the_maps(finished):
    asked = asked_of(finished)
    seen = view(finished, public=10)
    assert seen.losses.shape == (len(asked), 4)
    assert set(seen.asked) == set(seen.public) == {0, 2}
    assert seen.reference is not None
    assert len(seen.reference) == len(seen.public[0].losses) == 10
    for round, exposure in seen.asked.items():
        here = asked.rounds == round
        assert np.allclose(exposure.losses, seen.losses[here, round], atol=1e-5)


@pytest.mark.parametrize(
    "how",
    [{}, {"tuning": {"name": "lora", "rank": 3}}, {"backbone": {"name": "random_gpt2", "size": "tiny"}}],
    ids=str,
)
def test_an_upload_is_the_mean_of_its_members_gradients(how, tmp_path):
    run = train(config(rounds=2, clip=None, **how), tmp_path / "run", device="cpu")
    asked, members, seen = asked_of(run), run.truth().members, view(run, losses=False)
    assert seen.losses.size == 0
    for client in range(2):
        mine = (members & (asked.clients == client))[asked.rounds == 1]
        sent = seen.gradient(round=1, client=client)
        for name, found in seen.asked[1].traces.items():
            wanted = found.gradients()[mine].mean(0)
            assert np.abs(sent[name] - wanted).max() <= 1e-4 * np.abs(wanted).max() + 1e-9


def test_a_view_can_be_of_some_candidates_and_maps(finished):
    asked = asked_of(finished)
    some = asked.where((asked.rounds == 2) & (asked.clients == 1))
    seen = view(finished, some, public=0, maps=["head.weight"])
    assert seen.reference is None
    assert seen.public == {}
    assert list(seen.asked) == [2]
    assert list(seen.asked[2].traces) == ["head.weight"]
    assert len(seen.asked[2].losses) == len(some) == len(seen.losses)


def test_a_changed_upload_is_refused(finished, tmp_path):
    shutil.copytree(finished.path, tmp_path / "run")
    path = tmp_path / "run" / "uploads" / "round-000002.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="does not match its ledger line"):
        view(Run(tmp_path / "run"))


def test_other_data_or_another_kind_of_run_is_refused(finished, recorded, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="is no run of the gradient lab"):
        lab_of(Run(recorded))
    from privkit.finetune.backbones.random_bert import RandomBert

    monkeypatch.setattr(RandomBert, "fingerprint", property(lambda self: "other"))
    with pytest.raises(InputError, match="encoder is not what the run was trained with"):
        lab_of(finished)


# ---------------------------------------------------------------------- clients


def by_hand(lab: Lab, round: int, client: int, optimizer: type[torch.optim.Optimizer]) -> Weights:
    """Return a client's change by torch's own autograd and optimisers."""
    model = lab.model
    model.load(lab.start)
    head = [p for n, p in model.trained().items() if n.startswith("head.")]
    rest = [p for n, p in model.trained().items() if not n.startswith("head.")]
    steps = optimizer([{"params": rest, "lr": 2e-4}, {"params": head, "lr": 5e-4}])  # pyright: ignore
    for rows in lab.rows(round, client):
        texts, labels = (
            lab.clients[client].texts.take(rows),
            torch.from_numpy(lab.clients[client].labels[rows]),
        )
        steps.zero_grad()
        cross_entropy(model(*tensors(texts)), labels).backward()
        torch.nn.utils.clip_grad_norm_(rest + head, 1.0)
        steps.step()
    found = {n: p.detach() - lab.start[n] for n, p in model.trained().items()}
    model.zero_grad()
    return found


@pytest.mark.parametrize(
    ("name", "optimizer"), [("adam", torch.optim.Adam), ("sgd", torch.optim.SGD)], ids=["adam", "sgd"]
)
@pytest.mark.parametrize("steps", [1, 3])
def test_local_steps_are_those_of_torch(name, optimizer, steps):
    lab = new_lab(config(upload="delta", optimizer=name, local_steps=steps))
    start = lab.start
    found = changes(lab, lab.guard(), start, 1)
    for client in range(3):
        wanted = by_hand(lab, 1, client, optimizer)
        for key, change in found[client].items():
            assert np.allclose(change, wanted[key].numpy(), rtol=2e-3, atol=2e-7), (client, key)


def test_the_server_s_adam_is_torch_s():
    rng = np.random.default_rng(0)
    first = {"a": torch.zeros(3), "head.weight": torch.ones(2, 2)}
    gradients = [
        {n: torch.from_numpy(rng.standard_normal(w.shape).astype(np.float32)) for n, w in first.items()}
        for _ in range(4)
    ]
    parameters = {n: torch.nn.Parameter(w.clone()) for n, w in first.items()}
    theirs = torch.optim.Adam(parameters.values(), lr=0.1)
    ours, now = OPTIMIZERS[Optimizer.ADAM](first), first
    for g in gradients:
        now = ours.step(now, g, dict.fromkeys(first, 0.1))
        for n, p in parameters.items():
            p.grad = g[n]
        theirs.step()
    assert all(torch.allclose(now[n], p, atol=1e-6) for n, p in parameters.items())


def test_a_gradient_is_clipped_to_its_norm_over_all_parameters():
    loose, tight = (new_lab(config(clip=clip)) for clip in (None, 1e-3))
    batch = loose.batch(0, 0, [0])
    whole, short = (Guard(lab.config).gradients(lab.model, batch)[0] for lab in (loose, tight))
    norm = np.sqrt(sum(float((g**2).sum()) for g in short.values()))
    assert norm == pytest.approx(1e-3, rel=1e-4)
    ratio = 1e-3 / np.sqrt(sum(float((g**2).sum()) for g in whole.values()))
    assert all(torch.allclose(short[n], g * ratio, atol=1e-9) for n, g in whole.items())


def test_batches_are_drawn_by_seed_round_and_client():
    members, terms = np.arange(40) * 3, config(local_steps=2, upload="delta")
    one = drawn(members, terms, seed=0, round=1, client=2)
    assert [rows.tolist() for rows in one] == [
        r.tolist() for r in drawn(members, terms, seed=0, round=1, client=2)
    ]
    assert all(len(set(rows)) == 4 and set(rows) <= set(members) for rows in one)
    others = [
        {"seed": 1, "round": 1, "client": 2},
        {"seed": 0, "round": 2, "client": 2},
        {"seed": 0, "round": 1, "client": 3},
    ]
    assert all(not np.array_equal(one, drawn(members, terms, **key)) for key in others)
    assert len(drawn(members[:3], terms, seed=0, round=0, client=0)[0]) == 3


def test_a_poisson_batch_holds_each_record_at_the_same_rate():
    terms = config(sampling="poisson")
    sizes = [len(drawn(np.arange(40), terms, seed=0, round=t, client=0)[0]) for t in range(600)]
    assert np.mean(sizes) == pytest.approx(4, abs=5 * np.sqrt(3.6 / 600))
    assert np.var(sizes) == pytest.approx(3.6, rel=0.25)
    assert min(sizes) == 0


def test_an_empty_batch_sends_zeros():
    lab = new_lab(config(sampling="poisson", batch=1))
    empty = next(t for t in range(100) if not len(lab.rows(t, 0)[0]))
    found = changes(lab, lab.guard(), lab.start, empty)
    assert not any(g.any() for g in found[0].values())


def test_training_a_pretrained_model_lowers_the_losses_of_members(tmp_path):
    how = {
        "backbone": {"name": "minilm", "max_length": 24},
        "learning_rate": 1e-3,
        "head_learning_rate": 1e-3,
    }
    run = train(config(batch=32, questions={"rounds": [0]}, **how), tmp_path / "run", device="cpu")
    losses = view(run, public=0, maps=[]).losses[run.truth().members].mean(0)
    assert losses.shape == (4,)
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < losses[0] - 0.02


def test_a_number_that_is_not_finite_ends_the_training_in_one_sentence(tmp_path):
    with pytest.raises(DivergedError, match=r"client 0's .* is not finite in round 2; lower learning_rate"):
        train(
            config(learning_rate=1e30, head_learning_rate=1e30, optimizer="sgd"),
            tmp_path / "run",
            device="cpu",
        )
    assert Run(tmp_path / "run").completed == 1


# ---------------------------------------------------------------------- uploads and the server


@pytest.mark.parametrize("kind", ["delta", "weights"])
def test_deltas_and_weights_say_the_same(kind, tmp_path):
    run = train(config(upload=kind, local_steps=2, keep="all"), tmp_path / "run", device="cpu")
    first = run.transcript().releases[0].payload
    assert isinstance(first, Update)
    assert first.means == kind
    lab = lab_of(run)
    found = changes(lab, lab.guard(), lab.start, 0)
    sent = view(run, losses=False, lab=lab).gradient(round=0, client=1)
    for name, change in found[1].items():
        assert np.allclose(sent[name], -change, atol=2e-7)


@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=20), st.sampled_from(list(Transport)))
def test_rounding_is_to_the_nearest_number_of_the_format_and_happens_once(values, transport):
    x = np.array(values, np.float32)
    y = rounded(x, transport)
    half = {"fp32": 0, "fp16": 2**-11, "bf16": 2**-8, "int8": 0}[transport.value] * np.abs(x)
    least = {"fp32": 0, "fp16": 2**-25, "bf16": 1e-40, "int8": np.abs(x).max() / 254 * 1.001 + 1e-40}[
        transport.value
    ]
    assert (np.abs(y.astype(np.float64) - x) <= half + least).all()
    assert y.dtype == (np.float16 if transport is Transport.FP16 else np.float32)
    assert np.allclose(rounded(y, transport), y, rtol=1e-6, atol=0)
    assert not rounded(np.zeros(3, np.float32), transport).any()


@pytest.mark.parametrize("transport", list(Transport))
def test_what_is_sent_has_the_numbers_of_the_transport(transport, tmp_path):
    run = train(config(transport=transport.value, rounds=1), tmp_path / "run", device="cpu")
    sent = run.transcript().releases[0].payload
    assert isinstance(sent, Update)
    array = sent.named["tuning.0.down.weight"]
    if transport is Transport.INT8:
        assert len(np.unique(array)) <= 255
    if transport is Transport.BF16:
        assert not (array.view(np.uint32) & 0xFFFF).any()
    assert (array.dtype == np.float16) == (transport is Transport.FP16)
    assert view(run, losses=False).transport == transport.value


@pytest.mark.parametrize("kind", ["gradient", "delta", "weights"])
def test_clients_count_by_their_numbers_of_records(kind):
    terms = config(upload=kind, optimizer="sgd", learning_rate=1.0)
    server = Server({"a": torch.zeros(2)}, terms)
    ones = {k: Update(named={"a": np.full(2, float(k), np.float32)}, means=kind) for k in (1, 5)}
    server.merge(ones, {1: 0.75, 5: 0.25})
    wanted = {"gradient": -2.0, "delta": 2.0, "weights": 2.0}[kind]
    assert torch.allclose(server.weights["a"], torch.full((2,), wanted))


def test_shares_follow_sizes_or_are_equal():
    lab = new_lab(config())
    sizes = np.array([len(c.parts.members) for c in lab.clients])
    assert list(lab.shares.values()) == pytest.approx((sizes / sizes.sum()).tolist())
    assert list(new_lab(config(aggregation="equal")).shares.values()) == pytest.approx([1 / 3] * 3)


def test_messages_that_do_not_fit_are_refused_by_name():
    server = Server({"a": torch.zeros(2), "b": torch.zeros(1)}, config())
    good = {"a": np.zeros(2, np.float32), "b": np.zeros(1, np.float32)}
    bad = {
        r"client 3 sent lack b": {"a": good["a"]},
        r"client 3 sent hold c, which the model does not train": good | {"c": good["a"]},
        r"hold b of shape \[2\]; the model's is \[1\]": good | {"b": good["a"]},
        r"client 3 sent mixes float16 and float32": good | {"b": np.zeros(1, np.float16)},
    }
    for why, named in bad.items():
        with pytest.raises(InputError, match=why):
            server.merge({3: Update(named=named, means="gradient")}, {3: 1.0})
    with pytest.raises(InputError, match="is delta, and gradient was agreed on"):
        server.merge({3: Update(named=good, means="delta")}, {3: 1.0})
    with pytest.raises(InputError, match="only finite numbers can be released"):
        message({"a": np.array([np.nan])}, {}, kind=config().upload, transport=Transport.FP32)


def test_under_secure_aggregation_the_server_sees_the_mean_and_nothing_else(tmp_path):
    both = [
        train(
            config(secure_aggregation=s, rounds=2, questions={"clients": 3}, keep="all"),
            tmp_path / str(s),
            device="cpu",
        )
        for s in (False, True)
    ]
    apart, together = ([r for r in run.transcript().releases if r.round == 0] for run in both)
    assert both[1].info.clients == (TOGETHER,)
    assert [r.client for r in together] == [0]
    shares = lab_of(both[0]).shares
    for name, found in together[0].payload.named.items():  # pyright: ignore
        wanted = sum(shares[r.client] * r.payload.named[name].astype(float) for r in apart)  # pyright: ignore
        assert np.allclose(found, wanted, atol=1e-7)
    seen = view(both[1])
    assert seen.batch_size == 3 * view(both[0]).batch_size == 12
    assert set(asked_of(both[1]).clients.tolist()) == {0}
    assert set(asked_of(both[1]).domains.tolist()) == {0, 1, 2}
    (found,) = measured.of_cell("sum", [both[1]])
    assert set(found.last) == {TOGETHER}
    last = weights_at(both[1], 2)
    assert all(torch.allclose(w, last[n], atol=1e-6) for n, w in weights_at(both[0], 2).items())


# ---------------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"local_steps": 2}, "a gradient is of one step"),
        ({"questions": {"rounds": [3]}}, "names round 3, and the last one is 2"),
        ({"lerning_rate": 1.0}, "Did you mean learning_rate"),
        ({"transport": "fp8"}, "transport='fp8'"),
        ({"tuning": "prefix"}, "tuning 'prefix' is unknown; known are adapter, lora"),
        ({"backbone": {"name": "minilm", "layers": 0}}, "layers=0"),
        ({"rounds": True}, "a truth value is no valid integer"),
    ],
)
def test_configurations_that_make_no_sense_are_refused_in_one_sentence(changed, why):
    with pytest.raises(InputError, match=why) as refused:
        config(**changed)
    assert "\n" not in str(refused.value)


def test_defaults_are_the_setup_of_fisguard():
    default = FinetuneConfig.from_settings({"data": "vader"}, where="test")
    assert (default.rounds, default.batch, default.local_steps, default.clip) == (50, 16, 1, 1.0)
    assert (default.learning_rate, default.head_learning_rate, default.public) == (2e-4, 5e-4, 2000)
    assert (default.backbone.name, default.tuning.name, default.defense.name) == ("minilm", "adapter", "none")
    assert default.asked_rounds == (49,)


def test_settings_are_plain_and_give_the_same_configuration():
    for changed in ({}, {"defense": {"name": "fisguard", "rank": 2}}, {"tuning": "lora", "clip": 0.5}):
        first = config(**changed)
        plain = json.loads(json.dumps(first.settings()))
        assert FinetuneConfig.from_settings(plain, where="test") == first
    with pytest.raises(InputError, match="holds list; write sections"):
        FinetuneConfig.from_settings([], where="test")
