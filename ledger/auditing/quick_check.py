"""A quick check of forecasts, the most frequent events of a log.

It accepts only events that the decider would record; an event that it does not accept is decided in full.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from itertools import islice, takewhile
from typing import Any, NamedTuple

from msgspec import UNSET, json

from forecast_ledger.ledger.auditing.taken_forecasts import PlainForecasts, TakenIds, check_taken, take_columns
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.core.values import (
    CUMULATIVE,
    FIRST_INSTANT,
    ID_LENGTH,
    LARGEST_MEASURE,
    PROBABILITY,
    check_id,
    read_fixed,
)
from forecast_ledger.ledger.deciding.questions import unsettled_question
from forecast_ledger.ledger.deciding.state import QuestionState, StandingOf, State
from forecast_ledger.ledger.model.canonical import (
    cdf_content,
    forecast_contents,
    measures_content,
    probabilities_content,
    probability_content,
)
from forecast_ledger.ledger.model.events import ForecastMade, NumericRange, QuestionOpened
from forecast_ledger.ledger.model.log import Recorded, fingerprints

DIGEST = re.compile("[0-9a-f]{32}", re.ASCII)
# A forecast, and whether in normal form -> the part of its numbers in its content; None if not accepted.
_Form = Callable[[ForecastMade, bool], str | int | None]


class QuestionForm(NamedTuple):
    """What a forecast on a question must be.

    text: the id of the question as JSON. span: its range, if its forecasts are cumulative probabilities.
    """

    text: str
    numbers: _Form
    span: NumericRange | None


_Content = tuple[str, str, int | str, str | int]  # of a forecast: question and participant, as JSON, instant, numbers
_Taking = tuple[int, StandingOf, QuestionForm]  # when a question closes, µs; what stands on it; its form
_LENGTHS = {*range(1, ID_LENGTH + 1)}  # of ids
_STAMPED = "null"  # in place of an instant that the ledger has stamped


class ForecastForms:
    """The form that a forecast on each question must have, whatever comes before it in the log.

    The form of a question never changes, so it is cached, and it is the same in a part of a log as in all of it.
    """

    def __init__(self) -> None:
        self._forms: dict[str, QuestionForm] = {}
        self._participants: dict[str, str] = {}  # valid id -> the id as JSON

    def of(self, name: str, question: QuestionState | QuestionOpened) -> QuestionForm:
        """Return the form of a question, which is the state of it or its first event."""
        return self._forms.get(name) or self._forms.setdefault(name, _question_form(name, question))

    def say(self, rows: Sequence[Recorded], forms: Sequence[QuestionForm | None]) -> list[bool | None]:
        """Return of each forecast whether the digest of its command is that of its content.

        rows: all of them of the normal form, or none. forms: of their questions. None for a row without a form, and for
        one that the decider might not record even if the question takes it. The command of a row may have more events
        than this one.
        """
        is_normal, ids = bool(rows) and rows[0].normal is True, valid_ids([recorded.command_id for recorded in rows])
        participants, contents, asked = self._participants, list[_Content](), list[int]()
        for index, (recorded, form) in enumerate(zip(rows, forms, strict=True)):
            event: Any = recorded.event
            if form is None or recorded.provenance is not UNSET or recorded.command_id not in ids:
                continue
            if not event.attestation is event.until is event.points is event.normalized is None:
                continue
            at, who, (question, numbers_of, _) = event.at, event.participant, form
            numbers, participant = numbers_of(event, is_normal), participants.get(who) or self.participant(who)
            if numbers is None or not participant or at < FIRST_INSTANT:
                continue
            contents.append((question, participant, _STAMPED if at == recorded.recorded_at else at, numbers))
            asked.append(index)
        said: list[bool | None] = [None] * len(rows)
        for index, content, digest in zip(asked, contents, _digests(contents, is_normal), strict=True):
            said[index] = digest == rows[index].command or _is_unstamped(rows[index], content, is_normal)
        return said

    def participant(self, participant: str) -> str:
        """Return an id as JSON; empty if it is not valid."""
        if (known := self._participants.get(participant)) is not None:
            return known
        if not valid_ids([participant]):
            return ""
        encoded = self._participants[participant] = _json(participant)
        return encoded


class ForecastCheck:
    """A quick check of forecasts against a state."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._forms = ForecastForms()
        self._taking: dict[str, _Taking | None] = {}  # by question; None for one that may take no forecast
        self._said: tuple[Sequence[Recorded], int, list[bool | None]] = (), 0, []  # of rows, from one of them on
        self._ids = TakenIds()
        self._is_normal = False  # whether a command is known by its normal form, as all after it must be
        self.first_forms = 0, 0  # how many are known by the first form, and the log position of the last one

    def note_form(self, recorded: Recorded) -> bool:
        """Note the form of the digest of a command; return False if it is the first form, and one before is normal."""
        if recorded.normal is True:
            self._is_normal = True
        elif self._is_normal:
            return False
        else:
            count, _ = self.first_forms
            self.first_forms = count + 1, recorded.position
        return True

    def renew(self) -> None:
        """Look at questions again: a command was applied, which may have changed them."""
        self._taking.clear()

    def accept(
        self, rows: Sequence[Recorded], begin: int, commands: dict[str, int], note_lossy: Callable[[int], None]
    ) -> int:
        """Apply forecasts from a row on, as long as the decider certainly records them, each alone in its command.

        The last row is never applied, because its command may go on. commands: log positions by id; theirs are added.
        note_lossy: called with the position of one whose digest, of the first form, cannot be rebuilt. Return how many
        were applied.
        """
        if type(rows[begin].event) is not ForecastMade:
            return 0
        taking, several, count = self._taking, self._state.several_ids(), 0
        beside = islice(rows, begin, None), islice(rows, begin + 1, None), self._said_from(rows, begin)
        for recorded, after, said in zip(*beside, strict=False):
            event: Any = recorded.event
            at, name, who, command_id = event.at, event.question, event.participant, recorded.command_id
            known = taking[name] if name in taking else taking.setdefault(name, self._takes(name))
            if said is None or known is None or who in several or at >= known[0]:
                break
            standing = known[1]
            last = standing.get(who)
            if last is not None and at < (last if isinstance(last, int) else last[0]):
                break
            if command_id in commands or command_id == after.command_id:
                break
            if recorded.normal is not True:
                if not said and (self._is_normal or not DIGEST.fullmatch(recorded.command)):
                    break
                if not said:
                    note_lossy(recorded.position)
                if not self.note_form(recorded):
                    break
            elif not said:
                break
            commands[command_id] = recorded.position
            standing[who] = at
            count += 1
        self._is_normal |= count > 0 and rows[begin].normal is True
        return count

    def _said_from(self, rows: Sequence[Recorded], begin: int) -> Iterable[bool | None]:
        """Yield what forecasts say, from a row on up to one that is none, or is known by the other form.

        None also for one whose id a forecast taken before has. Only forecasts are among these rows: whatever is applied
        meanwhile, the forms of questions stay as they are.
        """
        read, first, said = self._said
        if read is not rows or not first <= begin < first + len(said):
            is_normal, taking, first = rows[begin].normal, self._taking, begin
            forecasts = [
                *takewhile(
                    lambda recorded: type(recorded.event) is ForecastMade and recorded.normal is is_normal,
                    islice(rows, begin, None),
                )
            ]
            names = [recorded.event.question for recorded in forecasts]  # type: ignore[union-attr]
            known = [taking[name] if name in taking else taking.setdefault(name, self._takes(name)) for name in names]
            said = self._forms.say(forecasts, [each and each[2] for each in known])
            for index in self._ids.among([recorded.command_id for recorded in forecasts]):
                said[index] = None
            self._said = rows, begin, said
        return islice(said, begin - first, None)

    def take(self, forecasts: PlainForecasts, commands: dict[str, int]) -> bool:
        """Apply forecasts; return False if the decider might not record one of them, which `check_taken` may find.

        commands: see `accept`.
        """
        if forecasts.are_few():
            return self._take_rows(forecasts.rows(), commands)
        self._is_normal = True
        self._ids.take(forecasts.ids, forecasts.position)
        if (taken := take_columns(forecasts, self._state)) is None:
            return False
        for name in taken:
            self._taking.pop(name, None)  # what stands there is not what stood
        return True

    def check_taken(self, commands: Collection[str]) -> None:
        """Check the ids of forecasts taken, and their order in time. commands: the other ids. Raises Corrupt."""
        again, others = self._ids.check(), [*commands]
        for index in islice(self._ids.among(others), 1):  # in a forged log there may be very many
            again = self._ids.position(others[index])
        if again is not None:
            raise Corrupt(again, "the id of the command is that of another command too")
        check_taken(self._state)

    def taken_at(self, command_id: str) -> int | None:
        """Return the log position of the forecast with this id, if it was taken with others, and checked."""
        return None if next(self._ids.among([command_id]), None) is None else self._ids.position(command_id)

    def _take_rows(self, forecasts: Iterable[tuple[str, str, int, str, int]], commands: dict[str, int]) -> bool:
        """Apply forecasts row by row; return what `take` does."""
        taking, several = self._taking, self._state.several_ids()
        for name, who, at, command_id, position in forecasts:
            known = taking[name] if name in taking else taking.setdefault(name, self._takes(name))
            if known is None or who in several or at >= known[0]:
                return False
            if command_id in commands:
                return False
            standing = known[1]
            last = standing.get(who)
            if last is not None and at < (last if isinstance(last, int) else last[0]):
                return False
            commands[command_id] = position
            standing[who] = at
            self._is_normal = True
        return True

    def _takes(self, name: str) -> _Taking | None:
        """Return a question that takes forecasts; None if it may not."""
        question = unsettled_question(name, self._state)
        if question is None:
            return None
        return question.closed_at, self._state.standing_on(name), self._forms.of(name, question)


def asks_probability(form: QuestionForm) -> bool:
    """Return whether a question has the form that a probability of yes is for."""
    return form.numbers is _binary


def asked_heights(form: QuestionForm) -> tuple[int, int, int]:
    """Return how many cumulative probabilities a question asks for, the most of the first, and the least of the last.

    Zeros if it asks for other numbers.
    """
    return _heights(form.span) if form.span else (0, 0, 0)


def _heights(span: NumericRange) -> tuple[int, int, int]:
    return span.bins + 1, CUMULATIVE if span.open_lower else 0, 0 if span.open_upper else CUMULATIVE


def _question_form(name: str, question: QuestionState | QuestionOpened) -> QuestionForm:
    span = question.range
    return QuestionForm(_json(name), _form(question), None if span is None or span.measures else span)


def _json(text: str) -> str:
    return json.encode(text).decode()


def _form(question: QuestionState | QuestionOpened) -> _Form:
    if question.range is None:
        return _binary if question.kind == "binary" else _probabilities(question.outcomes)
    return _measures(question.range) if question.range.measures else _cdf(question.range)


def _digests(contents: Sequence[_Content], is_normal: bool) -> list[str]:
    """Return the digests of the contents of forecasts."""
    return fingerprints(forecast_contents(*zip(*contents, strict=True), is_normal=is_normal)) if contents else []


def _is_unstamped(recorded: Recorded, content: _Content, is_normal: bool) -> bool:
    """Return whether a digest is of a content with its instant, though it may have been stamped at its recording."""
    question, participant, at, numbers = content
    return at == _STAMPED and [recorded.command] == _digests(
        [(question, participant, recorded.event.at, numbers)], is_normal
    )


def valid_ids(texts: Sequence[str]) -> set[str]:
    """Return those texts that are valid ids."""
    joined, lengths = "".join(texts), {*map(len, texts)}
    if joined.isascii() and joined.isprintable() and " " not in joined and lengths <= _LENGTHS:
        return {*texts}
    return {text for text in texts if _is_id(text)}


def _is_id(text: str) -> bool:
    try:
        check_id(text, "id")
    except Refused:
        return False
    return True


def _binary(event: ForecastMade, is_normal: bool) -> str | int | None:
    chances = event.probabilities
    if event.cdf or event.quantiles or event.samples or len(chances) != 2:
        return None
    yes, no = chances
    if not 0 <= yes <= PROBABILITY or yes + no != PROBABILITY:
        return None
    return yes if is_normal else probability_content(yes, is_normal)


def _probabilities(outcomes: tuple[str, ...]) -> _Form:
    """Return the form of probabilities by outcome, in the canonical order of the names."""
    order = [*json.decode(json.encode({name: i for i, name in enumerate(outcomes)}, order="deterministic")).items()]
    names = [(_json(name), index) for name, index in order]

    def canonical_numbers(event: ForecastMade, is_normal: bool) -> str | None:
        """Return the probabilities in canonical form; None if they are not in the form of the question."""
        chances = event.probabilities
        if event.cdf or event.quantiles or event.samples or len(chances) != len(names):
            return None
        if min(chances) < 0 or sum(chances) != PROBABILITY:
            return None
        return probabilities_content([(name, chances[index]) for name, index in names], is_normal)

    return canonical_numbers


def _cdf(span: NumericRange) -> _Form:
    count, lowest, highest = _heights(span)

    def canonical_numbers(event: ForecastMade, is_normal: bool) -> str | None:
        """Return the cumulative probabilities in canonical form; None if they are not in the form of the question."""
        heights = event.cdf
        if event.probabilities or event.quantiles or event.samples or len(heights) != count:
            return None
        if not 0 <= heights[0] <= lowest or not highest <= heights[-1] <= CUMULATIVE or sorted(heights) != [*heights]:
            return None
        return cdf_content(heights, is_normal)

    return canonical_numbers


def _measures(span: NumericRange) -> _Form:
    field = "samples" if span.samples else "quantiles"
    unit, decimals = 10**span.decimals, span.decimals
    lower, upper = (
        read_fixed(Decimal(end), unit, "range", -LARGEST_MEASURE, LARGEST_MEASURE) for end in (span.lower, span.upper)
    )
    lowest = -LARGEST_MEASURE if span.open_lower else lower + (Decimal(lower).scaleb(-decimals) < Decimal(span.lower))
    highest = LARGEST_MEASURE if span.open_upper else upper - (Decimal(upper).scaleb(-decimals) > Decimal(span.upper))

    def canonical_numbers(event: ForecastMade, _: bool) -> str | None:
        """Return the quantiles or samples in canonical form; None if they are not in the form of the question."""
        measures, others = event.quantiles, event.samples
        if span.samples:
            measures, others = others, measures
        if event.probabilities or event.cdf or others or len(measures) != span.measures:
            return None
        if not lowest <= measures[0] or not measures[-1] <= highest or sorted(measures) != [*measures]:
            return None
        return measures_content(field, measures, decimals)

    return canonical_numbers
