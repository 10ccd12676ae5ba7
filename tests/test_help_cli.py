"""What ``--help`` prints: whole sentences, every argument described, no markup."""

import re
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from privkit.cli.app import app

GROUP: Any = typer.main.get_command(app)
COMMANDS = [
    *((name,) for name in GROUP.commands if name != "calibrate"),
    *(("calibrate", name) for name in GROUP.commands["calibrate"].commands),
]


def shown(*words: str) -> str:
    found = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"})
    assert found.exit_code == 0
    return found.stdout


@pytest.mark.parametrize("words", COMMANDS)
def test_a_page_has_no_markup_and_describes_every_argument(words: tuple[str, ...]) -> None:
    page = shown(*words)
    assert "\\" not in page
    arguments = re.search(r"Arguments:\n(.*?)\n\n", page, flags=re.DOTALL)
    for argument in (
        re.split(r"\n(?=  \S)", arguments[1]) if arguments else ()
    ):  # what is long goes on, indented
        assert set(argument.split()[1:]) - {"[required]"}, argument


@pytest.mark.parametrize("words", [(), ("calibrate",)])
def test_lists_of_commands_are_not_cut_off(words: tuple[str, ...]) -> None:
    assert "..." not in shown(*words).partition("Commands:")[2]


def test_what_is_left_out_has_the_same_delta_everywhere() -> None:
    for name in ("gaussian", "dpsgd", "vpp"):
        assert re.search(r"--delta FLOAT .*\[default:\s+1e-05\]", shown("calibrate", name).replace("\n", " "))
