"""Rows of which earlier ones have said all but the forecast: read together, they give the same commands."""

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.input_locations import ReadCommand
from forecast_ledger.replay.mapping import row_blocks
from forecast_ledger.replay.mapping.csv_mapping import map_records, parse_map, read_commands
from forecast_ledger.replay.mapping.csv_reader import SourceRecord, read_sources
from forecast_ledger.replay.mapping.row_blocks import commands_once

MAP = """
[[command]]
type = "open_contest"
id = "contest"
where = { "#" = "1" }
[command.fields]
at = "2026-03-01T00:00:00Z"
contest = "c"
rules = "peer-2024-03"

[[command]]
type = "open_question"
id = "open {q}"
WHERE
[command.fields]
at = "2026-03-01T00:00:00Z"
question = "{q}"
kind = "binary"
opens_at = "2026-03-01T00:00:00Z"
closes_at = "{closes}"

[[command]]
type = "submit_forecast"
id = "ID"
[command.fields]
at = { from = "{day}", offset = "Z" }
question = "{q}"
participant = "{who}"
probability = "{p}"

[[command]]
type = "close_question"
id = "close {q}"
where = { closes = { not = ["soon"] } }
[command.fields]
at = "{closes}"
question = "{q}"
"""
_CELLS = [
    st.sampled_from(["rain", "snow", "hail", ""]),
    st.sampled_from(["2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z", "soon"]),
    st.sampled_from(["2026-03-02", "2026-03-03", "2026-02-30", ""]),
    st.sampled_from(["ada", "bo"]),
    st.sampled_from(["0.5", "1", "2", "x", ""]),
]
ROWS = st.lists(st.tuples(*_CELLS).map(",".join) | st.sampled_from(["rain,1", ""]), max_size=30)
USUAL = st.lists(st.sampled_from(["rain", "snow"]).map("{},2026-04-01T00:00:00Z,2026-03-02,ada,0.5".format))


def records(rows: list[str]) -> Iterator[SourceRecord]:
    """The records of a table."""
    return read_sources(io.BytesIO("\n".join(["q,closes,day,who,p", *rows, ""]).encode()))


def said(commands: Callable[[], Iterable[ReadCommand]]) -> Any:
    """Commands with their lines; refusals, also of the whole table, by what they say."""
    try:
        found = [*commands()]
    except Refused as refused:
        return str(refused)
    each = [(place, str(command) if isinstance(command, Refused) else command) for place, command in found]
    return [(place.line, place.command, dict(place.columns), command) for place, command in each]


def on_first_lines(found: Any, rows: list[str]) -> Any:
    """Commands, and of those that are no forecasts the first line that says what their own says beside its forecast."""
    if isinstance(found, str):
        return found
    texts = ["", "", *(row.split(",")[:2] for row in rows)]
    return [
        (line if name in {"", "submit_forecast", "open_contest"} else texts.index(texts[line]), name, *rest)
        for line, name, *rest in found
    ]


@pytest.mark.parametrize("name", ["{q} {who} {day}", "row {#}"])
@pytest.mark.parametrize("where", ["", 'where = { q = { not = ["hail"] } }', 'present = ["q"]'])
@pytest.mark.parametrize("sort", ["", 'sort = "at"\n'])
@examples(rows=ROWS | USUAL, size=st.integers(1, 7))
def test_rows_that_are_read_together_give_the_same_commands(
    name: str, where: str, sort: str, rows: list[str], size: int
) -> None:
    """As one by one, in blocks of any size: each command once, with its line, and what is refused.

    A command that several rows have is on the first of them, if the map sorts.
    """
    mapping = parse_map((sort + MAP.replace("ID", name).replace("WHERE", where)).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "_BLOCK", size)
        together = said(lambda: commands_once(mapping, records(rows)))
    alone = said(lambda: map_records(mapping, records(rows), once=True).commands)
    assert (on_first_lines(together, rows) if sort else together) == (on_first_lines(alone, rows) if sort else alone)


def test_most_rows_of_a_usual_table_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first row of each question is read by itself."""
    alone = list[int]()
    plain = read_commands

    def counted(bound: Any, header: Any, rows: Any, **options: Any) -> Any:
        alone.extend(number for number, _ in rows)
        return plain(bound, header, rows, **options)

    monkeypatch.setattr(row_blocks, "read_commands", counted)
    rows = [f"{question},2026-04-01T00:00:00Z,2026-03-0{day},ada,0.{day}" for day in range(1, 9) for question in "abc"]
    commands = [*commands_once(parse_map(MAP.replace("ID", "{q} {day}").replace("WHERE", "").encode()), records(rows))]
    assert alone == [1, 2, 3, 4]  # the first row also opens the contest
    assert len(commands) == 1 + 3 + 24 + 3
