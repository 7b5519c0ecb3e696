"""Data frames and lists of dicts, scored in one step or appended by a map."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from forecast_ledger import LedgerError, Refused, append_frame, open, replay, score  # noqa: A004
from tests.support.late import pandas, polars

FORECASTS = [
    {"question": "rain", "user": "ada", "time": datetime(2026, 3, 1, tzinfo=UTC), "probability": 0.8},
    {"question": "rain", "user": "ada", "time": datetime(2026, 3, 2, tzinfo=UTC), "probability": 0.9},
    {"question": "snow", "user": "ada", "time": datetime(2026, 3, 1, tzinfo=UTC), "probability": 0.1},
    {"question": "rain", "user": "bo", "time": datetime(2026, 3, 2, tzinfo=UTC), "probability": None},
    {"question": "rain", "user": "cy", "time": datetime(2026, 3, 2, tzinfo=UTC), "probability": 0.4},
]
ANSWERS = [{"question": "rain", "outcome": True}, {"question": "snow", "outcome": False}]
SCORES = {"ada": "0.010000000", "cy": "0.360000000"}  # (0.1² + 0.1²) / 2, 0.6²
FRAMES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "list": list,
    "pandas": lambda rows: pandas.DataFrame(rows),  # noqa: PLW0108 - late
    "polars": lambda rows: polars.DataFrame(rows),  # noqa: PLW0108 - late
    "pyarrow": pa.Table.from_pylist,
}


def scores(*tables: Any, **options: Any) -> dict[str, str]:
    """The score of each participant."""
    rows = score(*tables, **options).table("leaderboard").rows()
    return {row["participant"]: str(row["score"]) for row in rows}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_scored_as_a_file_is(kind: str) -> None:
    """Of any library, and a list of dicts; the last forecast before the close counts, and one without a number none."""
    said = list[str]()
    make = FRAMES[kind]
    assert scores(make(FORECASTS), make(ANSWERS), on_message=said.append) == SCORES
    assert said[0] == "forecasts: 5 rows"
    assert "no forecast is made of 1 row without a number, a question or a forecaster; the first is row 4" in said
    assert "2 binary questions, 2 forecasters, 4 forecasts" in said


def test_a_file_may_be_one_of_the_tables(tmp_path: Path) -> None:
    """By its path; and the log may be kept, for everything else."""
    answers, log = tmp_path / "answers.csv", tmp_path / "season.db"
    answers.write_text("question,outcome\nrain,yes\nsnow,no\n", encoding="utf-8")
    assert scores(pandas.DataFrame(FORECASTS), str(answers), location=log, contest="march") == SCORES
    assert [row["contest"] for row in replay(log).table("leaderboard").rows()] == ["march", "march"]


def test_what_is_ambiguous_is_settled_by_an_argument() -> None:
    """As by the options of the command."""
    rows = [{"question": "rain", "user": "ada", "model": "m", "p": 90, "answer": "ja"}]
    with pytest.raises(Refused, match="'user', 'model'"):
        score(rows)
    settled: dict[str, Any] = {"columns": {"forecaster": "user"}, "percent": True, "meanings": {"ja": "yes"}}
    assert scores(rows, **settled) == {"ada": "0.010000000"}
    assert scores(rows, rules="log", **settled) == {"ada": "-0.105360516"}  # ln 0.9
    options = [{"q": "x", "red": Decimal("0.7"), "blue": Decimal("0.2"), "answer": "red"}]
    wide = scores(options, columns={"question": ["q"]}, columns_are="options", normalize=0.1)
    assert wide == {"forecasts": "0.049382716"}  # (2/9)²
    with pytest.raises(Refused, match="columns_are = 'rows': it is one of forecasters"):
        score(rows, columns_are="rows")


def test_a_row_that_is_refused_is_raised_unless_somebody_is_told() -> None:
    """Then the others count."""
    rows = [{"question": "rain", "user": who, "p": p, "outcome": 1} for who, p in (("ada", 0.9), ("bo", -0.5))]
    with pytest.raises(Refused, match="row 2, submit_forecast"):
        score(rows)
    told = list[str]()
    assert scores(rows, on_refusal=lambda place, refused: told.append(f"{place.line} {refused.code}")) == {
        "ada": "0.010000000"
    }
    assert told == ["2 out_of_range"]


def test_what_is_no_table_is_a_wrong_type() -> None:
    """And so is a column that is not named by a text; a value that no cell has is refused with its column."""
    for wrong in (7, None, [1], {"question": ["rain"]}):
        with pytest.raises(TypeError):
            score(wrong)
    with pytest.raises(TypeError, match="names of columns for time"):
        score(FORECASTS, ANSWERS, columns={"time": 3})
    with pytest.raises(LedgerError, match="p: a value of the type list"):
        score([{"question": "rain", "p": [0.5]}])


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_appended_by_a_map(kind: str, tmp_path: Path) -> None:
    """As a CSV is; sent again, its rows are duplicates."""
    path = tmp_path / "own.toml"
    path.write_text(
        """
[[command]]
type = "open_question"
id = "{question}"
[command.fields]
at = "2026-03-01T00:00:00Z"
question = "{question}"
kind = "binary"
opens_at = "2026-03-01T00:00:00Z"
closes_at = "2026-03-09T00:00:00Z"
""",
        encoding="utf-8",
    )
    with open(":memory:") as ledger:
        frame = FRAMES[kind](ANSWERS)
        assert append_frame(ledger, frame, map=path) == {"accepted": 2, "duplicate": 0, "refused": 0}
        assert append_frame(ledger, frame, map=path) == {"accepted": 0, "duplicate": 2, "refused": 0}
