"""The demonstration: a tournament rebuilt, a forged byte found, a prize explained and moved by a late answer."""

import csv
from decimal import ROUND_DOWN, Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.cli import demo
from forecast_ledger.replay.cli.main import main

EXPECTED = demo.story_folder() / "expected"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of the log, and that of its copies, after the demonstration."""
    log, copies = tmp_path_factory.mktemp("log"), tmp_path_factory.mktemp("copies")
    assert demo.demonstrate(log, copies).agrees
    return log, copies


def row(lines: list[str], first: str) -> list[str]:
    """The other cells of the last line that begins with this word."""
    return next(line.split()[1:] for line in reversed(lines) if line.split()[:1] == [first])


def test_it_has_three_acts_on_one_page() -> None:
    """One screen of lines, each short enough for a terminal, and three numbered titles."""
    result = CliRunner().invoke(main, ["demo"])
    lines = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line[:2] for line in lines if line[1:3] == ". "] == ["1.", "2.", "3."]
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100


def test_one_byte_is_forged_and_found_at_its_log_position(folders: tuple[Path, Path]) -> None:
    """The forged copy differs from the log in one byte: the answer to olympics-2021, the story's 32nd command."""
    log, copies = folders
    before, after = (log / "demo.db").read_bytes(), (copies / "forged.db").read_bytes()
    assert len(before) == len(after)
    assert [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]] == [(ord("0"), ord("1"))]
    with pytest.raises(Corrupt) as found:
        verify(copies / "forged.db")
    assert found.value.position == 32
    title, *lines = demo.forged_answer(log / "demo.db", copies / "again.db")
    assert "`verify` finds" in title
    assert " ".join(lines) == f"the log is damaged: {found.value}"


def test_the_log_itself_stays_as_it_is(folders: tuple[Path, Path]) -> None:
    """What is forged or appended later is in copies: the log has the 34 commands of the story, and is sound."""
    log, copies = folders
    assert verify(log / "demo.db").position == 34
    assert verify(copies / "late.db").position == 36
    assert {path.name.partition("-")[0] for path in log.iterdir()} == {"demo.db"}


def test_the_prize_is_explained_by_the_takes_of_the_story(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Take, share and prize of everybody are those that were worked out from the document."""
    lines = list(demo.late_answer(folders[0] / "demo.db", tmp_path / "late.db"))
    with (EXPECTED / "leaderboard.csv").open(encoding="utf-8", newline="") as file:
        rows = [place for place in csv.DictReader(file) if place["contest"] == "plain"]
    assert len(rows) == 4
    for place in rows:
        assert row(lines, place["participant"]) == [place["take"], place["share"], place["prize"]]


def test_the_late_answer_moves_the_prize_as_by_hand(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """The score of gdp-next-year is worked out again for 3.9; the other two are those of the story.

    3.9 is in the bin from 3.8 to 4.04. There every forecast has 0.0005, and so has the median, except that B has
    0.0334 on day 1 and 0.0112 on day 2. The prizes are cut down to cents, and C gets neither of
    the two that are left over: the fractions of a cent are 0.81 (B), 0.54 (bot), 0.52 (A) and 0.14 (C).
    """
    lines = list(demo.late_answer(folders[0] / "demo.db", tmp_path / "late.db"))
    moved = {
        "A": Decimal(0),
        "B": (Decimal("66.8").ln() + Decimal("22.4").ln()) / 4,
        "C": Decimal(0),
        "bot": Decimal(0),
    }
    coverages = {"A": Decimal(10) / 12, "B": Decimal(9) / 12, "C": Decimal(8) / 12, "bot": Decimal(5) / 12}
    with (EXPECTED / "scores.csv").open(encoding="utf-8", newline="") as file:
        for score in csv.DictReader(file):
            if score["contest"] == "plain" and score["question"] != "gdp-next-year":
                moved[score["participant"]] += Decimal(score["score"])
    takes = {who: coverages[who] * total.exp() for who, total in moved.items()}
    prize = (1000 * takes["C"] / sum(takes.values())).quantize(Decimal("0.01"), ROUND_DOWN)
    assert row(lines, "prize") == ["44.80", str(prize)] == ["44.80", "64.38"]
    assert row(lines, "score") == ["-0.885756894", "-0.192609714"]  # -0.193 is C's published score of olympics-2021
    assert row(lines, "rank") == ["4", "3"]
    assert "(#35 resolution_revoked, #36 question_resolved)" in " ".join(lines)
