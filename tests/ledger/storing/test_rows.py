"""Tests of `Rows`: a file, memory, an overlay and a lazy store give the same answers."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from eventsourcing.persistence import ConnectionPoolClosedError

from forecast_ledger.ledger.model.log import ForecastFields, NewRows
from forecast_ledger.ledger.storing.database import Memory, NewRow, Rows, TakenError, grouped
from forecast_ledger.ledger.storing.sqlite import SQLite
from forecast_ledger.ledger.storing.stored_log import StoredLog, rows_at
from forecast_ledger.replay.writing.provisional_stores import LazyRows, OverlayRows

FIVE: list[NewRow] = [(position, "seen.v1", b"%d" % position) for position in range(1, 6)]


def _overlay(path: Path, fork: int) -> Rows:
    """Return an overlay whose base has rows up to the fork, and one row after it that is not part of the overlay."""
    base = Memory()
    base.insert(grouped([*FIVE[:fork], (fork + 1, "other.v1", b"other")]))
    overlay = OverlayRows(base)
    overlay.fork(fork)
    return overlay


def _started(path: Path) -> Rows:
    """Return a lazy store that another program has started meanwhile."""
    rows = LazyRows(str(path / "log.db"), "main")
    assert rows.select(0, 9) == []
    rows_at(str(path / "log.db"), "main").close()
    return rows


MAKERS: dict[str, tuple[Callable[[Path], Rows], int]] = {  # maker, and the number of the five rows it starts with
    "a file": (lambda path: rows_at(str(path / "log.db"), "main"), 0),
    "SQLite's memory": (lambda _: rows_at(":memory:", "main"), 0),
    "memory": (lambda _: Memory(), 0),
    "an overlay at the start": (lambda path: _overlay(path, 0), 0),
    "an overlay after two rows": (lambda path: _overlay(path, 2), 2),
    "not started": (lambda path: LazyRows(str(path / "log.db"), "main"), 0),
    "started by another": (_started, 0),
}


def recorded(rows: Rows, start: int = 0) -> Rows:
    """Insert the rows of FIVE except for the first `start`, which the rows already have."""
    for first in range(start, 5, 2):
        with rows.turn() as turn:
            turn.insert(grouped(FIVE[first : min(first + 2, 5)]))
    return rows


@pytest.fixture(params=MAKERS.values(), ids=[*MAKERS])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rows]:
    """Return rows in which the five are recorded."""
    make, start = request.param
    rows = recorded(make(tmp_path), start)
    yield rows
    rows.close()


def test_rows_are_read_after_a_position(stored: Rows) -> None:
    """Rows come in order from any position, at most as many as requested; after the last there are none."""
    for after in range(7):
        for limit in range(1, 7):
            expected = [(position, row) for position, _, row in FIVE[after : after + limit]]
            selected = [*stored.select(after, limit)]
            assert selected == expected[: len(selected)]
            assert bool(selected) == bool(expected)


def test_rows_are_found_by_their_positions(stored: Rows) -> None:
    """Rows that exist are returned; a store requests again those that a first answer leaves out."""
    assert [row for _, row in stored.select_at([4])] == [b"4"]
    assert [*stored.select_at([6, 7])] == []
    assert StoredLog(stored, "main").at([1, 3, 5]) == [b"1", b"3", b"5"]


def test_the_head_is_the_last_position_that_was_recorded(stored: Rows) -> None:
    """The newest position does not change when the base grows."""
    assert stored.newest() == 5
    assert not stored.has_unindexed(5)
    assert [*stored.faults()] == []


def test_event_types_are_stored_beside_the_rows(stored: Rows) -> None:
    """Event types are returned as bytes, page after page."""
    pages = [*StoredLog(stored, "main").pages_with_types(2)]
    assert [row for rows, _ in pages for row in rows] == [row for *_, row in FIVE]
    assert {topic for _, topics in pages for topic in topics} == {b"seen.v1"}


def test_a_writer_sees_all_rows_in_its_turn_and_appends_after_them(stored: Rows) -> None:
    """Rows that the writer has inserted are there when the turn ends; others are not."""
    with stored.turn() as turn:
        assert [*turn.select(4, 9)] == [(5, b"5")]
        turn.insert(grouped([(6, "seen.v1", b"6")]))
    with stored.turn():
        pass
    assert [*stored.select(5, 9)] == [(6, b"6")]
    assert stored.newest() == 6


def test_a_position_that_is_taken_is_not_taken_again(stored: Rows) -> None:
    """If a position is taken, none of the new rows is recorded."""
    with pytest.raises(TakenError), stored.turn() as turn:
        turn.insert(grouped([(5, "seen.v1", b"again"), (6, "seen.v1", b"6")]))
    assert [*stored.select(4, 9)] == [(5, b"5")]
    with stored.turn() as turn:
        turn.insert(grouped([(6, "seen.v1", b"6")]))
    assert stored.newest() == 6


def test_a_text_is_stored_as_its_bytes(stored: Rows) -> None:
    """A row may be given as a text or as bytes; it is the same row, with the same bytes."""
    texts = ['{"a":1}', '{"é":"雪😀"}', '{"e\u0301":"\u2028"}', "x" * 20_000]
    new: list[NewRow] = []
    for number, text in enumerate(texts):
        new += [(6 + 2 * number, "seen.v1", text), (7 + 2 * number, "seen.v1", text.encode())]
    with stored.turn() as turn:
        turn.insert(grouped(new))
    read = [row for page in StoredLog(stored, "main").pages() for row in page][5:]
    assert read == [text.encode() for text in texts for _ in range(2)]
    assert {*map(type, read)} == {bytes}


def _texts(count: int, kind: str) -> list[NewRow]:
    """Return rows of different sizes, some of them with characters that have several bytes, and some empty."""
    return [
        (0, kind, ("é" * (number % 7) + "x" * (number % 50)) if number % 3 else b"%d" % number * (number % 5))
        for number in range(count)
    ]


def test_many_rows_of_one_type_are_stored_in_order(stored: Rows) -> None:
    """However many rows of one type follow each other, each has its position, its type and its bytes."""
    new = [
        row
        for count, kind in ((2_005, "a"), (1, "b"), (17, "c"), (3, "a"), (1_000, "b"))
        for row in _texts(count, kind)
    ]
    new = [(position, kind, row) for position, (_, kind, row) in enumerate(new, 6)]
    with stored.turn() as turn:
        turn.insert(grouped(new))
    pages = [*StoredLog(stored, "main").pages_with_types()]
    read = [(row, topic) for rows, topics in pages for row, topic in zip(rows, topics, strict=True)][5:]
    assert read == [(row.encode() if isinstance(row, str) else row, kind.encode()) for _, kind, row in new]


def test_rows_are_made_while_they_are_recorded(stored: Rows) -> None:
    """Once and to the end, also if the last statement for many rows is full: then comes the digest of the log."""
    ended = []

    def made(count: int) -> Iterator[str]:
        yield from map(str, range(count))
        ended.append(count)

    for first, count in ((6, 256), (262, 3)):
        none = [""] * count
        fields = partial(ForecastFields, 0, none, none, [0] * count, none, none, [0] * count, {})
        with stored.turn() as turn:
            turn.insert([NewRows(first, "made.v1", made(count), fields, count)])
    assert ended == [256, 3]
    assert [row for _, row in stored.select(5, 999)] == [b"%d" % number for number in [*range(256), *range(3)]]


def test_one_taken_position_among_many_refuses_all(stored: Rows) -> None:
    """None of many rows is recorded if the position of one is taken."""
    with pytest.raises(TakenError), stored.turn() as turn:
        turn.insert(grouped([(position, "seen.v1", b"x") for position in range(5, 3_000)]))
    assert stored.newest() == 5


def test_a_store_reads_every_implementation_of_rows(stored: Rows) -> None:
    """A store returns all rows, page by page and in order."""
    store = StoredLog(stored, "main")
    assert [row for page in store.pages(limit=2) for row in page] == [row for *_, row in FIVE]
    assert store.newest() == 5


RULES: list[Callable[[Rows], None]] = [
    test_rows_are_read_after_a_position,
    test_rows_are_found_by_their_positions,
    test_the_head_is_the_last_position_that_was_recorded,
    test_event_types_are_stored_beside_the_rows,
    test_a_writer_sees_all_rows_in_its_turn_and_appends_after_them,
    test_a_position_that_is_taken_is_not_taken_again,
    test_a_text_is_stored_as_its_bytes,
    test_many_rows_of_one_type_are_stored_in_order,
    test_rows_are_made_while_they_are_recorded,
    test_one_taken_position_among_many_refuses_all,
    test_a_store_reads_every_implementation_of_rows,
]  # the rules that hold on a server too


def test_rows_are_stored_by_size(tmp_path: Path) -> None:
    """Rows that are too large for one statement together are inserted by several; each may have 64 MiB alone."""
    sizes = (2**20, 64 * 2**20 - 999, *[2**16] * 200, 5)
    large = [bytes([number]) * size for number, size in enumerate(sizes, 1)]
    with closing(rows_at(str(tmp_path / "log.db"), "main")) as rows:
        with rows.turn() as turn:
            turn.insert([NewRows(1, "seen.v1", [*large])])
        assert [row for page in StoredLog(rows, "main").pages() for row in page] == large


def test_what_is_not_started_leaves_nothing(tmp_path: Path) -> None:
    """Reading, waiting for a turn and closing create no file."""
    rows = LazyRows(str(tmp_path / "log.db"), "main")
    with rows.turn() as turn:
        assert [*turn.select(0, 9)] == []
    assert rows.newest() == 0
    rows.close()
    assert not list(tmp_path.iterdir())


def test_statements_are_prepared_once(tmp_path: Path) -> None:
    """SQLite asks an authorizer what a statement reads while it prepares it: for a second turn, nothing."""
    reads = []

    def authorize(action: int, *_: str | None) -> int:
        reads.extend([action] if action == sqlite3.SQLITE_READ else [])
        return sqlite3.SQLITE_OK

    with closing(SQLite(str(tmp_path / "log.db"), "main", read_only=False)) as rows:
        with rows._files.reading() as cursor:
            cursor.connection.set_authorizer(authorize)
        for position in (1, 2):
            before = len(reads)
            with rows.turn() as turn:
                assert [*turn.select(position, 9)] == []
                turn.insert([NewRows(position, "seen.v1", [b"row"])])
        assert before == len(reads) > 0


def test_what_is_being_read_when_a_file_is_closed_is_read_to_its_end(tmp_path: Path) -> None:
    """As by another thread: its connection is closed after that, and no one else begins to read."""
    rows = SQLite(str(tmp_path / "log.db"), "main", read_only=False)
    with rows._files.reading() as cursor:
        rows.close()
        cursor.execute("SELECT 1")
        assert [*cursor.fetchone()] == [1]
        with pytest.raises(ConnectionPoolClosedError):
            rows.newest()
        connection = cursor.connection
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
