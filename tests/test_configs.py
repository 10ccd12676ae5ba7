"""The studies that come with privkit: what they say they compare, they compare, and their data can be split so."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from privkit import overrides, plug
from privkit.config import RunConfig
from privkit.data._base import Labelled
from privkit.data._skew import Empty, clients_of
from privkit.data._split import divide
from privkit.methods._base import AbstractPrototypeMethod
from privkit.study import Study, load, plans
from privkit.train import study as studies
from privkit.train.encoded import Encoded, Inputs, source

CONFIGS = Path(__file__).parents[1] / "configs"
PAPER = (
    "vpdr-main",
    "pacs",
    "office_caltech",
    "digits5",
    "vpdr-ablation",
    "label-skew",
    "d-r",
    "epsilon",
    "mixed-htfe4",
    "mixed-htc4",
    "text-skew",
    "controls",
)
OFFLINE = ("vpdr-main", "vpdr-ablation", "d-r", "epsilon", "mixed-htfe4", "mixed-htc4", "controls")
FRAMEWORKS = ("fedproto", "fedpcl", "fpl", "fedplvm", "fedtgp", "mpft")


@cache
def study(name: str) -> Study:
    return load(CONFIGS / f"{name}.yaml")


def text(name: str) -> str:
    return (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")


# ---------------------------------------------------------------------- what they say


@pytest.mark.parametrize("name", PAPER)
def test_a_study_begins_with_its_question_and_its_commands(name: str) -> None:
    head = text(name).split("\nrounds:")[0]
    assert all(line.startswith("#") for line in head.splitlines() if line)
    assert "?" in head.split("#   privkit")[0]
    assert f"#   privkit train configs/{name}.yaml" in head
    assert f"#   privkit table utility runs/{name}" in head
    assert [line for line in text(name).splitlines() if len(line) > 120] == []


@pytest.mark.parametrize("name", PAPER)
def test_patterns_of_cells_in_comments_choose_some(name: str) -> None:
    for pattern in re.findall(r"--cells '([^']+)'", text(name)):
        assert overrides.only(study(name), [pattern]).partial


@pytest.mark.parametrize("name", PAPER)
def test_a_study_has_five_seeds_and_no_cell_twice(name: str) -> None:
    assert study(name).seeds >= 5
    settings = [str(config.settings()) for config in study(name).cells.values()]
    assert len(set(settings)) == len(settings)


# ---------------------------------------------------------------------- the paper's settings


@pytest.mark.parametrize("name", PAPER)
def test_every_cell_has_the_papers_settings(name: str) -> None:
    for config in study(name).cells.values():
        refuse_other_settings(config)


def refuse_other_settings(config: RunConfig) -> None:
    training = config.method.training
    assert (config.rounds, training.epochs, training.batch_size) == (20, 2, 256)
    assert (training.learning_rate, training.weight_decay) == (1e-3, 5e-4)
    for one in config.architectures:
        assert one.model.dropout == 0.1
        assert one.model.hidden
    settings = config.defense.settings()
    if "rule" in settings and settings["name"] == "vpdr":
        rule = settings["rule"]
        assert rule["radius"] == settings["clip_norm"]
        assert [rule[k] for k in ("softness", "momentum", "temperature", "weight")] == [
            0.05,
            0.999,
            4.0,
            0.05,
        ]
    if "rho" in settings:
        assert settings["rho"] == 0.2
        assert settings["delta"] == 1e-5
    if settings.get("partition", {}).get("name") == "laplace":
        assert settings["partition"]["score_bound"] == 0.1


@pytest.mark.parametrize("name", ["vpdr-main", "pacs", "office_caltech", "digits5"])
def test_main_studies_have_every_framework_under_every_defense_and_one_that_trains_alone(name: str) -> None:
    found = {(c.data.name, c.method.name, c.defense.name) for c in study(name).cells.values()}
    for data in {data for data, _, _ in found}:
        for framework in FRAMEWORKS:
            assert {d for x, m, d in found if (x, m) == (data, framework)} >= {"none", "igpp", "vpp", "vpdr"}
        assert "none" in {d for x, m, d in found if (x, m) == (data, "local_only")}
    if name == "vpdr-main":
        assert {data for data, _, _ in found} == {"digits", "objects"}
        assert any(one.model.inside for c in study(name).cells.values() for one in c.architectures)


def test_studies_vary_what_they_say_they_vary() -> None:
    alphas = {
        c.data.settings()["alpha"] for n in ("label-skew", "text-skew") for c in study(n).cells.values()
    }
    assert alphas == {0.1, 0.5, 1.0, 5.0, 10.0}
    assert {c.encoder.dim for c in study("d-r").cells.values()} == {256, 512, 1024}
    splits = {c.defense.settings().get("partition", {}).get("split") for c in study("d-r").cells.values()}
    assert splits == {None, 0.05, 0.1, 0.2}
    epsilons = {c.defense.settings().get("epsilon") for c in study("epsilon").cells.values()}
    assert epsilons == {None, 1.0, 2.0, 4.0, 8.0}
    partitions = {
        c.defense.settings().get("partition", {}).get("name") for c in study("controls").cells.values()
    }
    assert partitions == {None, "laplace", "random", "history", "public", "oracle"}


def test_controls_isolate_one_thing_each() -> None:
    cells = study("controls").cells
    for data, norm in (("digits", 1.0), ("objects", 5.0)):
        for framework in FRAMEWORKS[: 6 if data == "digits" else 5]:
            igpp, less, capped = (cells[f"{data}-{framework}-igpp{x}"] for x in ("", "-eps2", "-cap"))
            assert less.defense.settings() == {**igpp.defense.settings(), "epsilon": 0.9}
            assert capped.defense == igpp.defense
            assert isinstance(capped.method, AbstractPrototypeMethod)
            assert capped.method.cap == norm
            assert capped.method.model_copy(update={"cap": None}) == igpp.method


def test_mixtures_are_four_backbones_or_four_heads() -> None:
    (htfe4,), (htc4,) = (
        {tuple(str(one.encoder.settings()) for one in c.architectures) for c in study(n).cells.values()}
        for n in ("mixed-htfe4", "mixed-htc4")
    )
    assert len(set(htfe4)) == len(set(htc4)) == 4
    heads = {one.model.hidden for c in study("mixed-htc4").cells.values() for one in c.architectures}
    assert heads == {(512,), (512, 256), (512, 256, 128), (1024, 512)}
    for name in ("mixed-htfe4", "mixed-htc4"):
        for c in study(name).cells.values():
            seeds = [one.encoder.settings()["seed"] for one in c.architectures]
            assert len(set(seeds)) == 4
            assert {one.encoder.dim for one in c.architectures} == {512}


# ---------------------------------------------------------------------- they can be had


@pytest.mark.parametrize("name", PAPER)
def test_every_cell_is_calibrated_and_built_again_from_its_settings(name: str) -> None:
    defenses = {str(c.defense.settings()): c for c in study(name).cells.values()}
    for config in defenses.values():
        config.defense.mechanism(rounds=config.rounds)
    for config in study(name).cells.values():
        assert RunConfig.from_settings(config.settings(), where="here") == config
        for part in (config.data, config.encoder, config.method, config.defense):
            assert isinstance(part, plug.Plugin)


@pytest.mark.parametrize("name", OFFLINE)
def test_offline_data_can_be_split_and_released_as_a_study_asks(name: str) -> None:
    """Features are noise here: what is refused depends on how many records of a class there are."""
    encoded: dict[str, Encoded] = {}
    for plan in plans(replace(study(name), seeds=1)):
        key = source(plan.config)
        encoded[key] = encoded.get(key) or blank(plan.config)
        studies.refuse_impossible(plan, encoded[key])


def blank(config: RunConfig) -> Encoded:
    rng, domains = np.random.default_rng(0), config.data.load()
    own = tuple(Inputs(rng.standard_normal((len(d.labels), 10), np.float32), d.labels) for d in domains)
    return Encoded(
        names=tuple(d.name for d in domains),
        own=own,
        test=own,
        things=tuple(d.things for d in domains),
        num_classes=config.data.num_classes,
        hashes={},
    )


# per class, in the order of the published domain totals 958, 1123, 157 and 295
OFFICE = {
    "amazon": (92, 82, 94, 99, 100, 100, 99, 100, 94, 98),
    "caltech": (151, 110, 100, 138, 85, 128, 133, 94, 87, 97),
    "dslr": (12, 21, 12, 13, 10, 24, 22, 12, 8, 23),
    "webcam": (29, 21, 31, 27, 27, 30, 43, 30, 27, 30),
}
KEPT = {"amazon": 230, "caltech": 269, "dslr": 37, "webcam": 70}


@pytest.mark.parametrize("domain", OFFICE)
def test_the_smallest_published_classes_are_split_and_members_are_as_many_as_in_the_paper(
    domain: str,
) -> None:
    config = study("office_caltech").cells["fedproto-igpp"]
    labels = np.repeat(np.arange(10), OFFICE[domain])
    parts = divide(labels, num_classes=10, shares=config.split.shares, seed=0, client=0, name=domain)
    members = np.bincount(labels[parts.members], minlength=10)
    assert members.min() >= config.defense.settings()["smallest_class"]
    assert len(parts.members) == len(parts.non_members)
    assert KEPT[domain] - 10 <= len(parts.members) <= KEPT[domain]
    assert np.bincount(labels[parts.test], minlength=10).min() >= 1


def test_digits_train_on_a_tenth_of_the_official_parts() -> None:
    config = study("digits5").cells["fedproto-igpp"]
    kept = config.data.settings()["keep"]
    assert kept * config.split.pool / 2 == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["label-skew", "text-skew"])
def test_every_client_of_a_skewed_study_has_two_classes_that_can_be_split(name: str) -> None:
    """Only the number of records per class decides who gets how many."""
    drawn = {str(c.data.settings()): c for c in study(name).cells.values()}
    assert len(drawn) == 10
    for config in drawn.values():
        settings, classes = config.data.settings(), config.data.num_classes
        each = settings.get("per_class") or (800 // classes - settings["test_per_class"])
        wanted = {key: settings[key] for key in ("clients", "alpha")}
        labels = np.repeat(np.arange(classes), each)
        test = Labelled(np.zeros((1, 1), np.uint8), np.zeros(1, np.int64))
        train = Labelled(np.zeros((len(labels), 1), np.uint8), labels)
        clients = clients_of(train, test, **wanted, seed=settings["partition_seed"], empty=Empty.REFUSE)
        for client in clients:
            parts = divide(client.labels, num_classes=classes, shares=config.split.shares, seed=0, client=0,
                           name=client.name, tests=labels)  # fmt: skip
            assert len(np.unique(client.labels[parts.members])) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vpdr-main", "controls", "epsilon", "vpdr-ablation"])
def test_digits_of_a_study_are_trained(name: str, tmp_path: Path) -> None:
    from privkit.train.loop import train

    part = overrides.only(study(name), ["digits-*"])
    short = {cell: config.model_copy(update={"rounds": 1}) for cell, config in part.cells.items()}
    paths = train(replace(part, cells=short, seeds=1), tmp_path, device="cpu")
    assert len(paths) == len(short)
    assert all((path / "metrics.parquet").exists() for path in paths)
