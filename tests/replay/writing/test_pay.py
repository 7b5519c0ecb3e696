"""Paying a contest's winners: what its sealed board says, once, and nothing else."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from msgspec import structs

import forecast_ledger
from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import TAGS, AnyEvent, PrizePaid
from forecast_ledger.ledger.model.log import Recorded, seal
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, UNREADABLE, USAGE
from forecast_ledger.replay.writing.store import pay, prizes_from_log
from tests.replay.cli.test_main import run
from tests.support import oracle
from tests.support.given import (
    NOW,
    OPENS,
    contest,
    day,
    entry,
    exclusion,
    finalization,
    forecast,
    forecasts,
    forge,
    micros,
    opened,
    payment,
    prizes_paid,
    resolution,
    revocation,
    won,
)
from tests.support.logs import log_fixture, printed, written
from tests.support.oracle import events_of
from tests.support.waiting import PATIENCE

PAID_AT = day(28)
RELATIVE = PRESETS["relative-2022-04"]
# Against a median of 0.5, takes of 1, 1.6, 0.4 and 1 in 4: 25, 40, 10 and 25 of 100.
CHANCES = {"ada": "0.5", "bob": "0.8", "cyd": "0.2", "dan": "0.5"}


def cup(*more: AnyCommand, chances: dict[str, str] = CHANCES, **fields: Any) -> list[AnyCommand]:
    """A contest with a pool of 100 over one question, resolved; not sealed yet."""
    opening = contest(**({"pool": 100} | fields))
    return [opened(), opening, entry(), *forecasts(**chances), *more, resolution()]


def sealed(*more: AnyCommand, **fields: Any) -> list[AnyCommand]:
    """The same, sealed."""
    return [*cup(*more, **fields), finalization()]


def kept(path: Path | str, *commands: AnyCommand) -> Ledger:
    """A ledger that has accepted these commands."""
    ledger = Ledger.open(path, clock=lambda: NOW, prizes=prizes_from_log)
    outcomes = ledger.handle_many(oracle.with_ids(commands))
    assert all(isinstance(outcome, Receipt) for outcome in outcomes), outcomes
    return ledger


def events(ledger: Ledger, after: int = 0) -> list[AnyEvent]:
    """Return the events recorded after a position."""
    return [recorded.event for recorded in events_of(ledger, after)]


def payouts(*commands: AnyCommand, name: str = "cup") -> list[tuple[str, int]]:
    """Whom a ledger of these commands pays what, 1e-6, in the order of its log."""
    with kept(":memory:", *commands) as ledger:
        before = ledger.head().position
        receipt = pay(ledger, name, PAID_AT)
        paid = events(ledger, before)
        assert receipt
        assert (receipt.first, receipt.last, receipt.duplicate) == (before + 1, before + len(paid), False)
        assert all(isinstance(event, PrizePaid) and event.contest == name for event in paid)
        return [(event.participant, event.amount) for event in paid if isinstance(event, PrizePaid)]


def cents(*commands: AnyCommand, name: str = "cup") -> dict[str, int]:
    """The same in hundredths, by winner."""
    return {who: amount // 10_000 for who, amount in payouts(*commands, name=name)}


def refusal(*commands: AnyCommand, name: str = "cup") -> tuple[str, str, Any]:
    """Why a ledger of these commands does not pay; it records nothing."""
    with kept(":memory:", *commands) as ledger:
        before = ledger.head()
        with pytest.raises(Refused) as refused:
            pay(ledger, name, PAID_AT)
        assert ledger.head() == before
    return refused.value.code, refused.value.field, refused.value.value


def table_of(ledger: Ledger, name: str) -> list[dict[str, Any]]:
    """The printed rows of a projection of a ledger."""
    return list(Projections(oracle.facts_in(events_of(ledger))).table(name).rows())


# --- whom it pays


def test_winners_are_paid_what_the_board_says_one_event_each_by_id() -> None:
    """The amounts are in 1e-6 and use up the pool; the events have the instant of the command."""
    assert payouts(*sealed()) == [("ada", 25_000_000), ("bob", 40_000_000), ("cyd", 10_000_000), ("dan", 25_000_000)]
    with kept(":memory:", *sealed()) as ledger:
        pay(ledger, "cup", PAID_AT)
        assert {event.at for event in events(ledger) if isinstance(event, PrizePaid)} == {micros(28)}


def test_the_seal_counts_not_what_became_known_later() -> None:
    """Bob forecast best; that the answer was no after all is of no use to Cyd any more."""
    later: list[AnyCommand] = [revocation(), resolution(outcome="no")]
    assert cents(*sealed(), *later) == cents(*sealed())
    assert cents(*cup(), *later, finalization()) == {"ada": 2500, "bob": 1000, "cyd": 4000, "dan": 2500}


def test_a_forecast_after_the_seal_wins_nothing() -> None:
    """Nor does an answer that comes after it count: at the seal the second question of the contest was open."""
    snow: list[AnyCommand] = [opened("snow"), entry(question="snow"), *forecasts("snow", ada="0.5", bob="0.5")]
    later: list[AnyCommand] = [
        *(forecast("snow", who, probability=chance, at=day(11)) for who, chance in [("eve", "0.9"), ("cyd", "0.9")]),
        resolution("snow"),
    ]
    assert cents(*sealed(*snow), *later) == cents(*sealed(*snow)) == cents(*sealed())
    assert "eve" in cents(*cup(*snow), *later, finalization())


@pytest.mark.parametrize("level", ["no_prize", "no_rank", "hidden"])
def test_who_is_excluded_is_not_paid(level: Any) -> None:
    """1, 0.4 and 1 of 2.4 share 100: 41.666…, 16.666…, 41.666…; the last cents go to the first two by id."""
    assert cents(*sealed(exclusion(participant="bob", level=level))) == {"ada": 4167, "cyd": 1667, "dan": 4166}


def test_who_has_no_take_is_not_paid_and_no_event_says_so() -> None:
    """Peer scores below 0: only the best of two is worth anything."""
    assert cents(*sealed(chances={"ada": "0.8", "bob": "0.2"}, rules="peer-2024-03")) == {"ada": 10_000}


def test_equal_takes_are_paid_alike_up_to_a_cent_that_goes_by_id() -> None:
    """100 among three."""
    assert cents(*sealed(chances=dict.fromkeys(("cyd", "bob", "ada"), "0.6"))) == {
        "ada": 3334,
        "bob": 3333,
        "cyd": 3333,
    }


def test_payouts_are_whole_payable_units_of_which_somebody_may_get_none() -> None:
    """In units of 20 of 100: 1.25, 2, 0.5, 1.25 give 1, 2, 0, 1; the unit left over goes to the remainder of a half."""
    assert payouts(*sealed(payable_unit=20)) == [
        *(("ada", 20_000_000), ("bob", 40_000_000), ("cyd", 20_000_000), ("dan", 20_000_000))
    ]
    assert payouts(*sealed(payable_unit=50)) == [("bob", 50_000_000), ("ada", 50_000_000)][::-1]


def test_who_is_worth_less_than_the_least_prize_leaves_it_to_the_others() -> None:
    """Cyd's 10 are less than 12. 1.6, 1 and 1 of 3.6: 44.444…, 27.777…, 27.777…."""
    least = structs.replace(RELATIVE, least_prize_micros=12_000_000)
    assert cents(*sealed(rules=least)) == {"ada": 2778, "bob": 4444, "dan": 2778}


def test_equals_below_the_least_prize_are_paid_together_or_one_by_one() -> None:
    """Three times 33.33 are less than 40; nobody else is left, so all stay. One by one, the last by id goes: 50, 50."""
    least = structs.replace(RELATIVE, least_prize_micros=40_000_000)
    equal = dict.fromkeys(("cyd", "bob", "ada"), "0.6")
    assert cents(*sealed(chances=equal, rules=least)) == {"ada": 3334, "bob": 3333, "cyd": 3333}
    former = structs.replace(least, least_prize_passes="one_by_one")
    assert cents(*sealed(chances=equal, rules=former)) == {"ada": 5000, "bob": 5000}


@pytest.mark.parametrize(
    "preset", ["relative-2021-11", "relative-2022-04", "peer-2024-03", "peer-2025-06", "spot-peer"]
)
def test_what_is_paid_sums_to_the_pool_and_is_what_the_table_of_prizes_says(preset: str) -> None:
    """Every preset that has takes is tried."""
    rewarded = {row["participant"]: row["prize"] for row in printed("prizes", *sealed(rules=preset))}
    assert [
        (who, f"{amount // 10**6}.{amount % 10**6 // 10_000:02}") for who, amount in payouts(*sealed(rules=preset))
    ] == [(who, prize) for who, prize in rewarded.items() if prize != "0.00"]
    assert sum(amount for _, amount in payouts(*sealed(rules=preset))) == 100_000_000


# --- once


def test_paying_again_records_nothing() -> None:
    """The second payment may be later, and by another ledger on the log."""
    with kept(":memory:", *sealed()) as ledger:
        assert pay(ledger, "cup", PAID_AT) is not None
        head = ledger.head()
        assert [pay(ledger, "cup", at) for at in (PAID_AT, day(29))] == [None, None]
        assert ledger.head() == head


def test_who_was_paid_by_a_command_is_not_paid_again() -> None:
    """The id of that command does not matter."""
    with kept(":memory:", *sealed(), payment()) as ledger:
        head = ledger.head()
        assert pay(ledger, "cup", PAID_AT) is None
        assert ledger.head() == head


@pytest.mark.parametrize("paid", [1, 2, 3])
@pytest.mark.parametrize("at", [PAID_AT, day(29)], ids=["the same instant", "later"])
def test_a_payment_that_was_cut_half_way_is_finished(paid: int, at: str, tmp_path: Path) -> None:
    """A log that ends after some of four prizes: the others are paid, then nothing is left; every prize is the board's.

    Also where the command comes again under the id that the prizes already there have.
    """
    with kept(":memory:", *sealed()) as ledger:
        pay(ledger, "cup", PAID_AT)
        rows = [recorded for page in ledger.read() for recorded in page][: 9 + paid]
    with closing(StoredLog.open(str(tmp_path / "log.db"), "main")) as store:
        store.append([(each.position, TAGS[type(each.event)], seal(each)[0]) for each in rows])
    with Ledger.open(tmp_path / "log.db", prizes=prizes_from_log) as ledger:
        receipt = pay(ledger, "cup", at)
        assert receipt is not None
        assert (receipt.first, receipt.last) == (10 + paid, 13)
        each_paid = [(event.participant, event.amount) for event in events(ledger, 9) if isinstance(event, PrizePaid)]
        assert each_paid == payouts(*sealed())
        assert [pay(ledger, "cup", again) for again in (at, PAID_AT, day(29))] == [None] * 3
        assert ledger.head().position == 13


@pytest.mark.parametrize(
    ("amounts", "says"),
    [
        ({"ada": 24}, "'ada' was paid 24, but the leaderboard gives 25"),
        ({"ada": 25, "zoe": 1}, "a participant was paid to whom the leaderboard gives nothing"),
        ({"ada": 25, "bob": 41}, "'bob' was paid 41, but the leaderboard gives 40"),
    ],
    ids=["less", "a stranger", "more"],
)
def test_where_what_was_paid_is_not_what_the_board_says_nobody_else_is_paid(
    amounts: dict[str, int], says: str, tmp_path: Path
) -> None:
    """The refusal says what differs; such prizes come from a writer that is not this one."""
    with kept(tmp_path / "log.db", *sealed()):
        pass
    forge(tmp_path / "log.db", *prizes_paid(**amounts))
    with Ledger.open(tmp_path / "log.db", prizes=prizes_from_log) as ledger:
        with pytest.raises(Refused, match=says) as refused:
            pay(ledger, "cup", PAID_AT)
        assert refused.value.code == "prizes_differ"
        assert ledger.head().position == 9 + len(amounts)


def test_each_contest_is_paid_for_itself() -> None:
    """The same question in two contests; in the second Bob has no part in the prizes: 1, 0.4 and 1 of 2.4 share 48."""
    league: list[AnyCommand] = [contest("league", pool=48), entry("league"), exclusion("league", "bob")]
    asked = [*sealed(*league), finalization("league")]
    assert cents(*asked, name="league") == {"ada": 2000, "cyd": 800, "dan": 2000}
    with kept(":memory:", *asked) as ledger:
        assert pay(ledger, "league", PAID_AT)
        assert pay(ledger, "cup", PAID_AT)
        rows = [(row["contest"], row["paid"]) for row in table_of(ledger, "contests")]
    assert rows == [("cup", "100.00"), ("league", "48.00")]


def while_worked_out(path: Path, aside: Executor, come: Callable[[], object]) -> tuple[Ledger, list[object]]:
    """A ledger on this log, and what became of what came, the first time, while it worked out a board.

    The board is not done before that is: if anybody had to wait for the board, this would never end.
    """
    left, came = [come], list[object]()

    def slow(pages: Iterable[Sequence[Recorded]], contest: str) -> dict[str, int]:
        while left:
            came.append(aside.submit(left.pop()).result(timeout=PATIENCE))
        return prizes_from_log(pages, contest)

    return Ledger.open(path, clock=lambda: NOW, prizes=slow), came


@pytest.mark.parametrize("when", [PAID_AT, day(29)])
def test_of_two_who_pay_at_once_the_later_one_finds_it_done(tmp_path: Path, when: str) -> None:
    """Who comes while the board is worked out need not wait, and pays; the other then pays nobody."""
    path = tmp_path / "log.db"
    with kept(path, *sealed()) as first, ThreadPoolExecutor(1) as aside:
        second, came = while_worked_out(path, aside, lambda: pay(first, "cup", when))
        with second:
            assert pay(second, "cup", PAID_AT) is None
        assert [(receipt.first, receipt.last) for receipt in came if isinstance(receipt, Receipt)] == [(10, 13)]
        assert [type(event) is PrizePaid for event in events(first, 9)] == [True] * 4
    assert verify(str(path)).position == 13


def test_another_command_that_pays_meanwhile_leaves_nothing_to_pay(tmp_path: Path) -> None:
    """The command that worked the board out is refused, and records nothing."""
    path = tmp_path / "log.db"
    with kept(path, *sealed()) as first, ThreadPoolExecutor(1) as aside:
        second, came = while_worked_out(path, aside, lambda: first.handle(payment(), "by hand"))
        with second, pytest.raises(Refused, match="prizes_paid"):
            second.handle(payment(), "by machine")
        assert came == [Receipt("by hand", 10, 13)]
        assert len(events(first, 9)) == 4


def test_a_part_that_is_paid_meanwhile_is_not_paid_twice(tmp_path: Path) -> None:
    """Bob has his prize when the turn comes; only the others are paid."""
    path = tmp_path / "log.db"
    kept(path, *sealed()).close()
    with ThreadPoolExecutor(1) as aside:
        second, _ = while_worked_out(path, aside, lambda: forge(path, *prizes_paid(bob=40)))
        with second:
            receipt = second.handle(payment(), "pay")
            assert (receipt.first, receipt.last) == (11, 13)
            assert paid_to(second) == {"ada": 2500, "bob": 4000, "cyd": 1000, "dan": 2500}


def test_anything_else_is_recorded_before_what_is_paid(tmp_path: Path) -> None:
    """Events that came while the board was worked out do not change it: it is sealed."""
    path = tmp_path / "log.db"
    with kept(path, *sealed()) as first, ThreadPoolExecutor(1) as aside:
        both: list[AnyCommand] = [revocation(), forecast(participant="eve")]
        second, came = while_worked_out(
            path, aside, lambda: [first.handle(each, str(number)).first for number, each in enumerate(both)]
        )
        with second:
            receipt = pay(second, "cup", PAID_AT)
        assert receipt
        assert (receipt.first, receipt.last, came) == (12, 15, [[10, 11]])
        paid = [(event.participant, event.amount) for event in events(first, 11) if isinstance(event, PrizePaid)]
        assert paid == payouts(*sealed())
    assert verify(str(path)).position == 15


def test_a_thread_that_shares_the_ledger_does_not_wait_for_a_board_either(tmp_path: Path) -> None:
    """It records while the board is worked out."""
    path = tmp_path / "log.db"
    kept(path, *sealed()).close()
    with ThreadPoolExecutor(1) as aside:
        shared: list[Ledger] = []
        ledger, came = while_worked_out(path, aside, lambda: shared[0].handle(opened("snow"), "snow"))
        shared.append(ledger)
        with ledger:
            assert ledger.handle(payment(), "pay") == Receipt("pay", 11, 14)
        assert came == [Receipt("snow", 10, 10)]


def test_a_contest_that_is_sealed_meanwhile_is_worked_out_in_the_turn(tmp_path: Path) -> None:
    """The ledger asks for two payments; the second contest is sealed only while the first one is worked out."""
    path = tmp_path / "log.db"
    league: list[AnyCommand] = [contest("league", pool=48), entry("league")]
    with kept(path, *sealed(*league)) as first, ThreadPoolExecutor(1) as aside:
        second, came = while_worked_out(path, aside, lambda: first.handle(finalization("league"), "seal"))
        with second:
            both = [structs.replace(payment(name), id=f"pay {name}") for name in ("cup", "league")]
            paid = second.handle_many(both)
        assert [type(each) for each in (*came, *paid)] == [Receipt] * 3
        assert sum(event.amount for event in events(first) if isinstance(event, PrizePaid)) == 148 * 10**6
    assert verify(str(path)).position == max(each.last for each in paid if isinstance(each, Receipt))


def test_many_who_pay_at_once_pay_once(tmp_path: Path) -> None:
    """Eight threads, each with a ledger of its own."""
    path = tmp_path / "log.db"
    kept(path, *sealed()).close()
    start, receipts = threading.Barrier(8), list[Receipt | None]()

    def paying(number: int) -> None:
        with Ledger.open(path, prizes=prizes_from_log) as ledger:
            start.wait()
            receipts.append(pay(ledger, "cup", day(20 + number)))

    threads = [threading.Thread(target=paying, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(receipts) == 8
    assert len([receipt for receipt in receipts if receipt]) == 1
    assert verify(str(path)).position == 13


# --- what is refused


def test_a_contest_that_is_not_there_is_not_paid() -> None:
    """Whatever else is."""
    assert refusal(*cup(), name="cap") == ("unknown_contest", "contest", "cap")
    assert refusal(*sealed(), name="CUP") == ("unknown_contest", "contest", "CUP")
    assert refusal(name="cup") == ("unknown_contest", "contest", "cup")


def test_a_contest_that_is_not_finalized_is_not_paid() -> None:
    """The board can still change."""
    assert refusal(*cup()) == ("contest_not_finalized", "contest", "cup")
    assert refusal(*cup(), contest("cap"), finalization("cap")) == ("contest_not_finalized", "contest", "cup")


@pytest.mark.parametrize(
    "nobody",
    [
        sealed(pool=0),
        sealed(chances={}),
        sealed(chances={"ada": "0.7"}, rules="peer-2024-03"),
        sealed(*(exclusion(participant=who) for who in CHANCES)),
        [contest(pool=100), finalization()],
    ],
    ids=["no pool", "no forecast", "no peer", "all excluded", "no question"],
)
def test_a_board_on_which_nobody_wins_pays_nobody(nobody: list[AnyCommand]) -> None:
    """The refusal says so; the pool stays where it is."""
    assert refusal(*nobody) == ("nobody_wins", "contest", "cup")
    with kept(":memory:", *nobody) as ledger, pytest.raises(Refused, match="no participant wins a prize"):
        ledger.handle(payment(), "by hand")


def test_a_pool_of_rules_that_never_pay_is_not_taken_for_a_board_that_nobody_won() -> None:
    """They have no take, and the refusal says what to do; without a pool, nothing was promised."""
    with kept(":memory:", *sealed(rules="baseline")) as ledger, pytest.raises(Refused) as refused:
        ledger.handle(payment(), "by hand")
    assert (refused.value.code, refused.value.field) == ("nobody_wins", "contest")
    assert "the rules baseline have no take; they never pay" in refused.value.detail
    assert "open a contest of the same questions whose rules have a take" in refused.value.remedy
    with kept(":memory:", *sealed(rules="baseline", pool=0)) as ledger, pytest.raises(Refused, match="no action is"):
        ledger.handle(payment(), "by hand")


def test_a_pool_of_just_the_least_prize_goes_to_the_best() -> None:
    """A unit more, and nobody would have won."""
    least = structs.replace(RELATIVE, least_prize_micros=100_000_000)
    assert cents(*sealed(rules=least)) == {"bob": 10_000}


def test_a_ledger_that_was_opened_without_prizes_pays_nobody() -> None:
    """The refusal says how to open it; a retry of what was paid elsewhere is known all the same."""
    store = StoredLog.open(":memory:", "main")
    with Ledger(store, lambda: NOW, prizes_from_log) as ledger:
        ledger.handle_many(oracle.with_ids(sealed()))
        bare = Ledger(store, lambda: NOW)
        with pytest.raises(Refused, match=r"prizes_unknown: .*forecast_ledger\.open"):
            pay(bare, "cup", PAID_AT)
        assert bare.head().position == 9
        first = ledger.handle(payment(), "by hand")
        assert bare.handle(payment(), "by hand") == structs.replace(first, duplicate=True)
        with pytest.raises(Refused, match="prizes_paid"):
            bare.handle(payment(), "again")


def test_a_command_pays_what_the_board_says() -> None:
    """The command has no amounts; it pays what `pay` pays."""
    with kept(":memory:", *sealed()) as ledger:
        assert ledger.handle(payment(), "by hand") == Receipt("by hand", 10, 13)
        paid = [(event.participant, event.amount) for event in events(ledger, 9) if isinstance(event, PrizePaid)]
        assert paid == payouts(*sealed())


def test_a_command_cannot_pay_again_what_was_paid() -> None:
    """Not the same, not at another instant, not another contest under its own id."""
    with kept(":memory:", *sealed(), contest("cap", pool=5), entry("cap"), finalization("cap")) as ledger:
        ledger.handle(payment(), "by hand")
        head = ledger.head()
        assert ledger.handle(payment(), "by hand").duplicate
        for again, name, code in (
            (payment(), "again", "prizes_paid"),
            (payment(at=PAID_AT), "again", "prizes_paid"),
            (payment(at=PAID_AT), "by hand", "command_id_reused"),
            (payment("cap"), "by hand", "command_id_reused"),
        ):
            with pytest.raises(Refused) as refused:
                ledger.handle(again, name)
            assert (refused.value.code, ledger.head()) == (code, head)


# --- what the ledger hands over to work it out


@pytest.mark.parametrize("page", [1, 2, 5, 100])
def test_what_a_sealed_board_is_worth_depends_on_the_log_up_to_the_seal_alone(page: int) -> None:
    """However the log is cut into pages, and wherever after the seal it ends."""
    later: list[AnyCommand] = [
        payment(),
        revocation(),
        resolution(outcome="no"),
        exclusion("cap"),
        forecast("wind", at=day(12)),
    ]
    recorded = oracle.history(contest("cap"), opened("wind"), *sealed(), *later)
    for end in range(11, len(recorded) + 1):
        pages = (recorded[first : min(first + page, end)] for first in range(0, end, page))
        assert prizes_from_log(pages, "cup") == {
            "ada": 25 * 10**6,
            "bob": 40 * 10**6,
            "cyd": 10 * 10**6,
            "dan": 25 * 10**6,
        }


class Asked:
    """Works out what boards are worth, and remembers the log positions that it was shown for each."""

    def __init__(self, overtake: Callable[[], object] = lambda: None) -> None:
        self.shown: list[tuple[str, list[int]]] = []
        self.overtake = overtake

    def __call__(self, pages: Iterable[Sequence[Recorded]], contest: str) -> dict[str, int]:
        """Return the prizes of the board; the first call then lets another writer overtake the ledger."""
        read = list(pages)
        self.shown.append((contest, [recorded.position for page in read for recorded in page]))
        overtake, self.overtake = self.overtake, lambda: None
        overtake()
        return prizes_from_log(read, contest)


def paid_to(ledger: Ledger) -> dict[str, int]:
    """Return the amount paid to each participant, in hundredths."""
    paid = (event for event in events(ledger) if isinstance(event, PrizePaid))
    return {event.participant: event.amount // 10_000 for event in paid}


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("alone", range(10))
def test_a_contest_may_be_filled_sealed_and_paid_in_one_batch(alone: int, atomic: bool) -> None:
    """However many of its commands came before the batch: the rows of the batch follow those of the store."""
    asked, commands = Asked(), oracle.with_ids([*sealed(), payment()])
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=asked) as ledger:
        outcomes: list[object] = [ledger.handle(command) for command in commands[:alone]]
        outcomes += ledger.handle_many(commands[alone:], atomic=atomic)
        assert outcomes[-1] == Receipt("c9", 10, 13)
        assert asked.shown == [("cup", [*range(1, 10)])]
        assert paid_to(ledger) == {"ada": 2500, "bob": 4000, "cyd": 1000, "dan": 2500}


def test_contests_paid_in_one_batch_are_worked_out_one_by_one() -> None:
    """The second is shown what the first was paid; a refused command between them leaves no row."""
    asked = Asked()
    league: list[AnyCommand] = [contest("league", pool=10), entry("league"), finalization("league")]
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=asked) as ledger:
        ledger.handle_many(
            oracle.with_ids([*sealed(*league[:2]), payment(), payment("cap"), league[2], payment("league")])
        )
        assert asked.shown == [("cup", [*range(1, 12)]), ("league", [*range(1, 17)])]
        assert ledger.head().position == 20


def test_an_atomic_batch_that_is_refused_pays_nobody() -> None:
    """The next batch can pay."""
    asked = Asked()
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=asked) as ledger:
        batch = oracle.with_ids([*sealed(), payment(), payment()])
        assert [getattr(each, "code", "") for each in ledger.handle_many(batch, atomic=True)][-2:] == [
            "batch_refused",
            "prizes_paid",
        ]
        assert ledger.head().position == 0
        assert ledger.handle_many(batch[:-1], atomic=True)[-1] == Receipt("c9", 10, 13)
        assert asked.shown == [("cup", [*range(1, 10)])] * 2


def test_what_others_append_meanwhile_is_not_mixed_with_the_batch(tmp_path: Path) -> None:
    """A ledger that has not seen it yet reads it first: Eve has forecast before the seal after all, and is paid. Who
    comes while it is worked out waits, and is recorded after it.
    """
    asked, commands, path = Asked(), oracle.with_ids([*sealed(), payment()]), tmp_path / "log.db"
    with Ledger.open(path) as other, Ledger.open(path, prizes=asked) as ledger, ThreadPoolExecutor(1) as aside:
        ledger.handle_many(commands[:7])
        other.handle(forecast(participant="eve", probability="0.5", at=OPENS), "eve")
        waiting: list[Future[Receipt]] = []
        asked.overtake = lambda: waiting.append(aside.submit(other.handle, opened("snow"), "snow"))
        assert ledger.handle_many(commands[7:])[-1] == Receipt("c9", 11, 15)
        assert waiting[0].result() == Receipt("snow", 16, 16)
        assert asked.shown == [("cup", [*range(1, 11)])]
        assert paid_to(ledger) == {"ada": 2000, "bob": 3200, "cyd": 800, "dan": 2000, "eve": 2000}
    assert verify(str(path)).position == 16


def test_a_log_that_is_never_still_can_be_paid_from(tmp_path: Path) -> None:
    """The board is worked out once, however much others append."""
    asked, path, stop = Asked(), tmp_path / "log.db", Event()

    def busy() -> int:
        with Ledger.open(path) as other:
            for tick in count():
                other.handle(opened(f"q{tick}"), f"q{tick}")
                if stop.is_set():
                    return tick
        raise AssertionError

    with Ledger.open(path, prizes=asked) as ledger, ThreadPoolExecutor(1) as aside:
        ledger.handle_many(oracle.with_ids(sealed()))
        ticks = aside.submit(busy)
        try:
            while ledger.head().position < 20:
                time.sleep(0.001)
            receipt = ledger.handle(payment(), "pay")
        finally:
            stop.set()
        assert (receipt.last - receipt.first, len(asked.shown)) == (3, 1)
        last = ticks.result()
        assert ledger.head().position == 9 + last + 1 + 4


def test_a_retry_is_not_worked_out_again(tmp_path: Path) -> None:
    """The retry may be by the same ledger, or by another on the log."""
    path, asked = tmp_path / "log.db", Asked()
    with kept(path, *sealed()) as first, Ledger.open(path, prizes=asked) as second:
        assert second.head().position == 9
        first.handle(payment(), "pay")
        assert second.handle(payment(), "pay") == Receipt("pay", 10, 13, duplicate=True)
        assert second.handle(payment(), "pay").duplicate
    with Ledger.open(path, prizes=asked) as third:
        assert third.handle(payment(), "pay") == Receipt("pay", 10, 13, duplicate=True)
    assert asked.shown == []


def test_a_log_that_was_damaged_since_is_not_paid_from(tmp_path: Path) -> None:
    """Every reader checks the rows; nothing is recorded."""
    path = tmp_path / "log.db"
    with kept(path, *sealed()) as ledger:
        with closing(sqlite3.connect(path)) as database, database:
            swap = "UPDATE stored_events SET state = CAST(replace(state, '800000000', '700000000') AS BLOB)"
            assert database.execute(f"{swap} WHERE originator_version = 5").rowcount == 1
        with pytest.raises(Corrupt, match="log position 5: the row's bytes have digest"):
            ledger.handle(payment(), "pay")
        assert ledger.head().position == 9


@pytest.mark.parametrize("error", [Corrupt(3, "what"), KeyError("cup"), KeyboardInterrupt()])
def test_what_goes_wrong_in_working_it_out_leaves_everything_as_it_was(error: BaseException) -> None:
    """Earlier commands of the batch are undone too; the next command finds the old state."""
    failing = [error]

    def fails(pages: Iterable[Sequence[Recorded]], contest: str) -> dict[str, int]:
        if failing:
            raise failing.pop()
        return prizes_from_log(pages, contest)

    with Ledger.open(":memory:", clock=lambda: NOW, prizes=fails) as ledger:
        commands = oracle.with_ids([*sealed(), payment()])
        ledger.handle_many(commands[:5])
        with pytest.raises(type(error)):
            ledger.handle_many(commands[5:])
        assert ledger.head().position == 5
        assert ledger.handle_many(commands[5:])[-1] == Receipt("c9", 10, 13)


# --- names that could be in the way


def test_a_contest_whose_name_is_as_long_as_names_may_be_is_paid() -> None:
    """A second contest, whose name differs in the last character only, is paid too."""
    names = ["x" * 200, "x" * 199 + "y"]
    asked = [opened(), *forecasts(**CHANCES), resolution()]
    asked += [each for name in names for each in (contest(name, pool=100), entry(name), finalization(name))]
    with kept(":memory:", *asked) as ledger:
        assert all(pay(ledger, name, PAID_AT) for name in names)
        assert [row["paid"] for row in table_of(ledger, "contests")] == ["100.00", "100.00"]


@pytest.mark.parametrize("used", ["pay cup", "pay", "cup"])
def test_a_command_id_that_somebody_used_is_not_in_the_way(used: str) -> None:
    """A payment is recorded under an id that follows from what is said."""
    with kept(":memory:", *sealed()) as ledger:
        ledger.handle(opened("wind"), used)
        assert pay(ledger, "cup", PAID_AT)


def test_winners_of_any_name_are_paid() -> None:
    """A participant may have the label of the consensus, which itself wins nothing."""
    names = ["[consensus]", "a, b", "Ünï", "=1+1", "0"]
    rules = structs.replace(RELATIVE, score_consensus=True)
    asked = sealed(chances=dict.fromkeys(names, "0.6"), rules=rules)
    assert cents(*asked) == dict.fromkeys(sorted(names), 2000)


# --- on the command line


log = log_fixture(sealed)  # nine rows long


PRIZES = [("ada", "25.00"), ("bob", "40.00"), ("cyd", "10.00"), ("dan", "25.00")]


def test_paying_prints_the_prizes_and_what_was_paid(log: str) -> None:
    """Data on stdout; from which log position on, and the checkpoint, on stderr."""
    result = run("pay", log, "cup")
    assert (result.exit_code, result.stdout.splitlines()) == (
        FINE,
        ["contest  participant  prize   paid", *(f"cup      {who}          {prize}  {prize}" for who, prize in PRIZES)],
    )
    told = result.stderr.splitlines()
    assert told[0] == "paid from log position 10 on"
    assert told[1].startswith("as of log position 13, digest ")
    assert run("verify", log).exit_code == FINE


def test_paying_again_prints_the_same_and_says_that_nothing_was_recorded(log: str) -> None:
    """Exit code 0: whoever is not sure whether it went through may send it again."""
    first, again = run("pay", log, "cup"), run("pay", log, "cup")
    assert (again.exit_code, again.stdout) == (FINE, first.stdout)
    assert again.stderr.splitlines() == ["already paid; nothing was recorded", first.stderr.splitlines()[1]]


def test_prizes_paid_that_differ_from_the_board_are_findings(log: str) -> None:
    """Somebody wrote to the store: whoever pays again learns who was paid amiss, with exit code 1."""
    forge(log, *prizes_paid(ada=60, bob=40))
    result = run("pay", log, "cup")
    assert (result.exit_code, len(result.stdout.splitlines())) == (FINDINGS, 5)
    told = "paid amounts differ from the sealed board for ada, cyd, dan; `verify` names the log positions"
    assert result.stderr.splitlines()[-1] == told


def test_paying_prints_json_and_csv(log: str) -> None:
    """The same rows."""
    told = json.loads(run("pay", log, "cup", "--format", "json").stdout)
    assert told == [{"contest": "cup", "participant": who, "prize": prize, "paid": prize} for who, prize in PRIZES]
    assert run("pay", log, "cup", "--format", "csv").stdout.splitlines() == [
        "contest,participant,prize,paid",
        *(f"cup,{who},{prize},{prize}" for who, prize in PRIZES),
    ]


def test_paying_prints_the_one_contest(log: str) -> None:
    """Another's prizes are not its affair."""
    written(log, [contest("league", pool=10, id="league"), entry("league", id="league-rain")])
    assert len(json.loads(run("table", log, "prizes", "--format", "json").stdout)) == 8
    assert len(json.loads(run("pay", log, "cup", "--format", "json").stdout)) == 4


def test_a_payment_claims_the_instant_it_is_made(log: str) -> None:
    """The instant is from this machine's clock."""
    before = datetime.now(UTC)
    run("pay", log, "cup")
    with Ledger.open(log) as ledger:
        [at] = {event.at for event in events(ledger, 9)}
    assert before <= datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("spring", "unknown_contest: contest = 'spring': the log has no such contest; it has: cup, empty, open;"),
        ("open", "contest_not_finalized: contest = 'open': the contest is not finalized;"),
        ("empty", "nobody_wins: contest = 'empty': no participant wins a prize on the contest's final board;"),
    ],
)
def test_what_cannot_be_paid_is_wrong_usage(log: str, name: str, says: str) -> None:
    """Exit code 2, one line on stderr, nothing on stdout, nothing recorded."""
    with Ledger.open(log) as ledger:
        ledger.handle(contest("open"), "open")
        ledger.handle(contest("empty", pool=5), "empty")
        ledger.handle(finalization("empty"), "empty-sealed")
        head = ledger.head()
        result = run("pay", log, name)
        assert (result.exit_code, result.stdout) == (USAGE, "")
        assert result.stderr.startswith(f"forecast-ledger: {says}")
        assert result.stderr.count("\n") == 1
        assert ledger.head() == head


def test_a_log_that_is_not_there_is_not_started_to_pay_from(tmp_path: Path) -> None:
    """Exit code 3, and the folder stays empty."""
    result = run("pay", str(tmp_path / "none.db"), "cup")
    assert (result.exit_code, "no such ledger" in result.stderr) == (UNREADABLE, True)
    assert not list(tmp_path.iterdir())


def test_every_ledger_that_the_package_offers_can_pay() -> None:
    """`Ledger.open` and `open` are one: a contest that one of them opened was paid by the other alone."""
    for ledger in (forecast_ledger.Ledger.open(":memory:"), forecast_ledger.open(":memory:")):
        with ledger:
            receipts = ledger.handle_many(oracle.with_ids([*won(), payment()]))
            assert type(ledger) is forecast_ledger.Ledger
            assert all(isinstance(receipt, Receipt) for receipt in receipts)
            paid = [each.event for page in ledger.read() for each in page if isinstance(each.event, PrizePaid)]
            assert sum(event.amount for event in paid) == 10 * 10**6


def test_a_ledger_of_another_name_has_contests_of_its_own(log: str) -> None:
    """Both ledgers are in one store."""
    result = run("pay", log, "cup", "--name", "other")
    assert (result.exit_code, "no ledger named 'other'; there is 'main'" in result.stderr) == (UNREADABLE, True)
    assert run("pay", log, "cup", "--name", "main").exit_code == FINE


def test_a_damaged_log_is_not_paid_from(log: str) -> None:
    """Exit code 4, and the log position."""
    with closing(sqlite3.connect(log)) as database, database:
        database.execute("DELETE FROM stored_events WHERE originator_version = 5")
    result = run("pay", log, "cup")
    assert (result.exit_code, "log position 5" in result.stderr) == (DAMAGED, True)


def test_what_was_paid_shows_beside_what_it_should_have_been(log: str) -> None:
    """40 of it to Zoe, who took no part, by somebody who wrote to the store; `verify` names the row."""
    forge(log, *prizes_paid(ada=60, zoe=40))
    assert [tuple(row.values())[1:] for row in json.loads(run("pay", log, "cup", "--format", "json").stdout)] == [
        *(("ada", "25.00", "60.00"), ("bob", "40.00", "0.00"), ("cyd", "10.00", "0.00"), ("dan", "25.00", "0.00")),
        ("zoe", "0.00", "40.00"),
    ]
    result = run("verify", log)
    assert result.exit_code == FINDINGS
    assert result.stderr.splitlines()[0] == (
        "forecast-ledger: log position 10: contest 'cup': expected 25.00 for 'ada', as on the sealed board; found 60.00"
    )
