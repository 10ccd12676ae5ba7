"""One visual language for every figure: colours by meaning, one per attack, resolved by the page's style sheet.

matplotlib draws with the placeholder colours below; in the SVG they become the page's CSS variables, so that
light and dark come from one drawing.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

TEXT, MUTED, RULE, BAND, CEILING = "#010101", "#010102", "#010103", "#010104", "#010105"
_FIXED = {TEXT: "fg", MUTED: "muted", RULE: "rule", BAND: "band", CEILING: "ceiling"}
ATTACK_COLOURS = 8
_VARIABLES = _FIXED | {f"#0202{i:02x}": f"attack-{i}" for i in range(ATTACK_COLOURS)}
Dashes = str | tuple[float, tuple[float, ...]]
DASHED: Dashes = (0.0, (4.0, 2.0))
_DASHES: tuple[Dashes, ...] = (
    "-",
    (0.0, (5.0, 1.5)),
    (0.0, (1.5, 1.2)),
    (0.0, (5.0, 1.5, 1.5, 1.5)),
)
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
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
    return f"#0202{index % ATTACK_COLOURS:02x}"


def dashes(index: int) -> Dashes:
    """Return the dashes of that attack's lines, for those who do not tell its colour."""
    return _DASHES[index % len(_DASHES)]


def css_dashes(index: int) -> str:
    """Return the same dashes for a line of width 3 in the page's own key."""
    dashes = _DASHES[index % len(_DASHES)]
    return "none" if isinstance(dashes, str) else " ".join(f"{2.2 * length:g}" for length in dashes[1])


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
