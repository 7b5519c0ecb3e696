"""Tests of forecasts that another process has read: they leave the rows and the state of forecasts decided here."""

import pickle
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching import sent_forecasts, writer_state
from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.batching.checks import Claims
from forecast_ledger.ledger.batching.forecasts import ForecastColumns
from forecast_ledger.ledger.batching.sent_forecasts import SentForecasts, pack
from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.segments import sealing
from forecast_ledger.ledger.storing import stored_log
from forecast_ledger.ledger.storing.segment_appender import appended
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.effort import times
from tests.support.given import (
    DAY,
    NOW,
    choices,
    closing,
    day,
    forecast,
    numeric,
    opened,
    remembered,
    renaming,
    resolution,
    revocation,
    withdrawal,
)
from tests.support.logs import rows

IDS = ("f{}", "f{}", "f{}", "é{}", "日{}", "a-longer-id-{}")
STORY = [opened(), opened("snow"), opened("hail"), choices(), numeric()]


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few commands are many, and the texts of two rows are sent together."""
    for module, name, value in ((writer_state, "RECENT", 2), (writer_state, "FEW", 1), (sent_forecasts, "_AT_ONCE", 2)):
        monkeypatch.setattr(module, name, value)


def time(hour: int) -> str:
    """An hour after the questions open."""
    return day(10 + hour // 24, hour % 24)


def columns(dice: Random, hour: int) -> ForecastColumns:
    """Forecasts, most of them in order of time and on questions that take them; some ids occur again."""
    count = dice.randrange(1, 9)
    hours = sorted(hour + dice.randrange(4) for _ in range(count))
    if dice.random() < 0.2:
        dice.shuffle(hours)
    most = 10**6 if dice.random() < 0.7 else 20
    names = ("rain", "snow", "hail") if dice.random() < 0.9 else ("colour", "depth", "unknown")
    return ForecastColumns(
        id=[dice.choice(IDS).format(dice.randrange(most)) for _ in range(count)],
        at=[*map(time, hours)] if dice.random() < 0.9 else None,
        question=[dice.choice(names) for _ in range(count)],
        participant=[dice.choice(("ada", "bo", "cé", "dee")) for _ in range(count)],
        probability=[f"0.{dice.randrange(1, 999):03}" for _ in range(count)],
    )


def other(dice: Random, hour: int) -> AnyCommand:
    """A command that reads or changes what stands."""
    at, who = time(hour), dice.choice(("ada", "bo", "dee"))
    found: list[AnyCommand] = [withdrawal(question, who, at=at) for question in ("rain", "snow", "hail")]
    found += [resolution("snow", at=at), revocation("snow", at=at)]
    return dice.choice(found + [closing("hail", at=at), renaming("bo", "ben", at=at)] * (hour > 40))


@pytest.mark.parametrize("seed", range(times(60)))
def test_sent_forecasts_leave_the_rows_and_the_state_of_others(seed: int) -> None:
    """Between other commands, with ids used before, closed and unknown questions, and instants that go back."""
    dice, taken = Random(seed), Counter[bool]()
    clock = lambda: NOW + 99 * DAY  # noqa: E731 - of both
    with Ledger.open(":memory:", clock=clock) as one, Ledger.open(":memory:", clock=clock) as two:
        for ledger in (one, two):
            ledger.handle_many([structs.replace(each, id=f"o{number}") for number, each in enumerate(STORY)])
        for step in range(40):
            hour = 2 * step + dice.randrange(4)
            if dice.random() < 0.2:
                command = structs.replace(other(dice, hour), id=f"c{step}")
                assert str(one.handle_many([command])) == str(two.handle_many([command]))
                continue
            forecasts = columns(dice, hour)
            sent: SentForecasts = pickle.loads(pickle.dumps(pack(forecasts)))  # noqa: S301 - it was pickled here
            outcomes = two.handle_many([*forecasts])
            is_taken = one.record_sent(sent)
            taken[is_taken] += 1
            if is_taken:
                assert all(type(each) is Receipt and not each.duplicate for each in outcomes)
            else:
                assert str(one.handle_many(sent.forecasts(lambda: forecasts))) == str(outcomes)  # noqa: B023
        one_rows, two_rows = ([row for page in each._store.pages() for row in page] for each in (one, two))
        assert one_rows == two_rows
        assert remembered(one) == remembered(two)
    assert taken[True]
    assert taken[False]


def test_sent_forecasts_go_into_segments_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As columns, from which their rows are made again."""
    monkeypatch.setattr(sealing, "_MANY", 1)
    forecasts = ForecastColumns(
        id=[f"f{number}" for number in range(30)],
        at=[time(number) for number in range(30)],
        question=["rain", "snow", "hail"] * 10,
        participant=["ada", "bo"] * 15,
        probability=[f"0.{number + 1:02}" for number in range(30)],
    )
    sent, clock = pack(forecasts), lambda: NOW + 99 * DAY
    assert sent is not None
    with appended(tmp_path / "s", clock=clock) as one, Ledger.open(":memory:", clock=clock) as two:
        for ledger in (one, two):
            ledger.handle_many([structs.replace(each, id=f"o{number}") for number, each in enumerate(STORY)])
        assert one.record_sent(sent)
        two.handle_many([*forecasts])
        expected = [row for page in two._store.pages() for row in page]
        assert [row for page in one._store.pages() for row in page] == expected
    assert rows(str(tmp_path / "s")) == expected


def test_not_more_than_some_forecasts_are_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory would grow with the log, and not with what stands."""
    monkeypatch.setattr(sent_forecasts, "_MOST_PENDING", 5)
    with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as ledger:
        ledger.handle_many([structs.replace(each, id=f"o{number}") for number, each in enumerate(STORY)])
        sizes = list[int]()
        for hour in range(5):
            columns = {"at": [time(hour)] * 3, "question": ["rain"] * 3, "participant": ["ada", "bo", "cy"]}
            sent = pack(ForecastColumns(id=[f"f{hour}{n}" for n in range(3)], **columns, probability=["0.5"] * 3))
            assert sent is not None
            assert ledger.record_sent(sent)
            sizes.append(sent_forecasts.pending_forecasts(ledger._known.state).size)
        assert sizes == [3, 0, 3, 0, 3]


def test_sent_forecasts_are_kept_when_what_stood_before_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand once the temporary file, which has what stands on a question that was resolved, can be read again."""
    names = {"question": ["rain", "snow"], "participant": ["ada", "bo"], "probability": ["0.1", "0.2"]}
    forecasts = [
        ForecastColumns(id=[f"{part}1", f"{part}2"], at=[time(hour)] * 2, **names) for hour, part in enumerate("ab")
    ]
    between: list[AnyCommand] = [resolution("snow", at=time(0), id="r1"), revocation("snow", at=time(0))]
    last: list[AnyCommand] = [withdrawal("rain", "ada", at=time(9))]
    between[1], last[0] = structs.replace(between[1], id="r2"), structs.replace(last[0], id="w")
    with Ledger.open(":memory:", clock=lambda: NOW) as one, Ledger.open(":memory:", clock=lambda: NOW) as two:
        for ledger in (one, two):
            ledger.handle_many([structs.replace(each, id=f"o{number}") for number, each in enumerate(STORY)])
        for part, commands in zip(forecasts, (between, last), strict=True):
            sent = pack(part)
            assert sent is not None
            assert one.record_sent(sent)
            two.handle_many(part)
            with monkeypatch.context() as patch:
                patch.setattr(writer_state.StandingFile, "get", Mock(side_effect=Unavailable("no disk")))
                with suppress(Unavailable):  # there is nothing to be read yet when the first commands are decided
                    one.handle_many(commands)
            one.handle_many(commands)
            two.handle_many(commands)
        assert remembered(one) == remembered(two)


@pytest.mark.parametrize("withdrawn", [(), ("bo",), ("ada",), ("ada", "bo")])
def test_sent_forecasts_before_what_stands_are_not_taken(withdrawn: tuple[str, ...]) -> None:
    """Whether it ends by itself, as what is withdrawn does, or not."""
    hours = {"ada": 5, "bo": 3}
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "o1")
        for who, hour in hours.items():
            ledger.handle(forecast("rain", who, at=time(hour)), f"f-{who}")
        for who in withdrawn:
            ledger.handle(withdrawal("rain", who, at=time(hours[who])), f"w-{who}")
        for hour, is_taken in ((4, False), (5, True)):
            columns = ForecastColumns(
                id=[f"g{hour}", f"h{hour}"],
                at=[time(hour)] * 2,
                question=["rain"] * 2,
                participant=["ada", "cé"],
                probability=["0.1", "0.2"],
            )
            sent = pack(columns)
            assert sent is not None
            assert ledger.record_sent(sent) is is_taken


@pytest.mark.parametrize("is_recorded", [False, True])
def test_sent_forecasts_may_fail_to_be_recorded(is_recorded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand, and their ids are known, only if the log has them."""

    def fail(turn: Any, new: Any) -> None:
        if is_recorded:
            append(turn, new)
        raise Unavailable("no answer")

    append, forecasts = stored_log._Turn.append, columns(Random(1), 0)
    sent = pack(forecasts)
    assert sent is not None
    with Ledger.open(":memory:", clock=lambda: NOW) as one, Ledger.open(":memory:", clock=lambda: NOW) as two:
        for ledger in (one, two):
            ledger.handle_many([structs.replace(each, id=f"o{number}") for number, each in enumerate(STORY)])
        with monkeypatch.context() as patch:
            patch.setattr(stored_log._Turn, "append", fail)
            with pytest.raises(Unavailable):
                one.record_sent(sent)
        if is_recorded:
            two.handle_many(forecasts)
        assert one.head() == two.head()
        assert remembered(one) == remembered(two)
        assert one.record_sent(sent) is not is_recorded


def test_limits_of_claims_are_for_sent_forecasts_too() -> None:
    """They are then decided one by one, and refused."""
    forecasts = columns(Random(1), 0)
    sent = pack(forecasts)
    assert sent is not None
    with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as ledger:
        for number, command in enumerate(STORY):
            ledger.handle(command, f"o{number}")
        ledger.claims = Claims.read("1h")
        assert not ledger.record_sent(sent)
