"""What a source gives: commands with their places, and what is not carried over, counted by reason."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import ID_LENGTH
from forecast_ledger.ledger.model.commands import (
    AnyCommand,
    EnrolParticipant,
    OpenContest,
    ResolveQuestion,
    RevokeResolution,
)
from forecast_ledger.ledger.storing.receipt import Receipt
from forecast_ledger.replay.writing.append import InputPlace, Outcome, ReadCommand

FIRST_PLACES = 3  # of each reason, that are kept
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SETUP = (OpenContest, EnrolParticipant)  # what every import of a source sends again, with other words perhaps


class NotCarried(NamedTuple):
    """Something that the source has and the ledger does not take, and why."""

    reason: str


SourceItem = tuple[InputPlace, AnyCommand | Refused | NotCarried]


class LeftOut:
    """What was not carried over: for each reason how many, and the first places."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.places: dict[str, list[InputPlace]] = {}

    def add(self, place: InputPlace, reason: str) -> None:
        """Count one."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        first = self.places.setdefault(reason, [])
        if len(first) < FIRST_PLACES:
            first.append(place)

    def lines(self) -> list[str]:
        """Return a line for each reason: how many, why, and where the first are."""
        return [
            f"not carried over: {count:,} x {reason} ({'; '.join(place.where() for place in self.places[reason])}"
            f"{'; ...' * (count > FIRST_PLACES)})"
            for reason, count in self.counts.items()
        ]


def carried(items: Iterable[SourceItem], left_out: LeftOut) -> Iterator[ReadCommand]:
    """Return the commands and refusals; count the rest in `left_out`."""
    for place, item in items:
        if isinstance(item, NotCarried):
            left_out.add(place, item.reason)
        else:
            yield place, item


class Settled:
    """The outcomes of an import, as a user means them.

    A contest or an enrolment that is there already counts as a duplicate, whatever its words. An answer that replaces
    one that stands is kept for `corrections`, which revokes the standing answer first.
    """

    def __init__(self) -> None:
        self._again: list[tuple[InputPlace, ResolveQuestion]] = []

    def pass_on(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Return the outcomes, except those of answers that `corrections` sends again."""
        for place, command, outcome in outcomes:
            if isinstance(outcome, Refused) and isinstance(command, _SETUP) and outcome.code in _THERE:
                yield place, command, Receipt(command.id, 0, 0, duplicate=True)
            elif (
                isinstance(outcome, Refused)
                and isinstance(command, ResolveQuestion)
                and outcome.code == "question_resolved"
            ):
                self._again.append((place, command))
            else:
                yield place, command, outcome

    def corrections(self) -> Iterator[ReadCommand]:
        """Return, for each answer that replaces another, the revocation of that and the answer."""
        for place, command in self._again:
            name = fitting_id(f"revoke for {command.id}")
            reason = "the source has another answer"
            yield place, RevokeResolution(id=name, at=command.at, question=command.question, reason=reason)
            yield place, command
        self._again = []


_THERE = {"duplicate_contest", "command_id_reused", "enrolled_already"}


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
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Refused("bad_instant", field, text) from None
    if found.tzinfo is None:
        raise Refused("naive_instant", field, text)
    try:
        return found.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise Refused("bad_instant", field, text) from None
