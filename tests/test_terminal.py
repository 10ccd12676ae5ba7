"""What an audit looks like on a terminal."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from privkit.audit.run import audit
from reports import terminal


def shown(recorded: Path, width: int) -> str:
    text = io.StringIO()
    terminal.show(audit(recorded), Console(file=text, width=width))
    return text.getvalue()


def test_a_narrow_terminal_gets_whole_columns_and_is_told_which_it_does_not_get(recorded_copy: Path) -> None:
    narrow, wide = shown(recorded_copy, 80), shown(recorded_copy, 200)
    assert "not shown, for want of width: ε promised" in " ".join(narrow.split())
    assert "not shown" not in wide
    assert "…" not in narrow + wide
    for text in (narrow, wide):
        assert text.rstrip().splitlines()[-1].startswith("Verdict: ")


def test_ctrl_c_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import privkit.config
    from privkit.cli import main

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(privkit.config, "load", interrupted)
    monkeypatch.setattr(sys, "argv", ["privkit", "train", "x.yaml", "--out", "y"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 130
    assert "run the same command again" in capsys.readouterr().err
