"""A real season: 1,120 questions of five outcomes, forecast by 24 teams over six months."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ledger import Ledger
from ledger.events import ForecastMade, QuestionResolved
from projections.projection import CATALOGUE
from replay.append import appended
from replay.replay import Replay, replay
from replay.verify import verify
from tests import flusight

pytestmark = pytest.mark.skipif(
    not flusight.SOURCE.is_file(), reason=f"needs {flusight.SOURCE.name}, which is not here"
)


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """The season's log, and what became of its commands."""
    folder = tmp_path_factory.mktemp("flusight")
    lines = folder / "commands.jsonl"
    with lines.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(command) + "\n" for command in flusight.commands(flusight.rows()))
    with Ledger.open(folder / "season.db") as ledger, lines.open("rb") as commands:
        counts = appended(ledger, commands, lambda line, refused: pytest.fail(f"{line}: {refused}"), lambda _: None)
    return folder, counts


def _digests(found: Replay) -> dict[str, str]:
    return {name: found.projections.table(name).digest() for name in CATALOGUE}


def test_every_command_of_the_season_is_recorded_once(season: tuple[Path, dict[str, int]]) -> None:
    """1 contest, 1,120 questions opened and added, 21,038 forecasts, 40 withdrawals, 1,120 resolutions."""
    folder, counts = season
    expected = 1 + 2 * 1_120 + 21_038 + 40 + 1_120
    assert counts == {"accepted": expected, "duplicate": 0, "refused": 0}
    assert verify(str(folder / "season.db")).position == expected


def test_appending_the_season_again_changes_nothing(season: tuple[Path, dict[str, int]]) -> None:
    """A file of commands can be sent again, whole, after any interruption."""
    folder, counts = season
    with Ledger.open(folder / "season.db") as ledger, (folder / "commands.jsonl").open("rb") as commands:
        before = ledger.head()
        again = appended(ledger, commands, lambda line, refused: pytest.fail(f"{line}: {refused}"), lambda _: None)
        assert again == {"accepted": 0, "duplicate": counts["accepted"], "refused": 0}
        assert ledger.head() == before


def test_a_season_rebuilt_in_another_store_has_the_same_digests(season: tuple[Path, dict[str, int]]) -> None:
    """Neither the store, nor when a command was recorded, nor the size of a batch shows in a projection."""
    folder, _ = season
    with (
        Ledger.open(folder / "again.db", clock=lambda: 0) as ledger,
        (folder / "commands.jsonl").open("rb") as commands,
    ):
        appended(ledger, commands, lambda *_: None, lambda _: None, atomic=True)
    one, other = replay(str(folder / "season.db")), replay(str(folder / "again.db"))
    assert one.checkpoint.digest != other.checkpoint.digest
    assert _digests(one) == _digests(other)


def test_the_prizes_sum_to_the_pool(season: tuple[Path, dict[str, int]]) -> None:
    """10,000 in cents, whatever the takes: they span more than 400 powers of ten here."""
    folder, _ = season
    table = replay(str(folder / "season.db")).projections.table("prizes")
    assert sum(Fraction(row["prize"]) for row in table.rows()) == 10_000


@pytest.mark.parametrize(
    ("team", "expected"), [("FluSight-ens_q_cat", "0.218519"), ("FluSight-baseline_cat", "0.352168")]
)
def test_the_last_standing_forecasts_have_the_known_brier_score(
    season: tuple[Path, dict[str, int]], team: str, expected: str
) -> None:
    """Mean of half the squared distance to the outcome over 1,120 questions, known from the source's own files."""
    folder, _ = season
    losses = list(_halved_brier(folder / "season.db", team))
    assert len(losses) == 1_120
    assert f"{float(sum(losses) / 1_120):.6f}" == expected


def _halved_brier(log: Path, team: str) -> Iterator[Fraction]:
    found = replay(str(log))
    made: dict[int, ForecastMade] = {}
    outcomes: dict[str, int] = {}
    with Ledger.open(log) as ledger:
        for recorded in (recorded for page in ledger.read() for recorded in page):
            if isinstance(recorded.event, ForecastMade):
                made[recorded.position] = recorded.event
            elif isinstance(recorded.event, QuestionResolved):
                outcomes[recorded.event.question] = recorded.event.outcome
    for row in _standing_at_the_close(found, team):
        forecast = made[row["log_position"]]
        yield _half_squared_distance(forecast.probabilities, outcomes[forecast.question])


def _standing_at_the_close(found: Replay, team: str) -> Iterator[dict[str, Any]]:
    for row in found.projections.table("standing").only("participant", team).rows():
        if row["to_at"] == flusight.CLOSES_AT:
            yield row


def _half_squared_distance(probabilities: tuple[int, ...], outcome: int) -> Fraction:
    unit = 10**9
    squares = ((p - unit * (i == outcome)) ** 2 for i, p in enumerate(probabilities))
    return Fraction(sum(squares), 2 * unit**2)
