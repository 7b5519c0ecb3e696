"""Charts: their specifications are those that are kept, which somebody has looked at."""

import json
from pathlib import Path

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.replay.reading.replay import replay
from forecast_ledger.replay.report.charts import CHARTS
from tests.kept_digests import HISTORIES, record
from tests.pictures import KEPT, specifications, text
from tests.support import oracle
from tests.support.given import contest, day, entry, forecast, opened, resolution

RENEWAL = "if the change is meant, look at the picture (`forecast-ledger plot`), then run `python -m tests.pictures`"


@pytest.fixture(scope="module")
def drawn() -> str:
    """What the code draws now."""
    return text(specifications())


@pytest.mark.parametrize("story", json.loads(KEPT.read_text(encoding="utf-8")))
def test_a_picture_is_the_one_that_is_kept(drawn: str, story: str) -> None:
    """Title, note, columns and specification, with its data: nothing that a reader sees changes unnoticed."""
    kept, now = (json.loads(each)[story] for each in (KEPT.read_text(encoding="utf-8"), drawn))
    assert now.keys() == kept.keys(), RENEWAL
    for name in kept:
        assert now[name] == kept[name], f"{name}: {RENEWAL}"


def test_every_chart_is_kept_of_a_story() -> None:
    """A new chart needs a story that has something to show."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert {name for pictures in kept.values() for name in pictures} == CHARTS.keys(), RENEWAL


def test_participants_that_the_board_hides_are_in_no_average(drawn: str) -> None:
    """Six are on the board, with six questions each, and one of them missed one; a seventh is hidden: 35 of 36."""
    title = json.loads(drawn)["autocast-2022"]["coverage"]["title"]
    assert title == "Participants had a forecast for 97% of the time that counts"


def test_the_map_of_coverage_has_all_questions_and_the_coverage_of_the_board() -> None:
    """Ada's forecast stands on rain, of weight 3, from the opening on, and nobody has one on snow, of weight 1."""
    said: list[AnyCommand] = [contest(rules="baseline"), opened("rain"), opened("snow")]
    said += [entry(question="rain", weight=3), entry(question="snow", weight=1), forecast("rain", "ada", at=day(10))]
    facts = oracle.facts_in(oracle.attempted([*said, resolution("rain"), resolution("snow")])[0])
    picture = CHARTS["coverage"].draw(Projections(facts), "cup")
    assert picture is not None
    assert picture.title == "Participants had a forecast for 75% of the time that counts"
    assert [(row["questions"], row["coverage"]) for row in picture.rows] == [("rain", "1.000"), ("snow", "0.000")]


def test_profits_are_those_of_the_leaderboard(tmp_path: Path) -> None:
    """The last tick of week 2 is before the last quote: 5,000 shares at 0.50, 10,000 in cash, 10,000 paid in."""
    record(HISTORIES["arena-week"](), tmp_path / "log.db")
    picture = CHARTS["profit"].draw(replay(tmp_path / "log.db").projections, "week-2")
    assert picture is not None
    assert picture.title == "cy has the largest profit, 2,500.00"
    assert [row["profit"] for row in picture.rows if row["participant"] == "cy"][-1] == "2500.00"


def test_specifications_do_not_depend_on_when_they_are_drawn(drawn: str) -> None:
    """A second drawing gives the same text."""
    assert text(specifications()) == drawn
