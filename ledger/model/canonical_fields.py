"""The fields of commands: the check of each, and its value in the canonical content and in the normal form."""

from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from fractions import Fraction
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import json, structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WRITTEN, shortest_text
from forecast_ledger.ledger.model.commands import (
    DEFAULT_BINS,
    DEFAULT_DECIMALS,
    AnyCommand,
    Bet,
    Command,
    ModelCall,
    Points,
    Prices,
    Range,
    RestatedForecast,
    Sale,
    Spot,
    SubmitForecast,
    malformed_refusal,
    read_rule_set,
)
from forecast_ledger.ledger.model.events import Attestation, CancelPolicy, QuestionKind, TradeAction
from forecast_ledger.ledger.model.forms import Normalizing
from forecast_ledger.ledger.model.given_values import (
    checks_of_points,
    mean_price,
    normal_points,
    or_as_given,
    points_content,
    prices_together,
)
from forecast_ledger.ledger.model.program_versions import version_key
from forecast_ledger.ledger.model.provenance import PARTS, Evidence, check_line, evidence_content
from forecast_ledger.ledger.model.publication_stamps import stamp_span
from forecast_ledger.ledger.model.replies import settings_texts
from forecast_ledger.ledger.model.rules import Level, RuleSet
from forecast_ledger.ledger.model.trading_rules import PERCENT, Trading

Convert = Callable[[Any, str], Any]  # value, name of the field -> its canonical form
_ZERO = Decimal(0)


def _call(value: Any, name: str) -> dict[str, Any]:
    """Return the fields of a call that are given; a setting is the same as its text."""
    if type(value) is not ModelCall:
        raise Refused("malformed", name, value, "not a call of a model")
    fields = ((field, part, getattr(value, field)) for field, part in _CALL.items())
    return {field: part(given, f"{name}.{field}") for field, part, given in fields if _is_given(given)}


def _is_given(value: Any) -> bool:
    """Return whether a field of a call has a value; an empty array or object is none."""
    return value is not None and (type(value) not in {tuple, list, dict} or len(value) > 0)


def _version(value: Any, name: str) -> str:
    if version_key(values.check_text(value, name)) is None:
        raise Refused("malformed", name, value, "not a version in normal form, such as 0.3.0 or 1.0rc1")
    return str(value)


def _id(value: Any, name: str) -> str:
    return values.check_id_cached(value, name) if type(value) is str else values.check_id(value, name)


def _number(value: Any, name: str) -> str:
    """Return the shortest decimal text."""
    if type(value) is not Decimal or not value.is_finite():
        value = values.read_decimal(value, name)
    return shortest_text(value)


def _quantity(value: Any, name: str) -> str:
    """Return the shortest decimal text; of a date or an instant, that of its seconds since the epoch."""
    return shortest_text(values.read_seconds(value, name)) if values.is_dated(value) else _number(value, name)


def _numbers(value: Any, name: str) -> list[Decimal]:
    if type(value) is not tuple and type(value) is not list:
        raise Refused("malformed", name, value, "not an array")
    return _shortest(value, name)


def _shortest(numbers: Collection[Any], name: str) -> list[Decimal]:
    """Return numbers as the decimals whose texts, which the encoder writes, are the shortest."""
    decimals = [*map(WRITTEN.normalize, values.read_decimals(numbers, name))]
    return decimals if all(decimals) else [number or _ZERO for number in decimals]  # zero may have a sign


def _by_id(value: Any, name: str) -> dict[str, Decimal]:
    if type(value) is not dict:
        raise Refused("malformed", name, value, "not an object of ids and numbers")
    for outcome in value:
        _id(outcome, name)
    try:
        return dict(zip(value, _shortest(value.values(), name), strict=True))
    except Refused:
        for outcome, number in value.items():
            _number(number, f"{name}.{outcome}")
        raise


def _or_fractions(convert: Convert) -> Convert:
    """Return the function for an object of numbers, of which some may be fractions: these in their lowest terms."""

    def convert_items(value: Any, name: str) -> dict[str, Any]:
        """Return the values by outcome, fractions as text in lowest terms and others as decimals."""
        fractions = (
            {key: part for key, part in value.items() if values.is_fraction(part)} if type(value) is dict else {}
        )
        others = {key: part for key, part in value.items() if key not in fractions} if fractions else value
        decimals: dict[str, Any] = convert(others, name)
        return decimals | {_id(outcome, name): str(Fraction(part)) for outcome, part in fractions.items()}

    return convert_items


def _or_none(convert: Convert) -> Convert:
    """Return the function for a field that, empty or 0, counts like one that is left out."""
    return lambda value, name: convert(value, name) or None


def _without_content(convert: Convert) -> Convert:
    """Return the function for a field that is checked and recorded, and by which no two commands differ."""

    def check(value: Any, name: str) -> None:
        convert(value, name)

    return check


def _array(convert: Convert) -> Convert:
    def convert_items(value: Any, name: str) -> list[Any]:
        if type(value) is not tuple and type(value) is not list:
            raise Refused("malformed", name, value, "not an array")
        return [convert(item, name) for item in value]

    return convert_items


def _range(value: Any, name: str) -> list[Any]:
    if type(value) is not Range:
        raise Refused("malformed", name, value, "not a range")
    levels, has_bins = value.levels, value.levels is None and value.samples is None
    bins = DEFAULT_BINS if value.bins is None and has_bins else value.bins
    decimals = DEFAULT_DECIMALS if value.decimals is None and not has_bins else value.decimals
    kinds = (("bins", bins, int | None), ("open_lower", value.open_lower, bool), ("open_upper", value.open_upper, bool))
    shape = [_checked(kind)(part, f"{name}.{field}") for field, part, kind in kinds]
    added = [] if has_bins and value.decimals is None else [_checked(int)(decimals, f"{name}.decimals")]
    added += [] if value.samples is None else [{"samples": _checked(int)(value.samples, f"{name}.samples")}]
    added += [] if levels is None else [_array(_number)(levels, f"{name}.levels")]
    bounds = [value.lower, value.upper, *([] if value.zero_point is None else [value.zero_point])]
    return [*(_quantity(bound, name) for bound in bounds), shape, *added]


def _checked(expected: Any) -> Convert:
    """Return the check of a field to which a caller in Python may pass any object: values outside JSON are refused."""

    def convert(value: Any, name: str) -> Any:
        """Return the value as JSON has it. Raises Refused(malformed): it is not of the expected type."""
        try:
            plain = json.decode(json.encode(value))
            msgspec.convert(plain, expected)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise malformed_refusal(error, name) from None
        if type(value) in {int, str, bool, tuple, RuleSet, type(None)}:
            return plain
        raise Refused("malformed", name, str(value), f"a {type(value).__name__} is not a JSON value")

    return convert


def _rules(value: Any, name: str) -> Any:
    """Return the name of a preset, or the fields of a rule set that differ from their defaults."""
    if type(value) is dict:
        value = read_rule_set(value, name)
    plain = _checked(str | RuleSet)(value, name)
    if type(value) is not RuleSet:
        return plain
    for field in ("scored_only_levels", "reference_rows", "clusters"):
        if type(several := getattr(value, field)) not in {tuple, list}:
            raise Refused("malformed", f"{name}.{field}", str(several), "not an array")
    changed = {field: part for field, part in plain.items() if part != _DEFAULT_RULES[field]}
    if value.trading is not None:
        if type(value.trading) is not Trading:
            detail = "neither null nor a Trading; the whole rule set may be a dict"
            raise Refused("malformed", f"{name}.trading", str(value.trading), detail)
        trading = plain["trading"].items()
        changed["trading"] = {field: part for field, part in trading if part != _DEFAULT_TRADING[field]}
    return changed


def _attestation(value: Any, name: str) -> dict[str, Any]:
    """Return the fields of an attestation unchanged; its stamps must be dates or instants."""
    if type(value) is not Attestation:
        raise Refused("malformed", name, value, "not an attestation")
    for stamp in ("newest_source", "model_released", "training_cutoff"):
        if (text := getattr(value, stamp)) is not None:
            stamp_span(text, f"{name}.{stamp}")
    for text in ("restricted_list", "note"):
        values.check_text(getattr(value, text), f"{name}.{text}")
    _checked(bool | None)(value.restricted_sources, f"{name}.restricted_sources")
    plain: dict[str, Any] = msgspec.to_builtins(value)
    return plain


def _long_text(value: Any, name: str) -> str:
    return values.check_text(value, name, values.LONG_TEXT_LENGTH)


_BOOK = tuple(key for key in Prices.__struct_fields__ if key not in {"question", "prices"})


def _prices(value: Any, name: str) -> list[Any]:
    if type(value) is not Prices:
        raise Refused("malformed", name, value, "not a question and its prices")
    book = {}
    try:
        prices = {} if value.prices is None else _by_id(value.prices, f"{name}.prices")
        if not value.bids is value.asks is value.bid_sizes is value.ask_sizes is None:
            rows = ((key, getattr(value, key)) for key in _BOOK)
            book = {key: _by_id(row, f"{name}.{key}") for key, row in rows if row is not None}
    except Refused as refused:
        raise refused.about(f"the quote of {value.question!r}") from None
    return [_id(value.question, f"{name}.question"), prices, *([book] if book else [])]


_QUOTES = _array(_prices)


def _bet_with(number: Convert) -> Convert:
    """Return the function for a bet. number: that of its amount."""

    def convert(value: Any, name: str) -> list[Any]:
        if type(value) is not Bet:
            raise Refused("malformed", name, value, "not a bet")
        market = values.check_text(value.market_id, f"{name}.market_id")
        side = values.check_text(value.side, f"{name}.side")
        return [market, side, number(value.amount, f"{name}.amount")]

    return convert


_bet = _bet_with(_number)


def _sale(value: Any, name: str) -> list[str]:
    if type(value) is not Sale:
        raise Refused("malformed", name, value, "not a sale")
    position = _checked(str | int)(value.position_id, f"{name}.position_id")
    return [values.check_text(str(position), f"{name}.position_id"), _number(value.percentage, f"{name}.percentage")]


def _restated_rows(fields: Any) -> list[tuple[str, Convert]]:
    """Return the fields of a forecast in a restatement, with their functions, from those of a submit_forecast."""
    _, rows, *_ = fields[SubmitForecast]
    return [(field, convert) for field, convert, _ in rows if field in RestatedForecast.__struct_fields__]


def _restated(value: Any, name: str, fields: Any) -> list[Any]:
    """Return the canonical form of each field of a forecast, up to the last that is given."""
    if type(value) is not RestatedForecast:
        raise Refused("malformed", name, value, "not a forecast of a restatement")
    content = [
        None if (part := getattr(value, field)) is None and field != "at" else convert(part, f"{name}.{field}")
        for field, convert in _restated_rows(fields)
    ]
    while content[-1] is None:
        content.pop()
    return content


def _spot(value: Any, name: str) -> list[int]:
    if type(value) is not Spot:
        raise Refused("malformed", name, value, "not an instant and its weight")
    return [values.read_instant(value.at, f"{name}.at"), _checked(int)(value.weight, f"{name}.weight")]


def _settings(value: Any, name: str) -> dict[str, str]:
    if type(value) is not dict:
        raise Refused("malformed", name, value, "not an object of names and settings")
    return settings_texts(value, name)


_CALL: dict[str, Convert] = {
    **dict.fromkeys(["input_tokens", "output_tokens", "latency_ms"], _checked(int)),
    "cost": _number,
    "settings": _settings,
    "shown": _array(_id),
}
# The function that checks each field and returns its canonical form, in the order in which faults are reported.
_BY_NAME: dict[str, Convert] = {
    **dict.fromkeys(["contest", "question", "participant", "to", "entrant"], _id),
    "outcomes": _array(_id),
    **dict.fromkeys(["title", "reason", "currency"], values.check_text),
    **dict.fromkeys(["at", "opens_at", "closes_at", "reveals_at", "known_at"], values.read_instant),
    **dict.fromkeys(["probability", "pool", "payable_unit"], _number),
    "value": _quantity,
    **dict.fromkeys(["weight", "hidden_coverage_weight"], _number),
    "probabilities": _by_id,
    "cdf": _numbers,
    "range": _range,
    "kind": _checked(QuestionKind),
    "outcome": _checked(str | None),
    "rules": _rules,
    "level": _checked(Level),
    "bot": _checked(bool),
    **dict.fromkeys(["period", "attempt"], _checked(int)),
    "policy": _checked(CancelPolicy),
    "quoted_at": values.read_instant,
    "amount": _number,
    "prices": _by_id,
    "quotes": _QUOTES,
    "bets": _array(_bet),
    "sells": _array(_sale),
    **dict.fromkeys(["source", "action"], values.check_text),
    **dict.fromkeys(["reasoning", "prompt", "response"], _long_text),
}
# Optional fields that were added later, the newest last, by name or by type and name. They are left out if they are not
# given, so that a command that was recorded before they existed still has the same content when it is sent again.
_ADDED: dict[str, Convert] = {
    "spot_at": values.read_instant,
    "quantiles": _numbers,
    "attestation": _attestation,
    "payouts": _or_fractions(_by_id),
    "starts_at": values.read_instant,
    **dict.fromkeys(["series", "family", "release"], _id),
    "spots": _array(_spot),
    "forecasts": _array(lambda value, name: _restated(value, name, FIELDS)),
    **dict.fromkeys(["add", "remove"], _array(_id)),
    **dict.fromkeys(["grace_ends_at", "until"], values.read_instant),
    **dict.fromkeys(["bids", "asks", "bid_sizes", "ask_sizes"], _by_id),
    **dict.fromkeys(["group", "category"], _id),
    "tags": _array(_id),
    "url": values.check_text,
    "open_question.source": values.check_text,  # `source` of a quote is older
    "call": _call,
    "ordered": _checked(bool),
    "skip_bad": lambda value, name: _checked(bool)(value, name) or None,
    "samples": _numbers,
    "points": points_content,
    "normalized": _checked(Normalizing),
    "record_trade.action": _checked(TradeAction),  # `action` of a decision is a text
    "version": _version,
}
# Where a command came from: fields of every command, which come after its own (see `canonical`).
_PROVENANCE: dict[str, Convert] = {
    "by": _or_none(check_line),
    "reason": _or_none(values.check_text),  # unless it is a field of the command's own, in _BY_NAME
    "evidence": evidence_content,
    **dict.fromkeys(["correlation", "causation"], _without_content(check_line)),
}
_DEFAULT_RULES = json.decode(json.encode(RuleSet(name="")))
_DEFAULT_TRADING = json.decode(json.encode(Trading()))

# The function for a field whose name is in neither table, by the type of the field; a text may be an instant by name.
_BY_TYPE: dict[Any, Convert] = {
    Any: _number,
    str: values.check_text,
    bool: _checked(bool),
    int: _checked(int),
    dict[str, Any]: _by_id,
    tuple[Any, ...]: _numbers,
}


def _fields_of(kind: type[Command]) -> tuple[str | int | None, list[tuple[str, Convert, bool]], int]:
    """Return a command's type; its fields, each with its function and if it is optional; how many are always there.

    Fields that are in neither table come after those, in the order of their declaration.
    """
    fields = {field.name: field.default is None for field in structs.fields(kind) if field.name != "id"}
    tag = kind.__struct_config__.tag
    said = {name: convert for name, convert in _PROVENANCE.items() if fields[name]}
    added = {key.removeprefix(f"{tag}."): convert for key, convert in _ADDED.items()}
    lasting = {name: convert for name, convert in _BY_NAME.items() if name not in added | said}
    by_name = {name: convert for name, convert in (lasting | added).items() if name in fields}
    by_type = {name: _convert_by_type(kind, name) for name in fields if name not in by_name | said}
    rows = [(name, convert, fields[name]) for name, convert in (by_name | by_type | said).items()]
    return tag, rows, len(fields.keys() & lasting.keys())


def _convert_by_type(kind: type[Command], name: str) -> Convert:
    """Return the function for the type of a field. Raises TypeError if a field of that type must be in _BY_NAME."""
    hint = get_type_hints(kind)[name]
    parts = [part for part in get_args(hint) if part is not NoneType]
    [plain, *others] = parts if NoneType in get_args(hint) else [hint]
    if plain is str and values.is_instant(name):
        return values.read_instant
    if plain not in _BY_TYPE or others:
        raise TypeError(f"{kind.__name__}.{name}: add the field to _BY_NAME; there is no function for the type {hint}")
    return _BY_TYPE[plain]


FIELDS: dict[type, Any] = {kind: _fields_of(kind) for kind in get_args(AnyCommand)}


# --- the normal form


def _units(unit: int) -> Convert:
    """Return the function that brings a number to 1/unit; one that is out of range, which is refused later, is text."""

    def convert(value: Any, name: str) -> int | str:
        """Return the number in whole units; one that is out of range as its shortest text."""
        try:
            return values.read_fixed(value, unit, name, -_LARGEST_UNITS, _LARGEST_UNITS)
        except Refused:
            return shortest_text(values.read_decimal(value, name))

    return convert


def _units_of_each(unit: int) -> Convert:
    convert = _units(unit)

    def convert_items(value: Any, name: str) -> list[int | str]:
        """Return the numbers in whole units; if they are no measures, each as `convert` returns it."""
        if type(value) is not tuple and type(value) is not list:
            raise Refused("malformed", name, value, "not an array")
        try:
            return list(values.read_measures(value, unit, name))
        except Refused:
            return [convert(item, name) for item in value]

    return convert_items


def _units_by_id(unit: int) -> Convert:
    convert = _units(unit)

    def convert_items(value: Any, name: str) -> dict[str, int | str]:
        if type(value) is not dict:
            raise Refused("malformed", name, value, "not an object of ids and numbers")
        return {_id(outcome, name): convert(number, name) for outcome, number in value.items()}

    return convert_items


def _measure(value: Any, name: str) -> str:
    """Return `_quantity` of a number as it is recorded: below 1e-60 it is 0."""
    written = _quantity(value, name)
    try:
        return shortest_text(values.read_measure(written, name))
    except Refused:  # out of range
        return written


def _normal_range(value: Any, name: str) -> list[Any]:
    parts = _range(value, name)
    if value.levels is not None:
        parts[-1] = _units_of_each(values.PROBABILITY)(value.levels, f"{name}.levels")
    bounds = [value.lower, value.upper, *([] if value.zero_point is None else [value.zero_point])]
    return [*(_measure(bound, name) for bound in bounds), *parts[len(bounds) :]]


_SIDES = {
    side: _units_by_id(values.MONEY if side in {"bid_sizes", "ask_sizes"} else values.PROBABILITY)
    for side in ("prices", *_BOOK)
}


def _normal_prices(value: Any, name: str) -> list[Any]:
    """Return a question, its prices that are not the means of its bids and asks, and its bids, asks and sizes."""
    if type(value) is not Prices:
        raise Refused("malformed", name, value, "not a question and its prices")
    sides = {
        side: convert(given, f"{name}.{side}")
        for side, convert in _SIDES.items()
        if (given := getattr(value, side)) is not None
    }
    prices, bids, asks = sides.pop("prices", {}), sides.get("bids", {}), sides.get("asks", {})
    prices = {key: price for key, price in prices.items() if price != mean_price(bids.get(key), asks.get(key))}
    return [_id(value.question, f"{name}.question"), prices, {side: units for side, units in sides.items() if units}]


_NORMAL_QUOTES = prices_together(_array(_normal_prices), _id)
SKIPPING = {_QUOTES: _array(or_as_given(_prices)), _NORMAL_QUOTES: _array(or_as_given(_normal_prices))}


def _normal_sale(value: Any, name: str) -> list[Any]:
    return [_sale(value, name)[0], _units(PERCENT)(value.percentage, f"{name}.percentage")]


def _normal_call(value: Any, name: str) -> dict[str, Any]:
    call = _call(value, name)
    return call | ({} if "cost" not in call else {"cost": _units(values.MONEY)(value.cost, f"{name}.cost")})


def _action(value: Any, name: str) -> str:
    text = values.check_text(value, name)
    return text.upper() if text.isascii() else text


_LARGEST_UNITS = 10**60
# Fields whose normal form differs from the canonical one, by name.
_NORMAL_BY_NAME: dict[str, Convert] = {
    **dict.fromkeys(["probability"], _units(values.PROBABILITY)),
    "probabilities": _units_by_id(values.PROBABILITY),
    "payouts": _or_fractions(_units_by_id(values.PROBABILITY)),
    "cdf": _units_of_each(values.CUMULATIVE),
    **dict.fromkeys(["pool", "fee"], _or_none(_units(values.MONEY))),
    **dict.fromkeys(["payable_unit", "amount", "shares"], _units(values.MONEY)),
    **dict.fromkeys(["weight", "hidden_coverage_weight"], _units(values.WEIGHT)),
    "value": _measure,
    "range": _normal_range,
    "points": normal_points,
    "forecasts": _or_none(_array(lambda value, name: _restated(value, name, NORMAL_FIELDS))),
    "quotes": _NORMAL_QUOTES,
    "bets": _or_none(_array(_bet_with(_units(values.MONEY)))),
    "sells": _or_none(_array(_normal_sale)),
    "action": _action,
    "record_trade.action": _checked(TradeAction),
    "call": _normal_call,
    **dict.fromkeys(["add", "remove", "tags"], _or_none(_array(_id))),
    **dict.fromkeys(["url", "source"], _or_none(values.check_text)),
    "amend_question.tags": _array(_id),  # an empty one takes away what is there
    **dict.fromkeys(["amend_question.url", "amend_question.source"], values.check_text),
}


def _normal_of(tag: Any, name: str, convert: Convert) -> Convert:
    return _NORMAL_BY_NAME.get(f"{tag}.{name}") or _NORMAL_BY_NAME.get(name, convert)


NORMAL_FIELDS: dict[type, Any] = {
    kind: (tag, [(name, _normal_of(tag, name, convert), optional) for name, convert, optional in fields])
    for kind, (tag, fields, _) in FIELDS.items()
}


# --- faults


def faults(command: AnyCommand) -> Iterator[Refused]:
    """Yield every fault in how a command is written, field by field and item by item."""
    for field, convert, optional in FIELDS[type(command)][1]:
        value = getattr(command, field)
        if value is not None or not optional:
            yield from _faults_of(value, field, convert)


def _faults_of(value: Any, field: str, convert: Convert) -> Iterator[Refused]:
    for convert_part, part in [*_parts(value, convert), (convert, value)]:
        try:
            convert_part(part, field)
        except Refused as refused:
            yield refused


def _parts(value: Any, convert: Convert) -> list[tuple[Convert, Any]]:
    """Return the parts of a value, each with the function that checks it; several of them can be faulty."""
    if type(value) is dict and convert is not _rules:
        return [(convert, {key: item}) for key, item in value.items()]
    if type(value) in {tuple, list}:
        return [(convert, [item]) for item in value] + [part for item in value for part in _parts_of_item(item)]
    if type(value) is Range:
        levels: Any = value.levels if type(value.levels) in {tuple, list} else ()
        bounds = [value.lower, value.upper, *([] if value.zero_point is None else [value.zero_point])]
        return [*((_quantity, bound) for bound in bounds), *((_number, level) for level in levels)]
    if type(value) in {Attestation, ModelCall}:
        return [(convert, type(value)(**{name: getattr(value, name)})) for name in value.__struct_fields__]
    return checks_of_points(value) if type(value) is Points else _parts_of_item(value)


def _parts_of_item(item: Any) -> list[tuple[Convert, Any]]:
    """Return the parts of an item of an array, if it has any."""
    if type(item) is Evidence:
        texts = [(name, getattr(item, name)) for name in PARTS]
        said = [Evidence(**{name: text}) for name, text in texts if type(text) is not str or text]
        return [(evidence_content, piece) for piece in said]
    if type(item) is Prices:
        rows = (item.prices, item.bids, item.asks, item.bid_sizes, item.ask_sizes)
        return [(_id, item.question), *(part for row in rows if type(row) is dict for part in _parts(row, _by_id))]
    if type(item) is Bet:
        return [(values.check_text, item.market_id), (values.check_text, item.side), (_number, item.amount)]
    if type(item) is Spot:
        return [(values.read_instant, item.at), (_checked(int), item.weight)]
    if type(item) is RestatedForecast:
        given = [(convert, getattr(item, field)) for field, convert in _restated_rows(FIELDS)]
        return [
            part
            for convert, value in given
            if value is not None
            for part in (*_parts(value, convert), (convert, value))
        ]
    return [(_number, item.percentage)] if type(item) is Sale else []
