"""Kinds of facts, and the events that change each of them.

A row of the catalogue names the kinds of facts that its table reads. From this, a refresh, `blame` and `diff` derive
which events can change a table or one of its rows; they name no table themselves.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from forecast_ledger.ledger.model import events
from forecast_ledger.projections.boards.totals import may_take_reference_label

FORECASTS = (events.ForecastMade, events.ForecastWithdrawn, events.ForecastsRetracted)
CHANGING = (
    events.QuestionOpened,
    events.QuestionClosed,
    events.QuestionRescheduled,
    events.QuestionAmended,
    events.OutcomesChanged,
)
SETTLING = (events.QuestionResolved, events.QuestionAnnulled, events.ResolutionRevoked)


class Input(NamedTuple):
    """A kind of facts.

    types: the events that change it. shared: the columns whose value must be the same in the event and in a row that
    it can change, if both have them. answered: if true, only events on a question that has an answer count. renaming:
    if true, only events about a participant with the name of a reference forecaster count. market: if true, only
    contests that show the market count.
    """

    types: tuple[type[events.Event], ...]
    shared: tuple[str, ...] = ()
    answered: bool = False
    renaming: bool = False
    market: bool = False

    def has(self, event: events.Event, *, answered: bool) -> bool:
        """Return whether an event changes it. answered: whether the event's question has an answer at that time."""
        on_question = not isinstance(event, events.ParticipantRenamed)
        if not isinstance(event, self.types) or (self.answered and on_question and not answered):
            return False
        names = (getattr(event, field, "") for field in ("participant", "to"))
        return not self.renaming or any(map(may_take_reference_label, names))


_FORECASTS = (*FORECASTS, events.ParticipantRenamed)
_ACCOUNTS = (events.AccountEvent, events.ParticipantRenamed)
INPUTS: dict[str, Input] = {
    "questions": Input(CHANGING, ("question",)),
    "resolutions": Input(SETTLING, ("question",)),
    "forecasts": Input(_FORECASTS, ("question",)),
    "own_forecasts": Input(_FORECASTS, ("question", "participant")),
    # A forecast changes scores only if its question has an answer.
    "scored_forecasts": Input(_FORECASTS, ("question",), answered=True),
    "scored_questions": Input((*CHANGING, events.QuestionAdded), ("contest", "question"), answered=True),
    "reference_names": Input(_FORECASTS, renaming=True),
    "scored_quotes": Input((events.PricesQuoted,), market=True),
    "entries": Input((events.QuestionAdded, events.QuestionAmended), ("contest", "question")),
    "contests": Input(
        (
            events.ContestOpened,
            events.ParticipantEnrolled,
            events.ParticipantExcluded,
            events.ParticipantRenamed,
            events.ContestFinalized,
            events.PrizePaid,
        ),
        ("contest",),
    ),
    "quotes": Input((events.PricesQuoted,)),
    "accounts": Input(_ACCOUNTS, ("contest",)),
    "own_account": Input(_ACCOUNTS, ("contest", "participant")),
    "clock": Input((events.Event,)),  # the latest instant of all events
    "digest": Input((events.Event,)),  # the digest of the log, from which random draws follow
}
ALWAYS = frozenset({"clock", "digest"})  # every event changes them
SAMPLED = ("resolutions", "scored_forecasts", "scored_questions", "reference_names", "contests")
SCORED = (*SAMPLED, "scored_quotes")  # scores of the market among them


def changing(reads: Iterable[str], event: events.Event, *, answered: bool) -> Iterator[Input]:
    """Yield the kinds of facts, among those that a table reads, that an event changes."""
    return (kind for name in reads if (kind := INPUTS[name]).has(event, answered=answered))


def kinds_of(types: Iterable[type[events.Event]]) -> set[str]:
    """Return the kinds of facts that events of these types can change.

    >>> sorted(kinds_of([events.PricesQuoted]))
    ['clock', 'digest', 'quotes', 'scored_quotes']
    """
    types = set(types)
    return {name for name, kind in INPUTS.items() if any(issubclass(event, kind.types) for event in types)}
