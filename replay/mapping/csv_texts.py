"""The text of a cell: a match of a pattern, a list of items, or an instant in one of many forms."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import UTC_INSTANT, read_instant

LONGEST_CELL = 1_000  # characters of a cell that a pattern reads
MOST_WAYS = 5_000_000  # in which a pattern may be tried on such a cell
_TOKEN = re.compile(
    r"(?P<repeat>([*+?]|\{(?P<least>\d*)(?P<to>,(?P<most>\d*))?(?<!\{)\})[?+]?)"
    r"|(?P<other>\(\?(?!:)|\\[1-9])"
    r"|(?P<open>\((\?:)?)|(?P<close>\))|(?P<either>\|)"
    r"|\[\^?\]?(\\.|[^\]\\])*\]|\\.|.",
    re.ASCII | re.DOTALL,
)


def read_pattern(text: str, path: str) -> re.Pattern[str]:
    r"""Return a pattern of a map. path: where it is in the map.

    Refuses: bad_map (no regular expression, it has a backreference or `(?` without a colon, or it can be tried on a
    cell in too many ways, as `(\d+)*` can).

    >>> read_pattern(r"(Q\d+) .*", "where.Name").fullmatch("Q08 Rain?")[1]
    'Q08'
    """
    try:
        pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise Refused("bad_map", path, text, f"no regular expression of Python: {error}") from None
    if any(token["other"] for token in _TOKEN.finditer(text)):
        raise Refused("bad_map", path, text, "a pattern has no backreferences, and no group with (? but (?:")
    if _ways(text) > MOST_WAYS:
        detail = f"there are more than {MOST_WAYS:,} ways to try it on a cell of {LONGEST_CELL:,} characters"
        remedy = r"bound its repeats, such as \d{1,4} for \d+, and repeat no group that has a repeat or a choice"
        raise Refused("bad_map", path, text, detail, remedy=remedy)
    return pattern


def whole_match(pattern: re.Pattern[str], text: str, field: str) -> re.Match[str] | None:
    """Return the match of a pattern with the whole of a cell. Refuses: bad_csv (a cell that is too long)."""
    if len(text) > LONGEST_CELL:
        detail = f"the cell has {len(text):,} characters; a pattern reads cells of up to {LONGEST_CELL:,}"
        raise Refused("bad_csv", field, text, detail, remedy="shorten the cell, or read it without a pattern")
    return pattern.fullmatch(text)


def _ways(text: str) -> int:
    r"""Return a bound of the ways in which the choices and repeats of a pattern can be tried on a cell.

    >>> _ways(r"(yes|no)\d{1,3}"), _ways(".*"), _ways(".*(a+)*") > MOST_WAYS
    (6, 1001, True)
    """
    outer = list[tuple[int, int]]()
    choices, before, last = 0, 1, 1  # of the alternatives before, of the items before the last, of the last
    for token in _TOKEN.finditer(text):
        if token["repeat"]:
            last = _repeated(last, token)
        elif token["open"]:
            outer.append((choices, before * last))
            choices, before, last = 0, 1, 1
        elif token["close"]:
            last, (choices, before) = choices + before * last, outer.pop()
        elif token["either"]:
            choices, before, last = choices + before * last, 1, 1
        else:
            before, last = before * last, 1
    return choices + before * last


def _repeated(ways: int, repeat: re.Match[str]) -> int:
    """Return the ways of a repeat of an item that has so many ways; more than the most are not counted."""
    least, most = {"*": (0, LONGEST_CELL), "+": (1, LONGEST_CELL), "?": (0, 1)}.get(repeat[0][0], (0, 0))
    if repeat[0][0] == "{":
        least = min(int(repeat["least"] or 0), LONGEST_CELL)
        most = least if repeat["to"] is None else min(int(repeat["most"] or LONGEST_CELL), LONGEST_CELL)
    if ways == 1:
        return max(most - least, 0) + 1
    total = 0
    for times in range(least, most + 1):
        total += ways**times
        if total > MOST_WAYS:
            break
    return total


_CLOSING = {"[": "]", "(": ")", "{": "}"}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"} | {mark: mark for mark in "\"'\\/"}
_REMEDY = "correct the cell, or the field's `split`, `json` or `names` in the map"


def split_list(text: str, separator: str, field: str) -> list[str]:
    r"""Return the items of a list: without the brackets around it, the spaces around each, and its quotes.

    A separator between quotes is part of the item; so a list as Python or JSON writes it is read whole.
    Refuses: bad_csv (a bracket or a quote is not closed, a list is in the list, or something follows a quote).

    >>> split_list("['red, dark', \"Bo's\", blue]", ",", "outcomes")
    ['red, dark', "Bo's", 'blue']
    """
    try:
        return [*_items(_inner(text), separator)]
    except ValueError as error:
        raise Refused("bad_csv", field, text, str(error), remedy=_REMEDY) from None


def read_json(text: str, field: str) -> Any:
    """Return a JSON value, its numbers as text. Refuses: bad_csv (invalid, or a key that is there twice).

    >>> read_json('{"red": 0.10, "blue": 0.9}', "probabilities")
    {'red': '0.10', 'blue': '0.9'}
    """
    try:
        value = json.loads(
            text, parse_float=str, parse_int=str, parse_constant=_no_number, object_pairs_hook=_without_repeats
        )
        json.dumps(value, ensure_ascii=False).encode()  # raises for an escape that is half a character
        return value
    except (ValueError, RecursionError) as error:
        raise Refused("bad_csv", field, text, f"not JSON: {error}", remedy=_REMEDY) from None


def with_names(items: Any, names: Any, field: str, text: str) -> dict[str, Any]:
    """Return the items of a cell by name. Refuses: bad_csv (other numbers of them, or a name is there twice)."""
    fault = "a name is there twice"
    if not isinstance(items, list) or not isinstance(names, list):
        fault = "`names` needs a list of items, and one of names"
    elif len(items) != len(names):
        fault = f"the cell has {len(items)} items, and there are {len(names)} names"
    elif len({*map(str, names)}) == len(names):
        return dict(zip(map(str, names), items, strict=True))
    raise Refused("bad_csv", field, text, fault, remedy=_REMEDY)


def _items(inner: str, separator: str) -> Iterator[str]:
    start = 0
    while start <= len(inner) and inner:
        item, end = _next_item(inner, start, separator)
        yield item
        start = end + len(separator)


def _inner(text: str) -> str:
    """Return the text between the brackets around a list, if there are any. Raises ValueError."""
    if not text or text[0] not in _CLOSING:
        return text
    closes = text[-1] == _CLOSING[text[0]]
    if closes and _is_around(text):
        return text[1:-1].strip()
    if text[0] != "[":
        return text
    if not closes:
        raise ValueError("the list begins with [ and does not end with ]")
    if "'" not in text and '"' not in text:
        raise ValueError("the cell has several lists")
    return text[1:-1].strip()  # a quoted item has a bracket


def _is_around(text: str) -> bool:
    """Return whether the bracket that a text begins with is closed by its last character."""
    depth, opening, closing = 0, text[0], _CLOSING[text[0]]
    for index, mark in enumerate(text, 1):
        depth += (mark == opening) - (mark == closing)
        if not depth:
            return index == len(text)
    return False


def _next_item(inner: str, start: int, separator: str) -> tuple[str, int]:
    """Return the item that begins at an index, and the index of the separator after it. Raises ValueError."""
    while inner[start : start + 1].isspace() and not inner.startswith(separator, start):
        start += 1
    quote = inner[start : start + 1]
    if quote not in {"'", '"'}:
        end = inner.find(separator, start)
        end = len(inner) if end < 0 else end
        return inner[start:end].strip(), end
    close = _end_of_quote(inner, start)
    if close is None:
        raise ValueError("a quote in the list is not closed")
    end = close + 1
    while inner[end : end + 1].isspace() and not inner.startswith(separator, end):
        end += 1
    if end < len(inner) and not inner.startswith(separator, end):
        raise ValueError(f"after a quote in the list stands no {separator!r}")
    return _unescaped(inner[start + 1 : close]), end


def _end_of_quote(text: str, start: int) -> int | None:
    """Return the index of the quote that closes the one at `start`."""
    index = start + 1
    while index < len(text) and text[index] != text[start]:
        index += 2 if text[index] == "\\" else 1
    return index if index < len(text) else None


def _unescaped(text: str) -> str:
    """Return the text that Python or JSON writes with these backslashes. Raises ValueError."""

    def replaced(escape: re.Match[str]) -> str:
        """Return the character that an escape stands for. Raises ValueError: there is no such escape."""
        code = escape[1]
        if code in _ESCAPED:
            return _ESCAPED[code]
        if len(code) == 1 or int(code[1:], 16) > 0x10FFFF:
            raise ValueError(f"\\{code[:1]} is no escape in a quoted item")
        return chr(int(code[1:], 16))

    if "\\" not in text:
        return text
    try:  # JSON writes some characters as two escapes
        return _ESCAPE.sub(replaced, text).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("an escape in a quoted item is half a character") from None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is there twice")
    return made


_OFFSET = re.compile(r"Z|[+-][0-2][0-9]:[0-5][0-9]")
_ENDING = re.compile(r"(?P<clock>:[0-9]{2}(?:\.[0-9]+)?)\s?(?P<zone>Z|z|UTC|[+-][0-2][0-9](?::?[0-5][0-9])?)\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANTS = re.compile(f"(?:{UTC_INSTANT},)*", re.ASCII)
_UNIX = {"unix": 10**6, "unix ms": 10**3}  # format -> how many microseconds a unit of it has
_EPOCH, _COUNT = datetime(1970, 1, 1, tzinfo=UTC), re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,30})?", re.ASCII)
_remembered = lru_cache(maxsize=4_096)  # many rows of a table have the same day
_HOURS = re.compile(r"%-?[HIcXsT]")  # directives of strptime that give a time of day


class InstantFormat(NamedTuple):
    """How a file writes instants.

    form: of strptime; `unix` for seconds since 1970, `unix ms` for milliseconds. offset: of instants without one; or
    zone: the time zone of their clock, by its IANA name. end_of_day: of dates.
    """

    form: str
    offset: str
    zone: str = ""
    end_of_day: bool = False


def instant_reader(written: InstantFormat, field: str) -> Callable[[str], str]:
    """Return the function that rewrites an instant as RFC 3339; one without an offset is refused later.

    A date is the beginning of its day or, with `end_of_day`, the beginning of the next. Refuses: bad_map.

    >>> instant_reader(InstantFormat("", "+01:00", end_of_day=True), "closes_at")("2026-02-28")
    '2026-03-01T00:00:00+01:00'
    """
    form, offset, zone, end_of_day = written
    placed = _placing(offset, zone, field)
    if not form:
        return _remembered(lambda text: _rewritten(text, field, placed, end_of_day))
    if end_of_day and (form in _UNIX or _HOURS.search(form)):
        raise Refused("bad_map", field, form, "end_of_day is of dates; this format has a time of day")
    if form in _UNIX:
        return lambda text: _since_epoch(text, field, form)
    _check_format(form, field)
    return _remembered(lambda text: _parsed(text, field, form, placed, end_of_day))


def are_rfc_3339(texts: Sequence[str], form: str) -> bool:
    """Return whether instants in this form, of several cells, are all RFC 3339 in UTC, and so need no rewriting.

    >>> are_rfc_3339(["2026-02-28T00:00:00Z"], ""), are_rfc_3339(["2026-02-28T00:00:00Z", "2026-02-28"], "")
    (True, False)
    """
    joined = ",".join([*texts, ""])
    return not form and joined.count(",") == len(texts) and _INSTANTS.fullmatch(joined) is not None


def _placing(offset: str, zone: str, field: str) -> Callable[[str], str]:
    """Return the function that makes an instant of a local time. Refuses: bad_map."""
    if offset and zone:
        raise Refused("bad_map", f"{field}.zone".lstrip("."), zone, "give offset or zone, not both")
    if offset and not _OFFSET.fullmatch(offset):
        raise Refused("bad_map", f"{field}.offset".lstrip("."), offset, "write an offset as Z, +01:00 or -05:30")
    if not zone:
        return lambda text: text + offset
    try:
        clock = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        detail = "the database of time zones on this machine has no zone of this name"
        remedy = "write a name such as Europe/Berlin; if there is no database, run pip install tzdata"
        raise Refused("bad_map", f"{field}.zone".lstrip("."), zone, detail, remedy=remedy) from None
    return lambda text: _by_clock(text, field, clock)


def _by_clock(text: str, field: str, clock: ZoneInfo) -> str:
    """Return the instant, in UTC, at which the clocks of a zone show a time.

    Refuses: bad_instant (not a time; they show it twice, or never, because they are set back or forward).
    """
    local = _EPOCH + timedelta(microseconds=read_instant(f"{text}Z", field))
    try:
        first, second = (local.replace(tzinfo=clock, fold=fold).astimezone(UTC) for fold in (0, 1))
    except OverflowError:
        raise Refused("bad_instant", field, text) from None
    if first != second:
        detail = f"clocks in {clock.key} show this time {'twice' if first < second else 'never'}, as they change"
        remedy = "write the offset behind the time, such as +01:00; a format of strptime reads it by %z"
        raise Refused("bad_instant", field, text, detail, remedy=remedy)
    return first.isoformat().replace("+00:00", "Z")


def _since_epoch(text: str, field: str, form: str) -> str:
    """Return a count of seconds or milliseconds since 1970 as RFC 3339, rounded half-even to a microsecond."""
    try:
        if not _COUNT.fullmatch(text):
            raise ValueError
        micros = int((Decimal(text) * _UNIX[form]).to_integral_value())
        return (_EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        raise _not_written(text, field, form) from None


def _not_written(text: str, field: str, form: str) -> Refused:
    remedy = "correct the cell, or `instant` in the map"
    return Refused("bad_instant", field, text, f"not in the format {form}", remedy=remedy)


def _check_format(form: str, field: str) -> None:
    """Refuses: bad_map (strptime knows no such directive, or takes it only once; a day without a year)."""
    found = {*re.findall("%(.)", form)}
    try:
        if "d" in found and found.isdisjoint("YyGcx"):  # the year is 1900 or, in later versions of Python, another
            raise ValueError("it has a day, but no year")
        datetime.strptime("", form)
    except (re.error, ValueError) as error:
        if not str(error).startswith("time data"):  # which says that the empty text is not in the format
            detail = f"not a format of strptime: {error}"
            raise Refused(
                "bad_map",
                f"{field}.instant".lstrip("."),
                form,
                detail,
                remedy="write each directive once, as in %d/%m/%Y",
            ) from None


def _rewritten(text: str, field: str, placed: Callable[[str], str], end_of_day: bool) -> str:
    if _DATE.fullmatch(text):
        return placed(_day(text, field, end_of_day))
    ending = _ENDING.search(text)
    if ending is None:
        return placed(text)
    zone = ending["zone"].upper()
    return text[: ending.end("clock")] + ("Z" if zone in {"Z", "UTC"} else f"{zone[:3]}:{zone[3:].lstrip(':') or '00'}")


def _day(text: str, field: str, end_of_day: bool) -> str:
    """Return the beginning of a day or of the next, without an offset."""
    try:
        return f"{date.fromisoformat(text) + timedelta(days=end_of_day)}T00:00:00"
    except (ValueError, OverflowError):
        raise Refused("bad_instant", field, text, "there is no such day") from None


def _parsed(text: str, field: str, form: str, placed: Callable[[str], str], end_of_day: bool) -> str:
    try:
        parsed = datetime.strptime(text, form) + timedelta(days=end_of_day)
    except (ValueError, OverflowError):
        raise _not_written(text, field, form) from None
    return parsed.isoformat() if parsed.tzinfo else placed(parsed.isoformat())
