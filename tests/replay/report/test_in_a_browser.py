"""Reports in a real browser: nothing asked for, nothing complained of, nothing wider than the screen."""

from pathlib import Path

import pytest

from forecast_ledger import report
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.writing.append import append_lines
from tests.replay.report.test_report import HOSTILE, crowd
from tests.support import oracle
from tests.support.browser import CHROMIUM, browser
from tests.support.paths import DATA

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
WIDE = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
CUT = """[...document.querySelectorAll("figure svg")].filter(svg => {
    const [own, frame] = [svg.getBoundingClientRect(), svg.parentElement.getBoundingClientRect()];
    return own.width > frame.width + 1;
}).length"""
MOVED = """[...document.querySelectorAll("figure svg")].filter(svg =>
    getComputedStyle(svg.parentElement).overflowX === "auto" && svg.parentElement.tabIndex === 0).length"""
SCROLLED = """[...document.querySelectorAll("table.cards")].filter(table =>
    table.parentElement.scrollWidth > table.parentElement.clientWidth + 1).length"""
NAMED = """[...document.querySelectorAll("table.cards td:not(.empty)")].filter(cell =>
    getComputedStyle(cell, "::before").content !== JSON.stringify(cell.dataset.column)).length"""
COLOURS = """[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"""


def pages(folder: Path) -> list[Path]:
    """Reports of trading, and of a contest with 40 participants, some with long names and names that are HTML."""
    made = []
    with Ledger.open(str(folder / "arena.db")) as ledger, (DATA / "arena-week" / "commands.jsonl").open("rb") as file:
        append_lines(ledger, file, lambda *_: None, lambda _: None, atomic=False)
    with Ledger.open(str(folder / "crowd.db")) as ledger:
        ledger.handle_many(oracle.with_ids(crowd([*HOSTILE, *(f"p{number}" for number in range(32))])))
    for name in ("arena", "crowd"):
        made.append(folder / f"{name}.html")
        report(folder / f"{name}.db", made[-1])
    return made


def test_pages_fit_any_screen_and_ask_for_nothing(tmp_path: Path) -> None:
    """At the widths of a desktop and of a telephone, where pictures move in their frames; light and dark."""
    made = pages(tmp_path)
    with browser() as shown:
        for page in made:
            seen = []
            for width, dark in ((1280, False), (390, False), (390, True)):
                shown.show(page, width, dark=dark)
                assert (shown.said(), shown.asked()) == ([], [page.as_uri()])
                whole, window = shown.value(WIDE)
                assert whole <= window <= width
                assert shown.value(CUT) == (0 if width == 1280 else shown.value(MOVED))
                assert shown.value(SCROLLED) == 0
                assert (shown.value(NAMED) == 0) == (width == 390)  # each cell names its column
                seen.append(shown.value(COLOURS))
            assert seen[0] == seen[1] != seen[2]
