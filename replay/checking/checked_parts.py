"""Parts of a log, each checked by itself: what a process has for it, and what it says of the rows."""

from itertools import chain, compress, pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from forecast_ledger.ledger.auditing.quick_check import ForecastForms, QuestionForm
from forecast_ledger.ledger.auditing.taken_forecasts import bytes_of
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import ForecastMade
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing.segment_rows import SegmentRows
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.projections.facts.columns import Facts, ForecastPage
from forecast_ledger.projections.facts.from_log import forecast_columns
from forecast_ledger.replay.checking.row_checker import RowChecker
from forecast_ledger.replay.reading.log import Cut


class CheckedPage(NamedTuple):
    """Rows in log order.

    plain: 1 for each forecast that is alone in its command, and of which all is checked that needs no other row; 0 for
    every other row. others: these rows. ids: of the commands of the plain ones, as `bytes_of` gives them. forecasts:
    the plain ones, with the codes of the processes.
    """

    plain: bytes
    others: list[bytes]
    ids: Any
    forecasts: ForecastPage

    @classmethod
    def joined(cls, pages: list[Self]) -> Self:
        """Return pages as one, so that more forecasts on a question are taken together."""
        plain, others, ids, forecasts = zip(*pages, strict=True)
        columns = map(np.concatenate, zip(*forecasts, strict=True))
        return cls(b"".join(plain), [*chain(*others)], np.concatenate(ids), ForecastPage(*columns))


class CheckedPart(NamedTuple):
    """Pages of rows that are right if those up to `before` are; participants: by code."""

    before: str
    end: Checkpoint
    recorded_at: int
    imported: int
    participants: list[str]
    pages: list[CheckedPage]


class Reader(NamedTuple):
    """What a process has. segments: the rows of the store, if it is a folder of them.

    forms: of the questions whose outcomes never change. codes: of all questions. several: participants with several
    ids.
    """

    store: StoredLog
    segments: SegmentRows | None
    checks: ForecastForms
    forms: dict[str, QuestionForm]
    codes: dict[str, int]
    several: set[str]


def checked_rows(reader: Reader, after: int, end: int) -> CheckedPart | None:
    """Return the rows after a log position up to another; None if anything is wrong with them, or in doubt."""
    before = None
    if after:
        [([row], _)] = reader.store.pages_with_types(after=after - 1, end=after)
        before = log.unseal_row(row, after)
    rows, facts, pages = RowChecker(Cut(None), before), Facts(), list[CheckedPage]()
    facts.question_codes.codes = reader.codes
    started, last = rows.last.digest, before.command_id if before else ""
    read = rows.pages(reader.store.pages_with_types(after=after, end=end))
    for page, following in pairwise(chain(read, [list[Recorded]()])):
        command_ids = [recorded.command_id for recorded in page]
        # The command of the last row of all may go on: it counts as one that does.
        nexts = [*command_ids[1:], following[0].command_id if following else command_ids[-1]]
        plain = plain_rows(page, [last, *command_ids[:-1]], nexts, reader)
        last = command_ids[-1]
        made = [*compress(page, plain)]
        others = [log.encode_row(recorded) for recorded, is_plain in zip(page, plain, strict=True) if not is_plain]
        ids = bytes_of(compress(command_ids, plain))
        pages.append(CheckedPage(bytes(plain), others, ids, forecast_columns(facts, made)))
    if rows.damage or rows.last.position != end:
        return None
    return CheckedPart(
        started, rows.last, rows.recorded_at, rows.imported, facts.participant_codes.labels, [CheckedPage.joined(pages)]
    )


def plain_rows(page: list[Recorded], before: list[str], after: list[str], reader: Reader) -> bytearray:
    """Return 1 for each row that is plain, as in `CheckedPage`. before, after: the commands of the rows beside it."""
    plain, chosen, several = bytearray(len(page)), list[int](), reader.several
    for number, (recorded, last, following) in enumerate(zip(page, before, after, strict=True)):
        event = recorded.event
        if type(event) is not ForecastMade or recorded.normal is not True or event.participant in several:
            continue
        if last != recorded.command_id != following:
            chosen.append(number)
    forms = [reader.forms.get(page[number].event.question) for number in chosen]  # type: ignore[union-attr]
    for number, is_said in zip(chosen, reader.checks.say([page[number] for number in chosen], forms), strict=True):
        plain[number] = is_said is True
    return plain
