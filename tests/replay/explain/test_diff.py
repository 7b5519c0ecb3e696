"""The differences between two points of one log, and the events that can have caused them."""

import csv
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.core.table import Table
from forecast_ledger.replay.cli.explain import blame as blame_command
from forecast_ledger.replay.cli.explain import diff as diff_command
from forecast_ledger.replay.cli.explain import explain as explain_command
from forecast_ledger.replay.cli.main import FINE, USAGE, main
from forecast_ledger.replay.explain.diff import CAUSES_SHOWN, diff
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import replay
from tests.replay.cli.test_main import run
from tests.support.given import exclusion, resolution, revocation
from tests.support.logs import commands_of, log_fixture
from tests.support.oracle import events_of
from tests.system.test_stories import ARENA, DATA, METACULUS

STORY = DATA / METACULUS / "commands.jsonl"
LATER = {"at": "2021-07-25T00:00:00Z"}
log = log_fixture(
    lambda: [
        *commands_of(METACULUS),
        *(revocation("olympics-2021", **LATER), resolution("olympics-2021", outcome="no", **LATER)),
        exclusion("hidden-only", "B", level="no_rank", reason="x", **LATER),
    ]
)
week = log_fixture(lambda: commands_of(ARENA), "module")  # with a contest sealed at its end


def test_rows_that_change_come_or_go_are_told_with_their_causes(log: str) -> None:
    """At log position 32 the first question is resolved, so every row of both boards is new."""
    found = diff(Log(log, as_of=31), 32, "leaderboard")
    assert (len(found.changes), found.equal) == (8, 0)
    assert {change.difference.row for change in found.changes} == {"new"}
    [own] = [change for change in found.changes if change.difference.key == {"contest": "plain", "participant": "A"}]
    assert own.difference.columns["score"] == (None, "-0.330438960")
    assert [tuple(cause) for cause in own.causes] == [(32, "question_resolved")]


def test_what_does_not_change_is_counted_as_equal(log: str) -> None:
    """The third answer adds three scores to each contest, and changes none of the sixteen there are."""
    found = diff(Log(log, as_of=33), 34, "scores")
    assert [change.difference.key["question"] for change in found.changes] == ["sp500-4500"] * 6
    assert found.equal == 16
    assert {change.difference.row for change in found.changes} == {"new"}
    assert diff(Log(log, as_of=34), 34, "scores").changes == []


def test_own_forecasts_on_what_has_been_answered_since_are_among_the_causes(log: str) -> None:
    """Between log positions 11 and 32 A forecast twice on the first question, and once on each of the others."""
    found = diff(Log(log, as_of=11), 32, "scores")
    [own] = [
        change for change in found.changes if tuple(change.difference.key.values()) == ("plain", "olympics-2021", "A")
    ]
    assert [tuple(cause) for cause in own.causes] == [
        (32, "question_resolved"),
        (12, "forecast_made"),
        (22, "forecast_made"),
    ]


def test_causes_are_of_the_contest_and_question_alone(log: str) -> None:
    """The exclusion is of the other contest; what settles a question comes first."""
    found = diff(Log(log, as_of=34), 37, "leaderboard")
    causes = {tuple(change.difference.key.values()): change.causes for change in found.changes}
    assert [cause.log_position for cause in causes["plain", "A"]] == [35, 36]
    assert [cause.log_position for cause in causes["hidden-only", "A"]] == [35, 36, 37]
    scores = diff(Log(log, as_of=34), 37, "scores")
    assert {change.difference.key["question"] for change in scores.changes} == {"olympics-2021"}


def test_of_many_causes_some_are_named_and_all_are_counted(log: str) -> None:
    """Every forecast on a question can change its consensus."""
    found = diff(Log(log, as_of=11), 37, "consensus")
    most = max(found.changes, key=lambda change: change.events)
    assert len(most.causes) == CAUSES_SHOWN < most.events
    told = run("diff", log, "@11", "@37", "--table", "consensus", "--format", "csv").stdout
    assert f" and {most.events - CAUSES_SHOWN} more" in told


def test_a_row_that_is_gone_is_told_as_gone(log: str) -> None:
    """Between the revocation and the new answer there is no score."""
    found = diff(Log(log, as_of=34), 35, "scores")
    assert {(change.difference.row, change.difference.key["question"]) for change in found.changes} == {
        ("gone", "olympics-2021")
    }
    assert found.equal == 22 - len(found.changes)


@pytest.mark.parametrize("table", ["journal", "cash", "refused_legs"])
def test_what_is_never_other_than_it_came_is_caused_by_its_own_event(table: str, week: str) -> None:
    """An entry, a movement, a leg refused: each names the log position that it came with."""
    changes = diff(Log(week, as_of=0), None, table).changes
    assert {change.difference.row for change in changes} == {"new"}
    for change in changes:
        assert [(cause.log_position, change.events) for cause in change.causes] == [
            (change.difference.key["log_position"], 1)
        ]


def test_the_foremost_cause_is_what_a_row_tells_of(week: str) -> None:
    """A contest has its opening or seal first, a trade the trade, an account its settlements, then its own events."""
    end = replay(week).checkpoint.position
    recorded = {each.position: each.event for each in events_of(week)}
    for change in diff(Log(week, as_of=50), end, "contests").changes:
        name, [foremost, *_] = change.difference.key["contest"], change.causes
        assert foremost.type == ("contest_opened" if change.difference.row == "new" else "contest_finalized")
        assert getattr(recorded[foremost.log_position], "contest", "") == name
    for change in diff(Log(week, as_of=50), end, "trades").changes:
        if change.difference.row == "new":
            assert change.causes[0].log_position == change.difference.key["log_position"]
    [own] = [
        change
        for change in diff(Log(week, as_of=50), 56, "accounts").changes
        if tuple(change.difference.key.values()) == ("week-1", "bo")
    ]
    assert getattr(recorded[own.causes[0].log_position], "participant", "") == "bo"


def test_in_a_file_of_many_rows_each_is_compared_once(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is gone through as often for many rows that differ as for one."""
    read, rows = list[int](), Table.rows

    def counting(table: Table) -> Iterator[dict[str, Any]]:
        read.append(1)
        return rows(table)

    monkeypatch.setattr(Table, "rows", counting)
    assert len(diff(Log(log, as_of=11), 32, "scores").changes) > 1
    many = len(read)
    assert diff(Log(log, as_of=34), 34, "scores").changes == []
    assert len(read) == 2 * many


def test_a_cut_before_the_first_event_has_nothing(log: str) -> None:
    """Everything is new since position 0, or since an instant long ago; up to 0 there is nothing to compare."""
    new = diff(Log(log, as_of=0), None, "leaderboard")
    assert new == diff(Log(log, as_of="1970-01-01T00:00:00Z"), None, "leaderboard")
    assert {change.difference.row for change in new.changes} == {"new"}
    assert diff(Log(log, as_of=0), 0, "leaderboard")[:2] == ([], 0)
    with pytest.raises(Refused, match="the earlier point of the log first"):
        diff(Log(log, as_of=1), "1970-01-01T00:00:00Z", "leaderboard")
    with pytest.raises(Refused, match="the log ends at position 37"):
        diff(Log(log, as_of=37), 38, "leaderboard")


def test_the_command_takes_positions_and_instants_in_each_format(log: str) -> None:
    """The @ may be left out; the number of equal rows and both checkpoints are on stderr."""
    result = run("diff", log, "@34", "36", "--format", "json")
    rows = json.loads(result.stdout)
    [own] = [row for row in rows if (row["contest"], row["participant"]) == ("plain", "A")]
    assert own["columns"]["rank"] == {"old": 2, "new": 1}
    assert own["because"][0] == {"log_position": 35, "type": "resolution_revoked"}
    assert own["events"] == 2
    told = result.stderr.splitlines()
    assert told[0] == "7 rows differ, 1 equal"  # the bot, who is not covered in the hidden days, stays last
    assert [line.split(",")[0] for line in told[1:]] == ["as of log position 34", "as of log position 36"]
    values = [*csv.DictReader(io.StringIO(run("diff", log, "@34", "@36", "--format", "csv").stdout))]
    value = {(row["contest"], row["participant"], row["column"]): row for row in values}
    assert [value["plain", "A", "rank"][name] for name in ("change", "old", "new")] == ["changed", "2", "1"]
    assert {row["because"] for row in values} == {"#35 resolution_revoked, #36 question_resolved"}
    assert len(run("diff", log, "@34", "@36").stdout.splitlines()) == 1 + len(values)
    none = run("diff", log, "2020-01-01T00:00:00Z", "@0", "--table", "scores")
    assert (none.exit_code, none.stderr.splitlines()[:2]) == (FINE, ["no rows", "0 rows differ, 0 equal"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["@34", "@33"], "the earlier point of the log first"),
        (["@34", "@99"], "out_of_range"),
        (["@34", "yesterday"], "bad_instant"),
        (["@33", "@34", "--table", "fame"], "no projection named"),
    ],
)
def test_cuts_and_tables_that_are_none_are_wrong_usage(arguments: list[str], told: str, log: str) -> None:
    """One line, and the exit code of wrong usage."""
    result = run("diff", log, *arguments)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert told in result.stderr


@pytest.mark.parametrize("command", [explain_command, diff_command, blame_command], ids=lambda command: command.name)
def test_the_example_of_the_help_runs(command: object, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs as it is printed, in a folder with such a log."""
    monkeypatch.chdir(Path(log).rename(Path(log).with_name("season.db")).parent)
    epilog = str(getattr(command, "epilog", ""))
    [line] = re.findall(r"^Example: forecast-ledger (.*)$", epilog)
    result = CliRunner().invoke(main, shlex.split(line))
    assert (result.exit_code, result.stdout != "") == (FINE, True)
