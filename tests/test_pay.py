"""Paying a contest's winners: what its sealed board says, once, and nothing else."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec import structs

from ledger import Ledger, Receipt, Refused
from ledger.commands import AnyCommand, PayPrizes
from ledger.events import AnyEvent, PrizePaid
from ledger.log import Recorded
from ledger.rules import PRESETS
from projections.projection import Projections
from replay.cli import DAMAGED, FINDINGS, FINE, UNREADABLE, USAGE, main
from replay.pay import pay
from replay.verify import verify
from tests import oracle
from tests.given import (
    AFTER,
    NOW,
    OPENS,
    contest,
    day,
    entry,
    exclusion,
    finalization,
    forecast,
    micros,
    opened,
    payment,
    resolution,
    revocation,
)

PAID_AT = day(28)
RELATIVE = PRESETS["relative-2022-04"]
# Against a median of 0.5, takes of 1, 1.6, 0.4 and 1 in 4: 25, 40, 10 and 25 of 100.
CHANCES = {"ada": "0.5", "bob": "0.8", "cyd": "0.2", "dan": "0.5"}


def said(question: str = "rain", **chances: str) -> list[AnyCommand]:
    """Forecasts that stand from the opening to the close."""
    return [forecast(question, who, probability=chance, at=OPENS) for who, chance in chances.items()]


def cup(*more: AnyCommand, chances: dict[str, str] = CHANCES, **fields: Any) -> list[AnyCommand]:
    """A contest with a pool of 100 over one question, resolved; not sealed yet."""
    opening = contest(**({"pool": 100} | fields))
    return [opened(), opening, entry(), *said(**chances), *more, resolution()]


def sealed(*more: AnyCommand, **fields: Any) -> list[AnyCommand]:
    """The same, sealed."""
    return [*cup(*more, **fields), finalization()]


def kept(path: Path | str, *commands: AnyCommand) -> Ledger:
    """A ledger that has accepted these commands."""
    ledger = Ledger.open(path, clock=lambda: NOW)
    outcomes = ledger.handle_many(oracle.named(commands))
    assert all(isinstance(outcome, Receipt) for outcome in outcomes), outcomes
    return ledger


def events(ledger: Ledger, after: int = 0) -> list[AnyEvent]:
    """What it has recorded after a position."""
    return [recorded.event for page in ledger.read(after) for recorded in page]


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


def table(name: str, *commands: AnyCommand) -> list[dict[str, Any]]:
    """The printed rows of a projection."""
    return list(oracle.projected(*commands).table(name).rows())


def table_of(ledger: Ledger, name: str) -> list[dict[str, Any]]:
    """The printed rows of a projection of a ledger."""
    recorded = [each for page in ledger.read() for each in page]
    return list(Projections(oracle.told(recorded)).table(name).rows())


# --- whom it pays


def test_winners_are_paid_what_the_board_says_one_event_each_by_id() -> None:
    """In 1e-6; the whole pool; at the instant that was given."""
    assert payouts(*sealed()) == [("ada", 25_000_000), ("bob", 40_000_000), ("cyd", 10_000_000), ("dan", 25_000_000)]
    with kept(":memory:", *sealed()) as ledger:
        pay(ledger, "cup", PAID_AT)
        assert {event.at for event in events(ledger) if isinstance(event, PrizePaid)} == {micros(28)}


def test_the_seal_counts_not_what_became_known_later() -> None:
    """Bob forecast best; that the answer was no after all is of no use to Cyd any more."""
    later: list[AnyCommand] = [revocation(), resolution(outcome="no")]
    assert cents(*sealed(), *later) == cents(*sealed())
    assert cents(*cup(), *later, finalization()) == {"ada": 2500, "bob": 1000, "cyd": 4000, "dan": 2500}


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
    """In units of 20 of 100: 1.25, 2, 0.5, 1.25; of 1, 2, 0, 1 one unit is left, for the remainder of a half."""
    assert payouts(*sealed(payable_unit=20)) == [
        *(("ada", 20_000_000), ("bob", 40_000_000), ("cyd", 20_000_000), ("dan", 20_000_000)),
    ]
    assert payouts(*sealed(payable_unit=50)) == [("bob", 50_000_000), ("ada", 50_000_000)][::-1]


def test_who_is_worth_less_than_the_least_prize_leaves_it_to_the_others() -> None:
    """Cyd's 10 are less than 12. 1.6, 1 and 1 of 3.6: 44.444…, 27.777…, 27.777…."""
    least = structs.replace(RELATIVE, least_prize=12_000_000)
    assert cents(*sealed(rules=least)) == {"ada": 2778, "bob": 4444, "dan": 2778}


def test_of_equals_below_the_least_prize_the_last_by_id_gives_way_first() -> None:
    """Three times 33.33 are less than 40, twice 50 are not."""
    least = structs.replace(RELATIVE, least_prize=40_000_000)
    assert cents(*sealed(chances=dict.fromkeys(("cyd", "bob", "ada"), "0.6"), rules=least)) == {
        "ada": 5000,
        "bob": 5000,
    }


@pytest.mark.parametrize(
    "preset", ["relative-2021-11", "relative-2022-04", "peer-2024-03", "peer-2025-06", "spot-peer"]
)
def test_what_is_paid_sums_to_the_pool_and_is_what_the_table_of_prizes_says(preset: str) -> None:
    """Under every preset that has takes."""
    rewarded = {row["participant"]: row["prize"] for row in table("prizes", *sealed(rules=preset))}
    assert [
        (who, f"{amount // 10**6}.{amount % 10**6 // 10_000:02}") for who, amount in payouts(*sealed(rules=preset))
    ] == [(who, prize) for who, prize in rewarded.items() if prize != "0.00"]
    assert sum(amount for _, amount in payouts(*sealed(rules=preset))) == 100_000_000


# --- once


def test_paying_again_records_nothing() -> None:
    """At the same instant or later, by the same ledger or by another on the log."""
    with kept(":memory:", *sealed()) as ledger:
        assert pay(ledger, "cup", PAID_AT) is not None
        head = ledger.head()
        assert [pay(ledger, "cup", at) for at in (PAID_AT, day(29))] == [None, None]
        assert ledger.head() == head


def test_who_was_paid_by_a_command_is_not_paid_again() -> None:
    """Whatever that command paid: to say whether it was right is for `verify`."""
    with kept(":memory:", *sealed(), payment(ada=100)) as ledger:
        head = ledger.head()
        assert pay(ledger, "cup", PAID_AT) is None
        assert ledger.head() == head


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


class Overtaken(Ledger):
    """A ledger that is overtaken by something else just after its log was read."""

    overtake: Callable[[], object] = staticmethod(lambda: None)

    def read(self, after: int = 0) -> Iterator[list[Recorded]]:
        """Page by page; then, once, comes what overtakes it."""
        yield from super().read(after)
        overtake, self.overtake = self.overtake, lambda: None
        overtake()


@pytest.mark.parametrize("when", [PAID_AT, day(29)])
def test_of_two_who_pay_at_once_the_slower_one_finds_it_done(tmp_path: Path, when: str) -> None:
    """Both saw that nothing was paid; whether or not they claim the same instant, one is told that it paid."""
    with kept(tmp_path / "log.db", *sealed()) as first, Overtaken.open(tmp_path / "log.db") as second:
        receipts: list[Receipt | None] = []
        second.overtake = lambda: receipts.append(pay(first, "cup", PAID_AT))
        assert pay(second, "cup", when) is None
        assert [receipt and (receipt.first, receipt.last) for receipt in receipts] == [(10, 13)]
        assert [type(event) is PrizePaid for event in events(first, 9)] == [True] * 4
    assert verify(str(tmp_path / "log.db")).position == 13


def test_who_is_overtaken_by_another_command_that_pays_finds_it_done(tmp_path: Path) -> None:
    """It is not asked whether that paid the same."""
    with kept(tmp_path / "log.db", *sealed()) as first, Overtaken.open(tmp_path / "log.db") as second:
        second.overtake = lambda: first.handle(payment(bob=100), "by hand")
        assert pay(second, "cup", PAID_AT) is None
        assert len(events(first, 9)) == 1


def test_many_who_pay_at_once_pay_once(tmp_path: Path) -> None:
    """Eight threads, each with a ledger of its own."""
    path = tmp_path / "log.db"
    kept(path, *sealed()).close()
    start, receipts = threading.Barrier(8), list[Receipt | None]()

    def paying(number: int) -> None:
        with Ledger.open(path) as ledger:
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
    """The refusal names those that are."""
    assert refusal(*cup(), name="cap") == ("unknown_contest", "contest", "cap")
    with kept(":memory:", *cup(), contest("a")) as ledger, pytest.raises(Refused, match="there are: a, cup"):
        pay(ledger, "cap", PAID_AT)
    with Ledger.open(":memory:") as ledger, pytest.raises(Refused, match="there are: none"):
        pay(ledger, "cap", PAID_AT)


def test_a_contest_that_is_not_finalized_is_not_paid() -> None:
    """Its board may still change."""
    assert refusal(*cup()) == ("contest_not_finalized", "contest", "cup")
    assert refusal(*cup(), contest("cap"), finalization("cap")) == ("contest_not_finalized", "contest", "cup")


@pytest.mark.parametrize(
    "nobody",
    [
        sealed(pool=0),
        sealed(rules=structs.replace(RELATIVE, least_prize=100_000_001)),
        sealed(chances={}),
        sealed(chances={"ada": "0.7"}, rules="peer-2024-03"),
        sealed(rules="baseline"),
        sealed(*(exclusion(participant=who) for who in CHANCES)),
        [contest(pool=100), finalization()],
    ],
    ids=["no pool", "a pool below the least prize", "no forecast", "no peer", "no take", "all excluded", "no question"],
)
def test_a_board_on_which_nobody_wins_pays_nobody(nobody: list[AnyCommand]) -> None:
    """The refusal says so; the pool stays where it is."""
    assert refusal(*nobody) == ("payouts_miss_pool", "contest", "cup")
    with kept(":memory:", *nobody) as ledger, pytest.raises(Refused, match="gives nobody a prize"):
        pay(ledger, "cup", PAID_AT)


def test_a_pool_of_just_the_least_prize_goes_to_the_best() -> None:
    """A unit more, and nobody would have won."""
    least = structs.replace(RELATIVE, least_prize=100_000_000)
    assert cents(*sealed(rules=least)) == {"bob": 10_000}


@pytest.mark.parametrize(
    ("said_to_pay", "code"),
    [
        ({"ada": 25, "bob": 40, "cyd": 10}, "payouts_miss_pool"),
        ({"ada": 25, "bob": 40, "cyd": 10, "dan": "25.01"}, "payouts_miss_pool"),
        ({"ada": "99.995", "bob": "0.005"}, "payouts_miss_pool"),
        ({"ada": 101, "bob": -1}, "out_of_range"),
        ({"ada": 100, "bob": 0}, "out_of_range"),
        ({"ada": "NaN"}, "not_finite"),
    ],
)
def test_a_command_cannot_pay_what_does_not_sum_to_the_pool_in_payable_units(
    said_to_pay: dict[str, Any], code: str
) -> None:
    """Nor nothing, nor less than nothing."""
    with kept(":memory:", *sealed()) as ledger:
        head = ledger.head()
        with pytest.raises(Refused) as refused:
            ledger.handle(PayPrizes(at=AFTER, contest="cup", payouts=said_to_pay), "by hand")
        assert (refused.value.code, ledger.head()) == (code, head)


def test_a_command_cannot_pay_nobody() -> None:
    """Even of no pool."""
    for pool in (0, 100):
        with kept(":memory:", *sealed(pool=pool)) as ledger, pytest.raises(Refused, match="payouts_miss_pool"):
            ledger.handle(PayPrizes(at=AFTER, contest="cup", payouts={}), "by hand")


def test_a_command_cannot_pay_again_what_was_paid() -> None:
    """Not the same, not another sum, not under its own id with other winners."""
    with kept(":memory:", *sealed()) as ledger:
        ledger.handle(payment(ada=100), "by hand")
        assert ledger.handle(payment(ada=100), "by hand").duplicate
        for again, name, code in (
            (payment(ada=100), "again", "prizes_paid"),
            (payment(bob=1), "again", "prizes_paid"),
            (payment(bob=100), "by hand", "command_id_reused"),
        ):
            with pytest.raises(Refused) as refused:
                ledger.handle(again, name)
            assert refused.value.code == code


# --- names that could be in the way


def test_a_contest_whose_name_is_as_long_as_names_may_be_is_paid() -> None:
    """And one beside it that differs in the last character alone."""
    names = ["x" * 200, "x" * 199 + "y"]
    asked = [opened(), *said(**CHANCES), resolution()]
    asked += [each for name in names for each in (contest(name, pool=100), entry(name), finalization(name))]
    with kept(":memory:", *asked) as ledger:
        assert all(pay(ledger, name, PAID_AT) for name in names)
        assert [row["paid"] for row in table_of(ledger, "contests")] == ["100.00", "100.00"]


@pytest.mark.parametrize("used", ["pay cup", "pay", "cup"])
def test_a_command_id_that_somebody_used_is_not_in_the_way(used: str) -> None:
    """A payment is recorded under an id that follows from the seal."""
    with kept(":memory:", *sealed()) as ledger:
        ledger.handle(opened("wind"), used)
        assert pay(ledger, "cup", PAID_AT)


def test_winners_of_any_name_are_paid() -> None:
    """Also one who is called like the consensus, which itself wins nothing."""
    names = ["[consensus]", "a, b", "Ünï", "=1+1", "0"]
    rules = structs.replace(RELATIVE, score_consensus=True)
    asked = sealed(chances=dict.fromkeys(names, "0.6"), rules=rules)
    assert cents(*asked) == dict.fromkeys(sorted(names), 2000)


# --- on the command line


def run(*arguments: str) -> Result:
    """The command line in this process; a traceback would be its exception."""
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def log(tmp_path: Path) -> str:
    """The log of a sealed contest, nine rows long."""
    path = str(tmp_path / "log.db")
    kept(path, *sealed()).close()
    return path


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
    assert again.stderr.splitlines() == ["paid before; nothing was recorded", first.stderr.splitlines()[1]]


def test_prizes_paid_by_hand_that_differ_from_the_board_are_findings(log: str) -> None:
    """The command alone is only held to the pool: whoever pays again learns who was paid amiss, with exit code 1."""
    with Ledger.open(log) as ledger:
        ledger.handle(payment(at=PAID_AT, ada=60, bob=40), "by hand")
    result = run("pay", log, "cup")
    assert (result.exit_code, len(result.stdout.splitlines())) == (FINDINGS, 5)
    told = "what was paid is not what the sealed board says: ada, cyd, dan; `verify` says where"
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
    with Ledger.open(log) as ledger:
        ledger.handle(contest("league", pool=10), "league")
        ledger.handle(entry("league"), "league-rain")
    assert len(json.loads(run("table", log, "prizes", "--format", "json").stdout)) == 8
    assert len(json.loads(run("pay", log, "cup", "--format", "json").stdout)) == 4


def test_a_payment_claims_the_instant_it_is_made(log: str) -> None:
    """By this machine's clock."""
    before = datetime.now(UTC)
    run("pay", log, "cup")
    with Ledger.open(log) as ledger:
        [at] = {event.at for event in events(ledger, 9)}
    assert before <= datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("spring", "unknown_contest: contest = 'spring': no such contest here; there are: cup, empty, open;"),
        ("open", "contest_not_finalized: contest = 'open': the contest's board is not sealed;"),
        ("empty", "payouts_miss_pool: contest = 'empty': its sealed board gives nobody a prize;"),
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


def test_a_ledger_of_another_name_has_contests_of_its_own(log: str) -> None:
    """In the one store."""
    result = run("pay", log, "cup", "--name", "other")
    assert (result.exit_code, "there are: none" in result.stderr) == (USAGE, True)
    assert run("pay", log, "cup", "--name", "main").exit_code == FINE


def test_a_damaged_log_is_not_paid_from(log: str) -> None:
    """Exit code 4, and the log position."""
    with closing(sqlite3.connect(log)) as database, database:
        database.execute("DELETE FROM stored_events WHERE originator_version = 5")
    result = run("pay", log, "cup")
    assert (result.exit_code, "log position 5" in result.stderr) == (DAMAGED, True)


def test_what_was_paid_by_hand_shows_beside_what_it_should_have_been(log: str) -> None:
    """40 of it to Zoe, who took no part: it sums to the pool, so it is recorded; `verify` names the row."""
    with Ledger.open(log) as ledger:
        ledger.handle(payment(ada=60, zoe=40), "by hand")
    assert [tuple(row.values())[1:] for row in json.loads(run("pay", log, "cup", "--format", "json").stdout)] == [
        *(("ada", "25.00", "60.00"), ("bob", "40.00", "0.00"), ("cyd", "10.00", "0.00"), ("dan", "25.00", "0.00")),
        ("zoe", "0.00", "40.00"),
    ]
    result = run("verify", log)
    assert (result.exit_code, result.stdout) == (DAMAGED, "")
    assert result.stderr == (
        "forecast-ledger: the log is damaged: log position 10: contest 'cup': "
        "'ada' is paid 60.00 where the sealed board says 25.00\n"
    )
