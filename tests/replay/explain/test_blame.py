"""The last change of every column of a row, against tables worked out at every log position."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import plain_rows
from forecast_ledger.ledger.model.commands import AnyCommand, read
from forecast_ledger.ledger.model.plain_rows import ReadPage
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.cli.main import USAGE
from forecast_ledger.replay.explain.blame import BlameResult, blame
from forecast_ledger.replay.explain.diff import diff
from forecast_ledger.replay.reading.log import Log
from tests.projections.tables.test_catalogue import TRADING
from tests.projections.tables.test_schemas import trading_story
from tests.replay.cli.test_main import run, said
from tests.support import oracle
from tests.support.effort import LONG, times
from tests.support.given import (
    annulment,
    contest,
    day,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    opened,
    resolution,
    restatement,
    revocation,
)
from tests.support.logs import commands_of, light, written
from tests.support.seasons import Season, drawn_rules
from tests.support.trading_seasons import Season as TradingSeason
from tests.system.test_stories import ARENA, AUTOCAST, BOARDS, CHANGED, FEES, GROUPS, HUB, METACULUS, SIDES

PLACES, YES_NO = ("0.1", "0.35", "0.6", "0.95"), ("yes", "no")
pytestmark = pytest.mark.usefixtures("little_is_enough", "few_draws")  # sets of ranks, with few questions too
LATER = {"at": "2021-07-25T00:00:00Z"}
MENDED = (
    said("r1", "revoke_resolution", question="olympics-2021", reason="misread", **LATER),
    said("r2", "exclude_participant", contest="hidden-only", participant="B", level="no_rank", reason="x", **LATER),
    said("r3", "resolve_question", question="olympics-2021", outcome="no", **LATER),
    said("r4", "annul_question", question="gdp-next-year", reason="no source", **LATER),
    said("r5", "finalize_contest", contest="plain", **LATER),
    said("r6", "revoke_resolution", question="gdp-next-year", reason="a source", **LATER),
    said("r7", "pay_prizes", contest="plain", **LATER),
)


STORY = {"kind_means": AUTOCAST, "admissions": AUTOCAST, "calibration_by_option": CHANGED}  # where not the first
STORY |= {"implied_returns": BOARDS, "mean_implied_returns": BOARDS, "wis_parts": HUB}
STORY |= dict.fromkeys(("leaderboard_by_group", "relative_skill", "interval_coverage"), GROUPS)
STORY = dict.fromkeys(TRADING, FEES) | STORY | {"arena_overall": ARENA, "refused_legs": SIDES}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The logs of stories by name; of the first with a resolution mended, an annulment undone after a seal, prizes."""
    folder = tmp_path_factory.mktemp("logs")
    stories = {story: [*map(light, commands_of(story))] for story in {METACULUS, *STORY.values()}}
    stories[METACULUS] += map(read, MENDED)
    return {story: written(folder / story, commands) for story, commands in stories.items()}


class Cuts:
    """The log as of any log position, from 0 on, each read from nothing.

    What is worked out of one table as of a log position serves the tables that follow from it.
    """

    def __init__(self, path: str) -> None:
        self._events, self._read = oracle.events_of(path), dict[int, Projections]()
        self.last = len(self._events)

    def as_of(self, position: int) -> Projections:
        """The log up to a log position."""
        if position not in self._read:
            self._read[position] = Projections(oracle.facts_in(self._events[:position]))
        return self._read[position]


@pytest.fixture(scope="module")
def every_cut(logs: dict[str, str]) -> dict[str, Cuts]:
    """Each story as of every log position."""
    return {story: Cuts(path) for story, path in logs.items()}


def slowly(
    of: Cuts, table: str, chosen: slice = slice(None)
) -> Iterator[tuple[tuple[str, ...], dict[str, tuple[int, Any, Any]]]]:
    """Yield, for each chosen row and column, the last log position at which its value changed, from every table.

    The tables are looked at from the newest on, until each value has changed once.
    """
    names = CATALOGUE[table].key
    columns = [column.name for column in CATALOGUE[table].columns if column.name not in names]
    rows = _by_key(of.as_of(of.last), table)
    found: dict[tuple[str, ...], dict[str, tuple[int, Any, Any]]] = {key: {} for key in [*rows][chosen]}
    left = [(key, column) for key in found for column in columns]
    for position in range(of.last, 0, -1):
        earlier = _by_key(of.as_of(position - 1), table)
        for key, column in [*left]:
            new, old = rows.get(key, {}).get(column), earlier.get(key, {}).get(column)
            if (key in earlier) != (key in rows) or old != new:
                found[key][column] = position, old, new
                left.remove((key, column))
        if not left:
            break
        rows = earlier
    assert not left
    yield from found.items()


def _by_key(cut: Projections, table: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the rows of a table by their keys as they are printed."""
    names = CATALOGUE[table].key
    return {tuple(str(row[name]) for name in names): row for row in cut.table(table).rows()}


def plain(blamed: BlameResult) -> dict[str, tuple[int, Any, Any]]:
    """Log position, old and new by column."""
    return {each.column: (each.log_position, each.old, each.new) for each in blamed.columns}


@pytest.mark.parametrize(("story", "table"), [(STORY.get(table, METACULUS), table) for table in CATALOGUE])
def test_a_blame_is_what_tables_at_every_log_position_say(
    story: str, table: str, logs: dict[str, str], every_cut: dict[str, Cuts]
) -> None:
    """The log has a revocation, a seal and payments of prizes. A row in the middle; in a long run the first too."""
    count = len(every_cut[story].as_of(every_cut[story].last).table(table))
    assert count
    chosen = slice(None if LONG > 1 else count // 2, count // 2 + 1, max(count // 2, 1))
    for key, expected in slowly(every_cut[story], table, chosen):
        assert plain(blame(Log(logs[story]), table, key)) == expected, key


@settings(max_examples=times(5), suppress_health_check=list(HealthCheck), deadline=None)
@given(said=oracle.logs())
def test_a_blame_is_so_on_logs_of_any_sort(said: list[AnyCommand], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Questions of every kind, contests at their own pace, answers revoked, seals."""
    path = written(tmp_path_factory.mktemp("random") / "log.db", said, refused=True)
    every = Cuts(path)
    for table in ("scores", "leaderboard"):
        for key, expected in slowly(every, table, slice(4)):
            assert plain(blame(Log(path), table, key)) == expected, key


@pytest.mark.parametrize("seed", range(times(5)))
def test_a_blame_is_so_under_rules_of_any_sort(seed: int, tmp_path: Path) -> None:
    """Two contests with rules drawn field by field; of boards, means of kinds, prizes and Brier aggregates."""
    random, path = Random(seed), str(tmp_path / "log.db")
    season = Season(
        random,
        *(drawn_rules(random) for _ in range(2)),
        uncounted=0.2,
        quoted=0.5,
        paid=0.3,
        moved=0.4,
        changing=0.5,
        restated=0.5,
    )
    written(path, season.commands, refused=True)
    every = Cuts(path)
    for table in ("leaderboard", "kind_means", "prizes", "brier", "brier_overall", "contests"):
        for key, expected in slowly(every, table, slice(3)):
            assert plain(blame(Log(path), table, key)) == expected, (table, key)


@pytest.mark.parametrize("seed", [4])
def test_a_blame_is_so_in_seasons_of_trading(seed: int, tmp_path: Path) -> None:
    """Bets, sales, settlements and corrections: the books grow from one look to the next."""
    path = written(tmp_path / "log.db", TradingSeason(seed, 25).commands(), refused=True)
    every = Cuts(path)
    for table in ("contests", "accounts", "positions", "trades", "journal", "portfolio_snapshots", "arena_leaderboard"):
        for key, expected in slowly(every, table, slice(-2 if LONG == 1 else -3, None)):
            assert plain(blame(Log(path), table, key)) == expected, (table, key)


@pytest.mark.parametrize("table", [name for name, row in CATALOGUE.items() if "clock" in row.reads])
def test_a_forecast_that_moves_the_clock_is_blamed_for_it(table: str, tmp_path: Path) -> None:
    """Pending legs wait longer, marks grow older, a tick passes: the question of the forecast does not matter."""
    path = written(tmp_path / "log.db", trading_story())
    every = Cuts(path)
    for key, expected in slowly(every, table, slice(-2, None)):
        found = blame(Log(path), table, key)
        assert plain(found) == expected, (table, key)


def test_forecasts_that_leave_the_clock_as_it_is_are_not_candidates(tmp_path: Path) -> None:
    """A forecast changes a row that follows the clock only if it claims a later instant than all events before it."""
    base = oracle.with_ids(trading_story())
    candidates = []
    for extra in (0, 50):
        path = str(tmp_path / f"log-{extra}.db")
        with Ledger.open(path) as ledger:
            ledger.handle_many(base)
            early = {
                "at": "1990-01-01T00:00:00Z",
                "opens_at": "1990-01-01T00:00:00Z",
                "closes_at": "1990-01-02T00:00:00Z",
            }
            opening = {"type": "open_question", "question": "early", "kind": "binary"} | early
            ledger.handle(read(json.dumps({"id": "early", **opening})))
            forecast = {
                "type": "submit_forecast",
                "at": "1990-01-01T12:00:00Z",
                "question": "early",
                "participant": "eve",
            }
            sent = [{"id": f"f{i}", "probability": i / 100, **forecast} for i in range(extra)]
            ledger.handle_many([read(json.dumps(command)) for command in sent])
        every = Cuts(path)
        row = next(every.as_of(every.last).table("arena_leaderboard").rows())
        key = [str(row[name]) for name in CATALOGUE["arena_leaderboard"].key]
        candidates.append(blame(Log(path), "arena_leaderboard", key).candidates)
    assert candidates[0] == candidates[1]


def busy(random: Random, rules: str, questions: int = 10) -> list[AnyCommand]:
    """Many questions, everybody on most of them; then answers, mended and not, and what is said of contests between."""
    people, names = ("ada", "bob", "cy", "dee", "eve", "fay"), [f"q{number}" for number in range(questions)]
    asked: list[AnyCommand] = [*(opened(name) for name in names), contest(rules=rules, pool=100), contest("other")]
    both = [(name, who) for name in names for who in people if random.random() < 0.5]
    asked += [forecast(name, who, probability=random.choice(PLACES)) for name, who in both]
    entries = [entry(question=name, weight=random.randint(1, 2)) for name in names]
    asked += entries[::2]
    later: list[AnyCommand] = [*entries[1::2], *(resolution(name, outcome=random.choice(YES_NO)) for name in names)]
    for name in random.sample(names, questions // 3):
        later += [revocation(name), resolution(name, outcome=random.choice(YES_NO)), annulment(name)]
    said: list[AnyCommand] = [
        exclusion(participant=who, level=level) for who, level in (("ada", "hidden"), ("bob", "no_rank"))
    ]
    said += [enrolment(participant="cy", bot=True), enrolment(participant="dee", entrant="cy"), entry("other", "q0")]
    later += [*said, finalization()] if random.random() < 0.5 else said
    return [*asked, *random.sample(later, len(later))]


@pytest.mark.parametrize(("seed", "rules"), [(1, "relative-2022-04"), (6, "spot-peer")])
def test_a_blame_is_so_where_a_board_moves_with_many_answers(seed: int, rules: str, tmp_path: Path) -> None:
    """Answers to a question each, answers to one again, what is said of the contest; every second row, in a long run
    every row, and every column of it.
    """
    random, path = Random(seed), str(tmp_path / "log.db")
    written(path, busy(random, rules), refused=True)
    every = Cuts(path)
    for table in ("leaderboard", "prizes", "contests"):
        for key, expected in slowly(every, table, slice(None, None, 2 if LONG == 1 else 1)):
            assert plain(blame(Log(path), table, key)) == expected, (table, key)


@pytest.fixture
def read_pages(monkeypatch: pytest.MonkeyPatch) -> list[ReadPage]:
    """The pages of which forecasts were picked; rows are read as columns, however few and whatever the share."""
    pages, where = list[ReadPage](), ReadPage.where

    def noted(page: ReadPage, *wanted: Any) -> Any:
        pages.append(page)
        return where(page, *wanted)

    monkeypatch.setattr(ReadPage, "where", noted)
    for name, value in (("_ENOUGH", 1), ("_TOGETHER", 3), ("_SHARE", 1_000), ("_AGAIN", 0)):
        monkeypatch.setattr(plain_rows, name, value)
    return pages


def test_a_blame_is_so_where_forecasts_are_read_as_columns(tmp_path: Path, read_pages: list[ReadPage]) -> None:
    """Forecasts that are made anew on a question with an answer, and one by somebody with the consensus's name."""
    path = str(tmp_path / "log.db")
    rules = structs.replace(PRESETS["relative-2022-04"], name="ours", score_consensus=True)
    asked: list[AnyCommand] = [opened(), opened("snow"), contest(rules=rules), entry(), entry(question="snow")]
    asked += [forecast(), forecast(participant="bob"), forecast("snow", "eve"), resolution()]
    asked += [restatement(forecast(probability="0.4"), forecast(at=day(12), probability="0.2"))]
    written(path, [*asked, forecast("snow", "[consensus]", at=day(11)), resolution("snow")])
    for table in ("leaderboard", "scores", "standing", "contests"):
        for key, expected in slowly(Cuts(path), table):
            assert plain(blame(Log(path), table, key)) == expected, (table, key)
    assert read_pages


def test_whoever_takes_the_name_of_the_consensus_is_why_it_has_another(tmp_path: Path) -> None:
    """The label of the consensus changes with the participant's first forecast, on a question without an answer."""
    path = str(tmp_path / "log.db")
    rules = structs.replace(PRESETS["relative-2022-04"], name="ours", score_consensus=True)
    asked: list[AnyCommand] = [opened(), opened("snow"), contest(rules=rules), entry(), entry(question="snow")]
    asked += [forecast(), forecast(participant="bob"), resolution(), forecast("snow", "[consensus]"), forecast("snow")]
    written(path, [*asked, resolution("snow")])
    for table in ("leaderboard", "scores", "brier"):
        rows = dict(slowly(Cuts(path), table))
        assert any("[[consensus]]" in key for key in rows)
        for key, expected in rows.items():
            assert plain(blame(Log(path), table, key)) == expected, (table, key)
    changes = diff(Log(path, as_of=8), 9, "leaderboard").changes
    assert [(change.difference.row, change.causes[0].log_position) for change in changes] == [("new", 9), ("gone", 9)]


def test_a_board_is_not_scored_anew_before_each_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at every answer, each question is scored a few times: as the board, in its stretch before and after."""
    path, scored, real = str(tmp_path / "log.db"), list[int](), time_weighted.scores

    def counting(*arguments: Any) -> Any:
        scored.append(len(arguments[2].code))
        return real(*arguments)

    asked: list[AnyCommand] = [contest(rules="baseline")]
    for name in (f"q{number}" for number in range(128)):
        asked += [opened(name), entry(question=name), forecast(name, probability="0.6"), forecast(name, "bob")]
    asked += [resolution(f"q{number}") for number in range(128)]
    written(path, asked)
    monkeypatch.setattr(time_weighted, "scores", counting)
    found = blame(Log(path), "leaderboard", ("cup", "ada"))
    assert found.looked_at == 128
    assert sum(scored) <= 4 * 128


def test_a_score_is_blamed_on_the_answer_without_looking_at_forecasts(logs: dict[str, str]) -> None:
    """The last answer is the newest event that can have changed it: one look, and one before it for the rest."""
    found = blame(Log(logs[METACULUS]), "scores", ("plain", "olympics-2021", "A"))
    assert {each.type for each in found.columns} == {"question_resolved"}
    assert found.looked_at < found.candidates < 15


def test_as_of_an_earlier_cut_the_blame_is_that_of_then(logs: dict[str, str]) -> None:
    """As of log position 34 the question still has its first answer."""
    found = blame(Log(logs[METACULUS], as_of=34), "scores", ("plain", "olympics-2021", "A"))
    assert {each.log_position for each in found.columns} == {32}
    assert found.checkpoint.position == 34


def test_one_column_is_found_without_looking_for_the_others(logs: dict[str, str]) -> None:
    """A's score changed with the last answer, `excluded` not since the row was added."""
    source, key = Log(logs[METACULUS], as_of=34), ("plain", "A")
    one, every = blame(source, "leaderboard", key, ["score"]), blame(source, "leaderboard", key)
    assert (one.looked_at, one.columns) == (1, [each for each in every.columns if each.column == "score"])
    assert every.looked_at > 1
    with pytest.raises(Refused) as refused:
        blame(source, "leaderboard", key, ["fame"])
    assert refused.value.code == "out_of_range"


@pytest.mark.parametrize(("key", "code"), [(("plain",), "out_of_range"), (("plain", "nobody"), "nothing_standing")])
def test_a_key_that_names_no_row_is_refused(key: tuple[str, ...], code: str, logs: dict[str, str]) -> None:
    """Not as many parts as the key has, or no such row."""
    with pytest.raises(Refused) as refused:
        blame(Log(logs[METACULUS]), "leaderboard", key)
    assert refused.value.code == code


def test_the_command_prints_a_row_a_column(tmp_path: Path, logs: dict[str, str]) -> None:
    """The number of events examined and the checkpoint are on stderr."""
    result = run("blame", logs[METACULUS], "leaderboard", "plain", "A", "--as-of", "34", "--format", "json")
    rows = {row["column"]: row for row in json.loads(result.stdout)}
    assert (rows["rank"]["log_position"], rows["rank"]["old"], rows["rank"]["new"]) == (33, 3, 2)
    assert rows["score"]["new"] == "-0.229072683"
    told = result.stderr.splitlines()
    assert re.fullmatch(r"looked at \d+ of the \d+ events that can have changed the row", told[0])
    assert told[1].startswith("as of log position 34, digest ")
    assert run("blame", logs[METACULUS], "fame", "plain").exit_code == USAGE
    assert run("blame", str(tmp_path / "none.db"), "scores", "a", "b", "c").exit_code == 3
