"""What a table is made of: its schema, its row of the catalogue, and its division into parts."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from forecast_ledger.ledger.model import events
from forecast_ledger.projections.boards.totals import may_take_reference_label
from forecast_ledger.projections.core.columns import Column, Values
from forecast_ledger.projections.tables.analysis import Analysis

# --- Kinds of facts, and the events that change each of them.
#
# A row of the catalogue names the kinds of facts that its table reads. From this, a refresh, `blame` and `diff` derive
# which events can change a table or one of its rows; they name no table themselves.


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
}
ALWAYS = frozenset({"clock"})  # every event changes it
ANSWERED = ("resolutions", "scored_forecasts", "scored_questions")
SAMPLED = (*ANSWERED, "reference_names", "contests")
SCORED = (*SAMPLED, "scored_quotes")  # scores of the market among them
DRAWN = (*ANSWERED, "contests", "scored_quotes")  # draws follow from all scores; references have no rows


def changing(reads: Iterable[str], event: events.Event, *, answered: bool) -> Iterator[Input]:
    """Yield the kinds of facts, among those that a table reads, that an event changes."""
    return (kind for name in reads if (kind := INPUTS[name]).has(event, answered=answered))


def kinds_of(types: Iterable[type[events.Event]]) -> set[str]:
    """Return the kinds of facts that events of these types can change.

    >>> sorted(kinds_of([events.PricesQuoted]))
    ['clock', 'quotes', 'scored_quotes']
    """
    types = set(types)
    return {name for name, kind in INPUTS.items() if any(issubclass(event, kind.types) for event in types)}


class Division(NamedTuple):
    """A way to divide a table into parts: the smallest units that are rebuilt, compared, written and checked.

    part: the columns that identify the part of a row; if empty, the whole table is one part. follows: the kinds of
    facts whose changes are followed to the parts that they touch; a table that reads another kind is rebuilt whole.
    """

    part: tuple[str, ...]
    follows: frozenset[str]


# What a part of each division is, and when a refresh makes it again; another table is made again whole.
_ON_FORECASTS = frozenset({"forecasts", "own_forecasts"})
_ACCOUNT = frozenset({"own_account", "resolutions"})
_VALUES = _ACCOUNT | {"accounts", "questions", "quotes", "contests", "clock"}
_SCORED = frozenset(SCORED)
DIVISIONS: dict[str, Division] = {
    # The whole table, whenever any kind of facts that it reads changes.
    "log": Division((), frozenset(INPUTS)),
    # A question, when it or a forecast on it changes; it has a part only if it has a forecast.
    "forecasts": Division(("question",), _ON_FORECASTS | {"questions", "resolutions"}),
    # A question, when it is changed or answered; forecasts on it do not matter.
    "questions": Division(("question",), frozenset({"questions", "resolutions"})),
    # A question in a contest that asks for attestations, when it is entered or a forecast on it comes.
    "receipts": Division(("contest", "question"), _ON_FORECASTS | {"entries"}),
    # A contest, when its record, its questions or its accounts change.
    "contests": Division(("contest",), frozenset({"contests", "entries", "accounts"})),
    # A question in a contest, when its scores change.
    "scores": Division(("contest", "question"), _SCORED),
    # A contest, when a score in it changes: its sums of scores are kept, and the new ones are added.
    "boards": Division(("contest",), _SCORED),
    # A participant in a contest, when a score of theirs changes; the Brier sums of others are kept.
    "brier_scores": Division(("contest", "participant"), _SCORED),
    # A participant in all contests, likewise.
    "brier_overall": Division(("participant",), _SCORED),
    # An account, when its own events or answers to what it holds come.
    "account_entries": Division(("contest", "participant"), _ACCOUNT),
    # An account, also when prices, questions or contests change what it is worth.
    "holdings": Division(("contest", "participant"), _VALUES - {"accounts"}),
    # A contest, when any of its accounts or their worth changes.
    "trading_boards": Division(("contest",), _VALUES),
    # The whole table, when any account or its worth changes.
    "trading_overall": Division((), _VALUES),
    # An account at each tick; every tick changes all accounts, so that a refresh makes the table again whole.
    "portfolios": Division(("contest", "participant"), _VALUES),
    # An event that moves money, when it comes; later, a rename alone changes its rows.
    "movements": Division(("log_position",), frozenset({"accounts", "contests"})),
    # The whole table, because every row has an age.
    "quotes": Division((), frozenset({"quotes", "questions", "resolutions", "clock"})),
}


class Schema(NamedTuple):
    """The meaning of a table, the columns that identify a row, and all columns."""

    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]


_COMMON = {
    "contest": Column("contest", "id", "the contest"),
    "question": Column("question", "id", "the question"),
    "participant": Column("participant", "id", "the forecaster"),
}


def schema(text: str) -> Schema:
    """Return the schema that a text describes: the meaning of the table, an empty line, and a line for each column.

    A line has the name, kind and meaning of a column, or the name of a common column alone. An asterisk marks a column
    of the key. A line that is indented further continues the one before it.

    >>> schema('''
    ...     the price of each contest
    ...
    ...     contest*
    ...     price     money  what it costs to take part,
    ...                      without taxes
    ... ''').columns[1]
    Column(name='price', kind='money', meaning='what it costs to take part, without taxes')
    """
    meaning, _, lines = text.strip().partition("\n\n")
    key, columns = [], []
    for line in re.sub(r"\n {5,}", " ", lines).splitlines():
        starred, *fields = line.split(None, 2)
        name = starred.removesuffix("*")
        columns.append(Column(name, *fields) if fields else _COMMON[name])
        key += [name] if name != starred else []
    return Schema(" ".join(meaning.split()), tuple(key), tuple(columns))


class Projection(NamedTuple):
    """A named, versioned pure function from facts to a table.

    build: returns the values of the columns, in their order. reads: the kinds of facts, of INPUTS, that its rows depend
    on. division: the name of its division, of DIVISIONS, whose columns come first in the key. as_built: if true, rows
    keep the order in which they are built, contest by contest. final: if true, only the participant of a row ever
    changes after the event at its log position. on_request: if true, the table is built only on request, because it can
    have far more rows than the log, or take long. exported: if true, every export has it all the same. whole: if true,
    a row also depends on questions and contests that its key does not have.
    """

    version: int
    schema: Schema
    build: Callable[[Analysis], Iterable[Values]]
    reads: tuple[str, ...]
    division: str = "log"
    as_built: bool = False
    final: bool = False
    on_request: bool = False
    exported: bool = False
    whole: bool = False

    @property
    def meaning(self) -> str:
        """What the table says."""
        return self.schema.meaning

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row; rows are sorted by them."""
        return self.schema.key

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, in their order."""
        return self.schema.columns

    @property
    def part(self) -> tuple[str, ...]:
        """The columns that identify the part of a row."""
        return DIVISIONS[self.division].part

    @property
    def refresh_division(self) -> str:
        """The division by which a refresh updates the table: "log" if `division` does not follow all that it reads."""
        return self.division if DIVISIONS[self.division].follows.issuperset(self.reads) else "log"
