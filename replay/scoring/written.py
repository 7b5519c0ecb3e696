"""How a column writes instants, numbers and answers, as far as its cells leave no doubt."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import WRITTEN_NUMBER, read_instant
from forecast_ledger.replay.mapping.csv_cells import CellFormat, field_value, number_of
from forecast_ledger.replay.mapping.csv_texts import InstantFormat, instant_reader
from forecast_ledger.replay.scoring.options import Ambiguous, Options

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_CLOCK = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
_LOCAL = re.compile(_CLOCK, re.ASCII)
_WHOLE = re.compile(rf"{_CLOCK}\s?(Z|z|UTC|[+-][0-2][0-9](:?[0-5][0-9])?)", re.ASCII)
_SECONDS, _MILLISECONDS = re.compile(r"[0-9]{9,10}(\.[0-9]+)?", re.ASCII), re.compile(r"[0-9]{12,13}", re.ASCII)
_OFFSET = re.compile(r"Z|UTC|[+-][0-9]{2}:[0-9]{2}")
_NUMERIC = [f"{first}{mark}{second}{mark}{year}" for mark in "/-." for first, second in (["%d", "%m"], ["%m", "%d"])
            for year in ("%Y", "%y")]  # fmt: skip
_NAMED = ["%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%d-%b-%Y", "%d-%b-%y"]
_DATES = ["%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", *_NUMERIC, *_NAMED]
_TIMES = [" %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M", ", %H:%M", ", %H:%M:%S"]
_ZONES = ["", "%z", " %z", " UTC"]
_HAS_CLOCK = re.compile(r"%[HI]")
_PERCENT = re.compile(r"%|(?<![a-z])(percent|pct)(?![a-z])", re.IGNORECASE)  # in the name of a column
_PLAIN = re.compile(WRITTEN_NUMBER, re.ASCII)
_USUAL = CellFormat("")
_COMMA = re.compile(r"[+-]?([0-9]+(,[0-9]*)?|,[0-9]+)", re.ASCII)
_SHORT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", re.ASCII)  # .8 is 0.8, and 8. is 8

_MOST = 3  # texts that a refusal names

ABSENT = {"", "na", "n/a", "nan", "null", "none", "<na>", "nat", "-", "."}
_YES_OR_NO = (  # that one table has beside each other; those of another only in other cells or copies
    (("yes",), ("no",)),
    (("true",), ("false",)),
    (("1", "1.0", "1.00"), ("0", "0.0", "0.00")),
    (("y",), ("n",)),
    (("t",), ("f",)),
)
_MEANINGS = {
    "yes": {word for words, _ in _YES_OR_NO for word in words},
    "no": {word for _, words in _YES_OR_NO for word in words},
    "none": {"open", "unresolved", "pending", "tbd", "unknown", "?"} | ABSENT,
    "void": {"void", "voided", "annulled", "ambiguous", "cancelled", "canceled"},
}


class Instants(NamedTuple):
    """How the instants of a column are written: the keys of a map's field, and words. day: they are dates alone."""

    keys: dict[str, Any]
    words: str
    day: bool

    def read(self, text: str) -> int | None:
        """Return an instant in µs; None if it is refused, which the map does with its line."""
        written = InstantFormat(self.keys.get("instant", ""), self.keys.get("offset", ""), self.keys.get("zone", ""))
        with suppress(Refused):
            return read_instant(instant_reader(written, "at")(text))
        return None


class Numbers(NamedTuple):
    """How the numbers of a column are written: the keys of a map's field, and words."""

    keys: dict[str, Any]
    words: str


def is_absent(text: str) -> bool:
    """Return whether a cell says that there is no value.

    >>> is_absent("NaN"), is_absent("0")
    (True, False)
    """
    return text.lower() in ABSENT


def instants_of(column: str, texts: Collection[str], options: Options) -> Instants:
    """Return how a column writes instants. texts: those of its cells that are not empty, each once.

    Refuses: ambiguous (day or month first; no offset of a time of day), bad_instant (no format known here).
    """
    form = options.instant or _form(column, texts, options)
    local = [text for text in texts if not form and _LOCAL.fullmatch(text)]
    has_clock = bool(local) or bool(_HAS_CLOCK.search(form))
    has_offset = form in {"unix", "unix ms"} or "%z" in form or (not form and all(map(_WHOLE.fullmatch, texts)))
    keys: dict[str, Any] = {"instant": form} if form else {}
    shown = {"": "", "unix": " in seconds since 1970", "unix ms": " in milliseconds since 1970"}.get(
        form, f" as {form}"
    )
    if has_offset:
        return Instants(keys, f"instants{shown}", day=False)
    fixed = form.endswith(" UTC")
    if has_clock and not options.zone and not fixed:
        sample = min(local or texts)
        detail = f"times such as {sample!r} do not say their time zone"
        remedy = "give --zone UTC, or the zone of that clock, such as --zone Europe/Berlin"
        raise Ambiguous(column, None, detail, remedy=remedy, trial=options._replace(zone="UTC"))
    zone = "UTC" if fixed else options.zone or "UTC"
    keys |= {"offset": "Z" if zone == "UTC" else zone} if _OFFSET.fullmatch(zone) else {"zone": zone}
    instant_reader(InstantFormat("", keys.get("offset", ""), keys.get("zone", "")), "zone")  # refuses an unknown zone
    days = "days and instants" if not form and any(map(_WHOLE.fullmatch, texts)) else "days"
    return Instants(keys, f"{'times' if has_clock else days}{shown}, in {zone}", day=not has_clock)


def _form(column: str, texts: Collection[str], options: Options) -> str:
    """Return the format of strptime in which all texts are, "" for RFC 3339. Refuses: ambiguous, bad_instant."""
    if all(map(_is_usual, texts)):
        return ""
    for name, pattern in {"unix": _SECONDS, "unix ms": _MILLISECONDS}.items():
        if all(map(pattern.fullmatch, texts)):
            return name
    fitting = [form for form in _forms(next(iter(texts))) if _fits(form, texts)]
    if options.day_first is not None:
        fitting = [form for form in fitting if _has_day_first(form) in {None, options.day_first}]
    if not fitting:
        detail = "not in the format of the others, or in none known here"
        remedy = "correct the cell, or give --instant FORMAT, as in strptime, such as --instant '%d.%m.%Y %H:%M'"
        raise Refused("bad_instant", column, _odd(texts), detail, remedy=remedy)
    if len({*map(_has_day_first, fitting)} - {None}) > 1:
        detail = f"dates such as {min(texts)!r} can be read with the day or with the month first"
        trial = options._replace(day_first=True)
        raise Ambiguous(column, None, detail, remedy="give --day-first or --month-first", trial=trial)
    return fitting[0]


def _is_usual(text: str) -> bool:
    return bool(_DAY.fullmatch(text) or _LOCAL.fullmatch(text) or _WHOLE.fullmatch(text))


def _odd(texts: Collection[str]) -> str:
    """Return the first text written unlike the first of all; the first of all if it is in none of the formats."""
    first = next(iter(texts))
    fitting = _forms(first)
    if _is_usual(first):
        return next(text for text in texts if not _is_usual(text))
    return next((text for text in texts if not any(_fits(form, [text]) for form in fitting)), first)


def _has_day_first(form: str) -> bool | None:
    """Return whether a format has the day before the month, both as numbers; None if it has a year or a name first."""
    return form.find("%d") < form.find("%m") if "%m" in form and not form.startswith("%Y") else None


def _forms(text: str) -> list[str]:
    """Return the formats of `strptime` in which a text is, of those known here.

    `strptime` compiles each new format, and there are hundreds; so only those whose beginning fits are tried.
    """
    dates = [date for date in _DATES if _begins(date, text)]
    times = [form for form in map("".join, product(dates, _TIMES)) if _begins(form, text)]
    return [form for form in [*dates, *map("".join, product(times, _ZONES))] if _fits(form, [text])]


def _begins(form: str, text: str) -> bool:
    return any(_fits(form, [text[:end]]) for end in range(1, len(text) + 1))


def _fits(form: str, texts: Iterable[str]) -> bool:
    try:
        for text in texts:
            datetime.strptime(text, form)
    except (ValueError, OverflowError):
        return False
    return True


def numbers_of(column: str, texts: Collection[str], options: Options) -> Numbers:
    """Return how a column writes numbers: with a point, or a comma, and perhaps a percent sign.

    Refuses: bad_number (none of these).

    >>> numbers_of("p", ["0,25", "1"], Options())
    Numbers(keys={'number': '1234,5'}, words='with a decimal comma')
    """
    if options.number:
        return Numbers({"number": options.number}, f"written as {options.number}")
    bare = [text.removesuffix("%").rstrip() for text in texts]
    if all(map(_PLAIN.fullmatch, bare)):
        return Numbers({}, "")
    if all(map(_SHORT.fullmatch, bare)):
        return Numbers({"number": "1234.5"}, ".8 as 0.8, and 8. as 8")
    if all(map(_COMMA.fullmatch, bare)):
        return Numbers({"number": "1234,5"}, "with a decimal comma")
    usual = max((_PLAIN, _COMMA), key=lambda pattern: sum(bool(pattern.fullmatch(each)) for each in bare))
    odd = next(text for text, each in zip(texts, bare, strict=True) if not usual.fullmatch(each))
    remedy = "correct the cell, or give --number with 1234.5 as the table writes it, such as --number 1.234,5"
    raise Refused("bad_number", column, odd, "not a number in a form known here", remedy=remedy)


def probabilities_of(column: str, texts: Collection[str], options: Options) -> Numbers:
    """Return how a column writes probabilities: as shares of 1, or in percent.

    Refuses: ambiguous (numbers above 1 without a sign, or only some with it), bad_number.

    >>> probabilities_of("p", ["35%", "100 %"], Options()).keys, probabilities_of("p (%)", ["35"], Options()).keys
    ({'percent': True}, {'percent': True})
    """
    written = numbers_of(column, texts, options)
    signed = [text for text in texts if text.endswith("%")]
    if options.percent or len(signed) == len(texts):
        return Numbers({**written.keys, "percent": True}, ", ".join(filter(None, ("in percent", written.words))))
    if signed:
        other = next(text for text in texts if not text.endswith("%"))
        detail = f"some numbers have a percent sign, such as {signed[0]!r}, and some have none, such as {other!r}"
        trial = options._replace(percent=True)
        raise Ambiguous(column, other, detail, remedy="give --percent if all are in percent", trial=trial)
    high = next((text for text in texts if value_of(text, written) > 1), None)
    if high is not None and _PERCENT.search(column):
        return Numbers({**written.keys, "percent": True}, ", ".join(filter(None, ("in percent", written.words))))
    if high is not None:
        detail = "more than 1: the numbers may be in percent, or this one is wrong"
        remedy = "give --percent, or correct the cell; a forecast of a number has a row, or a column, for each quantile"
        raise Ambiguous(column, high, detail, remedy=remedy, trial=options._replace(percent=True))
    return Numbers(written.keys, ", ".join(filter(None, ("from 0 to 1", written.words))))


def value_of(text: str, written: Numbers) -> Decimal:
    """Return the number that a cell has, as a map with the same keys reads it. Refuses: bad_number.

    >>> value_of("62,5%", Numbers({"number": "1234,5", "percent": True}, ""))
    Decimal('0.625')
    """
    return number_of(str(field_value({"from": "{c}", **written.keys}, "value", _USUAL).read({"c": text})), "value")


def meanings_of(column: str, texts: Collection[str], options: Options) -> dict[str, str]:
    """Return what each text of a yes-or-no answer means: yes, no, none (not known) or void. Refuses: ambiguous.

    >>> meanings_of("outcome", ["Yes", "0.0", ""], Options())
    {'Yes': 'yes', '0.0': 'no', '': 'none'}
    """
    meanings = {text: options.answers.get(text) or _meaning(text) for text in texts}
    odd = [text for text, meaning in meanings.items() if not meaning]
    if odd:
        some = f"{', '.join(map(repr, odd[:_MOST]))}{f' and {len(odd) - _MOST:,} more' * (len(odd) > _MOST)}"
        detail = f"{some} may be yes, no, no answer yet (none), or an answer that does not count (void)"
        given = " ".join(f'--answer "{text}=MEANING"' for text in odd[:_MOST])
        remedy = f"give {given}, each with yes, no, none or void"
        trial = options._replace(answers={**options.answers, **dict.fromkeys(odd, "none")})
        raise Ambiguous(column, odd[0], detail, remedy=remedy, trial=trial)
    return meanings


def answers_alike(meanings: Mapping[str, str]) -> dict[str, str]:
    """Return the texts that mean yes or no, and those that a later copy may have beside them or for them.

    meanings: of the texts of a table, as `meanings_of` returns them. If none is yes or no, words and digits may come.

    >>> answers_alike({"True": "yes", "": "none"})
    {'True': 'yes', 'False': 'no'}
    >>> answers_alike({"0": "no"})
    {'1': 'yes', '1.0': 'yes', '1.00': 'yes', '0': 'no', '0.0': 'no', '0.00': 'no'}
    """
    said = {text: meaning for text, meaning in meanings.items() if meaning in {"yes", "no"}}
    alike = dict(said)
    for words, case in product(_YES_OR_NO if said else _YES_OR_NO[:3], (str.lower, str.capitalize, str.upper)):
        texts = {case(word): "no" if word in words[1] else "yes" for pair in words for word in pair}
        if not said or (said.keys() & texts and all(said.get(text, texts[text]) == texts[text] for text in texts)):
            alike |= texts
    return dict(sorted(alike.items(), key=lambda each: each[1] == "no"))


def is_yes_or_no(texts: Iterable[str], options: Options) -> bool:
    """Return whether each text is that of a yes-or-no answer, or of none."""
    return all(options.answers.get(text) or _meaning(text) for text in texts)


def general_meaning(text: str, options: Options) -> str:
    """Return none or void if the text of any answer, such as a number, means that; "" if it is an answer."""
    meaning = options.answers.get(text) or _meaning(text)
    return meaning if meaning in {"none", "void"} else ""


def _meaning(text: str) -> str:
    return next((meaning for meaning, words in _MEANINGS.items() if text.lower() in words), "")


def distinct(cells: Iterable[str]) -> Iterator[str]:
    """Return each text that is a value, once, in the order of the cells."""
    return (text for text in dict.fromkeys(cells) if not is_absent(text))
