"""The page: complete, safe to open, the same bytes for the same findings, and numbers that agree with the CSV."""

import csv
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from scipy.stats import betabinom

from reports import audit_files, page, page_parts
from reports.figures.no_skill_band import no_skill_band
from reports.findings import CellFindings, Findings, Spending, Verdict
from tests import made

VOID = {"meta", "img", "br", "link", "input", "hr"}
NASTY = "<script>alert(1)</script>\"'&"


class Page(HTMLParser):
    """Reads a page strictly: every element is closed in its turn, every id is given once."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text: list[str] = []
        self._table = ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._table = dict(attrs).get("id") or ""
            self.tables.setdefault(self._table, [])
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag in ("td", "th"):
            self.tables[self._table][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[self._table][-1][-1] += data

    def attributes(self, name: str) -> Iterator[str]:
        return (value for _, attrs in self.seen if (value := attrs.get(name)) is not None)


@pytest.fixture(scope="module")
def findings() -> Findings:
    return made.findings()


@pytest.fixture(scope="module")
def html(findings: Findings) -> str:
    return page.html(findings)


def test_it_is_well_formed_and_ids_are_given_once(html: str) -> None:
    read = Page(html)
    ids = list(read.attributes("id"))
    assert len(ids) == len(set(ids))
    assert set(read.attributes("aria-labelledby")) <= set(ids)
    assert all(attrs.get("alt") for tag, attrs in read.seen if tag == "img")


def test_it_asks_nothing_of_any_network(html: str) -> None:
    read = Page(html)
    links = [*read.attributes("href"), *read.attributes("src"), *read.attributes("xlink:href")]
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
    assert not re.search(r"@import|url\((?!#)|https?://(?!www\.w3\.org/)", html)
    assert len(html.encode()) < 2_000_000


def test_equal_findings_give_equal_bytes(html: str) -> None:
    assert page.html(made.findings()) == html


def test_the_verdict_comes_first_and_each_cell_has_its_reasons(findings: Findings, html: str) -> None:
    read = Page(html)
    assert html.index("<h1>VIOLATION</h1>") < html.index("<table")
    shown = {row[0]: row[1:] for row in read.tables[""] if len(row) == 3}
    for cell in findings.cells:
        assert shown[cell.name] == [cell.verdict.value, "; ".join(cell.reasons)]


def test_a_reason_that_is_priced_leads_to_its_price(findings: Findings, html: str) -> None:
    priced = [cell for cell in findings.cells if cell.promised and cell.promised.claim.broken]
    assert priced
    assert html.count('<a href="#broken-title">') == len(priced)


def test_sections_come_in_the_order_of_the_questions(html: str) -> None:
    order = (
        "Promised",
        "Taken",
        "Certified from below",
        "Inversion",
        "Cost",
        "ε, round by round",
        "Broken assumptions",
    )
    places = [
        html.index(f">{title}</h2>") for title in (*order, "Failed attacks", "Reading notes", "Provenance")
    ]
    assert places == sorted(places)


def test_numbers_are_those_of_the_csv_files(findings: Findings, html: str) -> None:
    tables = Page(html).tables
    for name, shown in (
        ("cells", "cost"),
        ("attacks", "taken"),
        ("certificates", "certified"),
        ("inversions", "inversion"),
    ):
        table = audit_files.tables(findings)[name]
        exact = list(csv.DictReader(io.StringIO(table.csv())))
        columns = {column.title.replace(" %", "\xa0%"): column for column in table.columns}
        titles, *rows = tables[shown]
        assert len(rows) == len(exact) > 0
        for place, title in enumerate(titles):
            if title not in columns or titles.count(title) > 1:
                continue
            column = columns[title]
            for row, values in zip(rows, exact, strict=True):
                _same(row[place], values[column.key], column.show)


def _same(shown: str, exact: str, show) -> None:
    """Compare a text on the page with the exact value in a CSV file, at the precision that is shown."""
    try:
        value = float(exact)
    except ValueError:
        assert shown == (exact or show(None))
        return
    whole = int(value) if value.is_integer() and "." not in exact else value
    assert shown in (exact, show(whole))


def test_every_attack_keeps_its_colour(html: str, findings: Findings) -> None:
    keys = re.findall(r'class="swatch".*?var\(--attack-(\d)\).*?</svg>([a-z ]+) <', html)
    assert {name: int(place) for place, name in keys} == {
        name.replace("_", " "): place for name, place in page_parts.attack_colours(findings).items()
    }


def test_every_figure_has_a_title_and_no_colour_of_its_own(html: str) -> None:
    figures = re.findall(r"<svg viewBox.*?</svg>", html, flags=re.DOTALL)
    assert len(figures) == 4 * 3 + 1 + 5 + 4
    for figure in figures:
        assert re.match(r'<svg viewBox="[\d .]+" role="img">\n<title>[^<]+</title>', figure)
        assert not re.search(r"#[0-9a-fA-F]{6}", figure)


def test_what_others_wrote_is_text_and_never_markup() -> None:
    cell = replace(made.cell("x", each=40, inverted=True), name=NASTY, reasons=(NASTY,))
    html = page.html(made.findings(cells=(cell,)))
    read = Page(html)
    assert [tag for tag, _ in read.seen].count("script") == 1
    assert NASTY in read.tables["taken"][1][0]


def bare(name: str, **changes: object) -> CellFindings:
    return replace(made.silent(name), **changes)


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param((), id="no cell"),
        pytest.param((bare("silent"),), id="nothing released"),
        pytest.param(
            (replace(made.cell("plain", each=40, epsilon=None), spending=Spending()),), id="no promise"
        ),
        pytest.param(
            (
                bare(
                    "x",
                    cost=replace(
                        made.silent("x").cost, accuracy=None, by_domain={}, by_round=(), per_seed={}
                    ),
                ),
            ),
            id="no metrics",
        ),
        pytest.param((replace(made.cell("x", each=40), taken=()),), id="no attack"),
    ],
)
def test_a_page_without_something_is_a_page(cells: tuple[CellFindings, ...]) -> None:
    found = made.findings(cells=cells)
    assert found.verdict.value in page.html(found)
    Page(page.html(found))


def test_what_is_infinite_or_has_failed_is_said(html: str) -> None:
    read = Page(html)
    promised = {row[0]: row for row in read.tables["promised"]}
    assert "∞" in promised["frozen-none"]
    assert "(8)" in promised["adapter-igpp-8"]
    assert "none: nothing was released" in promised["frozen-local"]
    assert "tracing on frozen-none: ValueError: no <finite> score" in "".join(read.text)
    assert "the attacker owns no reference records; set split" in "".join(read.text)


def test_pictures_that_do_not_fit_are_left_out_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    found = made.findings(cells=(made.cell("x", each=40, inverted=True),))
    assert [len(grid.shown) for grid in page_parts.pictures(found)] == [4, 4]
    size = len(made.png(0))
    monkeypatch.setattr(page_parts, "MOST_PICTURES", 2 * 7 * size)
    assert [[r.client for r in grid.shown] for grid in page_parts.pictures(found)] == [[0, 1], [0, 1]]
    monkeypatch.setattr(page_parts, "MOST_PICTURES", size)
    assert [grid.shown for grid in page_parts.pictures(found)] == [(), ()]


@pytest.mark.parametrize(("m", "n"), [(100, 100), (37, 250)])
def test_the_grey_band_is_that_of_the_beta_binomial_law(m: int, n: int) -> None:
    for fpr, low, high in no_skill_band(m, n)[:-1]:
        k = round(fpr * n)
        law = betabinom(m, k + 1, n - k)
        assert [round(low * m), round(high * m)] == law.ppf([0.025, 0.975]).tolist()


def test_the_meaning_of_every_verdict_is_said() -> None:
    for verdict in Verdict:
        found = replace(made.findings(cells=()), verdict=verdict)
        assert f"<h1>{verdict.value}</h1>" in page.html(found)


def test_it_needs_no_display_and_leaves_pyplot_alone(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from reports import audit_files; from tests import made; "
        "cell = made.cell('x', each=40, inverted=True); "
        "audit_files.write(made.findings(cells=(cell,)), Path(sys.argv[1])); "
        "assert 'matplotlib.pyplot' not in sys.modules; import matplotlib; "
        "assert matplotlib.get_backend(auto_select=False).lower() == 'tkagg'"
    )
    environment = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=environment | {"MPLBACKEND": "TkAgg"},
        cwd=Path(__file__).parent.parent,
        check=True,
    )
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "report.html",
        "audit.md",
        "audit.json",
        "claims.json",
        "findings.json",
        *(
            f"{table}.{kind}"
            for table in ("cells", "attacks", "certificates", "inversions")
            for kind in ("csv", "tex")
        ),
    }
