"""Any text as LaTeX that compiles."""

import re
from collections.abc import Sequence

_SPECIAL = {
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
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
}
_MATHS = {
    "ε": r"\varepsilon",
    "δ": r"\delta",
    "σ": r"\sigma",
    "μ": r"\mu",
    "λ": r"\lambda",
    "ρ": r"\rho",
    "α": r"\alpha",
    "β": r"\beta",
    "Δ": r"\Delta",
    "Φ": r"\Phi",
    "∞": r"\infty",
    "≥": r"\geq",
    "≤": r"\leq",
    "≠": r"\neq",
    "≈": r"\approx",
    "±": r"\pm",
    "×": r"\times",
    "·": r"\cdot",
    "−": "-",
    "√": r"\surd",
    "→": r"\rightarrow",
    "ℓ": r"\ell",
    **{digit: f"^{{{i}}}" for i, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{digit: f"_{{{i}}}" for i, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
}
_ALL = _SPECIAL | {sign: f"${maths}$" for sign, maths in _MATHS.items()}
_ANY = re.compile("|".join(map(re.escape, _ALL)))
_NEGATIVE = re.compile(r"(?<![\w.)-])-(?=\.?\d)")


def escape(text: str) -> str:
    r"""Return a text for LaTeX's text mode: special characters escaped, mathematical signs as maths.

    Letters of other scripts stay as they are; pdfLaTeX knows the accented Latin ones, XeLaTeX all.

    >>> print(escape("50 % of ε ≥ 1_000"))
    50 \% of $\varepsilon$ $\geq$ 1\_000
    >>> print(escape("-0.5 [-1, 2], 1e-05"))
    $-$0.5 [$-$1, 2], 1e-05
    """
    words = text if text.isprintable() else " ".join(text.split())
    return _ANY.sub(lambda found: _ALL[found[0]], _NEGATIVE.sub("−", words))


def tabular(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> str:
    r"""Return a table for the package booktabs.

    Args:
        head: one title per column.
        rows: one text per column each.
        right: whether a column is set flush right.

    >>> print(tabular(["a", "ε"], [["x & y", "1"]], right=[False, True]))
    \begin{tabular}{lr}
    \toprule
    a & $\varepsilon$ \\
    \midrule
    x \& y & 1 \\
    \bottomrule
    \end{tabular}
    """
    columns = "".join("r" if flush else "l" for flush in right)
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _line(head),
            r"\midrule",
            *map(_line, rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _line(texts: Sequence[str]) -> str:
    cells = [escape(text) for text in texts]
    # after the end of a line, LaTeX would read these as that line's options
    if cells and cells[0].startswith(("[", "*")):
        cells[0] = "{" + cells[0][0] + "}" + cells[0][1:]
    return " & ".join(cells) + r" \\"
