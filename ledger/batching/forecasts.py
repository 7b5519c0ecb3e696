"""Forecasts, which are most commands, as columns: a quick way from commands to rows.

It handles only commands that the decider can refuse for one reason, the state of their question; all others go the long
way. Commands are read column by column. A column is checked as a whole, and value by value only if something in it is
unusual. The texts come from `canonical` and `log`, where those of the long way come from.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from io import BytesIO
from itertools import chain
from operator import attrgetter
from types import NoneType
from typing import Any, Literal, NamedTuple, Self, overload

import msgspec
from msgspec import Struct, json

from forecast_ledger.ledger.batching.chances import Chances, read_chances
from forecast_ledger.ledger.batching.measures import Measures, read_measures
from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.visible import is_known_plain, unseen
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import forecast_contents, numbers_content, numbers_text
from forecast_ledger.ledger.model.commands import AnyCommand, SubmitForecast

Numbers = Measures | Chances  # of a forecast, but those of a probability
UNSTAMPED = -(2**63)  # in place of the instant of a command that has none
_COLUMNS = ("id", "at", "question", "participant", "probability")


class _Line(Struct, forbid_unknown_fields=True, gc=False):
    """The line of a forecast of a probability: as `SubmitForecast`, without all other fields."""

    type: Literal["submit_forecast"]
    question: str
    participant: str
    probability: Any
    id: str = ""
    at: str | None = None


class _LineWithNulls(_Line, forbid_unknown_fields=True, gc=False):
    """The same line; its other fields may be null."""

    probabilities: None = None
    cdf: None = None
    quantiles: None = None
    attestation: None = None
    until: None = None
    samples: None = None
    points: None = None
    normalized: None = None
    by: None = None
    reason: None = None
    evidence: None = None
    correlation: None = None
    causation: None = None


_decoders = [msgspec.json.Decoder(form, float_hook=Decimal) for form in (_Line, _LineWithNulls)]


class QuickForecasts(NamedTuple):
    """Forecasts as columns, of which those of any other command, or of one that may have a fault, are empty.

    at: µs; UNSTAMPED for a command without an instant, None for any other command. id: of the command, as JSON without
    its quotation marks. fingerprint: of its content. event: as JSON. units: the probability of yes, 1e-9. measures:
    numbers that are none of a probability; these are not yet in the text of the event, which has them in the unit of
    its question.
    """

    at: Sequence[int | None]
    question: Sequence[str]
    participant: Sequence[str]
    id: Sequence[str]
    fingerprint: Sequence[str]
    event: Sequence[str]
    units: Sequence[int]
    measures: Sequence[Numbers | None]

    @classmethod
    def none(cls, count: int) -> "QuickForecasts":
        """Return as many empty ones."""
        question, participant, ids, fingerprint, event = ([""] * count for _ in range(5))
        return cls([None] * count, question, participant, ids, fingerprint, event, [0] * count, [None] * count)

    def stamped(self, recorded_at: int) -> "QuickForecasts":
        """Return the forecasts, of which those without an instant have that of their recording, µs."""
        if UNSTAMPED not in self.at:
            return self
        at = [recorded_at if each == UNSTAMPED else each for each in self.at]
        events = [
            log.stamped(event, recorded_at) if each == UNSTAMPED else event
            for each, event in zip(self.at, self.event, strict=True)
        ]
        return self._replace(at=at, event=events)

    def part(self, begin: int, end: int | None) -> "QuickForecasts":
        """Return some of the forecasts."""
        whole = begin == 0 and end is None
        return self if whole else QuickForecasts(*(column[begin:end] for column in self))  # type: ignore[arg-type]


class ForecastColumns(Sequence[SubmitForecast]):
    """Forecasts of a probability as columns; an item is the command.

    id, at, question, participant, probability: the fields of `SubmitForecast`, each of all forecasts. Without `at`,
    each is stamped with the instant at which it is recorded.
    Raises ValueError: the columns have different lengths.

    >>> from forecast_ledger import ForecastColumns, commands, open_ledger
    >>> question = commands.OpenQuestion(
    ...     at="2026-03-01T00:00:00Z",
    ...     question="rain",
    ...     kind="binary",
    ...     opens_at="2026-03-01T00:00:00Z",
    ...     closes_at="2026-03-08T00:00:00Z",
    ... )
    >>> forecasts = ForecastColumns(
    ...     id=["f1", "f2"],
    ...     at=["2026-03-02T00:00:00Z"] * 2,
    ...     question=["rain"] * 2,
    ...     participant=["ada", "bob"],
    ...     probability=["0.7", "1.7"],
    ... )
    >>> with open_ledger(":memory:") as ledger:
    ...     receipt = ledger.handle(question, command_id="open-rain")
    ...     [str(getattr(outcome, "code", "recorded")) for outcome in ledger.handle_many(forecasts)]
    ['recorded', 'out_of_range']
    """

    @checked()
    def __init__(
        self,
        *,
        id: Iterable[Any],  # noqa: A002 - the name of the field
        question: Iterable[Any],
        participant: Iterable[Any],
        probability: Iterable[Any],
        at: Iterable[Any] | None = None,
    ) -> None:
        ids = [*id]
        columns = (ids, [None] * len(ids) if at is None else [*at], [*question], [*participant], [*probability])
        lengths = {name: len(column) for name, column in zip(_COLUMNS, columns, strict=True)}
        if len({*lengths.values()}) > 1:
            raise ValueError(f"the columns have different lengths: {lengths}")
        self.ids: Sequence[Any] = columns[0]
        self.quick: QuickForecasts | None = None  # what `quick_forecasts` returns for them, if it is known
        self._columns: Sequence[Sequence[Any]] = columns
        self._read: Callable[[], ForecastColumns] | None = None  # reads the columns that are not here

    @classmethod
    def of_quick(cls, ids: Sequence[str], quick: QuickForecasts, read: "Callable[[], ForecastColumns]") -> Self:
        """Return forecasts without a fault. read: reads them again, with their columns, which are rarely needed."""
        forecasts = cls(id=(), question=(), participant=(), probability=())
        forecasts.ids, forecasts.quick, forecasts._read = ids, quick, read
        return forecasts

    @property
    def columns(self) -> Sequence[Sequence[Any]]:
        """The fields of the commands: ids, instants, questions, participants, probabilities."""
        if self._read is not None:
            self._columns, self._read = self._read().columns, None
        return self._columns

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> SubmitForecast: ...
    @overload
    def __getitem__(self, index: slice) -> "ForecastColumns": ...
    def __getitem__(self, index: int | slice) -> "SubmitForecast | ForecastColumns":
        if isinstance(index, slice):
            return ForecastColumns(**dict(zip(_COLUMNS, (column[index] for column in self.columns), strict=True)))
        return _command(*(column[index] for column in self.columns))

    def __iter__(self) -> Iterator[SubmitForecast]:
        return map(_command, *self.columns)


def _command(command_id: Any, at: Any, question: Any, participant: Any, probability: Any) -> SubmitForecast:
    return SubmitForecast(id=command_id, at=at, question=question, participant=participant, probability=probability)


def ids_of(commands: Sequence[AnyCommand]) -> Sequence[Any]:
    """Return the id of each command."""
    return commands.ids if isinstance(commands, ForecastColumns) else [command.id for command in commands]


def read_lines(data: bytes) -> ForecastColumns | None:
    """Return the forecasts on lines of JSON; None if one of them is not a forecast of a probability, or has a fault.

    A line that is read is the command that `commands.read` returns for it.
    """
    for decoder in _decoders[: 2 if b"null" in data else 1]:
        try:
            return _columns(map(decoder.decode, BytesIO(data)))
        except (msgspec.DecodeError, InvalidOperation, RecursionError, UnicodeError):
            continue
    return None


def _columns(lines: Iterable[_Line]) -> ForecastColumns:
    """Return lines as columns, in which a name is one object.

    A line is taken apart before the next one is read: it stays in the caches of a processor, as thousands would not.
    """
    columns: list[list[Any]] = [[] for _ in _COLUMNS]
    ids, instants, questions, participants, numbers = columns
    name_of = dict[str, str]().setdefault
    for line in lines:
        ids.append(line.id)
        instants.append(line.at)
        questions.append(name_of(line.question, line.question))
        participants.append(name_of(line.participant, line.participant))
        numbers.append(line.probability)
    forecasts = ForecastColumns(id=(), question=(), participant=(), probability=())
    forecasts.ids, forecasts._columns = ids, columns  # which need not be copied
    return forecasts


_DECIMALS = 9  # of a probability in the log
LEAST = 1_000  # 1e-9; the text of a smaller number has an exponent
_WRITTEN = "0\\.[0-9]{1,9}"
_PROBABILITY = re.compile(_WRITTEN, re.ASCII).fullmatch
_PROBABILITIES = re.compile(f"{_WRITTEN}(?:,{_WRITTEN})*", re.ASCII).fullmatch
_NUMBERS = ("probability", "probabilities", "cdf", "quantiles", "samples")
_HEIGHTS = len(str(values.CUMULATIVE)) - 1  # decimals of a cdf in the log
_AT_ONCE = 192  # forecasts of several numbers; the numbers of more leave the caches of a processor
_MANY = 64  # instants or probabilities are worth the import of NumPy


def read_quick_forecasts(ids: Sequence[str], commands: Sequence[AnyCommand]) -> QuickForecasts:
    """Return the forecasts that commands make."""
    if isinstance(commands, ForecastColumns):
        return commands.quick or quick_forecasts(ids, *commands.columns[1:])
    forms = [*map(_form, commands)]
    if forms and forms[0] and forms.count(forms[0]) == len(forms):
        return _forecasts_of(ids, commands, forms[0])
    forecasts = QuickForecasts.none(len(commands))
    for form in filter(None, dict.fromkeys(forms)):
        indices = [index for index, each in enumerate(forms) if each == form]
        read = _forecasts_of([ids[index] for index in indices], [commands[index] for index in indices], form)
        for column, part in zip(forecasts, read, strict=True):
            for index, value in zip(indices, part, strict=True):
                column[index] = value  # type: ignore[index]
    return forecasts


def _form(command: Any) -> str:
    """Return the field that has the numbers of a forecast; empty if it has several or other fields, or is none."""
    if type(command) is not SubmitForecast:
        return ""
    # one by one, which takes half of the time of `a is b is None`
    if command.attestation is not None or command.until is not None or command.points is not None:
        return ""
    if command.normalized is not None or command.by is not None or command.reason is not None:
        return ""
    if command.evidence is not None or command.correlation is not None or command.causation is not None:
        return ""
    is_one = command.quantiles is None or command.probability is None
    if is_one and command.probabilities is None and command.cdf is None and command.samples is None:
        return "probability" if command.quantiles is None else "quantiles"
    fields = [field for field in _NUMBERS if getattr(command, field) is not None]
    return fields[0] if len(fields) == 1 else ""


def _forecasts_of(ids: Sequence[str], commands: Sequence[Any], field: str) -> QuickForecasts:
    if len(ids) == 1 and field == "probability" and (one := _one_forecast(ids[0], commands[0])) is not None:
        return one
    columns = (
        [command.at for command in commands],
        [command.question for command in commands],
        [command.participant for command in commands],
        [*map(attrgetter(field), commands)],
    )
    return quick_forecasts(ids, *columns, field=field)


def quick_forecasts(  # noqa: PLR0913 - the columns
    ids: Sequence[Any],
    instants: Sequence[Any],
    questions: Sequence[Any],
    participants: Sequence[Any],
    numbers: Sequence[Any],
    *,
    field: str = "probability",
) -> QuickForecasts:
    """Return the forecasts of commands from the columns of their fields. field: the one that the numbers are of."""
    faults = set[int]()
    ats, written = _instants(instants, faults), written_ids(ids, faults)
    question_texts, by = _names(questions, faults), _names(participants, faults)
    texts_of_at = ["null" if at == UNSTAMPED else str(at) for at in ats] if UNSTAMPED in ats else ats
    given: Sequence[object]
    units = [0] * len(ids)
    measures: Sequence[Numbers | None] = [None] * len(ids)
    if field == "probability":
        given = units = _probabilities(numbers, faults)
        events = log.forecast_texts(texts_of_at, question_texts, by, units)
    else:
        read = _chances if field == "probabilities" else _measures
        given, measures = read(field, numbers, faults)
        events = log.forecast_heads(texts_of_at, question_texts, by)
    fingerprints = log.fingerprints(forecast_contents(question_texts, by, texts_of_at, given))
    begins: list[int | None] = [*ats]
    for index in faults:
        begins[index] = None
    return QuickForecasts(begins, questions, participants, written, fingerprints, events, units, measures)


def read_columns(commands: ForecastColumns) -> tuple[Sequence[str], list[int], list[int]] | None:
    """Return the ids as JSON without quotation marks, the instants and the probabilities of forecasts.

    The instants are in µs, UNSTAMPED for each without one, the probabilities in 1e-9. None if one may have a fault.
    """
    ids, instants, _, _, numbers = commands.columns
    faults = set[int]()
    read = written_ids(ids, faults), _instants(instants, faults), _probabilities(numbers, faults)
    return None if faults else read


def _one_forecast(command_id: str, command: SubmitForecast) -> QuickForecasts | None:
    """Return what `quick_forecasts` returns for one command, sooner; None if something in it is unusual."""
    if not type(command.at) is type(command_id) is type(command.question) is type(command.participant) is str:
        return None
    written = str(command.probability) if type(command.probability) in {str, Decimal} else ""
    ident, question, participant = _id_text(command_id), name_text(command.question), name_text(command.participant)
    if not (ident and question and participant and _PROBABILITY(written)) or (at := _micros(command.at)) is None:
        return None
    units, names = [_units(written)], ([question], [participant])
    if units[0] < LEAST:
        return None
    fingerprints = log.fingerprints(forecast_contents(*names, [at], units))
    texts = [ident[1:-1]], fingerprints, log.forecast_texts([at], *names, units)
    return QuickForecasts([at], [command.question], [command.participant], *texts, units, [None])


def _chances(field: str, given: Sequence[object], faults: set[int]) -> tuple[list[str], list[Numbers | None]]:
    """Return the part of probabilities by outcome in the normal form of each forecast, and the numbers.

    Those that may be refused are faults.
    """
    parts = (read_chances(given[first : first + _AT_ONCE], name_text) for first in range(0, len(given), _AT_ONCE))
    contents, chances = zip(*chain.from_iterable(parts), strict=True)
    faults.update(index for index, each in enumerate(chances) if each is None)
    return [numbers_content(field, content) for content in contents], [*chances]


def _measures(field: str, given: Sequence[Any], faults: set[int]) -> tuple[list[str], list[Numbers | None]]:
    """Return the part of a cdf, quantiles or samples in the normal form of each forecast, and the numbers.

    Those refused are faults, and those that decrease, or have too many digits, and a cdf of more decimals than the
    log has.
    """
    contents, measures = [""] * len(given), list[Numbers | None]([None]) * len(given)
    for first in range(0, len(given), _AT_ONCE):
        indices: Sequence[int] = range(first, min(first + _AT_ONCE, len(given)))
        lists = [*map(given.__getitem__, indices)]
        if (text := _numbers_text(field, lists)) is None:
            indices = [index for index in indices if _numbers_text(field, [given[index]])]
            lists = [*map(given.__getitem__, indices)]
            text = _numbers_text(field, lists)
        if text is not None:
            least = _HEIGHTS if field == "cdf" else 0
            for index, (content, numbers) in zip(indices, read_measures(field, text, lists, least), strict=True):
                if numbers is not None and (field != "cdf" or numbers.decimals == _HEIGHTS):
                    measures[index] = numbers
                    contents[index] = json.encode([*numbers.units]).decode() if field == "cdf" else content
    faults.update(index for index, numbers in enumerate(measures) if numbers is None)
    before = numbers_content(field, "")
    return [before + content for content in contents], measures


def _numbers_text(field: str, given: Sequence[Any]) -> bytes | None:
    """Return the numbers of forecasts as one array of JSON; None if some have none, or more than any question takes,
    or one is refused.
    """
    if not given or not {*map(type, given)} <= {tuple, list} or not all(given):
        return None
    if max(map(len, given)) > values.MOST_BINS + 1:  # the edges of bins
        return None
    try:
        if field == "samples":
            given = [sorted(values.read_decimals(numbers, field)) for numbers in given]
        return numbers_text(field, [*chain.from_iterable(given)])
    except Refused:
        return None


def _instants(given: Sequence[Any], faults: set[int]) -> list[int]:
    """Return instants in µs; UNSTAMPED for each if all are None. Those refused, or not a text, are faults."""
    types = {*map(type, given)}
    if types == {NoneType}:
        return [UNSTAMPED] * len(given)
    texts = given if types == {str} else _of_type(given, {str}, faults)
    if len(texts) >= _MANY:
        from forecast_ledger.ledger.batching.text_columns import read_utc  # noqa: PLC0415 - late: it imports NumPy

        if (micros := read_utc(texts)) is not None:
            return micros.tolist()  # type: ignore[no-any-return]
    read = [*map(_micros, texts)]
    faults.update(index for index, instant in enumerate(read) if instant is None)
    return [instant or 0 for instant in read]


def _micros(text: str) -> int | None:
    """Return an instant in µs; None if it is refused."""
    try:
        return values.read_instant(text)
    except Refused:
        return None


def _probabilities(given: Sequence[Any], faults: set[int]) -> list[int]:
    """Return probabilities in 1e-9.

    All are faults unless they are written as 0. and 1 to 9 digits, or are a decimal that is, and are 1e-6 or more.
    """
    texts = given if {*map(type, given)} == {str} else [*map(str, _of_type(given, {str, Decimal}, faults))]
    if len(texts) >= _MANY:
        from forecast_ledger.ledger.batching.text_columns import read_fractions  # noqa: PLC0415 - late, as above

        if (read := read_fractions(texts, _DECIMALS)) is not None and int(read.min()) >= LEAST:
            return read.tolist()  # type: ignore[no-any-return]
    if not _all_match(texts, _PROBABILITIES):
        faults.update(index for index, text in enumerate(texts) if not _PROBABILITY(text))
        texts = [text if _PROBABILITY(text) else "0.0" for text in texts]
    units = [*map(_units, texts)]
    if units and min(units) < LEAST:
        faults.update(index for index, number in enumerate(units) if number < LEAST)
    return units


def _units(text: str) -> int:
    """Return a number that is written as 0. and 1 to 9 digits in 1e-9."""
    return int(text[2:].ljust(_DECIMALS, "0"))


def _names(given: Sequence[Any], faults: set[int]) -> list[str]:
    """Return the JSON of the ids of questions or participants, which often occur again."""
    names = _of_type(given, {str}, faults)
    texts = {name: name_text(name) for name in {*names}}
    if not all(texts.values()):
        faults.update(index for index, name in enumerate(names) if not texts[name])
    return [*map(texts.__getitem__, names)]


def written_ids(given: Sequence[Any], faults: set[int]) -> Sequence[str]:
    """Return the JSON of the ids of commands, without its quotation marks. Those that may be refused are faults."""
    ids = _of_type(given, {str}, faults)
    joined = "".join(ids)
    is_plain = joined.isascii() and joined.isprintable() and not any(sign in joined for sign in ' "\\')
    if is_plain and ids and all(ids) and max(map(len, ids)) <= values.ID_LENGTH:
        return ids
    texts = [_id_text(each)[1:-1] for each in ids]
    faults.update(index for index, text in enumerate(texts) if not text)
    return texts


def _of_type(given: Sequence[Any], types: set[type], faults: set[int]) -> Sequence[Any]:
    """Return values of these types, and an empty text in place of each other one, which is a fault."""
    if {*map(type, given)} <= types:
        return given
    faults.update(index for index, value in enumerate(given) if type(value) not in types)
    return [value if type(value) in types else "" for value in given]


def _all_match(texts: Sequence[str], match: Any) -> bool:
    """Return whether texts all match, given what matches them with commas between them."""
    joined = ",".join(texts)
    return match(joined) is not None and joined.count(",") == len(texts) - 1


def _id_text(text: str) -> str:
    """Return the JSON of an id; empty if it is refused, or may be as a new one."""
    try:
        return json.encode(values.check_id(text, "id")).decode() if is_known_plain(text) and not unseen(text) else ""
    except Refused:
        return ""


_kept_text = lru_cache(maxsize=65_536)(_id_text)


def name_text(text: str) -> str:
    """Return the same as `_id_text`, which is kept, because few names occur often; texts that are too long are not."""
    return _kept_text(text) if len(text) <= values.ID_LENGTH else ""
