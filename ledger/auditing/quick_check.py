"""A quick check of forecasts, the most frequent events of a log.

It accepts only events that the decider would record; an event that it does not accept is decided in full.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from msgspec import UNSET, json

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import (
    CUMULATIVE,
    FIRST_INSTANT,
    LARGEST_MEASURE,
    PROBABILITY,
    check_id,
    read_fixed,
)
from forecast_ledger.ledger.deciding.questions import unsettled_question
from forecast_ledger.ledger.deciding.state import QuestionState, StandingOf, State
from forecast_ledger.ledger.model.canonical import (
    cdf_content,
    forecast_content,
    measures_content,
    probabilities_content,
    probability_content,
)
from forecast_ledger.ledger.model.events import ForecastMade, NumericRange, QuestionOpened
from forecast_ledger.ledger.model.log import Recorded, fingerprint

DIGEST = re.compile("[0-9a-f]{32}", re.ASCII)
# A forecast, and whether in normal form -> canonical bytes of its numbers; None if not accepted.
_Form = Callable[[ForecastMade, bool], bytes | None]
QuestionForm = tuple[bytes, _Form]  # the canonical id of a question, and its form
# A forecast alone in its command, of which `ForecastForms.says` is true, by a digest of its normal form: its question
# and participant, when it is made, µs, the id of its command, and its log position.
PlainForecast = tuple[str, str, int, str, int]
_Taking = tuple[int, StandingOf, QuestionForm]  # when a question closes, µs; what stands on it; its form
_encode = json.encode


class ForecastForms:
    """The form that a forecast on each question must have, whatever comes before it in the log.

    The form of a question never changes, so it is cached, and it is the same in a part of a log as in all of it.
    """

    def __init__(self) -> None:
        self._forms: dict[str, QuestionForm] = {}
        self._participants: dict[str, bytes] = {}  # valid id -> its canonical bytes

    def of(self, name: str, question: QuestionState | QuestionOpened) -> QuestionForm:
        """Return the form of a question, which is the state of it or its first event."""
        return self._forms.get(name) or self._forms.setdefault(name, (_encode(name), _form(question)))

    def says(self, recorded: Recorded, form: QuestionForm) -> bool | None:
        """Return whether the digest of a command is that of its forecast, which is on the question with this form.

        None if the row is no forecast, or one that the decider might not record even if the question takes it. The
        command may have more events than this one.
        """
        event, (question_id, canonical) = recorded.event, form
        if type(event) is not ForecastMade or event.attestation is not None or recorded.provenance is not UNSET:
            return None
        if event.until is not None or event.points is not None or event.normalized is not None:
            return None
        numbers = canonical(event, recorded.normal is True)
        participant = self._participants.get(event.participant) or self._participant(event.participant)
        if numbers is None or not participant or event.at < FIRST_INSTANT or not _is_id(recorded.command_id):
            return None
        return _is_said(recorded, question_id, participant, numbers)

    def _participant(self, participant: str) -> bytes:
        """Return the canonical bytes of an id; none if it is not valid."""
        if not _is_id(participant):
            return b""
        encoded = self._participants[participant] = _encode(participant)
        return encoded


class ForecastCheck:
    """A quick check of forecasts against a state."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._forms = ForecastForms()
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

    def accept(
        self, rows: Sequence[Recorded], begin: int, commands: dict[str, int], note_lossy: Callable[[int], None]
    ) -> int:
        """Apply forecasts from a row on, as long as the decider certainly records them, each alone in its command.

        The last row is never applied, because its command may go on. commands: log positions by id; theirs are added.
        note_lossy: called with the position of one whose digest, of the first form, cannot be rebuilt. Return how many
        were applied.
        """
        taking: dict[str, _Taking | None] = {}  # only forecasts are applied: a question stays as it is
        number, several, says = begin, self._state.several_ids(), self._forms.says
        for number in range(begin, len(rows) - 1):
            recorded = rows[number]
            event, command_id = recorded.event, recorded.command_id
            if type(event) is not ForecastMade or command_id in commands or command_id == rows[number + 1].command_id:
                break
            at, name, who = event.at, event.question, event.participant
            known = taking[name] if name in taking else taking.setdefault(name, self._taking(name))
            if known is None or who in several or at >= known[0]:
                break
            _, standing, form = known
            last = standing.get(who)
            if last is not None and at < (last if isinstance(last, int) else last[0]):
                break
            if not (said := says(recorded, form)):
                if said is None or recorded.normal is True or self._is_normal or not DIGEST.fullmatch(recorded.command):
                    break
                note_lossy(recorded.position)
            if not self.note_form(recorded):
                break
            commands[command_id] = recorded.position
            standing[who] = at
        else:
            number = max(len(rows) - 1, begin)
        return number - begin

    def take(self, forecasts: Iterable[PlainForecast], commands: dict[str, int]) -> bool:
        """Apply forecasts; return False at the first that the decider might not record. commands: see `accept`."""
        taking: dict[str, _Taking | None] = {}
        several = self._state.several_ids()
        for name, who, at, command_id, position in forecasts:
            known = taking[name] if name in taking else taking.setdefault(name, self._taking(name))
            if known is None or who in several or at >= known[0] or command_id in commands:
                return False
            standing = known[1]
            last = standing.get(who)
            if last is not None and at < (last if isinstance(last, int) else last[0]):
                return False
            commands[command_id] = position
            standing[who] = at
            self._is_normal = True
        return True

    def _taking(self, name: str) -> "_Taking | None":
        """Return a question that takes forecasts; None if it may not."""
        question = unsettled_question(name, self._state)
        if question is None:
            return None
        return question.closed_at, self._state.standing_on(name), self._forms.of(name, question)


def _form(question: QuestionState | QuestionOpened) -> _Form:
    if question.range is None:
        return _binary if question.kind == "binary" else _probabilities(question.outcomes)
    return _measures(question.range) if question.range.measures else _cdf(question.range)


def _is_said(recorded: Recorded, question: bytes, participant: bytes, numbers: bytes) -> bool:
    """Return whether the digest of a command is that of a forecast with its instant, or stamped at its recording."""
    at, said, is_normal = recorded.event.at, recorded.command, recorded.normal is True
    if at == recorded.recorded_at:
        stamped = forecast_content(question, participant, None, numbers, is_normal)
        if fingerprint(stamped) == said:
            return True
    return fingerprint(forecast_content(question, participant, at, numbers, is_normal)) == said


def _is_id(text: str) -> bool:
    try:
        check_id(text, "id")
    except Refused:
        return False
    return True


def _binary(event: ForecastMade, is_normal: bool) -> bytes | None:
    chances = event.probabilities
    if event.cdf or event.quantiles or event.samples or len(chances) != 2:
        return None
    yes, no = chances
    if not 0 <= yes <= PROBABILITY or yes + no != PROBABILITY:
        return None
    return probability_content(yes, is_normal)


def _probabilities(outcomes: tuple[str, ...]) -> _Form:
    """Return the form of probabilities by outcome, in the canonical order of the names."""
    order = [*json.decode(json.encode({name: i for i, name in enumerate(outcomes)}, order="deterministic")).items()]
    names = [(_encode(name), index) for name, index in order]

    def canonical_numbers(event: ForecastMade, is_normal: bool) -> bytes | None:
        """Return the probabilities in canonical form; None if they are not in the form of the question."""
        chances = event.probabilities
        if event.cdf or event.quantiles or event.samples or len(chances) != len(names):
            return None
        if min(chances) < 0 or sum(chances) != PROBABILITY:
            return None
        return probabilities_content([(name, chances[index]) for name, index in names], is_normal)

    return canonical_numbers


def _cdf(span: NumericRange) -> _Form:
    lowest = CUMULATIVE if span.open_lower else 0
    highest = 0 if span.open_upper else CUMULATIVE

    def canonical_numbers(event: ForecastMade, is_normal: bool) -> bytes | None:
        """Return the cumulative probabilities in canonical form; None if they are not in the form of the question."""
        heights = event.cdf
        if event.probabilities or event.quantiles or event.samples or len(heights) != span.bins + 1:
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

    def canonical_numbers(event: ForecastMade, _: bool) -> bytes | None:
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
