"""Parts of a page: tables with their cells, pictures, and what is said of a contest and of a participant."""

from collections.abc import Iterable, Mapping, Sequence
from math import floor, log10
from typing import Any, NamedTuple

from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.pages.pictures import Row, rows_of
from forecast_ledger.replay.reading.blocks import Number, Table
from forecast_ledger.replay.reading.board_notes import seal_notes, sentences, subsequent_events

BEST = 3  # questions or positions of a participant, at either end
MOST_PARTICIPANTS = 500
MOST_SUBSEQUENT = 100  # events after a seal
NONE = "-"  # in a cell: there is no such number


class Part(NamedTuple):
    """A table with a title. seed: from which the samples that it rests on follow."""

    title: str
    note: str
    caption: str
    table: Table
    seed: str = ""


class Figure(NamedTuple):
    """A picture, and the table that it is drawn from."""

    title: str
    note: str
    svg: str
    table: Table


class Participant(NamedTuple):
    """What a page says of one participant."""

    anchor: str
    name: str
    words: str
    caption: str
    table: Table


class Contest(NamedTuple):
    """What a page says of one contest.

    findings: sentences, the main one first. left_out: what cannot be shown, and why. reviewed: how to read the sections
    of participants.
    """

    anchor: str
    title: str
    findings: list[str]
    left_out: list[str]
    facts: list[tuple[str, str]]
    parts: list[Part]
    figures: list[Figure]
    reviewed: str
    participants: list[Participant]


def short_table(kinds: Mapping[str, str], rows: Sequence[Row], columns: Iterable[str]) -> Table:
    """Return columns of rows with few digits, by their kinds; a column whose name ends in `percent` has that sign."""
    names = [*columns]
    headings = [
        (str if kinds[name] in {"id", "text"} else Number)(name.removesuffix("_percent").replace("_", " "))
        for name in names
    ]
    digits = {name: digits_of([float(row[name]) for row in rows if row[name] is not None]) for name in names
              if kinds[name] == "points"}  # fmt: skip

    def text(name: str, value: Any) -> str:
        """Return the text of a cell: counts whole, shares in percent, other numbers with the digits of their column."""
        if kinds[name] in {"id", "text"}:
            return "" if value is None else str(value)
        if value is None:
            return NONE
        if kinds[name] == "count":
            return str(value)
        if kinds[name] == "share" or name.endswith("_percent"):
            share = float(value) / (1 if kinds[name] == "share" else 100)
            return f"{share:.1%}"
        return f"{float(value):,.{digits.get(name, 2)}f}"

    return Table(headings, [[text(name, row[name]) for name in names] for row in rows])


def digits_of(numbers: Sequence[float]) -> int:
    """Return how many decimals show four digits of the largest of some numbers."""
    largest = max((abs(number) for number in numbers), default=0)
    return min(max(3 - floor(log10(largest)), 0), 6) if largest else 0


def kinds_of(projections: Projections, table: str) -> dict[str, str]:
    """Return the kind of each column of a table."""
    return {column.name: column.kind for column in projections.table(table).columns}


def by_participant(projections: Projections, table: str, contest: str) -> dict[str, list[Row]]:
    """Return the rows of a contest by participant."""
    found: dict[str, list[Row]] = {}
    for row in rows_of(projections, table, contest):
        found.setdefault(row["participant"], []).append(row)
    return found


def row_anchor(contest: str, kind: str, number: int) -> str:
    """Return the anchor of the section about a row of a board; that of the contest if the row is beyond the last."""
    return f"{contest}-{kind}-{number + 1}" if number < MOST_PARTICIPANTS else contest


def in_table(table: str) -> str:
    """Say where everything is that a page has only a part of."""
    return f"forecast-ledger table LOG {table} prints all"


def beyond(every: int, noun: str, table: str) -> list[str]:
    """Say that only the first of the rows of a board have sections of their own, if so."""
    told = f"Not shown: sections about {noun} after the first {MOST_PARTICIPANTS:,} of {every:,}"
    return [f"{told}; {in_table(table)}."] * (every > MOST_PARTICIPANTS)


def ends_of(rows: Sequence[Row], noun: str, table: str) -> tuple[Sequence[Row], str]:
    """Return the first and the last few of rows in order, the best first, and a caption that names the whole table."""
    if len(rows) <= 2 * BEST:
        return rows, f"All {noun}, the best first"
    caption = f"The best {BEST} and the worst {BEST} of {len(rows):,} {noun}; {in_table(table)}"
    return [*rows[:BEST], *rows[-BEST:]], caption


def subsequent_part(projections: Projections, name: str) -> list[Part]:
    """Return what is recorded about a sealed contest since, and what it would change; [] if nothing is."""
    told = subsequent_events(projections.facts, projections.facts.contests[name])
    shown = told[:MOST_SUBSEQUENT]
    more = f": the first {len(shown)} of {len(told):,}" * (len(told) > len(shown))
    rows = [[str(each.position), f"after {each.after}", each.says] for each in shown]
    table = Table([Number("log position"), "when", "says"], rows)
    note = sentences(seal_notes(projections, name)) or "Nothing on the board rests on it."
    return [Part("Subsequent events", note, f"What is recorded since the seal{more}", table)] if told else []
