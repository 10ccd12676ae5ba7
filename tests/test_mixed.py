"""Mixed federations: every client its own architecture, and still one loop, one transcript, the same bytes again."""

import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from privkit.errors import InputError
from privkit.models._base import AbstractEncoder
from privkit.models.usps_cnn import UspsCnn
from privkit.store import Run
from privkit.study import Study, load, merged
from privkit.train.encoded import encode
from privkit.train.loop import train
from tests.test_train import assert_same, kill, needs_fork, tree, uploads

TRAINING = {"batch_size": 12, "learning_rate": 0.01}
PLAIN: dict[str, Any] = {
    "data": {"name": "digits", "per_class": 10},
    "encoder": {"name": "usps_cnn"},
    "method": {"name": "fedproto", "pull": 1.0, "training": TRAINING},
    "defense": {"name": "igpp", "epsilon": 8.0},
    "canaries": {"count": 4},
    "rounds": 2,
}
HEADS = ([512], [512, 256], [512, 256, 128], [1024, 512])
"""The heads of HtC4, over one encoder."""
HTC4 = [{"encoder": "usps_cnn", "model": {"adapter": 8, "hidden": hidden}} for hidden in HEADS]


def projected(seed: int, **encoder: Any) -> dict[str, Any]:
    return {
        "name": "projected",
        "encoder": {"name": "usps_cnn", **encoder},
        "output_dim": 24,
        "seed": seed,
    }


HTFE = [
    {"encoder": projected(0)},
    {"encoder": projected(1), "model": {"adapter": 4, "hidden": [16], "dropout": 0.2}},
    {"encoder": projected(2, normalize=False)},
    {"encoder": projected(3), "model": {"adapter": 3, "inside": True, "dropout": 0.1}},
]
"""Four encoders with a projection of their own each: two share what is trained, one has its adapters inside."""
VPDR = {"name": "vpdr", "epsilon": 8.0, "rule": {"warm_up": 2, "scaled": True}}


@pytest.fixture(scope="module", autouse=True)
def fast_disk() -> Iterator[None]:
    """Wait for no disk: only a power cut needs that, a kill does not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "mixed.yaml"
    path.write_text(yaml.safe_dump(merged(PLAIN, changes), sort_keys=False))
    return path


def study(folder: Path, **changes: Any) -> Study:
    return load(write(folder, **changes))


def trained(folder: Path, **changes: Any) -> Run:
    """Return the one run of some settings."""
    folder.mkdir()
    (path,) = train(study(folder, **changes), folder / "runs", device="cpu")
    return Run(path)


# ---------------------------------------------------------------------- heads of different depth (HtC4)


@pytest.fixture(scope="module")
def htc4(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("heads") / "htc4", mixed=HTC4)


def test_every_client_trains_the_head_of_its_own(htc4):
    state = htc4.state(2)
    for m, hidden in enumerate(HEADS):
        widths = [128, *hidden, 10]
        for layer, shape in enumerate(itertools.pairwise(widths)):
            prefix = f"{m}:params.head.{layer}." if layer else f"{m}:params.head."
            assert state[f"{prefix}weight"].shape == (1, *shape)
        assert f"{m}:params.head.{len(hidden) + 1}.weight" not in state
        assert state[f"{m}:steps.all"].tolist() == [2 * 2 * 3]  # 30 records, 12 at a time, 2 epochs, 2 rounds


def test_all_clients_meet_at_one_server(htc4):
    assert htc4.state(2)["server.holders"].tolist() == [4] * 10
    assert [(t, m) for t, m, _ in uploads(htc4.path)] == [(t, m) for t in range(2) for m in range(4)]
    assert len({payload.vectors.tobytes() for _, _, payload in uploads(htc4.path)}) == 8


def test_a_client_of_a_mixed_federation_is_that_of_a_federation_of_its_own_kind(tmp_path):
    """Where nothing is shared, the others' architectures change nothing."""
    local = {"method": {"name": "local_only", "training": TRAINING}}
    mixed = trained(tmp_path / "mixed", mixed=HTC4, **local).state(2)
    for m, hidden in enumerate(HEADS):
        same = trained(tmp_path / str(m), model={"adapter": 8, "hidden": hidden}, **local).state(2)
        for name, array in same.items():
            if name.startswith(("params.", "first.", "second.", "steps.")):
                np.testing.assert_allclose(mixed[f"{m}:{name}"][0], array[m], atol=1e-6, err_msg=name)
        mine = np.flatnonzero(mixed["metrics.client"] == m)
        assert mixed["metrics.accuracy"][mine].tolist() == pytest.approx(
            same["metrics.accuracy"][same["metrics.client"] == m].tolist()
        )


def test_architectures_are_dealt_out_in_turn(tmp_path):
    state = trained(tmp_path / "two", mixed=HTC4[:2], rounds=1).state(1)
    assert state["0:params.head.weight"].shape == (2, 128, 512)
    assert state["1:params.head.1.weight"].shape == (2, 512, 256)


def test_a_federation_of_one_architecture_is_the_plain_one(tmp_path):
    model = {"adapter": 4, "hidden": [16], "dropout": 0.3}
    plain = trained(tmp_path / "plain", model=model, defense=VPDR)
    mixed = trained(tmp_path / "mixed", mixed=[{"encoder": "usps_cnn", "model": model}] * 3, defense=VPDR)
    one, other = tree(plain.path), tree(mixed.path)
    assert sorted(one) == sorted(other)
    assert {name for name in one if one[name] != other[name]} <= {"run.json"}


# ---------------------------------------------------------------------- encoders behind projections (HtFE)


@pytest.fixture(scope="module")
def htfe(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("encoders") / "htfe", mixed=HTFE, defense=VPDR)


def test_every_client_embeds_by_its_own_encoder(htfe, tmp_path):
    config = study(tmp_path, mixed=HTFE).cells["mixed"]
    domains, records = config.data.load(), htfe.records("records")
    assert records is not None
    for m, domain in enumerate(domains):
        mine = {row.tobytes() for row in records.vectors[records.clients == m]}
        vectors = config.architecture(m).encoder.encode(domain.records)
        assert mine <= {row.tobytes() for row in vectors}
    assert len({htfe.info.data[f"encoder.{i}"] for i in range(4)}) == 4
    assert len({htfe.info.data[f"features.{name}"] for name in htfe.info.clients}) == 4


def test_clients_that_train_the_same_are_one_fleet_whatever_their_encoders(htfe):
    state = htfe.state(2)
    assert state["0:params.head.weight"].shape == (2, 24, 10)  # the first and the third
    assert state["1:params.adapter.down"].shape == (1, 24, 4)
    assert state["2:params.adapter.0.down"].shape == (1, 32, 3)
    assert state["2:params.adapter.1.up"].shape == (1, 3, 64)
    assert not any(name.startswith("3:") for name in state)
    assert {name for name in state if name.startswith("0:rule.")} == {
        "0:rule.head.weight",
        "0:rule.head.bias",
        "0:rule.steps",
    }


def test_what_is_released_depends_on_the_worst_of_the_architectures(tmp_path):
    config = study(tmp_path, mixed=HTFE).cells["mixed"]
    assert config.encoder_depends_on.name == "PRIVATE_STATE"
    frozen = study(tmp_path, mixed=[HTFE[0], HTFE[2]]).cells["mixed"]
    assert frozen.encoder_depends_on.name == "PUBLIC"


def test_data_are_encoded_once_per_encoder(tmp_path):
    config = study(tmp_path, mixed=[HTFE[0], HTFE[2]], data={"domains": ["mnist", "syn"]}).cells["mixed"]
    data = encode(config)
    assert [inputs.pixels is None for inputs in data.own] == [True, True]
    assert data.test == data.own
    assert data.dim == 24


# ---------------------------------------------------------------------- resuming


def test_a_mixed_run_stopped_between_rounds_goes_on_to_the_same_bytes(htfe, tmp_path):
    def stop(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("train", 1):
            raise KeyboardInterrupt

    config = study(tmp_path, mixed=HTFE, defense=VPDR)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "runs", device="cpu", progress=stop)
    assert Run(tmp_path / "runs").completed == 1
    train(config, tmp_path / "runs", device="cpu")
    assert_same(tmp_path / "runs", htfe.path)


MOMENTS = (3, 6, 9, 12, 14)
"""Renames before the kill: a run takes 5 to begin, 5 for a round, and one for its times."""


@needs_fork
def test_a_mixed_training_killed_anywhere_goes_on_to_the_same_bytes(htfe, tmp_path):
    path = write(tmp_path, mixed=HTFE, defense=VPDR)
    at_moments = [(moment, tmp_path / str(moment)) for moment in MOMENTS]
    again = [(12, tmp_path / "again")] * 2
    assert kill(path, *at_moments, *again) == [-9] * len(MOMENTS) + [-9, 0]
    assert_same(tmp_path / "again", htfe.path)
    for moment in MOMENTS:
        train(load(path), tmp_path / str(moment), device="cpu")
        assert_same(tmp_path / str(moment), htfe.path)


def test_a_removed_seed_is_rebuilt_beside_its_sibling(tmp_path):
    config = study(tmp_path, mixed=HTFE, seeds=2)
    train(config, tmp_path / "runs", device="cpu")
    shutil.copytree(tmp_path / "runs", tmp_path / "through")
    shutil.rmtree(tmp_path / "runs" / "mixed" / "seed-1")
    train(config, tmp_path / "runs", device="cpu")
    assert_same(tmp_path / "runs", tmp_path / "through")


def test_another_architecture_is_refused_by_name(htc4, tmp_path):
    root = shutil.copytree(htc4.path, tmp_path / "runs")
    before = tree(root)
    other = [*HTC4[:3], {"encoder": "usps_cnn", "model": {"adapter": 8, "hidden": [1024]}}]
    with pytest.raises(InputError, match=r"was created with another config\.mixed.*use a new --out folder"):
        train(study(tmp_path, mixed=other), root, device="cpu")
    assert tree(root) == before


# ---------------------------------------------------------------------- refusals


class Closed(UspsCnn):
    """An encoder that gives pixels and gradients, and does not open its blocks."""

    def staged(self) -> Any:
        return AbstractEncoder.staged(self)


class Wrong(UspsCnn):
    """An encoder that says it is narrower than it is."""

    @property
    def dim(self) -> int:
        return 64

    @property
    def fingerprint(self) -> str:
        return "0" * 64


def refused(config: Study, root: Path, message: str) -> None:
    """Check that a study is refused in one sentence, and that nothing is written."""
    with pytest.raises(InputError, match=message) as error:
        train(config, root, device="cpu")
    assert "\n" not in str(error.value)
    assert not root.exists()


def test_encoders_of_different_widths_are_refused(tmp_path):
    widths = [{"encoder": "usps_cnn"}, {"encoder": projected(0)}]
    refused(
        study(tmp_path, mixed=widths),
        tmp_path / "runs",
        r"client 0 embeds into 128 numbers \(usps_cnn\) and client 1 into 24 \(projected\); .*output_dim",
    )


def test_adapters_inside_an_encoder_that_is_closed_are_refused(tmp_path):
    config = study(tmp_path, model={"adapter": 2, "inside": True}).cells["mixed"]
    closed = Study(cells={"x": config.model_copy(update={"encoder": Closed()})}, seeds=1)
    refused(
        closed, tmp_path / "runs", "does not open its blocks, so no adapter fits inside; put adapters after"
    )
    mixed = [*HTFE[:2], {"encoder": "usps_cnn", "model": {"adapter": 2, "inside": True}}]
    built = study(tmp_path, mixed=mixed).cells["mixed"]
    assert built.mixed is not None
    odd = (*built.mixed[:2], built.mixed[2].model_copy(update={"encoder": Closed()}))
    closed = Study(cells={"x": built.model_copy(update={"mixed": odd})}, seeds=1)
    refused(closed, tmp_path / "runs", "does not open its blocks")


def test_an_encoder_of_another_width_than_it_says_is_refused(tmp_path):
    config = study(tmp_path).cells["mixed"].model_copy(update={"encoder": Wrong()})
    refused(
        Study(cells={"x": config}, seeds=1),
        tmp_path / "runs",
        r"gave an array of shape \(100, 128\) for 100 records, and says .* into 64 numbers",
    )
