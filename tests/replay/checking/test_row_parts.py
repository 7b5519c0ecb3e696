"""What is checked by the columns that rows are read as has the verdict that the rows have one by one."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.replay.audit.verify import run_checks
from forecast_ledger.replay.checking import side_by_side
from forecast_ledger.replay.checking.side_by_side import Beginning
from forecast_ledger.replay.reading.log import Log
from tests.replay.checking.test_side_by_side import same, told
from tests.support.forging import written as forged
from tests.support.given import contest, day, forecast, micros, numeric, opened, resolution
from tests.support.logs import recorded, written


def test_few_rows_are_read_one_by_one(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no forecast, two of 22, and the last row, whose command may go on; the ledger has stamped every other."""
    read, decode_rows = list[int](), log.decode_rows

    def noted(rows: Sequence[bytes]) -> list[Recorded]:
        read.append(len(rows))
        return decode_rows(rows)

    people = ["ada", "bob"] * 10
    made = [forecast(participant=who, at=day(10) if who == "ada" else None) for who in people]
    path = written(tmp_path / "log.db", [opened(), contest(), *made], at=micros(19))
    monkeypatch.setattr(log, "decode_rows", noted)
    monkeypatch.setattr(side_by_side, "PART", 100)
    run_checks(Log(path), side_by_side=True)
    assert begun != [None]
    assert sum(read) == 2 * (2 + 1)  # once where they are checked, and once where they are decided


def test_forecasts_of_both_kinds_are_taken_in_the_order_of_the_log(
    tmp_path: Path, begun: list[Beginning | None]
) -> None:
    """Cumulative ones are no columns: one before the answer to its question, between two of a probability."""
    commands: list[AnyCommand] = [
        *(opened(), numeric()),
        forecast(participant="ada", at=day(11)),
        forecast("depth", probability=None, cdf=["0", "0.25", "0.5", "0.75", "1"], at=day(11)),
        resolution("depth", value="1.5", at=day(12)),
        *(forecast(participant="bob", at=day(number)) for number in (13, 14)),
    ]
    assert same(written(tmp_path / "log.db", commands))
    assert begun != [None]


def test_a_probability_for_a_question_of_other_numbers_is_found(tmp_path: Path, begun: list[Beginning | None]) -> None:
    """Its command is known to have said it, and would have been refused."""
    rows = recorded([opened(), numeric(), *(forecast(participant=who, at=day(11)) for who in ("ada", "bob", "cyd"))])
    assert not same(forged(tmp_path / "log.db", told(question="depth")(rows, 3)))
    assert begun == [None]
