"""Tests of units and their conversion."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Context, Decimal, FloatOperation, Inexact, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from tests.support.effort import times
from tests.support.given import DAY, MARCH
from tests.support.waiting import quick

BILLION = 10**9
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59)  # minutes
MOMENTS = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31))


@quick(1)
def refused(call: Any, *arguments: Any) -> tuple[str, str]:
    """Return the code and field with which a call is refused, which takes less than a second."""
    with pytest.raises(Refused) as caught:
        call(*arguments)
    return caught.value.code, caught.value.field


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("0.25", Decimal("0.25")),
        ("+0.25", Decimal("0.25")),
        ("-7", Decimal(-7)),
        ("25e-2", Decimal("0.25")),
        ("2.5E-1", Decimal("0.25")),
        ("1E+3", Decimal(1000)),
        ("0001", Decimal(1)),
        (0.1, Decimal("0.1")),
        (1e-7, Decimal("0.0000001")),
        (3, Decimal(3)),
        (Decimal("0.10"), Decimal("0.1")),
        ("1e30", Decimal("1e30")),
        (10**30, Decimal("1e30")),
        ("-0", Decimal(0)),
        ("0e999999999", Decimal(0)),
    ],
)
def test_a_number_is_the_decimal_it_is_written_as(number: values.Number, value: Decimal) -> None:
    """Integers, decimals and decimal texts are exact; a float is the shortest decimal that names it."""
    assert values.read_decimal(number, "weight") == value


def test_a_numpy_float_is_a_float() -> None:
    """A NumPy float is read by its value, not by how NumPy prints it."""
    assert values.read_probability(np.float64(0.1), "probability") == 100_000_000


@pytest.mark.parametrize(
    "number",
    [
        "",
        "-",
        ".",
        "e5",
        "1_000",
        " 1",
        "1 ",
        "1\n",
        "\u0661",  # ARABIC-INDIC DIGIT ONE
        "\uff11",  # FULLWIDTH DIGIT ONE
        "1,5",
        "0x10",
        "1e",
        "1e1000000000",
        "1.2.3",
        "one",
        "--1",
        "\u22121",  # MINUS SIGN
        "1\x00",
        "\ud800",
        "9" * 100_000,
        "0." + "3" * 100_000,
        True,
        False,
        None,
        b"1",
        [1],
        {"a": 1},
        (0, (1,), 0),
        1 + 0j,
        object(),
    ],
    ids=lambda number: ascii(number)[:20],
)
def test_a_value_that_is_not_written_in_digits_is_not_a_number(number: Any) -> None:
    """Only ASCII digits, point and exponent are a number; a truth value or another object is not."""
    for read in (values.read_decimal, values.read_measure, values.read_probability):
        assert refused(read, number, "weight") == ("bad_number", "weight"), read


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("1e30", Decimal("1e30")),
        (-(10**30), Decimal("-1e30")),
        ("2.50", Decimal("2.5")),
        ("0." + "3" * 400, Decimal("0." + "3" * 400)),
        (Decimal((0, (3,) * 1_000, -1_000)), Decimal("0." + "3" * 1_000)),
        ("1e-60", Decimal("1e-60")),
        ("9.9e-61", Decimal(0)),
        ("-1e-999999999", Decimal(0)),
        ("0e999999999", Decimal(0)),
    ],
    ids=lambda number: str(number)[:12],
)
def test_a_measure_is_a_decimal_of_a_size_that_can_be_reckoned_with(number: values.Number, value: Decimal) -> None:
    """A measure lies within 1e30 and has at most a thousand decimals; one below 1e-60 counts as 0."""
    assert values.read_measure(number, "value") == value


NOT_FINITE = ["nan", "NaN", "-nan", "inf", "-Infinity", "INFINITY", float("nan"), float("inf"), float("-inf")]
NOT_FINITE += [Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity")]


@pytest.mark.parametrize("number", NOT_FINITE, ids=repr)
@pytest.mark.parametrize("read", [values.read_decimal, values.read_measure, values.read_probability])
def test_a_number_that_is_not_finite_is_refused(read: Any, number: values.Number) -> None:
    """Infinity and not-a-number have their own code, in every spelling and type."""
    assert refused(read, number, "probability") == ("not_finite", "probability")


@pytest.mark.parametrize(
    "number",
    ["1e31", "-1e31", "2e30", "1e999", "1e999999999", 10**400, 2 * 10**30, -(10**31), 1.1e30, 1e308, Decimal("1e31")],
    ids=lambda number: str(number)[:12],
)
def test_a_magnitude_beyond_1e30_is_refused(number: values.Number) -> None:
    """A number beyond 1e30 is refused in every notation, and at once."""
    assert refused(values.read_measure, number, "value") == ("out_of_range", "value")


@pytest.mark.parametrize("number", [Decimal("1e999999999999"), Decimal((0, (1,) * 5_000, -4_999))], ids=["1e", "1."])
@pytest.mark.parametrize("read", [values.read_measure, values.read_probability])
def test_a_decimal_of_absurd_size_is_refused_at_once(read: Any, number: Decimal) -> None:
    """Neither a huge exponent nor thousands of digits reach the arithmetic."""
    assert refused(read, number, "value") == ("out_of_range", "value")


@pytest.mark.parametrize(
    "number", ["1e-999999999", Decimal("1e-999999999999"), "-1e-999999999", "1e-61", 5e-324, "4.9e-10"]
)
@quick(1)
def test_a_number_far_below_the_unit_rounds_to_nothing(number: values.Number) -> None:
    """1e-999999999 is a finite decimal, and is rounded to the unit like any other, at once."""
    assert values.read_fixed(number, BILLION, "probability", 0, BILLION) == 0


@pytest.mark.parametrize(
    ("number", "units"),
    [
        ("0.0000000005", 0),  # half a unit: to the even one
        ("0.0000000015", 2),
        ("0.0000000025", 2),
        ("0.00000000050000000001", 1),  # above half
        ("0.00000000249999999999", 2),  # below half
        ("0.99999999949999999999", 999_999_999),
        ("0.9999999995", 1_000_000_000),  # half: 1e9 is even
        ("0.9999999985", 999_999_998),
        (0.7, 700_000_000),
        (0.1 + 0.2, 300_000_000),  # 0.30000000000000004
        (5e-10, 0),
        (1.5e-9, 2),
        ("-0.0000000005", 0),
        (Decimal("1.0000000005"), 1_000_000_000),
        (1, 1_000_000_000),
        (0, 0),
    ],
)
def test_a_probability_is_brought_to_1e_9_half_even(number: values.Number, units: int) -> None:
    """A number between two units rounds to the nearer one; a tie rounds to the even one."""
    assert values.read_probability(number, "probability") == units


@given(st.fractions(-1000, 1000, max_denominator=1000).map(lambda share: share / 2**5), st.sampled_from([0, 2, 6, 9]))
def test_rounding_agrees_with_exact_arithmetic(number: Fraction, places: int) -> None:
    """Rounding a decimal to a unit is Python's half-even rounding of the same fraction."""
    text = format(Decimal(number.numerator) / Decimal(number.denominator), "f")
    exact = Fraction(text)
    assert values.read_fixed(text, 10**places, "value", -(10**13), 10**13) == round(exact * 10**places)


@given(st.floats(-1, 1))
def test_a_float_rounds_as_its_shortest_decimal(number: float) -> None:
    """A float is not rounded as its binary fraction: 0.0000000015 is a tie, although the double is not."""
    assert values.read_fixed(number, BILLION, "value", -BILLION, BILLION) == round(Fraction(repr(number)) * BILLION)


@pytest.mark.parametrize(("prec", "traps"), [(3, [Inexact, FloatOperation]), (2, []), (50, [])])
def test_a_callers_decimal_context_changes_no_number(prec: int, traps: list[Any]) -> None:
    """A context with few digits, with a trap for every rounding or with none, set by the calling program, changes no
    result.
    """
    with localcontext(Context(prec=prec, traps=traps)):
        assert values.read_probability("0.1234567895", "probability") == 123_456_790
        assert values.read_probability(0.7, "probability") == 700_000_000
        assert values.read_measure("-123456.789", "value") == Decimal("-123456.789")
        assert values.exact_text(Decimal("123456.7890")) == "123456.789"
        assert refused(values.read_decimal, "one", "value") == ("bad_number", "value")
        assert refused(values.read_measure, "1" + "0" * 31, "value") == ("out_of_range", "value")


@pytest.mark.parametrize("number", ["1.000000001", "-0.000000001", 1.1, -1, 2, "1e30", Decimal("1.0000000006")])
def test_a_probability_outside_0_to_1_is_refused(number: values.Number) -> None:
    """A number that is out of range after rounding is refused, never clamped; the message names the bounds."""
    assert refused(values.read_probability, number, "probability") == ("out_of_range", "probability")
    with pytest.raises(Refused, match="must lie between 0 and 1"):
        values.read_probability(number, "probability")


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2026-03-01T00:00:00Z", MARCH),
        ("2026-03-01T01:00:00+01:00", MARCH),
        ("2026-02-28T18:30:00-05:30", MARCH),
        ("2026-03-01T00:00:00-00:00", MARCH),
        ("2026-03-01t00:00:00z", MARCH),
        ("2026-03-01 00:00:00Z", MARCH),
        ("2026-03-01T23:59:00+23:59", MARCH),
        ("2024-02-29T00:00:00Z", MARCH - 731 * DAY),  # a leap day; 366 days to 2025-03-01, then 365
        ("2026-03-01T00:00:00.5Z", MARCH + 500_000),
        ("2026-03-01T00:00:00.123456Z", MARCH + 123_456),
        ("2026-03-01T00:00:00.1234564Z", MARCH + 123_456),
        ("2026-03-01T00:00:00.1234565Z", MARCH + 123_456),  # half a µs: to the even one
        ("2026-03-01T00:00:00.1234575Z", MARCH + 123_458),
        ("2026-03-01T00:00:00.12345650000000000000001Z", MARCH + 123_457),
        ("2026-03-01T00:00:00.9999996+00:00", MARCH + 10**6),
        ("2026-03-01T01:00:00.0000015+01:00", MARCH + 2),
        ("0001-01-01T00:00:00Z", -719_162 * DAY),  # 1969 years: 1969 · 365 + 477 leap days
        ("9999-12-31T23:59:59Z", 2_932_897 * DAY - 10**6),
        ("9999-12-31T23:59:59.999999Z", 2_932_897 * DAY - 1),
        ("9999-12-31T23:59:59.9999994+00:00", 2_932_897 * DAY - 1),
    ],
)
def test_an_instant_is_counted_in_microseconds_utc(text: str, micros: int) -> None:
    """An instant has any offset and any number of decimals; a fraction finer than a µs rounds half-even."""
    assert values.read_instant(text) == micros


def test_a_datetime_with_an_offset_is_an_instant() -> None:
    """A caller in Python may pass an aware datetime."""
    west = timezone(timedelta(hours=-5))
    assert values.read_instant(datetime(2026, 2, 28, 19, tzinfo=west)) == MARCH
    assert values.read_instant(datetime(2026, 3, 1, 0, 0, 0, 1, tzinfo=UTC)) == MARCH + 1


class Unknown(tzinfo):
    """A time zone that does not know its offset; by Python's documentation, such a datetime is naive."""

    def utcoffset(self, when: datetime | None) -> None:
        """Return None, for an unknown offset."""

    dst = tzname = utcoffset


NAIVE = ["2026-03-01T00:00:00", "2026-03-01 00:00:00.5", "2026-03-01T00:00:00.12345678"]
NAIVE_DATETIMES = [datetime(2026, 3, 1), datetime(2026, 3, 1, tzinfo=Unknown())]


@pytest.mark.parametrize("value", [*NAIVE, *NAIVE_DATETIMES], ids=str)
def test_an_instant_without_an_offset_is_refused(value: values.Instant) -> None:
    """An instant without an offset would mean another moment on every machine."""
    assert refused(values.read_instant, value, "opens_at") == ("naive_instant", "opens_at")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yesterday",
        "2026-03-01",
        "2026-03-01T00:00Z",
        "2026-03-01T00:00:00+0100",
        "2026-03-01T00:00:00+01",
        "2026-03-01T00:00:00+24:00",
        "2026-03-01T00:00:00+01:60",
        "2026-03-01T00:00:00+01:99",
        "2026-03-01T00:00:00,5Z",
        "2026-03-01T00:00:00.Z",
        "2026-03-01T00:00:00 Z",
        " 2026-03-01T00:00:00Z",
        "2026-03-01T00:00:00Z\n",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-03-00T00:00:00Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T00:60:00Z",
        "2016-12-31T23:59:60Z",  # a real leap second: µs since the epoch cannot represent it
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "2026-W09-7T00:00:00Z",
        "20260301T000000Z",
        "\u0662026-03-01T00:00:00Z",
        "2026-03-01T00:00:00." + "1" * 100_000 + "Z",
        "2026-03-01T00:00:00\ud800",
        1_772_323_200,
        None,
        True,
        b"2026-03-01T00:00:00Z",
        ["2026-03-01T00:00:00Z"],
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_value_that_is_not_an_instant_is_refused(value: Any) -> None:
    """An instant has seconds and a full offset, on the proleptic calendar of the years 1 to 9999."""
    assert refused(values.read_instant, value, "at") == ("bad_instant", "at")


FORM = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)
WRITTEN = st.sampled_from(["2026-03-01T09:30:00Z", "2026-03-01T09:30:00.123456Z", "2026-03-01T09:30:00.5+01:00"])
CHARACTERS = st.sampled_from([*"0123456789TtZz:.,+- W_/", "\u0661", "\ud800", "\n", ""])


@settings(max_examples=times(250))
@given(WRITTEN, st.lists(st.tuples(st.integers(0, 27), CHARACTERS), min_size=1, max_size=3))
def test_every_accepted_instant_has_the_form_of_one(text: str, changes: list[tuple[int, str]]) -> None:
    """An instant with one to three characters replaced or dropped is refused, unless it is again RFC 3339."""
    for place, character in changes:
        text = text[:place] + character + text[place + 1 :]
    try:
        values.read_instant(text)
    except Refused:
        return
    assert FORM.fullmatch(text)


@pytest.mark.parametrize(
    "value",
    [
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "9999-12-31T23:59:59.9999999Z",
        datetime(1, 1, 1, tzinfo=timezone(timedelta(minutes=1))),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(minutes=-1))),
    ],
    ids=str,
)
def test_an_instant_that_utc_cannot_write_is_refused(value: values.Instant) -> None:
    """The year 0 or 10000 in UTC has no RFC 3339 text, so such an instant could be recorded but never printed."""
    assert refused(values.read_instant, value, "at") == ("bad_instant", "at")


@given(MOMENTS, OFFSETS)
def test_an_instant_in_any_offset_is_the_same_moment(moment: datetime, minutes: int) -> None:
    """A text with an offset, a datetime with an offset and a text in UTC are the same to the µs."""
    local = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    micros = values.read_instant(local.isoformat())
    assert values.read_instant(local) == micros
    assert (local - datetime(1970, 1, 1, tzinfo=UTC)) == timedelta(microseconds=micros)
    assert values.read_instant(values.format_instant(micros)) == micros


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (MARCH, "2026-03-01T00:00:00Z"),
        (MARCH + 10, "2026-03-01T00:00:00.000010Z"),
    ],
)
def test_an_instant_is_shown_in_utc(micros: int, text: str) -> None:
    """The text is RFC 3339 with Z, and with a fraction only if it is not 0."""
    assert values.format_instant(micros) == text


@pytest.mark.parametrize(
    "text", ["a", "x" * 200, "Ada Lovelace", "q-1/2:3.4_5", "\u00e9t\u00e9", "\u6c34", "\U0001f600", "'; DROP"]
)
def test_an_id_of_printable_characters_is_not_changed(text: str) -> None:
    """An id has one to 200 characters of any script, and may have inner spaces."""
    assert values.check_id(text, "question") == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "id_empty"),
        ("x" * 201, "id_too_long"),
        ("\n" * 201, "id_too_long"),
        (" ", "id_not_plain"),
        (" a", "id_not_plain"),
        ("a ", "id_not_plain"),
        ("a\tb", "id_not_plain"),
        ("a\nb", "id_not_plain"),
        ("a\x00b", "id_not_plain"),
        ("a\x7f", "id_not_plain"),
        ("a\x1b[31m", "id_not_plain"),
        ("a\u00a0b", "id_not_plain"),  # NO-BREAK SPACE
        ("a\u00adb", "id_not_plain"),  # SOFT HYPHEN
        ("a\u200bb", "id_not_plain"),  # ZERO WIDTH SPACE
        ("a\u200db", "id_not_plain"),  # ZERO WIDTH JOINER
        ("a\u202eb", "id_not_plain"),  # RIGHT-TO-LEFT OVERRIDE
        ("\ufeffa", "id_not_plain"),  # BYTE ORDER MARK
        ("a\u2028b", "id_not_plain"),  # LINE SEPARATOR
        ("a\ue000", "id_not_plain"),  # private use
        ("a\ud800", "id_not_plain"),  # lone surrogate
        ("e\u0301", "id_not_plain"),  # e + COMBINING ACUTE ACCENT: NFC is é
        ("\u212b", "id_not_plain"),  # ANGSTROM SIGN: NFC is Å
        (None, "malformed"),
        (7, "malformed"),
        (b"a", "malformed"),
        (["a"], "malformed"),
        ({"a": 1}, "malformed"),
    ],
    ids=ascii,
)
def test_an_id_that_could_be_mistaken_is_refused(text: Any, code: str) -> None:
    """Two ids that look the same are the same id, or one of them is refused."""
    assert refused(values.check_id, text, "participant") == (code, "participant")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "Zoe\u0308",
            "character 3 is U+0065 LATIN SMALL LETTER E, where form NFC has U+00EB LATIN SMALL LETTER E WITH ",
        ),
        (
            "a\u212b",
            "character 2 is U+212B ANGSTROM SIGN, where form NFC has U+00C5 LATIN CAPITAL LETTER A WITH RING AB",
        ),
        ("a\u00a0b", "character 2 is U+00A0 NO-BREAK SPACE, which cannot be printed"),
        (" ada", "it begins or ends with a space"),
    ],
    ids=ascii,
)
def test_the_refusal_of_an_id_says_which_character_to_change(text: str, says: str) -> None:
    """Printed, such an id may look the same as the right one."""
    with pytest.raises(Refused) as error:
        values.check_id(text, "participant")
    assert error.value.detail.startswith(says)


@pytest.mark.parametrize("text", ["", "x" * 10_000, "two\nlines\tand \u200b more"])
def test_a_text_may_have_any_character(text: str) -> None:
    """A title or reason may have any character, because it is never compared."""
    assert values.check_text(text, "title") == text


@pytest.mark.parametrize(
    ("text", "code"),
    [("x" * 10_001, "text_too_long"), ("a\udfff", "id_not_plain"), (None, "malformed"), (["a"], "malformed")],
    ids=lambda value: ascii(value)[:12],
)
def test_a_text_that_cannot_be_encoded_is_refused(text: Any, code: str) -> None:
    """A text has up to 10,000 characters that UTF-8 can encode."""
    assert refused(values.check_text, text, "reason") == (code, "reason")


@pytest.mark.parametrize(
    ("value", "unit", "least", "text"),
    [
        (750_000_000, BILLION, 0, "0.75"),
        (BILLION, BILLION, 0, "1"),
        (0, BILLION, 0, "0"),
        (-1, BILLION, 0, "-0.000000001"),
        (-1_500_000, 10**6, 2, "-1.50"),
        (108_050_000, 10**6, 2, "108.05"),
        (5, 1, 0, "5"),
        (5, 1, 2, "5.00"),
    ],
)
def test_an_integer_is_shown_as_decimal_text(value: int, unit: int, least: int, text: str) -> None:
    """The text has at least `least` decimals."""
    assert values.format_fixed(value, unit, least) == text


@given(st.integers(-(10**24), 10**24), st.integers(0, 12), st.integers(0, 6))
def test_decimal_text_reads_back_as_the_same_integer(value: int, places: int, least: int) -> None:
    """Printing and reading an integer loses nothing."""
    text = values.format_fixed(value, 10**places, least)
    assert values.read_fixed(text, 10**places, "value", -(10**24), 10**24) == value
    assert Fraction(text) == Fraction(value, 10**places)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1.50E+2"), "150"),
        (Decimal("100"), "100"),
        (Decimal("0.2500"), "0.25"),
        (Decimal("-0.0"), "0"),
        (Decimal("0E+5"), "0"),
        (Decimal("0E-5"), "0"),
        (Decimal("-1E-9"), "-0.000000001"),
    ],
)
def test_a_decimal_has_one_shortest_text(value: Decimal, text: str) -> None:
    """The text has no exponent, no unneeded zero, and no minus sign before 0."""
    assert values.exact_text(value) == text


@given(st.decimals(-(10**12), 10**12, allow_nan=False, allow_infinity=False, places=9), st.integers(0, 20))
def test_equal_decimals_have_equal_texts(value: Decimal, zeros: int) -> None:
    """The number of zeros as written does not matter, and the text is equal to the number."""
    padded = Decimal(format(value, "f") + "0" * zeros)
    assert values.exact_text(padded) == values.exact_text(value)
    assert Fraction(values.exact_text(value)) == Fraction(value)


NUMBERS = (
    st.decimals(allow_nan=True, allow_infinity=True)
    | st.decimals(-10, 10, places=12, allow_nan=False)
    | st.floats()
    | st.floats(-1, 2)
    | st.integers(-(10**32), 10**32)
    | st.integers(-1, 2)
    | st.booleans()
    | st.sampled_from(["0.5", "1", "-0", "0.10", "1e-3", "1E5", "nan", "x", "", "0.1,0.2", ",", "1e999999999", "1_0"])
    | st.sampled_from([Decimal("1E-61"), Decimal("1e999999"), Decimal("-0.0"), Decimal("0E-2000"), Decimal("1E-2000")])
    | st.sampled_from(
        [Decimal("1." + "0" * 1_001), Decimal("0." + "5" * 999), Decimal("1." + "0" * 59), Decimal("5e-10")]
    )
    | st.sampled_from([Decimal("0.0000000005" + "0" * 60), "0." + "3" * 400, Decimal(10**30), Decimal(10**30) + 1])
)
ALIKE = st.one_of(*(st.lists(kind, max_size=6) for kind in (st.floats(-1, 2), st.integers(-1, 2), st.decimals(-9, 9))))


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the refusal."""
    try:
        return call()
    except Refused as refused:
        return refused.code, refused.field, refused.value, refused.detail


@settings(max_examples=times(200), deadline=None)
@given(st.lists(NUMBERS, max_size=6) | ALIKE | st.lists(st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,12})?", fullmatch=True)))
def test_many_numbers_are_read_as_each_alone(numbers: list[Any]) -> None:
    """Many numbers give the same result as one by one, or the refusal of the first faulty one, in the same words."""
    texts = outcome(lambda: [str(number) for number in values.read_decimals(numbers, "f")])
    assert texts == outcome(lambda: [str(values.read_decimal(number, "f")) for number in numbers])
    measured = outcome(lambda: values.read_measures(numbers, 10**4, "f"))
    assert measured == outcome(
        lambda: [round(Fraction(values.read_measure(number, "f")) * 10**4) for number in numbers]
    )
    unit, low, high = values.CUMULATIVE, 0, values.CUMULATIVE
    result = outcome(lambda: values.read_each_fixed(numbers, unit, "f", low, high))
    assert result == outcome(lambda: [values.read_fixed(number, unit, "f", low, high) for number in numbers])


HALVES = st.integers(-(10**13), 10**13).map(lambda units: Decimal(f"{units}.5").scaleb(-12))


@given(st.lists(st.decimals(-(10**29), 10**29, allow_nan=False) | HALVES, max_size=5), st.integers(0, 12))
def test_measures_are_counted_half_even_once(numbers: list[Decimal], places: int) -> None:
    """Every number is rounded once, like its exact fraction by Python's `round`."""
    result = values.read_measures(numbers, 10**places, "f")
    assert result == [round(Fraction(values.read_measure(number, "f")) * 10**places) for number in numbers]


def test_a_decimal_context_changes_no_number() -> None:
    """A decimal context with few digits, a small range of exponents or traps changes no result."""
    numbers = (Decimal("0.123456789012"), Decimal("1"))
    with localcontext(Context(prec=2, Emin=-3, Emax=3, traps=[Inexact])):
        assert values.read_each_fixed(numbers, values.CUMULATIVE, "f", 0, values.CUMULATIVE) == [1_234_567_890, 10**10]
