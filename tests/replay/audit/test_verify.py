"""Checking a log that somebody else may have written: each check, where it stops, and what it says."""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partialmethod
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import (
    TAGS,
    AnyEvent,
    ContestFinalized,
    ContestOpened,
    ForecastMade,
    ParticipantEnrolled,
)
from forecast_ledger.ledger.model.log import START, Checkpoint
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import CHECKS, run_checks, verify
from forecast_ledger.replay.checking.row_checker import RowChecker
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, UNREADABLE, USAGE, main
from forecast_ledger.replay.reading.log import AsOf, Cut, Log
from forecast_ledger.replay.reading.replay import replay
from forecast_ledger.replay.writing.store import pay
from forecast_ledger.replay.writing.store import prizes_from_log as worth
from tests.support import oracle
from tests.support.forging import chained, enveloped, in_first_form, written
from tests.support.given import (
    AFTER,
    DAY,
    NOW,
    bet,
    contest,
    day,
    decision,
    entry,
    exclusion,
    finalization,
    forecast,
    forecasts,
    micros,
    opened,
    payment,
    resolution,
    restatement,
    revocation,
    trading_floor,
)
from tests.support.given import prizes_paid as prizes
from tests.support.logs import written as as_log

SECOND = 10**6  # µs
ELSEWHERE = b'"previous":"' + b"f" * 64 + b'"'
# Against a median of 0.5, takes of 1, 1.6, 0.4 and 1 in 4: 25, 40, 10 and 25 of 100.
CHANCES = {"ada": "0.5", "bob": "0.8", "cyd": "0.2", "dan": "0.5"}
RIGHT: dict[str, Any] = {"ada": 25, "bob": 40, "cyd": 10, "dan": 25}
SEALED: list[AnyCommand] = [
    opened(),
    contest(pool=100),
    entry(),
    *forecasts(**CHANCES),
    resolution(),
    finalization(),
]
SEAL = len(SEALED)  # log position
PAID = [*SEALED, payment()]


def forged(path: Path, happened: Iterable[AnyEvent], earlier: int = 0) -> str:
    """A log of these events, a second apart, with every digest right, whatever a decider would say of them.

    earlier: the position of a row that was recorded 1 µs before the row before it.
    """
    rows = enveloped(happened, NOW, SECOND)
    if earlier:
        rows[earlier - 1] = structs.replace(rows[earlier - 1], recorded_at=rows[earlier - 2].recorded_at - 1)
    return written(path, rows)


def kept(path: Path, rows: Sequence[tuple[int, str, bytes]]) -> None:
    """A store of these rows."""
    store = StoredLog.open(str(path), "main")
    try:
        store.append(rows)
    finally:
        store.close()


def happened(*commands: AnyCommand) -> list[AnyEvent]:
    """Return the events that a ledger records for commands."""
    return [recorded.event for recorded in oracle.history(*commands)]


SEALED_EVENTS, PAID_EVENTS = happened(*SEALED), happened(*PAID)
OPEN_EVENTS = SEALED_EVENTS[:-1]


def stops(path: str, as_of: AsOf = None) -> tuple[int, str]:
    """Return the log position at which a verification stops, and the message."""
    with pytest.raises(Corrupt) as stopped:
        verify(path, as_of=as_of)
    return stopped.value.position, str(stopped.value)


# --- a log that is fine


@pytest.mark.parametrize("commands", [[], SEALED, PAID], ids=["empty", "sealed", "paid"])
def test_a_log_that_this_project_wrote_is_verified_to_its_head(tmp_path: Path, commands: list[AnyCommand]) -> None:
    """Log position and digest are those that the ledger holds; not a byte is changed."""
    path = tmp_path / "log.db"
    with Ledger.open(path, clock=lambda: NOW, prizes=worth) as ledger:
        ledger.handle_many(oracle.with_ids(commands))
        head = ledger.head()
    before = path.read_bytes()
    assert verify(str(path)) == head
    assert path.read_bytes() == before


@pytest.mark.parametrize("preset", [name for name, rules in PRESETS.items() if rules.take != "none"])
def test_what_pay_records_is_verified_under_every_preset(tmp_path: Path, preset: str) -> None:
    """A later revocation and an open contest beside it change nothing."""
    path = str(tmp_path / "log.db")
    asked = [structs.replace(command, rules=preset) if command == SEALED[1] else command for command in SEALED]
    later: list[AnyCommand] = [revocation(), resolution(outcome="no"), contest("league", pool=10), entry("league")]
    with Ledger.open(path, prizes=worth) as ledger:
        ledger.handle_many(oracle.with_ids([*asked, *later]))
        assert pay(ledger, "cup", AFTER)
        assert verify(path) == ledger.head()


def test_a_watcher_hears_how_far_the_verification_is(tmp_path: Path) -> None:
    """Log positions."""
    heard: list[int] = []
    verify(forged(tmp_path / "log.db", PAID_EVENTS), on_progress=heard.append)
    assert heard == [SEAL + 4]


@pytest.mark.parametrize("as_of", [*range(SEAL + 5), "2026-03-31T00:00:09Z"])
def test_every_cut_of_a_sound_log_is_sound(tmp_path: Path, as_of: AsOf) -> None:
    """A cut may lie between the payments of one command, or at the instant of the seal."""
    path = forged(tmp_path / "log.db", PAID_EVENTS)
    assert verify(path, as_of=as_of).position == (as_of if isinstance(as_of, int) else SEAL)


def test_what_cannot_be_verified_says_why(tmp_path: Path) -> None:
    """No such log; no such position; no such instant. Nothing is created."""
    with pytest.raises(Unavailable, match="no such ledger"):
        verify(str(tmp_path / "none.db"))
    assert not list(tmp_path.iterdir())
    path = forged(tmp_path / "log.db", SEALED_EVENTS)
    for as_of, code in ((SEAL + 1, "out_of_range"), (-1, "out_of_range"), ("noon", "bad_instant")):
        with pytest.raises(Refused) as refused:
            verify(path, as_of=as_of)
        assert refused.value.code == code


def test_how_many_digests_cannot_be_rebuilt_is_told(tmp_path: Path) -> None:
    """A third of an hour has more decimals than the log keeps; nothing is wrong with that."""
    for count in range(3):
        told = (
            f"; {2 + count} commands, up to log position {2 + count}, are known by digests from before the normal form"
        )
        told += ["", "; 1 command had fields", "; 2 commands had fields"][count]
        made = [forecast(participant=f"p{number}", probability=1 / 3) for number in range(count)]
        commands: list[AnyCommand] = [opened(), forecast(), *made]
        path = written(tmp_path / f"{count}.db", in_first_form(oracle.history(*commands), commands))
        [result] = run_checks(Log(path), only=["decided"]).results
        says = result.says.removeprefix(CHECKS["decided"])
        assert (result.found, says[: len(told)]) == ("ok", told)
        assert says.endswith("were not compared: " + ", ".join(str(3 + n) for n in range(count)) if count else told)


# --- each check


def changed(path: str, statement: str, *values: Any) -> str:
    """The log after somebody was at it with a database client."""
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute(statement, values).rowcount >= 1
    return path


def rewritten(path: Path, *commands: AnyCommand, of: int, change: Callable[[bytes], bytes]) -> str:
    """A log in which the body of one row is other bytes, with a digest of their own, and the rows after follow it."""
    head, rows = START, []
    for recorded in oracle.history(*commands):
        row, _ = log.seal(structs.replace(recorded, previous=head.digest))
        body = row[: row.rindex(b',"digest"')]
        if recorded.position == of:
            assert change(body) != body
            body = change(body)
        digest = sha256(body).hexdigest()
        rows.append((recorded.position, TAGS[type(recorded.event)], body + b',"digest":"' + digest.encode() + b'"}'))
        head = Checkpoint(recorded.position, digest)
    kept(path, rows)
    return str(path)


Broken = Callable[[Path], str]  # from where a log is to be to where it is


def with_client(statement: str) -> Broken:
    """A sealed and paid log, after a database client had this done to the fourth row."""
    return lambda path: changed(forged(path, PAID_EVENTS), f"{statement} WHERE originator_version = 4")


def with_bytes(old: bytes, new: bytes, of: int = 4) -> Broken:
    """Such a log, in which one row has other bytes, and a digest of them."""
    return lambda path: rewritten(path, *PAID, of=of, change=lambda body: re.sub(old, new, body))


def with_events(said: Callable[[], list[AnyEvent]]) -> Broken:
    """A log of events that no decider has allowed."""
    return lambda path: forged(path, said())


def founded(said: Sequence[AnyEvent], rules: RuleSet) -> Broken:
    """A log of events, if the contest, the second of them, had these rules."""
    return with_events(lambda: [said[0], structs.replace(said[1], rules=rules), *said[2:]])


def purchased(rules: str = "arena-v1", *, decided: bool = True, **other: int) -> Broken:
    """500 at 0.40 buy 1,250 shares, by Kalshi's rules for a fee of 0.07 x 1,250 x 0.24 = 21.

    other: what is more or less in the last row. decided: whether the decision is there.
    """

    def said() -> list[AnyEvent]:
        *before, held, bought = happened(*trading_floor(rules=rules), decision(bet(500)))
        fields = {name: getattr(bought, name) + more for name, more in other.items()}
        return [*before, *[held] * decided, structs.replace(bought, **fields)]

    return with_events(said)


def not_allowed(event: str, command: str, *code: str) -> str:
    """What is said of an event that no decider records."""
    return f"{event}: expected {command} to be allowed; found {': '.join(code)}"


def weekly(starts_at: int | None, contest: str = "week", rules: str = "arena-v2", series: str = "") -> ContestOpened:
    """A contest of the week from then on."""
    opened = ContestOpened(at=micros(1), contest=contest, rules=PRESETS[rules], payable_unit=10_000, series=series)
    return structs.replace(opened, starts_at=starts_at)


def decided_too_late(path: Path) -> str:
    """The five newest cohorts decide, and this is the sixth."""
    *said, held = happened(*trading_floor(rules="arena-v2"), decision())
    newer = [weekly(micros(1) + week * 7 * DAY, f"week {week}") for week in range(1, 6)]
    verify(forged(path.with_name("fifth.db"), [*said, *newer[1:], held]))
    return forged(path, [*said, *newer, held])


def knew_the_answer() -> list[AnyEvent]:
    """Zoe is sure of what has been resolved, and says that she was before."""
    sure = ForecastMade(at=micros(11), question="rain", participant="zoe", probabilities=(10**9, 0))
    return [*happened(opened(), resolution()), sure]


def entered_after_the_seal() -> list[AnyEvent]:
    """A question for a board that is sealed."""
    return [*SEALED_EVENTS, *happened(opened("wind"), contest(), entry(question="wind"))[::2]]


def enrolled_too_late() -> list[AnyEvent]:
    """Everybody has decided and nothing is open: who comes now would open the contest again."""
    late = ParticipantEnrolled(at=micros(25), contest="week", participant="bob")
    return [*happened(*trading_floor(), decision()), late]


def back_in_time(path: Path) -> str:
    """The fourth row was recorded before the third."""
    return forged(path, PAID_EVENTS, earlier=4)


def out_of_order() -> list[AnyEvent]:
    """Ada's second forecast says it is earlier than her first: nobody may say that."""
    *before, last = happened(opened(), forecast(at=day(12)), forecast(at=day(13)))
    return [*before, structs.replace(last, at=micros(11))]


SWAP = "UPDATE stored_events SET state = CAST(replace(state, '500000000', '600000000') AS BLOB)"
missing = with_client("DELETE FROM stored_events")
another_number = with_client(SWAP)  # Ada said 60%, says somebody who does not know of digests
of_no_known_type = with_bytes(b"forecast_made.v1", b"forecast_made.v9")
misnumbered = with_bytes(b'"position":4', b'"position":5')  # everything follows everything
unchained = with_bytes(rb'"previous":"[0-9a-f]{64}"', ELSEWHERE)  # it follows a row that is not there
no_distribution = with_events(
    lambda: [*PAID_EVENTS[:3], structs.replace(PAID_EVENTS[3], probabilities=(500_000_000, 0)), *PAID_EVENTS[4:]]
)
wrong_prize = with_events(lambda: [*SEALED_EVENTS, *prizes(**RIGHT | {"ada": 15, "bob": 50})])
a_share_too_many = purchased(shares=1)

BROKEN: dict[str, dict[str, tuple[Broken, int, str]]] = {
    "positions": {
        "missing": (missing, 4, "the row is missing; the next one is 5"),
        "between": (
            with_client("UPDATE stored_events SET originator_version = 4.5"),
            4,
            "expected log position 4; found a row at 4.5",
        ),
        "before the first": (
            with_client("INSERT INTO stored_events SELECT originator_id, 0, topic, state FROM stored_events"),
            1,
            "expected log position 1; found a row at 0",
        ),
        "misnumbered": (misnumbered, 4, "the row states the log position 5"),
    },
    "digests": {
        "another number": (another_number, 4, "the row's bytes have digest"),
        "unchained": (unchained, 4, "expected previous digest "),
    },
    "schemas": {
        "spaced": (with_bytes(b'"position":4', b'"position": 4'), 4, "the row is not in canonical bytes"),
        "a default spelt out": (with_bytes(b"}$", b',"cdf":[]}'), 4, "the row is not in canonical bytes"),
        "the default of a new field": (
            with_bytes(b'"open_end_ppm":50000', b'"open_end_ppm":50000,"consensus_of":"all"', of=2),
            2,
            "the row is not in canonical bytes",
        ),
    },
    "clock": {"back in time": (back_in_time, 4, "expected recorded_at ")},
    "store": {
        "mislabelled": (
            with_client("UPDATE stored_events SET topic = 'x'"),  # no digest covers that type
            4,
            "the event has type forecast_made.v1, but the store's column has x",
        )
    },
    "decided": {
        "no distribution": (no_distribution, 4, "forecast_made.v1: expected probabilities[1] 0.5; found 0"),
        "out of order": (
            with_events(out_of_order),
            3,
            not_allowed("forecast_made.v1", "submit_forecast", "out_of_order: at = '2026-03-11T00:00:00Z'"),
        ),
        "knew the answer": (
            with_events(knew_the_answer),
            3,
            not_allowed(
                "forecast_made.v1",
                "submit_forecast",
                "question_resolved: at = '2026-03-11T00:00:00Z'",
                "the question is already resolved or annulled",
            ),
        ),
        "more is better and less is": (
            founded(PAID_EVENTS, RuleSet(name="own", kernel="ln", cdf_kernel="crps")),
            2,
            not_allowed(
                "contest_opened.v1",
                "open_contest",
                "rules_not_consistent: rules = 'own'",
                "kernels must agree on the better score",
            ),
        ),
        "named outcomes where ranges are scored": (
            founded(SEALED_EVENTS, RuleSet(name="own", cdf_kernel="ln")),
            3,
            not_allowed(
                "question_added.v1",
                "add_question",
                "unscorable_question: question = 'rain'",
                "its rule set has no kernel for named outcomes",
            ),
        ),
        "from Monday": (
            with_events(lambda: [weekly(micros(2))]),
            1,
            "contest_opened.v1: expected starts_at 2026-03-01T00:00:00Z; found 2026-03-02T00:00:00Z",
        ),
        "without a start": (
            with_events(lambda: [weekly(None)]),
            1,
            "contest_opened.v1: expected starts_at 2026-03-01T00:00:00Z; found none",
        ),
        "a series in which nobody trades": (
            with_events(lambda: [weekly(None, rules="baseline", series="weeks")]),
            1,
            not_allowed("contest_opened.v1", "open_contest", "not_trading: rules = 'baseline': "),
        ),
        "from a Sunday beyond the calendar": (
            with_events(lambda: [weekly(micros(1) + 7 * 10**9 * DAY)]),
            1,
            not_allowed("contest_opened.v1", "open_contest", "bad_instant: starts_at = '604801772323200000000': "),
        ),
        "second of its week": (
            with_events(lambda: [weekly(micros(1)), weekly(micros(1), "again")]),
            2,
            not_allowed("contest_opened.v1", "open_contest", "duplicate_cohort: starts_at = '2026-03-01T00:00:00Z': "),
        ),
        "decided too late": (
            decided_too_late,
            15,
            not_allowed("decision_recorded.v1", "record_decision", "cohort_not_deciding: contest = 'week'"),
        ),
        "a fee too low": (
            purchased("arena-v1-kalshi", fee=-(10**6)),
            11,
            "shares_bought.v1: expected fee 21.00; found 20.00",
        ),
        "a share too many": (a_share_too_many, 11, "shares_bought.v1: expected shares 1250.00; found 1250.000001"),
        "a leg without a decision": (
            purchased(decided=False),
            10,
            "shares_bought.v1: expected no more events of command 'c9'; found one more",
        ),
        "entered after the seal": (
            with_events(entered_after_the_seal),
            SEAL + 2,
            not_allowed("question_added.v1", "add_question", "contest_finalized: contest = 'cup': "),
        ),
        "paid before the seal": (
            with_events(lambda: [*OPEN_EVENTS, *prizes(ada=25)]),
            SEAL,
            not_allowed("prize_paid.v1", "pay_prizes", "contest_not_finalized: contest = 'cup': "),
        ),
        "sealed too early": (
            with_events(lambda: [*happened(*trading_floor()), ContestFinalized(at=micros(25), contest="week")]),
            10,
            not_allowed(
                "contest_finalized.v1",
                "finalize_contest",
                "contest_not_complete: contest = 'week'",
                "participants without a decision: 1, open positions: 0",
            ),
        ),
        "enrolled too late": (
            with_events(enrolled_too_late),
            11,
            not_allowed(
                "participant_enrolled.v1",
                "enrol_participant",
                "contest_complete: contest = 'week'",
                "every participant has taken a decision and no position is open",
            ),
        ),
    },
    "payouts": {
        "wrong prize": (wrong_prize, 10, "contest 'cup': expected 25.00 for 'ada', as on the sealed board; found 15.00")
    },
}
BROKEN_LOGS = [pytest.param(check, *case, id=name) for check, logs in BROKEN.items() for name, case in logs.items()]


@pytest.mark.parametrize(("check", "broken", "position", "says"), BROKEN_LOGS)
def test_each_check_names_the_log_position_and_what_is_wrong(
    tmp_path: Path, check: str, broken: Broken, position: int, says: str
) -> None:
    """The message is about the first row that cannot be trusted, and no other."""
    at, said = stops(broken(tmp_path / "log.db"))
    assert (at, said.startswith(f"log position {position}: {says}")) == (position, True), said


@pytest.mark.parametrize(("check", "broken", "position", "says"), BROKEN_LOGS)
def test_each_check_fails_by_itself(tmp_path: Path, check: str, broken: Broken, position: int, says: str) -> None:
    """Only this check finds damage; the checks that need it are not made."""
    path = broken(tmp_path / "log.db")
    found = {result.check: result.found for result in run_checks(Log(path)).results}
    wrong = "differs" if check == "payouts" else "damaged"
    assert {name for name, what in found.items() if what not in {"ok", "not checked"}} == {check}
    assert found[check] == wrong
    alone = run_checks(Log(path), only=[check])
    assert [result.found for result in alone.results] == [wrong]
    assert len(alone.damage + alone.differences) >= 1


def test_a_row_of_a_newer_version_is_not_checked_and_is_no_damage(tmp_path: Path) -> None:
    """Nothing is said to be damaged; who runs `verify` is told to take a newer version, and the exit code is 4."""
    path = of_no_known_type(tmp_path / "log.db")
    found = {result.check: (result.found, result.position) for result in run_checks(Log(path)).results}
    assert {name: found[name] for name in ("positions", "digests", "clock")} == dict.fromkeys(
        ("positions", "digests", "clock"), ("ok", None)
    )
    assert {name: found[name] for name in ("schemas", "decided", "payouts")} == dict.fromkeys(
        ("schemas", "decided", "payouts"), ("not checked", 4)
    )
    result = CliRunner().invoke(main, ["verify", path])
    assert (result.exit_code, "damage" in result.output, "restore" in result.output) == (DAMAGED, False, False)
    assert "upgrade this process: a newer version wrote this row" in result.stderr
    assert "too new: 1 finding" in result.stderr


@pytest.mark.parametrize(
    ("broken", "fine"),
    [
        (misnumbered, ["digests", "schemas", "clock"]),
        (another_number, ["positions", "schemas", "clock"]),
        (of_no_known_type, ["positions", "digests", "clock"]),
        (back_in_time, ["positions", "digests", "schemas", "decided", "payouts"]),
        (no_distribution, ["positions", "digests", "schemas", "clock"]),
        (a_share_too_many, ["positions", "digests", "schemas", "clock"]),
        (wrong_prize, ["positions", "digests", "schemas", "clock", "decided"]),
    ],
)
def test_what_does_not_rest_on_a_check_goes_on_without_it(tmp_path: Path, broken: Broken, fine: list[str]) -> None:
    """Asked for alone, it finds nothing wrong."""
    path = broken(tmp_path / "log.db")
    found = run_checks(Log(path), only=fine)
    assert [(result.check, result.found) for result in found.results] == [(check, "ok") for check in fine]
    assert found.damage + found.differences == [wrong for wrong in found.damage if wrong.check == "clock"]
    resting = run_checks(Log(path), only=["payouts"])
    assert [result.found for result in resting.results] != ["ok"] or broken is back_in_time


def test_rows_that_have_changed_places_are_found_by_their_number_and_their_digest(tmp_path: Path) -> None:
    """Both at the first of the two; nothing is wrong with either as a row."""
    path = forged(tmp_path / "log.db", PAID_EVENTS)
    for old, new in ((4, -4), (5, 4), (-4, 5)):
        changed(path, "UPDATE stored_events SET originator_version = ? WHERE originator_version = ?", new, old)
    found = {result.check: (result.found, result.position) for result in run_checks(Log(path)).results}
    assert [found[check] for check in ("positions", "digests", "schemas")] == [
        ("damaged", 4),
        ("damaged", 4),
        ("ok", None),
    ]


@given(st.data())
def test_no_bit_of_a_row_can_flip_unseen(data: st.DataObject) -> None:
    """Whichever it is, the row is named; what is left may be no JSON, no text and no number."""
    rows = [log.seal(recorded)[0] for recorded in oracle.history(*SEALED)]
    place = data.draw(st.integers(0, len(rows) - 1))
    bit = data.draw(st.integers(0, 8 * len(rows[place]) - 1))
    flipped = bytearray(rows[place])
    flipped[bit // 8] ^= 1 << bit % 8
    eyes = RowChecker(Cut(None))
    passed = list(eyes.pages(iter([([*rows[:place], bytes(flipped), *rows[place + 1 :]], [])])))
    assert passed == []
    assert {wrong.position for wrong in eyes.damage.values()} >= {place + 1}
    assert min(wrong.position for wrong in eyes.damage.values()) == place + 1
    assert eyes.last.position == len(rows)


@given(st.lists(st.binary(max_size=80), min_size=1, max_size=4))
def test_rows_of_any_bytes_are_damaged_and_nothing_worse(rows: list[bytes]) -> None:
    """Neither digest nor schema is right."""
    eyes = RowChecker(Cut(None))
    assert list(eyes.pages(iter([(rows, [])]))) == []
    assert {eyes.damage[check].position for check in ("digests", "schemas")} == {1}


def test_a_cut_before_the_damage_sees_none_of_it(tmp_path: Path) -> None:
    """The damaged row may be on the page that is read; the search for an instant does not go beyond it."""
    path = another_number(tmp_path / "log.db")
    assert verify(path, as_of=3).position == 3
    assert verify(path, as_of="2026-03-31T00:00:03Z").position == 3
    assert stops(path, 4)[0] == stops(path, "2026-03-31T00:00:04Z")[0] == 4


def test_a_file_cut_short_is_damaged_or_no_ledger(tmp_path: Path) -> None:
    """Wherever it ends, never sound to the head and never a traceback."""
    whole = Path(forged(tmp_path / "whole.db", happened(*(opened(f"q{number}") for number in range(200)))))
    with closing(sqlite3.connect(whole)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data, ends = whole.read_bytes(), set()
    for part in range(1, 20):
        path = tmp_path / f"{part}.db"
        path.write_bytes(data[: len(data) * part // 20])
        result = run("verify", str(path))
        ends.add(result.exit_code)
        assert "ok" not in result.stdout.splitlines()[1:2] or result.exit_code == DAMAGED
    assert ends <= {UNREADABLE, DAMAGED}


def test_checks_carry_over_from_page_to_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of 22 rows, read 10 at a time, is checked whole, without one row, and with one instant too early."""
    page = 10
    monkeypatch.setattr(StoredLog, "pages_with_types", partialmethod(StoredLog.pages_with_types, page))
    many = happened(*(opened(f"q{number}") for number in range(22)))
    whole = forged(tmp_path / "whole.db", many)
    with closing(StoredLog.open(whole, "main", read_only=True)) as store:
        assert [len(rows) for rows, _ in store.pages_with_types()] == [page, page, 2]
    assert verify(whole).position == 22
    for position in (2 * page + 1, page + 1, page):
        assert verify(whole, as_of=position).position == position
        gone = changed(whole, "DELETE FROM stored_events WHERE originator_version = ?", position)
        assert stops(gone)[0] == position
        back = forged(tmp_path / f"back-{position}.db", many[:position], earlier=position)
        before = NOW + (position - 1) * SECOND
        said = f"expected recorded_at {before}, of the row before, or later; found {before - 1}"
        assert stops(back) == (position, f"log position {position}: {said}")


def test_every_check_that_is_named_can_fail() -> None:
    """Every check that `verify` prints has a log in this file that makes it fail."""
    assert list(BROKEN) == list(CHECKS)


# --- payouts


def test_a_payment_that_sums_to_the_pool_but_is_not_the_boards_is_found(tmp_path: Path) -> None:
    """A writer used other prizes; the message names the first wrong row."""
    path = str(tmp_path / "log.db")
    wrong = {"ada": 25_000_000, "bob": 40_010_000, "cyd": 9_990_000, "dan": 25_000_000}
    with Ledger.open(path, prizes=lambda *_: wrong) as ledger:
        ledger.handle_many(oracle.with_ids(PAID))
        assert ledger.head().position == 13
    assert stops(path) == (
        11,
        "log position 11: contest 'cup': expected 40.00 for 'bob', as on the sealed board; found 40.01",
    )


@pytest.mark.parametrize(
    ("paid", "position", "says"),
    [
        (
            {"ada": 25, "bob": 40, "cyd": 10, "zoe": 25},
            13,
            "expected 0.00 for 'zoe', as on the sealed board; found 25.00",
        ),
        ({"zoe": 100}, 10, "expected 0.00 for 'zoe', as on the sealed board; found 100.00"),
        ({"bob": 40, "ada": 25, "dan": 25}, 12, "expected 10.00 for 'cyd', as on the sealed board; found 0.00"),
        ({"ada": 25}, 10, "expected 40.00 for 'bob', as on the sealed board; found 0.00"),
        ({"ada": "0.01"}, 10, "expected 25.00 for 'ada', as on the sealed board; found 0.01"),
    ],
    ids=["to a stranger", "all to a stranger", "not to the last", "only to the first", "a cent"],
)
def test_who_is_paid_wrongly_or_not_at_all_is_named(
    tmp_path: Path, paid: dict[str, Any], position: int, says: str
) -> None:
    """Payments of a contest are recorded together, so that one that is missing is missing at the last of them."""
    path = forged(tmp_path / "log.db", [*SEALED_EVENTS, *prizes(**paid)])
    assert stops(path)[0] == position
    assert says in stops(path)[1]


def test_a_winner_left_unpaid_is_found_wherever_the_log_goes_on(tmp_path: Path) -> None:
    """Only a cut at the very last payment may lie between the payments of one command."""
    path = forged(tmp_path / "log.db", [*SEALED_EVENTS, *prizes(ada=25), *happened(opened("wind"))])
    assert stops(path)[0] == stops(path, 11)[0] == stops(path, "2026-03-31T00:00:10Z")[0] == 10
    assert verify(path, as_of=10).position == 10


def test_a_payment_in_part_is_completed(tmp_path: Path) -> None:
    """Correct payments stay, whatever was recorded since; the other winners are paid, and the log is sound."""
    path = forged(tmp_path / "log.db", [*SEALED_EVENTS, *prizes(ada=25), *happened(opened("wind"))])
    with Ledger.open(path, prizes=worth) as ledger:
        receipt = pay(ledger, "cup", AFTER)
        assert receipt is not None
        assert (receipt.first, receipt.last) == (12, 14)
    rows = run("table", path, "prizes", "--format", "csv").stdout.splitlines()[1:]
    assert rows == ["cup,ada,25.00,25.00", "cup,bob,40.00,40.00", "cup,cyd,10.00,10.00", "cup,dan,25.00,25.00"]
    assert verify(path).position == 14


def test_who_is_excluded_must_not_be_paid(tmp_path: Path) -> None:
    """Bob's 40 are not his to have: Ada's part is larger by then, and hers is the first row."""
    excluded: list[AnyCommand] = [*SEALED[:-1], exclusion(participant="bob"), SEALED[-1]]
    path = forged(tmp_path / "log.db", [*happened(*excluded), *prizes(bob=100)])
    assert stops(path)[0] == 11
    assert "expected 0.00 for 'bob'" in stops(path)[1]


def test_of_several_wrong_payments_the_first_of_the_log_is_named(tmp_path: Path) -> None:
    """Whichever contest was opened first."""
    both = [*SEALED[:-1], contest("late", pool=100), entry("late"), finalization("late"), finalization()]
    first, second = prizes("late", zoe=100), prizes(zoe=100)
    path = forged(tmp_path / "one.db", [*happened(*both), *first, *second])
    assert stops(path)[0] == 13
    assert "contest 'late'" in stops(path)[1]
    path = forged(tmp_path / "two.db", [*happened(*both), *second, *first])
    assert stops(path)[0] == 13
    assert "contest 'cup'" in stops(path)[1]


def test_what_lies_behind_a_cut_is_not_judged(tmp_path: Path) -> None:
    """As of the seal nothing was paid, so no payment is wrong."""
    path = forged(tmp_path / "log.db", [*SEALED_EVENTS, *prizes(zoe=100)])
    assert verify(path, as_of=SEAL).position == SEAL
    assert stops(path, SEAL + 1)[0] == SEAL + 1


@pytest.mark.parametrize(
    "written",
    [
        [*OPEN_EVENTS, *prizes(ada=25)],
        [*SEALED_EVENTS, *prizes("cap", ada=25)],
        [*SEALED_EVENTS, *prizes(ada=25), *prizes(ada=25)],
        [*SEALED_EVENTS, *prizes(ada=25, bob=40, cyd=10, dan="25.01")],
        [*SEALED_EVENTS, *prizes(bob="100.01")],
        [*SEALED_EVENTS, *prizes(ada="24.999")],
        [*SEALED_EVENTS, *prizes(ada=0)],
        [*SEALED_EVENTS, *prizes(ada=-25)],
        [*OPEN_EVENTS, ContestFinalized(at=micros(25), contest="cup"), *prizes(**RIGHT), *SEALED_EVENTS[-1:]],
    ],
    ids=[
        "before the seal",
        "of no contest",
        "twice",
        "together more than the pool",
        "more than the pool",
        "in parts of a cent",
        "nothing",
        "less than nothing",
        "and sealed again",
    ],
)
def test_a_payment_that_no_decider_makes_is_found_as_it_is_read(tmp_path: Path, written: list[AnyEvent]) -> None:
    """The damage is at the first event of its command, before any board is computed."""
    path = forged(tmp_path / "log.db", written)
    last = [recorded.command_id for recorded in enveloped(written)]
    assert stops(path)[0] == last.index(last[-1]) + 1
    assert "sealed board says" not in stops(path)[1]


# It is found later that Ada said 60% on three days: rows 4 to 6, after the one that takes back what was recorded.
RESTATED = oracle.history(
    opened(),
    forecast(at=day(11)),
    restatement(*(forecast(at=day(number), probability="0.6") for number in (11, 12, 13))),
)


@pytest.mark.parametrize(
    ("number", "fields", "says"),
    [
        (5, {"probabilities": (600_000_000, 300_000_000, 100_000_000)}, "expected 2 numbers, one for each outcome"),
        (4, {"probabilities": (1_400_000_000, -400_000_000)}, "expected numbers from 0 to 1; found -0.4 to 1.4"),
        (5, {"until": micros(12)}, "expected an end after 2026-03-12T00:00:00Z"),
    ],
    ids=["numbers", "bounds", "end"],
)
def test_a_forecast_of_a_command_that_a_cut_ends_must_fit_its_question(
    tmp_path: Path, number: int, fields: dict[str, Any], says: str
) -> None:
    """Its command cannot be decided again without the forecasts behind the cut; every table would have the forecast."""
    rows = [*RESTATED]
    change = structs.replace(rows[number - 1].event, **fields)
    rows[number - 1] = structs.replace(rows[number - 1], event=change)
    path = written(tmp_path / "log.db", chained(rows))
    position, message = stops(path, as_of=5)
    assert position == number
    assert says in message
    with pytest.raises(Corrupt, match=re.escape(says)):
        replay(path, as_of=5)
    assert verify(path, as_of=number - 1).position == number - 1
    assert verify(written(tmp_path / "sound.db", RESTATED), as_of=5).position == 5


# --- on the command line


def run(*arguments: str) -> Result:
    """The command line in this process; a traceback would be its exception."""
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_a_log_without_prizes_is_verified_without_tables(tmp_path: Path) -> None:
    """To import what builds them takes a seventh of the time of a short log; one that pays prizes needs the board."""
    imports = "import sys; from forecast_ledger import verify; verify(sys.argv[1]); sys.exit({!r} in sys.modules)"
    program = imports.format("forecast_ledger.projections.tables.catalogue")
    found = [
        subprocess.call([sys.executable, "-c", program, as_log(tmp_path / f"{len(commands)}.db", commands)])
        for commands in (SEALED, PAID)
    ]
    assert found == [0, 1]


def test_a_sound_log_prints_every_check(tmp_path: Path) -> None:
    """Each row has the check, its result and its meaning; the checkpoint, the advice and the verdict are on stderr."""
    path = forged(tmp_path / "log.db", PAID_EVENTS)
    result = run("verify", path, "--format", "csv")
    assert result.exit_code == FINE
    rows = [line.split(",", 3) for line in result.stdout.splitlines()]
    assert rows[0] == ["check", "found", "log_position", "says"]
    assert [(check, found, at, meaning.strip('"').partition("; ")[0]) for check, found, at, meaning in rows[1:]] == [
        (check, "ok", "", meaning) for check, meaning in CHECKS.items()
    ]
    as_of, untold, keep, use, verdict = result.stderr.splitlines()
    assert untold.startswith("a log cannot show by itself whether it was rewritten")
    assert as_of == f"as of log position 13, digest {verify(path).digest}"
    assert keep == f"to keep a checkpoint elsewhere: forecast-ledger checkpoint {path} > FILE"
    assert use == f"to find removed or rewritten rows with it: forecast-ledger verify {path} --checkpoint FILE"
    assert verdict == "ok: 13 events, 7 checks"
    assert run("verify", path, "--quiet").stderr == ""


def test_a_log_is_not_strictly_verified_without_a_checkpoint(tmp_path: Path) -> None:
    """It may have been rewritten as a whole; with a checkpoint of it, nothing is left to find."""
    path = forged(tmp_path / "log.db", PAID_EVENTS)
    (saved := tmp_path / "checkpoint.toml").write_text(run("checkpoint", path).stdout)
    alone, compared = run("verify", path, "--strict"), run("verify", path, "--strict", "--checkpoint", str(saved))
    assert (alone.exit_code, compared.exit_code) == (FINDINGS, FINE)
    assert "the log was not compared with a checkpoint" in alone.stderr
    assert "not ok: 1 finding; the log can be read" in alone.stderr


def test_wrong_payouts_exit_with_1_and_name_every_one(tmp_path: Path) -> None:
    """The log can be read, so its checkpoint is told; of the checks, the first of them."""
    path = wrong_prize(tmp_path / "log.db")
    result = run("verify", path, "--format", "json", "--only", "payouts")
    first = "contest 'cup': expected 25.00 for 'ada', as on the sealed board; found 15.00"
    assert result.exit_code == FINDINGS
    assert json.loads(result.stdout) == [
        {"check": "payouts", "found": "differs", "log_position": 10, "says": f"{first} (and 1 more)"}
    ]
    assert result.stderr.splitlines()[:2] == [
        f"forecast-ledger: log position 10: {first}",
        f"forecast-ledger: log position 11: {first.replace('25', '40').replace('15', '50').replace('ada', 'bob')}",
    ]
    assert result.stderr.splitlines()[2].startswith("as of log position 13, digest ")
    assert result.stderr.splitlines()[-1] == "not ok: 2 findings; the log can be read"


def test_damage_exits_with_4_and_says_how_to_look_closer(tmp_path: Path) -> None:
    """The message has the expected and the found value, and the command that shows the row."""
    path = unchained(tmp_path / "a log.db")
    result = run("verify", path)
    assert result.exit_code == DAMAGED
    told, closer, verdict = result.stderr.splitlines()  # and no word of rows that may be missing
    assert told.startswith("forecast-ledger: the log is damaged: log position 4: expected previous digest ")
    assert told.endswith(f" of the row before; found {'f' * 64}")
    assert closer == f"to see the row: forecast-ledger show '{path}' 4 --raw"
    assert verdict == "damaged: 1 finding"
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:4]] == [
        ["positions", "ok"],
        ["digests", "damaged"],
        ["schemas", "ok"],
    ]
    missing_row = run("verify", missing(tmp_path / "gap.db"), "--only", "payouts")
    assert (missing_row.exit_code, missing_row.stdout.split()[4:8]) == (DAMAGED, ["payouts", "not", "checked", "4"])
    assert "the row is missing; the next one is 5" in missing_row.stderr


def test_quiet_says_nothing_when_all_is_well(tmp_path: Path) -> None:
    """Otherwise it prints only the findings, to stderr, with the same exit codes."""
    sound = run("verify", forged(tmp_path / "log.db", PAID_EVENTS), "--quiet")
    assert (sound.exit_code, sound.output) == (FINE, "")
    damaged = run("verify", another_number(tmp_path / "damaged.db"), "-q")
    assert (damaged.exit_code, damaged.stdout, len(damaged.stderr.splitlines())) == (DAMAGED, "", 3)
    unpaid = run("verify", wrong_prize(tmp_path / "unpaid.db"), "-q")
    assert (unpaid.exit_code, unpaid.stdout, len(unpaid.stderr.splitlines())) == (FINDINGS, "", 4)


def test_a_check_that_there_is_not_is_wrong_usage(tmp_path: Path) -> None:
    """The message names those that there are."""
    result = run("verify", str(tmp_path / "none.db"), "--only", "digest")
    assert (result.exit_code, f"there are: {', '.join(CHECKS)}" in result.stderr) == (USAGE, True)


def test_a_name_that_a_terminal_would_obey_is_shown_escaped(tmp_path: Path) -> None:
    """A forged log may name a winner anything."""
    path = forged(tmp_path / "log.db", [*SEALED_EVENTS, *prizes(**{"\x1b[2J": 25})])
    result = run("verify", path)
    assert (result.exit_code, "\x1b" in result.output, "x1b[2J" in result.stderr) == (FINDINGS, False, True)


def test_a_command_that_damage_cuts_is_not_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its next page cannot be read, nothing is known of the rows that are missing."""
    again = [forecast(at=day(11, hour)) for hour in (1, 2, 3)]
    path = as_log(tmp_path / "log.db", [opened(), forecast(), restatement(*again)])
    monkeypatch.setattr(StoredLog, "pages_with_types", partialmethod(StoredLog.pages_with_types, 4))
    assert verify(path).position == 6  # after a retraction, three forecasts
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "UPDATE stored_events SET state = CAST(replace(state, 'ada', 'bob') AS BLOB) WHERE originator_version = 5"
        )
    assert {(wrong.check, wrong.position) for wrong in run_checks(Log(path)).damage} == {("digests", 5)}
