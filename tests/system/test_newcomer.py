"""A newcomer's first hour with a real season, on the command line: from an empty folder to a forgery found."""

import csv
import io
import json
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, main
from tests.support import flusight
from tests.support.effort import LONG
from tests.support.late import sqlite_utils

pytestmark = pytest.mark.skipif(
    not flusight.SOURCE.is_file(), reason=f"needs {flusight.SOURCE.name}, which is not here"
)

BOARD = "trend-brier"
LATE = "LosAlamos-DoSiDo"  # the team that handed in files late
FIRST = "2026-01-24"  # the last of the first rounds, a third of all


def season() -> list[flusight.Row]:
    """The season's questions and answers, some teams' forecasts of trends, and all forecasts of one team.

    In a short run, the trends are those of the first rounds.
    """
    rows = [row for row in flusight.rows() if LONG > 1 or not is_late_trend(row)]
    trends = [row for row in rows if row["kind"] == "forecast" and row["qid"].startswith("trend-")]
    teams = {*sorted({row["forecaster"] for row in trends})[:: 12 if LONG == 1 else 8]}
    return [
        row
        for row in rows
        if row["kind"] != "forecast"
        or (row["qid"].startswith("trend-") and row["forecaster"] in teams)
        or row["forecaster"] == LATE
    ]


def is_late_trend(row: flusight.Row) -> bool:
    """Whether a line is about a trend from a round after the first ones."""
    name, *parts = row.get("qid", "").split("-")
    return name == "trend" and "-".join(parts[1:4]) > FIRST


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the season's commands and, of two boards, the log of them."""
    here = tmp_path_factory.mktemp("hour")
    boards = {name: flusight.BOARDS[name] for name in (BOARD, "trend-peer")}
    lines = (json.dumps(command) + "\n" for command in flusight.commands(season(), boards))
    (here / "season.jsonl").write_text("".join(lines), encoding="utf-8")
    result = run("append", here / "season.db", here / "season.jsonl", "--format", "json", code=FINDINGS)
    [counts] = json.loads(result.stdout)
    assert counts["refused"] == 15  # files handed in late that claim to be older
    assert (
        result.stderr.splitlines()[-1]
        == "refused: 15 x out_of_order; the first 3 are above, and --errors json prints all"
    )
    return here


def run(*arguments: Any, code: int = FINE) -> Result:
    """Run the command line and check its exit code."""
    result = CliRunner().invoke(main, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result


def test_the_log_is_sound(folder: Path) -> None:
    """Every check of `verify` reports ok."""
    rows = json.loads(run("verify", folder / "season.db", "--format", "json").stdout)
    assert {row["found"] for row in rows} == {"ok"}


def test_the_winner_and_why(folder: Path) -> None:
    """The best mean Brier score is first, and `explain rank` names the next participant and the difference."""
    board = list(csv.DictReader(io.StringIO(run("leaderboard", folder / "season.db", BOARD, "--format", "csv").stdout)))
    ranked = [row for row in board if row["rank"]]
    assert ranked[0]["rank"] == "1"
    assert sorted(ranked, key=lambda row: float(row["score"])) == ranked
    winner = ranked[0]["participant"]
    explanation = run("explain", folder / "season.db", "rank", BOARD, winner).stdout
    assert winner in explanation
    assert ranked[1]["participant"] in explanation


def test_a_score_is_the_sum_of_what_is_told_of_it(folder: Path) -> None:
    """In an SQLite export no number is a float, and a score equals the one that `explain` shows."""
    run("export", folder / "season.db", folder / "season-tables.db", "--format", "sqlite", "--tables", "scores")
    with closing(sqlite_utils.Database(folder / "season-tables.db")) as tables:
        where = [BOARD, "trend-peer"]
        [count] = tables.query("select count(*) as n from scores where contest in (?, ?)", where)
        rows = tables.query("select * from scores where contest = ? order by question, participant", ["trend-peer"])
        row = next(rows)
    assert count["n"] == len(json.loads(run("table", folder / "season.db", "scores", "--format", "json").stdout))
    assert type(row["score"]) is str
    explanation = json.loads(
        run(
            "explain", folder / "season.db", "score", "trend-peer", row["question"], row["participant"], "--json"
        ).stdout
    )
    assert row["score"] in json.dumps(explanation)


def test_what_if_a_question_had_been_annulled(folder: Path) -> None:
    """`what-if` shows changed scores and does not change the file of the log."""
    before = (folder / "season.db").read_bytes()
    row = json.loads(run("table", folder / "season.db", "scores", "--format", "json").stdout)[0]
    command = {"id": "w1", "type": "annul_question", "question": row["question"], "reason": "what if"}
    (folder / "annul.jsonl").write_text(json.dumps(command | {"at": "2026-12-01T00:00:00Z"}) + "\n", encoding="utf-8")
    shown = run("what-if", folder / "season.db", folder / "annul.jsonl", "--show", "scores", "--format", "json").stdout
    assert row["question"] in {each["question"] for each in json.loads(shown)}
    assert (folder / "season.db").read_bytes() == before


def test_two_cuts_and_a_checkpoint_to_keep(folder: Path) -> None:
    """`diff` shows what the last hundred events changed; `verify --quiet` prints nothing if a checkpoint matches."""
    checkpoint = folder / "season.toml"
    checkpoint.write_text(run("checkpoint", folder / "season.db").stdout, encoding="utf-8")
    end = tomllib.loads(checkpoint.read_text(encoding="utf-8"))["log_position"]
    rows = json.loads(run("log", folder / "season.db", "--after", end - 100, "--format", "json").stdout)
    assert [row["log_position"] for row in rows] == [*range(end - 99, end + 1)]
    assert run("diff", folder / "season.db", f"@{end - 100}", f"@{end}", "--table", "leaderboard").exit_code == FINE
    assert run("verify", folder / "season.db", "--checkpoint", checkpoint, "--quiet").output == ""


def test_one_byte_that_somebody_changed_is_found_and_located(folder: Path) -> None:
    """`verify` names the row and the command that shows it."""
    forged = folder / "forged.db"
    forged.write_bytes((folder / "season.db").read_bytes())
    with closing(sqlite3.connect(forged)) as store, store:
        find = "select originator_version, state from stored_events where originator_version = 3000"
        [(position, state)] = store.execute(find)
        other = bytes([state[200] ^ 1])
        changed = state[:200] + other + state[201:]
        store.execute("update stored_events set state = ? where originator_version = ?", (changed, position))
    result = run("verify", forged, code=DAMAGED)
    assert "3000" in result.output
    assert "forecast-ledger show" in result.output
