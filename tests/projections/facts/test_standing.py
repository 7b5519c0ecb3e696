"""Intervals on which forecasts stand: from their making or the opening until replaced, withdrawn or closed."""

from collections.abc import Sequence
from operator import itemgetter

import pytest
from hypothesis import given, settings

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.facts.standing import intervals
from forecast_ledger.projections.tables.projection import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    AFTER,
    OPENS,
    closing,
    contest,
    day,
    entry,
    forecast,
    micros,
    opened,
    resolution,
    withdrawal,
)

Standing = list[tuple[str, int, int, int]]


def read(*commands: AnyCommand) -> Facts:
    """The facts of a log that opens a question and has these commands about it."""
    return oracle.facts_in(oracle.history(opened(), *commands))


def standing(facts: Facts, *, early: bool = True) -> Standing:
    """The participant, log position, start and end of each interval."""
    now = status(facts)
    rows = intervals(facts.forecasts, now.opens_at, now.closed_at, early=early)
    assert rows.question.tolist() == [0] * len(rows.row)
    people = [facts.participant_codes.labels[code] for code in rows.participant]
    positions = facts.forecasts.position[rows.row].tolist()
    return list(zip(people, positions, rows.start.tolist(), rows.end.tolist(), strict=True))


def test_a_forecast_stands_from_when_it_was_made_until_the_close() -> None:
    """The interval is half-open: the closing instant is outside."""
    assert standing(read(forecast(at=day(12)))) == [("ada", 2, micros(12), micros(20))]


def test_a_replaced_forecast_ends_where_the_next_begins() -> None:
    """Only forecasts of the same participant replace each other, even if others lie between them."""
    facts = read(forecast(at=day(11)), forecast(participant="bob", at=day(12)), forecast(at=day(13)))
    assert standing(facts) == [
        ("ada", 2, micros(11), micros(13)),
        ("ada", 4, micros(13), micros(20)),
        ("bob", 3, micros(12), micros(20)),
    ]


def test_a_forecast_before_and_one_after_a_gap_both_stand() -> None:
    """Nothing stands between the withdrawal and the next forecast."""
    facts = read(forecast(at=day(11)), withdrawal(at=day(13)), forecast(at=day(17)), withdrawal(at=day(18)))
    assert standing(facts) == [("ada", 2, micros(11), micros(13)), ("ada", 4, micros(17), micros(18))]


def test_several_may_withdraw_at_one_instant() -> None:
    """Every withdrawn forecast ends at that instant."""
    people = ["ada", "bob", "cyd"]
    forecasts = [forecast(participant=who, at=day(11)) for who in people]
    withdrawals = [withdrawal(participant=who, at=day(15)) for who in people]
    ends = [(who, number, micros(11), micros(15)) for number, who in enumerate(people, 2)]
    assert standing(read(*forecasts, *withdrawals)) == ends


def test_a_forecast_made_before_the_opening_stands_from_the_opening() -> None:
    """If several were made before the opening, the last one stands."""
    facts = read(forecast(at=day(6)), forecast(at=day(8)), forecast(participant="bob", at=day(9)))
    assert standing(facts) == [("ada", 3, micros(10), micros(20)), ("bob", 4, micros(10), micros(20))]


def test_an_early_forecast_never_stands_if_early_ones_do_not_count() -> None:
    """A forecast made at the opening instant is not early."""
    facts = read(
        forecast(at=day(9)),
        forecast(at=day(15)),
        forecast(participant="bob", at=day(9)),
        forecast(participant="cyd", at=OPENS),
    )
    assert standing(facts, early=False) == [("ada", 3, micros(15), micros(20)), ("cyd", 5, micros(10), micros(20))]


def test_a_forecast_withdrawn_before_the_opening_never_stands() -> None:
    """Nothing is left of it when the question opens."""
    assert standing(read(forecast(at=day(7)), withdrawal(at=day(8)))) == []
    assert standing(read(forecast(at=day(7)), withdrawal(at=OPENS))) == []


def test_an_early_close_ends_every_forecast() -> None:
    """Forecasts end at its instant, even those that were recorded before it; the earlier of two closes counts."""
    forecasts = [forecast(at=day(11)), forecast(participant="bob", at=day(14)), forecast(participant="cyd", at=day(16))]
    assert standing(read(*forecasts, closing(at=day(14)))) == [("ada", 2, micros(11), micros(14))]
    facts = read(*forecasts, closing(at=day(18)), closing(at=day(15)))
    assert standing(facts) == [("ada", 2, micros(11), micros(15)), ("bob", 3, micros(14), micros(15))]


def test_the_later_recorded_of_two_forecasts_at_one_instant_stands() -> None:
    """The first would stand for no time and has no interval."""
    facts = read(forecast(at=day(12)), forecast(at=day(12)))
    assert standing(facts) == [("ada", 3, micros(12), micros(20))]


def test_a_forecast_withdrawn_at_its_own_instant_leaves_no_interval() -> None:
    """The withdrawal does not end a forecast recorded after it at the same instant."""
    assert standing(read(forecast(at=day(12)), withdrawal(at=day(12)))) == []
    facts = read(forecast(at=day(12)), withdrawal(at=day(12)), forecast(at=day(12)))
    assert standing(facts) == [("ada", 4, micros(12), micros(20))]


def test_a_forecast_ends_by_itself_at_its_until() -> None:
    """Nothing stands from then on, until the participant forecasts again; one that ends after the close ends there."""
    facts = read(
        forecast(at=day(11), until=day(13)),
        forecast(participant="bob", at=day(12), until=day(21)),
        forecast(at=day(17), until=day(18)),
    )
    assert standing(facts) == [
        ("ada", 2, micros(11), micros(13)),
        ("ada", 4, micros(17), micros(18)),
        ("bob", 3, micros(12), micros(20)),
    ]


def test_what_comes_first_ends_a_forecast() -> None:
    """A later forecast, a withdrawal or an early close before `until`; `until` before them."""
    facts = read(forecast(at=day(11), until=day(15)), forecast(at=day(13)))
    assert standing(facts) == [("ada", 2, micros(11), micros(13)), ("ada", 3, micros(13), micros(20))]
    assert standing(read(forecast(until=day(15)), withdrawal(at=day(13)))) == [("ada", 2, micros(11), micros(13))]
    assert standing(read(forecast(until=day(15)), closing(at=day(14)))) == [("ada", 2, micros(11), micros(14))]
    assert standing(read(forecast(until=day(13)), closing(at=day(14)))) == [("ada", 2, micros(11), micros(13))]


def test_a_forecast_before_the_opening_that_ends_before_it_never_stands() -> None:
    """One that ends after the opening stands from the opening, if early forecasts count."""
    facts = read(forecast(at=day(6), until=OPENS), forecast(participant="bob", at=day(6), until=day(12)))
    assert standing(facts) == [("bob", 3, micros(10), micros(12))]
    assert standing(facts, early=False) == []


def test_a_forecast_recorded_after_its_end_has_no_weight_by_the_ledgers_clock() -> None:
    """With `clock = recorded` a forecast stands from when it was recorded, on the 12th, never beyond `until`."""
    history: list[AnyCommand] = [opened(), forecast(until=day(12)), forecast(participant="bob", until=day(13))]
    rules = RuleSet(name="x", kernel="brier", period="covered", total="mean", clock="recorded")
    history += [resolution(), contest(rules=rules), entry()]
    with Ledger.open(":memory:", clock=lambda: micros(12)) as ledger:
        ledger.handle_many(oracle.with_ids(history))
        table = Projections(oracle.facts_in([each for page in ledger.read() for each in page])).table("score_parts")
    assert [(row["participant"], row["from_at"], row["to_at"]) for row in table.rows()] == [("bob", day(12), day(13))]


def test_a_forecast_does_not_end_those_on_other_questions() -> None:
    """A forecast replaces one on the same question only."""
    facts = oracle.facts_in(
        oracle.history(
            opened(), opened("wind"), forecast(at=day(11)), forecast("wind", at=day(12)), forecast(at=day(13))
        )
    )
    now = status(facts)
    rows = intervals(facts.forecasts, now.opens_at, now.closed_at)
    assert rows.question.tolist() == [0, 0, 1]
    assert rows.end.tolist() == [micros(13), micros(20), micros(20)]
    assert rows.of(rows.row[[2, 0]]).start.tolist() == [micros(12), micros(11)]


def test_no_forecasts_stand_nowhere() -> None:
    """A question alone has no rows."""
    assert standing(read()) == []


def test_the_table_has_when_each_forecast_was_made_and_its_log_position() -> None:
    """Rows are sorted by question, participant and start; instants are in RFC 3339."""
    table = oracle.projected(
        opened(), forecast(participant="bob", at=day(12)), forecast(at=day(8)), forecast(at=day(14, 6))
    ).table("standing")
    assert [tuple(row.values()) for row in table.rows()] == [
        ("rain", "ada", "2026-03-10T00:00:00Z", "2026-03-14T06:00:00Z", "2026-03-08T00:00:00Z", 3),
        ("rain", "ada", "2026-03-14T06:00:00Z", "2026-03-20T00:00:00Z", "2026-03-14T06:00:00Z", 4),
        ("rain", "bob", "2026-03-12T00:00:00Z", "2026-03-20T00:00:00Z", "2026-03-12T00:00:00Z", 2),
    ]


@pytest.mark.parametrize("resolved", [[], [resolution(known_at=day(12))], [resolution(at=AFTER, outcome="no")]])
def test_intervals_do_not_depend_on_the_answer(resolved: list[AnyCommand]) -> None:
    """Scored time may end earlier, but the forecast stands until the close."""
    assert standing(read(forecast(at=day(11)), *resolved)) == [("ada", 2, micros(11), micros(20))]


def slowly(world: oracle.World) -> list[tuple[str, str, int, int, int]]:
    """Question, participant, log position, start, end: one row for as long as the same forecast stands."""
    rows: list[tuple[str, str, int, int, int]] = []
    for name, question in world.questions.items():
        before: dict[tuple[str, int], int] = {}  # participant and log position -> row
        for start, end in question.stretches(question.closed_at):
            now = {(who, position): -1 for who, (position, _) in question.standing(start).items()}
            for who, position in now:
                if (who, position) not in before:
                    rows.append((name, who, position, start, end))
                now[who, position] = place = before.get((who, position), len(rows) - 1)
                rows[place] = (*rows[place][:4], end)
            before = now
    return sorted(rows, key=itemgetter(0, 1, 3))


@settings(max_examples=times(50), deadline=None)
@given(oracle.logs())
def test_forecasts_stand_when_the_slow_definition_says(commands: Sequence[AnyCommand]) -> None:
    """The intervals equal those found by looking up every participant's last statement at every recorded instant."""
    recorded, _ = oracle.attempted(commands)
    table = Projections(oracle.facts_in(recorded)).table("standing")
    columns = itemgetter("question", "participant", "log_position", "from_at", "to_at")
    slow = [
        (question, who, position, format_instant(start), format_instant(end))
        for question, who, position, start, end in slowly(oracle.world(recorded))
    ]
    assert [columns(row) for row in table.rows()] == slow
