"""The events of a log that a working paper lists: late entries, exclusions, and answers that were revoked."""

from collections.abc import Iterator, Sequence
from heapq import nlargest
from os import PathLike
from typing import NamedTuple

from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.replay.explain.diff import Diff, diff
from forecast_ledger.replay.explain.explain_scores import LogSource
from forecast_ledger.replay.reading.replay import AsOf, Cut, Watch, open_store

HOUR = 3_600 * 10**6  # µs
WORST = 10  # late entries that are listed
MOST_REVOCATIONS = 20  # whose effects are worked out; each needs the log to be read again
_ANSWERS = (events.QuestionResolved, events.QuestionAnnulled)


class Revocation(NamedTuple):
    """An answer that was revoked. position, again: log positions of it, and of the next answer; None without one."""

    position: int
    question: str
    reason: str
    again: int | None


class Evidence(NamedTuple):
    """The events that a working paper lists.

    events: how many there are; imported: how many have a time of receipt from elsewhere. late: how many were recorded
    longer after the instant that they claim than is allowed; worst: the latest of them, and of those that claim an
    instant after their recording (ahead). exclusions, revocations: in log order.
    """

    events: int
    imported: int
    late: int
    ahead: int
    worst: list[Recorded]
    exclusions: list[Recorded]
    revocations: list[Revocation]


def collect(location: str | PathLike[str], name: str, as_of: AsOf, allowed: int, watch: Watch) -> Evidence:
    """Read a log as of a cut. allowed: how late an entry may be, µs. Raises Refused, Unavailable, Corrupt."""
    count = imported = late = ahead = 0
    worst, exclusions, revoked = list[Recorded](), list[Recorded](), list[Revocation]()
    answers: dict[str, list[int]] = {}  # log positions by question
    for page in _pages(location, name, as_of, watch):
        count += len(page)
        imported += sum(recorded.imported is True for recorded in page)
        apart = [recorded for recorded in page if lateness(recorded) > allowed or lateness(recorded) < 0]
        ahead += sum(lateness(recorded) < 0 for recorded in apart)
        late += sum(lateness(recorded) > allowed for recorded in apart)
        worst = nlargest(WORST, [*worst, *apart], key=lambda each: (abs(lateness(each)), -each.position))
        for recorded in page:
            event = recorded.event
            if isinstance(event, events.ParticipantExcluded):
                exclusions.append(recorded)
            elif isinstance(event, events.ResolutionRevoked):
                revoked.append(Revocation(recorded.position, event.question, event.reason, None))
            elif isinstance(event, _ANSWERS):
                answers.setdefault(event.question, []).append(recorded.position)
    revocations = [
        each._replace(again=next((place for place in answers.get(each.question, ()) if place > each.position), None))
        for each in revoked
    ]
    return Evidence(count, imported, late, ahead, worst, exclusions, revocations)


def lateness(recorded: Recorded) -> int:
    """Return how long after the instant that it claims an event was recorded, µs."""
    return recorded.recorded_at - recorded.event.at


def moved(location: str | PathLike[str], name: str, as_of: AsOf, revocation: Revocation) -> Diff:
    """Return what changed on leaderboards between an answer that was revoked and the answer that replaced it.

    If nothing has, up to the end of the log. Raises Refused, Unavailable, Corrupt.
    """
    before = LogSource(location, name, revocation.position - 1)
    return diff(before, as_of if revocation.again is None else revocation.again, "leaderboard")


def _pages(location: str | PathLike[str], name: str, as_of: AsOf, watch: Watch) -> Iterator[Sequence[Recorded]]:
    with open_store(location, name) as store:
        yield from Cut(as_of).pages(log.unseal_pages(store.pages()), watch)
