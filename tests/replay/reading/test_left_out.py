"""The notes below a leaderboard: which questions and participants are not in its numbers."""

from pathlib import Path

import pytest

from forecast_ledger import replay, seal
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.replay.engines.log_frame import LogFrame
from forecast_ledger.replay.reading.board_notes import left_out
from tests.replay.cli.test_main import run
from tests.support.given import MARCH, contest, enrolment, entry, exclusion, forecast, opened, resolution, trading_floor
from tests.support.logs import written


def noted(tmp_path: Path, *story: AnyCommand, name: str = "cup") -> list[str]:
    """The notes on a contest of a log of these commands."""
    return left_out(replay(written(tmp_path / "log.db", story, at=MARCH)).projections, name)


BOTH: list[AnyCommand] = [opened(), opened("snow"), contest(), entry(), entry(question="snow")]


def test_questions_without_an_answer_and_participants_without_a_row_are_counted(tmp_path: Path) -> None:
    """Bob forecast only on a question without an answer; dan is hidden."""
    story: list[AnyCommand] = [*BOTH, forecast(), forecast("snow", "bob")]
    story += [forecast(participant="dan"), resolution(), exclusion(participant="dan", level="hidden")]
    assert noted(tmp_path, *story) == [
        "1 of the 2 questions of cup have an answer that counts",
        (
            "not on the board: 1 excluded as hidden; to see exclusions: "
            "forecast-ledger log LOG --type participant_excluded --contest cup"
        ),
        "not on the board: 1 with forecasts on its questions, none of which counts",
    ]
    told = run("leaderboard", str(tmp_path / "log.db"), "cup").stderr
    assert "1 with forecasts on its questions, none of which counts" in told


def test_a_board_that_has_everybody_says_nothing(tmp_path: Path) -> None:
    """Whoever is enrolled without a forecast is not missing, nor who forecast on a question of another contest."""
    story = [*BOTH[:4], forecast(), resolution(), enrolment(participant="eve"), forecast("snow", "fay")]
    assert noted(tmp_path, *story) == []


@pytest.mark.parametrize(
    ("rules", "pool", "says"),
    [
        ("brier-daily", 100, ["the pool of cup is never paid: the rules brier-daily have no take"]),
        ("brier-daily", 0, []),
        ("peer-2024-03", 100, []),
    ],
)
def test_a_pool_that_its_rules_never_pay_is_named(tmp_path: Path, rules: str, pool: int, says: list[str]) -> None:
    """Below the board, where a prize of 0 for everybody could be taken for a result."""
    story: list[AnyCommand] = [opened(), contest(rules=rules, pool=pool), entry(), forecast(), resolution()]
    assert noted(tmp_path, *story) == says


def test_forecasts_in_segments_are_not_read_again_where_everybody_is_on_the_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine has read them some questions at a time; they are read whole only to find who is missing."""
    story = [*BOTH[:4], forecast(), resolution()]
    seal(written(tmp_path / "log.db", story, at=MARCH), tmp_path / "segments")
    season = replay(tmp_path / "segments", trust="files", engine="local", tables=["leaderboard"])
    monkeypatch.setattr(LogFrame, "forecasts_on", lambda *_: pytest.fail("forecasts are read again"))
    assert left_out(season.projections, "cup") == []


def test_a_trading_board_has_accounts(tmp_path: Path) -> None:
    """Forecasts of others on its questions are on the board of scores; a hidden account is not shown."""
    story = [*trading_floor("ada", "bob"), forecast(participant="cyd", at=None)]
    story += [exclusion("week", "bob", level="hidden")]
    assert noted(tmp_path, *story, name="week")[1:] == [
        (
            "not on the board: 1 excluded as hidden; to see exclusions: "
            "forecast-ledger log LOG --type participant_excluded --contest week"
        )
    ]
