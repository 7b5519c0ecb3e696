"""Admission: cut-offs, and verdicts on receipt, information and sources."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT
from forecast_ledger.ledger.model.publication_stamps import StampSpan, stamp_span
from forecast_ledger.projections.boards.admission import (
    UNDECLARED,
    VERDICTS,
    cutoff,
    empty_window,
    information_verdict,
    newest_information,
    receipt_verdict,
    source_verdict,
)
from tests.support.given import DAY, HOUR, MARCH

SECOND = 10**6  # µs
INSTANTS = st.integers(FIRST_INSTANT, LAST_INSTANT)
INNER = st.integers(FIRST_INSTANT + DAY, LAST_INSTANT - 1)
SPANS = st.tuples(INNER, INNER).map(lambda ends: StampSpan(min(ends), max(ends)))
DECLARED = st.none() | SPANS


def utc(text: str) -> int:
    """Return an instant in UTC, in µs since the epoch, by Python's calendar."""
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def stamped(text: str | None) -> StampSpan | None:
    """Return the span of a stamp, if there is one."""
    return None if text is None else stamp_span(text, "published")


CLOSES = utc("2022-03-23T10:19:00")  # the question of the rules
CUTOFF = utc("2022-03-22T23:59:59")
MIDNIGHT = CUTOFF + SECOND


@pytest.mark.parametrize(
    ("closes_at", "day_before"),
    [
        (CLOSES, CUTOFF),
        (utc("2022-03-23T00:00:00"), CUTOFF),
        (utc("2022-03-23T23:59:59.999999"), CUTOFF),
        (utc("2022-03-24T00:00:00"), utc("2022-03-23T23:59:59")),
        (utc("2022-03-22T23:59:59.999999"), utc("2022-03-21T23:59:59")),
        (utc("2021-05-11T17:00:00"), utc("2021-05-10T23:59:59")),
        (utc("2022-01-01T06:00:00"), utc("2021-12-31T23:59:59")),
        (utc("2020-03-01T06:00:00"), utc("2020-02-29T23:59:59")),
        (utc("1969-12-31T12:00:00"), utc("1969-12-30T23:59:59")),
        (utc("1970-01-01T00:00:00"), -SECOND),
        (MARCH, MARCH - SECOND),
        (LAST_INSTANT, utc("9999-12-30T23:59:59")),
        (utc("0001-01-02T00:00:00"), utc("0001-01-01T23:59:59")),
    ],
)
def test_the_cutoff_is_the_last_second_of_the_day_before_the_close_date(closes_at: int, day_before: int) -> None:
    """A question closing at Mar 23, 2022, 10:19 UTC has its cut-off at Mar 22, 2022, 23:59:59 UTC."""
    assert cutoff(closes_at) == day_before


@pytest.mark.parametrize("into_the_day", [0, DAY - 1])
def test_the_cutoff_of_the_calendars_first_day_is_its_first_instant(into_the_day: int) -> None:
    """No day is before the year 1, and the published cut-off must be an instant that can be written."""
    assert cutoff(FIRST_INSTANT + into_the_day) == FIRST_INSTANT


@given(st.integers(FIRST_INSTANT + DAY, LAST_INSTANT))
def test_the_cutoff_is_one_to_almost_two_days_before_the_close_of_day(closes_at: int) -> None:
    """It ends in 23:59:59, and lies from one second to one day and one second before the close."""
    assert (cutoff(closes_at) + SECOND) % DAY == 0
    assert SECOND <= closes_at - cutoff(closes_at) < DAY + SECOND


@pytest.mark.parametrize(
    ("published", "verdict", "margin"),
    [
        ("2022-03-22T23:59:59Z", "clean", 0),
        ("2022-03-22T23:59:58.999999Z", "clean", 1),
        ("2022-03-22T23:59:59.000001Z", "clean", -1),
        ("2022-03-22T23:59:59.999999Z", "clean", -999_999),
        ("2022-03-23T00:00:00Z", "certain", -SECOND),
        ("2022-03-23T00:00:00.000001Z", "certain", -SECOND - 1),
        ("2022-03-23T01:59:59+02:00", "clean", 0),
        ("2022-03-22T20:00:00-04:00", "certain", -SECOND),
        ("2022-03-22 11:59:59", "clean", 0),
        ("2022-03-22 11:59:59.999999", "clean", -999_999),
        ("2022-03-22 12:00:00", "possible", -SECOND),
        ("2022-03-23 13:59:59.999999", "possible", -26 * HOUR - 999_999),
        ("2022-03-23 14:00:00", "certain", -26 * HOUR - SECOND),
        ("2022-03-21", "clean", 12 * HOUR - 999_999),
        ("2022-03-22", "possible", -12 * HOUR - 999_999),
        ("2022-03-23", "possible", -36 * HOUR - 999_999),
        ("2022-03-24", "certain", -60 * HOUR - 999_999),
        ("2022-03-22Z", "clean", -999_999),
        ("2022-03-22+02:00", "clean", 2 * HOUR - 999_999),
        ("2022-03-22-00:01", "possible", -60 * SECOND - 999_999),
        ("2022-03-23Z", "certain", -DAY - 999_999),
        ("2022-02", "clean", 21 * DAY + 12 * HOUR - 999_999),
        ("2022-03", "possible", -9 * DAY - 12 * HOUR - 999_999),
        ("2022-04", "certain", -39 * DAY - 12 * HOUR - 999_999),
        ("2021", "clean", 80 * DAY + 12 * HOUR - 999_999),
        ("2022", "possible", -284 * DAY - 12 * HOUR - 999_999),
        ("2023", "certain", -649 * DAY - 12 * HOUR - 999_999),
    ],
)
def test_the_newest_source_is_measured_by_the_side_that_can_hurt(published: str, verdict: str, margin: int) -> None:
    """Clean: before 00:00:00Z of the close date in every reading; possible: in some; certain: in none.

    11:59:59 is the last safe second without a zone, the day before the last safe date; the margin is that of the latest
    reading to 23:59:59Z, so that the grey second before midnight is clean and yet over by less than a second.
    """
    assert information_verdict(stamp_span(published, "published"), CUTOFF) == (verdict, margin)


def test_nothing_declared_is_neither_clean_nor_over() -> None:
    """Without a stamp there is no verdict and no margin, for any cut-off."""
    for at in (CUTOFF, cutoff(FIRST_INSTANT), cutoff(LAST_INSTANT)):
        assert information_verdict(newest_information(None, None, None), at) == ("undeclared", None)


@pytest.mark.parametrize(
    ("source", "training_cutoff", "released", "verdict"),
    [
        # The write-up of the rules: T5-v1.1, trained on C4, uploaded in March 2021
        ("2022-03-21", "2021-03", None, "clean"),
        ("2022-03-22", "2021-03", None, "possible"),
        ("2022-03-24", "2021-03", None, "certain"),
        # a release bounds what the model knows from above alone
        ("2022-03-21", None, "2022-02", "clean"),
        ("2022-03-21", None, "2022-03", "possible"),
        ("2022-03-21", None, "2022-06-01T00:00:00Z", "possible"),
        # a training cut-off before the cut-off excuses a later release, and a release before it a vague cut-off
        ("2022-03-21", "2021-09", "2022-11-30", "clean"),
        ("2022-03-21", "2022", "2022-02", "clean"),
        ("2022-03-21", "2022", None, "possible"),
        ("2022-03-21", "2022-03", "2022-03-22", "possible"),
        ("2022-03-21", "2022-04", "2022-05", "certain"),
        # a release before the training cut-off contradicts it
        ("2022-03-21", "2022-03", "2021-12", "possible"),
        ("2022-03-21", "2022-04", "2021-12", "certain"),
        # no model
        ("2022-03-21", None, None, "clean"),
        ("2022-03-24", None, None, "certain"),
        # no sources: nothing excuses, but a model can convict
        (None, "2021-03", None, "undeclared"),
        (None, "2021-03", "2021-06", "undeclared"),
        (None, "2022-03", None, "undeclared"),
        (None, None, "2021-06", "undeclared"),
        (None, None, "2022-06", "undeclared"),
        (None, "2022-04", None, "certain"),
        (None, "2022-04", "2022-05", "certain"),
        (None, None, None, "undeclared"),
    ],
)
def test_sources_and_model_have_one_verdict(
    source: str | None, training_cutoff: str | None, released: str | None, verdict: str
) -> None:
    """The newer of both counts.

    A model may hold any information older than its release, so a late release alone is never a certain leak.
    Source: Autocast competition of 2022, "What does simulating forecasting faithfully mean?".
    """
    newest = newest_information(stamped(source), stamped(training_cutoff), stamped(released))
    assert information_verdict(newest, CUTOFF)[0] == verdict


def test_a_backbone_released_after_the_questions_resolved_may_know_their_answers() -> None:
    """A model released in February 2022 on a question of mid 2021 is a possible leak, eight months too late."""
    newest = newest_information(stamp_span("2021-06-01", "published"), None, stamp_span("2022-02", "released"))
    at = cutoff(utc("2021-07-01T00:00:00"))
    assert information_verdict(newest, at) == (
        "possible",
        -(31 + 31 + 30 + 31 + 30 + 31 + 31 + 28) * DAY - 12 * HOUR - 999_999,
    )


@pytest.mark.parametrize(
    ("source", "training_cutoff", "released", "expected"),
    [
        ((10, 20), None, None, (10, 20)),
        ((10, 20), (5, 15), None, (10, 20)),
        ((10, 20), (5, 25), None, (10, 25)),
        ((10, 20), (15, 18), None, (15, 20)),
        ((10, 20), (15, 25), None, (15, 25)),
        ((10, 20), None, (30, 40), (10, 40)),
        ((10, 20), None, (3, 4), (10, 20)),
        ((10, 20), (15, 35), (28, 30), (15, 30)),
        ((10, 20), (15, 35), (28, 40), (15, 35)),
        ((10, 20), (15, 35), (5, 15), (15, 20)),
        ((10, 20), (15, 35), (5, 14), (15, 35)),
    ],
)
def test_the_newest_information_is_the_later_of_sources_and_model_at_either_end(
    source: tuple[int, int], training_cutoff: tuple[int, int] | None, released: tuple[int, int] | None, expected: object
) -> None:
    """The maximum of two instants lies between the maxima of their ends; a release cuts the model's latest end."""
    model = [None if ends is None else StampSpan(*ends) for ends in (training_cutoff, released)]
    assert newest_information(StampSpan(*source), *model) == expected


@given(SPANS, SPANS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_newer_of_two_readings_lies_within_the_span(
    source: StampSpan, model: StampSpan, here: int, there: int
) -> None:
    """The later of any reading of each is a reading of the result, and the result is no wider."""
    readings = [
        span.earliest + (span.latest - span.earliest) * part // 10**6 for span, part in ((source, here), (model, there))
    ]
    newest = newest_information(source, model, None)
    assert newest is not None
    assert newest.earliest <= max(readings) <= newest.latest
    assert newest.earliest in (source.earliest, model.earliest)
    assert newest.latest in (source.latest, model.latest)


@given(DECLARED, DECLARED, DECLARED, INSTANTS)
def test_a_model_never_makes_a_verdict_milder(
    source: StampSpan | None, training_cutoff: StampSpan | None, released: StampSpan | None, closes_at: int
) -> None:
    """A clean verdict needs declared sources, and a model can only make it stricter."""
    at = cutoff(closes_at)
    verdict, margin = information_verdict(newest_information(source, training_cutoff, released), at)
    alone, alone_margin = information_verdict(source, at)
    assert (margin is None) == (source is None)
    assert source is not None or verdict in ("undeclared", "certain")
    severity = ["clean", "possible", "certain"]
    if margin is not None and alone_margin is not None:
        assert severity.index(verdict) >= severity.index(alone)
        assert margin <= alone_margin


@given(SPANS, INSTANTS)
def test_a_verdict_is_what_all_readings_agree_on(newest: StampSpan, closes_at: int) -> None:
    """Clean: both ends before the midnight that follows the cut-off; certain: neither; possible: they differ."""
    at = cutoff(closes_at)
    late = [information_verdict(StampSpan(end, end), at)[0] == "certain" for end in newest]
    expected = {(False, False): "clean", (False, True): "possible", (True, True): "certain"}[late[0], late[1]]
    assert information_verdict(newest, at) == (expected, at - newest.latest)
    assert late == [end >= at + SECOND for end in newest]


def test_an_undated_model_differs_from_no_model() -> None:
    """With UNDECLARED as its training cut-off the verdict cannot be clean, but it can be certain."""
    clean, late = stamp_span("2022-03-21", "published"), stamp_span("2022-03-24", "published")
    assert information_verdict(newest_information(clean, UNDECLARED, None), CUTOFF) == ("undeclared", None)
    assert information_verdict(newest_information(late, UNDECLARED, None), CUTOFF) == ("certain", None)
    assert information_verdict(newest_information(None, UNDECLARED, None), CUTOFF) == ("undeclared", None)
    assert (
        information_verdict(newest_information(clean, UNDECLARED, stamp_span("2022-02", "released")), CUTOFF)[0]
        == "clean"
    )


def test_a_stamp_that_runs_to_the_end_of_the_calendar_bounds_nothing() -> None:
    """The year 9999 without a zone reaches the end of the calendar, which is as good as no stamp."""
    at = cutoff(LAST_INSTANT)
    assert information_verdict(stamp_span("9999", "published"), at) == ("undeclared", None)
    assert information_verdict(stamp_span("9999", "published"), CUTOFF) == ("certain", None)
    assert information_verdict(StampSpan(at, LAST_INSTANT - 1), at) == ("possible", at - LAST_INSTANT + 1)


def test_every_verdict_is_in_the_table_once() -> None:
    """The table has all verdicts, and the first that applies wins."""
    assert list(VERDICTS) == ["certain", "undeclared", "possible", "clean"]


@pytest.mark.parametrize(
    ("recorded_at", "expected"),
    [
        (CUTOFF, ("in_time", 0)),
        (CUTOFF - 1, ("in_time", 1)),
        (CUTOFF - DAY, ("in_time", DAY)),
        (CUTOFF + 1, ("in_time", -1)),
        (MIDNIGHT - 1, ("in_time", -999_999)),
        (MIDNIGHT, ("late", -SECOND)),
        (CLOSES, ("late", -10 * HOUR - 19 * 60 * SECOND - SECOND)),
        (FIRST_INSTANT, ("in_time", CUTOFF - FIRST_INSTANT)),
        (LAST_INSTANT, ("late", CUTOFF - LAST_INSTANT)),
    ],
)
def test_a_forecast_is_in_time_if_recorded_before_the_close_date(recorded_at: int, expected: tuple[str, int]) -> None:
    """The ledger's clock must be before 00:00:00Z of the close date; the margin counts from 23:59:59Z."""
    assert receipt_verdict(recorded_at, CUTOFF) == expected


@given(INSTANTS, INSTANTS)
def test_receipt_and_information_have_the_same_limit(at: int, closes_at: int) -> None:
    """An instant that is too late for information is too late for receipt, by the same margin."""
    information, known_margin = information_verdict(StampSpan(at, at), cutoff(closes_at))
    received, margin = receipt_verdict(at, cutoff(closes_at))
    assert (information == "clean") == (received == "in_time")
    assert known_margin == (None if at == LAST_INSTANT else margin)


@pytest.mark.parametrize(
    ("declared", "list_version", "verdict"),
    [
        (True, "2022-09", "restricted"),
        (True, "", "restricted"),
        (False, "2022-09", "clean"),
        (False, "", "undeclared"),
        (None, "2022-09", "undeclared"),
        (None, "", "undeclared"),
    ],
)
def test_no_restricted_source_is_a_claim_against_a_named_list(
    declared: bool | None, list_version: str, verdict: str
) -> None:
    """A clean verdict needs the statement and the version of the list; admitting the use needs no list."""
    assert source_verdict(declared, list_version) == verdict


@pytest.mark.parametrize(
    ("opens_at", "empty"),
    [
        (utc("2022-03-23T17:20:00"), True),
        (MIDNIGHT, True),
        (MIDNIGHT - 1, False),
        (CUTOFF, False),
        (utc("2022-03-22T17:20:00"), False),
    ],
)
def test_a_question_published_on_its_close_date_leaves_no_time_to_forecast(opens_at: int, empty: bool) -> None:
    """One question was published at 17:20Z and closed at 22:25Z the same day: its cut-off precedes its publication."""
    assert empty_window(opens_at, cutoff(utc("2022-03-23T22:25:00"))) is empty


@given(INSTANTS, INSTANTS)
def test_a_window_is_empty_if_a_forecast_at_the_opening_is_late(opens_at: int, closes_at: int) -> None:
    """The window is empty exactly if the first instant of the question is too late."""
    assert empty_window(opens_at, cutoff(closes_at)) == (receipt_verdict(opens_at, cutoff(closes_at))[0] == "late")
