"""Rows read as columns: the facts, the damage and its place are those of rows that are decoded one by one."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from forecast_ledger.ledger.core.errors import Corrupt, LedgerError, Unavailable
from forecast_ledger.ledger.model import log, plain_rows
from forecast_ledger.ledger.model.events import AnyEvent, ForecastMade, QuestionOpened
from forecast_ledger.ledger.model.log import START, Recorded, unseal_pages
from forecast_ledger.ledger.model.plain_rows import (
    CodedTexts,
    ForecastRows,
    ReadPage,
    joined_forecasts,
    no_forecasts,
    unseal_columns,
)
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import BUILT, Projections
from tests.support.forging import chained
from tests.support.seasons import Season

PAGE = 5
Read = Callable[[Iterator[Sequence[bytes]]], Iterator[Sequence[Recorded]]]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows are read as columns too."""
    monkeypatch.setattr(plain_rows, "_ENOUGH", 1)
    monkeypatch.setattr(plain_rows, "_TOGETHER", 3)


def opened(question: str, at: int = 0) -> QuestionOpened:
    """A question that yes or no answers."""
    return QuestionOpened(at=at, question=question, kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=10**15)


def made(number: int, question: str = "q", participant: str = "ada") -> ForecastMade:
    """A forecast of so many thousandths."""
    numbers = number * 10**6, 10**9 - number * 10**6
    return ForecastMade(at=10**15 + number, question=question, participant=participant, probabilities=numbers)


def sealed(happened: Iterable[AnyEvent]) -> list[bytes]:
    """Rows of events, each of a command of its own."""
    rows = [
        Recorded(
            position=at, recorded_at=at, normal=True, command_id=f"c{at}", command="f" * 32, previous="", event=event
        )
        for at, event in enumerate(happened, 1)
    ]
    return [log.encode_row(row) for row in chained(rows)]


def resealed(bodies: Sequence[bytes]) -> list[bytes]:
    """Rows with these bytes before their digests, each after the one before it."""
    rows, previous = list[bytes](), log.GENESIS
    for body in bodies:
        row, previous = log.with_digest(re.sub(b'"previous":"[0-9a-f]*"', f'"previous":"{previous}"'.encode(), body))
        rows.append(row)
    return rows


def told(read: Read, pages: Iterable[Sequence[bytes]]) -> tuple[object, ...]:
    """What facts say of pages of rows, or the error that reading or filing them ends with."""
    try:
        found = facts(read(iter(pages)))
    except LedgerError as error:
        return type(error), *error.args
    return found.as_of, found.books.clock, sorted(forecasts_of(found))


def forecasts_of(found: Facts) -> Iterator[tuple[object, ...]]:
    """Each forecast, with the ids in place of the codes."""
    columns = found.forecasts
    names = found.question_codes.labels, found.participant_codes.labels
    for row, begin in enumerate(columns.start.tolist()):
        ids = (labels[code[row]] for labels, code in zip(names, (columns.question, columns.participant), strict=True))
        end = begin + 2 * bool(columns.made[row])
        which = (columns.position, columns.at, columns.recorded_at, columns.made, columns.until)
        yield *(int(column[row]) for column in which), *ids, *columns.chances[begin:end].tolist()


def batched(rows: Sequence[bytes], size: int = PAGE) -> Iterator[Sequence[bytes]]:
    """The rows page by page."""
    return (rows[begin : begin + size] for begin in range(0, len(rows), size))


def both(rows: Sequence[bytes]) -> tuple[object, ...]:
    """What both ways of reading say, which is the same."""
    pages = [*batched(rows)]
    as_columns, one_by_one = (told(read, pages) for read in (unseal_columns, unseal_pages))
    assert as_columns == one_by_one
    return as_columns


def test_tables_of_any_log_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seasons of all kinds of questions, with withdrawals, restatements, renamed participants and other events."""
    monkeypatch.setattr(plain_rows, "_SHARE", 1_000)
    monkeypatch.setattr(plain_rows, "_AGAIN", 0)
    plain = others = 0
    for seed in range(12):
        season = Season(Random(seed), "peer-2024-03", ending=0.2, restated=0.3, renamed=0.5)
        rows = [log.encode_row(row) for row in season.recorded()]
        pages = [*batched(rows)]
        read = [*unseal_columns(iter(pages))]
        assert [row for page in read for row in page] == [row for page in unseal_pages(iter(pages)) for row in page]
        columns = [page for page in read if isinstance(page, ReadPage)]
        plain += sum(len(page.forecasts.at) for page in columns)
        others += sum(len(page.others) for page in columns)
        first, second = (Projections(facts(way)) for way in (read, unseal_pages(iter(pages))))
        assert [first.table(name).digest() for name in BUILT] == [second.table(name).digest() for name in BUILT]
    assert plain > 30
    assert others > 50


def test_plain_forecasts_are_read_as_columns() -> None:
    """Numbers and ids of any length are read exactly, also of imported rows, and of those without a normal form."""
    events: list[AnyEvent] = [
        opened("q"),
        opened("rain"),
        made(0),
        made(999, "rain", "b" * 63),
        made(1_000),
        made(7, "rain"),
    ]
    rows = sealed([*events, *(made(number) for number in range(1, 120)), opened("late", 2 * 10**15)])
    pages = [*unseal_columns(batched(rows, 50))]
    assert all(isinstance(page, ReadPage) for page in pages)
    assert [len(page.others) for page in pages if isinstance(page, ReadPage)] == [2, 0, 1]
    assert both(rows)[0] == len(rows)
    for flags in (b',"imported":true,"normal":true', b"", b',"imported":true'):
        other = resealed([log.digested_bytes(row).replace(b',"normal":true', flags) for row in rows])
        [page, *_] = unseal_columns(batched(other, 50))
        assert isinstance(page, ReadPage)
        assert len(page.others) == 2
        assert both(other)[0] == len(rows)


FORGED: list[tuple[bytes, bytes]] = [
    (b'"at":1000000000000017', b'"at":'),
    *((b'"at":', each) for each in (b'"at":-', b'"at":0', b'"at":1234', b'"at": ', b'"at":"', b'"at":1e', b'"at":1.')),
    *((b'"position":', each) for each in (b'"position":0', b'"position":1', b'"position":-', b' "position":')),
    *(
        (b'"recorded_at":', each)
        for each in (b'"recorded_at":0', b'"recorded_at":-', b'"recorded_at":12345678901234567')
    ),
    *(
        (b'"participant":"', b'"participant":"' + each)
        for each in (b"\\u0061", b'\\"', b"\\", b"\n", b"\xc3\xa9", b"\xff")
    ),
    *((b'"command_id":"', b'"command_id":"' + each) for each in (b"\\q", b'\\","', b"\x1f", b"\x7f", b"\xff", b'"')),
    *((b'"command":"', b'"command":"' + each) for each in (b"\\q", b"\t", b"x", b"\xc3\xa9")),
    (b'"participant":"ada"', b'"participant":"' + b"a" * 64 + b'"'),
    (b'"participant":"ada"', b'"participant":"' + b"a" * 200 + b'"'),
    (b'"participant":"ada"', b'"participant":""'),
    (b'"question":"q"', b'"question":"r"'),
    (b'"question":"q"', b'"question":"\\u0071"'),
    (b'"question"', b'"questions"'),
    (b'"question":"q",', b""),
    (b'"type":"forecast_made.v1"', b'"type":"forecast_made.v2"'),
    (b'"type":"forecast_made.v1"', b'"type":"forecast_withdrawn.v1"'),
    (b'"normal":true', b'"normal":false'),
    (b'"normal":true,', b""),
    *((b'"probabilities":[', b'"probabilities":[' + each) for each in (b"-", b"0", b"0,", b"1", b" ", b"[", b"1,2,")),
    (b'"probabilities"', b'"cdf"'),
    (b"]}", b",0]}"),
    (b"]}", b"0]}"),
    (b"]}", b'],"until":5}'),
    (b"]}", b"]},"),
    (b"]}", b"] }"),
    (b"]}", b"]"),
]


@pytest.mark.parametrize("forged", FORGED, ids=[new.decode("latin-1") for _, new in FORGED])
def test_a_row_that_was_written_otherwise_is_read_or_refused_as_by_itself(forged: tuple[bytes, bytes]) -> None:
    """All digests are right, and those after it follow."""
    rows = sealed([opened("q"), *(made(number) for number in range(1, 30))])
    bodies = [log.digested_bytes(row) for row in rows]
    assert both(resealed(bodies))[0] == len(rows)
    assert forged[0] in bodies[17]
    bodies[17] = bodies[17].replace(*forged, 1)
    both(resealed(bodies))


DAMAGED: list[Callable[[list[bytes]], Any]] = [
    lambda rows: rows.__setitem__(17, rows[17].replace(b"17000000", b"17000001")),
    lambda rows: rows.__setitem__(17, rows[17].replace(b'"digest":"', b'"digest":"0')),
    lambda rows: rows.__setitem__(17, rows[17][:-2]),
    lambda rows: rows.__setitem__(17, rows[17] + b" "),
    lambda rows: rows.__setitem__(17, rows[17][:-66] + rows[17][-66:].upper()),
    lambda rows: rows.__setitem__(17, b""),
    lambda rows: rows.__setitem__(17, rows[16]),
    lambda rows: rows.pop(17),
    lambda rows: rows.insert(17, rows[17]),
    lambda rows: rows.__setitem__(slice(17, 19), [rows[18], rows[17]]),
]


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("unfit", [False, True])
def test_damage_is_found_at_its_position(damage: Callable[[list[bytes]], Any], unfit: bool) -> None:
    """Unless an event before it does not fit those before that: this is then found first."""
    late = made(7, "unheard of") if unfit else made(7)
    rows = sealed([opened("q"), *(made(number) for number in range(1, 12)), late, *map(made, range(13, 30))])
    damage(rows)
    kind, position, *_ = both(rows)
    assert kind is Corrupt
    assert (position == 13) == unfit


def test_rows_that_cannot_be_read_come_after_the_events_before_them() -> None:
    """Pages are read ahead, but an unfit event in the first is found before the store fails at the third."""
    rows = sealed([opened("q"), made(1), made(2, "unheard of"), *map(made, range(3, 30))])

    def pages(whole: int) -> Iterator[Sequence[bytes]]:
        yield from batched(rows[: whole * PAGE])
        raise Unavailable("the disk is gone")

    for whole in range(8):
        as_columns, one_by_one = (told(read, pages(whole)) for read in (unseal_columns, unseal_pages))
        assert as_columns == one_by_one
        assert as_columns[0] is (Corrupt if whole else Unavailable)


def test_joined_forecasts_are_question_after_question() -> None:
    """Each in log order; ids have codes in the order in which the log first has them."""

    def page(position: list[int], question: list[bytes], participant: list[bytes]) -> ForecastRows:
        numbers: dict[str, Any] = {
            name: np.array(position) * by for by, name in enumerate(("at", "recorded_at", "yes", "no"), 2)
        }
        ids: dict[str, Any] = {"question": question, "participant": participant}
        return no_forecasts()._replace(position=np.array(position), **numbers, **ids)

    made = joined_forecasts(
        [page([1, 2, 4], [b"b", b"a", b"b"], [b"y", b"x", b"z"]), page([5, 6], [b"a", b"b"], [b"x", b"y"])]
    )
    columns = made.position, made.at, made.recorded_at, made.yes, made.no
    assert [column.tolist() for column in columns] == [[by * at for at in (1, 4, 6, 2, 5)] for by in (1, 2, 3, 4, 5)]
    assert [*made.question] == [b"b", b"b", b"b", b"a", b"a"]
    assert [*made.participant] == [b"y", b"z", b"y", b"x", b"x"]
    assert isinstance(made.participant, CodedTexts)
    assert made.participant.labels == ["y", "x", "z"]


def test_logs_of_other_events_are_looked_at_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages in which few rows are plain are decoded, and so are the next: one group of three, then at most two."""
    monkeypatch.setattr(plain_rows, "_AGAIN", 2)
    rows = sealed([*(opened(f"q{number}") for number in range(60)), *(made(n, "q0") for n in range(90))])
    pages = [*unseal_columns(batched(rows), START)]  # the first, the third and the sixth group are looked at
    assert [isinstance(page, ReadPage) for page in pages] == [False] * 15 + [True] * 15


def test_long_rows_are_not_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of more bytes than a few thousand short rows have is decoded before the next one is read."""
    monkeypatch.setattr(plain_rows, "_BYTES", 1_000)
    taken = list[Sequence[bytes]]()
    pages = unseal_columns(page for page in batched(sealed(map(opened, "abcdefghijkl"))) if taken.append(page) is None)  # type: ignore[func-returns-value]
    assert [(len(page), len(taken)) for page in pages] == [(5, 1), (5, 2), (2, 3)]
