"""Same log, same digest of every projection: on any machine, in any batch size, rebuilt or incremental."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec
import pytest

from forecast_ledger.ledger.model.commands import AnyCommand, FinalizeContest, OpenContest, read
from forecast_ledger.ledger.model.events import ForecastMade, ForecastWithdrawn
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet, own_fields, read_json
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.reading.replay import replay
from tests.support import oracle
from tests.support.logs import commands_of, light
from tests.support.paths import ROOT

STORIES = ("metaculus-2022", "arena-week", "exchange-fees")
PEOPLE, QUESTIONS, FORECASTS = 16, 28, 800
MOST_PRINTED = 200  # rows of a table
CHUNK = 30  # forecasts; about as many as a question has
KINDS = ("binary", "multiple_choice", "numeric")
RED, GREEN, BLUE = "red", "green", "blue"
LEVELS = ("0.025", "0.25", "0.5", "0.75", "0.975")
COVERED = {"period": "covered", "total": "mean"}
RULES: dict[str, Any] = {  # between them every kernel, reference, average, sampling, period, total and take
    "old": "relative-2021-11",
    "new": "relative-2022-04",
    "peers": "peer-2025-06",
    "instant": "spot-peer",
    "base": "baseline",
    "recent": {
        "kernel": "log2", "cdf_kernel": "log2", "reference": "consensus", "consensus": "community",
        "consensus_weights": "recency", "score_consensus": True, "period": "actual", "take": "positive_square",
    },
    "mean": {"kernel": "spherical", "reference": "consensus", "consensus": "mean", "consensus_weights": "recency"},
    "days": {
        "kernel": "ordered_brier", "cdf_kernel": "crps", "reference": "peers", "sampling": "day", "day_minutes": 330,
        "scored_only_factor": "members", "bots": "scored_only",
    },
    "kinds": {
        "kernel": "brier", "cdf_kernel": "crps", "period": "covered", "total": "kind_means", "best_of_entrant": True,
        "attested": True, "score_consensus": True,
    },
    "ranges": {"kernel": "brier_sum", "quantile_kernel": "pinball", "sampling": "day", **COVERED},
    "average": {
        "kernel": "ln", "cdf_kernel": "ln", "reference": "peers", "total": "per_coverage", "least_coverage": 3,
        "take": "coverage_exp",
    },
}  # fmt: skip
Digests = dict[str, str]
Tables = dict[str, Table]

PROGRAM = """
import sys
from tests.system.test_determinism import appended, cpu_features, digests, printed, season, tables_of
path, log = sys.argv[1:]
head, tables = appended(log, season(path)), tables_of(log)
print([head, digests(tables), printed(tables), cpu_features()])
"""


def minute(number: int) -> str:
    """A minute of April 2026, with some µs."""
    day, hour, rest = number // 1_440 + 1, number // 60 % 24, number % 60
    return f"2026-04-{day:02}T{hour:02}:{rest:02}:00.{number % 1_000_000:06}Z"


def kind_of(number: int) -> str:
    """A question's kind; the last few are asked by quantiles."""
    return "quantiles" if number >= QUESTIONS - 4 else KINDS[number % 3]


def distribution(kind: str, choose: Random) -> dict[str, Any]:
    """A random forecast of a kind; round numbers often, so that there are ties."""
    if kind == "binary":
        return {"probability": choose.choice(["0.1", "0.5", f"0.{choose.randrange(10**9):09}"])}
    if kind == "multiple_choice":
        first, second = sorted(choose.randrange(10**9 + 1) for _ in range(2))
        parts = first, second - first, 10**9 - second
        named = zip((RED, GREEN, BLUE), parts, strict=True)
        return {"probabilities": {name: f"{part // 10**9}.{part % 10**9:09}" for name, part in named}}
    if kind == "quantiles":
        return {"quantiles": sorted(choose.randrange(1, 1_000) for _ in LEVELS)}
    heights = sorted(choose.randrange(10**10) for _ in range(21))
    return {"cdf": [f"0.{height:010}" for height in heights]}


def attestation(choose: Random) -> dict[str, Any]:
    """An attestation of a forecast's newest source, for one forecast in five."""
    stamps = ["2026-04-02", "2026-04", "2026-04-02T12:00:00Z", "2026-04-09 12:00:00"]
    return {"attestation": {"newest_source": choose.choice(stamps)}} if choose.randrange(5) == 0 else {}


def closes(number: int) -> int:
    """The minute at which a question closes."""
    return (3 + number % 18) * 1_440


def opening(number: int, kind: str) -> dict[str, Any]:
    """A question of a kind, open for two to twenty days, hidden for one; it has a group and a category."""
    shape: dict[str, Any] = {"outcomes": [RED, GREEN, BLUE]} if kind == "multiple_choice" else {}
    span: dict[str, Any] = {"lower": 1, "upper": 1_000, "open_lower": True, "open_upper": True}
    if kind == "numeric":
        shape = {"range": span | {"bins": 20} | ({"zero_point": 0} if number % 2 else {})}
    if kind == "quantiles":
        kind, shape = "numeric", {"range": span | {"levels": LEVELS, "decimals": 2}}
    shape |= {"opens_at": minute(1_440), "closes_at": minute(closes(number)), "reveals_at": minute(2_880)}
    shape |= {"group": f"week {number % 3}", "category": "odd" if number % 2 else "even"}
    return {"type": "open_question", "at": minute(0), "question": f"q{number:02}", "kind": kind} | shape


def answer(number: int, kind: str) -> dict[str, Any]:
    """The resolution of a question."""
    came: dict[str, Any] = {"value": number * 50} if kind in {"numeric", "quantiles"} else {"outcome": "no"}
    came |= {"outcome": GREEN} if kind == "multiple_choice" else {}
    return {"type": "resolve_question", "at": minute(41_000), "question": f"q{number:02}"} | came


def contests() -> Iterator[dict[str, Any]]:
    """Each rule set over the questions it can score, the newer ones over every third of them."""
    for contest, rules in RULES.items():
        fields = rules if isinstance(rules, dict) else own_fields(PRESETS[rules])
        named = {"name": contest, "replicates": 39} | fields
        yield {"type": "open_contest", "at": minute(0), "contest": contest, "rules": named, "pool": 10_000}
        for who in range(0, PEOPLE, 7):
            enrolled = {"type": "enrol_participant", "at": minute(0), "contest": contest, "participant": f"p{who:02}"}
            yield enrolled | {"entrant": f"team {who % 2}", "bot": who % 3 == 0}
        kernels = read_json(msgspec.json.encode(named), "rules")
        taken: dict[str, str] = {
            "binary": kernels.kernel,
            "multiple_choice": kernels.kernel,
            "numeric": kernels.cdf_kernel,
        }
        taken["quantiles"] = kernels.quantile_kernel
        for number in range(QUESTIONS):
            if taken[kind_of(number)] == "none" or (contest not in {"old", "new"} and number // 3 % 3):
                continue
            weights = {"weight": number % 4 + 1} | ({"hidden_coverage_weight": "0.3"} if contest != "old" else {})
            added = {"type": "add_question", "at": minute(0), "contest": contest, "question": f"q{number:02}"}
            yield added | weights


def lines(seed: int) -> Iterator[dict[str, Any]]:
    """A season: questions of every kind, contests of every rule over them, forecasts and withdrawals, answers."""
    choose = Random(seed)
    kinds = [kind_of(number) for number in range(QUESTIONS)]
    yield from (opening(number, kind) for number, kind in enumerate(kinds))
    yield from contests()
    numbers = [choose.randrange(QUESTIONS) for _ in range(FORECASTS)]
    for at, number in sorted((choose.randrange(closes(number)), number) for number in numbers):
        said = {"at": minute(at), "question": f"q{number:02}", "participant": f"p{choose.randrange(PEOPLE):02}"}
        if choose.randrange(8) == 0:
            yield {"type": "withdraw_forecast"} | said
        else:
            yield {"type": "submit_forecast"} | said | distribution(kinds[number], choose) | attestation(choose)
    yield from (answer(number, kind) for number, kind in enumerate(kinds) if number != 7)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of commands: two worked examples but for seals, whose checkpoints have clocks in them; the season."""
    file = tmp_path_factory.mktemp("season") / "commands.jsonl"
    told = [
        each for story in STORIES for each in map(light, commands_of(story)) if not isinstance(each, FinalizeContest)
    ]
    own = [{"id": f"s{number}"} | line for number, line in enumerate(lines(seed=11))]
    file.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in [*map(as_line, told), *own]))
    return str(file)


def as_line(command: AnyCommand) -> Any:
    """What a line of JSON says to give a command."""
    if not isinstance(command, OpenContest):
        return command
    rules = cast("RuleSet", command.rules)
    return msgspec.to_builtins(command) | {"rules": {"name": rules.name} | own_fields(rules)}


def season(path: str) -> list[AnyCommand]:
    """The commands of a file."""
    return [read(line) for line in Path(path).read_bytes().splitlines()]


def appended(log: str, asked: list[AnyCommand], size: int = 10_000, clock: Callable[[], int] = lambda: 0) -> str:
    """Append commands in batches of this size; return the digest of the log."""
    with Ledger.open(log, clock=clock) as ledger:
        for first in range(0, len(asked), size):
            ledger.handle_many(asked[first : first + size])
        return ledger.head().digest


def tables_of(log: str) -> Tables:
    """Every table of a log, read from nothing."""
    projections = replay(log).projections
    return {name: projections.table(name) for name in CATALOGUE}


def digests(tables: Tables) -> Digests:
    """The digest of every table."""
    return {name: table.digest() for name, table in tables.items()}


def printed(tables: Tables) -> str:
    """The digest of the first rows of every table as they are printed."""
    rows = [list(table.slice(0, MOST_PRINTED).rows()) for table in tables.values()]
    return sha256(msgspec.json.encode(rows)).hexdigest()


@pytest.fixture(scope="module")
def log(path: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of the season, appended in one batch; no test writes to it."""
    log = str(tmp_path_factory.mktemp("reference") / "log.db")
    appended(log, season(path))
    return log


@pytest.fixture(scope="module")
def whole(log: str) -> Tables:
    """Its tables."""
    return tables_of(log)


@pytest.fixture(scope="module")
def reference(log: str, whole: Tables) -> tuple[str, Digests]:
    """The digests of that log's head and projections."""
    return replay(log).checkpoint.digest, digests(whole)


@pytest.fixture(scope="module")
def text(whole: Tables) -> str:
    """The digest of all its rows as they are printed."""
    return printed(whole)


def cpu_features() -> str:
    """The CPU features that this NumPy uses beyond its baseline."""
    umath = import_module("numpy._core._multiarray_umath")
    return " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name])


def test_the_season_is_long_enough_to_tell(path: str, whole: Tables, reference: tuple[str, Digests]) -> None:
    """Hundreds of forecasts are accepted, some withdrawn; no two projections are the same, and each has rows."""
    recorded, refused = oracle.attempted(season(path))
    made = [each for each in recorded if isinstance(each.event, ForecastMade)]
    withdrawn = [each for each in recorded if isinstance(each.event, ForecastWithdrawn)]
    assert (len(made) > 600, len(withdrawn) > 15) == (True, True)
    assert {each.code for each in refused} == {"nothing_standing"}
    assert len(set(reference[1].values())) == len(CATALOGUE)
    assert {name for name, table in whole.items() if not len(table)} <= {"resolution"}  # of 20 clusters or more
    assert {row["contest"] for row in whole["leaderboard"].rows()} >= set(RULES)


def test_digests_do_not_depend_on_the_size_of_batches(
    path: str, tmp_path: Path, reference: tuple[str, Digests]
) -> None:
    """Commands appended one by one and then in sevens give the log of those appended in one transaction."""
    log, commands = str(tmp_path / "log.db"), season(path)
    appended(log, commands[:400], 1)
    assert appended(log, commands[400:], 7) == reference[0]


def test_digests_do_not_depend_on_the_stores_clock_or_the_size_of_chunks(
    path: str, log: str, tmp_path: Path, reference: tuple[str, Digests]
) -> None:
    """The logs differ in recorded_at and in their digests; two tables have recorded_at in them, and draws do not.

    Questions with more forecasts than a chunk are scored one by one, others in groups, or all are together. Earlier
    readings of the log by the same process change nothing.
    """
    other, ticks, commands = str(tmp_path / "log.db"), iter(range(10**15, 10**16, 977)), season(path)
    appended(other, commands[:400], 50, lambda: next(ticks))
    early = replay(other)
    assert all(early.table(name).digest() != reference[1][name] for name in ("scores", "leaderboard", "intervals"))
    assert appended(other, commands[400:], 50, lambda: next(ticks)) != reference[0]
    of_others, of_these = (Projections(replay(each).projections.facts, CHUNK) for each in (other, log))
    changed = {name for name in CATALOGUE if of_others.table(name).digest() != reference[1][name]}
    assert changed == {"admissions", "forecasts"}
    assert {name: of_these.table(name).digest() for name in changed} == {name: reference[1][name] for name in changed}


ELSEWHERE = {  # as different from this process as can be
    "PYTHONHASHSEED": "4242",
    "TZ": "Asia/Kathmandu",
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "NPY_DISABLE_CPU_FEATURES": cpu_features(),
}


def test_another_process_decides_and_projects_the_same(
    path: str, tmp_path: Path, reference: tuple[str, Digests], text: str
) -> None:
    """Under another hash seed, time zone and locale, and with the processor's vector units switched off in NumPy."""
    inherited = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, path, str(tmp_path / "log.db")],
        cwd=ROOT,
        env=inherited | {name: value for name, value in ELSEWHERE.items() if value},
        check=True,
        capture_output=True,
        text=True,
    )
    assert process.stdout == f"{[*reference, text, '']}\n"
