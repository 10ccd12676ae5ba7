"""One visual language for every figure: colours by meaning, one per attack, resolved by the page's style sheet.

matplotlib draws with placeholder colours; in the SVG they become the page's CSS variables, so that light and dark
come from one drawing. What is printed has the colours that the page has on white.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

ATTACK_COLOURS = 8
_FIXED = ("fg", "muted", "rule", "band", "ceiling")
_PLACEHOLDERS = {name: f"#01010{i}" for i, name in enumerate(_FIXED, start=1)} | {
    f"attack-{i}": f"#0202{i:02x}" for i in range(ATTACK_COLOURS)
}
_VARIABLES = {placeholder: name for name, placeholder in _PLACEHOLDERS.items()}
TEXT, MUTED, RULE, BAND, CEILING = (f"privkit:{name}" for name in _FIXED)
_MARKS = "os^DvPX"
Dashes = str | tuple[float, tuple[float, ...]]
DASHED: tuple[float, tuple[float, ...]] = (0.0, (4.0, 2.0))
_DASHES: tuple[Dashes, ...] = (
    "-",
    (0.0, (5.0, 1.5)),
    (0.0, (1.5, 1.2)),
    (0.0, (5.0, 1.5, 1.5, 1.5)),
)
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 9.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "text.color": TEXT,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
}


def attack_colour(index: int) -> str:
    """Return the colour of the attack that comes at this place; after the last they start again."""
    return f"privkit:attack-{index % ATTACK_COLOURS}"


def mark(index: int) -> str:
    """Return the mark that comes at this place; marks and colours together repeat late."""
    return _MARKS[index % len(_MARKS)]


def from_chance(aucs: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis on which chance and perfect attacks are seen, and all of these."""
    return min([0.45, *aucs]) - 0.03, 1.03


def dashes(index: int) -> Dashes:
    """Return the dashes of that attack's lines, for those who do not tell its colour."""
    return _DASHES[index % len(_DASHES)]


def css_dashes(index: int) -> str:
    """Return the same dashes for a line of width 3 in the page's own key."""
    dashes = _DASHES[index % len(_DASHES)]
    return "none" if isinstance(dashes, str) else " ".join(f"{2.2 * length:g}" for length in dashes[1])


def _named(palette: Mapping[str, str]) -> None:
    known = colors.get_named_colors_mapping()
    for name, colour in palette.items():
        known[f"privkit:{name}"] = colour  # one by one: this forgets what the name meant before


_named(_PLACEHOLDERS)


@contextmanager
def printing() -> Iterator[None]:
    """Draw, and save, in the colours that the page has on white."""
    css = (Path(__file__).parent.parent / "page.css").read_text(encoding="utf-8")
    light = css[: css.index("@media")]
    _named(
        {
            name: found
            for name, found in re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light)
            if name in _PLACEHOLDERS
        }
    )
    try:
        yield
    finally:
        _named(_PLACEHOLDERS)


BELOW: Mapping[str, Any] = {
    "loc": "lower center",
    "frameon": False,
    "fontsize": 8,
    "handlelength": 1.6,
    "handletextpad": 0.4,
    "columnspacing": 1.4,
}
"""How a key below a figure is set."""
HEADING = 16.0
"""Room for a heading, in points."""


def interval(
    axes: Axes, at: float, low: float | None, high: float | None, *, colour: str, level: bool = False
) -> None:
    """Draw an interval at a place, upright or level; nothing where there is none."""
    if low is None or high is None:
        return
    x, y = ([low, high], [at, at]) if level else ([at, at], [low, high])
    axes.plot(x, y, color=colour, linewidth=0.8, alpha=0.6)


def heading(axes: Axes, text: str, *, up: float) -> None:
    """Write what a row of panels is about, so many points above the first of them."""
    axes.annotate(
        text, (0, 1), xycoords="axes fraction", xytext=(0, up), textcoords="offset points", weight="bold"
    )


def short(value: float) -> str:
    """Return a strength as short as it can be told.

    >>> short(0.0001), short(0.05), short(16.0), short(0.0025)
    ('1e-4', '.05', '16', '.0025')
    """
    plain = f"{value:g}".removeprefix("0")
    return (
        min((plain, f"{value:.0e}".replace("e-0", "e-")), key=len)
        if value == float(f"{value:.0e}")
        else plain
    )


@contextmanager
def drawing(title: str) -> Iterator[None]:
    """Draw in privkit's style; ids in the SVG follow from the title, so equal figures are equal bytes."""
    with mpl.rc_context({**_STYLE, "svg.hashsalt": title}):
        yield


def axes(
    width: float, height: float, *, left: float, bottom: float, top: float = 8.0, right: float = 8.0
) -> tuple[Figure, Axes]:
    """Return a new figure with its only axes; sizes and margins in points."""
    figure = Figure(figsize=(width / 72, height / 72))
    box = (left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height)
    return figure, figure.add_axes(box)


def svg(figure: Figure, title: str) -> Markup:
    """Return a figure as inline SVG, with a title for those who do not see it; matplotlib escapes texts."""
    text = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    FigureCanvasSVG(figure).print_svg(text, metadata=nothing)
    drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r'<g id="[^"]*"', "<g", drawn).replace("xlink:href", "href")
    drawn = re.sub("|".join(_VARIABLES), lambda found: f"var(--{_VARIABLES[found[0]]})", drawn)
    drawn = re.sub(r"font-family: [^;]*; |transform=\"rotate\(-0[^\"]*\"", "", drawn)  # the page's own font
    drawn = re.sub(r' (?:d|x|y|transform)="[^"]*"', _shorter, drawn)
    drawn = re.sub(r"\n\s*", "\n", drawn)
    width, height = (round(72 * inches) for inches in figure.get_size_inches())
    start = f'<svg viewBox="0 0 {width} {height}" role="img">\n<title>{escape(title)}</title>'
    return Markup(start + drawn[drawn.index(">") + 1 :])


def _shorter(attribute: re.Match[str]) -> str:
    """Return an attribute with numbers to a tenth of a point and without needless spaces."""
    text = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), attribute[0])
    return re.sub(r"\s*\n\s*(?=[A-Za-z\"])|(?<=[MLz]) ", "", text)
