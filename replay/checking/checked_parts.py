"""Parts of a log, each checked by itself: what a process has for it, and what it says of the rows."""

from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np

from forecast_ledger.ledger.auditing.quick_check import ForecastForms, QuestionForm
from forecast_ledger.ledger.model.events import ForecastMade
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing.segment_rows import SegmentRows
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.facts.columns import ForecastPage


class CheckedPage(NamedTuple):
    """Rows in log order.

    plain: 1 for each forecast that is alone in its command, and of which all is checked that needs no other row; 0 for
    every other row. others: these rows. ids: of the commands of the plain ones, as `bytes_of` gives them. forecasts:
    the plain ones, with the codes of the processes; without facts, some of their columns are empty.
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

    def with_participants(self, codes: Int64Array) -> Self:
        """Return the page with other codes of participants, by those that they have."""
        return self._replace(forecasts=self.forecasts._replace(participant=codes[self.forecasts.participant]))


class CheckedPart(NamedTuple):
    """Pages of rows that are right if those up to `before` are; participants: by code."""

    before: str
    end: Checkpoint
    recorded_at: int
    imported: int
    participants: list[str]
    pages: list[CheckedPage]

    def without_facts(self) -> Self:
        """Return the part with no more of its forecasts than deciding takes."""
        nothing = np.zeros(0, np.int64)
        rest = dict.fromkeys(("recorded_at", "made", "until", "lengths", "numbers"), nothing)
        return self._replace(pages=[page._replace(forecasts=page.forecasts._replace(**rest)) for page in self.pages])


class Reader(NamedTuple):
    """What a process has. segments: the rows of the store, if it is a folder of them.

    forms: of the questions whose outcomes never change. codes: of all questions, in their order. several: participants
    with several ids. keeps_columns: of forecasts. Without a payment, which is compared with the board, none are needed,
    and nothing is appended to segments while they are read.
    """

    store: StoredLog
    segments: SegmentRows | None
    checks: ForecastForms
    forms: dict[str, QuestionForm]
    codes: dict[str, int]
    several: set[str]
    keeps_columns: bool


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
