"""The command line: what it prints where, what it exits with, and that bad input never shows a traceback."""

import csv
import io
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from tempfile import mkdtemp
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from forecast_ledger.ledger.model.commands import read
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.audit.verify import CHECKS
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, UNREADABLE, USAGE, main
from forecast_ledger.replay.writing.command_lines import LONGEST_LINE
from tests.support.effort import LONG
from tests.support.given import forge, prizes_paid
from tests.support.logs import written
from tests.support.paths import ROOT
from tests.support.processes import started
from tests.support.terminals import seen
from tests.support.waiting import quick

STORY = ROOT / "data" / "metaculus-2022"
COMMANDS = STORY / "commands.jsonl"
NAMES = main.list_commands(click.Context(main))
TRADING = COMMANDS.parent.parent / "arena-week" / "commands.jsonl"
FEES = TRADING.parent.parent / "exchange-fees" / "commands.jsonl"
HUB = TRADING.parent.parent / "hub-scores" / "commands.jsonl"
CHANGED = TRADING.parent.parent / "changed-outcomes" / "commands.jsonl"


def run(*arguments: str, given: bytes = b"") -> Result:
    """The command line in this process; a traceback would be its exception."""
    result = CliRunner().invoke(main, list(arguments), input=given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def said(identity: str, command: str, **fields: Any) -> bytes:
    """A line that says this."""
    return json.dumps({"id": identity, "type": command, "at": "2026-03-01T00:00:00Z", **fields}).encode() + b"\n"


def opened(identity: str, **fields: Any) -> bytes:
    """A line that opens a binary question."""
    given = {"kind": "binary", "opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-03-05T00:00:00Z"}
    return said(identity, "open_question", **(given | fields))


def test_appending_counts_what_was_accepted(tmp_path: Path) -> None:
    """Accepted, duplicate and refused, with the log position and digest that the log now has."""
    log = str(tmp_path / "story.db")
    first = json.loads(run("append", log, str(COMMANDS), "--format", "json").stdout)[0]
    assert (first["accepted"], first["duplicate"], first["refused"], first["log_position"]) == (34, 0, 0, 34)
    again = json.loads(run("append", log, str(COMMANDS), "--format", "json").stdout)[0]
    assert (again["accepted"], again["duplicate"], again["log_position"]) == (0, 34, 34)
    assert again["digest"] == first["digest"]


def test_commands_can_come_from_standard_input(tmp_path: Path) -> None:
    """A dash stands for standard input; a byte order mark, blank lines and a missing last newline do no harm."""
    given = b"\xef\xbb\xbf" + opened("c1", question="q1") + b"\n  \n" + opened("c2", question="q2").strip()
    result = run("append", str(tmp_path / "log.db"), "-", "--format", "csv", given=given)
    assert (result.exit_code, result.stdout.splitlines()[1].split(",")[:3]) == (FINE, ["2", "0", "0"])


def test_each_refusal_is_told_with_its_line_code_and_field(tmp_path: Path) -> None:
    """Each refusal is one line on stderr, and the exit code is 1; the other commands are recorded."""
    given = opened("c1", question="q1") + b"not json\n" + opened("c2", question="q1") + opened("c3", question="q3")
    result = run("append", str(tmp_path / "log.db"), "-", "--format", "json", given=given)
    told = result.stderr.splitlines()
    assert [line.split(":")[:2] for line in told] == [["line 2", " malformed"], ["line 3", " duplicate_question"]]
    assert "question = 'q1'" in told[1]
    counts = json.loads(result.stdout)[0]
    assert (result.exit_code, counts["accepted"], counts["refused"]) == (FINDINGS, 2, 2)


@pytest.mark.parametrize("fault", [b"not json\n", opened("c1", question="")])
def test_an_atomic_file_is_recorded_whole_or_not_at_all(tmp_path: Path, fault: bytes) -> None:
    """One refused line, whether unreadable or against a rule, keeps every other out."""
    log = str(tmp_path / "log.db")
    result = run("append", log, "-", "--atomic", "--format", "json", given=opened("c0", question="q0") + fault)
    counts = json.loads(result.stdout)[0]
    assert (result.exit_code, counts["accepted"], counts["refused"], counts["log_position"]) == (FINDINGS, 0, 2, 0)
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["line 2"]


def submitted(probability: bytes) -> bytes:
    """A line that submits this probability, as it stands."""
    line = (
        b'{"id": "c", "type": "submit_forecast", "at": "2026-03-01T00:00:00Z", "question": "q1", "participant": "a", '
    )
    return line + b'"probability": ' + probability + b"}"


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\x00",
        b"[" * 100_000,
        submitted(b"1e999999999"),
        submitted(b'"1e-999999999999999999999"'),
        submitted(b"9" * 500_000),
        submitted(b"0." + b"9" * 500_000),
        submitted(b"NaN"),
        submitted(b'"NaN"'),
        submitted(b'"sNaN"'),
        submitted(b'"-Infinity"'),
        submitted(b"true"),
        submitted(b"{}"),
        submitted(b'0.5, "attestation": {"newest_source": "yesterday"}'),
        submitted(b'0.5, "attestation": {"note": "\\ud800"}'),
        submitted(b'0.5, "attestation": ' + b'{"note":' * 100_000),
        submitted(b'null, "quantiles": [1e999999999]'),
        submitted(b'null, "quantiles": [' + b"1," * 10 ** (6 if LONG > 1 else 5) + b"1]"),
        submitted(b'null, "quantiles": [NaN]'),
        opened("c", question="q9", kind="numeric", range={"lower": 0, "upper": 1, "levels": [0.5] * 10**5}).strip(),
        opened("c", question="q9", kind="numeric", range={"lower": 0, "upper": 1, "levels": [[0.5]]}).strip(),
        opened("c", question="q9", kind="numeric", range={"lower": 0, "upper": 1, "decimals": 10**30}).strip(),
        said("c", "pay_prizes", contest="\x1b[2J").strip(),
        said("c", "pay_prizes", contest="cup", payouts={"a": 1}).strip(),
        said("c", "submit_forecast", question="q1", participant="a", probabilities={"\x1b[2J": 1}).strip(),
        said("c", "submit_forecast", question="q1", participant="a", probabilities={"yes": "1e400"}).strip(),
        said("c", "enrol_participant", contest="cup", participant="a", entrant="\ud800").strip(),
        b'{"id": "c\\u0000", "type": "close_question", "at": "2026-03-01T00:00:00Z", "question": "q1"}',
        b'{"id": "c\\ud800", "type": "close_question", "at": "2026-03-01T00:00:00Z", "question": "q1"}',
        b'{"id": "c", "type": "close_question", "at": "2026-03-01T00:00:00Z", "question": "\\u001b[2J"}',
        b" " * (LONGEST_LINE + 10),
        b"null",
        b"{}",
    ],
)
@quick(5)
def test_hostile_lines_are_refused_and_leave_nothing(tmp_path: Path, line: bytes) -> None:
    """Whatever a line holds, the answer is a refusal in printable characters, soon; the lines after it count."""
    given = opened("c1", question="q1") + line + b"\n" + opened("c2", question="q2")
    result = run("append", f"{mkdtemp(dir=tmp_path)}/log.db", "-", "--format", "json", given=given)
    counts = json.loads(result.stdout)[0]
    assert (result.exit_code, counts["accepted"], counts["refused"], counts["log_position"]) == (FINDINGS, 2, 1, 2)
    assert all(told.startswith("line 2: ") and told.isprintable() for told in result.stderr.splitlines())


def test_a_board_names_its_log_position_on_stderr_and_only_data_on_stdout(log: str) -> None:
    """The output can be piped."""
    result = run("leaderboard", log, "plain", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["participant"], row["prize"]) for row in rows] == [
        ("B", "779.30"),
        ("A", "108.00"),
        ("bot", "67.90"),
        ("C", "44.80"),
    ]
    assert result.stderr.startswith("as of log position 34, digest ")


AUTOCAST = [
    opened("s1", question="frost", group="weather"),
    said("s2", "open_contest", contest="auto", rules="autocast-2022"),
    said("s3", "add_question", contest="auto", question="frost"),
    said(
        "s4",
        "submit_forecast",
        question="frost",
        participant="ada",
        probability="0.7",
        attestation={"newest_source": "2026-02"},
    ),
    said("s5", "resolve_question", at="2026-03-06T00:00:00Z", question="frost", outcome="yes"),
]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of stories and one attested contest."""
    path = str(tmp_path_factory.mktemp("several") / "log.db")
    for story in (COMMANDS, TRADING, FEES, HUB, CHANGED):
        assert run("append", path, str(story)).exit_code == FINE
    assert run("append", path, "-", given=b"".join(AUTOCAST)).exit_code == FINE
    return path


def various() -> Iterator[str]:
    """Tables, each of which has a kind of column that those before it lack; in a long run all."""
    met = set[str]()
    for name, projection in CATALOGUE.items():
        kinds = {column.kind for column in projection.columns}
        if LONG > 1 or not kinds <= met:
            yield name
        met |= kinds


@pytest.mark.parametrize("projection", [*various()])
def test_every_projection_prints_the_same_rows_in_each_format(several: str, projection: str) -> None:
    """Table, JSON and CSV differ in form alone."""
    table = ["table", several, projection, "--limit", "2000"]
    as_json = json.loads(run(*table, "--format", "json").stdout)
    as_csv = list(csv.DictReader(io.StringIO(run(*table, "--format", "csv").stdout)))
    as_table = run(*table).stdout.splitlines()
    assert [{name: "" if value is None else str(value) for name, value in row.items()} for row in as_json] == as_csv
    assert len(as_table) == len(as_json) + 1
    names = [column.name for column in CATALOGUE[projection].columns]
    assert as_table[0].split() == names
    assert all(list(row) == names for row in as_json)
    assert bool(as_json) is (projection != "resolution")  # of which contests with so few questions have no rows


def test_a_reading_can_be_cut_at_a_position_or_an_instant(log: str) -> None:
    """Before the resolutions there is no board; before the ledger's first event, no log."""
    assert json.loads(run("leaderboard", log, "plain", "--as-of", "30", "--format", "json").stdout) == []
    assert run("leaderboard", log, "plain", "--as-of", "1999-01-01T00:00:00Z").exit_code == USAGE
    far = run("leaderboard", log, "plain", "--as-of", "2999-01-01T00:00:00Z", "--format", "csv")
    assert far.stdout == run("leaderboard", log, "plain", "--format", "csv").stdout


def test_the_board_of_a_contest_in_which_one_trades_is_that_of_trading(log: str) -> None:
    """It ranks by profit; a note names the table that has the scores of forecasts on the same questions."""
    run("append", log, str(TRADING))
    board = run("leaderboard", log, "week-1", "--format", "json")
    rows = [(row["contest"], row["rank"], row["participant"], row["profit"]) for row in json.loads(board.stdout)]
    assert rows == [
        ("week-1", 1, "ada", "2360.00"),
        ("week-1", 2, "cy", "1756.428572"),
        ("week-1", 3, "bo", "-11000.00"),
    ]
    assert "table leaderboard" in board.stderr
    assert "table leaderboard" not in run("leaderboard", log, "plain").stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["leaderboard", "LOG", "nowhere"], "it has: hidden-only, plain"),
        (["table", "LOG", "nothing"], f"there are: {', '.join(CATALOGUE)}"),
        (
            ["table", "LOG", "scores", "--as-of", "yesterday"],
            "give a log position such as 33, an instant such as 2026-",
        ),
        (
            ["table", "LOG", "scores", "--as-of", "@33"],
            "bad_instant: as_of = '@33': neither a log position nor an instant",
        ),
        (["replay", "LOG", "--as-of-claimed", "33"], "neither an instant nor a day; give an instant such as 2026-"),
        (["table", "LOG", "scores", "--as-of", "2026-03-01T00:00:00"], "naive_instant"),
        (["table", "LOG", "scores", "--as-of", "35"], "the log ends at position 34"),
        (["table", "LOG", "scores", "--as-of", "-1"], "log positions start at 1"),
        (["replay", "LOG", "--name", ""], "id_empty"),
        (["append", "LOG", "no-such-file"], "no-such-file"),
    ],
)
def test_wrong_usage_says_what_would_be_right(log: str, arguments: list[str], says: str) -> None:
    """Exit code 2, and the message names what there is."""
    result = run(*(log if argument == "LOG" else argument for argument in arguments))
    assert (result.exit_code, says in result.stderr) == (USAGE, True), result.stderr


READERS = [["replay"], ["verify"], ["table", "scores"], ["leaderboard", "plain"], ["pay", "plain"]]


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("kind", ["missing", "text", "folder", "other", "url"])
def test_what_is_no_ledger_cannot_be_read(tmp_path: Path, command: list[str], kind: str) -> None:
    """Exit code 3, with the reason; nothing is created."""
    paths = {kind: tmp_path / kind for kind in ("missing", "text", "folder", "other")}
    paths["text"].write_text("no database" * 100, encoding="utf-8")
    paths["folder"].mkdir()
    with sqlite3.connect(paths["other"]) as database:
        database.execute("CREATE TABLE unrelated (a)")
    database.close()
    location = "mysql://nowhere/db" if kind == "url" else str(paths[kind])
    before = sorted(path.name for path in tmp_path.iterdir())
    result = run(command[0], location, *command[1:])
    assert (result.exit_code, location in result.stderr) == (UNREADABLE, True), result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_damaged_log_is_located(log: str) -> None:
    """Exit code 4 and the log position, from verify and from everything that reads so far."""
    with sqlite3.connect(log) as database:
        [state] = database.execute("SELECT state FROM stored_events WHERE originator_version = 20").fetchone()
        damaged = state.replace(b"2021", b"2022").replace(b'"at":16', b'"at":17')
        assert damaged != state
        database.execute("UPDATE stored_events SET state = ? WHERE originator_version = 20", [damaged])
    database.close()
    for command in (["verify", log], ["replay", log], ["leaderboard", log, "plain"], ["pay", log, "plain"]):
        result = run(*command)
        assert (result.exit_code, "log position 20" in result.stderr) == (DAMAGED, True), result.stderr
    assert run("leaderboard", log, "plain", "--as-of", "20").exit_code == DAMAGED
    assert run("leaderboard", log, "plain", "--as-of", "19").exit_code == FINE


def test_verify_can_be_cut_too(log: str) -> None:
    """The report is about the log up to the cut; a cut beyond the log is refused."""
    assert run("verify", log, "--as-of", "20").stderr.startswith("as of log position 20, digest ")
    assert "as of log position 0, digest 000" in run("verify", log, "--as-of", "2000-01-01T00:00:00Z").stderr
    beyond = run("verify", log, "--as-of", "35")
    assert (beyond.exit_code, "the log ends at position 34" in beyond.stderr) == (USAGE, True)


def test_a_bar_is_shown_while_a_file_is_appended(tmp_path: Path) -> None:
    """The bar is shown on a terminal only; the counts are on stdout in any case."""
    shown = seen("append", str(tmp_path / "a.db"), str(COMMANDS), columns=80, keep_progress=True)
    assert "34 lines" in shown.stderr
    assert "━" in shown.stderr
    assert "lines" not in shown.stdout


def test_a_ledger_without_events_is_a_finding_of_verify(log: str, tmp_path: Path) -> None:
    """A log that was emptied is not taken for a sound one, nor is a mistyped name; as of 0 there are none anyway."""
    Ledger.open(tmp_path / "empty.db").close()
    empty = str(tmp_path / "empty.db")
    for arguments in (["--quiet"], ["--only", "digests"], []):
        result = run("verify", empty, *arguments)
        assert (result.exit_code, "the ledger 'main' has no events" in result.stderr) == (FINDINGS, True)
        result = run("verify", log, "--name", "mian", *arguments)
        assert (result.exit_code, "no ledger named 'mian'; there is 'main'" in result.stderr) == (UNREADABLE, True)
    assert run("verify", empty, "--as-of", "0").exit_code == FINE


def test_a_check_that_is_named_twice_is_run_once(log: str) -> None:
    """It is printed once too."""
    rows = json.loads(run("verify", log, "--only", "decided", "--only", "decided", "--format", "json").stdout)
    assert [row["check"] for row in rows] == ["decided"]


def test_verify_names_each_check(log: str) -> None:
    """One line a check, all of them fine."""
    rows = json.loads(run("verify", log, "--format", "json").stdout)
    assert [(row["check"], row["found"]) for row in rows] == [(name, "ok") for name in CHECKS]


SEALED = STORY / "sealed.jsonl"
PRIZES = {"A": "108.00", "B": "779.30", "C": "44.80", "bot": "67.90"}  # Metaculus, Tournament Scoring, to the cent


def test_the_winners_of_a_sealed_board_are_paid_once(log: str) -> None:
    """The prizes of the board use up the pool, one event per winner; a second payment records nothing."""
    run("append", log, str(SEALED))
    first = run("pay", log, "plain", "--format", "json")
    assert first.exit_code == FINE
    assert {row["participant"]: (row["prize"], row["paid"]) for row in json.loads(first.stdout)} == {
        who: (prize, prize) for who, prize in PRIZES.items()
    }
    assert first.stderr.splitlines()[0] == "paid from log position 36 on"
    assert first.stderr.splitlines()[1].startswith("as of log position 39, digest ")
    again = run("pay", log, "plain", "--format", "json")
    assert (again.exit_code, again.stdout) == (FINE, first.stdout)
    assert again.stderr.splitlines() == ["already paid; nothing was recorded", first.stderr.splitlines()[1]]
    assert run("verify", log).stderr.splitlines()[0] == first.stderr.splitlines()[1]


@pytest.mark.parametrize(
    ("contest", "says"),
    [
        ("plain", "contest_not_finalized"),
        ("nowhere", "it has: hidden-only, plain"),
        ("", "unknown_contest: contest = '': the log has no such contest; it has: hidden-only, plain;"),
    ],
)
def test_what_cannot_be_paid_is_said_and_nothing_is_recorded(log: str, contest: str, says: str) -> None:
    """Exit code 2; the log ends where it ended."""
    result = run("pay", log, contest)
    assert (result.exit_code, says in result.stderr, result.stdout) == (USAGE, True, "")
    assert run("verify", log).stderr.startswith("as of log position 34, ")


def test_a_contest_without_pool_has_nothing_to_pay(tmp_path: Path) -> None:
    """The command prints that, and records nothing."""
    log = str(tmp_path / "log.db")
    seal = said("s6", "finalize_contest", contest="auto")
    run("append", log, "-", given=b"".join([*AUTOCAST, seal]))
    result = run("pay", log, "auto")
    assert (result.exit_code, "nobody_wins" in result.stderr) == (USAGE, True)
    assert run("verify", log).stderr.startswith("as of log position 6, ")


def test_tables_of_samples_say_what_is_drawn(log: str) -> None:
    """For one contest; other tables draw nothing."""
    told = "samples draw 3 questions, each by itself, as if none had anything in common"
    for projection in ("intervals", "marginal_ranks", "resolution", "pairwise", "baseline_differences"):
        assert told in run("table", log, projection, "--where", "contest=plain").stderr
    assert "samples" not in run("table", log, "scores", "--where", "contest=plain").stderr


@pytest.mark.parametrize("options", [[], ["--atomic"]])
def test_a_file_that_seals_a_contest_may_pay_it_too(log: str, options: list[str]) -> None:
    """The prizes follow from the board in the same batch, also in an atomic one, which the log does not have yet."""
    lines = SEALED.read_bytes() + said("p", "pay_prizes", contest="plain")
    first, again = (run("append", log, "-", *options, "--format", "json", given=lines) for _ in range(2))
    assert (first.exit_code, json.loads(first.stdout)[0]["log_position"]) == (FINE, 39)
    assert json.loads(again.stdout)[0] == json.loads(first.stdout)[0] | {"accepted": 0, "duplicate": 2}
    rows = json.loads(run("table", log, "prizes", "--format", "json").stdout)
    assert {row["participant"]: row["paid"] for row in rows if row["contest"] == "plain"} == PRIZES
    assert run("verify", log).exit_code == FINE
    assert "already paid" in run("pay", log, "plain").stderr


def test_a_file_that_pays_before_it_seals_is_refused_that_line(log: str) -> None:
    """With --atomic the seal is refused with it."""
    pay = said("p", "pay_prizes", contest="plain")
    result = run("append", log, "-", "--atomic", given=pay + SEALED.read_bytes())
    assert (result.exit_code, "contest_not_finalized" in result.stderr) == (FINDINGS, True)
    assert run("verify", log).stderr.startswith("as of log position 34, ")
    assert run("append", log, "-", given=pay + SEALED.read_bytes()).exit_code == FINDINGS
    assert run("verify", log).stderr.startswith("as of log position 35, ")


def test_prizes_that_the_board_does_not_say_are_found_by_verify(log: str) -> None:
    """They sum to the pool, but the winner is another: somebody wrote to the store."""
    assert run("append", log, str(SEALED)).exit_code == FINE
    forge(log, *prizes_paid("plain", C=1000))
    result = run("verify", log)
    assert (result.exit_code, "log position 36" in result.stderr) == (FINDINGS, True), result.stderr


def test_the_demo_says_that_every_published_figure_agrees() -> None:
    """The demonstration prints both boards beside the published figures."""
    result = run("demo")
    assert result.exit_code == FINE
    assert result.stdout.splitlines()[-1] == "112 of 112 published figures agree to their last digit."
    assert all(prize in result.stdout for prize in ("$108", "$779", "$45", "$68", "$149", "$799", "$52", "$0"))


@pytest.mark.parametrize("command", [[], *([name] for name in NAMES)])
def test_every_command_explains_itself_with_an_example(command: list[str]) -> None:
    """`--help` of each command shows a line that can be typed."""
    result = run(*command, "--help")
    assert (result.exit_code, "forecast-ledger" in result.stdout) == (FINE, True)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the examples of the help speak of: a log of more than 1,200 events, files of commands."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "commands.jsonl").write_bytes(COMMANDS.read_bytes())
    (folder / "resolve.jsonl").write_bytes(said("w", "annul_question", question="rain", reason="nobody measured"))
    closing = {"at": "2026-03-05T00:00:00Z"}
    lines = [
        opened("o", question="rain"),
        said("c", "open_contest", contest="spring-cup", rules="relative-2022-04", pool=100),
        said("e", "add_question", contest="spring-cup", question="rain"),
        *(said(who, "submit_forecast", question="rain", participant=who, probability=0.7) for who in ("ada", "bo")),
        said("r", "resolve_question", question="rain", outcome="yes", **closing),
        said("f", "finalize_contest", contest="spring-cup", **closing),
        opened("s", question="snow"),
        *(
            said(f"{number}", "submit_forecast", question="snow", participant="ada", probability=0.5)
            for number in range(1_200)
        ),
    ]
    written(folder / "season.db", map(read, [*COMMANDS.read_bytes().splitlines(), *lines]), at=0)
    assert run("export", str(folder / "season.db"), str(folder / "exported"), "--format", "csv").exit_code == FINE
    (folder / "FluSight-forecast-hub").symlink_to(STORY.parent / "hub-import")
    (folder / "forecasts.csv").write_text("question,user,p\nrain,ada,0.8\n", encoding="utf-8")
    (folder / "answers.csv").write_text("question,answer\nrain,yes\n", encoding="utf-8")
    (folder / "published.csv").write_bytes((folder / "exported" / "leaderboard.csv").read_bytes())
    return folder


@pytest.fixture
def season(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of that folder, in which the test runs."""
    copytree(prepared, tmp_path, symlinks=True, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", NAMES)
def test_the_example_of_every_help_runs(season: None, command: str) -> None:
    """The command runs as it is printed, and prints something; a `>` is left out, so that the text is on stdout."""
    if command == "import":
        Path("exported").rename("season-csv")
    epilog: str = vars(main.get_command(click.Context(main), command))["epilog"] or ""
    example = epilog.partition("Example: forecast-ledger ")[2]
    result = run(*shlex.split(example.partition(" > ")[0]))
    assert (result.exit_code, result.output != "", shlex.split(example)[0]) == (FINE, True, command), result.stderr


def test_the_examples_of_the_whole_help_run(season: None) -> None:
    """One after another."""
    lines = re.findall(r"(?m)^ *forecast-ledger (.*)$", main.help or "")
    assert len(lines) == 4
    assert [run(*shlex.split(line)).exit_code for line in lines] == [FINE] * 4


def test_help_is_instant() -> None:
    """What a command reads and computes with is imported when it runs, not when help is printed, of all or of one."""
    heavy = "{'numpy', 'eventsourcing', 'sqlite_utils', 'structlog', 'pyarrow', 'jinja2', 'rich'}"
    script = f"""
import sys
from click.testing import CliRunner
from forecast_ledger.__main__ import main
codes = [CliRunner().invoke(main, ["--help"]).exit_code]
print({heavy} & {{*sys.modules}}, "msgspec" in sys.modules)
codes += [CliRunner().invoke(main, [name, "--help"]).exit_code for name in main.list_commands(None)]
print({heavy} & {{*sys.modules}}, {{*codes}})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["set() False", "set() {0}"]


def test_a_short_file_is_appended_without_numpy(tmp_path: Path) -> None:
    """To import it takes a quarter of the time of such a command."""
    script = f"""
import sys
from click.testing import CliRunner
from forecast_ledger.__main__ import main
arguments = ["append", {str(tmp_path / "s.db")!r}, {str(ROOT / "data" / "arena-week" / "commands.jsonl")!r}]
print(CliRunner().invoke(main, arguments).exit_code, "numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]


def test_a_closed_pipe_ends_quietly(log: str) -> None:
    """An example is `forecast-ledger table … | head -1`."""
    (read_end, write_end), (reading, writing) = os.pipe(), os.pipe()
    os.close(read_end)
    child = started(["table", log, "score_parts", "--format", "csv"], [write_end, writing])
    child.join()
    with os.fdopen(reading) as stream:
        told = stream.read()
    assert (child.exitcode, "Traceback" in told, "Exception" in told) == (FINE, False, False)


def test_what_is_printed_to_a_file_or_pipe_is_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever encoding the system has for it: the same bytes everywhere, and no character that it cannot have."""
    log = str(tmp_path / "wide.db")
    assert (
        run("append", log, "-", given=said("c", "open_contest", contest="雨 → é", rules="baseline")).exit_code == FINE
    )
    for form in ("table", "json", "csv"):
        printed = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, "cp1252", newline="\r\n"))
        with pytest.raises(SystemExit, match=str(FINE)):
            main(["table", log, "contests", "--format", form])
        sys.stdout.flush()
        assert "雨 → é" in printed.getvalue().decode()
        assert b"\r" not in printed.getvalue()


# Runs commands, each in a copy of a process that has its modules, with some streams closed, and fails if one has
# another exit code than is given.
ONE_BY_ONE = """
import gc, json, os, sys
from forecast_ledger.__main__ import main
from forecast_ledger.replay.audit import verify
verify.verify(json.loads(sys.argv[1])[0][0][1])  # so that each copy has the modules of what this one did
gc.freeze()
for arguments, closed, code in json.loads(sys.argv[1]):
    if not os.fork():
        for name in closed:
            os.close(getattr(sys, name).fileno())
            setattr(sys, name, None)  # as Python does when it starts without them
        main(arguments)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == code, (arguments, closed)
"""


def test_output_that_nobody_takes_changes_no_exit_code(log: str) -> None:
    """A daemon may close the streams: success is 0, wrong usage is 2, and neither becomes a finding."""
    runs = [
        (arguments, closed, code)
        for closed in (["stdout"], ["stderr"], ["stdout", "stderr"])
        for arguments, code in ((["verify", log], FINE), (["verify", log, "--only", "x"], USAGE))
    ]
    subprocess.run([sys.executable, "-c", ONE_BY_ONE, json.dumps(runs)], check=True, capture_output=True)


def test_progress_is_shown_on_a_terminal_only(log: str) -> None:
    """A running count on stderr, gone when done; none in a pipe."""
    shown = seen("verify", log, columns=80, keep_progress=True)
    assert "34 verified" in shown.stderr
    assert "verified" not in shown.stdout
    assert "verified" not in run("verify", log).stderr


def test_parts_of_scores_are_computed_for_what_is_asked(log: str) -> None:
    """The rows are those of the whole table; a name that the log does not have is refused with the nearest."""
    whole = json.loads(run("table", log, "score_parts", "--format", "json").stdout)
    asked = ("--where", "question=olympics-2021", "--where", "participant=A")
    some = json.loads(run("table", log, "score_parts", "--format", "json", *asked).stdout)
    assert some == [row for row in whole if (row["question"], row["participant"]) == ("olympics-2021", "A")] != []
    wrong = run("table", log, "score_parts", "--where", "question=olympics")
    assert wrong.exit_code == USAGE
    assert "the nearest is olympics-2021" in wrong.stderr


def test_the_only_contest_of_a_log_need_not_be_named(log: str, tmp_path: Path) -> None:
    """`leaderboard LOG` prints its board; of several contests, one is to be named, and they are listed."""
    found = run("leaderboard", log)
    assert (found.exit_code, found.stdout) == (USAGE, "")
    assert "name one of the contests: hidden-only, plain" in found.stderr
    alone, table = str(tmp_path / "alone.db"), tmp_path / "f.csv"
    table.write_text("question,user,p,outcome\nrain,ada,0.8,yes\n", encoding="utf-8")
    assert run("score", str(table), "--log", alone).exit_code == FINE
    assert run("leaderboard", alone).stdout == run("leaderboard", alone, "f").stdout != ""


def test_the_demo_keeps_what_the_guides_need(tmp_path: Path) -> None:
    """The log, and the folder `data` that their commands name, so that these work without a clone; never over files."""
    kept = tmp_path / "kept"
    found = run("demo", "--keep", str(kept))
    assert (found.exit_code, {path.name.partition("-")[0] for path in kept.iterdir()}) == (FINE, {"data", "demo.db"})
    for path in (ROOT / "data").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert (kept / path.relative_to(ROOT)).read_bytes() == path.read_bytes()
    assert "112 of 112 published figures agree to their last digit." in found.stdout
    assert run("leaderboard", str(kept / "demo.db"), "plain").exit_code == FINE
    assert run("demo", "--keep", str(kept)).exit_code == USAGE
