"""The printed table."""

from benchmarks.protocol import Result

_WIDTHS = (4, 35, 27, 33, 7, 7, 7)


def rule() -> str:
    """Return the headings, underlined."""
    headings = ("row", "workload", "peer", "median (range)", "must", "stretch", "verdict")
    return f"{_join(headings)}  check\n{_join(tuple('-' * width for width in _WIDTHS))}  -----"


def line(result: Result) -> str:
    """Return one result as a line."""
    value = f"{result.value:.3g} {result.unit} ({result.low:.3g}..{result.high:.3g})".replace("  ", " ")
    must, stretch = (str(limit or "-") for limit in (result.must, result.stretch))
    cells = (result.id, result.workload, result.peer or "-", value, must, stretch, result.verdict)
    return f"{_join(cells)}  {result.check}"


def _join(cells: tuple[str, ...]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True))
