"""Portfolios of one contest, participant or span of time: the same rows as in the whole table, and no more work."""

from contextlib import nullcontext
from functools import cache
from random import Random

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import OpenQuestion, Quote
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.projections.trading import account_histories, portfolios
from forecast_ledger.projections.trading.account_histories import AccountHistories, Selection, TickAxis, tick_axis
from forecast_ledger.replay.cli.main import FINE, USAGE
from tests.projections.trading.test_portfolios import facts_after, rules
from tests.replay.cli.test_main import run
from tests.support.given import bet, day, decision, micros, quote, trading_floor
from tests.support.logs import log_fixture, recorded
from tests.support.trading_seasons import Season

TABLE, HOUR = "portfolio_snapshots", 3_600 * 10**6
NUMBERED = [*trading_floor("ada", "bo"), decision(bet()), quote(at=day(4), prices={"yes": "0.5"})]


@cache
def random_tables(seed: int) -> Projections:
    """The tables of a random season with several contests."""
    return Projections(facts([recorded(Season(seed, 40).commands(), refused=True)]))


@pytest.mark.parametrize("seed", range(4))
def test_selected_portfolios_are_rows_of_the_whole_table(seed: int) -> None:
    """Whatever is selected, rows and their order are those of the whole table, filtered."""
    projections, draw = random_tables(seed), Random(seed)
    whole = [*projections.table(TABLE).rows()]
    instants = projections.table(TABLE).numbers("at").tolist()
    for _ in range(6):
        contest = draw.choice([None, *projections.traded])
        participant = draw.choice([None, *projections.traders])
        since, until = (draw.choice([None, draw.choice(instants) + draw.choice([-1, 0, 1, HOUR])]) for _ in "12")
        expected = [
            row
            for row, at in zip(whole, instants, strict=True)
            if contest in {None, row["contest"]}
            and participant in {None, row["participant"]}
            and (since is None or at >= since)
            and (until is None or at < until)
        ]
        begin, end = (None if at is None else format_instant(at) for at in (since, until))
        found = projections.portfolio_snapshots(contest=contest, participant=participant, since=begin, until=end)
        assert [*found.rows()] == expected


def test_only_the_selected_ticks_of_the_selected_accounts_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two contests of two accounts; the rows of one account on one day are 144, and no other tick is counted."""
    floor = trading_floor("ada", "bo", rules=rules(cohorts="none"))
    again = [command for command in floor if not isinstance(command, OpenQuestion | Quote)]
    again = [structs.replace(command, contest="month") for command in again]
    projections = Projections(facts_after(*floor, *again, quote(at=day(20))))
    axes: list[AccountHistories] = []

    def counted(facts: Facts, name: str, own: AccountHistories, *selection: Selection, changes: bool) -> TickAxis:
        axes.append(own)
        return tick_axis(facts, name, own, *selection, changes=changes)

    monkeypatch.setattr(portfolios, "tick_axis", counted)
    for most, refused in ((143, True), (144, False)):
        monkeypatch.setattr(account_histories, "MOST_TICK_ROWS", most)
        with pytest.raises(Refused, match="ask for the portfolios of one") if refused else nullcontext():
            table = projections.portfolio_snapshots(contest="month", participant="bo", since=day(3), until=day(4))
    assert len(table) == 144
    assert [own.participants for own in axes] == [["bo"]]


def test_a_span_before_or_after_every_tick_is_empty() -> None:
    """Rows end where the contest ends; a span whose end is before its beginning has none either."""
    projections = Projections(facts_after(*NUMBERED))
    for since, until in ((day(20), None), (None, "2026-02-01T00:00:00Z"), (day(3), day(2))):
        assert len(projections.portfolio_snapshots(since=since, until=until)) == 0


def test_a_name_that_does_not_exist_is_refused_with_those_that_do() -> None:
    """A wrong name is not an empty table."""
    projections = Projections(facts_after(*NUMBERED))
    with pytest.raises(ValueError, match="no trading contest named 'weak'; there are week"):
        projections.portfolio_snapshots(contest="weak")
    with pytest.raises(ValueError, match="no participant with an account named 'add'; there are ada, bo"):
        projections.portfolio_snapshots(participant="add")
    with pytest.raises(Refused, match="since"):
        projections.portfolio_snapshots(since="2026-03-01T00:00:00")


log = log_fixture(NUMBERED)  # with ticks from March 1 to March 4


def test_the_command_line_passes_conditions_and_a_span_down(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of one account is 144 ticks; --until with a date means the end of that day; other conditions still hold."""
    monkeypatch.setattr(account_histories, "MOST_TICK_ROWS", 144)
    one = ("table", log, TABLE, "--where", "participant=bo", "--from", "2026-03-02", "--until", "2026-03-02")
    done = run(*one, "--format", "csv", "--columns", "participant,at")
    lines = done.stdout.splitlines()
    assert (done.exit_code, len(lines)) == (FINE, 145)
    assert (lines[1], lines[-1]) == ("bo,2026-03-02T00:00:00Z", "bo,2026-03-02T23:50:00Z")
    none = run(*one, "--where", "participant=ada")
    assert (none.exit_code, none.stdout) == (FINE, "") or "no rows meet" in none.stderr
    assert run("table", log, TABLE, "--where", "participant=bo").exit_code == USAGE  # more than 144 ticks


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TABLE, "--where", "contest=weak"), "no contest with accounts named 'weak'; the nearest is week"),
        ((TABLE, "--from", "2026-13-01"), "from"),
        (("accounts", "--until", "2026-03-02"), "accounts has no column `at`"),
    ],
)
def test_a_wrong_selection_is_wrong_usage(log: str, arguments: tuple[str, ...], message: str) -> None:
    """A wrong name, a day that does not exist, and a span of a table without instants."""
    done = run("table", log, *arguments)
    assert (done.exit_code, message in done.stderr) == (USAGE, True), done.stderr


def test_a_span_selects_rows_of_every_table_with_instants(log: str) -> None:
    """Two accounts are granted cash on March 1; ada buys on March 2."""
    for span, movements in (
        (("--from", "2026-03-02"), ["bought"]),
        (("--until", "2026-03-01"), ["granted", "granted"]),
        (("--until", "2026-03-02T00:00:00Z"), ["granted", "granted"]),
        (("--from", day(2), "--until", day(2)), []),
    ):
        done = run("table", log, "cash", *span, "--format", "csv", "--columns", "movement")
        assert done.stdout.splitlines()[1:] == movements, done.stderr


def test_a_tick_after_the_span_does_not_change_a_row_in_it() -> None:
    """On March 3 the shares bought for 500 at 0.40 are worth 500, though they are worth 625 on March 4."""
    found = Projections(facts_after(*NUMBERED)).portfolio_snapshots(participant="ada", since=day(3), until=day(4))
    assert {row["total"] for row in found.rows()} == {"10000.00"}
    assert micros(4) not in found.numbers("at").tolist()
