"""FedAvg of the head: what is sent, what arrives, and what an audit can say about it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from typer.testing import CliRunner

from privkit import plug
from privkit.audit.run import audit
from privkit.cli.app import app
from privkit.errors import InputError
from privkit.methods._down import Down
from privkit.methods.fedavg_head import FedAvgHead
from privkit.methods.local_only import LocalOnly
from privkit.release import Update
from privkit.store import Run
from privkit.study import load
from privkit.train.loop import train
from reports.findings import Verdict
from tests import federation
from tests.federation import NETWORK, B, C, D, G

SETTINGS: dict[str, Any] = {
    "data": {"name": "digits", "domains": ["mnist", "syn"], "per_class": 10},
    "encoder": {"name": "usps_cnn"},
    "model": {"adapter": 3},
    "method": {"name": "fedavg_head", "training": {"batch_size": 12, "learning_rate": 0.01}},
    "defense": {"name": "none"},
    "canaries": {"count": 4},
    "rounds": 3,
}


def trained(folder: Path, **changes: Any) -> Path:
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump({**SETTINGS, **changes}, sort_keys=False))
    (run,) = train(load(path), folder / "run", device="cpu")
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("fedavg"))


def update(value: float, **shapes: tuple[int, ...]) -> Update:
    named = {n: np.full(s, value, dtype=np.float32) for n, s in (shapes or {"head.weight": (D, C)}).items()}
    return Update(named=named, means="weights")


# ---------------------------------------------------------------------- the server and the clients


def test_server_takes_the_plain_mean_of_every_parameter():
    method = FedAvgHead()
    found = method.shared(method.merge({}, {4: update(1.0), 0: update(2.0), 2: update(6.0)}))
    assert {name: (a.shape, a.dtype) for name, a in found.items()} == {"head.weight": ((D, C), np.float32)}
    assert (found["head.weight"] == 3.0).all()


HEAD = {"head.weight": (D, C)}
ADAPTER = {"adapter.down": (D, 2), "adapter.up": (2, D)}


@pytest.mark.parametrize("adapters", [False, True])
@pytest.mark.parametrize(
    "other", [{"head.weight": (D, C + 1)}, {"head.bias": (C,)}, {**ADAPTER, "head.weight": (D, 9)}]
)
def test_heads_of_different_models_have_no_mean_with_or_without_adapters(other, adapters):
    with pytest.raises(
        InputError, match=r"client 3 sent head\.\* of other names or shapes than client 0"
    ) as error:
        FedAvgHead(adapters=adapters).merge({}, {3: update(1.0, **other), 0: update(1.0, **HEAD)})
    assert "give all clients heads of one shape (model.hidden)" in str(error.value)
    assert "method.adapters" not in str(error.value)


@pytest.mark.parametrize("other", [HEAD, {**HEAD, "adapter.down": (D, 3), "adapter.up": (3, D)}])
def test_adapters_of_different_models_have_no_mean_and_may_be_left_out(other):
    uploads = {3: update(1.0, **other), 0: update(1.0, **HEAD, **ADAPTER)}
    with pytest.raises(
        InputError,
        match=r"client 3 sent adapter\.\* of .* adapters of one shape, or set method.adapters to false",
    ):
        FedAvgHead(adapters=True).merge({}, uploads)


@pytest.mark.parametrize(("adapters", "sent"), [(False, {"head"}), (True, {"head", "adapter"})])
def test_each_client_takes_the_mean_in_place(adapters, sent):
    method = FedAvgHead(adapters=adapters)
    down = federation.answers(method, federation.states(method))
    own = federation.params()
    before, same = {n: p.clone() for n, p in own.items()}, dict(own)
    method.receive(own, down)
    for name, p in own.items():
        assert p is same[name]
        arrived = name.partition(".")[0] in sent
        assert torch.equal(p, down[name] if arrived else before[name])
        assert method.sends_weight(name) is arrived


def test_prediction_uses_the_mean_or_the_clients_own():
    method = FedAvgHead()
    down = federation.answers(method, federation.states(method))
    own, x = federation.params(), federation.batch().x
    shared = method.logits(NETWORK, own, x, down, {})
    personal = FedAvgHead(personal=True).logits(NETWORK, own, x, down, {})
    for g in range(G):
        p = federation.of(g, own)
        u = federation.embedded(p, x[g].numpy())
        np.testing.assert_allclose(personal[g].numpy(), federation.head(p, u), rtol=1e-10)
        mean = {n: down.shared[n][down.run_G[g]].numpy() for n in ("head.weight", "head.bias")}
        np.testing.assert_allclose(shared[g].numpy(), federation.head({**p, **mean}, u), rtol=1e-10)
    assert shared.shape == (G, B, C)


def test_clients_train_as_alone():
    method = FedAvgHead()
    down = federation.answers(method, federation.states(method))
    own, records = federation.params(), federation.batch()
    nothing = Down(each={}, shared={}, run_G=down.run_G)
    assert torch.equal(
        federation.loss_of(method, own, records, down), federation.loss_of(LocalOnly(), own, records, nothing)
    )


# ---------------------------------------------------------------------- a run


def test_the_first_message_is_the_initial_head_and_the_next_is_what_was_trained(run):
    sent = {(r.round, r.client): r.payload for r in Run(run).transcript().releases}
    assert len(sent) == 6
    for payload in sent.values():
        assert isinstance(payload, Update)
        assert payload.means == "weights"
        assert sorted(payload.named) == ["head.bias", "head.weight"]
    assert sent[0, 0].digest() == sent[0, 1].digest()
    state = Run(run).state(2)
    for client in (0, 1):
        last = sent[2, client]
        assert isinstance(last, Update)
        for name, array in last.named.items():
            assert np.array_equal(array, state[f"params.{name}"][client])
    assert sent[1, 0].digest() != sent[1, 1].digest()


def test_the_server_keeps_the_mean_of_what_was_sent(run):
    releases = [r for r in Run(run).transcript().releases if r.round == 2]
    mean = np.mean([r.payload.tensors()["weights.head.weight"] for r in releases], axis=0)
    np.testing.assert_allclose(Run(run).state(3)["server.head.weight"], mean, atol=1e-7)


def test_averaging_learns(run, tmp_path):
    rows = pq.read_table(run / "metrics.parquet").to_pylist()
    by_round = [np.mean([row["accuracy"] for row in rows if row["round"] == t]) for t in range(3)]
    assert (
        by_round[0] < 0.3 < by_round[2]
    )  # a round's test is of the mean that arrived, the first of which is untrained
    personal = trained(tmp_path, method={**SETTINGS["method"], "personal": True}, rounds=1)
    rows = pq.read_table(personal / "metrics.parquet").to_pylist()
    assert np.mean([row["accuracy"] for row in rows]) > by_round[0]


def test_adapters_are_sent_where_asked(tmp_path):
    found = trained(tmp_path, method={**SETTINGS["method"], "adapters": True}, rounds=2)
    for release in Run(found).transcript().releases:
        assert isinstance(release.payload, Update)
        assert sorted(release.payload.named) == ["adapter.down", "adapter.up", "head.bias", "head.weight"]


def test_an_audit_covers_nothing_attacks_the_weights_and_says_why_attacks_on_prototypes_have_no_number(run):
    (cell,) = audit(run).cells
    assert cell.verdict is Verdict.NOT_COVERED
    assert cell.reasons == ("nothing was promised",)
    on_weights, on_steps = plug.names("attacks.model"), set(plug.names("attacks.gradient"))
    instead = "clients sent trained weights, not prototypes"
    of_no_step = {
        "gradient_difference",
        "projres_as_coded",
    }  # its length is not a gradient's; there is no adapter
    numbers = {found.attack for found in cell.taken if found.auc is not None}
    assert set(on_weights) | on_steps - of_no_step - {"fedmia"} <= numbers <= {*on_weights, *on_steps}
    for found in cell.taken:
        if found.attack in {*on_weights, *on_steps}:
            assert found.auc_ceiling is None
            assert found.auc is not None or found.reason
            assert not found.by_round or found.by_round[0] is None  # the head that all begin with
            continue
        assert found.auc is None
        assert found.reason == (
            f"canaries do not apply: {instead}" if found.attack == "antipodal" else instead
        )
    assert {found.reason for found in cell.inversions} == {instead}
    assert cell.cost.bytes_per_round == 4 * (128 * 10 + 10)


def test_the_command_line_audits_it(run):
    done = CliRunner().invoke(app, ["audit", "--run", str(run)])
    assert done.exit_code == 0
    assert "NOT COVERED" in done.output


PROTECTING = [
    name
    for name, defense in plug.every("privkit.defenses")
    if "epsilon" in defense.model_fields and name != "dphead"  # which protects weights
]


@pytest.mark.parametrize("name", PROTECTING)
def test_any_defense_of_prototypes_is_refused_before_anything_is_written(name, tmp_path):
    with pytest.raises(
        InputError, match=r"protects prototypes, and the method sends trained weights; use defense none"
    ):
        trained(tmp_path, defense={"name": name, "epsilon": 8.0})
    assert not (tmp_path / "run").exists()


def test_several_defenses_are_refused():
    assert {"igpp", "vpp", "vpdr", "sumcount"} <= set(PROTECTING)
