"""A log of which only the forecasts on some questions are in memory at a time."""

from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from forecast_ledger.ledger.segments.arrow_arrays import compute_functions
from forecast_ledger.ledger.segments.segment_files import Ends, KeptGroups, check_counts, group_ends, read_forecasts
from forecast_ledger.ledger.segments.segment_manifest import Segment
from forecast_ledger.ledger.storing.sealed_log import UNREAD
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.facts.columns import Facts, ForecastPage, Forecasts
from forecast_ledger.projections.facts.from_segments import FactsFrame, forecasts_on

_UNREAD = UNREAD | {"form", "attestation"}


class SealedForecasts(NamedTuple):
    """The forecasts in segments up to a log position, which any process that has the folder can read.

    unread: columns that are not needed; of those of `Forecasts`, it may have `recorded_at`, which then means nothing.
    kept: row groups that were read for some questions, which those that follow are read from, too. counted: by the
    first log position of a segment, its `counted_ends`; until they are found to be wrong.
    """

    folder: Path
    segments: tuple[Segment, ...]
    as_of: int
    unread: frozenset[str] = _UNREAD
    kept: KeptGroups | None = None
    counted: dict[int, list[Ends]] | None = None

    def for_tasks(self, *, is_read: bool) -> "SealedForecasts":
        """Return them for tasks that follow each other. is_read: a result depends on when forecasts were recorded."""
        return self._replace(unread=_UNREAD if is_read else _UNREAD | {"recorded_at"}, kept=KeptGroups())

    def look_ahead(self) -> None:
        """Find out what is in the row groups, beginning with the last segment: tasks, which begin with the first, wait
        for each other there.
        """
        for segment in reversed(self.segments):
            group_ends(self.folder, segment, (self.counted or {}).get(segment.first))

    def on(self, questions: list[str] | None, count: int | None = None) -> list[Any]:
        """Return the forecasts of each segment on some questions, by id; None for all.

        count: of these forecasts, as counts have it; without it, counts are not used. Raises Corrupt (also if there are
        not so many, and the counts of a segment are not true), Unavailable.
        """
        counted = None if count is None else self.counted
        wanted = None if questions is None else sorted(questions)
        with closing((self.kept or KeptGroups()).in_turn(self.segments)) as turns:
            tables = [
                read_forecasts(
                    self.folder,
                    segment,
                    wanted,
                    without=self.unread,
                    kept=kept,
                    counted=(counted or {}).get(segment.first),
                )
                for segment, kept in turns
            ]
        tables = [
            table if segment.last <= self.as_of else table.filter(compute_functions().field("position") <= self.as_of)
            for segment, table in zip(self.segments, tables, strict=True)
        ]
        if counted is not None and sum(map(len, tables)) != count:  # also if another task has cleared them meanwhile
            for segment in self.segments:
                check_counts(self.folder, segment)
            counted.clear()  # the counts are true, and rows in another order than theirs
            return self.on(questions)
        return tables


class LogFrame(NamedTuple):
    """A log without the forecasts in its segments, and where these are."""

    frame: FactsFrame
    sealed: SealedForecasts

    def forecasts_on(self, questions: Int64Array) -> Forecasts:
        """Return the forecasts on some questions, by code. Raises Corrupt, Unavailable."""
        facts, unsealed = self.frame.facts, self.frame.rest_on(questions)
        if len(questions) == len(facts.questions):
            return forecasts_on(facts, self.sealed.on(None), unsealed)
        return read_forecasts_on(facts, self.sealed, questions, unsealed)


def read_forecasts_on(
    facts: Facts,
    sealed: SealedForecasts,
    questions: Int64Array,
    unsealed: list[ForecastPage],
    count: int | None = None,
) -> Forecasts:
    """Return the checked forecasts on some questions, by code: those in segments, and the unsealed ones.

    facts: of the log, with or without forecasts. count: see `SealedForecasts.on`. All that this takes can be pickled.
    Raises Corrupt (one does not fit its question, or a file is not as its segment states), Unavailable (no pyarrow).
    """
    names = [facts.questions[code].question for code in questions.tolist()]
    return forecasts_on(facts, sealed.on(names, count), unsealed)
