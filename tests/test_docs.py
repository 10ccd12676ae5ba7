"""The documents tell the truth: their code runs, and what they name exists."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_readme_script_runs_and_its_run_is_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from privkit.cli import main

    (script,) = blocks("python")
    assert len([line for line in script.splitlines() if line.strip()]) <= 20
    monkeypatch.chdir(tmp_path)
    exec(compile(script, "README.md", "exec"), {"__name__": "__main__"})
    monkeypatch.setattr(sys, "argv", ["privkit", "audit", "--run", "runs/mine"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    assert "Verdict: OK" in capsys.readouterr().out


def test_the_study_of_the_readme_is_understood(tmp_path: Path) -> None:
    from privkit.study import load

    (study,) = (block for block in blocks("yaml") if "grid:" in block)
    (tmp_path / "study.yaml").write_text(study)
    assert list(load(tmp_path / "study.yaml").cells) == [
        "fedproto-none",
        "fedproto-igpp",
        "fedpcl-none",
        "fedpcl-igpp",
    ]


COMMANDS = [
    line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ privkit")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_readme_is_understood(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands that need no run are run; of the others, every option must exist."""
    from privkit.cli import main

    words = line.split()
    needs_a_run = words[1] in ("train", "audit", "table", "report", "cite", "hijack")
    monkeypatch.chdir(ROOT if needs_a_run or words[1] == "scores" else tmp_path)
    monkeypatch.setattr(sys, "argv", [*words[:2], "--help"] if needs_a_run else words)
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    out = capsys.readouterr().out
    assert all(word in out for word in words if needs_a_run and word.startswith("--"))


def test_paths_named_in_the_documents_exist() -> None:
    for document in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / link).exists(), f"{document} links to {link}"
        for name in re.findall(
            r"`((?:privkit|accountant|attacks|reports|configs|docs|tests)/[\w./-]+\.\w+)`", text
        ):
            if "name." not in name:
                assert (ROOT / name).exists(), f"{document} names {name}"
