"""What to cite: every plug-in's keys are known, and every entry is BibTeX."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from privkit import cite, plug
from privkit.cli import main
from privkit.config import RunConfig
from privkit.manifest import Manifest, RunInfo
from privkit.plug import Plugin

PLUGINS = list(cite.every_plugin())


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.__module__)
def test_every_plugin_cites_what_is_there(plugin: type[Plugin]) -> None:
    found = cite.cited(plugin)
    assert bool(found) == bool(plugin.citation)
    assert "@" not in plugin.citation, "an entry of references.bib can be shared, and is checked below"
    if plugin.__module__.startswith("attacks."):
        assert found


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("fedavg_head", {"fedavg"}),
        ("fedpcl", {"fedpcl"}),
        ("fedtgp", {"fedtgp"}),
        ("mpft", {"mpft"}),
        ("objects", {"fluentemoji", "notoemoji", "twemoji"}),
        ("digits5", {"lecun1998gradient", "hull1994usps", "netzer2011svhn", "ganin2015", "li2021fedbn"}),
        ("cifar100", {"krizhevsky2009cifar", "hsu2019"}),
    ],
)
def test_what_a_plugin_was_made_from_is_cited(name: str, keys: set[str]) -> None:
    (plugin,) = cite.named([name])
    assert set(cite.cited(plugin)) == keys


@pytest.mark.parametrize(("key", "entry"), {**cite.references(), "privkit": cite._own()}.items())
def test_every_entry_is_complete_bibtex(key: str, entry: str) -> None:
    assert entry.startswith("@")
    assert entry.endswith("\n}")
    assert entry.count("{") == entry.count("}")
    fields = re.findall(r"^  (\w+) = \{", entry, flags=re.MULTILINE)
    assert {"author", "title", "year"} <= set(fields)
    assert len(fields) == len(set(fields))
    assert not re.search(r"\}\n  \w", entry), "a comma is missing"


def test_an_unknown_key_is_refused_by_name() -> None:
    class Odd(Plugin):
        citation = "nobody1999"

    with pytest.raises(ValueError, match=r"cites 'nobody1999'; add that entry to references\.bib"):
        cite.cited(Odd)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["privkit", "cite", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_without_runs_every_plugin_is_cited_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch) == 0
    found = cite.entries(capsys.readouterr().out)
    assert next(iter(found)) == "privkit"
    assert set(found) == {"privkit", *(key for plugin in PLUGINS for key in cite.cited(plugin))}


def test_a_run_cites_what_it_used(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from reports import findings_file
    from tests import made

    assert run(monkeypatch, recorded) == 0
    assert set(cite.entries(capsys.readouterr().out)) == {"privkit"}
    folder = recorded.parent
    findings_file.write(folder / "audit" / "findings.json", made.findings(cells=()))
    assert run(monkeypatch, folder) == 0
    assert {"privkit", "vpdr", "dwork2015", "nasr2023"} <= set(cite.entries(capsys.readouterr().out))


def trained(folder: Path, config: dict[str, Any]) -> Path:
    """Write the folder of a run of some configuration; only what it is matters here."""
    info = RunInfo(cell="one", seed=0, rounds=1, clients=("a",), num_classes=2, dim=3, config=config)
    Manifest(info=info).write(folder / "run.json")
    return folder


PROJECTED = {"name": "projected", "output_dim": 512, "encoder": {"name": "efficientnet_lite0"}}


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        (
            {
                "data": "digits",
                "encoder": PROJECTED,
                "method": {"name": "fedproto", "prototypes": {"name": "finch"}},
                "defense": {"name": "vpp", "epsilon": 1.0, "partition": "gumbel"},
            },
            {
                *("lecun1998gradient", "alpaydin1998optical", "alpaydin1996pen", "tan2019efficientnet"),
                *("fedproto", "sarfraz2019", "vpdr", "durfee2019"),
            },
        ),
        (
            {
                "data": "objects",
                "encoder": PROJECTED,
                "mixed": [{"encoder": "usps_cnn"}, {"encoder": {"name": "minilm"}}],
                "method": "local_only",
                "defense": "none",
            },
            {
                *("fluentemoji", "notoemoji", "twemoji"),
                *("chen2026ccexam", "wang2020minilm", "reimers2019sentence"),
            },
        ),
        (
            {
                "data": "digits",
                "encoder": "usps_cnn",
                "method": {"name": "fedavg_head"},
                "defense": {"name": "dcr", "release": {"name": "none"}},
            },
            {
                *("lecun1998gradient", "alpaydin1998optical", "alpaydin1996pen"),
                *("chen2026ccexam", "fedavg", "vpdr"),
            },
        ),
    ],
)
def test_a_run_cites_exactly_what_it_used_at_any_depth(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    config: dict[str, Any],
    keys: set[str],
) -> None:
    whole = RunConfig.from_settings({**config, "rounds": 1}, where="here").settings()
    folder = trained(tmp_path / "run", whole)
    assert run(monkeypatch, "--run", folder) == 0
    out = capsys.readouterr().out
    assert set(cite.entries(out)) == {"privkit", *keys}
    assert run(monkeypatch, folder) == 0
    assert capsys.readouterr().out == out


def test_plugins_that_share_a_name_cite_the_same() -> None:
    found: dict[str, set[str]] = {}
    for package in cite.packages():
        for name, plugin in plug.every(package):
            found.setdefault(name, set()).add(plugin.citation)
    assert all(len(said) == 1 for said in found.values()), (
        "a run says names, so they must tell plug-ins apart"
    )


def test_an_entry_of_a_plugins_own_is_the_one_that_others_cite() -> None:
    known = cite.references()
    for plugin in PLUGINS:
        for key, entry in cite.cited(plugin).items():
            assert known.get(key, entry) == entry


def test_a_folder_without_runs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path / "nowhere") == 2
    assert "does not exist" in capsys.readouterr().err


def test_names_are_found_at_any_depth() -> None:
    config = {"defense": {"name": "vpp", "partition": {"name": "laplace"}}, "cells": [{"name": 3}]}
    assert list(cite.names_in(config)) == ["vpp", "laplace"]
