"""Cuts by the claimed clock, and cuts at a plain date: what is left, and what is said about it."""

import json
from pathlib import Path

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.reading.log import Log, cut_as_claimed, end_of_date, first_event
from tests.replay.cli.test_main import run
from tests.support.given import MARCH, day, forecast, opened, renaming
from tests.support.logs import commands_of, log_fixture, written
from tests.support.menu import loaded

# Log positions 1 to 4 claim March 5, 11, 14 and 12; all are recorded on March 1.
STORY: list[AnyCommand] = [
    opened(),
    forecast(at=day(11)),
    forecast(participant="bo", at=day(14)),
    forecast(participant="cy", at=day(12)),
]


log = log_fixture(STORY, at=MARCH)  # its last event claims an earlier instant than the one before


@pytest.mark.parametrize(
    ("instant", "position", "earlier"),
    [
        (day(5), 1, 0),
        (day(4), 0, 0),
        (day(11), 2, 0),
        (day(12), 2, 1),
        ("2026-03-13T23:59:59.999999Z", 2, 1),
        (day(14), 4, 0),
        (day(31), 4, 0),
    ],
)
def test_a_cut_is_before_the_first_event_that_claims_a_later_instant(
    log: str, instant: str, position: int, earlier: int
) -> None:
    """The instant itself is included; events after the cut that claim no later instant are counted."""
    assert cut_as_claimed(Log(log), instant) == (position, earlier)


def test_a_rename_shows_from_its_log_position_on_whatever_instant_it_claims(tmp_path: Path) -> None:
    """It may claim the beginning; a cut before an event that precedes it is a beginning of the log without it."""
    story: list[AnyCommand] = [opened(), forecast(at=day(11)), forecast(at=day(14)), renaming(to="ada.b", at=day(5))]
    log = written(tmp_path / "log.db", story, at=MARCH)
    for until, who in (("2026-03-12", {"ada"}), ("2026-03-14", {"ada.b"})):
        shown = run("table", log, "forecasts", "--as-of-claimed", until, "--format", "json").stdout
        assert {row["participant"] for row in json.loads(shown)} == who


def test_an_answer_as_of_a_claimed_instant_is_the_replay_of_a_beginning(log: str) -> None:
    """It is the answer as of the log position of the cut, and stderr says what is left out."""
    claimed = run("table", log, "forecasts", "--as-of-claimed", "2026-03-12", "--format", "csv")
    assert claimed.stdout == run("table", log, "forecasts", "--as-of", "2", "--format", "csv").stdout
    left_out = "; later events left out that claim an earlier instant: 1"
    told = claimed.stderr.splitlines()
    assert told[0] == f"cut by the claimed clock at 2026-03-12T23:59:59.999999Z{left_out}"
    assert told[-1].startswith("as of log position 2, ")


def test_a_plain_date_is_its_end() -> None:
    """Any other text is as it is; what is no date is refused as an instant is."""
    assert end_of_date("2026-03-01") == "2026-03-01T23:59:59.999999Z"
    assert [end_of_date(text) for text in (day(1), "12", "2026-3-1", "")] == [day(1), "12", "2026-3-1", ""]


def test_a_plain_date_cuts_by_the_ledgers_clock_too(log: str) -> None:
    """All was recorded on March 1, at the first instant of the day."""
    whole = run("table", log, "standing", "--as-of", "2026-03-01")
    assert (whole.exit_code, "as of log position 4, " in whole.stderr) == (FINE, True)
    assert whole.stderr.startswith("cut by the ledger's clock at 2026-03-01T23:59:59.999999Z\n")


def test_the_ends_of_a_difference_may_be_dates(log: str) -> None:
    """Nothing was recorded before March 1; both ends are days, and stderr says which instants they mean."""
    result = run("diff", log, "@2026-02-28", "@2026-03-01", "--table", "questions", "--format", "json")
    assert (result.exit_code, [row["change"] for row in json.loads(result.stdout)]) == (FINE, ["new"])
    told = result.stderr.splitlines()
    assert told[:2] == [
        f"{date}: cut by the ledger's clock at {date}T23:59:59.999999Z" for date in ("2026-02-28", "2026-03-01")
    ]
    assert [line.split(",")[0] for line in told[-2:]] == ["as of log position 0", "as of log position 4"]
    wrong = run("diff", log, "@2026-02-30", "@2026-03-01")
    assert (wrong.exit_code, "bad_instant: as_of = '2026-02-30'" in wrong.stderr) == (USAGE, True)


@pytest.mark.parametrize("option", ["--as-of", "--as-of-claimed"])
def test_if_nothing_is_left_the_beginning_of_the_log_is_told(log: str, option: str) -> None:
    """With both instants of its first event: one may have taken one clock for the other."""
    result = run("table", log, "standing", option, "2020-01-01")
    told = f"the log begins with an event recorded at {day(1)}, claimed for {day(5)}"
    assert (result.exit_code, told in result.stderr, "as of log position 0, " in result.stderr) == (FINE, True, True)
    assert ("; --as-of-claimed cuts by the claimed instants" in result.stderr) == (option == "--as-of")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--as-of", "2", "--as-of-claimed", "2026-03-01"], "not both"),
        (["--as-of-claimed", "2026-02-30"], "bad_instant"),
        (["--as-of-claimed", "3"], "bad_instant"),
        (["--as-of-claimed", "2026-03-01T00:00:00"], "naive_instant"),
        (["--as-of", "2026-02-30"], "bad_instant"),
    ],
)
def test_a_cut_that_is_none_is_refused(log: str, options: list[str], message: str) -> None:
    """The exit code is 2, and nothing is printed."""
    result = run("table", log, "standing", *options)
    assert (result.exit_code, result.stdout, message in result.stderr) == (USAGE, "", True)


def test_every_command_that_cuts_by_one_clock_cuts_by_the_other() -> None:
    """One decorator adds both options."""
    for name, command in loaded().items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--as-of" in options) == ("--as-of-claimed" in options), name


@pytest.mark.parametrize(
    "command",
    [
        ["verify", "LOG"],
        ["checkpoint", "LOG"],
        ["replay", "LOG"],
        ["leaderboard", "LOG", "plain"],
        ["table", "LOG", "scores"],
        ["explain", "LOG", "score", "plain", "sp500-4500", "A"],
        ["blame", "LOG", "leaderboard", "plain", "A"],
        ["export", "LOG", "OUT", "--format", "csv"],
        ["what-if", "LOG", "--contest", "plain", "--rules", "baseline", "--rules", "spot-baseline"],
    ],
    ids=lambda command: command[0],
)
def test_each_command_answers_as_of_a_claimed_instant(tmp_path: Path, command: list[str]) -> None:
    """The whole log, if nothing in it claims a later instant."""
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"), at=MARCH)
    named = {"LOG": log, "OUT": str(tmp_path / "out")}
    result = run(*(named.get(each, each) for each in command), "--as-of-claimed", "2030-01-01")
    assert (result.exit_code, "as of log position 34, " in result.stderr) == (FINE, True), result.stderr


def test_an_empty_log_has_no_first_event(log: str, tmp_path: Path) -> None:
    """Nothing is told of it."""
    first = first_event(Log(log))
    assert first is not None
    assert first.position == 1
    Ledger.open(tmp_path / "empty.db").close()
    assert first_event(Log(str(tmp_path / "empty.db"))) is None
