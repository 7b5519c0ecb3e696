"""What a source gives: commands with their locations, and what is not carried over or not read, counted by reason."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import ID_LENGTH
from forecast_ledger.ledger.model.commands import (
    AnyCommand,
    EnrolParticipant,
    OpenContest,
    RecordTrade,
)
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.input_locations import InputLocation, ReadCommand
from forecast_ledger.replay.writing.append import Outcome

FIRST_LOCATIONS = 3  # of each reason, that are kept
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_THERE = {"duplicate_contest", "command_id_reused", "enrolled_already"}  # refusals of what is there
TRADE_CHANGED = "an earlier copy has other shares, another amount or time of this trade: money moved, so that it stays"
IN_A_NEW_LEDGER = "to have it as this copy says, import the copy into a new ledger"
SETUP: tuple[type, ...] = (OpenContest, EnrolParticipant)  # what every import of a format sends again in other words


class NotCarried(NamedTuple):
    """Something that the source has and the ledger does not take, and why."""

    reason: str


def cut_off(most: int, **texts: str) -> Iterator[NotCarried]:
    """Yield, for each text that is longer than so many characters, that its end is not carried over.

    >>> [each.reason for each in cut_off(3, title="rain", url="r")]
    ['the end of a title of more than 3 characters']
    """
    return (
        NotCarried(f"the end of a {name} of more than {most:,} characters")
        for name, text in texts.items()
        if len(text) > most
    )


BARE = "a question on which earlier copies had forecasts, and this one has none at all: they stay"
AGGREGATES_ALONE = (
    "a question on which earlier copies had forecasts of others; this one has aggregates alone: they stay"
)
KNOWN = NotCarried("")  # what an earlier copy said, too: it counts as a duplicate
SourceItem = tuple[InputLocation, AnyCommand | Refused | NotCarried]


class Scope(NamedTuple):
    """What a copy is whole for, so that what it does not have is gone; each is asked about a question of the ledger.

    questions: whether the copy would have the question if the source did. forecasts, answers: whether it would have all
    forecasts on a question, and its answer. unread: whether a part of the copy that may have the forecasts of a
    participant on it, or its answer if the participant is "", cannot be read. weights: whether it says the weight.
    bots: whether the copy says who is one. trades: the first word of the ids of its trades, if it would have all of
    them. absent: why the copy does not say whether a question is gone; "" if it does, or if the question may be of
    another source. bare: why the forecasts stay on a question that the copy has, and of which it would not have all; ""
    if such a copy is a usual one.
    """

    questions: Callable[[QuestionOpened], bool] = lambda _: False
    forecasts: Callable[[QuestionOpened], bool] = lambda _: True
    answers: Callable[[QuestionOpened], bool] = lambda _: True
    unread: Callable[[QuestionOpened, str], bool] = lambda *_: False
    weights: Callable[[QuestionOpened], bool] = lambda _: True
    bots: bool = True
    trades: str = ""
    absent: Callable[[QuestionOpened], str] = lambda _: ""
    bare: str = ""


class Published(NamedTuple):
    """Results that a platform publishes of somebody's trades on some questions, 1e-6, by their name.

    contest: of the account. outcome: the only one that they are of; "" if they are of all. mark: the price at which the
    platform values a share, 1e-9; None for the last quote. near: how far apart its rounding puts numbers.
    """

    location: InputLocation
    contest: str
    who: str
    questions: tuple[str, ...]
    results: dict[str, int]
    outcome: str = ""
    mark: int | None = None
    near: int = 0


class Source(NamedTuple):
    """A copy of a source: what it has, what it is whole for, and results that it publishes of trades.

    The latter two are known once all items are read. name: the first word of the ids of its commands, if it may also
    forecast on questions that it did not open, and answer them, as a map may; "" if not. person_of: the source's own id
    of the forecaster, from the id of a command; "" if it has none.
    """

    items: Iterable[SourceItem]
    scope: Scope = Scope()
    published: Sequence[Published] = ()
    name: str = ""
    person_of: Callable[[str], str] = lambda _: ""


class LeftOut:
    """What was not carried over: for each reason how many, and the first locations."""

    def __init__(self) -> None:
        self.known = 0  # items that an earlier copy had, too
        self.counts: dict[str, int] = {}
        self.locations: dict[str, list[InputLocation]] = {}

    def add(self, location: InputLocation, reason: str) -> None:
        """Count one."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        first = self.locations.setdefault(reason, [])
        if len(first) < FIRST_LOCATIONS:
            first.append(location)

    def lines(self) -> list[str]:
        """Return a line for each reason: how many, why, and where the first are."""
        return [
            f"not carried over: {count:,} x {reason} ({'; '.join(each.where() for each in self.locations[reason])}"
            f"{'; ...' * (count > FIRST_LOCATIONS)})"
            for reason, count in self.counts.items()
        ]


def carried(items: Iterable[SourceItem], left_out: LeftOut) -> Iterator[ReadCommand]:
    """Return the commands and refusals; count the rest in `left_out`."""
    for location, item in items:
        if item is KNOWN:
            left_out.known += 1
        elif isinstance(item, NotCarried):
            left_out.add(location, item.reason)
        else:
            yield location, item


def with_known_setup(outcomes: Iterable[Outcome], setup: tuple[type, ...] = SETUP) -> Iterator[Outcome]:
    """Return the outcomes; a contest or an enrolment that is there counts as a duplicate, whatever its words.

    A trade that an earlier copy had in another way is refused in words that say so. setup: the commands that are known.
    """
    for location, command, outcome in outcomes:
        there = isinstance(outcome, Refused) and outcome.code in _THERE
        if command is not None and there and isinstance(command, setup):
            yield location, command, Receipt(command.id, 0, 0, duplicate=True)
        elif isinstance(command, RecordTrade) and there:
            refused = Refused("command_id_reused", "id", command.id, TRADE_CHANGED, remedy=IN_A_NEW_LEDGER)
            yield location, command, refused
        else:
            yield location, command, outcome


# --- ids and texts


def fitting_id(text: str) -> str:
    """Return a text of at most 200 characters that stands for this one: it, or its beginning and a digest of it.

    >>> fitting_id("short"), len(fitting_id("long" * 100))
    ('short', 200)
    """
    if len(text) <= ID_LENGTH:
        return text
    digest = sha256(text.encode()).hexdigest()[:32]
    return f"{text[: ID_LENGTH - 33].rstrip()} {digest}".ljust(ID_LENGTH, "-")


def label_of(text: str) -> str | None:
    r"""Return a text as a group, category or tag: in form NFC, on one line, at most 200 characters; None if empty.

    >>> label_of(" Climate \n& weather "), label_of(" ")
    ('Climate & weather', None)
    """
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    return "".join(letter for letter in plain if letter.isprintable())[:ID_LENGTH].strip() or None


def start_of_day(text: str, field: str, days: int = 0) -> str:
    """Return the beginning, in UTC, of the day so many days after a date. Refuses: bad_instant.

    >>> start_of_day("2026-02-28", "end", 1)
    '2026-03-01T00:00:00Z'
    """
    try:
        if not _DATE.fullmatch(text):
            raise ValueError
        return f"{date.fromisoformat(text) + timedelta(days=days)}T00:00:00Z"
    except (ValueError, OverflowError):
        raise Refused("bad_instant", field, text, "not a date", remedy="write it as 2026-03-01") from None


def instant_of(text: str, field: str) -> str:
    """Return a date, or a date and time, as an instant in UTC; a date stands for its beginning. Refuses: bad_instant.

    >>> instant_of("2026-03-01 12:00:00.5+00:00", "at"), instant_of("2026-03-01", "at")
    ('2026-03-01T12:00:00.500000Z', '2026-03-01T00:00:00Z')
    """
    if _DATE.fullmatch(text):
        return start_of_day(text, field)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise Refused("bad_instant", field, text) from None
    if instant.tzinfo is None:
        raise Refused("naive_instant", field, text)
    try:
        return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise Refused("bad_instant", field, text) from None


# --- columns and fields: each is used, or ignored for a reason; any other that says something is named once in its file

_EMPTY: tuple[Any, ...] = (None, "", "NA", "N/A", [], {})


class Columns(NamedTuple):
    """The columns of a table, or the fields of an object.

    ignored: name -> why it changes no score. only: name -> the values that are read, if others would change a score.
    lost: name -> what the ledger does not have because it is not read, in words.
    """

    used: Collection[str]
    ignored: Mapping[str, str]
    only: Mapping[str, Collection[Any]] = {}
    lost: Mapping[str, str] = {}


def ignored_fields(*groups: Mapping[str, str]) -> dict[str, str]:
    """Return why each name is ignored, from names with spaces between them by their reason.

    >>> ignored_fields({"words": "title text"})
    {'title': 'words', 'text': 'words'}
    """
    return {name: reason for group in groups for reason, names in group.items() for name in names.split()}


class Unread:
    """What one file has that is not read. noun: what its columns are called. is_not: what such a column is not.

    >>> unread = Unread(Columns(["id"], {"title": "words"}, {"kind": ["a"]}))
    >>> row = {"id": "1", "title": "x", "kind": "b", "weight": "2", "none": ""}
    >>> [item.reason for _, item in unread.of(InputLocation(2), row)]
    ["a value that is not read of the column 'kind': 'b'", "a column that is not read: 'weight'"]
    >>> [*unread.of(InputLocation(3), row)]
    []
    """

    def __init__(self, columns: Columns, noun: str = "column", is_not: str = "that is not read") -> None:
        self._columns, self._noun, self._is_not = columns, noun, is_not
        self._passed = {*columns.used, *columns.ignored} - {*columns.only}

    def of(self, location: InputLocation, row: Mapping[str, Any]) -> Iterator[tuple[InputLocation, NotCarried]]:
        """Yield the columns of a row that say something and are not read, unless a row before it had them."""
        noun, only = self._noun, self._columns.only
        for name in sorted(row.keys() - self._passed):
            if row[name] in _EMPTY or row[name] in only.get(name, ()):
                continue
            self._passed.add(name)
            reason = f"a {noun} {self._is_not}: {name!r}" if name else f"a {noun} without a name"
            if name in only:
                reason = f"a value that is not read of the {noun} {name!r}: {str(row[name])[:80]!r}"
            reason = self._columns.lost.get(name, reason)
            yield location, NotCarried(reason)
