"""Reports in a real browser: nothing asked for, nothing complained of, nothing wider than the screen."""

from pathlib import Path

import pytest

from forecast_ledger import report
from tests.replay.pages.test_report import HOSTILE, crowd
from tests.support.browser import CHROMIUM, browser
from tests.support.logs import commands_of, light, written

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
    people = [*HOSTILE, *(f"p{number}" for number in range(32))]
    stories = {"arena": commands_of("arena-week"), "crowd": [light(each) for each in crowd(people)]}
    made = [folder / f"{name}.html" for name in stories]
    for page, story in zip(made, stories.values(), strict=True):
        report(written(page.with_suffix(".db"), story), page)
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
