"""The table of forecasts: what each forecast says, a row for each outcome or level, and when it stood."""

import csv
from collections.abc import Iterator, Sequence
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from msgspec import structs

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import ForecastMade, ForecastWithdrawn, QuestionOpened
from forecast_ledger.ledger.model.log import START, Recorded, unseal
from forecast_ledger.projections.tables.catalogue import BUILT, EXPORTED, Projections
from forecast_ledger.replay.files.export import default_tables, export
from tests import kept_digests
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    BEFORE,
    addition,
    choices,
    closing,
    day,
    ensemble,
    forecast,
    numeric,
    opened,
    quartiles,
    removal,
    rescheduling,
    withdrawal,
)
from tests.support.logs import written
from tests.support.seasons import Season, drawn_rules


def shown(rows: Iterator[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The rows without the instants at which they were recorded, and without their questions."""
    return [(row["participant"], row["log_position"], row["number"], *list(row.values())[10:]) for row in rows]


def test_a_forecast_has_a_row_for_each_outcome_bin_or_level() -> None:
    """Probabilities for outcomes and bins, numbered from below the range on; values for levels and samples."""
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
        ensemble(),
        forecast("depths", samples=(4, "0.125", 4)),
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
        ("ada", 10, 1, "", None, None, "0.125"),
        ("ada", 10, 2, "", None, None, "4"),
        ("ada", 10, 3, "", None, None, "4"),
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


Span = tuple[str | None, str | None, str | None]


def spans(*story: AnyCommand, question: str = "rain") -> list[tuple[str, *Span]]:
    """Participant, from_at, to_at and ended_by of each forecast; of instants the date alone."""
    rows = oracle.projected(*story).table("forecasts").rows()
    own = [*{row["log_position"]: row for row in rows if row["question"] == question}.values()]
    instants = [[row[name] and str(row[name])[5:10] for name in ("from_at", "to_at")] for row in own]
    return [(row["participant"], *at, row["ended_by"]) for row, at in zip(own, instants, strict=True)]


def test_a_forecast_has_what_ended_it_and_nothing_if_it_stands_to_the_close() -> None:
    """The question is open from the 10th to the 20th; the last word of a participant is not always a forecast."""
    assert spans(
        opened(),
        forecast(at=day(11)),
        forecast(at=day(13)),
        forecast(participant="bob", at=day(12)),
        withdrawal(participant="bob", at=day(15)),
        forecast(participant="cyd", at=day(12), until=day(14)),
        forecast(participant="dan", at=day(12), until=day(20)),
        forecast(participant="eve", at=BEFORE),
    ) == [
        ("ada", "03-11", "03-13", "replaced"),
        ("ada", "03-13", "03-20", None),
        ("bob", "03-12", "03-15", "withdrawn"),
        ("cyd", "03-12", "03-14", "expired"),
        ("dan", "03-12", "03-20", None),
        ("eve", "03-10", "03-20", None),
    ]


def test_a_forecast_that_never_stood_has_no_instants() -> None:
    """It was replaced at its own instant or before the opening, or the question had closed before it began."""
    assert spans(
        opened(),
        forecast(at=day(11)),
        forecast(at=day(11)),
        forecast(participant="bob", at=BEFORE),
        withdrawal(participant="bob", at=BEFORE),
        forecast(participant="cyd", at=day(16)),
        closing(at=day(15)),
    ) == [
        ("ada", None, None, "replaced"),
        ("ada", "03-11", "03-15", None),
        ("bob", None, None, "withdrawn"),
        ("cyd", None, None, "closed"),
    ]


def test_a_moved_close_moves_the_end_of_what_stands() -> None:
    """The end is that of the question as of the cut."""
    said: list[AnyCommand] = [opened(), forecast(at=day(11)), rescheduling(at=day(12), closes_at=day(25))]
    assert spans(*said) == [("ada", "03-11", "03-25", None)]


def test_added_outcomes_end_a_forecast_and_removed_ones_do_not() -> None:
    """It ends with the grace period; one that is made in it stands on."""
    first = {"red": "0.2", "green": "0.1", "blue": "0.7"}
    late = {"green": "0.2", "blue": "0.3", "violet": "0.5"}
    story: list[AnyCommand] = [
        choices(),
        forecast("colour", at=day(11), probabilities=first),
        removal(at=day(12)),
        addition(at=day(13), grace_ends_at=day(15)),
        forecast("colour", participant="bob", at=day(14), probabilities=late),
    ]
    assert spans(*story[:3], question="colour") == [("ada", "03-11", "03-20", None)]
    assert spans(*story, question="colour") == [
        ("ada", "03-11", "03-15", "outcomes_added"),
        ("bob", "03-14", "03-20", None),
    ]


def spans_slowly(recorded: Sequence[Recorded]) -> dict[int, Span]:
    """From when to when each forecast stood and why it ended, by log position, looked up instant by instant."""
    found: dict[int, Span] = {}
    for question in oracle.world(recorded).questions.values():
        added = [(position, each.grace_ends_at or 0) for position, each in question.changes if each.added]
        words = [each for own in question.statements.values() for each in own]
        cuts = {question.opened.opens_at, question.closed_at, *(at for _, at in added), *(said.at for _, said in words)}
        cuts |= {said.until for _, said in words if isinstance(said, ForecastMade) and said.until}
        inside = [at for at in sorted(cuts) if question.opened.opens_at <= at < question.closed_at]
        stood: dict[int, list[int]] = {}
        for at in inside:
            for position, _ in question.standing(at).values():
                if not any(change > position and ends <= at for change, ends in added):
                    stood.setdefault(position, []).append(at)
        for own in question.statements.values():
            for number, (position, said) in enumerate(own):
                if isinstance(said, ForecastMade):
                    last = stood.get(position, [-1])[-1]
                    end = next((at for at in inside if at > last >= 0), question.closed_at)
                    begin = max(said.at, question.opened.opens_at)
                    grace = [ends for change, ends in added if change > position]
                    after = [each for _, each in own[number + 1 : number + 2]]
                    by = _reason(said, after, grace, end if last >= 0 else begin)
                    never = (None, None, "closed" if begin >= question.closed_at else by)
                    whole = end == question.closed_at
                    times = (format_instant(begin), format_instant(end), None if whole else by)
                    found[position] = times if last >= 0 else never
    return found


def _reason(
    said: ForecastMade, after: Sequence[ForecastMade | ForecastWithdrawn], grace: Sequence[int], at: int
) -> str | None:
    """What was the first to end a forecast by an instant, apart from the close."""
    ends = [] if said.until is None else [(said.until, "expired")]
    ends += [(each, "outcomes_added") for each in grace]
    ends += [(each.at, "replaced" if isinstance(each, ForecastMade) else "withdrawn") for each in after]
    past = sorted((each for each in ends if each[0] <= at), key=itemgetter(0))
    return past[0][1] if past else None


def assert_spans(recorded: Sequence[Recorded]) -> None:
    """Check the three columns against the slow definition."""
    slow = spans_slowly(recorded)
    for row in Projections(oracle.facts_in(recorded)).table("forecasts").rows():
        expected = slow.get(row["log_position"], (None, None, "retracted"))
        assert (row["from_at"], row["to_at"], row["ended_by"]) == expected, row


@settings(max_examples=times(30), deadline=None)
@given(oracle.logs())
def test_spans_are_what_the_slow_definition_says(commands: Sequence[AnyCommand]) -> None:
    """After every event of a random log, by looking up everyone's last word at every instant."""
    recorded, _ = oracle.attempted(commands)
    for number in range(len(recorded) + 1):
        assert_spans(recorded[:number])


@pytest.mark.parametrize("seed", range(times(4)))
def test_spans_of_seasons_with_changed_outcomes_and_moved_times(seed: int) -> None:
    """After every event of a random season, of which some outcomes and times change."""
    random = Random(seed)
    season = Season(random, drawn_rules(random), "peer-2025-06", ending=0.3, moved=0.4, changing=0.9)
    recorded, _ = oracle.attempted(season.commands)
    for number in range(len(recorded) + 1):
        assert_spans(recorded[:number])


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
    rows, questions, spans = [], dict[str, QuestionOpened](), spans_slowly(recorded)
    for each in recorded:
        if isinstance(each.event, QuestionOpened):
            questions[each.event.question] = each.event
        elif isinstance(each.event, ForecastMade):
            made, question = each.event, questions[each.event.question]
            until = None if made.until is None else format_instant(made.until)
            instants = (format_instant(made.at), format_instant(each.recorded_at), until, *spans[each.position])
            for number, values in enumerate(said(made, question), 1):
                rows.append((made.question, made.participant, each.position, number, *instants, *values))
    return sorted(rows, key=lambda row: row[:4])


@pytest.mark.parametrize("name", ["csv-import", "metaculus-2022", "tournament 713"])
def test_the_table_lists_what_the_events_say(name: str) -> None:
    """As a reader of the log finds it, event by event."""
    kept = kept_digests.record_and_take(name)
    table = kept.projections.table("forecasts")
    numbers = [(*row[:11], *(None if each is None else Decimal(each) for each in row[11:])) for row in table.printed()]
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
