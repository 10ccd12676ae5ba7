"""FedOT and its kin: what is sent, what is averaged, what is tested, and a domain that nobody trains on."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from privkit import measured, plug
from privkit.cayley import cayley
from privkit.config import RunConfig
from privkit.errors import InputError
from privkit.methods._weights import AbstractAverageOfWeights
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.release import Update
from privkit.store import Run
from privkit.study import Plan, load
from privkit.train import study as studies
from privkit.train.encoded import Encoded, Inputs, encode
from privkit.train.fleets import fleets
from privkit.train.loop import train

ROTATION = {"transform": {"name": "rotation", "blocks": 4}, "temperature": 10.0}
SETTINGS: dict[str, Any] = {
    "data": {"name": "digits", "per_class": 10},
    "encoder": {"name": "usps_cnn"},
    "model": ROTATION,
    "method": {"name": "fedot", "training": {"batch_size": 12, "learning_rate": 0.01}},
    "defense": {"name": "none"},
    "held_out": "syn",
    "rounds": 3,
}
CPU = torch.device("cpu")


def trained(folder: Path, **changes: Any) -> list[Path]:
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump({**SETTINGS, **changes}, sort_keys=False))
    return train(load(path), folder / "run", device="cpu")


def built(name: str, **settings: Any) -> AbstractAverageOfWeights:
    found = plug.build("privkit.methods", {"name": name, **settings})
    assert isinstance(found, AbstractAverageOfWeights)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    (path,) = trained(tmp_path_factory.mktemp("fedot"))
    return Run(path)


def uploads(run: Run, round: int) -> list[Update]:
    found = [r.payload for r in run.transcript().releases if r.round == round]
    assert all(isinstance(sent, Update) for sent in found)
    return found  # type: ignore[return-value]


# ---------------------------------------------------------------------- what is sent and averaged


def test_a_client_sends_its_head_and_nothing_else(run):
    for round in range(3):
        for sent in uploads(run, round):
            assert {name: a.shape for name, a in sent.named.items()} == {"head.vectors": (run.info.dim, 10)}
            assert sent.nbytes == 4 * 10 * run.info.dim
    assert {s.digest() for s in uploads(run, 0)} == {uploads(run, 0)[0].digest()}
    assert len({s.digest() for s in uploads(run, 2)}) == 3


def test_rotations_are_trained_and_stay_with_their_clients_and_orthogonal(run):
    x = run.state(3)["params.transform.x"]
    width = run.info.dim // 4
    assert x.shape == (3, 4, width, width)
    q = cayley(torch.from_numpy(x))
    assert (q.mT @ q - torch.eye(width)).abs().max() < 1e-5
    assert ((q - torch.eye(width)).abs().amax((1, 2, 3)) > 1e-3).all()


def test_the_mean_of_heads_is_not_weighted_by_records():
    values = {0: 0.0, 1: 1.0, 2: 5.0}
    update = {
        m: Update(named={"head.vectors": np.full((2, 2), v, np.float32)}, means="weights")
        for m, v in values.items()
    }
    assert (built("fedot").merge({}, update)["head.vectors"] == 2.0).all()


@pytest.mark.parametrize(
    ("method", "sent"),
    [
        (built("fedot"), {"head.vectors"}),
        (built("fedot", maps="averaged"), {"head.vectors", "transform.x"}),
        (built("fedclip"), {"transform.x"}),
    ],
    ids=["fedot", "all global", "fedclip"],
)
def test_what_is_averaged_is_said_by_the_method(method, sent):
    start = Network(PersonalModel.model_validate(ROTATION)).start(dim=8, num_classes=3, seed=0)
    assert {name for name in start if method.sends_weight(name)} == sent


def test_averaged_maps_are_rotations_although_means_of_rotations_are_not(tmp_path):
    """All Global: what is averaged are the matrices that rotations are made of."""
    (path,) = trained(tmp_path, method={**SETTINGS["method"], "maps": "averaged"})
    last = [torch.from_numpy(u.named["transform.x"].copy()) for u in uploads(Run(path), 2)]
    mean = torch.stack(last).mean(0)
    q = cayley(mean)
    assert (q.mT @ q - torch.eye(q.shape[-1])).abs().max() < 1e-5
    of_rotations = torch.stack([cayley(x) for x in last]).mean(0)
    assert (of_rotations.mT @ of_rotations - torch.eye(q.shape[-1])).abs().max() > 1e-4


def test_fedclip_leaves_the_head_as_it_began(tmp_path):
    (path,) = trained(
        tmp_path,
        model={"transform": "gate", "temperature": 10.0, "first_head": "records"},
        method={**SETTINGS["method"], "name": "fedclip"},
    )
    run = Run(path)
    head = run.state(3)["params.head.vectors"]
    assert (head == run.state(2)["params.head.vectors"]).all()
    assert (head == head[:1]).all()
    np.testing.assert_allclose(np.linalg.norm(head[0], axis=0), 1.0, rtol=1e-5)
    before, after = (run.state(round)["params.transform.first.weight"] for round in (2, 3))
    assert not np.array_equal(before, after)


def test_as_many_blocks_as_coordinates_are_federated_averaging_of_a_head(tmp_path):
    """P3."""
    dim, found = 64, []
    projected = {"name": "projected", "output_dim": dim, "encoder": "usps_cnn"}
    for name, model in (
        ("blocks", {"transform": {"name": "rotation", "blocks": dim}, "temperature": 10.0}),
        ("none", {"temperature": 10.0}),
    ):
        (tmp_path / name).mkdir()
        (path,) = trained(tmp_path / name, model=model, encoder=projected)
        found.append(Run(path).state(3)["params.head.vectors"])
    np.testing.assert_allclose(*found, rtol=0, atol=2e-6)


# ---------------------------------------------------------------------- what is tested


def accuracy(run: Run, round: int) -> dict[str, float]:
    rows = pq.read_table(run.path / "metrics.parquet").to_pylist()
    return {row["domain"]: row["accuracy"] for row in rows if row["round"] == round}


def oracle(data: Encoded, one: RunConfig, name: str, x: np.ndarray | None, head: np.ndarray) -> float:
    """Return the accuracy of a head behind a rotation (or none) on a domain's test records, with numpy alone."""
    assert data.whole is not None
    m = data.whole.names.index(name)
    part = studies.parts(_plan(one), data.whole)[m]
    h = data.whole.test[m].x[part.test].astype(np.float64)
    if x is not None:
        r = (x - x.transpose(0, 2, 1)) / 2
        eye = np.eye(x.shape[-1])
        q = (eye + r) @ np.linalg.inv(eye - r)
        h = np.concatenate([h_nb @ q_bb.T for h_nb, q_bb in zip(np.split(h, len(x), 1), q, strict=True)], 1)
    return float(((h @ head).argmax(1) == data.whole.test[m].y[part.test]).mean())


def test_clients_are_tested_by_what_arrived_behind_their_own_map_and_newcomers_behind_none(tmp_path):
    one = config(model={**ROTATION, "first_head": "records"})
    (path,) = trained(tmp_path, model=one.model.model_dump(mode="json"))
    run, data = Run(path), encode(one)
    last = np.stack([u.named["head.vectors"] for u in uploads(run, 2)]).astype(np.float64).mean(0)
    rotations = run.state(2)["params.transform.x"].astype(np.float64)
    wanted = {name: oracle(data, one, name, rotations[m], last) for m, name in enumerate(run.info.clients)}
    wanted["syn"] = oracle(data, one, "syn", None, last)
    assert accuracy(run, 2) == pytest.approx(wanted)
    first = uploads(run, 0)[0].named["head.vectors"]
    assert accuracy(run, 0) == pytest.approx({name: oracle(data, one, name, None, first) for name in wanted})


def test_the_first_round_is_zero_shot_by_public_class_means(tmp_path):
    (path,) = trained(tmp_path, model={**ROTATION, "first_head": "records"}, rounds=1)
    run = Run(path)
    assert min(accuracy(run, 0).values()) > 0.3


def test_a_newcomers_accuracy_is_apart_from_the_clients(run):
    (found,) = measured.of_cell("run", [run])
    assert set(found.last) == {"mnist", "optdigits", "pendigits"} == set(run.info.clients)
    assert len(found.newcomers) == 3
    assert found.newcomers[-1] == accuracy(run, 2)["syn"]


def test_methods_without_a_model_for_newcomers_have_no_accuracy_of_them(tmp_path):
    (path,) = trained(tmp_path, method={**SETTINGS["method"], "name": "local_only"})
    (found,) = measured.of_cell("run", [Run(path)])
    assert set(found.last) == {"mnist", "optdigits", "pendigits"}
    assert found.newcomers == ()


def test_a_run_that_is_taken_up_again_keeps_what_newcomers_had(tmp_path, monkeypatch):
    (whole,) = trained(tmp_path)
    (tmp_path / "cut").mkdir()

    class Cut(Exception):  # noqa: N818
        pass

    commit = Run.commit

    def cut(self: Run, round: int, *args: Any, **kwargs: Any) -> None:
        commit(self, round, *args, **kwargs)
        if round == 1:
            raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(Run, "commit", cut)
        with pytest.raises(Cut):
            trained(tmp_path / "cut")
    (again,) = trained(tmp_path / "cut")
    for name in ("metrics.parquet", "ledger.jsonl"):
        assert (again / name).read_bytes() == (whole / name).read_bytes()


# ---------------------------------------------------------------------- who is held out


def config(**changes: Any) -> RunConfig:
    return RunConfig.from_settings({**SETTINGS, **changes}, where="here")


def test_holding_out_a_domain_changes_no_other_domains_split():
    whole = config(held_out=None)
    data = encode(whole)
    every = studies.parts(_plan(whole), data)
    for name in data.names:
        one = config(held_out=name)
        found = studies.parts(_plan(one), encode(one))
        rest = [part for part, other in zip(every, data.names, strict=True) if other != name]
        for a, b in zip(found, rest, strict=True):
            assert np.array_equal(a.members, b.members)
            assert np.array_equal(a.test, b.test)


def _plan(one: RunConfig) -> Plan:
    return Plan(name="run/seed-0", cell="run", seed=0, config=one)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"held_out": "svhn"}, "known are mnist, optdigits, pendigits, syn"),
        ({"data": {"name": "digits", "domains": ["syn"], "per_class": 10}}, "the only domain"),
    ],
)
def test_a_domain_that_cannot_be_held_out_is_refused(changes, said):
    with pytest.raises(InputError, match=said):
        encode(config(**changes))


def test_a_newcomer_of_a_mixed_federation_is_refused():
    one = {"encoder": "usps_cnn", "model": {}}
    with pytest.raises(InputError, match="newcomer has no architecture"):
        config(mixed=[one])


def made(labels: list[np.ndarray], held_out: str) -> Encoded:
    rng = np.random.default_rng(0)
    own = tuple(Inputs(rng.standard_normal((len(y), 8), np.float32), y) for y in labels)
    names = tuple(f"d{m}" for m in range(len(labels)))
    whole = Encoded(names=names, own=own, test=own, things=(None,) * len(names), num_classes=3, hashes={})
    return whole.without(held_out)


def test_a_domain_with_classes_that_nobody_trains_on_is_refused():
    two, three = np.repeat([0, 1], 10), np.repeat([0, 1, 2], 10)
    with pytest.raises(InputError, match="class 2 of domain d1, which is held out"):
        studies.refuse_impossible(_plan(config()), made([two, three], "d1"))
    assert len(studies.held_out(_plan(config()), made([two, three], "d0")).test)


# ---------------------------------------------------------------------- what the head begins as


def test_a_head_of_records_is_the_mean_direction_of_public_ones():
    one = config(model={**ROTATION, "first_head": "records"})
    data, plan = encode(one), _plan(one)
    (fleet,) = fleets([plan], data, CPU)
    split = studies.parts(plan, data)
    x = np.concatenate([data.x[m][p.reference] for m, p in enumerate(split)]).astype(np.float64)
    y = np.concatenate([data.y[m][p.reference] for m, p in enumerate(split)])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for c in range(10):
        mean = x[y == c].mean(0)
        np.testing.assert_allclose(
            fleet.params["head.vectors"][0, :, c], mean / np.linalg.norm(mean), atol=1e-6
        )


def test_a_head_of_records_needs_public_records_of_every_class():
    one = config(model={**ROTATION, "first_head": "records"}, split={"reference": 0.0})
    with pytest.raises(InputError, match=r"no public record of class 0; raise split\.reference"):
        studies.refuse_impossible(_plan(one), encode(one))


@pytest.mark.parametrize(
    ("sentences", "said"), [(["one", "two"], "2 sentences for 10 classes"), (["a digit"] * 10, "images")]
)
def test_a_head_of_sentences_needs_one_for_each_class_and_an_encoder_that_reads_them(sentences, said):
    one = config(model={**ROTATION, "first_head": sentences})
    with pytest.raises(InputError, match=said):
        studies.refuse_impossible(_plan(one), encode(one))


def test_a_head_of_sentences_is_their_embedding():
    from privkit.data.vader import Vader

    one = config(
        data={"name": "vader", "classes": 2, "clients": 2, "alpha": 100.0, "test_per_class": 40},
        encoder="minilm",
        held_out=None,
        model={**ROTATION, "first_head": ["It was terrible.", "It was wonderful."]},
    )
    assert isinstance(one.data, Vader)
    data, plan = encode(one), _plan(one)
    (fleet,) = fleets([plan], data, CPU)
    wanted = one.encoder.encode(np.array(["It was terrible.", "It was wonderful."]))
    found = fleet.params["head.vectors"][0].numpy().T
    np.testing.assert_allclose(found, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-6)
    accuracy = ((data.test[0].x @ found.T).argmax(1) == data.test[0].y).mean()
    assert accuracy > 0.65


def test_blocks_that_do_not_divide_embeddings_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="do not divide embeddings of width"):
        trained(tmp_path, model={"transform": {"name": "rotation", "blocks": 7}}, method="local_only")
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------------- audits, and the published study


def test_an_audit_says_that_nothing_is_promised_and_what_attacks_on_heads_and_steps_take_for_the_map(run):
    from privkit.audit.run import audit
    from reports.findings import Verdict

    found = audit(run.path)
    assert found.failed == ()
    assert found.verdict is Verdict.NOT_COVERED
    rows = {row.attack: row for row in found.cells[0].taken}
    for name in ("loss", "rmia", "projres", "matched_filter"):
        assert rows[name].auc is not None
        assert (
            "the client's rotation in 4 blocks is not sent; scored as if it were the identity"
            in rows[name].knows
        )


def test_the_study_has_every_method_on_every_domain_held_out():
    cells = load(Path(__file__).parent.parent / "configs" / "fedot.yaml").cells
    assert len(cells) == 2 * 11 * 4
    for name, one in cells.items():
        visible = one.rounds - 1 if one.method.tests_arrivals else one.rounds
        assert visible == (0 if "zero-shot" in name else 30)
        assert one.model.temperature == 30
        assert name.endswith(f"-{one.held_out}")
    blocks = {one.model.transform.settings().get("blocks") for one in cells.values() if one.model.transform}
    assert blocks == {1, 4, 8, None}
