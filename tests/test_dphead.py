"""Noise on weights: clip, law, cost, what is refused, and what an audit of it sees."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import kstest

from accountant.claims import claim
from accountant.contract import DependsOn, Query, Relation
from accountant.events import Composed, Event, Gaussian, Repeated, SubsampledGaussian, leaves
from privkit import plug
from privkit.audit.run import audit
from privkit.defenses import dphead
from privkit.defenses._by_record import RecordNoise
from privkit.defenses.dphead import ClippedUpdates, DpHead, PrivateSteps, flattened, shaped
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import NoNoise, Purpose, SeededNoise, keyed
from privkit.release import Update
from privkit.store import Run
from privkit.study import load
from privkit.train.loop import train
from privkit.weights import Weights
from reports.findings import Verdict

SHAPES = {"adapter.down": (6, 3), "head.weight": (6, 4), "head.bias": (4,), "statistics.variance": ()}
D = 18 + 24 + 4 + 1


def weights(seed: int = 0, *, size: float = 1.0, **changes: Any) -> Weights:
    rng = np.random.default_rng(seed)
    named = {n: (size * rng.standard_normal(s)).astype(np.float32) for n, s in SHAPES.items()}
    before = {
        n: rng.standard_normal(s).astype(np.float32) for n, s in SHAPES.items() if "statistics" not in n
    }
    found = Weights(
        named=named, received=before, depends_on=DependsOn.PRIVATE_STATE, steps=3, sampling_rate=0.25
    )
    return replace(found, **changes)


def client(**settings: Any) -> ClippedUpdates:
    found = DpHead.model_validate({"noise_multiplier": 1.5, **settings}).mechanism(rounds=4)
    assert isinstance(found, ClippedUpdates)
    return found


def seeded(seed: int) -> SeededNoise:
    return SeededNoise(keyed(seed, Purpose.RELEASE))


def change_of(payload: Update, mine: Weights) -> np.ndarray:
    zero = {n: np.zeros(s) for n, s in SHAPES.items()}
    return np.concatenate(
        [np.ravel(payload.named[n].astype(float) - (zero | dict(mine.received))[n]) for n in sorted(SHAPES)]
    )


# ---------------------------------------------------------------------- the message of a client


@given(st.integers(0, 99), st.sampled_from([0.0, 1e-3, 1.0, 1e6]), st.floats(0.01, 100.0))
def test_the_whole_change_is_clipped_as_one_vector_and_short_ones_stay(seed, size, norm):
    mine = weights(seed, size=size)
    sent = change_of(client(clip_norm=norm).privatize_weights(mine, NoNoise()).payload, mine)
    true = change_of(Update(named=mine.named, means="weights"), mine)
    length = np.linalg.norm(true)
    assert np.linalg.norm(sent) <= norm * (1 + 1e-4) + 1e-5
    np.testing.assert_allclose(sent, true * min(1.0, norm / length), rtol=1e-4, atol=1e-5)


def test_a_change_of_nothing_is_sent_with_noise_and_without_a_warning():
    mine = weights()
    still = replace(mine, named={**mine.received, "statistics.variance": np.zeros((), np.float32)})
    payload, _, hidden = client().privatize_weights(still, seeded(0))
    assert hidden is not None
    assert hidden.received is not None
    assert np.array_equal(hidden.means[0], hidden.received)
    assert (change_of(payload, still) != 0).all()


@pytest.mark.parametrize("relation", [Relation.REPLACE_CLIENT, Relation.ZERO_OUT_CLIENT])
def test_the_noise_is_gaussian_of_the_size_that_the_event_says(relation):
    mechanism, mine = client(clip_norm=0.7, relation=relation), weights()
    drawn = np.concatenate(
        [
            change_of(mechanism.privatize_weights(mine, seeded(s)).payload, mine)
            - change_of(mechanism.privatize_weights(mine, NoNoise()).payload, mine)
            for s in range(60)
        ]
    )
    reach = 2.0 if relation is Relation.REPLACE_CLIENT else 1.0
    event = mechanism.weights_event(mine)
    assert isinstance(event, Gaussian)
    std = event.noise_multiplier * reach * 0.7
    assert kstest(drawn / std, "norm").pvalue > 1e-3
    assert np.std(drawn) == pytest.approx(std, rel=0.05)


@given(st.integers(0, 9), st.integers(0, 9))
def test_payload_and_event_are_of_one_call_and_the_event_looks_at_no_number(one, other):
    mechanism = client()
    payload, event, _ = mechanism.privatize_weights(weights(one), seeded(1))
    assert event == mechanism.weights_event(weights(other))
    assert payload.digest() == mechanism.privatize_weights(weights(one), seeded(1)).payload.digest()
    assert {n: a.shape for n, a in payload.named.items()} == SHAPES
    assert {a.dtype for a in payload.named.values()} == {np.dtype(np.float32)}


def test_the_claim_is_about_a_whole_client_and_covered_although_the_encoder_is_private():
    mechanism = DpHead(epsilon=3.0).mechanism(rounds=7)
    event = mechanism.weights_event(weights())
    found = claim(Repeated(event=event, count=7), delta=1e-5)
    assert found.epsilon == pytest.approx(3.0, rel=1e-6)
    assert found.covered
    assert found.unit == "one client's whole data"
    assert found.relation is Relation.REPLACE_CLIENT
    (leaf,) = (leaf for leaf, _ in leaves(event))
    assert leaf.contract.encoder is DependsOn.PRIVATE_STATE
    assert leaf.contract.query is Query.CLIENT_UPDATE


@pytest.mark.parametrize("level", ["client", "record"])
def test_weights_that_all_began_with_cost_nothing_and_go_as_they_are(level):
    mechanism = DpHead(noise_multiplier=1.0, level=level).mechanism(rounds=3)
    mine = weights()
    begun = replace(mine, named=mine.received, steps=0)
    payload, event, hidden = mechanism.privatize_weights(begun, seeded(0))
    assert event == Composed(events=())
    assert hidden is None
    assert all(np.array_equal(payload.named[n], a) for n, a in mine.received.items())


def test_a_statistic_of_records_is_no_weight_that_all_began_with():
    mine = replace(weights(), steps=0)
    assert isinstance(client().weights_event(mine), Gaussian)
    with pytest.raises(InputError, match=r"statistics\.variance is sent and is no trained weight"):
        DpHead(noise_multiplier=1.0, level="record").mechanism(rounds=1).weights_event(mine)


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", ["named", "received"])
def test_a_number_that_is_not_finite_is_refused(part, bad):
    mine = weights()
    broken = {n: a.copy() for n, a in getattr(mine, part).items()}
    broken["head.bias"][1] = bad
    with pytest.raises(InputError, match="not finite, which no clip bounds; lower"):
        client().privatize_weights(replace(mine, **{part: broken}), seeded(0))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "one of epsilon and noise_multiplier"),
        ({"epsilon": 1.0, "noise_multiplier": 1.0}, "one of epsilon and noise_multiplier"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"noise_multiplier": float("nan")}, "noise_multiplier"),
        ({"noise_multiplier": 1.0, "clip_norm": -2.0}, "clip_norm"),
        ({"level": "record", "epsilon": 1.0}, "level record takes a noise_multiplier"),
        (
            {"epsilon": 1.0, "relation": "add or remove one record"},
            "one is about records and the other about whole",
        ),
        (
            {"level": "record", "noise_multiplier": 1.0, "relation": "replace one client's data"},
            "one is about records and the other about whole",
        ),
    ],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises((InputError, ValidationError), match=words):
        plug.build("privkit.defenses", {"name": "dphead", **settings})


@pytest.mark.parametrize("level", ["client", "record"])
def test_prototypes_are_refused_with_the_way_out(level):
    mine = Embeddings(vectors=np.ones((2, 3)), labels=np.array([0, 1]), encoder=DependsOn.PUBLIC)
    mechanism = DpHead(noise_multiplier=1.0, level=level).mechanism(rounds=1)
    for call in (lambda: mechanism.event(mine), lambda: mechanism.privatize(mine, NoNoise())):
        with pytest.raises(InputError, match="the method sends prototypes; use igpp, vpp or sumcount"):
            call()


def test_a_vector_and_its_named_arrays_are_the_same_numbers():
    received, sent = flattened(weights())
    assert len(received) == len(sent) == D
    back = shaped(sent, weights().named)
    assert all(np.array_equal(back[n], a) for n, a in weights().named.items())


# ---------------------------------------------------------------------- level record


def test_the_event_of_private_steps_counts_them():
    mechanism = DpHead(noise_multiplier=1.3, level="record").mechanism(rounds=4)
    assert isinstance(mechanism, PrivateSteps)
    mine = weights()
    mine = replace(mine, named=mine.received)
    event: Event = mechanism.weights_event(mine)
    assert isinstance(event, Repeated)
    assert event.count == 3
    assert isinstance(event.event, SubsampledGaussian)
    assert event.event.noise_multiplier == 1.3
    assert event.event.sampling_rate == 0.25
    assert claim(event, delta=1e-5).covered
    once = mechanism.weights_event(replace(mine, steps=1))
    assert isinstance(once, SubsampledGaussian)
    assert DpHead(noise_multiplier=1.3, level="record", clip_norm=0.5).local == RecordNoise(
        clip_norm=0.5, noise_std=0.65
    )
    replaced = DpHead(noise_multiplier=1.3, level="record", relation=Relation.REPLACE_ANY_LABEL)
    assert replaced.local == RecordNoise(clip_norm=1.0, noise_std=2.6)


# ---------------------------------------------------------------------- from end to end

SETTINGS: dict[str, Any] = {
    "data": {"name": "digits", "domains": ["mnist", "syn", "optdigits"], "per_class": 20},
    "encoder": {"name": "usps_cnn"},
    "model": {"adapter": 3},
    "method": {"name": "fedavg", "training": {"batch_size": 32, "learning_rate": 0.01}},
    "defense": {"name": "dphead", "epsilon": 8.0, "clip_norm": 0.5},
    "rounds": 4,
}


def trained(folder: Path, **changes: Any) -> Path:
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump({**SETTINGS, **changes}, sort_keys=False))
    (run,) = train(load(path), folder / "run", device="cpu")
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("dphead"))


def test_what_each_client_received_is_what_the_server_sent_and_the_change_is_clipped(run):
    opened = Run(run)
    releases = {(r.round, r.client): r for r in opened.transcript().releases}
    hidden = opened.truth().hidden
    assert set(hidden) == {key for key in releases if key[0] > 0}
    names = sorted(opened.transcript().releases[0].payload.tensors())
    for round in range(1, 4):
        mean = np.concatenate(
            [
                np.ravel(np.mean([releases[round - 1, m].payload.tensors()[n] for m in range(3)], axis=0))
                for n in names
            ]
        )
        for m in range(3):
            one = hidden[round, m]
            assert one.received is not None
            np.testing.assert_allclose(one.received, mean, atol=1e-6)
            assert np.linalg.norm(one.means[0] - one.received) <= 0.5 * (1 + 1e-9)


def test_an_audit_covers_the_claim_and_checks_the_noise(run):
    (cell,) = audit(run).cells
    assert cell.promised is not None
    assert cell.promised.claim.covered
    assert cell.promised.claim.epsilon < 8.0  # the first message is of what all began with
    assert cell.verdict is Verdict.INCONCLUSIVE
    assert "no canary stands for a whole client" in cell.reasons[0]
    assert cell.noise is not None
    assert cell.noise.ratio == pytest.approx(1.0, abs=0.05)
    on_weights = [found for found in cell.taken if found.attack in plug.names("attacks.model") and found.auc]
    assert on_weights
    assert all(found.auc_ceiling is not None for found in on_weights)


@pytest.mark.parametrize(
    ("fault", "words"),
    [("noise", "the noise.* of what was claimed"), ("clip", "times as long as its clip is claimed to allow")],
)
def test_half_of_the_noise_and_no_clip_are_violations(fault, words, tmp_path, monkeypatch):
    if fault == "noise":
        honest = ClippedUpdates.noise_std.fget
        assert honest is not None
        monkeypatch.setattr(ClippedUpdates, "noise_std", property(lambda self: honest(self) / 2))
    else:
        monkeypatch.setattr(dphead, "clip_to_ball", lambda rows, norm: rows)
    found = audit(trained(tmp_path, defense={**SETTINGS["defense"], "clip_norm": 0.05}))
    (cell,) = found.cells
    assert cell.verdict is Verdict.VIOLATION
    assert any(np.any([part in reason for part in words.split(".*")]) for reason in cell.reasons)


@pytest.mark.parametrize(
    "method", ["fedprox", "fedrep", "ditto", "fedala", "fedpac", "fedwba", "fedot", "fedavg_head"]
)
def test_every_method_that_sends_weights_is_covered_at_the_level_of_a_client(method, tmp_path):
    settings = {"name": method, "training": {"batch_size": 32, "learning_rate": 0.01}}
    if method == "fedwba":
        settings["particles"] = 2
    path = trained(tmp_path, method=settings, rounds=2)
    opened = Run(path)
    for release in opened.transcript().releases:
        assert isinstance(release.payload, Update)
        free = (
            release.round == 0 and method != "fedpac"
        )  # whose statistics are of records from the first round on
        assert (release.event == Composed(events=())) is free
    (cell,) = audit(path).cells
    assert cell.promised is not None
    assert cell.promised.claim.covered
    assert cell.verdict is Verdict.INCONCLUSIVE


def test_private_steps_are_priced_and_audited(tmp_path):
    defense = {"name": "dphead", "level": "record", "noise_multiplier": 1.0, "clip_norm": 0.5}
    path = trained(
        tmp_path, defense=defense, method={"name": "fedot", "training": {"batch_size": 16}}, rounds=3
    )
    opened = Run(path)
    for release in opened.transcript().releases:
        found = [(leaf, count) for leaf, count in leaves(release.event)]
        if not release.round:
            assert not found
            continue
        ((leaf, count),) = found
        assert isinstance(leaf, SubsampledGaussian)
        assert leaf.sampling_rate == pytest.approx(16 / 60)
        assert count == 2 * 4  # epochs, and batches in one
    (cell,) = audit(path).cells
    assert cell.promised is not None
    assert cell.promised.claim.covered
    assert cell.promised.claim.relation is Relation.ADD_REMOVE
    assert 0 < cell.promised.claim.epsilon < 50


def test_methods_that_read_records_elsewhere_are_refused_at_the_level_of_a_record(tmp_path):
    defense = {"name": "dphead", "level": "record", "noise_multiplier": 1.0}
    for method in ("fedala", "fedpac"):
        with pytest.raises(
            InputError, match=f"method {method} reads records elsewhere too; take level client"
        ):
            trained(tmp_path, defense=defense, method=method)


def test_the_budget_ends_a_run_whose_clients_have_spent_it(tmp_path):
    budget = {"epsilon": 5.0, "on_exhausted": "stop"}
    opened = Run(trained(tmp_path, budget=budget))
    assert opened.ended
    assert 1 < opened.completed < 4


# ---------------------------------------------------------------------- private steps against one client in a loop


def test_private_steps_are_those_of_a_loop_over_records():
    from benchmarks.federation import Engine, Federation
    from privkit.methods.fedavg import FedAvg
    from privkit.personal import PersonalModel
    from privkit.train.by_record import PrivateSteps as Steps

    method = FedAvg.model_validate(
        {
            "training": {
                "epochs": 2,
                "batch_size": 4,
                "optimizer": "sgd",
                "learning_rate": 0.1,
                "weight_decay": 0.0,
            }
        }
    )
    rule = RecordNoise(clip_norm=0.3, noise_std=0.2)
    given = Federation.of([9, 7, 2], dim=6, num_classes=3, model=PersonalModel(adapter=3))
    engine = Engine(given, method, rule=rule)
    engine.train(engine.exchange())
    cohort = engine.fleet.cohort
    private = Steps.of(rule, cohort, 0, method, method.phases[0], skipped=0)
    for g, c in enumerate(cohort.clients):
        p = {n: torch.from_numpy(a).clone() for n, a in given.start.items()}
        noise = Steps.of(rule, cohort, 0, method, method.phases[0], skipped=0).noise[g]
        x, y = torch.from_numpy(c.x), torch.from_numpy(c.y)
        for t in range(2 * -(-len(y) // 4)):
            rows = private.rows[t, g][private.taken[t, g] > 0]
            total = {n: torch.zeros_like(q) for n, q in p.items()}
            for row in rows.tolist():
                live = {n: q.clone().requires_grad_(True) for n, q in p.items()}
                z = x[row] + (x[row] @ live["adapter.down"]).relu() @ live["adapter.up"]
                logits = z @ live["head.weight"] + live["head.bias"]
                torch.nn.functional.cross_entropy(logits[None], y[row][None]).backward()
                slopes = {n: q.grad for n, q in live.items()}
                length = torch.stack([s.norm() for s in slopes.values() if s is not None]).norm()
                for n, s in slopes.items():
                    assert s is not None
                    total[n] += s * min(1.0, 0.3 / float(length))
            for n in engine.fleet.params:
                drawn = torch.from_numpy(noise.standard_normal(p[n].shape)).float()
                total[n] += 0.2 * drawn
            for n in p:
                p[n] -= 0.1 * total[n] / min(4, len(y))
        for n, q in p.items():
            torch.testing.assert_close(engine.fleet.params[n][g], q, rtol=1e-4, atol=1e-5)


def test_samples_are_of_independent_coins():
    from benchmarks.federation import Federation
    from privkit.methods.fedavg import FedAvg
    from privkit.personal import PersonalModel
    from privkit.train.by_record import PrivateSteps as Steps
    from privkit.train.cohort import Cohort

    method = FedAvg.model_validate({"training": {"epochs": 100, "batch_size": 10}})
    given = Federation.of([40], dim=3, num_classes=2, model=PersonalModel(adapter=1))
    cohort = Cohort.stack(given.clients, torch.device("cpu"))
    found = Steps.of(
        RecordNoise(clip_norm=1.0, noise_std=1.0), cohort, 0, method, method.phases[0], skipped=0
    )
    sizes = found.taken[:, 0].sum(1).numpy()
    assert len(sizes) == 400
    assert sizes.mean() == pytest.approx(10, abs=4 * np.sqrt(40 * 0.25 * 0.75 / 400))
    assert sizes.var() == pytest.approx(40 * 0.25 * 0.75, rel=0.35)  # of a binomial; a fixed size has none
    assert float(found.expected[0]) == 10.0
