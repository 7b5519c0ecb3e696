"""When forecasts stand: from the making or the opening until replaced, withdrawn or closed."""

from collections.abc import Sequence
from operator import itemgetter

import pytest
from hypothesis import given, settings

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.facts.standing import intervals
from tests.support import oracle
from tests.support.given import (
    AFTER,
    OPENS,
    closing,
    day,
    forecast,
    micros,
    opened,
    resolution,
    withdrawal,
)

Standing = list[tuple[str, int, int, int]]


def read(*said: AnyCommand) -> Facts:
    """The facts after a question has been opened and this was said about it."""
    return oracle.told(oracle.history(opened(), *said))


def standing(found: Facts, *, early: bool = True) -> Standing:
    """Participant, log position, from, to of each interval."""
    now = status(found)
    rows = intervals(found.forecasts, now.opens_at, now.closed_at, early=early)
    assert rows.question.tolist() == [0] * len(rows.row)
    people = [found.participant_codes.labels[code] for code in rows.participant]
    positions = found.forecasts.position[rows.row].tolist()
    return list(zip(people, positions, rows.start.tolist(), rows.end.tolist(), strict=True))


def test_a_forecast_stands_from_when_it_was_made_until_the_close() -> None:
    """Half-open: the closing instant is outside."""
    assert standing(read(forecast(at=day(12)))) == [("ada", 2, micros(12), micros(20))]


def test_a_replaced_forecast_ends_where_the_next_begins() -> None:
    """Each participant's own forecasts, however others' lie between them."""
    found = read(forecast(at=day(11)), forecast(participant="bob", at=day(12)), forecast(at=day(13)))
    assert standing(found) == [
        ("ada", 2, micros(11), micros(13)),
        ("ada", 4, micros(13), micros(20)),
        ("bob", 3, micros(12), micros(20)),
    ]


def test_a_forecast_before_and_one_after_a_gap_both_stand() -> None:
    """From the withdrawal to the re-entry nothing stands."""
    found = read(forecast(at=day(11)), withdrawal(at=day(13)), forecast(at=day(17)), withdrawal(at=day(18)))
    assert standing(found) == [("ada", 2, micros(11), micros(13)), ("ada", 4, micros(17), micros(18))]


def test_several_may_withdraw_at_one_instant() -> None:
    """All of them end there, and nobody's forecast stays."""
    people = ["ada", "bob", "cyd"]
    said = [forecast(participant=who, at=day(11)) for who in people]
    gone = [withdrawal(participant=who, at=day(15)) for who in people]
    ends = [(who, number, micros(11), micros(15)) for number, who in enumerate(people, 2)]
    assert standing(read(*said, *gone)) == ends


def test_a_forecast_made_before_the_opening_stands_from_the_opening() -> None:
    """Of several made before, the last."""
    found = read(forecast(at=day(6)), forecast(at=day(8)), forecast(participant="bob", at=day(9)))
    assert standing(found) == [("ada", 3, micros(10), micros(20)), ("bob", 4, micros(10), micros(20))]


def test_where_early_forecasts_do_not_count_only_one_from_the_opening_on_stands() -> None:
    """Made at the opening instant is not early."""
    found = read(
        forecast(at=day(9)),
        forecast(at=day(15)),
        forecast(participant="bob", at=day(9)),
        forecast(participant="cyd", at=OPENS),
    )
    assert standing(found, early=False) == [("ada", 3, micros(15), micros(20)), ("cyd", 5, micros(10), micros(20))]


def test_a_forecast_withdrawn_before_the_opening_never_stands() -> None:
    """Nothing is left of it when the question opens."""
    assert standing(read(forecast(at=day(7)), withdrawal(at=day(8)))) == []
    assert standing(read(forecast(at=day(7)), withdrawal(at=OPENS))) == []


def test_an_early_close_ends_every_forecast() -> None:
    """At its own instant, though it be recorded after forecasts that claim a later one, and of two the earlier."""
    said = [forecast(at=day(11)), forecast(participant="bob", at=day(14)), forecast(participant="cyd", at=day(16))]
    assert standing(read(*said, closing(at=day(14)))) == [("ada", 2, micros(11), micros(14))]
    found = read(*said, closing(at=day(18)), closing(at=day(15)))
    assert standing(found) == [("ada", 2, micros(11), micros(15)), ("bob", 3, micros(14), micros(15))]


def test_of_two_forecasts_at_one_instant_the_later_recorded_stands() -> None:
    """The first stands for no time at all and leaves no interval."""
    found = read(forecast(at=day(12)), forecast(at=day(12)))
    assert standing(found) == [("ada", 3, micros(12), micros(20))]


def test_a_forecast_withdrawn_at_its_own_instant_leaves_no_interval() -> None:
    """Nor does it end what is made after it at that instant."""
    assert standing(read(forecast(at=day(12)), withdrawal(at=day(12)))) == []
    found = read(forecast(at=day(12)), withdrawal(at=day(12)), forecast(at=day(12)))
    assert standing(found) == [("ada", 4, micros(12), micros(20))]


def test_questions_are_kept_apart() -> None:
    """A forecast replaces one on the same question only."""
    found = oracle.told(
        oracle.history(
            opened(), opened("wind"), forecast(at=day(11)), forecast("wind", at=day(12)), forecast(at=day(13))
        )
    )
    now = status(found)
    rows = intervals(found.forecasts, now.opens_at, now.closed_at)
    assert rows.question.tolist() == [0, 0, 1]
    assert rows.end.tolist() == [micros(13), micros(20), micros(20)]
    assert rows.of(rows.row[[2, 0]]).start.tolist() == [micros(12), micros(11)]


def test_no_forecasts_stand_nowhere() -> None:
    """A question alone has no rows."""
    assert standing(read()) == []


def test_the_table_says_when_each_forecast_was_made_and_where_the_log_has_it() -> None:
    """Sorted by question, participant and instant, in RFC 3339."""
    table = oracle.projected(
        opened(), forecast(participant="bob", at=day(12)), forecast(at=day(8)), forecast(at=day(14, 6))
    ).table("standing")
    assert [tuple(row.values()) for row in table.rows()] == [
        ("rain", "ada", "2026-03-10T00:00:00Z", "2026-03-14T06:00:00Z", "2026-03-08T00:00:00Z", 3),
        ("rain", "ada", "2026-03-14T06:00:00Z", "2026-03-20T00:00:00Z", "2026-03-14T06:00:00Z", 4),
        ("rain", "bob", "2026-03-12T00:00:00Z", "2026-03-20T00:00:00Z", "2026-03-12T00:00:00Z", 2),
    ]


@pytest.mark.parametrize("resolved", [[], [resolution(known_at=day(12))], [resolution(at=AFTER, outcome="no")]])
def test_what_stood_does_not_depend_on_the_answer(resolved: list[AnyCommand]) -> None:
    """Scored time may end before, the forecast stands until the close."""
    assert standing(read(forecast(at=day(11)), *resolved)) == [("ada", 2, micros(11), micros(20))]


def slowly(found: oracle.World) -> list[tuple[str, str, int, int, int]]:
    """Question, participant, log position, from, to: one row while the same statement stands."""
    rows: list[tuple[str, str, int, int, int]] = []
    for name, question in found.questions.items():
        before: dict[tuple[str, int], int] = {}  # who and what stands -> its row
        for start, end in question.stretches(question.closed_at):
            now = {(who, position): -1 for who, (position, _) in question.standing(start).items()}
            for who, position in now:
                if (who, position) not in before:
                    rows.append((name, who, position, start, end))
                now[who, position] = place = before.get((who, position), len(rows) - 1)
                rows[place] = (*rows[place][:4], end)
            before = now
    return sorted(rows, key=itemgetter(0, 1, 3))


@settings(max_examples=100, deadline=None)
@given(oracle.logs())
def test_forecasts_stand_when_the_slow_definition_says(asked: Sequence[AnyCommand]) -> None:
    """Looking up everyone's last word at every instant at which anything was said, over logs of all kinds."""
    recorded, _ = oracle.attempted(asked)
    table = Projections(oracle.told(recorded)).table("standing")
    columns = itemgetter("question", "participant", "log_position", "from_at", "to_at")
    slow = [
        (question, who, position, format_instant(start), format_instant(end))
        for question, who, position, start, end in slowly(oracle.world(recorded))
    ]
    assert [columns(row) for row in table.rows()] == slow
