"""Charts: their specifications are those that are kept, which somebody has looked at."""

import json
from decimal import Decimal
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.tables.catalogue import Projections, Row
from forecast_ledger.replay.pages import charts
from forecast_ledger.replay.pages.charts import CHARTS, _largest_profit, _told_apart
from forecast_ledger.replay.pages.study_charts import PLOTS
from forecast_ledger.replay.reading.replay import replay
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
    assert {name for pictures in kept.values() for name in pictures} == PLOTS.keys(), RENEWAL


def test_participants_that_the_board_hides_are_in_no_average(drawn: str) -> None:
    """Six are on the board, with six questions each, and one of them missed one; a seventh is hidden: 35 of 36."""
    title = json.loads(drawn)["autocast-2022"]["coverage"]["title"]
    assert title == "On average, a participant had a forecast for 97% of the scored time"


def test_the_map_of_coverage_has_all_questions_and_the_coverage_of_the_board() -> None:
    """Ada's forecast stands on rain, of weight 3, from the opening on, and nobody has one on snow, of weight 1."""
    said: list[AnyCommand] = [contest(rules="baseline"), opened("rain"), opened("snow")]
    said += [entry(question="rain", weight=3), entry(question="snow", weight=1), forecast("rain", "ada", at=day(10))]
    facts = oracle.facts_in(oracle.attempted([*said, resolution("rain"), resolution("snow")])[0])
    picture = CHARTS["coverage"].draw(Projections(facts), "cup")
    assert picture is not None
    assert picture.title == "On average, a participant had a forecast for 75% of the scored time"
    assert [(row["questions"], row["coverage"]) for row in picture.rows] == [("rain", "1.000"), ("snow", "0.000")]


def test_profits_are_those_of_the_leaderboard(tmp_path: Path) -> None:
    """The last tick of week 2 is before the last quote: 5,000 shares at 0.50, 10,000 in cash, 10,000 paid in."""
    record(HISTORIES["arena-week"](), tmp_path / "log.db")
    picture = CHARTS["profit"].draw(replay(tmp_path / "log.db").projections, "week-2")
    assert picture is not None
    assert picture.title == "cy has the largest profit so far, 2,500.00, since 2026-03-15; ada has -110.00"
    assert [row["profit"] for row in picture.rows if row["participant"] == "cy"][-1] == "2500.00"
    for who in ("ada", "bo", "cy"):  # a row for each change, and the distance to the peak, which is no less than 0
        own = [
            (Decimal(row["profit"]), Decimal(row["below_peak"])) for row in picture.rows if row["participant"] == who
        ]
        assert all(before[0] != after[0] for before, after in pairwise(own[:-1]))
        peaks = accumulate((profit for profit, _ in own), max, initial=Decimal(0))
        assert [profit - peak for (profit, _), peak in zip(own, [*peaks][1:], strict=True)] == [
            below for _, below in own
        ]


@pytest.mark.parametrize(("hours", "time"), [(119, "%-d %b %H:%M"), (120, "%-d %b")])
def test_a_span_under_five_days_has_hours_on_its_axis(
    hours: int, time: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of six marks, two would have the name of the same day."""
    record(HISTORIES["arena-week"](), tmp_path / "log.db")
    ends = ["2026-03-01T00:00:00Z", f"2026-03-0{1 + hours // 24}T{hours % 24:02}:00:00.5Z"]
    points = [{"participant": "cy", "at": at, "profit": "1", "below_peak": "0"} for at in ends]
    monkeypatch.setattr(
        charts,
        "_points",
        lambda _projections, _contest, board: dict.fromkeys([row["participant"] for row in board], points),
    )
    picture = CHARTS["profit"].draw(replay(tmp_path / "log.db").projections, "week-2")
    assert picture is not None
    assert {panel["encoding"]["x"]["axis"]["format"] for panel in picture.specification["vconcat"]} == {time}


def test_who_has_the_largest_profit_is_said_with_the_day_since_when() -> None:
    """Bo leads from the third day on, ada before; whoever is alone, or shares the place, is named as such."""
    bo = [(f"2026-03-0{day}T00:00:00Z", Decimal(amount)) for day, amount in ((2, 4), (3, 6), (4, 8))]
    ada = [(f"2026-03-0{day}T00:00:00Z", Decimal(amount)) for day, amount in ((1, 5), (4, 7))]
    steps = {"ada": ada, "bo": bo}  # both rise on the fourth day, at the same instant
    board: list[Row] = [
        {"participant": "bo", "rank": 1, "profit": "8.00"},
        {"participant": "ada", "rank": 2, "profit": "7.00"},
    ]
    assert _largest_profit(board, steps, "EUR") == (
        "bo has the largest profit, 8.00 EUR, since 2026-03-03; ada has 7.00 EUR"
    )
    assert _largest_profit(board[:1], {"bo": bo}, "") == "bo has a profit of 8.00"
    shared = [row | {"profit": "5.00"} for row in board]
    assert _largest_profit(shared, steps, "") == "2 participants share the largest profit, 5.00"
    dust = [board[0] | {"profit": "5.00"}, board[1] | {"profit": "4.999999", "rank": 1}]
    assert _largest_profit(dust, steps, "") == "2 participants share the largest profit, 5.00"


def test_pairs_are_told_apart_beside_all_others() -> None:
    """On five questions, of 2^5 signs two are the most unlike: p is 0.0625 or more. On six it may be 0.03125."""
    pairs: list[Row] = [{"p": "0.001", "p_adjusted": "0.050"}, {"p": "0.020", "p_adjusted": "0.051"}]
    pairs = [row | {"questions": 6} for row in pairs]
    title, note = _told_apart(pairs)
    assert title == "1 of 2 pairs of participants differs significantly, if their 6 questions are independent"
    assert "With " not in note
    assert "then differences are called significant too often." in note
    assert _told_apart([row | {"questions": 20} for row in pairs])[0].endswith(" differs significantly")
    title, note = _told_apart([row | {"questions": 5, "p_adjusted": "0.060"} for row in pairs])
    assert title == "None of 2 pairs of participants differ significantly"
    assert "With 5 questions, no test can be significant." in note
    assert "too often" not in note


def test_specifications_do_not_depend_on_when_they_are_drawn(drawn: str) -> None:
    """A second drawing gives the same text."""
    assert text(specifications()) == drawn
