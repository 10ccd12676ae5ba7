"""LaTeX that compiles whatever a text holds."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports import latex
from reports.table import Column, Table
from tests import made

EVERYTHING = r"& % $ # _ { } ~ ^ \ ε δ σ μ ∞ ≥ ≤ ± × − ² ₀ · – — … < > |"
EXPECTED = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "∞": r"$\infty$",
    "≥": r"$\geq$",
    "²": r"$^{2}$",
    "−": "$-$",
}
ESCAPES = re.compile(r"\\[&%$#_{}]|\\text[a-z]+\{\}|\\dots\{\}|\$[^$]+\$")


@pytest.mark.parametrize(("sign", "escaped"), EXPECTED.items())
def test_every_special_sign_is_escaped(sign: str, escaped: str) -> None:
    assert latex.escape(sign) == escaped
    assert latex.escape(f"a{sign}b") == f"a{escaped}b"


@given(st.text())
def test_nothing_special_is_left_when_the_escapes_are_taken_out(text: str) -> None:
    rest = ESCAPES.sub("", latex.escape(text))
    assert not set(rest) & set("&%$#_{}~^\\\n\r")


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("-0.5", "$-$0.5"), ("[-1, -.5]", "[$-$1, $-$.5]"), ("1e-05", "1e-05"), ("frozen-8", "frozen-8")],
)
def test_a_minus_is_one_and_a_hyphen_is_one(text: str, escaped: str) -> None:
    assert latex.escape(text) == escaped


def test_numbers_are_set_flush_right_and_every_line_has_every_column() -> None:
    table = Table(
        columns=(Column(key="a", title="cell_1"), Column(key="b", title="ε", right=True)),
        rows=[{"a": "x & y", "b": 1}, {"a": "[0]", "b": None}, {"a": "*"}],
    )
    lines = table.latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lr}"
    assert lines[2] == r"cell\_1 & $\varepsilon$ \\"
    assert lines[4:7] == [r"x \& y & 1 \\", r"{[}0] & n/a \\", r"{*} & n/a \\"]
    assert [lines[i] for i in (1, 3, 7)] == [r"\toprule", r"\midrule", r"\bottomrule"]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_it_compiles(tmp_path: Path) -> None:
    from reports import audit_files

    tables = [table.latex() for table in audit_files.tables(made.findings()).values()]
    page = [
        r"\documentclass{article}",
        r"\usepackage{booktabs}",
        r"\begin{document}",
        latex.escape(EVERYTHING),
    ]
    (tmp_path / "a.tex").write_text("\n\n".join([*page, *tables, r"\end{document}"]), encoding="utf-8")
    subprocess.run(["pdflatex", "-halt-on-error", "a.tex"], cwd=tmp_path, check=True, capture_output=True)
