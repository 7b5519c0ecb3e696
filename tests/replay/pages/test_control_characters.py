"""Pages, papers and pictures show no text that a reader's program would obey: it is escaped wherever it is."""

import html
from pathlib import Path
from typing import Any

import pytest
from msgspec import json, structs

from forecast_ledger import audit, plot, report
from forecast_ledger.ledger.model.commands import AnyCommand, OpenContest, OpenQuestion
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.replay.pages.charts import CHARTS
from tests.replay.pages.test_report import checked, crowd
from tests.support.exports import resealed
from tests.support.given import exclusion, revocation
from tests.support.logs import log_fixture, rows

FORGED = "\x00\x07\x1b[2J\x7f\x9b2J\u061c\u200e\u202e\u2066\u2028"
SEEN = {chr(code) for code in [*range(32), *range(127, 160)]} - {"\n"} | {*"\u061c\u200e\u200f\u2028\u2029"}
OBEYED = SEEN | {chr(code) for code in [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]}


def odd() -> list[AnyCommand]:
    """A contest whose titles and reasons end in control characters, as those of any log may."""
    story: list[Any] = [
        structs.replace(each, title=each.title + FORGED) if isinstance(each, OpenQuestion | OpenContest) else each
        for each in crowd(["ada", "bob", "cyd"])
    ]
    excluded = exclusion(participant="bob", reason=f"host{FORGED}")
    return [*story, excluded, revocation("q0", reason=f"misread{FORGED}")]


season = log_fixture(odd)


@pytest.fixture
def forged(season: str, tmp_path: Path) -> str:
    """A log that no decider wrote: its ids too end in control characters."""
    changed = rows(season)
    for text in ("ada", "bob", "q0", "q1", "cup"):
        changed = [row.replace(f'"{text}"'.encode(), json.encode(text + FORGED)) for row in changed]
    assert changed != rows(season)
    target = str(tmp_path / "forged.db")
    store = StoredLog.open(target, "main")
    store.append([(number, "forged", row) for number, row in enumerate(resealed(changed), 1)])
    store.close()
    return target


def found(path: Path) -> set[str]:
    """The characters of a file, or of what its references in HTML stand for, that a program would obey."""
    text = path.read_text(encoding="utf-8")
    return OBEYED & {*text, *html.unescape(text)}


def test_a_report_has_none(forged: str, tmp_path: Path) -> None:
    """Neither the page nor the pictures within it; its texts say what the characters were."""
    report(forged, tmp_path / "page.html", specs=tmp_path / "specs")
    assert found(tmp_path / "page.html") == set()
    words = " ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts)
    assert "ada\\x00\\x07\\x1b[2J\\x7f\\x9b2J\\u061c\\u200e\\u202e\\u2066\\u2028" in words
    assert {name for path in (tmp_path / "specs").iterdir() for name in found(path)} == set()


@pytest.mark.parametrize("ending", [".html", ".md"])
def test_a_working_paper_has_none(season: str, tmp_path: Path, ending: str) -> None:
    """Its tables hold reasons and titles."""
    audit(season, tmp_path / f"paper{ending}")
    text = (tmp_path / f"paper{ending}").read_text(encoding="utf-8")
    assert found(tmp_path / f"paper{ending}") == set()
    assert ("misread" in text, "u202e" in text) == (True, True)


@pytest.mark.parametrize("ending", [".svg", ".json"])
@pytest.mark.parametrize("kind", ["board", "coverage", "calibration"])
def test_a_picture_has_none(forged: str, tmp_path: Path, kind: str, ending: str) -> None:
    """A label is a text of the log; a file of SVG with a raw NUL would not even be XML."""
    assert kind in CHARTS
    plot(forged, kind, tmp_path / f"a{ending}")
    assert found(tmp_path / f"a{ending}") == set()
