"""Forecasts as columns are those as commands, and lines that are read as columns are the commands on them."""

import json
import random
from decimal import Decimal
from typing import Any

import pytest

from forecast_ledger.ledger.batching.forecasts import ForecastColumns, read_lines
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import DAY, NOW, day, opened

COLUMNS: dict[str, list[Any]] = {
    "id": ["f1", "f2", "f2", "", "f5", "f6", []],
    "at": [day(2), day(3), day(3), day(3), "then", day(4), day(4)],
    "question": ["rain"] * 7,
    "participant": ["ada", "bob", "bob", "cy", "dee", None, "eve"],
    "probability": ["0.5", Decimal("0.25"), "0.75", 1, 0.5, "0.5", "0.5"],
}
LINE = {"id": "f", "type": "submit_forecast", "at": day(2), "question": "q", "participant": "p", "probability": "0.5"}
VALUES: list[Any] = [None, True, 5, 0.25, 1e-7, 10**30, "0.50", "", "é", [], {}, [0.5]]


def test_an_item_is_the_command_and_a_slice_has_the_same_columns() -> None:
    """As of any sequence of commands."""
    forecasts = ForecastColumns(**COLUMNS)
    every = [
        commands.SubmitForecast(**dict(zip(COLUMNS, values, strict=True)))
        for values in zip(*COLUMNS.values(), strict=True)
    ]
    assert [*forecasts] == every
    assert [forecasts[place] for place in range(-7, 7)] == [every[place] for place in range(-7, 7)]
    assert [*forecasts[1:5:2]] == every[1:5:2]
    assert isinstance(forecasts[2:], ForecastColumns)
    with pytest.raises(IndexError):
        forecasts[7]


def test_columns_have_the_outcomes_and_the_rows_of_commands() -> None:
    """With duplicates, reused ids and refusals between them, alone and in one transaction."""
    for atomic in (False, True):
        found = []
        for sent in (ForecastColumns(**COLUMNS), [*ForecastColumns(**COLUMNS)]):
            with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as ledger:
                ledger.handle(opened(), "c1")
                outcomes = [ledger.handle_many(sent, atomic=atomic), ledger.handle_many(sent)]
                rows = [row for page in ledger._store.pages() for row in page]
            found.append((str(outcomes), rows))
            assert sum(isinstance(outcome, Refused) for outcome in outcomes[0]) == (7 if atomic else 5)
        assert found[0] == found[1]


def test_columns_of_different_lengths_are_refused() -> None:
    """The message has the length of each."""
    with pytest.raises(ValueError, match="'probability': 6"):
        ForecastColumns(**COLUMNS | {"probability": ["0.5"] * 6})


def test_lines_are_read_as_the_commands_on_them() -> None:
    """A line that is no plain forecast is left to the other way, alone or among others."""
    dice, taken = random.Random(7), 0
    for _ in range(600):
        fields: dict[str, Any] = {name: value for name, value in LINE.items() if dice.random() < 0.97}
        if dice.random() < 0.5:
            fields[dice.choice([*LINE])] = dice.choice(VALUES)
        if dice.random() < 0.3:
            fields[dice.choice(["until", "cdf", "quantiles", "probabilities", "attestation", "odd"])] = dice.choice(
                VALUES
            )
        line = json.dumps(fields).encode() + dice.choice([b"", b"\n", b"\r\n", b" \n"])
        read = read_lines([line])
        assert read_lines([json.dumps(LINE).encode(), line, line]) is None or read is not None
        if read is not None:
            taken += 1
            assert read[0] == commands.read(line)
            assert type(read[0].probability) is type(commands.read(line).probability)  # type: ignore[union-attr]
    assert 100 < taken < 500


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"{", b"null", b"[]", b"\xff", b'{"a":' * 9999, json.dumps(LINE).encode() + b"{}", b'"\\ud800"'],
)
def test_a_line_that_is_no_command_is_left_to_the_other_way(line: bytes) -> None:
    """Which refuses it in its own words."""
    assert read_lines([json.dumps(LINE).encode(), line]) is None
