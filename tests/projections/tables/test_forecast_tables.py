"""The table of forecasts: what each forecast says, a row for each outcome or level."""

import csv
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import ForecastMade, QuestionOpened
from forecast_ledger.ledger.model.log import START, Recorded, unseal
from forecast_ledger.projections.catalogue.catalogue import BUILT, EXPORTED
from forecast_ledger.replay.files.export import default_tables, export
from tests import kept_digests
from tests.support import oracle
from tests.support.exports import written
from tests.support.given import choices, day, forecast, numeric, opened, quartiles, withdrawal


def shown(rows: Iterator[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The rows without the instants at which they were recorded, and without their questions."""
    return [(row["participant"], row["log_position"], row["number"], *list(row.values())[7:]) for row in rows]


def test_a_forecast_has_a_row_for_each_outcome_bin_or_level() -> None:
    """Probabilities for outcomes and bins, which are numbered from below the range on; values for levels."""
    colour = forecast("colour", probabilities={"red": "0.5", "green": "0.3", "blue": "0.2"})
    depth = forecast("depth", cdf=["0", "0.1", "0.4", "0.75", "1"])
    flow = forecast("flow", quantiles=["0.5", "1.25", "4"])
    story: list[AnyCommand] = [
        opened(),
        choices(),
        numeric(),
        quartiles(),
        forecast(participant="bo"),
        colour,
        depth,
        flow,
    ]
    table = oracle.projected(*story).table("forecasts")
    assert shown(table.rows()) == [
        ("ada", 6, 1, "red", None, "0.5", None),
        ("ada", 6, 2, "green", None, "0.3", None),
        ("ada", 6, 3, "blue", None, "0.2", None),
        ("ada", 7, 1, "0", None, "0", None),
        ("ada", 7, 2, "1", None, "0.1", None),
        ("ada", 7, 3, "2", None, "0.3", None),
        ("ada", 7, 4, "3", None, "0.35", None),
        ("ada", 7, 5, "4", None, "0.25", None),
        ("ada", 7, 6, "5", None, "0", None),
        ("ada", 8, 1, "", "0.25", None, "0.5"),
        ("ada", 8, 2, "", "0.5", None, "1.25"),
        ("ada", 8, 3, "", "0.75", None, "4"),
        ("bo", 5, 1, "yes", None, "0.7", None),
        ("bo", 5, 2, "no", None, "0.3", None),
    ]


def test_instants_and_the_end_of_a_forecast_are_shown_and_withdrawals_have_no_rows() -> None:
    """Every forecast stays in the table, also after it is replaced or withdrawn."""
    first = forecast(at=day(11), until=day(12))
    story: list[AnyCommand] = [
        opened(),
        first,
        forecast(at=day(12)),
        withdrawal(at=day(13)),
        forecast(participant="bo", at=day(11)),
    ]
    rows = [row for row in oracle.projected(*story).table("forecasts").rows() if row["outcome"] == "yes"]
    assert [(row["participant"], row["made_at"], row["until"]) for row in rows] == [
        ("ada", day(11), day(12)),
        ("ada", day(12), None),
        ("bo", day(11), None),
    ]


def test_a_log_without_forecasts_has_an_empty_table() -> None:
    """As does a log without questions; both can be printed and turned into Arrow."""
    stories: list[list[AnyCommand]] = [[], [opened()]]
    for story in stories:
        table = oracle.projected(*story).table("forecasts")
        assert (len(table), list(table.rows()), table.to_arrow().num_rows) == (0, [], 0)


def said(event: ForecastMade, question: QuestionOpened) -> list[tuple[str, Decimal | None, Decimal | None, Any]]:
    """What a forecast says, by the definition of its numbers: (outcome, level, probability, value)."""
    span = question.range
    if span is None:
        chances = zip(question.outcomes, event.probabilities, strict=True)
        return [(outcome, None, Decimal(chance).scaleb(-9), None) for outcome, chance in chances]
    if span.levels:
        pairs = zip(span.levels, event.quantiles, strict=True)
        return [("", Decimal(level).scaleb(-9), None, Decimal(each).scaleb(-span.decimals)) for level, each in pairs]
    masses = zip([*event.cdf, 10**10], [0, *event.cdf], strict=True)
    return [(str(at), None, Decimal(upto - below).scaleb(-10), None) for at, (upto, below) in enumerate(masses)]


def listed(recorded: list[Recorded]) -> list[tuple[Any, ...]]:
    """All rows of the table, from the events one by one."""
    rows, questions = [], dict[str, QuestionOpened]()
    for each in recorded:
        if isinstance(each.event, QuestionOpened):
            questions[each.event.question] = each.event
        elif isinstance(each.event, ForecastMade):
            made, question = each.event, questions[each.event.question]
            until = None if made.until is None else format_instant(made.until)
            instants = (format_instant(made.at), format_instant(each.recorded_at), until)
            for number, values in enumerate(said(made, question), 1):
                rows.append((made.question, made.participant, each.position, number, *instants, *values))
    return sorted(rows, key=lambda row: row[:4])


@pytest.mark.parametrize(
    "name", ["csv-import", "metaculus-2022", "tournament 108", "tournament 713", "tournament 1031"]
)
def test_the_table_lists_what_the_events_say(name: str) -> None:
    """As a reader of the log finds it, event by event."""
    kept = kept_digests.record_and_take(name)
    table = kept.projections.table("forecasts")
    numbers = [(*row[:8], *(None if each is None else Decimal(each) for each in row[8:])) for row in table.printed()]
    assert numbers == listed(list(unseal(kept.rows, START)))
    assert numbers


def test_every_export_has_it_and_a_replay_does_not_build_it(tmp_path: Path) -> None:
    """It has a row for each number of each forecast: as much as the log, and no less known without a replay."""
    assert "forecasts" in EXPORTED
    assert "forecasts" not in BUILT
    assert default_tables() == [*EXPORTED]
    log = written(tmp_path / "log.db", [structs.replace(opened(), id="open"), structs.replace(forecast(), id="say")])
    export(log, tmp_path / "out")
    with (tmp_path / "out" / "forecasts.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["outcome"], row["probability"], row["level"]) for row in csv.DictReader(file)]
    assert rows == [("yes", "0.7", ""), ("no", "0.3", "")]


def test_its_arrow_has_decimals_and_instants() -> None:
    """A value has 12 decimals and may be as large as a forecast's may be."""
    wide = quartiles(upper="1e13", decimals=0)
    table = oracle.projected(wide, forecast("flow", quantiles=["1", "2", "1e13"])).table("forecasts").to_arrow()
    assert table.column("value").to_pylist() == [Decimal(1), Decimal(2), Decimal(10**13)]
    assert [str(table.schema.field(name).type) for name in ("value", "level", "made_at", "until")] == [
        "decimal128(38, 12)",
        "decimal128(38, 11)",
        "timestamp[us, tz=UTC]",
        "timestamp[us, tz=UTC]",
    ]
