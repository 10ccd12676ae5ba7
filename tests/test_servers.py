"""Servers: the honest one is the method itself; malicious ones steer, keep their state, and are recorded."""

from pathlib import Path

import numpy as np
import pytest

from attacks._known_noise import prototypes
from privkit import plug
from privkit.config import RunConfig
from privkit.errors import InputError
from privkit.methods._base import AbstractPrototypeMethod
from privkit.methods.fedproto import FedProto
from privkit.release import Prototypes, SumsAndCounts
from privkit.servers._base import AbstractServer
from privkit.servers.honest import HonestServer
from privkit.servers.poisoned_prototypes import PoisonedPrototypes
from privkit.servers.stalling_prototypes import StallingPrototypes
from privkit.store import Run
from privkit.study import Study
from privkit.train.loop import train
from tests import federation

SETTINGS = {
    "data": {"name": "digits", "per_class": 20},
    "encoder": {"name": "usps_cnn"},
    "model": {"adapter": 8},
    "method": {"name": "fedproto", "training": {"epochs": 8, "batch_size": 16, "learning_rate": 0.003}},
    "defense": {"name": "none"},
    "rounds": 8,
}
METHODS = [m for _, m in plug.every("privkit.methods") if issubclass(m, AbstractPrototypeMethod)]
MALICIOUS = [s for _, s in plug.every("privkit.servers") if issubclass(s, AbstractServer) and s.malicious]
DIM, C = 6, 3


def config(**changes) -> RunConfig:
    return RunConfig.from_settings(SETTINGS | changes, where="test")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("servers")
    cells = {
        "honest": config(),
        "named": config(server="honest"),
        "stalling": config(server="stalling_prototypes"),
        **{
            aim: config(server={"name": "poisoned_prototypes", "aim": aim})
            for aim in ("anchored", "orthogonal", "origin")
        },
    }
    train(Study(cells=cells, seeds=1, partial=True), root, device="cpu")
    return root


def means(root: Path, cell: str) -> np.ndarray:
    """Return the mean over clients of every class's prototype after each round, shape [rounds, classes, d]."""
    releases = Run(root / cell / "seed-0").transcript().releases
    rounds = sorted({release.round for release in releases})
    return np.array(
        [np.mean([prototypes(r).vectors for r in releases if r.round == t], axis=0) for t in rounds]
    )


def drift(root: Path, cell: str) -> float:
    """Return how far the classes have moved on average between the first release and the last."""
    found = means(root, cell)
    return float(np.linalg.norm(found[-1] - found[0], axis=1).mean())


# ---------------------------------------------------------------------- what they do to clients


def test_a_stalling_server_leaves_the_encoder_as_it_was_broadcast(trained):
    assert drift(trained, "stalling") < 0.1 * drift(trained, "honest")


def test_an_anchoring_server_holds_classes_where_they_were(trained):
    assert drift(trained, "anchored") < 0.7 * drift(trained, "honest")


def test_classes_are_pulled_towards_mutually_orthogonal_points(trained):
    """After the first answer each class has come nearer to its own point than an honest run's has."""
    aims = Run(trained / "orthogonal" / "seed-0").state(8)["server.poison.aim"]
    assert np.abs(aims @ aims.T - np.diag((aims**2).sum(1))).max() < 1e-5

    def nearness(cell: str) -> np.ndarray:
        found = means(trained, cell)[1]
        return (found * aims).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(aims, axis=1)

    assert (nearness("orthogonal") > nearness("honest")).mean() >= 0.9


def test_classes_are_pulled_to_zero(trained):
    length = {cell: np.linalg.norm(means(trained, cell)[-1], axis=1).mean() for cell in ("origin", "honest")}
    assert length["origin"] < 0.5 * length["honest"]


# ---------------------------------------------------------------------- what is recorded


def test_a_run_says_who_served_it(trained):
    assert "server" not in Run(trained / "honest" / "seed-0").info.config
    assert Run(trained / "named" / "seed-0").info.config["server"] == {"name": "honest"}
    found = Run(trained / "origin" / "seed-0").info.config["server"]
    assert found == {"name": "poisoned_prototypes", "aim": "origin", "gain": 1000.0}


def test_the_honest_server_is_the_default(trained):
    named, default = (Run(trained / cell / "seed-0").state(8) for cell in ("named", "honest"))
    for name, array in default.items():
        np.testing.assert_allclose(array, named[name], atol=1e-4)


def test_a_run_with_another_server_is_not_resumed(trained):
    cells = {"honest": config(server="stalling_prototypes")}
    with pytest.raises(InputError, match="server"):
        train(Study(cells=cells, seeds=1, partial=True), trained, device="cpu")


# ---------------------------------------------------------------------- laws


def uploads(seed: int = 0) -> dict[int, Prototypes]:
    rng = np.random.default_rng(seed)
    return {m: federation.sent({c: rng.standard_normal(DIM) for c in range(C)}) for m in range(2)}


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__module__.rpartition(".")[2])
@pytest.mark.parametrize("server", MALICIOUS, ids=lambda s: s.__name__)
def test_a_malicious_server_answers_what_any_method_expects(method, server):
    # far away enough for a client; a server that trains on what it made up cannot follow much further
    built = method()
    evil = server(distance=10.0) if server is StallingPrototypes else server(gain=10.0)
    state = evil.start(built, dim=DIM, num_classes=C, seed=0)
    honest = built.start(dim=DIM, num_classes=C, seed=0)
    for round in range(3):
        state, honest = evil.merge(built, state, uploads(round)), built.merge(honest, uploads(round))
        told, right = evil.shared(built, state), built.shared(honest)
        assert {n: a.shape[1:] for n, a in told.items()} == {n: a.shape[1:] for n, a in right.items()}
        assert evil.down(built, state, 0).keys() == built.down(honest, 0).keys()
        assert all(np.isfinite(array).all() for array in told.values())
    assert all(isinstance(array, np.ndarray) for array in state.values())


def test_feedback_is_in_proportion_to_the_error():
    server, method = PoisonedPrototypes(aim="anchored", gain=10.0), FedProto()
    state = server.merge(method, server.start(method, dim=DIM, num_classes=C, seed=0), uploads(0))
    first = np.mean([sent.vectors for sent in uploads(0).values()], axis=0)
    np.testing.assert_allclose(server.shared(method, state)["prototypes"], first, rtol=1e-5)
    state = server.merge(method, state, uploads(1))
    now = np.mean([sent.vectors for sent in uploads(1).values()], axis=0)
    expected = now + 10 * (first - now)
    np.testing.assert_allclose(server.shared(method, state)["prototypes"], expected, rtol=1e-4, atol=1e-5)


def test_a_gain_of_one_sends_the_aim_itself():
    server, method = PoisonedPrototypes(aim="orthogonal", gain=1.0), FedProto()
    state = server.start(method, dim=DIM, num_classes=C, seed=0)
    gram = np.zeros((C, C))
    for round in range(2):
        state = server.merge(method, state, uploads(round))
        told = server.shared(method, state)["prototypes"].astype(np.float64)
        gram = told @ told.T
        assert np.abs(gram[~np.eye(C, dtype=bool)]).max() < 1e-5
    first = np.mean([sent.vectors for sent in uploads(0).values()], axis=0)
    np.testing.assert_allclose(np.diag(gram), (first**2).sum(1), rtol=1e-4)


def test_stalling_kicks_there_and_back_and_is_honest_afterwards():
    server, method = StallingPrototypes(distance=50.0), FedProto()
    state = server.start(method, dim=DIM, num_classes=C, seed=0)
    told = []
    for round in range(3):
        state = server.merge(method, state, uploads(round))
        told.append(server.shared(method, state)["prototypes"])
    np.testing.assert_allclose(told[0], -told[1])
    np.testing.assert_allclose(np.linalg.norm(told[0], axis=1), 50.0, rtol=1e-5)
    honest = method.merge(method.start(dim=DIM, num_classes=C, seed=0), uploads(2))["prototypes"]
    np.testing.assert_allclose(told[2], honest)


def test_a_class_that_appears_later_is_anchored_when_it_does():
    server, method = PoisonedPrototypes(aim="anchored", gain=10.0), FedProto()
    state = server.start(method, dim=DIM, num_classes=C, seed=0)
    known = {m: sent.only(sent.labels < 2) for m, sent in uploads(0).items()}
    state = server.merge(method, state, known)
    assert not server.shared(method, state)["present"][2]
    state = server.merge(method, state, uploads(1))
    now = np.mean([sent.vectors for sent in uploads(1).values()], axis=0)
    np.testing.assert_allclose(server.shared(method, state)["prototypes"][2], now[2], rtol=1e-5)


def test_sums_with_noisy_counts_can_be_steered_too():
    sums = SumsAndCounts(
        vectors=np.full((C, DIM), 6.0, np.float32), labels=np.arange(C), totals=np.full(C, 3.0, np.float32)
    )
    server, method = PoisonedPrototypes(), FedProto()
    state = server.merge(method, server.start(method, dim=DIM, num_classes=C, seed=0), {0: sums})
    np.testing.assert_allclose(server.shared(method, state)["prototypes"], 2.0)


def test_more_classes_than_dimensions_still_have_aims():
    server, method = PoisonedPrototypes(aim="orthogonal"), FedProto()
    sent = federation.sent({c: np.ones(2) for c in range(5)})
    state = server.merge(method, server.start(method, dim=2, num_classes=5, seed=0), {0: sent})
    assert np.isfinite(server.shared(method, state)["prototypes"]).all()


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize("server", MALICIOUS, ids=lambda s: s.__name__)
@pytest.mark.parametrize("method", ["fedavg_head", "local_only"])
def test_methods_without_prototypes_cannot_be_steered(server, method):
    name = server.__module__.rpartition(".")[2]
    with pytest.raises(
        InputError, match=f"server {name} answers with prototypes.* take a method such as fedproto"
    ):
        config(server=name, method={"name": method})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("honst", "server 'honst' is unknown; .* Did you mean honest?"),
        ({"name": "poisoned_prototypes", "aim": "moon"}, "aim='moon'"),
        ({"name": "poisoned_prototypes", "gain": 0.5}, "gain=0.5"),
        ({"name": "stalling_prototypes", "distance": 0}, "distance=0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        config(server=settings)


def test_a_resumed_run_with_a_malicious_server_ends_with_the_same_bytes(tmp_path):
    study = Study(cells={"x": config(server="stalling_prototypes", rounds=4)}, seeds=1)
    train(study, tmp_path / "whole", device="cpu")

    def killed(stage: str, done: int, total: int) -> None:
        if stage.startswith("train") and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(study, tmp_path / "cut", device="cpu", progress=killed)
    train(study, tmp_path / "cut", device="cpu")
    whole, cut = Run(tmp_path / "whole"), Run(tmp_path / "cut")
    assert whole.anchor == cut.anchor
    for name, array in whole.state(4).items():
        assert np.array_equal(array, cut.state(4)[name]), name


def test_the_honest_server_takes_prototypes_as_the_method_does():
    method = FedProto(cap=0.5)
    state = HonestServer().start(method, dim=DIM, num_classes=C, seed=0)
    merged = HonestServer().merge(method, state, uploads(0))
    expected = method.merge(state, method.arrived(uploads(0)))
    assert all(np.array_equal(merged[name], expected[name]) for name in expected)
