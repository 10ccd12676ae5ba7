"""What to cite: every plug-in's keys are known, and every entry is BibTeX."""

import re
import sys
from pathlib import Path

import pytest

from privkit import cite
from privkit.cli import main
from privkit.plug import Plugin

PLUGINS = list(cite.every_plugin())


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.__module__)
def test_every_plugin_cites_what_is_there(plugin: type[Plugin]) -> None:
    found = cite.cited(plugin)
    assert bool(found) == bool(plugin.citation)
    if plugin.__module__.startswith("attacks."):
        assert found


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


def test_a_folder_without_runs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path / "nowhere") == 2
    assert "does not exist" in capsys.readouterr().err


def test_names_are_found_at_any_depth() -> None:
    config = {"defense": {"name": "vpp", "partition": {"name": "laplace"}}, "cells": [{"name": 3}]}
    assert list(cite.names_in(config)) == ["vpp", "laplace"]
