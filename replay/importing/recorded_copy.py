"""What a ledger has of the earlier copies of a source: the questions that they opened, and what they said of these."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from forecast_ledger.ledger.core.values import FIRST_INSTANT
from forecast_ledger.ledger.deciding.decider import evolve
from forecast_ledger.ledger.deciding.state import QuestionState, State
from forecast_ledger.ledger.model.events import (
    ContestFinalized,
    ForecastMade,
    ForecastsRetracted,
    ForecastWithdrawn,
    OutcomesChanged,
    ParticipantEnrolled,
    ParticipantRenamed,
    PricesQuoted,
    QuestionAdded,
    QuestionAmended,
    QuestionAnnulled,
    QuestionClosed,
    QuestionOpened,
    QuestionRescheduled,
    QuestionResolved,
    ResolutionRevoked,
    TradeRecorded,
)
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.facts.event_checks import amended, rescheduled
from forecast_ledger.replay.importing.source_items import fitting_id

Answer = QuestionResolved | QuestionAnnulled
ANNULLED = ("annulled",)
ReadLog = Callable[[], Iterable[Sequence[Recorded]]]
PersonOf = Callable[[str], str]  # the id of a command -> the source's id of its forecaster, "" if it has none
_OF_QUESTIONS = (
    QuestionAmended,
    QuestionOpened,
    QuestionClosed,
    QuestionRescheduled,
    OutcomesChanged,
    QuestionResolved,
    QuestionAnnulled,
    ResolutionRevoked,
)


class Span(NamedTuple):
    """A forecast: from when on it counts, µs, what it says, and when it ends unless it is replaced.

    until: µs; None if it is not withdrawn and does not end by itself. missed: whether it was withdrawn because a copy
    did not have it.
    """

    at: int
    says: tuple[object, ...]
    until: int | None = None
    missed: bool = False


def add_forecast(spans: list[Span], event: ForecastMade) -> None:
    """Add a forecast to those before it; one made at the same instant is replaced as if it had never been."""
    if spans and spans[-1].at == event.at:
        spans.pop()
    said = (event.probabilities, event.cdf, event.quantiles, event.samples, event.attestation)
    spans.append(Span(event.at, said, event.until))


def end_forecast(spans: list[Span], at: int, *, missed: bool = False) -> None:
    """End the last of the forecasts, unless it ended before."""
    if spans and (spans[-1].until is None or at < (spans[-1].until or 0)):
        spans[-1] = spans[-1]._replace(until=at, missed=missed)


@dataclass(slots=True)
class RecordedForecasts:
    """What a participant forecast on a question, as it counts now.

    position: of the last event about it. by_hand: whether a command of another origin is among them. of_source:
    whether one of the source was, now or before. merged: whether they are of several ids, which became one participant.
    """

    spans: list[Span] = field(default_factory=list)
    position: int = 0
    by_hand: bool = False
    of_source: bool = False
    merged: bool = False


class RecordedAnswer(NamedTuple):
    """A command that settled a question, or took that back. says: what `said` returns, () for a revocation."""

    position: int
    command_id: str
    says: tuple[object, ...]


@dataclass(slots=True)
class RecordedQuestion:
    """A question, as it was opened, as it is now, and with the times that the source gave it last.

    source: the one whose copies are followed. position: of the last event about it, but for forecasts. closing: the
    command and instant of an early close that is in force. said_closing: the instant of the early close that the
    source had last. answers: all that settled it or took that back. standing: the answer that stands, and an
    annulment of that. changes: of its outcomes. ids: of all commands of forecasts, also of those retracted, of quotes,
    and of entries. quoted_at: the instant of the last quote, µs. entries: as it was put into each contest. weights: as
    the source gave them last, 1e-6.
    """

    opened: QuestionOpened
    command_id: str
    source: str
    position: int
    now: QuestionOpened
    said: QuestionOpened
    closing: tuple[str, int] | None = None
    said_closing: int | None = None
    answers: list[RecordedAnswer] = field(default_factory=list)
    standing: list[RecordedAnswer] = field(default_factory=list)
    changes: list[OutcomesChanged] = field(default_factory=list)
    forecasts: dict[str, RecordedForecasts] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    quoted_at: int = FIRST_INSTANT
    entries: dict[str, QuestionAdded] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)

    @property
    def is_of_source(self) -> bool:
        """Whether the source opened it."""
        return source_of(self.command_id) == self.source


def said(event: Answer) -> tuple[object, ...]:
    """Return what an answer says, and when it was known; ANNULLED of an annulment."""
    if isinstance(event, QuestionAnnulled):
        return ANNULLED
    return tuple(getattr(event, name) for name in event.__struct_fields__ if name not in {"at", "question"})


def source_of(command_id: str) -> str:
    """Return the first word of a command's id, which names the source in an import."""
    return command_id.partition(" ")[0]


class People:
    """Who the forecasters of a source are, by the id that it has for them, so that a new name is one person's new name.

    The ids of commands have that id, and so has the log. A name that another person has, or had, is never given to a
    second one: the id of the source then comes after it.

    present: the id of each person in the ledger. names: those of the source, in order.
    """

    def __init__(self) -> None:
        self.present: dict[str, str] = {}
        self.names: dict[str, list[str]] = {}

    def note(self, person: str, participant: str) -> None:
        """Note a forecast of somebody under an id of the ledger."""
        if self.present.get(person) != participant:
            self.present[person] = participant
            self.names.setdefault(person, []).append(participant)

    def renamed(self, old: str, new: str, person: str) -> None:
        """Note that a participant has another id. person: whose name the source changed; "" if it was done by hand."""
        for bearer, present in self.present.items():
            self.present[bearer] = new if present == old else present
        if person:
            self.names.setdefault(person, []).append(new)

    def id_of(self, person: str, name: str, renamed: Mapping[str, str], others: Iterable[str]) -> str:
        """Return the id that somebody has in the ledger from now on, whom the copy gives a name.

        renamed: former ids, and the present one of each. others: who is in the ledger without an id of the source.

        >>> people = People()
        >>> people.note("7", "ada"), people.note("8", "bo")
        (None, None)
        >>> people.id_of("8", "bonnie", {}, []), people.id_of("8", "ada", {}, []), people.id_of("9", "bo", {}, [])
        ('bonnie', 'ada 8', 'bo 9')
        """
        present, names, owner = self.present.get(person), self.names.get(person, []), renamed.get(name, name)
        shared = present is not None and [*self.present.values()].count(present) > 1
        is_said = name in names[-1:] or (owner == present and name not in names)
        if present is not None and (name == present or is_said or shared):
            return present  # the source says nothing new, or it was changed by hand
        theirs = {each for other, now in self.present.items() if other != person for each in (now, *self.names[other])}
        is_free = name not in theirs and (present is None or (owner in {name, present} and name not in others))
        return (owner if present is None else name) if is_free else fitting_id(f"{name} {person}")


class RecordedCopy:
    """The questions of a log, and what was recorded of them.

    source: the one whose copies are followed, also on questions that it did not open; "" for whichever opened each.
    person_of: returns the source's id of the forecaster from the id of a command.
    """

    def __init__(
        self, pages: Iterable[Sequence[Recorded]], source: str = "", person_of: PersonOf = lambda _: ""
    ) -> None:
        self._source, self._person_of = source, person_of
        self.position, self.people = 0, People()
        self.questions: dict[str, RecordedQuestion] = {}
        self.sealed: set[str] = set()  # contests
        self.renamed: dict[str, str] = {}  # id that a participant has had -> the present one
        self.enrolled: dict[tuple[str, str], Recorded] = {}  # contest, participant -> the last enrolment
        self.traded: dict[str, TradeRecorded] = {}  # id of the command of a trade -> its last event
        self.state = State()  # of the questions alone
        for recorded in (each for page in pages for each in page):
            self._take_in(recorded)

    def state_of(self, question: str) -> QuestionState:
        """Return the state of a question."""
        return self.state.questions[question]

    def _take_in(self, recorded: Recorded) -> None:
        event, position = recorded.event, recorded.position
        self.position = position
        if isinstance(event, _OF_QUESTIONS):
            for table, key, value in evolve(event, self.state, position):
                table[key] = value
        if isinstance(event, QuestionOpened):
            source = self._source or source_of(recorded.command_id)
            known = RecordedQuestion(event, recorded.command_id, source, position, event, event)
            self.questions[event.question] = known
        elif isinstance(event, QuestionAdded):
            known = self.questions[event.question]
            known.ids.add(recorded.command_id)
            known.entries[event.contest], known.weights[event.contest] = event, event.weight
        elif isinstance(event, ParticipantEnrolled | ContestFinalized | TradeRecorded):
            self._contest(recorded, event)
        elif isinstance(event, ForecastMade | ForecastWithdrawn | ForecastsRetracted):
            self._forecast(recorded, event)
        elif isinstance(event, PricesQuoted):
            for known in (self.questions[quote.question] for quote in event.quotes):
                known.ids.add(recorded.command_id)
                known.quoted_at = max(known.quoted_at, event.quoted_at)
        elif isinstance(event, ParticipantRenamed):
            self.rename(event.participant, event.to, self._person_of(recorded.command_id))
        elif isinstance(event, _OF_QUESTIONS):
            known = self.questions[event.question]
            known.position = position
            if isinstance(event, QuestionResolved | QuestionAnnulled | ResolutionRevoked):
                _answer(known, recorded, event)
            else:
                _change(known, recorded, event)

    def rename(self, old: str, new: str, person: str) -> None:
        """Move what was recorded of a participant to another id, which may have forecasts, too.

        person: whose name the source changed, by its own id; "" if that was not the source.
        """
        self.people.renamed(old, new, person)
        for contest in [name for name, who in self.enrolled if who == old]:
            last = self.enrolled.pop((contest, old))
            self.enrolled.setdefault((contest, new), last)
        self.renamed = {who: new if now == old else now for who, now in self.renamed.items()} | {old: new, new: new}
        for known in self.questions.values():
            forecasts = known.forecasts.pop(old, RecordedForecasts())
            other = known.forecasts.get(new, RecordedForecasts())
            if forecasts.spans or forecasts.merged:
                forecasts.merged |= bool(other.spans)
                forecasts.of_source |= other.of_source
                known.forecasts[new] = forecasts

    def _contest(self, recorded: Recorded, event: ParticipantEnrolled | ContestFinalized | TradeRecorded) -> None:
        if isinstance(event, TradeRecorded):
            self.traded[recorded.command_id] = event
        elif isinstance(event, ParticipantEnrolled):
            self.enrolled[event.contest, event.participant] = recorded
            if person := self._person_of(recorded.command_id):
                self.people.note(person, event.participant)
        else:
            self.sealed.add(event.contest)

    def _forecast(self, recorded: Recorded, event: ForecastMade | ForecastWithdrawn | ForecastsRetracted) -> None:
        known = self.questions[event.question]
        forecasts = known.forecasts.setdefault(event.participant, RecordedForecasts())
        is_of_source = source_of(recorded.command_id) == known.source
        forecasts.position, forecasts.of_source = recorded.position, forecasts.of_source or is_of_source
        known.ids.add(recorded.command_id)
        if isinstance(event, ForecastsRetracted):
            forecasts.spans, forecasts.by_hand = [], not is_of_source
            return
        forecasts.by_hand |= not is_of_source
        if person := self._person_of(recorded.command_id):
            self.people.note(person, event.participant)
        if isinstance(event, ForecastMade):
            add_forecast(forecasts.spans, event)
        else:
            end_forecast(forecasts.spans, event.at, missed=is_missed(recorded.command_id))


def takes_back_an_answer(command_id: str) -> bool:
    """Return whether a revocation is of an answer that the ledger had, and not of an older version in the copy itself.

    >>> takes_back_an_answer("hub revoke 12 for hub answer 3"), takes_back_an_answer("hub revoke before 4")
    (True, False)
    """
    return "".join(command_id.split(" ")[2:3]).isdigit()


def is_missed(command_id: str) -> bool:
    """Return whether a withdrawal is of a forecast that a copy did not have."""
    return command_id.split(" ")[1:2] == ["missed"]


def _answer(known: RecordedQuestion, recorded: Recorded, event: Answer | ResolutionRevoked) -> None:
    says = () if isinstance(event, ResolutionRevoked) else said(event)
    given = RecordedAnswer(recorded.position, recorded.command_id, says)
    if isinstance(event, ResolutionRevoked):
        known.standing.pop()
    elif isinstance(event, QuestionAnnulled):
        known.standing.append(given)
    else:
        known.standing = [given]
        if known.answers and known.answers[-1].command_id == recorded.command_id:
            return  # it stands again after an annulment was revoked, in the same command
    known.answers.append(given)


def _change(
    known: RecordedQuestion,
    recorded: Recorded,
    event: QuestionClosed | QuestionRescheduled | QuestionAmended | OutcomesChanged,
) -> None:
    is_of_source = source_of(recorded.command_id) == known.source
    if isinstance(event, OutcomesChanged):
        known.changes.append(event)
    elif isinstance(event, QuestionAmended):
        known.said = amended(known.said, event) if is_of_source else known.said
        if event.weight is not None and is_of_source:
            known.weights[event.contest] = event.weight
    elif isinstance(event, QuestionClosed):
        known.closing = recorded.command_id, event.at
        known.said_closing = event.at if is_of_source else known.said_closing
    else:
        known.now = rescheduled(known.now, event)
        known.said = rescheduled(known.said, event) if is_of_source else known.said
        if event.closes_at is not None:
            known.closing = None
            known.said_closing = None if is_of_source else known.said_closing
