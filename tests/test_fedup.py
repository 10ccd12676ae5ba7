"""FedUP: every equation against a reference in NumPy, its memory, its draws, and what it does where little arrives."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from privkit.audit.run import audit
from privkit.batch import Batch
from privkit.methods._base import State
from privkit.methods._gated import gate, mean_over_classes, running
from privkit.methods._reliability import Reliability, merged
from privkit.methods.fedproto import FedProto
from privkit.methods.fedup import FedUp
from privkit.noise import Purpose, keyed
from privkit.prototypes.mean import Mean
from privkit.prototypes.probabilistic import Probabilistic
from privkit.release import ByClass, Moments, ProbabilisticPrototypes, Prototypes
from privkit.store import Run
from privkit.study import load
from privkit.train.loop import train
from privkit.truth import Hidden
from reports.findings import Verdict
from tests import federation
from tests.federation import B, C, D, G
from tests.test_contract_methods import KilledAfterOneRound, KilledError, tree

EVERY = {
    "fedup": FedUp(),
    "no gate": FedUp(weigh=False),
    "prior": FedUp(prior=2.5, anneal=3),
    "no anneal": FedUp(anneal=0, pull=2.0, sensitivity=9.0),
}


def gaussians(held: Mapping[int, tuple[int, ...]], *, seed: int = 0) -> dict[int, ByClass]:
    """Return what clients that hold some classes each send."""
    rng = np.random.default_rng(seed)
    return {
        m: ProbabilisticPrototypes(
            vectors=rng.standard_normal((len(classes), D)).astype(np.float32),
            labels=np.array(classes),
            spread=rng.uniform(0.2, 2.0, (len(classes), D)).astype(np.float32),
            epistemic=rng.uniform(0, 0.27, len(classes)),
            aleatoric=rng.uniform(0, 1.3, len(classes)),
        )
        for m, classes in held.items()
    }


def states(method: FedUp, *, rounds: int = 3) -> list[State]:
    """Return the server's state of each run after some rounds of Gaussians."""
    found = []
    for run, held in enumerate(federation.HELD):
        state = method.start(dim=D, num_classes=C, seed=run)
        for round in range(rounds):
            state = method.merge(state, gaussians(held, seed=10 * round + run))
        found.append(state)
    return found


def records(method: FedUp, *, draws: bool = True) -> Batch:
    """Return a batch with what the loop adds to it: a memory of some steps, scarce classes and draws."""
    rng, batch = np.random.default_rng(7), federation.batch()
    kept = {
        "uncertainty": torch.from_numpy(rng.uniform(0.1, 0.3, (G, 2))),
        "scarce": torch.from_numpy(rng.random((G, C)) < 0.6),
    }
    kept["scarce"][1] = False
    normals = torch.from_numpy(rng.standard_normal((G, method.virtual, C, D)))
    return replace(batch, kept=kept, normals=normals if draws else None)


def parts(alpha: np.ndarray) -> tuple[float, float]:
    """Return epistemic and aleatoric uncertainty of one record."""
    p = alpha / alpha.sum()
    aleatoric = -(p * (special.digamma(alpha + 1) - special.digamma(alpha.sum() + 1))).sum()
    return float(-(p * np.log(p)).sum() - aleatoric), float(aleatoric)


def reference(method: FedUp, servers: list[State], frozen: Mapping[int, list[float]]):
    """Return the loss of one client in NumPy, its gates held at some values."""

    def loss(p: Mapping[str, np.ndarray], g: int, batch: Batch) -> float:
        server = servers[federation.RUN[g]]
        mu, sigma = (server[name].astype(np.float64) for name in ("prototypes", "spread"))
        anneal = 1.0 if method.anneal == 0 else min(1.0, int(server["round"]) / method.anneal)
        total = 0.0
        for j in range(B):
            y, u = int(batch.y[g, j]), federation.embedded(p, batch.x[g, j].numpy())
            e = np.logaddexp(0, federation.head(p, u))
            alpha, wrong = e + method.prior, np.where(np.arange(C) == y, 0.0, e) + 1
            own = special.digamma(alpha.sum()) - special.digamma(alpha[y])
            kl = special.gammaln(wrong.sum()) - math.lgamma(C) - special.gammaln(wrong).sum()
            kl += ((wrong - 1) * (special.digamma(wrong) - special.digamma(wrong.sum()))).sum()
            pull = frozen[g][j] * np.mean(((u - mu[y]) / sigma[y]) ** 2) if server["holders"][y] else 0.0
            total += float(batch.weight[g, j]) * (own + anneal * kl + method.pull * pull)
        if batch.normals is None:
            return float(total)
        drawn = []
        for c in range(C):
            if batch.kept["scarce"][g, c] and server["drawn"][c]:
                for v in range(method.virtual):
                    z = mu[c] + sigma[c] * batch.normals[g, v, c].numpy()
                    alpha = np.logaddexp(0, federation.head(p, z)) + method.prior
                    drawn.append(-math.log(alpha[c] / alpha.sum()))
        return float(total + (np.mean(drawn) if drawn else 0.0))

    return loss


def gates(method: FedUp, batch: Batch) -> dict[int, list[float]]:
    """Return the gate of each record at the first parameters, in NumPy."""
    found: dict[int, list[float]] = {}
    for g in range(G):
        p, weight = federation.of(g, federation.params()), batch.weight[g].numpy()
        u = [federation.embedded(p, batch.x[g, j].numpy()) for j in range(B)]
        epistemic = np.array([parts(np.logaddexp(0, federation.head(p, z)) + method.prior)[0] for z in u])
        mean, share = 0.9 * batch.kept["uncertainty"][g].numpy() + 0.1 * np.array([weight @ epistemic, 1.0])
        found[g] = (1 / (1 + np.exp(-method.sensitivity * (epistemic - mean / share)))).tolist()
        if not method.weigh:
            found[g] = [0.5] * B
    return found


# ---------------------------------------------------------------------- the clients


@pytest.mark.parametrize("draws", [True, False], ids=["draws", "none"])
@pytest.mark.parametrize("method", EVERY.values(), ids=EVERY)
def test_loss_and_gradient_are_the_reference_with_the_gate_held(method, draws):
    batch, servers = records(method, draws=draws), states(method)
    down = federation.answers(method, servers)
    frozen = gates(method, batch)
    federation.assert_is_reference(method, down, reference(method, servers, frozen), batch)


def test_the_gate_is_what_it_is_said_to_be_and_lives_in_its_range():
    usual = torch.tensor([[0.2, 1.0], [0.0, 1.0], [0.4228, 1.0]], dtype=torch.float64)
    epistemic = torch.tensor([[0.2, 0.3], [0.4228, 0.0], [0.0, 0.4228]], dtype=torch.float64)
    found = gate(epistemic, usual, sensitivity=5.0)
    assert found[0].tolist() == pytest.approx([0.5, 1 / (1 + math.exp(-0.5))])
    assert found[1:].amin().item() == pytest.approx(0.108, abs=5e-4)
    assert found[1:].amax().item() == pytest.approx(0.892, abs=5e-4)


@given(st.lists(st.floats(0, 0.42), min_size=1, max_size=9))
def test_the_running_mean_forgets_a_tenth_a_step_and_is_a_mean_from_the_first(means):
    kept = torch.zeros(1, 2, dtype=torch.float64)
    for mean in means:
        kept = running(kept, torch.tensor([[mean, mean]], dtype=torch.float64), torch.tensor([[0.25, 0.75]]))
    weights = [0.1 * 0.9**k for k in reversed(range(len(means)))]
    wanted = sum(w * m for w, m in zip(weights, means, strict=True)) / sum(weights)
    assert (kept[0, 0] / kept[0, 1]).item() == pytest.approx(wanted, abs=1e-12)


def test_what_is_kept_after_a_step_is_what_the_gate_has_seen():
    method, batch, own = FedUp(), records(FedUp()), federation.params()
    u = federation.NETWORK.embed(own, batch.x)
    found = method.keep(federation.NETWORK, own, u, batch)["uncertainty"]
    for g in range(G):
        p = federation.of(g, own)
        alpha = [np.logaddexp(0, federation.head(p, z)) + 1 for z in u[g].numpy()]
        mean = sum(w * parts(a)[0] for w, a in zip(batch.weight[g].tolist(), alpha, strict=True))
        np.testing.assert_allclose(
            found[g].numpy(),
            0.9 * batch.kept["uncertainty"][g].numpy() + 0.1 * np.array([mean, 1.0]),
            rtol=1e-10,
        )
    assert FedUp(weigh=False).keep(federation.NETWORK, own, u, batch) == {}


def test_classes_of_few_records_and_of_none_are_scarce():
    y = torch.tensor([[0, 0, 0, 1, 1], [2, 2, -1, -1, -1]])
    found = FedUp(scarce=3).kept(y, num_classes=4)
    assert found["scarce"].tolist() == [[False, True, True, True], [True, True, True, True]]
    assert found["uncertainty"].tolist() == [[0.0, 0.0]] * 2
    assert not FedUp(scarce=0).kept(y, num_classes=4)["scarce"].any()


def test_draws_are_of_scarce_classes_whose_gaussian_is_known_alone():
    method, batch = FedUp(), records(FedUp())
    servers = states(method)
    assert not servers[0]["drawn"][3]  # nobody in the first run holds it
    down = federation.answers(method, servers)
    with_draws, without = (
        federation.loss_of(method, federation.params(), b, down)
        for b in (batch, replace(batch, normals=None))
    )
    assert with_draws[1] == without[1]  # no class is scarce there
    assert (with_draws != without).sum() == G - 1
    nothing = mean_over_classes(torch.ones(2, 4, C), torch.zeros(2, C, dtype=torch.bool))
    assert nothing.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("augment", [True, False])
def test_as_many_normal_numbers_are_asked_for_as_are_drawn(augment):
    method = FedUp(augment=augment, virtual=3)
    found = method.normals(federation.answers(method, states(method)))
    assert found == ((3, C, D) if augment else None)


@pytest.mark.parametrize("prior", [1.0, 2.0])
def test_what_a_model_says_of_records_is_in_its_range(prior):
    method, own, x = FedUp(prior=prior), federation.params(), federation.batch().x
    said = method.statistics(federation.NETWORK, own, x)
    assert said.shape == (G, B, 2)
    for g in range(G):
        p = federation.of(g, own)
        for j in range(B):
            e = np.logaddexp(0, federation.head(p, federation.embedded(p, x[g, j].numpy())))
            assert said[g, j].tolist() == pytest.approx(parts(e + prior), abs=1e-10)


# ---------------------------------------------------------------------- the server


@pytest.mark.parametrize("form", ["sum", "convex"])
@given(seed=st.integers(0, 99), temperature=st.floats(0.05, 5), balance=st.floats(0, 1))
def test_weights_of_clients_are_the_softmax(form, seed, temperature, balance):
    rng = np.random.default_rng(seed)
    epistemic, aleatoric = rng.uniform(0, 0.4, 3), rng.uniform(0, 2, 3)
    found = Reliability(temperature, balance, form).weights(epistemic, aleatoric)
    first = 1 - balance if form == "convex" else 1.0
    raw = [
        math.exp(-(first * e + balance * a) / temperature) for e, a in zip(epistemic, aleatoric, strict=True)
    ]
    np.testing.assert_allclose(found, np.array(raw) / sum(raw), rtol=1e-9)
    assert found.sum() == pytest.approx(1.0)


def test_ambiguity_decides_and_lack_of_data_hardly_does():
    """Ten classes, tau = .5: the largest ratio of weights is 2.11 by epistemic, and 100 by aleatoric uncertainty."""
    rule = Reliability(0.5, 1.0, "sum")
    one, other = rule.weights(np.array([0.0, 0.3736]), np.zeros(2))
    assert one / other == pytest.approx(2.11, abs=5e-3)
    one, other = rule.weights(np.zeros(2), np.array([0.0, math.log(10)]))
    assert one / other == pytest.approx(100.0)


@pytest.mark.parametrize("barycenter", ["wasserstein", "mixture", "independent"])
@pytest.mark.parametrize("weigh", [True, False])
def test_merging_is_the_reference_class_by_class(barycenter, weigh):
    method = FedUp(barycenter=barycenter, weigh=weigh)
    uploads = gaussians({0: (0, 1, 2), 1: (2, 0), 4: (2,)})
    state = method.merge(method.start(dim=D, num_classes=C, seed=0), uploads)
    for c in range(C):
        holders = [x for x in uploads.values() if isinstance(x, ProbabilisticPrototypes) and c in x.labels]
        assert state["holders"][c] == len(holders)
        assert state["drawn"][c] == bool(holders)
        if not holders:
            assert not state["prototypes"][c].any()
            continue
        rows = [x.labels.tolist().index(c) for x in holders]
        mean = np.array([x.vectors[r] for x, r in zip(holders, rows, strict=True)], dtype=np.float64)
        spread = np.array([x.spread[r] for x, r in zip(holders, rows, strict=True)], dtype=np.float64)
        doubt = [x.epistemic[r] + x.aleatoric[r] for x, r in zip(holders, rows, strict=True)]  # type: ignore[index]
        w = np.array([math.exp(-2 * d) if weigh else 1.0 for d in doubt])
        w /= w.sum()
        center = sum(wi * mi for wi, mi in zip(w, mean, strict=True))
        wanted = {
            "wasserstein": w @ spread,
            "mixture": np.sqrt(w @ spread**2 + w @ (mean - center) ** 2),
            "independent": np.sqrt((w**2) @ spread**2),
        }[barycenter]
        np.testing.assert_allclose(state["prototypes"][c], center, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state["spread"][c], wanted, rtol=1e-5)


def test_a_class_that_one_client_holds_is_that_clients():
    uploads = gaussians({0: (1,), 1: (2,)})
    state = FedUp().merge(FedUp().start(dim=D, num_classes=C, seed=0), uploads)
    for m, c in ((0, 1), (1, 2)):
        sent = uploads[m]
        assert isinstance(sent, ProbabilisticPrototypes)
        np.testing.assert_array_equal(state["prototypes"][c], sent.vectors[0])
        np.testing.assert_array_equal(state["spread"][c], sent.spread[0])


def test_a_spread_of_nothing_is_the_floor_at_the_server_too():
    sent = ProbabilisticPrototypes(
        vectors=np.ones((1, D)), labels=np.zeros(1, np.int64), spread=np.zeros((1, D))
    )
    found = merged({0: sent}, num_classes=C, dim=D, reliability=None, barycenter="wasserstein", floor=1e-2)
    assert (found.spread[0] == 1e-2).all()
    state = FedUp().merge(FedUp().start(dim=D, num_classes=C, seed=0), {0: sent})
    assert (state["spread"][0] == np.float32(1e-2)).all()


def test_where_means_alone_arrive_the_pull_is_fedprotos_and_nothing_is_drawn():
    uploads: dict[int, ByClass] = dict(federation.drawn(federation.HELD[1]))
    proto, up = FedProto(pull=0.5), FedUp(pull=1.0, weigh=False)
    states_of = [m.merge(m.start(dim=D, num_classes=C, seed=0), uploads) for m in (proto, up)]
    np.testing.assert_array_equal(states_of[0]["prototypes"], states_of[1]["prototypes"])
    assert (states_of[1]["spread"] == 1.0).all()
    assert not states_of[1]["drawn"].any()
    own, batch = federation.params(), records(up, draws=False)
    pulled = []
    for method, state in zip((proto, up), states_of, strict=True):
        down = federation.answers(method, [state, state])
        base = federation.answers(method, [{**state, "holders": 0 * state["holders"]}] * 2)
        pulled.append(
            federation.loss_of(method, own, batch, down) - federation.loss_of(method, own, batch, base)
        )
    torch.testing.assert_close(pulled[0], pulled[1], rtol=1e-5, atol=1e-6)


def test_noisy_moments_are_weighed_alike_and_a_message_without_a_class_is_none():
    rng = np.random.default_rng(0)
    uploads: dict[int, ByClass] = {
        m: Moments(
            vectors=rng.standard_normal((C, D)),
            labels=np.arange(C),
            totals=np.full(C, 4.0),
            squares=4 * np.ones((C, D)),
            least=2.0,
        )
        for m in range(3)
    }
    state = FedUp().merge(FedUp().start(dim=D, num_classes=C, seed=0), uploads)
    wanted = np.mean([x.vectors / 4 for x in uploads.values()], axis=0)
    np.testing.assert_allclose(state["prototypes"], wanted, rtol=1e-6)
    assert state["drawn"].all()
    nothing = {m: x.only(np.zeros(C, dtype=bool)) for m, x in uploads.items()}
    empty = FedUp().merge(FedUp().start(dim=D, num_classes=C, seed=0), nothing)
    assert not empty["drawn"].any()
    assert np.isfinite(empty["spread"]).all()


# ---------------------------------------------------------------------- settings


def test_without_weighing_records_weigh_alike_as_well():
    assert FedUp().summary == Probabilistic()
    assert FedUp(weigh=False).summary == Probabilistic(reliability=False)
    assert FedUp(weigh=False, prototypes=Mean()).summary == Mean()


def test_a_convex_combination_stays_between():
    with pytest.raises(
        ValueError, match="balance 2 with form: convex is above 1; lower it, or set form: sum"
    ):
        FedUp(form="convex", balance=2.0)
    assert FedUp(form="convex", balance=0.5).balance == 0.5


# ---------------------------------------------------------------------- from end to end


def study(folder, cells: dict[str, Any], **named: Any):
    base = {
        "data": {"name": "digits", "domains": ["mnist", "syn"], "per_class": 20},
        "encoder": {"name": "usps_cnn"},
        "method": {"name": "fedup", "scarce": 60, "training": {"batch_size": 16, "learning_rate": 0.01}},
        "defense": {"name": "none"},
        "rounds": 3,
        "cells": cells,
        **named,
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(base, sort_keys=False))
    return load(path)


def test_a_run_that_was_killed_has_the_same_memory_and_draws(tmp_path):
    cells = {"fedup": {}, "adapter": {"model": {"adapter": 3}}, "sgd": {"method": SGD}}
    config = study(tmp_path, cells)
    train(config, tmp_path / "whole", device="cpu")
    for _ in range(len(cells)):
        with pytest.raises(KilledError):
            train(config, tmp_path / "killed", device="cpu", progress=KilledAfterOneRound())
    train(config, tmp_path / "killed", device="cpu")
    assert tree(tmp_path / "killed") == tree(tmp_path / "whole")
    run = Run(next((tmp_path / "whole").glob("fedup/seed-*")))
    state = run.state(3)
    assert (state["kept.uncertainty"][:, 1] > 0.5).all()
    assert state["kept.scarce"].all()
    sent = next(iter(run.transcript().releases)).payload
    assert isinstance(sent, ProbabilisticPrototypes)
    assert (sent.spread > 0).all()
    assert sent.epistemic is not None
    assert (sent.epistemic > 0).all()


SGD = {
    "name": "fedup",
    "scarce": 60,
    "training": {
        "optimizer": "sgd",
        "momentum": 0.9,
        "weight_decay": 1e-4,
        "batch_size": 16,
        "learning_rate": 0.01,
    },
}


def test_draws_do_not_depend_on_who_is_trained_beside(tmp_path):
    several = study(tmp_path, {"a": {}, "b": {"defense": {"name": "igpp", "epsilon": 1e6}}}, seeds=2)
    alone = study(tmp_path, {"a": {}, "c": {"method": {"name": "local_only"}}})
    train(several, tmp_path / "several", device="cpu")
    train(alone, tmp_path / "alone", device="cpu")
    one, other = (Run(tmp_path / name / "a/seed-0").state(3) for name in ("several", "alone"))
    for name, array in other.items():
        np.testing.assert_allclose(one[name], array, rtol=1e-3, atol=1e-4, err_msg=name)


def test_a_client_draws_from_a_stream_of_its_own():
    streams = [
        keyed(seed, Purpose.LOCAL_NORMALS, round=round, client=client).standard_normal(4).tobytes()
        for seed, round, client in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    assert len(set(streams)) == 4


def test_a_frozen_encoder_with_dpspread_is_covered_and_with_uncertainties_it_is_not(tmp_path):
    cells = {
        "covered": {"defense": {"name": "dpspread", "epsilon": 8.0}},
        "uncertain": {"defense": {"name": "dpspread", "epsilon": 8.0, "weights": [1, 1, 0.5, 0.5, 0.5]}},
        "trained": {"model": {"adapter": 3}, "defense": {"name": "dpspread", "epsilon": 8.0}},
        "proto": {"method": {"name": "fedproto"}, "defense": {"name": "dpspread", "epsilon": 8.0}},
    }
    train(study(tmp_path, cells, canaries={"count": 256, "norm": 3.0}), tmp_path / "run", device="cpu")
    found = {cell.name: cell for cell in audit(tmp_path / "run").cells}
    for name in ("covered", "proto"):
        assert found[name].verdict in (Verdict.OK, Verdict.INCONCLUSIVE), found[name].reasons
    for name in ("uncertain", "trained"):
        assert found[name].verdict is Verdict.NOT_COVERED
        assert found[name].reasons[0].startswith("A1: the encoder depends on private state")


def test_uncertainties_that_a_method_does_not_state_are_refused_before_training(tmp_path):
    cells = {
        "a": {
            "method": {"name": "fedproto"},
            "defense": {"name": "dpspread", "epsilon": 8.0, "weights": [1, 1, 0, 1, 0]},
        }
    }
    with pytest.raises(ValueError, match="ask for uncertainties, and the method says none of its records"):
        train(study(tmp_path, cells), tmp_path / "run", device="cpu")
    assert not list((tmp_path / "run").glob("a/seed-*/ledger.jsonl"))


def test_a_message_of_means_is_a_message_that_other_methods_read():
    sent = gaussians({0: (0, 1)})[0]
    assert isinstance(sent.prototypes(), Prototypes)
    state = FedProto().merge(FedProto().start(dim=D, num_classes=C, seed=0), {0: sent})
    np.testing.assert_array_equal(state["prototypes"][:2], sent.vectors)
    assert Hidden._fields[-1] == "moments"
