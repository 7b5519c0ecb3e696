"""The canonical bytes of a command's content, which distinguish a retry from another command with the same id.

Forecasts, which are most commands, have a quick way to the same bytes: a text around their values, which are checked
elsewhere.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from msgspec import json

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused, first_by_precedence
from forecast_ledger.ledger.core.exact import WIDE, WRITTEN, shortest_text
from forecast_ledger.ledger.model.canonical_fields import FIELDS, NORMAL_FIELDS, SKIPPING, Convert, faults
from forecast_ledger.ledger.model.commands import AnyCommand, Quote, SubmitForecast
from forecast_ledger.ledger.model.provenance import optional_names

_encoder = json.Encoder(order="deterministic")
_NORMAL = 2  # the first part of a normal form, by which it differs from the first form


def canonical_content(command: AnyCommand) -> bytes:
    """Return the content of a command, without its id, as canonical bytes.

    They are the same for equal numbers and instants, no matter how these are written.

    Refuses, first that applies: malformed, id_empty, id_too_long, id_not_plain, text_too_long, bad_instant,
    naive_instant, bad_number, amount_not_text, not_finite, out_of_range (an amount of a rule set in a dict).

    >>> from forecast_ledger.ledger.model.commands import CloseQuestion
    >>> first = CloseQuestion(at="2026-03-01T01:00:00+01:00", question="q1")
    >>> second = CloseQuestion(at="2026-03-01T00:00:00Z", question="q1", id="c1")
    >>> canonical_content(first) == canonical_content(second)
    True
    """
    name, fields, least = FIELDS[type(command)]
    content, said = _contents(command, fields)
    while content[-1] is None and len(content) > least:
        content.pop()
    return _encoder.encode([*said, name, *content])


def normal_content(command: AnyCommand) -> bytes:
    """Return the normal form of a command's content, which its events give back, as canonical bytes.

    Numbers are in the units in which they are recorded, whatever digits they were written with; a field that is empty
    is as if it were left out. `forecast_ledger.ledger.deciding.normal_forms` comes first, for what depends on the
    question.
    Refuses what `canonical_content` refuses.

    >>> from forecast_ledger.ledger.model.commands import SubmitForecast
    >>> normal_content(SubmitForecast(question="q", participant="ada", probability="0.50"))
    b'[2,"submit_forecast","q","ada",null,500000000]'
    """
    name, fields = NORMAL_FIELDS[type(command)]
    content, said = _contents(command, fields)
    while content[-1] is None:
        content.pop()
    return _encoder.encode([_NORMAL, *said, name, *content])


def _contents(
    command: AnyCommand, fields: Sequence[tuple[str, Convert, bool]]
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the canonical form of each field, and an object of those that say where the command comes from, if any.

    The object is by name, and comes first, so that fields which are added to a command later change nothing in it.
    Refuses, first that applies, as `canonical_content`.
    """
    if type(command) is Quote and command.skip_bad is True:
        fields = [(name, SKIPPING.get(convert, convert), optional) for name, convert, optional in fields]
    try:
        content = [
            None if (value := getattr(command, field)) is None and optional else convert(value, field)
            for field, convert, optional in fields
        ]
    except Refused:
        raise first_by_precedence(faults(command)) from None
    count = len(fields) - len(optional_names(type(command)))
    said = {fields[count + number][0]: part for number, part in enumerate(content[count:]) if part is not None}
    return content[:count], [said] if said else []


# --- forecasts, the quick way

_BEGINS = {False: '["submit_forecast",', True: f'[{_NORMAL},"submit_forecast",'}  # by whether in normal form
_ORDER = [name for name, *_ in FIELDS[SubmitForecast][1]]
_BEFORE = {name: "null," * (_ORDER.index(name) - _ORDER.index("probability")) for name in _ORDER[3:]}  # before a field
_SMALL = -6  # digits before the point, if those after it are counted down: the text has an exponent


def forecast_contents(
    questions: Iterable[str],
    participants: Iterable[str],
    instants: Iterable[object],
    numbers: Iterable[object],
    *,
    is_normal: bool = True,
) -> list[bytes]:
    """Return the contents of forecasts, in normal form unless it is said otherwise.

    questions, participants: ids as JSON. instants: µs, or "null" where the command has none. numbers: a probability,
    1e-9, for yes; or the part of other numbers, from `numbers_content` or a function below it.

    >>> forecast_contents(['"q"'], ['"ada"'], ["null"], [500_000_000])
    [b'[2,"submit_forecast","q","ada",null,500000000]']
    """
    begin = _BEGINS[is_normal]
    return [
        f"{begin}{question},{participant},{at},{number}]".encode()
        for question, participant, at, number in zip(questions, participants, instants, numbers, strict=True)
    ]


def content_parts(questions: Any, participants: Any, instants: Any, *numbers: Any) -> tuple[Any, ...]:
    """Return the parts of what `forecast_contents` returns, in normal form, for whoever joins columns of texts."""
    return _BEGINS[True], questions, ",", participants, ",", instants, ",", *numbers, "]"


def numbers_text(field: str, numbers: Sequence[Any]) -> bytes:
    """Return the numbers of a cdf, quantiles or samples, of one forecast or more, as a JSON array of shortest texts.

    Refuses, first that applies: bad_number, not_finite.

    >>> numbers_text("quantiles", ("-0.0", "2.50", 100))
    b'["0","2.5","1E+2"]'
    """
    decimals = map(WRITTEN.normalize, values.read_decimals(numbers, field))
    text = _encoder.encode([*decimals])
    return text.replace(b'"-0"', b'"0"') if b"-" in text else text


def numbers_content(field: str, numbers: str) -> str:
    """Return the part of a field of numbers in the normal form. numbers: those of a cdf in 1e-10, all others as texts.

    >>> numbers_content("cdf", "[0,10000000000]")
    'null,null,[0,10000000000]'
    """
    return f"{_BEFORE[field]}{numbers}"


def probability_content(yes: int, is_normal: bool) -> str:
    """Return the part of a probability, given in 1e-9, in the content of a forecast."""
    return str(yes) if is_normal else f"{_number_text(yes, 9)},null,null"


def probabilities_content(chances: Iterable[tuple[str, int]], is_normal: bool) -> str:
    """Return the part of probabilities by outcome. chances: names as JSON, in order, and 1e-9."""
    if is_normal:
        return f"{_BEFORE['probabilities']}{{{','.join([f'{name}:{units}' for name, units in chances])}}}"
    each = [f"{name}:{_number_text(units, 9)}" for name, units in chances]
    return f"{_BEFORE['probabilities']}{{{','.join(each)}}},null"


def cdf_content(heights: Sequence[int], is_normal: bool) -> str:
    """Return the part of a cdf, given in 1e-10."""
    texts = map(str, heights) if is_normal else [_number_text(height, 10) for height in heights]
    return f"{_BEFORE['cdf']}[{','.join(texts)}]"


def measures_content(field: str, measures: Iterable[int], decimals: int) -> str:
    """Return the part of quantiles or samples, given in 10^-decimals; it is the same in both forms."""
    if decimals > -_SMALL:
        return f"{_BEFORE[field]}[{','.join([_number_text(units, decimals) for units in measures])}]"
    unit = 10**decimals
    texts = [
        f'"{units // unit}{_fraction(units % unit, decimals)}"'
        if units > 0 and units % unit
        else _shortest_text(units, decimals)
        for units in measures
    ]
    return f"{_BEFORE[field]}[{','.join(texts)}]"


def _number_text(units: int, decimals: int) -> str:
    """Return the canonical text of units * 10^-decimals, as JSON; fast for a millionth or more, with a fraction."""
    digits = str(units)
    whole = len(digits) - decimals
    if whole > _SMALL and units > 0:
        if whole <= 0:
            digits, whole = digits.zfill(decimals + 1), 1
        if fraction := digits[whole:].rstrip("0"):
            return f'"{digits[:whole]}.{fraction}"'
    return _shortest_text(units, decimals)


@lru_cache(maxsize=65_536)
def _fraction(units: int, decimals: int) -> str:
    """Return the digits of units * 10^-decimals, which is below 1, from the point on, without zeros at their end."""
    return f".{units:0{decimals}}".rstrip("0")


@lru_cache(maxsize=65_536)
def _shortest_text(units: int, decimals: int) -> str:
    return f'"{shortest_text(Decimal(units).scaleb(-decimals, WIDE))}"'
