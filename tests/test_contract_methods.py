"""What every method keeps to, whatever files there are: pure functions, clients as alone, the same bytes again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

from accountant.contract import DependsOn
from privkit import cite, plug, tensors
from privkit.audit.run import audit
from privkit.batch import Batch
from privkit.errors import InputError
from privkit.methods._averages import class_averages
from privkit.methods._base import AbstractMethod, AbstractPrototypeMethod, LocalTraining, Sends, State
from privkit.methods._down import Down
from privkit.personal import PersonalModel
from privkit.release import ByClass, Prototypes, SumsAndCounts
from privkit.study import Study, load
from privkit.train.answers import stacked_answers
from privkit.train.loop import train
from reports.findings import Verdict
from tests import federation
from tests.federation import NETWORK, B, C, D, G

PACKAGE = "privkit.methods"


def built(name: str, **settings: Any) -> AbstractMethod:
    method = plug.build(PACKAGE, {"name": name, **settings})
    assert isinstance(method, AbstractMethod)
    return method


NAMES = plug.names(PACKAGE)
METHODS = [built(name) for name in NAMES]
OF_PROTOTYPES = [method for method in METHODS if isinstance(method, AbstractPrototypeMethod)]

every_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
every_prototype_method = pytest.mark.parametrize("method", OF_PROTOTYPES, ids=lambda m: m.name)


def same(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(
        one[n].dtype == other[n].dtype and one[n].tobytes() == other[n].tobytes() for n in one
    )


def copied(state: State) -> State:
    return {name: array.copy() for name, array in state.items()}


def started(method: AbstractMethod, *, seed: int = 0) -> State:
    return method.start(dim=D, num_classes=C, seed=seed)


def test_all_methods_of_the_papers_are_there():
    of_weights = {
        "ditto",
        "fedala",
        "fedavg",
        "fedavg_head",
        "fedclip",
        "fedot",
        "fedpac",
        "fedprox",
        "fedrep",
        "fedwba",
    }
    of_prototypes = {"fedgh", "fedpcl", "fedproto", "fedtgp", "mpft"}
    assert {*of_weights, *of_prototypes, "local_only"} <= set(NAMES)


# ---------------------------------------------------------------------- settings


@every_method
def test_a_method_is_its_settings(method):
    plain = json.loads(json.dumps(method.settings()))
    assert plug.build(PACKAGE, plain) == method
    assert method.training == LocalTraining()


@every_method
def test_every_setting_says_what_it_is(method):
    for name, field in type(method).model_fields.items():
        assert field.description, name


@every_method
def test_what_a_method_cites_is_known(method):
    assert bool(cite.cited(type(method))) is (method.name != "local_only")


# ---------------------------------------------------------------------- the server


@every_method
def test_a_server_starts_with_arrays_that_its_seed_decides(method):
    one, again = started(method, seed=3), started(method, seed=3)
    assert same(one, again)
    assert all(isinstance(array, np.ndarray) for array in one.values())


@every_method
def test_merging_changes_nothing_that_it_was_given_and_repeats_itself(method):
    state, uploads = started(method), federation.uploads(method, 0)
    before, sent = copied(state), {m: x.digest() for m, x in uploads.items()}
    one, again = method.merge(state, uploads), method.merge(state, uploads)
    assert same(state, before)
    assert {m: x.digest() for m, x in uploads.items()} == sent
    assert same(one, again)


@every_method
def test_merging_does_not_depend_on_the_order_in_which_messages_arrive(method):
    uploads = federation.uploads(method, 0)
    turned = {m: uploads[m] for m in reversed(uploads)}
    one, other = method.merge(started(method), uploads), method.merge(started(method), turned)
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_allclose(array, other[name], rtol=1e-5, atol=1e-6, err_msg=name)


@every_method
def test_a_state_that_was_saved_goes_on_as_if_it_had_not_been(method, tmp_path):
    state = federation.states(method)[0]
    tensors.write(tmp_path / "state", state)
    read = tensors.read(tmp_path / "state") if state else {}
    uploads = federation.uploads(method, 0, seed=5)
    assert same(method.merge(read, uploads), method.merge(state, uploads))


@every_method
def test_answers_have_the_same_names_for_every_client_in_every_round(method):
    rounds = [federation.states(method, rounds=rounds)[0] for rounds in (1, 2, 3)]
    assert len({tuple(sorted(method.shared(state))) for state in rounds}) == 1
    assert len({tuple(sorted(method.down(state, client))) for state in rounds for client in range(3)}) == 1


@every_prototype_method
def test_a_server_takes_sums_capped_prototypes_and_several_of_a_class(method):
    rng = np.random.default_rng(0)
    sums: dict[int, ByClass] = {
        m: SumsAndCounts(
            vectors=rng.standard_normal((C, D)).astype(np.float32),
            labels=np.arange(C),
            totals=rng.normal(2.0, 3.0, C).astype(np.float32),
        )
        for m in range(3)
    }
    many: dict[int, ByClass] = {
        m: Prototypes(
            vectors=rng.standard_normal((5, D)).astype(np.float32),
            labels=np.array([0, 0, 1, 1, 2]),
            counts=np.array([1, 2, 3, 4, 5]),
        )
        for m in range(3)
    }
    capped = built(method.name, cap=0.5)
    assert isinstance(capped, AbstractPrototypeMethod)
    for one, uploads in ((method, sums), (method, many), (capped, many)):
        state = one.merge(started(one), one.arrived(uploads))
        assert all(np.isfinite(array).all() for array in state.values())
        down = federation.answers(one, [state, state])
        assert federation.loss_of(one, federation.params(), federation.batch(), down).isfinite().all()


@st.composite
def sums(draw) -> dict[int, ByClass]:
    """Draw messages of sums and noisy counts, some of which are below 1."""
    rng, held = np.random.default_rng(draw(st.integers(0, 99))), st.lists(st.integers(0, C - 1), unique=True)
    labels = [np.array(draw(held.filter(len))) for _ in range(draw(st.integers(1, 3)))]
    return {
        m: SumsAndCounts(
            vectors=(10 * rng.standard_normal((len(y), D))).astype(np.float32),
            labels=y,
            totals=rng.normal(3.0, 4.0, len(y)),
        )
        for m, y in enumerate(labels)
    }


def lengths(uploads: Mapping[int, ByClass]) -> np.ndarray:
    return np.concatenate([np.linalg.norm(sent.prototypes().vectors, axis=1) for sent in uploads.values()])


@every_prototype_method
def test_a_cap_that_nothing_exceeds_changes_no_bit_of_sums_that_weigh_an_average(method):
    rng = np.random.default_rng(0)
    uploads: dict[int, ByClass] = {
        m: SumsAndCounts(
            vectors=rng.standard_normal((C, D)).astype(np.float32),
            labels=np.arange(C),
            totals=rng.uniform(0.1, 9.0, C),
        )
        for m in range(3)
    }
    capped = built(method.name, cap=1.001 * lengths(uploads).max())
    assert same(
        capped.merge(started(capped), capped.arrived(uploads)), method.merge(started(method), uploads)
    )


@given(sums(), st.floats(0.01, 30.0))
def test_a_cap_shortens_prototypes_of_sums_and_keeps_their_totals(uploads, cap):
    capped = built("fedproto", cap=cap).arrived(uploads)
    for client, sent in uploads.items():
        short = capped[client]
        assert isinstance(short, SumsAndCounts)
        assert isinstance(sent, SumsAndCounts)
        assert np.array_equal(short.totals, sent.totals)
        before, after = sent.prototypes().vectors, short.prototypes().vectors
        length_P1 = np.linalg.norm(before, axis=1, keepdims=True)
        np.testing.assert_allclose(after, before * np.minimum(1, cap / length_P1), rtol=1e-5, atol=1e-6)
    assert (lengths(capped) <= cap * (1 + 1e-6)).all()


@pytest.mark.parametrize("name", ["fedproto", "fedpcl", "fedtgp"])
def test_a_client_counts_once_however_many_clusters_a_class_of_it_has(name):
    """Tan et al. (2022), Eq. 6, unweighted: over the clients that hold a class."""
    three = Prototypes(
        vectors=np.zeros((3, 2), np.float32), labels=np.zeros(3, np.int64), counts=np.full(3, 9)
    )
    one = Prototypes(
        vectors=np.ones((1, 2), np.float32), labels=np.zeros(1, np.int64), counts=np.ones(1, np.int64)
    )
    method = built(name, prototypes="kmeans")
    state = method.merge(method.start(dim=2, num_classes=2, seed=0), {0: three, 1: one})
    assert state["holders"].tolist() == [2, 0]
    found = class_averages({0: three, 1: one}, num_classes=2, dim=2)
    assert found.vectors.tolist() == [[0.5, 0.5], [0.0, 0.0]]
    if name != "fedtgp":  # whose prototypes are trained
        assert state["prototypes"].tolist() == [[0.5, 0.5], [0.0, 0.0]]


@given(st.integers(0, 99), st.lists(st.integers(1, 49), min_size=2, max_size=4))
def test_clusters_weigh_nothing_and_class_means_are_added_up_as_they_are(seed, sizes):
    rng = np.random.default_rng(seed)
    many = {m: rng.standard_normal((n, D)).astype(np.float32) for m, n in enumerate(sizes)}
    uploads = {m: Prototypes(vectors=v, labels=np.full(len(v), 1)) for m, v in many.items()}
    found = class_averages(uploads, num_classes=C, dim=D)
    wanted = np.mean([v.astype(np.float64).mean(0) for v in many.values()], axis=0)
    np.testing.assert_allclose(found.vectors[1], wanted, rtol=1e-12, atol=1e-14)
    first = {m: sent.only(np.arange(len(sent.labels)) < 1) for m, sent in uploads.items()}
    added = sum((v[0].astype(np.float64) for v in many.values()), start=np.zeros(D))
    assert np.array_equal(class_averages(first, num_classes=C, dim=D).vectors[1], added / len(sizes))


@every_prototype_method
def test_one_client_with_one_class_is_enough(method):
    uploads = federation.drawn({0: (1,)})
    state = method.merge(started(method), uploads)
    down = federation.answers(method, [state, state])
    slopes = federation.gradients(method, federation.params(), federation.batch(classes=(1,)), down)
    assert all(slope.isfinite().all() for slope in slopes.values())


# ---------------------------------------------------------------------- the clients


@pytest.fixture
def down(method) -> Down:
    return federation.answers(method, federation.states(method, rounds=2))


@every_method
def test_stacked_clients_are_each_alone(method, down):
    servers, own, records = (
        federation.states(method, rounds=2),
        federation.params(method=method),
        federation.batch(),
    )
    losses, slopes = (
        federation.loss_of(method, own, records, down),
        federation.gradients(method, own, records, down),
    )
    assert losses.shape == (G,)
    for g in range(G):
        mine = slice(g, g + 1)
        p = {name: tensor[mine] for name, tensor in own.items()}
        alone = federation.answers(method, servers, clients=(g,))
        one = federation.part(records, mine)
        torch.testing.assert_close(
            federation.loss_of(method, p, one, alone), losses[mine], rtol=1e-6, atol=1e-9
        )
        for name, slope in federation.gradients(method, p, one, alone).items():
            torch.testing.assert_close(slope, slopes[name][mine], rtol=1e-6, atol=1e-9)


@every_method
def test_clients_that_still_have_a_batch_train_as_all_do(method, down):
    own, records = federation.params(method=method), federation.batch()
    first = {name: tensor[:3] for name, tensor in own.items()}
    found = federation.loss_of(method, first, federation.part(records, slice(3)), down.first(3))
    torch.testing.assert_close(
        found, federation.loss_of(method, own, records, down)[:3], rtol=1e-9, atol=1e-12
    )


@every_method
def test_an_empty_slot_has_no_influence(method, down):
    own, records = federation.params(method=method), federation.batch()
    moved = records.x.clone()
    moved[4, 2:] += 50.0  # slots of weight 0
    other = Batch(moved, records.y, records.weight)
    one, two = (federation.loss_of(method, own, batch, down)[4] for batch in (records, other))
    torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


@every_method
def test_a_loss_changes_no_parameter_and_something_is_learned(method, down):
    own, records = federation.params(method=method), federation.batch()
    before = {name: p.clone() for name, p in own.items()}
    slopes = federation.gradients(method, own, records, down)
    assert all(torch.equal(p, before[name]) for name, p in own.items())
    assert all(any(slope[g].any() for slope in slopes.values()) for g in range(G))


@every_method
@pytest.mark.parametrize("classes", [(3,), (0,)])
def test_a_class_that_nobody_else_holds_is_no_trouble(method, down, classes):
    own, records = federation.params(method=method), federation.batch(classes=classes)
    assert federation.loss_of(method, own, records, down).isfinite().all()
    assert all(s.isfinite().all() for s in federation.gradients(method, own, records, down).values())


@every_prototype_method
def test_nothing_that_has_arrived_yet_is_no_trouble(method):
    down = federation.answers(method, [started(method), federation.states(method)[1]])
    own, records = federation.params(method=method), federation.batch()
    assert federation.loss_of(method, own, records, down).isfinite().all()
    assert all(s.isfinite().all() for s in federation.gradients(method, own, records, down).values())


def noisy(method: AbstractPrototypeMethod, size: float) -> Down:
    """Return what clients get after two rounds of messages that are nothing but noise."""
    state = started(method)
    for round in range(2):
        uploads = federation.drawn({m: tuple(range(C)) for m in range(3)}, seed=round, size=size)
        state = method.merge(state, method.arrived(uploads))
    return federation.answers(method, [state, state])


@every_prototype_method
@pytest.mark.parametrize("size", [300.0, 1e5])
def test_noise_that_is_all_there_is_leaves_numbers_or_is_refused_with_a_way_out(method, size):
    try:
        down = noisy(method, size)
    except InputError:
        assert size > 1e4
        capped = built(method.name, cap=10.0)
        assert isinstance(capped, AbstractPrototypeMethod)
        down = noisy(capped, size)
    own, records = federation.params(method=method), federation.batch()
    assert federation.loss_of(method, own, records, down).isfinite().all()
    assert all(s.isfinite().all() for s in federation.gradients(method, own, records, down).values())


@every_method
def test_what_arrives_is_put_in_place_and_nothing_else_is_changed(method, down):
    own = federation.params(method=method)
    before, kept = dict(own), {name: p.clone() for name, p in own.items()}
    method.receive(own, down)
    for name, p in own.items():
        assert p is before[name]
        assert torch.equal(p, kept[name]) is not method.replaces(name)


@every_method
def test_a_score_of_every_class_for_every_record(method, down):
    own, records = federation.params(method=method), federation.batch()
    kept = method.recall(records.x, records.y, num_classes=C)
    scores = method.logits(NETWORK, own, records.x, down, kept)
    assert scores.shape == (G, B, C)
    assert not scores.isnan().any()
    assert scores.amax(-1).isfinite().all()
    servers = federation.states(method, rounds=2)
    for g in range(G):
        mine = slice(g, g + 1)
        p, own_kept = ({n: t[mine] for n, t in named.items()} for named in (own, kept))
        alone = federation.answers(method, servers, clients=(g,))
        found = method.logits(NETWORK, p, records.x[mine], alone, own_kept)
        torch.testing.assert_close(found, scores[mine], rtol=1e-6, atol=1e-9)


@every_method
def test_what_clients_recall_is_of_their_own_records_alone(method):
    records = federation.batch()
    y = records.y.clone()
    y[2, 4:] = -1
    moved = records.x.clone()
    moved[2, 4:] += 50.0
    one, two = (method.recall(x, y, num_classes=C) for x in (records.x, moved))
    for name, tensor in one.items():
        assert tensor.shape[0] == G
        assert torch.equal(tensor, two[name])


@every_method
def test_what_is_released_is_public_exactly_if_no_trained_parameter_is_in_it(method):
    own, x = federation.params(method=method), federation.batch().x
    moved = {name: p + 1.0 for name, p in own.items()}
    public = method.encoder_depends_on(PersonalModel(adapter=3)) is DependsOn.PUBLIC
    assert torch.equal(method.released(NETWORK, own, x), method.released(NETWORK, moved, x)) is public
    assert method.encoder_depends_on(PersonalModel()) is DependsOn.PUBLIC


@every_method
def test_answers_are_stacked_as_they_are_sent(method):
    servers = federation.states(method)
    each = [
        method.down(servers[run], client)
        for run, client in zip(federation.RUN, federation.CLIENT, strict=True)
    ]
    found = stacked_answers(each, [method.shared(server) for server in servers], torch.tensor(federation.RUN))
    for name, tensor in found.shared.items():
        for run, server in enumerate(servers):
            sent = method.shared(server)[name]
            assert np.array_equal(
                tensor[run, : len(sent)].numpy() if sent.ndim else tensor[run].numpy(), sent
            )


# ---------------------------------------------------------------------- from end to end


class KilledError(Exception):
    """What a killed training raises here."""


@dataclass
class KilledAfterOneRound:
    """Progress that ends every batch which began with its first round, before its second."""

    before: int = -1

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != "train":
            return
        began, self.before = self.before == 0, done
        if done == 1 and began:
            raise KilledError


def train_with_kills(study: Study, root: Path) -> int:
    """Train a study to its end, killing every batch after its first round, and return how often."""
    for kills in range(100):
        try:
            train(study, root, device="cpu", progress=KilledAfterOneRound())
        except KilledError:
            continue
        return kills
    raise AssertionError("training does not end")


CELLS: dict[str, dict[str, Any]] = {
    "none": {},
    "igpp": {"defense": {"name": "igpp", "epsilon": 8.0}},
    "vpp": {"defense": {"name": "vpp", "epsilon": 8.0}},
    "vpdr": {"defense": {"name": "vpdr", "epsilon": 8.0}},
    "bf16": {"precision": "bf16"},
    "mixed": {
        "mixed": [
            {"encoder": {"name": "usps_cnn"}, "model": {"adapter": width, "dropout": 0.1}} for width in (2, 4)
        ]
    },
}


def study(folder: Path, method: AbstractMethod) -> Path:
    """Write the configuration of a small study of one method."""
    taken = set(CELLS) if method.sends is not Sends.WEIGHTS else {"none", "bf16", "mixed"}
    if any(
        "adapter." in name
        for name in method.first(NETWORK.start(dim=D, num_classes=C, seed=0), seed=0)
        if method.sends_weight(name)
    ):
        taken.discard("mixed")  # whose adapters have no mean
    cells = {name: cell for name, cell in CELLS.items() if name in taken}
    settings = {**method.settings(), "training": {"batch_size": 12, "learning_rate": 0.01}}
    if isinstance(method, AbstractPrototypeMethod):
        settings["prototypes"] = "mean"
    base = {
        "data": {"name": "digits", "domains": ["mnist", "syn"], "per_class": 10},
        "encoder": {"name": "usps_cnn"},
        "model": {"adapter": 3},
        "method": settings,
        "defense": {"name": "none"},
        "canaries": {"count": 2, "norm": 3.0},
        "rounds": 3,
        "cells": cells,
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(base, sort_keys=False))
    return path


def tree(root: Path) -> dict[str, bytes]:
    """Return the content of every file but the times and what hidden files hold."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "timing.json" and not path.name.startswith(".")
    }


@every_method
def test_a_killed_study_ends_with_the_same_bytes_and_can_be_audited(method, tmp_path):
    config = load(study(tmp_path, method))
    train(config, tmp_path / "whole", device="cpu")
    assert train_with_kills(config, tmp_path / "killed") >= min(3, len(config.cells))
    found, wanted = tree(tmp_path / "killed"), tree(tmp_path / "whole")
    assert sorted(found) == sorted(wanted)
    assert [name for name in wanted if found[name] != wanted[name]] == []
    audited(tmp_path / "whole", method)


def audited(root: Path, method: AbstractMethod) -> None:
    """Fail unless an audit of what has no noise, and of what has, judges it without anything that breaks."""
    verdicts = {}
    for cell in {"none", "vpdr"} & {path.name for path in root.iterdir()}:
        findings = audit(root / cell)
        assert findings.failed == ()
        verdicts[cell] = findings.verdict
    assert Verdict.VIOLATION not in verdicts.values()
    assert verdicts["none"] is (Verdict.NOT_COVERED if method.uploads else Verdict.OK)
