"""Checking a log that somebody else may have written: each check, where it stops, and what it says."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec import structs

from ledger import Corrupt, Ledger, Refused, Unavailable, log
from ledger.commands import AnyCommand
from ledger.events import TAGS, AnyEvent, ContestFinalized, ForecastMade, SharesBought
from ledger.log import START, Checkpoint, Recorded
from ledger.rules import PRESETS
from ledger.store import PAGE, Store
from replay.cli import DAMAGED, FINE, main
from replay.pay import pay
from replay.pay import prizes as worth
from replay.replay import AsOf
from replay.verify import CHECKS, verify
from tests import oracle
from tests.given import (
    AFTER,
    NOW,
    OPENS,
    bet,
    contest,
    decision,
    entry,
    exclusion,
    finalization,
    forecast,
    micros,
    opened,
    payment,
    resolution,
    revocation,
    trading_floor,
)
from tests.given import (
    prizes_paid as prizes,
)

SECOND = 10**6  # µs
# Against a median of 0.5, takes of 1, 1.6, 0.4 and 1 in 4: 25, 40, 10 and 25 of 100.
CHANCES = {"ada": "0.5", "bob": "0.8", "cyd": "0.2", "dan": "0.5"}
RIGHT: dict[str, Any] = {"ada": 25, "bob": 40, "cyd": 10, "dan": 25}
SEALED: list[AnyCommand] = [
    opened(),
    contest(pool=100),
    entry(),
    *(forecast(participant=who, probability=chance, at=OPENS) for who, chance in CHANCES.items()),
    resolution(),
    finalization(),
]
SEAL = len(SEALED)  # log position
PAID = [*SEALED, payment()]


def forged(path: Path, happened: Iterable[AnyEvent], earlier: int = 0) -> str:
    """A log of these events, a second apart, with every digest right, whatever a decider would say of them.

    earlier: the position of a row that was recorded 1 µs before the row before it.
    """
    head, rows = START, []
    for position, event in enumerate(happened, 1):
        recorded = Recorded(
            position=position,
            recorded_at=NOW + (position - (position == earlier)) * SECOND - (position == earlier),
            command_id=str(position),
            command="",
            previous=head.digest,
            event=event,
        )
        row, digest = log.seal(recorded)
        rows.append((position, TAGS[type(event)], row))
        head = Checkpoint(position, digest)
    kept(path, rows)
    return str(path)


def kept(path: Path, rows: Sequence[tuple[int, str, bytes]]) -> None:
    """A store of these rows."""
    store = Store(str(path), "main")
    try:
        store.append(rows)
    finally:
        store.close()


def happened(*commands: AnyCommand) -> list[AnyEvent]:
    """What a ledger makes of commands."""
    return [recorded.event for recorded in oracle.history(*commands)]


def stops(path: str, as_of: AsOf = None) -> tuple[int, str]:
    """Where a verification stops, and what it says."""
    with pytest.raises(Corrupt) as stopped:
        verify(path, as_of=as_of)
    return stopped.value.position, str(stopped.value)


# --- a log that is fine


@pytest.mark.parametrize("commands", [[], SEALED, PAID], ids=["empty", "sealed", "paid"])
def test_a_log_that_this_project_wrote_is_verified_to_its_head(tmp_path: Path, commands: list[AnyCommand]) -> None:
    """Log position and digest are those that the ledger holds; not a byte is changed."""
    path = tmp_path / "log.db"
    with Ledger.open(path, clock=lambda: NOW, prizes=worth) as ledger:
        ledger.handle_many(oracle.named(commands))
        head = ledger.head()
    before = path.read_bytes()
    assert verify(str(path)) == head
    assert path.read_bytes() == before


@pytest.mark.parametrize("preset", [name for name, rules in PRESETS.items() if rules.take != "none"])
def test_what_pay_records_is_verified_under_every_preset(tmp_path: Path, preset: str) -> None:
    """Also after the answer was taken back, and with a contest beside it that is open."""
    path = str(tmp_path / "log.db")
    asked = [structs.replace(command, rules=preset) if command == SEALED[1] else command for command in SEALED]
    later: list[AnyCommand] = [revocation(), resolution(outcome="no"), contest("league", pool=10), entry("league")]
    with Ledger.open(path, prizes=worth) as ledger:
        ledger.handle_many(oracle.named([*asked, *later]))
        assert pay(ledger, "cup", AFTER)
        assert verify(path) == ledger.head()


def test_a_watcher_hears_how_far_the_verification_is(tmp_path: Path) -> None:
    """Log positions."""
    heard: list[int] = []
    verify(forged(tmp_path / "log.db", happened(*PAID)), watch=heard.append)
    assert heard == [SEAL + 4]


@pytest.mark.parametrize("as_of", [*range(SEAL + 5), "2026-03-31T00:00:09Z"])
def test_every_cut_of_a_sound_log_is_sound(tmp_path: Path, as_of: AsOf) -> None:
    """Also between the payments of one command, and at the instant of the seal."""
    path = forged(tmp_path / "log.db", happened(*PAID))
    assert verify(path, as_of=as_of).position == (as_of if isinstance(as_of, int) else SEAL)


def test_what_cannot_be_verified_says_why(tmp_path: Path) -> None:
    """No such log; no such position; no such instant. Nothing is created."""
    with pytest.raises(Unavailable, match="no such ledger"):
        verify(str(tmp_path / "none.db"))
    assert not list(tmp_path.iterdir())
    path = forged(tmp_path / "log.db", happened(*SEALED))
    for as_of, code in ((SEAL + 1, "out_of_range"), (-1, "out_of_range"), ("noon", "bad_instant")):
        with pytest.raises(Refused) as refused:
            verify(path, as_of=as_of)
        assert refused.value.code == code


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
        rows.append((recorded.position, "any", body + b',"digest":"' + digest.encode() + b'"}'))
        head = Checkpoint(recorded.position, digest)
    kept(path, rows)
    return str(path)


def missing(path: Path) -> str:
    """The fourth row is gone."""
    return changed(forged(path, happened(*PAID)), "DELETE FROM stored_events WHERE originator_version = 4")


def another_number(path: Path) -> str:
    """Ada said 60% in the fourth row, says somebody who does not know of digests."""
    swap = "UPDATE stored_events SET state = CAST(replace(state, '500000000', '600000000') AS BLOB)"
    return changed(forged(path, happened(*PAID)), f"{swap} WHERE originator_version = 4")


def spaced(path: Path) -> str:
    """The same fact with a space in it."""
    return rewritten(path, *PAID, of=4, change=lambda body: body.replace(b'"position":4', b'"position": 4'))


def spelt_out(path: Path) -> str:
    """The same fact with a default that is left out."""
    return rewritten(path, *PAID, of=4, change=lambda body: body[:-1] + b',"cdf":[]}')


def default_of_a_new_field(path: Path) -> str:
    """The contest's rule set says of a field that was added later what it need not."""
    added = b'"open_end_ppm":50000,"consensus_of":"all"'
    return rewritten(path, *PAID, of=2, change=lambda body: body.replace(b'"open_end_ppm":50000', added))


def of_no_known_type(path: Path) -> str:
    """A forecast of a version to come."""
    return rewritten(path, *PAID, of=4, change=lambda body: body.replace(b"forecast_made.v1", b"forecast_made.v9"))


def back_in_time(path: Path) -> str:
    """The fourth row was recorded before the third."""
    return forged(path, happened(*PAID), earlier=4)


def no_distribution(path: Path) -> str:
    """Ada said half of yes and nothing else."""
    said = happened(*PAID)
    assert isinstance(said[3], ForecastMade)
    said[3] = structs.replace(said[3], probabilities=(500_000_000, 0))
    return forged(path, said)


def wrong_prize(path: Path) -> str:
    """Bob got ten of Ada's twenty-five: in the tenth row, the first payment, she is paid 15."""
    return forged(path, [*happened(*SEALED), *prizes(**RIGHT | {"ada": 15, "bob": 50})])


def a_share_too_many(path: Path) -> str:
    """500 at 0.40 buys 1,250 shares; in the row of the purchase, the last, it is a millionth more."""
    *before, purchase = happened(*trading_floor(), decision(bet(500)))
    assert isinstance(purchase, SharesBought)
    return forged(path, [*before, structs.replace(purchase, shares=purchase.shares + 1)])


def a_leg_without_a_decision(path: Path) -> str:
    """The purchase is there, the decision that it is a leg of is not."""
    *before, _, purchase = happened(*trading_floor(), decision(bet(500)))
    return forged(path, [*before, purchase])


BROKEN: dict[str, list[tuple[Callable[[Path], str], int, str]]] = {
    "positions": [(missing, 4, "the row is missing; the next one is 5")],
    "digests": [(another_number, 4, "the row's bytes have digest")],
    "schemas": [
        (spaced, 4, "the row is not in canonical bytes"),
        (spelt_out, 4, "the row is not in canonical bytes"),
        (default_of_a_new_field, 2, "the row is not in canonical bytes"),
        (of_no_known_type, 4, "not a record that this version can read"),
    ],
    "clock": [(back_in_time, 4, "recorded_at is earlier than in the row before")],
    "contents": [(no_distribution, 4, "probabilities that miss one")],
    "books": [
        (a_share_too_many, 11, "shares_bought.v1: not the shares that the amount buys"),
        (a_leg_without_a_decision, 10, "shares_bought.v1 without what it follows from"),
    ],
    "payouts": [(wrong_prize, 10, "contest 'cup': 'ada' is paid 15.00 where the sealed board says 25.00")],
}


@pytest.mark.parametrize(
    ("broken", "position", "says"),
    [case for cases in BROKEN.values() for case in cases],
    ids=[case[0].__name__ for cases in BROKEN.values() for case in cases],
)
def test_each_check_names_the_log_position_and_what_is_wrong(
    tmp_path: Path, broken: Callable[[Path], str], position: int, says: str
) -> None:
    """And only the first row that cannot be trusted."""
    at, said = stops(broken(tmp_path / "log.db"))
    assert (at, said.startswith(f"log position {position}: {says}")) == (position, True), said


@pytest.mark.parametrize("position", [PAGE, PAGE + 1, 2 * PAGE + 1])
def test_checks_carry_over_from_page_to_page(tmp_path: Path, position: int) -> None:
    """Of 1,100 rows, which are read 500 at a time: whole, one row gone, one recorded before the one before it."""
    many = happened(*(opened(f"q{number}") for number in range(1_100)))
    whole = forged(tmp_path / "whole.db", many)
    assert verify(whole).position == 1_100
    assert verify(whole, as_of=position).position == position
    gone = changed(whole, "DELETE FROM stored_events WHERE originator_version = ?", position)
    assert stops(gone)[0] == position
    back = forged(tmp_path / "back.db", many, earlier=position)
    assert stops(back) == (position, f"log position {position}: recorded_at is earlier than in the row before")


def test_every_check_that_is_named_can_fail() -> None:
    """The table of the README promises no more than what is tried here."""
    assert list(BROKEN) == list(CHECKS)


# --- payouts


def test_a_payment_that_sums_to_the_pool_but_is_not_the_boards_is_found(tmp_path: Path) -> None:
    """By a writer who was told another worth; the first wrong row is named."""
    path = str(tmp_path / "log.db")
    wrong = {"ada": 25_000_000, "bob": 40_010_000, "cyd": 9_990_000, "dan": 25_000_000}
    with Ledger.open(path, prizes=lambda *_: wrong) as ledger:
        ledger.handle_many(oracle.named(PAID))
        assert ledger.head().position == 13
    assert stops(path) == (
        11,
        "log position 11: contest 'cup': 'bob' is paid 40.01 where the sealed board says 40.00",
    )


@pytest.mark.parametrize(
    ("paid", "position", "says"),
    [
        ({"ada": 25, "bob": 40, "cyd": 10, "zoe": 25}, 13, "'zoe' is paid 25.00 where the sealed board says 0.00"),
        ({"zoe": 100}, 10, "'zoe' is paid 100.00 where the sealed board says 0.00"),
        ({"bob": 40, "ada": 25, "dan": 25}, 12, "'cyd' is paid 0.00 where the sealed board says 10.00"),
        ({"ada": 25}, 10, "'bob' is paid 0.00 where the sealed board says 40.00"),
        ({"ada": "0.01"}, 10, "'ada' is paid 0.01 where the sealed board says 25.00"),
    ],
    ids=["to a stranger", "all to a stranger", "not to the last", "only to the first", "a cent"],
)
def test_who_is_paid_wrongly_or_not_at_all_is_named(
    tmp_path: Path, paid: dict[str, Any], position: int, says: str
) -> None:
    """Payments of a contest are recorded together, so that one that is missing is missing at the last of them."""
    path = forged(tmp_path / "log.db", [*happened(*SEALED), *prizes(**paid)])
    assert stops(path)[0] == position
    assert says in stops(path)[1]


def test_a_winner_left_unpaid_is_found_wherever_the_log_goes_on(tmp_path: Path) -> None:
    """Only a cut at the very last payment may lie between those of one command."""
    path = forged(tmp_path / "log.db", [*happened(*SEALED), *prizes(ada=25), *happened(opened("wind"))])
    assert stops(path)[0] == stops(path, 11)[0] == stops(path, "2026-03-31T00:00:10Z")[0] == 10
    assert verify(path, as_of=10).position == 10


def test_a_payment_in_part_is_not_completed(tmp_path: Path) -> None:
    """What a hostile log paid is paid: nothing is recorded on top of it, and the table shows what is missing."""
    path = forged(tmp_path / "log.db", [*happened(*SEALED), *prizes(ada=25)])
    with Ledger.open(path, prizes=worth) as ledger:
        assert pay(ledger, "cup", AFTER) is None
        assert ledger.head().position == 10
    rows = run("table", path, "prizes", "--format", "csv").stdout.splitlines()[1:]
    assert rows == ["cup,ada,25.00,25.00", "cup,bob,40.00,0.00", "cup,cyd,10.00,0.00", "cup,dan,25.00,0.00"]


def test_who_is_excluded_must_not_be_paid(tmp_path: Path) -> None:
    """Bob's 40 are not his to have: Ada's part is larger by then, and hers is the first row."""
    excluded: list[AnyCommand] = [*SEALED[:-1], exclusion(participant="bob"), SEALED[-1]]
    path = forged(tmp_path / "log.db", [*happened(*excluded), *prizes(bob=100)])
    assert stops(path)[0] == 11
    assert "is paid" in stops(path)[1]


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
    """As of the seal nothing was paid, and so nothing wrongly."""
    path = forged(tmp_path / "log.db", [*happened(*SEALED), *prizes(zoe=100)])
    assert verify(path, as_of=SEAL).position == SEAL
    assert stops(path, SEAL + 1)[0] == SEAL + 1


SEALED_EVENTS = happened(*SEALED)
OPEN_EVENTS = SEALED_EVENTS[:-1]


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
    """At its own position, the last one here, before any board is worked out."""
    path = forged(tmp_path / "log.db", written)
    assert stops(path)[0] == len(written)
    assert "sealed board says" not in stops(path)[1]


# --- on the command line


def run(*arguments: str) -> Result:
    """The command line in this process; a traceback would be its exception."""
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_a_sound_log_prints_every_check(tmp_path: Path) -> None:
    """What was checked, found, and what it means; the checkpoint on stderr."""
    path = forged(tmp_path / "log.db", happened(*PAID))
    result = run("verify", path, "--format", "csv")
    assert result.exit_code == FINE
    rows = [line.split(",", 2) for line in result.stdout.splitlines()]
    assert rows[0] == ["check", "found", "meaning"]
    assert [(check, found, meaning.strip('"')) for check, found, meaning in rows[1:]] == [
        (check, "ok", meaning) for check, meaning in CHECKS.items()
    ]
    assert result.stderr == f"as of log position 13, digest {verify(path).digest}\n"


def test_wrong_payouts_exit_with_4_and_name_the_position(tmp_path: Path) -> None:
    """Nothing on stdout, one line on stderr."""
    result = run("verify", wrong_prize(tmp_path / "log.db"))
    assert (result.exit_code, result.stdout) == (DAMAGED, "")
    assert result.stderr == (
        "forecast-ledger: the log is damaged: log position 10: contest 'cup': "
        "'ada' is paid 15.00 where the sealed board says 25.00\n"
    )


def test_a_name_that_a_terminal_would_obey_is_shown_escaped(tmp_path: Path) -> None:
    """A forged log may name a winner anything."""
    path = forged(tmp_path / "log.db", [*happened(*SEALED), *prizes(**{"\x1b[2J": 25})])
    result = run("verify", path)
    assert (result.exit_code, "\x1b" in result.stderr, "x1b[2J" in result.stderr) == (DAMAGED, False, True)
