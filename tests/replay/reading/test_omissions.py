"""Replays without somebody, some questions or the last hours: as of a log in which they never were."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AddQuestion, AnyCommand, EnrolParticipant, SubmitForecast
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.reading.replay import Replay, replay
from tests.replay.cli.test_main import run
from tests.support.given import (
    CLOSES,
    contest,
    day,
    enrolment,
    entry,
    forecast,
    micros,
    opened,
    renaming,
    resolution,
    withdrawal,
)
from tests.support.logs import log_fixture, written

SAID: list[AnyCommand] = [
    contest(rules="peer-2024-03", pool=100),
    enrolment(participant="ada"),
    enrolment(participant="hal", bot=True, entrant="lab"),
    enrolment(participant="sal", bot=True, entrant="lab"),
    opened(group="west", tags=("wet", "short")),
    entry(),
    opened("snow", group="east", tags=("wet",)),
    entry(question="snow"),
    forecast(probability="0.6"),
    forecast(participant="hal", probability="0.3"),
    forecast(participant="al", at=day(12), probability="0.9"),
    forecast(participant="al", at=day(18), probability="0.2"),
    forecast("snow", probability="0.2"),
    forecast("snow", "hal", at=day(19), probability="0.9"),
    forecast("snow", "sal", at=day(19, 1), probability="0.7"),
    renaming("al", "bo"),
    withdrawal(at=day(19, 1)),
    resolution(),
    resolution("snow"),
]
TABLES = ("scores", "leaderboard", "prizes", "consensus", "standing", "brier", "calibration", "forecasts")
Kept = Callable[[Any], bool]


def printed(season: Replay, table: str) -> list[dict[str, Any]]:
    """The rows of a table but for their log positions, which another log has elsewhere."""
    return [{name: value for name, value in row.items() if name != "log_position"} for row in season.table(table)]


season = log_fixture(SAID, "module", replay)


def by(*people: str) -> Kept:
    """Whether a command is not by one of these."""
    return lambda each: getattr(each, "participant", "") not in people


def before(at: str) -> Kept:
    """Whether a command is no forecast or withdrawal later than an instant."""
    return lambda each: each.at <= at or type(each).__name__ not in {"SubmitForecast", "WithdrawForecast"}


CASES: list[tuple[tuple[str, ...], str | None, Kept]] = [
    (("ada",), None, by("ada")),
    (("bo",), None, by("al")),
    (("al",), None, by("al")),  # a former id
    (("bots",), None, by("hal", "sal")),
    (("ada", "hal"), None, by("ada", "hal")),
    (("group=west",), None, lambda each: not isinstance(each, AddQuestion) or each.question != "rain"),
    (("tag=wet",), None, lambda each: not isinstance(each, AddQuestion)),
    ((), "24h", before(day(19))),
    ((), "1d", before(day(19))),
    ((), "1500m", before(day(18, 23))),
    (("hal",), "7d", lambda each: by("hal")(each) and before(day(13))(each)),
]


@pytest.mark.parametrize(("names", "before_close", "kept"), CASES)
def test_it_is_as_if_they_had_never_been(
    season: Replay, names: tuple[str, ...], before_close: str | None, kept: Kept, tmp_path: Path
) -> None:
    """The tables are those of another log, of the same commands without those that are left out."""
    other = replay(written(tmp_path / "log.db", filter(kept, SAID)))
    found = season.without(*names, before_close=before_close)
    for table in TABLES:
        assert printed(found, table) == printed(other, table), table
    assert printed(found, "scores") != printed(season, "scores")


def test_the_replay_itself_is_as_before(season: Replay) -> None:
    """What is left out is left out of another one; nothing left out is the same."""
    digests = [season.table(table).digest() for table in TABLES]
    without = season.without()
    assert season.without("ada").checkpoint == season.checkpoint
    assert digests == [season.table(table).digest() for table in TABLES]
    assert digests == [without.table(table).digest() for table in TABLES]


def test_time_is_that_of_the_clock_of_the_rules(tmp_path: Path) -> None:
    """Rules that go by the ledger's clock leave out what it received too late, whatever it claims."""
    said: list[AnyCommand] = [contest(rules=PRESETS["brier-daily"]), opened(), entry(), forecast(), resolution()]
    late = replay(written(tmp_path / "late.db", said, at=micros(26)))
    assert len(late.without(before_close="24h").scores) == 1
    recorded = [contest(rules=structs.replace(PRESETS["brier-daily"], name="own", clock="recorded")), *said[1:]]
    late = replay(written(tmp_path / "recorded.db", recorded, at=micros(26)))
    assert len(late.without(before_close="24h").table("forecasts")) == 0
    early = replay(written(tmp_path / "early.db", recorded[:4], at=micros(11)))
    assert len(early.without(before_close="24h").table("forecasts")) == 2


def test_each_is_left_out_in_turn(season: Replay) -> None:
    """In the order of the board, by the id of now; every board is that of a replay without one."""
    boards = season.leave_one_out("cup")
    assert [*boards] == season.leaderboard["participant"]
    assert {*boards} == {"ada", "bo", "hal", "sal"}
    for who, board in boards.items():
        assert board.digest() == season.without(who).table("leaderboard").digest()
        assert who not in board["participant"]
    assert season.leave_one_out("cup", "scores")["bo"]["participant"] == ["ada", "hal", "ada", "hal", "sal"]
    with pytest.raises(Refused, match="unknown_contest"):
        season.leave_one_out("cap")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["adda"], "no participant named 'adda'; there are ada, al, bo, bots, hal, sal; for questions: group=…"),
        (["group=wets"], "no question has the group 'wets'; there are west, east"),
        (["grup=west"], "no participant named 'grup=west'"),
    ],
)
def test_who_is_not_there_is_named_with_the_nearest(season: Replay, names: list[str], told: str) -> None:
    """And so are details of questions."""
    with pytest.raises(ValueError, match=told):
        season.without(*names)


def test_a_time_before_the_close_is_a_duration(season: Replay) -> None:
    """A number and its unit, as elsewhere."""
    with pytest.raises(ValueError, match="'1y' is no duration: give a number and s, m, h or d"):
        season.without("ada", before_close="1y")


def test_nobody_is_a_bot(tmp_path: Path) -> None:
    """Then there is nothing to leave out; a participant may have this name."""
    said = [each for each in SAID if not isinstance(each, EnrolParticipant)]
    with pytest.raises(ValueError, match="nobody is enrolled as a bot"):
        replay(written(tmp_path / "none.db", said)).without("bots")
    named = [*SAID[:-2], forecast(participant="bots"), *SAID[-2:]]
    assert "hal" in replay(written(tmp_path / "named.db", named)).without("bots").leaderboard["participant"]


def test_what_if_shows_the_board_without_somebody(tmp_path: Path) -> None:
    """On the command line, beside the board with all; a wrong name is wrong usage and prints no table."""
    log = written(tmp_path / "log.db", SAID)
    found = run("what-if", log, "--without", "bots", "--show", "leaderboard", "--columns", "participant,row,column")
    told = {tuple(line.split()[:2]) for line in found.stdout.splitlines()[1:]}
    assert (found.exit_code, told) == (FINE, {("ada", "changed"), ("bo", "changed"), ("hal", "gone"), ("sal", "gone")})
    assert "nothing was written" in found.stderr
    late = run("what-if", log, "--before-close", "24h", "--show", "forecasts", "--columns", "participant,row")
    assert {*late.stdout.splitlines()[1:]} >= {"sal          gone"}
    for wrong in (["--without", "adda"], ["--before-close", "1y"], []):
        refused = run("what-if", log, *wrong, "--show", "leaderboard")
        assert (refused.exit_code, refused.stdout) == (USAGE, "")


def test_the_cases_divide_the_forecasts() -> None:
    """One is made exactly 24 hours before the close, and counts; another an hour later, and does not."""
    assert {day(19), day(19, 1)} < {each.at for each in SAID if isinstance(each, SubmitForecast)}
    assert day(20) == CLOSES
