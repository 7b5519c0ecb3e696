"""A read model is a rebuild: after every command of random histories every table agrees with the log.

Each season is followed by one runner, refreshed after every command and compared after every refresh; now and then it
is refreshed after several, or started again. There are more seasons of each sort if LONG is in the environment.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.model.commands import AnyCommand, Prices, Quote, read
from forecast_ledger.ledger.model.events import AccountEvent, ParticipantRenamed
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.incremental import incremental_parts
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.readmodel import part_store
from forecast_ledger.replay.readmodel.runner import Runner
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.replay.readmodel.test_runner import PER_FORECAST, kept, rebuilt, stored
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import bet, day, decision, entry, market, trading_floor
from tests.support.read_models import queried
from tests.support.seasons import Season as Tournament
from tests.support.seasons import drawn_rules
from tests.support.trading_seasons import PEOPLE
from tests.support.trading_seasons import Season as Trading

SEASONS = times(2)
CENTS = ("0.1", "0.4", "0.5", "0.5", "0.9")  # few, so that prices come back to what they were


def quoted(random: Random, held: Sequence[str], at: str) -> Iterator[dict[str, Any]]:
    """Prices of binary questions in cents: of all at once, or of one after another."""
    asked = random.sample(held, random.randint(1, len(held)))
    prices = [{"question": name, "prices": {"yes": random.choice(CENTS)}} for name in asked]
    rest: dict[str, Any] = {"type": "quote", "at": at, "quoted_at": at, "source": "book"}
    if random.random() < 0.5:
        yield {**rest, "quotes": prices}
    else:
        yield from ({**rest, **each} for each in prices)


def tournament(seed: int) -> list[AnyCommand]:
    """Forecasts, withdrawals, corrections, annulments, exclusions and seals, under rules drawn field by field."""
    random = Random(seed)
    preset = random.choice(["relative-2022-04", "peer-2025-06", "brier-daily"])
    return oracle.with_ids(
        Tournament(
            random,
            drawn_rules(random),
            preset,
            ending=0.3 * (seed % 2),
            quoted=0.5,
            paid=0.3,
            moved=0.4,
            changing=0.5,
            renamed=0.95,
        ).commands
    )


def trading(seed: int) -> list[AnyCommand]:
    """Bets, sales, resolutions, corrections, cancelled markets, deposits and seals; between them prices in cents."""
    random, said = Random(seed), list[dict[str, Any]]()
    season, held = Trading(seed, 20), list[str]()
    for number, (command, _) in enumerate(season.attempts):
        said.append(command)
        if command["type"] == "open_question" and command["kind"] == "binary":
            held.append(command["question"])
        if held and random.random() < 0.3:
            more = quoted(random, held, command["at"])
            said += [{"id": f"p{number}.{place}", **each} for place, each in enumerate(more)]
        if random.random() < 0.03:
            where = {"contest": f"k{random.randrange(4)}", "participant": random.choice(PEOPLE)}
            level = random.choice(["hidden", "no_rank", "no_prize"])
            excluded = {"type": "exclude_participant", "at": command["at"], "level": level, "reason": "-", **where}
            said.append({"id": f"x{number}", **excluded})
    return [read(msgspec.json.encode(each)) for each in said]


class Followed:
    """A log that grows command by command, its read model, and what became of both."""

    def __init__(self, folder: str, random: Random, seldom: float, model: str = "") -> None:
        """seldom: how often a refresh is left to the next command. model: a read model elsewhere than in the folder.

        Some tables with a row for each forecast are not in the read model.
        """
        self.chosen = random.sample(PER_FORECAST, random.choice([0, 2, 3, 3]))
        self.log, self.model = f"{folder}/log.db", model or f"{folder}/tables.db"
        self.random, self.seldom = random, seldom

    def through(self, asked: Sequence[AnyCommand], compared: Callable[[str, list[Recorded]], None]) -> int:
        """Follow a season; returns how many commands were recorded."""
        recorded, accepted = list[Recorded](), 0
        with Ledger.open(self.log, prizes=prizes_from_log, clock=lambda: 0) as ledger:
            runner = Runner(self.log, self.model, optional=self.chosen)
            try:
                for place, command in enumerate(asked):
                    [receipt] = ledger.handle_many([command])
                    if isinstance(receipt, Receipt) and not receipt.duplicate:
                        accepted += 1
                        recorded += [each for page in ledger.read(len(recorded)) for each in page]
                    last = place == len(asked) - 1
                    if (recorded and self.random.random() >= self.seldom) or last:
                        if self.random.random() < 0.03:
                            runner.close()
                            runner = Runner(self.log, self.model, optional=self.chosen)
                        if runner.refresh().events or last:
                            compared(self.model, recorded)
            finally:
                runner.close()
        return accepted


def compared(path: str, recorded: list[Recorded]) -> None:
    """Every table of a read model, and where it says the log speaks of what, equal a rebuild."""
    names = kept(path)
    expected, actual = rebuilt(recorded, names), stored(path, names)
    for name in names:
        if not CATALOGUE[name].as_built:
            assert sorted(actual[name], key=repr) == sorted(expected[name], key=repr), (name, len(recorded))
        else:
            assert actual[name] == expected[name], (name, len(recorded))
    rows = queried(path, "SELECT question, contest, positions FROM _places")
    places = sorted((int(position), *about) for *about, positions in rows for position in positions.split())
    assert queried(path, "SELECT position, digest FROM _tracking") == [(recorded[-1].position, recorded[-1].digest)]
    assert places == [
        (each.position, *about)
        for each in recorded
        if not isinstance(each.event, AccountEvent)
        and (
            any(about := (getattr(each.event, "question", ""), getattr(each.event, "contest", "")))
            or isinstance(each.event, ParticipantRenamed)
        )
    ]


def followed(asked: Sequence[AnyCommand], seed: int) -> int:
    """A season followed and compared; returns how many commands were recorded."""
    with TemporaryDirectory() as folder:
        return Followed(folder, Random(seed), seldom=0.6 * (seed % 4 == 3)).through(asked, compared)


@pytest.fixture(params=[(2, 10_000), (0, 1)], ids=["together", "one by one"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which most of a contest's questions are scored together, and rows are written together."""
    most, at_once = request.param
    monkeypatch.setattr(incremental_parts, "_MOST", most)
    monkeypatch.setattr(part_store, "_BATCH_ROWS", at_once)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("seed", range(SEASONS))
def test_a_read_model_of_any_tournament_is_a_rebuild_after_every_command(seed: int) -> None:
    """Forecasts of every kind, corrections, annulments, revocations, exclusions and seals, one after another."""
    assert followed(tournament(seed), seed) > 10


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("seed", range(SEASONS // 2))
def test_a_read_model_of_any_season_of_trading_is_a_rebuild_after_every_command(seed: int) -> None:
    """Prices that come back to what they were, quoted one by one and all at once; cash in and out; corrections."""
    assert followed(trading(seed), seed) > 10


def test_a_price_that_returns_leaves_what_it_was_worth_before(tmp_path: Path) -> None:
    """Seven agents, two markets at 0.50, then both at 0.90, then one of them, which Ada alone holds, at 0.50 again.

    1,000 at 0.50 are 2,000 shares: 1,800 at 0.90, which makes 10,800; at 0.50 her total is 10,000, her profit 0.
    """
    names = ["ada", *(f"a{number}" for number in range(6))]
    said: list[Any] = [*trading_floor(*names), market("snow"), entry("week", "snow", at=day(1))]

    def quoted(at: str, **prices: str) -> Quote:
        every = tuple(Prices(question=name, prices={"yes": price}) for name, price in prices.items())
        return Quote(at=at, source="book", quoted_at=at, quotes=every)

    said += [quoted("2026-03-02T00:00:00Z", rain="0.5", snow="0.5")]
    said += [decision(bet(1_000, "yes", "rain" if name == "ada" else "snow"), participant=name) for name in names]
    said += [
        quoted("2026-03-02T01:00:00Z", rain="0.9", snow="0.9"),
        quoted("2026-03-02T02:00:00Z", rain="0.5"),
    ]
    totals = []

    def look(path: str, recorded: list[Recorded]) -> None:
        compared(path, recorded)
        with closing(sqlite3.connect(path)) as connection:
            query = "SELECT total, profit FROM accounts WHERE participant = 'ada'"
            totals.extend(connection.execute(query).fetchall())

    asked = oracle.with_ids(said)
    assert Followed(str(tmp_path), Random(0), seldom=0).through(asked, look) == len(asked)
    assert totals[-3:] == [("10000.00", "0.00"), ("10800.00", "800.00"), ("10000.00", "0.00")]
