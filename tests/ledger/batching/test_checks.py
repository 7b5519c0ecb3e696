"""Tests of what a writer checks: claimed instants, times of receipt, new ids, amounts of new contests."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, structs

from forecast_ledger import ForecastColumns, Ledger, replay, seal, verify
from forecast_ledger.ledger.batching import batch, checks, forecasts
from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand, CloseQuestion, SubmitForecast
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.replay.audit.verify import run_checks
from forecast_ledger.replay.files.export import export
from forecast_ledger.replay.files.restore import restore
from forecast_ledger.replay.reading.log import Log
from tests.replay.cli.test_main import run
from tests.support import oracle
from tests.support.forging import chained, written
from tests.support.given import (
    DAY,
    NOW,
    addition,
    closing,
    cohort,
    contest,
    day,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    opened,
    payment,
    resolution,
    withdrawal,
)
from tests.support.oracle import events_of

MINUTE = 60 * 10**6


def at(offset: int) -> str:
    """An instant so many µs after the ledger's clock."""
    return format_instant(NOW + offset)


def begun(claims: str | None) -> Ledger:
    """A ledger with an open question, and a clock that stands still."""
    ledger = Ledger.open(":memory:", clock=lambda: NOW, claims=claims)
    ledger.handle(opened(at=at(0), opens_at=at(-9 * MINUTE), closes_at=at(9 * MINUTE)), "begun")
    return ledger


@pytest.mark.parametrize(
    ("claims", "offset", "code"),
    [
        ("5m", -5 * MINUTE, ""),
        ("5m", -5 * MINUTE - 1, "claimed_too_early"),
        ("5m", 5 * MINUTE, ""),
        ("5m", 5 * MINUTE + 1, "claimed_too_late"),
        ("1m,0s", -MINUTE, ""),
        ("1m,0s", -MINUTE - 1, "claimed_too_early"),
        ("1m,0s", 0, ""),
        ("1m,0s", 1, "claimed_too_late"),
        (None, -8 * MINUTE, ""),
        (None, 8 * MINUTE, ""),
    ],
)
@pytest.mark.parametrize("way", ["quick", "slow", "columns"])
def test_an_instant_is_taken_up_to_the_limit(claims: str | None, offset: int, code: str, way: str) -> None:
    """Both limits are taken, a microsecond beyond them is not; a forecast takes the same limits as a command."""
    quick = forecast(at=at(offset), id="f")
    asked: dict[str, Sequence[AnyCommand]] = {
        "quick": [quick],
        "slow": [CloseQuestion(question="rain", at=at(offset), id="f")],
        "columns": ForecastColumns(
            id=["f"], at=[at(offset)], question=["rain"], participant=["ada"], probability=["0.7"]
        ),
    }
    with begun(claims) as ledger:
        [outcome] = ledger.handle_many(asked[way])
        assert (outcome.code if isinstance(outcome, Refused) else "") == code


def test_the_refusal_names_the_limit_and_the_remedy() -> None:
    """Without `at`, the command is taken, whatever the limits are."""
    with begun("90s,0s") as ledger:
        with pytest.raises(Refused) as early:
            ledger.handle(forecast(at=at(-2 * MINUTE)), "f")
        assert str(early.value) == (
            f"claimed_too_early: at = {at(-2 * MINUTE)!r}: at most 90 s before the recording, {at(0)}; "
            "leave `at` out: the ledger stamps the instant of the recording"
        )
        with pytest.raises(Refused, match=r"claimed_too_late: .*: at most 0 s after the recording"):
            ledger.handle(forecast(at=at(MINUTE)), "f")
        assert ledger.handle(SubmitForecast(question="rain", participant="ada", probability="0.7"), "f").last == 2


def test_a_retry_is_a_duplicate_after_the_limit_has_passed() -> None:
    """What is recorded was in time; the answer that was lost is given again."""
    now = [NOW]
    with Ledger.open(":memory:", clock=lambda: now[0], claims="5m") as ledger:
        first = ledger.handle(contest(at=at(0)), "c")
        now[0] += 60 * MINUTE
        assert ledger.handle(contest(at=at(0)), "c") == Receipt("c", first.first, first.last, duplicate=True)


def test_a_claim_is_refused_before_what_the_state_would_refuse() -> None:
    """The order of precedence: the limits need no state."""
    with begun("5m") as ledger, pytest.raises(Refused) as refused:
        ledger.handle(CloseQuestion(question="none", at=at(-60 * MINUTE)), "x")
    assert refused.value.code == "claimed_too_early"


def test_imported_times_of_receipt_are_what_claims_are_compared_with() -> None:
    """A history may be held to the same limits, by the times at which it was received."""
    with Ledger.open(":memory:", clock=lambda: NOW, claims="5m") as ledger:
        commands = [contest(at=at(-60 * MINUTE), id="a"), contest("two", at=at(-60 * MINUTE), id="b")]
        good, bad = ledger.handle_many(commands, recorded_at=[NOW - 58 * MINUTE, NOW])
        assert isinstance(good, Receipt)
        assert isinstance(bad, Refused)
        assert bad.code == "claimed_too_early"


@pytest.mark.parametrize("claims", ["", "5", "m", "5m,", "5m,0s,1s", "-5m", "PT5M", "5 m", "1.5h"])
def test_limits_that_are_no_durations_are_wrong_usage(claims: str, tmp_path: Path) -> None:
    """Nothing is opened, and no file is made."""
    with pytest.raises(ValueError, match="is no duration: give a number and s, m, h or d, such as 90m"):
        Ledger.open(tmp_path / "log.db", claims=claims)
    lines = tmp_path / "lines.jsonl"
    lines.write_text("")
    assert run("append", str(tmp_path / "log.db"), str(lines), "--claims", claims).exit_code == 2
    assert [*tmp_path.iterdir()] == [lines]


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--atomic"]])
def test_the_command_line_takes_limits(tmp_path: Path, options: list[str]) -> None:
    """Without them, a history is brought in as it claims; a folder of segments takes them too."""
    line = {"id": "c", "type": "open_contest", "at": "2020-03-01T00:00:00Z", "contest": "cup", "rules": "baseline"}
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps(line))
    for log in ("log.db", "folder/"):
        result = run("append", str(tmp_path / log), str(lines), "--claims", "5m", *options)
        assert (result.exit_code, "claimed_too_early" in result.stderr) == (1, True)
        assert run("append", str(tmp_path / f"free{log}"), str(lines), *options).exit_code == 0


START = NOW


def numbered(*commands: object) -> list[object]:
    """The commands under ids of their own."""
    return [structs.replace(command, id=f"c{number}") for number, command in enumerate(commands, 1)]  # type: ignore[type-var]


def receiving(path: Path | str = ":memory:", now: int = START + 30 * DAY) -> Ledger:
    """A ledger whose clock counts µs from an instant."""
    ticks = count(now)
    return Ledger.open(path, clock=lambda: next(ticks))


COMMANDS = numbered(opened(), forecast(participant="ada", at=day(1)), forecast(participant="bob", at=day(1)))


def test_rows_have_the_times_that_were_given_and_say_so() -> None:
    """Equal times are in order; what is recorded afterwards has the time of the clock, and no mark."""
    with receiving() as book:
        outcomes = book.handle_many(COMMANDS[:2], recorded_at=[START, START])  # type: ignore[arg-type]
        assert all(isinstance(outcome, Receipt) for outcome in outcomes)
        book.handle_many(COMMANDS[2:])  # type: ignore[arg-type]
        found = events_of(book)
        assert [row.recorded_at for row in found[:2]] == [START, START]
        assert [row.imported for row in found] == [True, True, UNSET]
        assert found[2].recorded_at >= START + 30 * DAY


def test_the_bytes_of_other_rows_do_not_change(tmp_path: Path) -> None:
    """The mark is in the row of an imported time only, after that time."""
    with receiving(tmp_path / "log.db") as book:
        book.handle_many(COMMANDS[:1], recorded_at=[START])  # type: ignore[arg-type]
        book.handle_many(COMMANDS[1:])  # type: ignore[arg-type]
        [stored] = list(book._store.pages())
    assert b'"recorded_at":%d,"imported":true,"normal":true,"command_id":' % START in stored[0]
    assert not any(b"imported" in row for row in stored[1:])


@pytest.mark.parametrize(
    ("time", "code"),
    [(START - 1, "out_of_order"), *((time, "out_of_range") for time in (START + 31 * DAY, -(2**63), 2**80))],
)
def test_a_time_that_falls_or_is_of_the_future_is_refused(time: int, code: str) -> None:
    """That command alone; the next one is compared with the last that was recorded."""
    with receiving() as book:
        _, refused, receipt = book.handle_many(COMMANDS, recorded_at=[START, time, START])  # type: ignore[arg-type]
        assert isinstance(refused, Refused)
        assert (refused.code, refused.field) == (code, "recorded_at")
        assert isinstance(receipt, Receipt)
        assert str(refused).isprintable()


def test_a_fault_of_the_command_that_comes_first_is_told_first() -> None:
    """By the order of the codes, as for every other refusal."""
    unknown = structs.replace(forecast(participant="ada", at=day(1)), id="x")
    with receiving() as book:
        book.handle_many(COMMANDS[:1], recorded_at=[START])  # type: ignore[arg-type]
        [late] = book.handle_many([unknown], recorded_at=[START - 1])
        [elsewhere] = book.handle_many([structs.replace(unknown, question="none")], recorded_at=[START - 1])
        [future] = book.handle_many([structs.replace(unknown, question="none")], recorded_at=[START + 31 * DAY])
    assert [each.code for each in (late, elsewhere, future) if isinstance(each, Refused)] == [
        "out_of_order",
        "unknown_question",
        "out_of_range",
    ]


def test_a_ledger_that_its_own_clock_has_stamped_takes_no_times(tmp_path: Path) -> None:
    """Also if another process has stamped it; commands that are recorded already count as duplicates."""
    path = tmp_path / "log.db"
    with receiving(path) as book, receiving(path) as other:
        book.handle_many(COMMANDS[:1], recorded_at=[START])  # type: ignore[arg-type]
        other.handle_many(COMMANDS[1:2], recorded_at=[START + 1])  # type: ignore[arg-type]
        book.handle_many(COMMANDS[2:])  # type: ignore[arg-type]
        again = other.handle_many(COMMANDS, recorded_at=[START] * 3)  # type: ignore[arg-type]
        assert [outcome.duplicate for outcome in again if isinstance(outcome, Receipt)] == [True] * 3
        new = structs.replace(forecast(participant="cyd", at=day(1)), id="new")
        for each in (book, other):
            [refused] = each.handle_many([new], recorded_at=[START + 31 * DAY])
            assert isinstance(refused, Refused)
            assert refused.code == "ledger_in_use"
            assert each.head().position == 3
    assert verify(path).position == 3


def test_an_atomic_import_that_is_refused_leaves_no_time_behind() -> None:
    """The next import may begin where this one did, and the ledger's own clock too."""
    with receiving() as book:
        outcomes = book.handle_many(COMMANDS, recorded_at=[START + DAY, START + DAY, START], atomic=True)  # type: ignore[arg-type]
        codes = [outcome.code for outcome in outcomes if isinstance(outcome, Refused)]
        assert (codes, book.head().position) == (["batch_refused", "batch_refused", "out_of_order"], 0)
        assert isinstance(book.handle_many(COMMANDS[:1], recorded_at=[START])[0], Receipt)  # type: ignore[arg-type]


def forged(path: Path, *marks: bool) -> str:
    """A log with these marks at its rows, one for each command; no mark where it is False."""
    with receiving() as book:
        book.handle_many(COMMANDS[: len(marks)], recorded_at=[START] * len(marks))  # type: ignore[arg-type]
        found = events_of(book)
    marked = [structs.replace(row, imported=mark or UNSET) for row, mark in zip(found, marks, strict=True)]
    return written(path, chained(marked))


@pytest.mark.parametrize(
    ("marks", "position"),
    [((True, True, False), None), ((False, False), None), ((False, True), 2), ((True, False, True), 3)],
)
def test_an_imported_row_after_one_of_the_clock_is_damage(
    tmp_path: Path, marks: tuple[bool, ...], position: int | None
) -> None:
    """No writer records it: a time that was put in later would otherwise pass for one that was received."""
    log = forged(tmp_path / "log.db", *marks)
    if position is None:
        assert verify(log).position == len(marks)
    else:
        with pytest.raises(Corrupt, match="follows a row that the ledger's clock has stamped") as damage:
            verify(log)
        assert (damage.value.position, damage.value.check) == (position, "clock")


def test_an_export_with_such_a_row_is_not_restored(tmp_path: Path) -> None:
    """Nothing of it is written; one with imported rows in their place is restored to the same digest."""
    export(forged(tmp_path / "good.db", True, True, False), tmp_path / "good")
    assert restore(tmp_path / "good", tmp_path / "again.db") == 3
    assert verify(tmp_path / "again.db") == verify(tmp_path / "good.db")
    export(forged(tmp_path / "bad.db", False, True), tmp_path / "bad")
    with pytest.raises(Corrupt, match="the row was imported, and follows one of the ledger's clock"):
        restore(tmp_path / "bad", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_verify_says_up_to_where_times_are_imported(tmp_path: Path) -> None:
    """An auditor sees that these times are the word of whoever imported them."""
    [clock] = run_checks(Log(forged(tmp_path / "log.db", True, True, False)), only=["clock"]).results
    assert (clock.found, "imported up to log position 2" in clock.says) == ("ok", True)
    [clock] = run_checks(Log(forged(tmp_path / "none.db", False, False)), only=["clock"]).results
    assert "up to log position" not in clock.says


MONEY = 10**6
LEAST_50: dict[str, Any] = {"rules": "peer-2025-06"}  # least_prize 50
RELATIVE_50 = structs.replace(PRESETS["relative-2022-04"], least_prize_micros=50 * MONEY)


def outcome(command: AnyCommand) -> str:
    """The code and the text of a refusal in a new ledger, or nothing."""
    with Ledger.open(":memory:") as ledger:
        [found] = ledger.handle_many(oracle.with_ids([command]))
    return str(found) if isinstance(found, Refused) else ""


def traded(**trading: Any) -> AnyCommand:
    """A contest with these trading rules; the defaults are 10,000 in cash, a quarter a bet, 50 at least."""
    return cohort(rules=RuleSet(name="own", trading=Trading(**trading)))


@pytest.mark.parametrize("pool", ["0.01", "49.99"])
def test_a_pool_below_the_least_prize_is_refused(pool: str) -> None:
    """No prize could be paid; the message names both amounts and the way out."""
    refused = outcome(contest(pool=pool, **LEAST_50))
    assert refused.startswith("pool_not_payable: pool")
    assert f"the pool is {pool}, and least_prize is 50.00" in refused
    assert "a smaller least_prize" in refused


@pytest.mark.parametrize("pool", [None, 0, 50, 1_000])
def test_a_pool_that_can_be_paid_and_none_at_all_are_accepted(pool: int | None) -> None:
    """Without a pool there is nothing to pay, whatever the least prize of the preset is."""
    assert not outcome(contest(pool=pool, **LEAST_50))


def test_rules_under_which_nobody_can_ever_bet_are_refused() -> None:
    """A quarter of 199.99 is 49.9975, less than the least bet; the message names the three amounts."""
    refused = outcome(traded(starting_cash_micros=199_990_000))
    assert refused.startswith("rules_not_consistent: rules")
    assert "with starting_cash 199.99, the largest is 49.9975; least_bet is 50.00" in refused


@pytest.mark.parametrize(
    "trading",
    [
        {"starting_cash_micros": 200 * MONEY},
        {"starting_cash_micros": 50 * MONEY, "cap_divisor": 1},
        {"starting_cash_micros": 0, "recapitalisation": True},  # deposits bring the cash
        {"starting_cash_micros": 4, "least_bet_micros": 1},
    ],
)
def test_rules_under_which_a_bet_is_possible_are_accepted(trading: dict[str, Any]) -> None:
    """The largest bet may be the least one."""
    assert not outcome(traded(**trading))


def test_an_old_ledger_with_such_amounts_verifies_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command is decided again as it was decided, a retry is a retry, and only a new contest is refused."""
    path, sent = tmp_path / "old.db", contest(pool=10, rules=RELATIVE_50)
    with monkeypatch.context() as before, Ledger.open(path) as ledger:
        before.setattr(batch, "check_new_contests", lambda _: None)
        ledger.handle(sent, "cup")
    with Ledger.open(path) as ledger:
        assert ledger.handle(sent, "cup").duplicate
        told: list[AnyCommand] = [opened(), entry(), forecast(), resolution(), finalization()]
        for number, command in enumerate(told):
            ledger.handle(command, f"c{number}")
        with pytest.raises(Refused, match="pool_not_payable"):
            ledger.handle(contest("cap", pool=10, rules=RELATIVE_50), "cap")
        with pytest.raises(Refused, match="nobody_wins"):
            ledger.handle(payment(), "pay")
    assert verify(path).position == 6


UNSEEN = [
    "ada\ufe0f", "ada\u3164", "\u3164", "a\u115fda", "\u1160ada", "ada\u2800", "\u2800", "a\u034fda", "ada\u17b4",
    "ada\u17b5", "ada\u180b", "ada\uffa0", "ada\U000e0100", "ada\U0001d159", "❤\ufe0f",
]  # fmt: skip


def commands_with(text: str) -> dict[str, Any]:
    """A command for each field that can bring an id."""
    choice = opened("colour", kind="multiple_choice", outcomes=("red", "other"))
    return {
        "question": opened(text),
        "outcomes": structs.replace(choice, outcomes=("red", text, "other")),
        "add": addition(text),
        "contest": contest(text),
        "participant": forecast(participant=text),
        "participant (enrolled)": enrolment(participant=text),
        "participant (excluded)": exclusion(participant=text),
    }  # fmt: skip


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """A ledger with a question, a choice and a contest."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle(opened(), "q")
        ledger.handle(opened("colour", kind="multiple_choice", outcomes=("red", "other")), "colour")
        ledger.handle(contest("cup"), "cup")
        yield ledger


@pytest.mark.parametrize("field", commands_with("x"))
def test_a_new_id_that_cannot_be_seen_is_refused(ledger: Ledger, field: str) -> None:
    """The message names the character by its code point; nothing is recorded."""
    before = ledger.head()
    for text in UNSEEN:
        with pytest.raises(Refused, match=r"U\+[0-9A-F]{4,5}.* cannot be seen") as refused:
            ledger.handle(commands_with(text)[field], "c")
        assert (refused.value.code, refused.value.field) == ("id_not_visible", field.partition(" ")[0])
    assert ledger.head() == before


@pytest.mark.parametrize("field", commands_with("x"))
def test_a_new_id_that_this_python_does_not_know_is_refused(ledger: Ledger, field: str) -> None:
    """A character that its Unicode has not assigned may turn out to be a mark, or one that cannot be seen."""
    before = ledger.head()
    for text in ("ada\u0378", "\u0378"):
        with pytest.raises(Refused) as refused:
            ledger.handle(commands_with(text)[field], "c")
        assert (refused.value.code, refused.value.field) == ("id_not_plain", field.partition(" ")[0])
    assert ledger.head() == before


@pytest.mark.parametrize(
    "text", ["a\u200dda", "a\u200cda", "\ufeffada", "\u3000ada", "ada\u00a0", "\x07ada", "\x9bada"]
)
def test_joiners_blanks_and_control_codes_were_always_refused(ledger: Ledger, text: str) -> None:
    """They are not printable, whether they are new or not."""
    with pytest.raises(Refused) as refused:
        ledger.handle(forecast(participant=text), "c")
    assert refused.value.code == "id_not_plain"


def test_batches_and_columns_are_checked_like_single_commands(ledger: Ledger) -> None:
    """The quick way of forecasts, in which most of them are recorded, lets none through."""
    people = ["bob", "ada\ufe0f", "cyd", "eve\u0378"]
    single = ledger.handle_many([structs.replace(forecast(participant=each), id=f"s {each[:3]}") for each in people])
    columns = ForecastColumns(
        id=["1", "2", "3", "4"], at=[forecast().at] * 4, question=["rain"] * 4, participant=people,
        probability=[Decimal("0.5")] * 4,
    )  # fmt: skip
    for outcomes in (single, ledger.handle_many(columns)):
        assert [getattr(outcome, "code", "recorded") for outcome in outcomes] == [
            "recorded",
            "id_not_visible",
            "recorded",
            "id_not_plain",
        ]


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log from before the rule, with a question, an outcome, a contest and participants whose ids cannot be seen."""
    path = tmp_path / "old.db"
    with monkeypatch.context() as before, Ledger.open(path) as ledger:
        before.setattr(batch, "check_new_ids", lambda *_: None)
        ledger.handle(opened("rain\ufe0f"), "q")
        ledger.handle(opened("snow"), "s")
        ledger.handle(contest("cup\u3164"), "cup")
        ledger.handle(entry("cup\u3164", "rain\ufe0f"), "a")
        ledger.handle(forecast("rain\ufe0f", participant="ada\ufe0f"), "f")
        ledger.handle(forecast("rain\ufe0f", participant="ada"), "g")
    return path


def test_an_old_log_verifies_and_reads(old: Path) -> None:
    """Each command is decided again as it was decided."""
    assert verify(old).position == 6
    board = replay(old).table("standing")
    assert {row["participant"] for row in board.rows()} == {"ada", "ada\ufe0f"}


@pytest.mark.parametrize("sealed", [False, True])
def test_an_old_ledger_goes_on_with_its_ids(old: Path, sealed: bool) -> None:
    """What it has can be forecast on, withdrawn, closed and resolved; a retry is a retry; only a new id is refused."""
    segments = None
    if sealed:
        segments = old.with_name("segments")
        seal(old, segments)
    with Ledger.open(old, segments=segments) as ledger:
        assert ledger.handle(opened("rain\ufe0f"), "q").duplicate
        assert ledger.handle(forecast("rain\ufe0f", participant="ada\ufe0f"), "f").duplicate
        ledger.handle(forecast("snow", participant="ada\ufe0f"), "f2")
        ledger.handle(withdrawal("rain\ufe0f", participant="ada\ufe0f"), "w")
        for question, who in (("snow", "bob\ufe0f"), ("rain\ufe0f", "ada\u3164")):
            with pytest.raises(Refused, match="id_not_visible"):
                ledger.handle(forecast(question, participant=who), "new")
        ledger.handle(closing("rain\ufe0f"), "close")
        ledger.handle(resolution("rain\ufe0f"), "r")
    assert verify(old).position == 10


NEWER = "ada\u0378\U0001fae8"  # as a later Unicode may assign them, of which this Python does not know all


def test_a_log_of_a_newer_python_verifies_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that is plain there is plain in an audit everywhere; only what is new is refused here."""
    path = tmp_path / "newer.db"
    with monkeypatch.context() as there, Ledger.open(path) as ledger:
        there.setattr(checks, "is_known_plain", lambda _: True)
        there.setattr(forecasts, "is_known_plain", lambda _: True)
        ledger.handle(opened(NEWER, category=NEWER), NEWER)
        ledger.handle_many([structs.replace(forecast(NEWER, participant=who), id=f"f {who}") for who in (NEWER, "bo")])
    forecasts._kept_text.cache_clear()
    assert verify(path).position == 3
    assert {row["participant"] for row in replay(path).table("standing").rows()} == {"bo", NEWER}
    with Ledger.open(path) as ledger:
        assert ledger.handle(opened(NEWER, category=NEWER), NEWER).duplicate
        ledger.handle(forecast(NEWER, participant=NEWER), "f")
        ledger.handle(withdrawal(NEWER, participant=NEWER), "w")
        with pytest.raises(Refused, match="id_not_plain"):
            ledger.handle(forecast(NEWER, participant=f"{NEWER}2"), "g")
    assert verify(path).position == 5
