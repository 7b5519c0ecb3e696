"""The questions of Metaculus's data download, a row each: how they open, close and are answered."""

import unicodedata
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.values import MOST_TAGS, TEXT_LENGTH, read_instant
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AnnulQuestion,
    AnyCommand,
    CloseQuestion,
    OpenContest,
    OpenQuestion,
    Range,
    ResolveQuestion,
)
from forecast_ledger.replay.importing.metaculus_cells import read_bound, read_list, read_options, zero_point
from forecast_ledger.replay.importing.source_items import NotCarried, fitting_id, instant_of, label_of

PRESET = "peer-2024-03"
CONTINUOUS = {"numeric", "date", "discrete"}
BEYOND = {"below_lower_bound", "above_upper_bound"}  # names that the ledger has for them, too
WITHOUT_ANSWER = {"annulled", "ambiguous"}
_OPTIONS = ("MC Options (All)", "MC Options (Current)", "MC Options")
_HISTORY = "MC Options History"

Row = Mapping[str, str]


class DownloadedQuestion(NamedTuple):
    """A question. Instants are texts; `closed` and `known` are None if they are not said. row: its other cells."""

    id: str
    kind: str
    contest: str
    outcomes: tuple[str, ...]
    range: Range | None
    opens: str
    closes: str
    reveals: str | None
    closed: str | None
    known: str | None
    row: Row

    @property
    def opened_at(self) -> int:
        """Return when it opens, µs."""
        return read_instant(self.opens)

    @property
    def ends_at(self) -> int:
        """Return when forecasts end in any case, µs: at the close, or when the answer is known."""
        return min(read_instant(each) for each in (self.closes, self.closed, self.known) if each is not None)

    def openings(self, rules: str | None) -> Iterator[AnyCommand]:
        """Return the commands that open the contest and the question, and put it there."""
        name = fitting_id(f"metaculus contest {self.contest}")
        yield OpenContest(id=name, at=self.opens, contest=self.contest, rules=rules or PRESET)
        kind: Any = self.kind
        yield OpenQuestion(
            id=fitting_id(f"metaculus open {self.id}"),
            at=self.opens,
            question=self.id,
            kind=kind,
            title=self.row["Question Title"][:TEXT_LENGTH],
            outcomes=self.outcomes or None,
            range=self.range,
            opens_at=self.opens,
            closes_at=self.closes,
            reveals_at=self.reveals,
            group=label_of(self.row.get("Post ID", "")) if self.row.get("Label") else None,
            tags=self.tags() or None,
            url=self.row.get("Question URL") or None,
            source="Metaculus",
        )
        yield AddQuestion(
            id=fitting_id(f"metaculus add {self.id} to {self.contest}"),
            at=self.opens,
            contest=self.contest,
            question=self.id,
            weight=self.row.get("Question Weight") or Decimal(1),
        )

    def tags(self) -> tuple[str, ...]:
        """Return its categories and leaderboard tags. Refuses: bad_source."""
        cells = [(name, self.row.get(name)) for name in ("Categories", "Leaderboard Tags")]
        said = [tag for name, cell in cells if cell for tag in read_options(cell, name)]
        return tuple(sorted({tag for each in said if (tag := label_of(each))}))[:MOST_TAGS]

    def closings(self) -> Iterator[AnyCommand]:
        """Return the command of an early close, unless the answer ends the question at that instant anyway."""
        if self.closed is None or read_instant(self.closed) >= read_instant(self.closes):
            return
        if self.known is None or read_instant(self.closed) < read_instant(self.known):
            yield CloseQuestion(id=fitting_id(f"metaculus close {self.id}"), at=self.closed, question=self.id)

    def answers(self) -> Iterator[AnyCommand]:
        """Return the command of the answer, if there is one. Refuses: bad_number, bad_instant, naive_instant."""
        answer, at = self.row["Resolution"], self.known or self.closed or self.closes
        if not answer:
            return
        if answer in WITHOUT_ANSWER:
            name = fitting_id(f"metaculus annul {self.id}")
            yield AnnulQuestion(id=name, at=at, question=self.id, reason=answer)
            return
        name = fitting_id(f"metaculus answer {answer} {self.id}")
        if self.range is None or answer in BEYOND:
            yield ResolveQuestion(id=name, at=at, question=self.id, outcome=answer)
        else:
            value = read_bound(answer, "Resolution", self.kind)
            yield ResolveQuestion(id=name, at=at, question=self.id, value=value)


def read_question(row: Row, points: int | None) -> DownloadedQuestion | NotCarried:
    """Return a question of a row, or why it is not carried over. Refuses: bad_source, bad_number, bad_instant.

    points: how many heights the cdf of its forecasts has, if there are forecasts.
    """
    kind = row["Question Type"]
    if kind not in {"binary", "multiple_choice", *CONTINUOUS}:
        return NotCarried(f"a question of the type {kind or 'unknown'}")
    if not row["Open Time"] or not row["Scheduled Close Time"]:
        return NotCarried("a question without an opening or a closing time")
    outcomes: tuple[str, ...] = ()
    if kind == "multiple_choice":
        if row.get(_HISTORY) and len(read_list(row[_HISTORY], _HISTORY)) > 1:
            return NotCarried("a question whose options were added to or removed")
        column = next((each for each in _OPTIONS if row.get(each)), _OPTIONS[0])
        outcomes = read_options(row.get(column, ""), column)
    if kind == "discrete" and points is None:
        return NotCarried("a discrete question without forecasts: the download does not say how many values it has")
    opens, closes = (instant_of(row[column], column) for column in ("Open Time", "Scheduled Close Time"))
    reveals, closed, known = (
        instant_of(row[column], column) if row.get(column) else None
        for column in ("CP Reveal Time", "Actual Close Time", "Resolution Known Time")
    )
    if reveals is not None and not read_instant(opens) < read_instant(reveals) <= read_instant(closes):
        reveals = None  # it is never hidden, or always
    found = DownloadedQuestion(
        id=row["Question ID"],
        kind=kind,
        contest=unicodedata.normalize("NFC", row.get("Default Project", "")) or "metaculus",
        outcomes=outcomes,
        range=_range(row, kind, points) if kind in CONTINUOUS else None,
        opens=opens,
        closes=closes,
        reveals=reveals,
        closed=closed,
        known=known,
        row=row,
    )
    list(found.answers())  # refuse what cannot be read before anything is recorded of the question
    found.tags()
    return found


def _range(row: Row, kind: str, points: int | None) -> Range:
    """Return the range of a question. Refuses: bad_source, bad_number, bad_instant."""
    lower, upper = (read_bound(row.get(f"{side} Bound", ""), f"{side} Bound", kind) for side in ("Lower", "Upper"))
    logarithmic = kind == "numeric" and row.get("Continuous Range")
    return Range(
        lower=lower,
        upper=upper,
        bins=points - 1 if kind == "discrete" and points is not None else None,
        open_lower=row.get("Open Lower Bound") == "True",
        open_upper=row.get("Open Upper Bound") == "True",
        zero_point=zero_point(row["Continuous Range"], lower, upper) if logarithmic else None,
    )
