"""What corrections moved: boards just before answers were revoked, and just after they were given anew."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.incremental.refresh import IncrementalTables
from forecast_ledger.replay.papers.evidence import Correction
from forecast_ledger.replay.reading.board_notes import BOARDS
from forecast_ledger.replay.reading.log import Log

_MOVES = 2  # columns of which one must differ: a score can change without consequence
Row = dict[str, Any]
_Boards = dict[tuple[str, str], dict[str, Row]]  # table and contest -> participant -> row


class Move(NamedTuple):
    """A row of a board that a correction moved; None if the participant is not on the board."""

    table: str
    contest: str
    participant: str
    before: Row | None
    after: Row | None


def moves(source: Log, corrections: Sequence[Correction]) -> Iterator[list[Move]]:
    """Yield the rows that each correction moved: from the log as of just before its first event to that as of its last.

    A row moves if its rank, its prize or, for trading, its total differs. corrections: in log order. The log
    is read once. Raises Unavailable, Corrupt.
    """
    if not corrections:
        return
    grows, boards, before = IncrementalTables(BOARDS), _Boards(), _Boards()
    starts, ends = {each.first - 1 for each in corrections}, {each.last for each in corrections}
    with source.opened() as store:
        pages = log.unseal_pages(log.pages_up_to(store.pages(), corrections[-1].last))
        for part in _parts(pages, sorted(starts | ends)):
            grows.add(part)
            source.watch(part[-1].position)
            position = part[-1].position
            if position not in starts and position not in ends:
                continue
            boards = boards | _changed(grows)
            if position in ends:
                yield _moved(before, boards)
            before = boards


def _parts(pages: Iterator[Sequence[Recorded]], cuts: Sequence[int]) -> Iterator[Sequence[Recorded]]:
    """Yield the pages in parts that end at these log positions."""
    for page in pages:
        first = page[0].position
        places = [cut - first + 1 for cut in cuts if first <= cut < page[-1].position]
        for begin, end in zip([0, *places], [*places, len(page)], strict=True):
            yield page[begin:end]


def _changed(grows: IncrementalTables) -> _Boards:
    """Return the boards that changed since the last time."""
    changed = _Boards()
    for update in grows.updates():
        if update.table.name in BOARDS:
            rows = [*update.table.rows()]
            for contest in {str(key[0]) for key in update.keys} | {row["contest"] for row in rows}:
                own = {row["participant"]: row for row in rows if row["contest"] == contest}
                changed[update.table.name, contest] = own
    grows.forget()
    return changed


def _moved(before: _Boards, after: _Boards) -> list[Move]:
    found = []
    for (table, contest), new in sorted(after.items()):
        old = before.get((table, contest), {})
        if old is new:
            continue
        for participant in [*new, *(name for name in old if name not in new)]:
            rows = old.get(participant), new.get(participant)
            if len({_place(row, table) for row in rows}) > 1:
                found.append(Move(table, contest, participant, *rows))
    return found


def _place(row: Row | None, table: str) -> tuple[Any, ...] | None:
    return None if row is None else tuple(row[name] for name in BOARDS[table][:_MOVES])
