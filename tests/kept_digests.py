"""Digests of logs and tables, kept in a file: python -m tests.kept_digests [HISTORY ...] takes them anew.

The histories are every story in data/, a real season, real markets, and random seasons; nothing in them depends on a
clock, on the order of hashes, or on the machine.
"""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache, partial
from hashlib import sha256
from itertools import filterfalse
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model.commands import AnyCommand, Evidence, ModelCall, PayPrizes, read
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading as TradingRules
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.importing.kinds import KINDS
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import LeftOut, carried
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import Replay, TableSummary, replay
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.support import flusight, given, replication
from tests.support.maps import read_rows
from tests.support.seasons import Season as Tournament
from tests.support.seasons import (
    board_rules,
    drawn_rules,
    first_rules,
    imputed_rules,
    mean_rules,
    median_rules,
    shown_rules,
)
from tests.support.trading_seasons import Season as Trading
from tests.system.test_stories import DATA, STORIES, commands

KEPT = Path(__file__).with_suffix(".json")
SOURCES = {"flusight": flusight.SOURCE, "replication": replication.SOURCE}  # which are not part of the project
# Tables that take long of these; their digests are kept of all other histories.
LARGE = (
    "adjusted_intervals",
    "baseline_differences",
    "corp_band",
    "intervals",
    "marginal_ranks",
    "pairwise",
    "participant_review",
    "relative_skill",
    "resolution",
    "score_over_time",
)
MANY_TRADERS = ("calibration_test", "calibration_time_weighted")  # take long of the markets, too
WITHOUT = {"flusight": LARGE, "replication": (*LARGE, *MANY_TRADERS)}
TOURNAMENTS = {  # seed -> preset; found by trying, so that between them they have whatever the generator can draw
    4: "relative-2021-11", 6: "relative-2021-11", 11: "relative-2021-11", 14: "relative-2021-11",
    26: "relative-2021-11", 32: "relative-2021-11", 108: "relative-2022-04", 117: "relative-2022-04",
    122: "relative-2022-04", 134: "relative-2022-04", 212: "relative-faq", 218: "relative-faq", 309: "baseline",
    325: "baseline", 413: "peer-2024-03", 514: "peer-2025-06", 602: "spot-peer", 713: "spot-baseline",
    806: "peer-average", 822: "peer-average", 900: "autocast-2022", 1_031: "brier-daily",
}  # fmt: skip
BOARDS = (2_000, 2_002, 2_008, 2_012)  # seeds of seasons whose rules have later fields, found in the same way
REFERENCES = (
    3_002,
    3_003,
    3_004,
    3_015,
    3_101,
    3_150,
    3_156,
    3_355,
)  # with reference forecasters
PAYOUTS = (4_005, 4_006, 4_017)  # seeds of seasons in which some answers are payouts
MEANS = (5_035, 5_038, 5_040)  # seeds of seasons under the kernel `brier_mean`
MEDIANS = (6_001, 6_006, 6_007, 6_009, 6_010, 6_020, 6_034)  # seeds of seasons with the reference `median_score`
CORRECTED = (8_001, 8_002)  # seeds of seasons with restated forecasts and amended questions
RENAMED = (9_001, 9_002)  # seeds of seasons in which participants get other ids, or are one person
IMPUTED = (7_005, 7_010, 7_014, 7_019, 7_047)  # seeds of seasons with an imputation
MARKETS = (*range(10), 36, 49)  # seeds of seasons of trading, found in the same way
STEPS = 40  # of each of these
LAG = 977_353  # µs by which the ledger's clock is behind what commands of trading claim

RENEWAL = """
If this was not intended, a number that people have was changed by accident: find out where. If it was intended, run
    python -m tests.kept_digests
and name every renewed digest in CHANGELOG.md. A renewed digest of a table raises the version of the table in the
catalogue. The bytes of a log that exists never change."""

ADDITION = """
What is new needs a history in tests/kept_digests.py that has it: a function that yields batches of commands, with a
row in HISTORIES (a kernel that no season draws: a small contest of your own, named in SCORED of
tests/system/test_kept_digests.py). Give each command an id of its own: refused ones are not recorded. Then run
    python -m tests.kept_digests"""

Batch = tuple[int, list[AnyCommand]]  # what is recorded together, and when: µs


class Digests(NamedTuple):
    """The kept digests of a history.

    rows: how many the log has, and the SHA-256 of their bytes, one after another. head: the last row's digest.
    tables: every projection of the catalogue; None if it was never taken, because the source was not there.
    """

    rows: tuple[int, str]
    head: str
    tables: Mapping[str, TableSummary | None]


NOTHING = Digests((0, ""), "", {})


class Taken(NamedTuple):
    """A history's digests, and its rows and projections, of which they were taken."""

    digests: Digests
    rows: list[bytes]
    projections: Projections


# --- histories


def _story(name: str) -> Iterator[Batch]:
    """Each command is recorded when it happens."""
    for command in commands(name):
        yield read_instant(command.at), [command]


def _paid() -> Iterator[Batch]:
    """A story, its board sealed, and what it pays."""
    yield from _story("metaculus-2022")
    seal = read((DATA / "metaculus-2022" / "sealed.jsonl").read_bytes())
    yield read_instant(seal.at), [seal]
    yield read_instant(seal.at), [PayPrizes(id="pay", at=seal.at, contest="plain")]


def _imported() -> Iterator[Batch]:
    """A contest whose questions, forecasts and answers come from CSV."""
    folder = DATA / "csv-import"
    yield 0, [read((folder / "contest.jsonl").read_bytes())]
    for name, table in (("questions", "questions"), ("forecasts", "forecasts"), ("resolutions", "questions")):
        yield _mapped(folder, name, table)


def _dumps() -> Iterator[Batch]:
    """Dumps of several projects, each by its map."""
    judgment = [("questions", "questions"), ("forecasts", "forecasts"), ("answers", "questions")]
    maps = [(f"good-judgment-{name}", f"good-judgment-{table}") for name, table in judgment]
    for name, table in (*maps, ("predictionbook", "predictionbook"), ("mlb-elo", "mlb-elo")):
        yield _mapped(DATA / "dumps", name, table)


def _mapped(folder: Path, name: str, table: str) -> Batch:
    """The commands that a map makes of a table, none of which is refused."""
    with (folder / f"{table}.csv").open("rb") as file:
        rows = read_rows(parse_map((folder / f"{name}.toml").read_bytes()), file)
        made = [command for _, command in rows.commands]
    assert not any(isinstance(command, Exception) for command in made)
    return 0, [command for command in made if not isinstance(command, Exception)]


def _from_source(kind: str, folder: str, *, trades: bool = False) -> Iterator[Batch]:
    """What is read of a published format, without the answers that replace others."""
    read = KINDS[kind].traded if trades else KINDS[kind].read
    assert read is not None
    items = carried(read(SourceFiles(DATA / folder), None).items, LeftOut())
    yield 0, [command for _, command in items if not isinstance(command, Exception)]


def _flusight() -> Iterator[Batch]:
    """The season as its hub received it."""
    for at, said in flusight.batches(flusight.rows()):
        yield flusight.micros(at), [read(json.dumps(command)) for command in said]


def _replication() -> Iterator[Batch]:
    yield 0, [read(json.dumps(command)) for command in replication.commands(replication.rows())]


def _arena() -> Iterator[Batch]:
    """A small arena with a lenient reader, failed calls, and a hidden participant who holds a position at the end."""
    call = ModelCall(input_tokens=5_200, cost="0.0187", settings={"temperature": 0.7}, shown=("rain", "colour"))
    fenced = '```json\n{"action": "HOLD", "reasoning": "I wait.", "bets": null}\n```'
    rules = RuleSet(name="own", trading=TradingRules(replies="lenient", completed_by="shown"))
    story = [
        *given.trading_floor("ada", "bob", "cid", rules=rules, series="weekly"),
        given.failed_call(call=ModelCall(latency_ms=40_000)),
        given.decision(given.bet(1_000), call=call),
        given.replied(fenced, participant="bob", call=call),
        given.decision(given.bet(500, "red", "colour"), participant="cid"),
        given.resolution(at=given.day(8)),
        given.exclusion("week", "cid", level="hidden"),
        given.finalization("week"),
    ]
    yield 0, [msgspec.structs.replace(command, id=f"c{number}") for number, command in enumerate(story)]


def _deep() -> Iterator[Batch]:
    """Bets and a sale at quotes with sizes, filled in part, with fees."""
    deep = TradingRules(
        depth="partial", fee_rate_ppm=70_000, fee_unit_micros=10_000, fee_rounding="cash", period_days=0
    )
    sizes: dict[str, Any] = {"ask_sizes": {"yes": 1_000}, "bid_sizes": {"yes": 300}}
    said: list[AnyCommand] = [
        *given.trading_floor("ada", "bob", rules=RuleSet(name="deep", trading=deep)),
        given.quote(**sizes),
        given.decision(given.bet(500), given.bet(300, "no")),
        given.decision(given.bet(100), participant="bob"),
        given.quote(at=given.day(3), **sizes | {"bid_sizes": {"yes": 800}}),
        given.decision(given.sale(), period=2, at=given.day(3)),
        given.resolution(at=given.day(9)),
    ]
    yield 0, [msgspec.structs.replace(command, id=f"c{number}") for number, command in enumerate(said)]


def _changing() -> Iterator[Batch]:
    """Outcomes removed and added while forecasts stand, and forecasts in the grace period and after it."""
    said: list[AnyCommand] = [given.choices()]
    said += [given.contest(name, rules=rules) for name, rules in (("cup", "baseline"), ("peers", "peer-2025-06"))]
    said += [given.entry(name, question="colour") for name in ("cup", "peers")]
    for who, first in (("ada", "0.2"), ("bob", "0.4")):
        chances = {"red": first, "green": "0.1", "blue": str(round(0.9 - float(first), 1))}
        said.append(given.forecast("colour", participant=who, at=given.OPENS, probabilities=chances))
    said += [given.removal(at=given.day(12)), given.addition(at=given.day(13), grace_ends_at=given.day(15))]
    later = {"green": "0.2", "blue": "0.3", "violet": "0.5"}
    said += [
        given.forecast("colour", participant=who, at=given.day(on), probabilities=later)
        for who, on in (("ada", 14), ("bob", 17))
    ]
    said.append(given.resolution("colour", outcome="violet"))
    yield 0, [msgspec.structs.replace(command, id=f"c{number}") for number, command in enumerate(said)]


def _samples() -> Iterator[Batch]:
    """Samples by their CRPS, and a mean by its squared error, against nothing, the peers and the median score."""
    own = RuleSet(name="own", quantile_kernel="pinball", period="covered", total="mean", reference_rows=("uniform",))
    said: list[AnyCommand] = [given.ensemble(), given.ensemble("mean", samples=1, open_upper=True, decimals=6)]
    for name, reference in (("cup", "none"), ("peers", "peers"), ("median", "median_score")):
        rules = msgspec.structs.replace(own, reference=reference)
        said += [given.contest(name, rules=rules), given.entry(name, question="depths")]
        squares = msgspec.structs.replace(rules, quantile_kernel="squared")
        said += [given.contest(f"mean {name}", rules=squares), given.entry(f"mean {name}", question="mean")]
    for who, on, samples in (("ada", 11, (1, "2.5", 4)), ("bob", 12, (0, 0, "0.125")), ("ada", 14, (2, 2, 3))):
        said.append(given.forecast("depths", participant=who, at=given.day(on), samples=samples))
        said.append(given.forecast("mean", participant=who, at=given.day(on), samples=samples[1:2]))
    said += [given.resolution("depths", value="2.25"), given.resolution("mean", value="1.0000001")]
    yield 0, [msgspec.structs.replace(command, id=f"c{number}") for number, command in enumerate(said)]


def _elsewhere() -> Iterator[Batch]:
    """Trades of elsewhere: shares bought, sold and owed, complete sets, all outcomes but one, and their payouts."""
    own = RuleSet(name="short", trading=TradingRules(recorded_trades=True, short_sales=True))
    said: list[AnyCommand] = [*given.trading_floor("ada", "bob", rules="market-trades")]
    said += [given.cohort("short", rules=own), given.entry("short", at=given.SUNDAY)]
    said += [given.enrolment("short", at=given.SUNDAY), given.sold(contest="short"), given.quote(at=given.day(3))]
    said += [given.traded(30, 15, contest="short", fee="0.5"), given.traded(), given.sold(25, 20, at=given.day(4))]
    said += [given.traded(10, 10, None, question="colour"), given.sold(4, "3.5", "red", question="colour")]
    said += [given.traded(10, "5.000001", None, all_but="red", question="colour", participant="bob")]
    said += [given.traded(60, 20, "no", at=given.day(30)), given.sold(50, 50, None, at=given.day(30))]
    said += [given.resolution(payouts={"yes": "1/3", "no": "2/3"}, at=given.day(31))]
    said += [given.resolution("colour", outcome="blue", at=given.day(31)), given.finalization("week", at=given.day(31))]
    yield 0, [msgspec.structs.replace(command, id=f"c{number}") for number, command in enumerate(said)]


def _against() -> Iterator[Batch]:
    """Shares against one of several outcomes: bets, a sale, a trade of elsewhere, payouts and refunded stakes."""
    trading = TradingRules(cap_divisor=1, period_days=0, recorded_trades=True, shares_against=True)
    said: list[AnyCommand] = given.trading_floor("ada", "bob", rules=RuleSet(name="against", trading=trading))
    said += [given.palette("shade", at=given.SUNDAY), given.entry("week", "shade", at=given.SUNDAY)]
    said += [given.quote("shade", prices={"red": "0.7", "green": "0.2"})]
    bets = (given.bet(100, "not red", "colour"), given.bet(90, "not green", "shade"), given.bet(60, "red", "colour"))
    said += [given.decision(*bets), given.quote("colour", at=given.day(3), prices={"red": "0.2", "green": "0.6"})]
    said += [given.decision(given.sale(50), period=2, at=given.day(3)), given.decision(bets[0], participant="bob")]
    said += [given.traded(10, "5.5", None, all_but="blue", question="colour", participant="bob", at=given.day(4))]
    said += [given.resolution("colour", payouts={"red": "1/3", "green": "1/6", "blue": "1/2"}, at=given.day(30))]
    said += [given.cancellation("shade", policy="refund_stake", at=given.day(30))]
    said += [given.resolution(at=given.day(31)), given.finalization("week", at=given.day(31))]
    yield 0, [msgspec.structs.replace(command, id=f"c{number}") for number, command in enumerate(said)]


def tournament(seed: int, preset: str) -> Iterator[Batch]:
    """A season under a preset and two rule sets drawn field by field."""
    random = Random(seed)
    return Tournament(random, preset, first_rules(random), first_rules(random)).batches()


def boards(seed: int) -> Iterator[Batch]:
    """A season under rules with later fields."""
    random = Random(seed)
    return Tournament(random, "peer-average-2023", board_rules(random), board_rules(random)).batches()


def references(seed: int) -> Iterator[Batch]:
    """A season with prices, under rules that show reference forecasters."""
    random = Random(seed)
    return Tournament(random, shown_rules(random), shown_rules(random), quoted=0.8).batches()


def payouts(seed: int) -> Iterator[Batch]:
    """A season in which some answers are payouts, under the preset that scores them and two drawn rule sets."""
    random = Random(seed)
    return Tournament(random, "forecastbench", drawn_rules(random), drawn_rules(random), paid=0.5).batches()


def means(seed: int) -> Iterator[Batch]:
    """A season in which some answers are payouts, under two rule sets with the kernel `brier_mean`."""
    random = Random(seed)
    return Tournament(random, mean_rules(random), mean_rules(random), paid=0.5).batches()


def medians(seed: int) -> Iterator[Batch]:
    """A season in which some answers are payouts, under two rule sets with the reference `median_score`."""
    random = Random(seed)
    return Tournament(random, median_rules(random), median_rules(random), paid=0.2).batches()


def imputed(seed: int) -> Iterator[Batch]:
    """A season under two rule sets with an imputation; markets are quoted."""
    random = Random(seed)
    return Tournament(random, imputed_rules(random), imputed_rules(random), quoted=0.7).batches()


def corrected(seed: int) -> Iterator[Batch]:
    """A season in which forecasts are restated and questions amended, under a preset and drawn rules."""
    random = Random(seed)
    return Tournament(random, "peer-2025-06", drawn_rules(random), restated=0.8).batches()


def renamed(seed: int) -> Iterator[Batch]:
    """A season in which participants are renamed and merged, and forecasts restated, under a preset and drawn rules."""
    random = Random(seed)
    return Tournament(random, "peer-2025-06", drawn_rules(random), changing=0.5, restated=0.5, renamed=0.8).batches()


def trading(seed: int) -> Iterator[Batch]:
    """A season of trading, each command recorded a little after the instant that it claims."""
    for command, _ in Trading(seed, STEPS).attempts:
        yield read_instant(command["at"]) + LAG, [read(msgspec.json.encode(command))]


def _twenty() -> Iterator[Batch]:
    """Three forecasters of twenty questions, so many that sets of ranks are given."""
    said: list[AnyCommand] = [given.contest(rules=RuleSet(name="own", kernel="brier", period="covered", total="mean"))]
    for number in range(20):
        name = f"q{number}"
        said += [given.opened(name), given.entry(question=name)]
        for who, numerator in (("ada", 7 * number % 9 + 1), ("bob", 5), ("cid", 5 * number % 8 + 1)):
            said.append(given.forecast(name, who, probability=Decimal(numerator) / 10))
        said.append(given.resolution(name, outcome=("yes", "no")[number % 3 == 0]))
    yield 0, [msgspec.structs.replace(command, id=f"c{number}") for number, command in enumerate(said)]


def _told() -> Iterator[Batch]:
    """Commands that say who asked for them, why, and on what evidence, or only some of it; one has several events."""
    gauge = Evidence(url="https://example.org/gauge", text='6.2 mm,\n"dry"', sha256="AB" * 32)
    restated = given.restatement(given.forecast(at=given.day(11)), given.forecast(at=given.day(12)))
    made: list[AnyCommand] = [
        given.contest(by="org", causation="plan 7"),
        given.opened(by="org", reason="a reader asked"),
        given.entry(),
        given.forecast(by="Zoë Ødegård", correlation="request 1"),
        given.forecast(participant="bob"),
        structs.replace(restated, by="importer", evidence=(gauge, Evidence(text="the form"))),
        given.resolution(by="ada", reason="seen at noon", evidence=gauge, correlation="request 2"),
        structs.replace(given.revocation(), evidence=Evidence(sha256="cd" * 32)),
        given.resolution(outcome="no", at=given.day(27)),
    ]
    yield given.NOW, [structs.replace(command, id=f"t{number}") for number, command in enumerate(made)]


def _required() -> Iterator[Batch]:
    """Versions that writers must have, the second one an older one, among other commands."""
    said: list[AnyCommand] = [given.opened(), given.requirement("0.2.0"), given.contest()]
    said += [given.requirement("0.1.9rc1"), given.entry()]
    yield given.NOW, [structs.replace(command, id=f"v{number}") for number, command in enumerate(said)]


def _divided() -> Iterator[Batch]:
    """Numbers that the ledger divides by their sum: equal ones, a sum above 1, the smallest ones, and a sum of 1."""
    said: list[AnyCommand] = [given.contest(), given.choices(), given.entry(question="colour")]
    said.append(given.contest("brier", rules=RuleSet(name="own", kernel="brier", period="covered", total="mean")))
    said.append(given.entry("brier", "colour"))
    shares = [
        ("0.33", "0.33", "0.33"),
        ("1", "0.5", "0.25"),
        ("0.000000001", "0", "0.000000002"),
        ("0.2", "0.3", "0.5"),
    ]
    for number, stated in enumerate(shares):
        probabilities = dict(zip(given.COLOURS, stated, strict=True))
        made = given.forecast(
            "colour", "ada", probabilities=probabilities, normalized="by_sum", at=given.day(11 + number)
        )
        said += [made, structs.replace(made, participant=f"user {number}")]
    said += [given.resolution("colour", outcome=given.COLOURS[0])]
    numbered = [structs.replace(command, id=f"n{number}") for number, command in enumerate(said)]
    yield given.NOW, numbered[:-3]
    yield given.NOW, numbered[-3:]


HISTORIES: dict[str, Callable[[], Iterable[Batch]]] = {
    **{name: partial(_story, name) for name in STORIES},
    "metaculus-2022, paid": _paid,
    "csv-import": _imported,
    "dumps": _dumps,
    "hub-import": partial(_from_source, "hubverse", "hub-import"),
    "kalshi-import": partial(_from_source, "kalshi", "kalshi-import"),
    "manifold-import": partial(_from_source, "manifold", "manifold-import"),
    "manifold-trades": partial(_from_source, "manifold", "manifold-trades", trades=True),
    "polymarket-import": partial(_from_source, "polymarket", "polymarket-import"),
    "forecastbench-import": partial(_from_source, "forecastbench", "forecastbench-import"),
    "metaculus-import": partial(_from_source, "metaculus", "metaculus-import"),
    "arena": _arena,
    "depth": _deep,
    "divided": _divided,
    "elsewhere": _elsewhere,
    "against": _against,
    "changing": _changing,
    "samples": _samples,
    "told": _told,
    "twenty": _twenty,
    "required": _required,
    "flusight": _flusight,
    "replication": _replication,
    **{f"tournament {seed}": partial(tournament, seed, preset) for seed, preset in TOURNAMENTS.items()},
    **{f"boards {seed}": partial(boards, seed) for seed in BOARDS},
    **{f"references {seed}": partial(references, seed) for seed in REFERENCES},
    **{f"payouts {seed}": partial(payouts, seed) for seed in PAYOUTS},
    **{f"means {seed}": partial(means, seed) for seed in MEANS},
    **{f"medians {seed}": partial(medians, seed) for seed in MEDIANS},
    **{f"imputed {seed}": partial(imputed, seed) for seed in IMPUTED},
    **{f"corrected {seed}": partial(corrected, seed) for seed in CORRECTED},
    **{f"renamed {seed}": partial(renamed, seed) for seed in RENAMED},
    **{f"trading {seed}": partial(trading, seed) for seed in MARKETS},
}


# --- their digests


def missing(name: str) -> Path | None:
    """The source that a history needs and that is not here."""
    source = SOURCES.get(name)
    return None if source is None or source.is_file() else source


def record(batches: Iterable[Batch], log: Path) -> None:
    """Write a log."""
    now = [0]
    with Ledger.open(log, clock=lambda: now[0], prizes=prizes_from_log) as ledger:
        for now[0], together in batches:
            ledger.handle_many(together)


def taken(log: Path, replayed: Replay | None = None, without: Collection[str] = ()) -> Taken:
    """The digests of a log and its tables as this code makes them.

    replayed: the log's tables, if they are there. without: tables whose digests are not taken.
    """
    with Log(str(log)).opened() as store:
        rows = [row for page in store.pages() for row in page]
    replayed_log = replayed or replay(log)
    built: dict[str, TableSummary | None] = dict.fromkeys(CATALOGUE)
    for table in (replayed_log.table(name) for name in CATALOGUE if name not in without):
        built[table.name] = TableSummary(table.version, len(table), table.digest())
    digests = Digests((len(rows), sha256(b"".join(rows)).hexdigest()), replayed_log.checkpoint.digest, built)
    return Taken(digests, rows, replayed_log.projections)


def record_and_take(name: str, without: Collection[str] = ()) -> Taken:
    """A history recorded, and its digests taken, without those of some tables."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log.db"
        record(HISTORIES[name](), log)
        return taken(log, without=WITHOUT.get(name, without))


def check(name: str, now: Digests) -> None:
    """Fail if a history has other digests than are kept of it."""
    lines = differences(name, kept().get(name, NOTHING), now)
    assert not lines, "\n".join([*lines, RENEWAL])


def differences(name: str, kept: Digests, now: Digests) -> list[str]:
    """The differences between a history's kept digests and those of now, a line each."""
    pairs: dict[str, tuple[Any, Any]] = {"rows of the log": (kept.rows, now.rows), "log digest": (kept.head, now.head)}
    for table in sorted(kept.tables.keys() | now.tables.keys()):
        pairs[f"table {table}"] = kept.tables.get(table), now.tables.get(table)
    return [
        f"{name}, {what}: {_shown(was)} was kept, {_shown(is_)} is here"
        for what, (was, is_) in pairs.items()
        if was != is_
    ]


def _shown(value: Any) -> str:
    if isinstance(value, TableSummary):
        return f"version {value.version}, {value.rows} rows, digest {value.digest}"
    if isinstance(value, tuple):
        return f"{value[0]} rows, SHA-256 {value[1]}"
    return "nothing" if value is None else f"{value}"


# --- the file


@cache
def kept() -> dict[str, Digests]:
    """The digests in the file, which is read once; tables without rows are written once for all histories."""
    said = json.loads(KEPT.read_bytes())
    empty = {
        table: TableSummary(version, 0, digest) for table, (version, digest) in said.pop("tables without rows").items()
    }
    return {
        name: Digests(
            tuple(of["rows"]),
            of["head"],
            empty | {table: each and TableSummary(*each) for table, each in of["tables"].items()},
        )
        for name, of in said.items()
    }


def untaken(before: Digests) -> Digests:
    """Return a history's digests without the tables that the catalogue no longer has; None for each new one."""
    written = json.loads(KEPT.read_bytes())["tables without rows"]
    known = {table: each for table, each in before.tables.items() if each is None or each.rows or table in written}
    return before._replace(tables={table: known.get(table) for table in CATALOGUE})


def text(of: dict[str, Digests]) -> str:
    """The file: JSON, in order of names, a line a table."""
    empty: dict[str, list[Any]] = {}
    said: dict[str, Any] = {"tables without rows": empty}
    for name, digests in sorted(of.items()):
        empty |= {
            table: [each.version, each.digest] for table, each in digests.tables.items() if each and not each.rows
        }
        tables = {table: each for table, each in sorted(digests.tables.items()) if not each or each.rows}
        said[name] = {"rows": digests.rows, "head": digests.head, "tables": tables}
    said["tables without rows"] = dict(sorted(empty.items()))
    return re.sub(r"\[[^]]*]", lambda found: json.dumps(json.loads(found[0])), json.dumps(said, indent=1)) + "\n"


def main(*names: str) -> None:
    """Take digests anew, but of histories whose source is not here; print what has changed.

    names: the histories to take; without any, all of them. Those of others stay as they are.
    """
    if unknown := {*names} - HISTORIES.keys():
        sys.exit(f"not in HISTORIES: {', '.join(sorted(unknown))}")
    before, asked = kept() if KEPT.is_file() else {}, [*filterfalse(missing, names or HISTORIES)]
    now = {name: untaken(before[name]) for name in HISTORIES if name in before and name not in asked}
    now |= {name: record_and_take(name).digests for name in asked}
    for name in filter(missing, names or HISTORIES):
        sys.stdout.write(f"{name}: kept as it was, because {missing(name)} is not here; new tables are not taken\n")
    KEPT.write_text(text(now), encoding="utf-8")
    for name in sorted(before.keys() | now.keys()):
        if name not in before or name not in now:
            sys.stdout.write(f"{name}: {'new' if name in now else 'gone'}\n")
        else:
            sys.stdout.writelines(f"{line}\n" for line in differences(name, before[name], now[name]))


if __name__ == "__main__":
    main(*sys.argv[1:])
