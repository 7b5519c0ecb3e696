"""What tables read: kinds of facts, and the events that change each of them.

A row of the catalogue names the kinds that its table reads. What can change a table, or one row of it, follows from
this: a refresh, `blame` and `diff` ask here and name no table.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from forecast_ledger.ledger.model import events
from forecast_ledger.projections.boards.totals import takes_its_name

FORECASTS = (events.ForecastMade, events.ForecastWithdrawn)
SETTLING = (events.QuestionResolved, events.QuestionAnnulled, events.ResolutionRevoked)


class Input(NamedTuple):
    """A kind of facts.

    types: the events that change it. shared: the columns in which a row that reads it agrees with the event,
    as far as both have them. answered: whether only an event on a question that has an answer counts. renaming: whether
    only a forecast counts whose participant takes the name of the consensus.
    """

    types: tuple[type[events.Event], ...]
    shared: tuple[str, ...] = ()
    answered: bool = False
    renaming: bool = False

    def has(self, event: events.Event, *, answered: bool) -> bool:
        """Whether an event changes it; answered: whether the event's question has an answer as it happens."""
        if not isinstance(event, self.types) or (self.answered and not answered):
            return False
        return not self.renaming or takes_its_name(getattr(event, "participant", ""))


INPUTS: dict[str, Input] = {
    "questions": Input((events.QuestionOpened, events.QuestionClosed), ("question",)),
    "resolutions": Input(SETTLING, ("question",)),
    "forecasts": Input(FORECASTS, ("question",)),
    "own_forecasts": Input(FORECASTS, ("question", "participant")),
    # What scores are made of: it counts as soon as the question has an answer, and comes to nothing before.
    "scored_forecasts": Input(FORECASTS, ("question",), answered=True),
    "scored_questions": Input(
        (events.QuestionOpened, events.QuestionClosed, events.QuestionAdded), ("contest", "question"), answered=True
    ),
    "consensus_name": Input(FORECASTS, renaming=True),
    "entries": Input((events.QuestionAdded,), ("contest", "question")),
    "contests": Input(
        (
            events.ContestOpened,
            events.ParticipantEnrolled,
            events.ParticipantExcluded,
            events.ContestFinalized,
            events.PrizePaid,
        ),
        ("contest",),
    ),
    "quotes": Input((events.PricesQuoted,)),
    "accounts": Input((events.AccountEvent,), ("contest",)),
    "own_account": Input((events.AccountEvent,), ("contest", "participant")),
    "clock": Input((events.Event,)),  # the latest instant that an event claims, whichever it is
}
SCORED = ("resolutions", "scored_forecasts", "scored_questions", "consensus_name", "contests")


def changing(reads: Iterable[str], event: events.Event, *, answered: bool) -> Iterator[Input]:
    """The kinds of facts among these that an event changes."""
    return (found for kind in reads if (found := INPUTS[kind]).has(event, answered=answered))


def kinds_of(types: Iterable[type[events.Event]]) -> set[str]:
    """The kinds of facts that events of these types may change.

    >>> sorted(kinds_of([events.PricesQuoted]))
    ['clock', 'quotes']
    """
    types = set(types)
    return {kind for kind, found in INPUTS.items() if any(issubclass(each, found.types) for each in types)}
