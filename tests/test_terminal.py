"""What an audit looks like on a terminal."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from privkit.audit.run import audit
from reports import audit_table, terminal
from tests import made


def shown(recorded: Path, width: int) -> str:
    text = io.StringIO()
    terminal.show(audit(recorded), Console(file=text, width=width))
    return text.getvalue()


def test_a_narrow_terminal_gets_whole_columns_and_is_told_which_it_does_not_get(recorded_copy: Path) -> None:
    narrow, wide = shown(recorded_copy, 80), shown(recorded_copy, 220)
    assert "not shown, for want of width: " in " ".join(narrow.split())
    assert "not shown" not in wide
    assert "…" not in narrow + wide
    for text in (narrow, wide):
        assert text.rstrip().splitlines()[-1].startswith("Verdict: ")


WIDTHS = (80, 100, 120, 160, 200, 240)


def heading(title: str, width: int) -> str:
    """Return the column titles of one table of an audit, on a terminal of some width."""
    text = io.StringIO()
    terminal.show(made.findings(), Console(file=text, width=width))
    lines = text.getvalue().splitlines()
    return lines[lines.index(next(line for line in lines if line.startswith(title))) + 1]


def test_columns_leave_one_at_a_time_and_those_that_say_what_is_taken_stay_longest() -> None:
    found = [heading("Taken", width) for width in WIDTHS]
    counts = [sum(column.title in line for column in audit_table.ATTACKS) for line in found]
    assert counts == sorted(counts)
    assert len(set(counts)) > 2
    assert counts[-1] == len(audit_table.ATTACKS)
    assert all("TPR at 1 % FPR" in line and "ε ≥" in line for line in found[2:])
    assert all(len(line) <= width for line, width in zip(found, WIDTHS, strict=True))


def test_without_a_terminal_no_column_is_left_out_unless_columns_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    terminal.show(made.findings(), terminal.console())
    assert "not shown" not in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    terminal.show(made.findings(), terminal.console())
    assert "not shown" in capsys.readouterr().out


def test_ctrl_c_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import privkit.study
    from privkit.cli import main

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(privkit.study, "tunes", interrupted)
    monkeypatch.setattr(sys, "argv", ["privkit", "train", "x.yaml", "--out", "y"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 130
    assert "run the same command again" in capsys.readouterr().err
