"""Tie-out sheets: what each prize of a contest rests on, and totals that tie."""

import csv
import io
import json
from pathlib import Path

from forecast_ledger.ledger.model.commands import ResolveQuestion, SubmitForecast, WithdrawForecast
from forecast_ledger.replay.audit import trails
from forecast_ledger.replay.audit.trails import TIE_OUT, Trails, positions_text, tie_out
from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from forecast_ledger.replay.reading.replay import replay
from tests.replay.cli.test_main import run
from tests.support.given import finalization, forge, opened, payment, prizes_paid, renaming, resolution, revocation, won
from tests.support.logs import commands_of, written

PLAIN = "plain"


def sealed_log(folder: Path, *, paid: bool = True) -> str:
    """The log of Metaculus's example, sealed and paid."""
    story = [*commands_of("metaculus-2022"), finalization(PLAIN, at="2022-04-20T00:00:00Z")]
    return written(folder / "season.db", [*story, *[payment(PLAIN, at="2022-04-21T00:00:00Z")] * paid])


def test_each_prize_has_its_forecasts_answers_seal_and_payment(tmp_path: Path) -> None:
    """Prizes are the published ones; positions are those of the lines of the story, which the log begins with."""
    rows, ties = tie_out(replay(sealed_log(tmp_path)).projections, PLAIN)
    told = [(row["row"], row["participant"], row["prize"], row["paid_at"], row["paid"], row["owed"]) for row in rows]
    assert told == [
        ("1", "A", "108.00", 36, "108.00", "0.00"),
        ("2", "B", "779.30", 37, "779.30", "0.00"),
        ("3", "C", "44.80", 38, "44.80", "0.00"),
        ("4", "bot", "67.90", 39, "67.90", "0.00"),
        ("total", None, "1000.00", None, "1000.00", "0.00"),
    ]
    story = [*enumerate(commands_of("metaculus-2022"), 1)]
    for row in rows[:-1]:
        made = {
            n: each.question
            for n, each in story
            if isinstance(each, SubmitForecast | WithdrawForecast) and each.participant == row["participant"]
        }
        answers = [n for n, each in story if isinstance(each, ResolveQuestion) and each.question in made.values()]
        assert (row["forecasts"], row["answers"]) == (positions_text([*made]), positions_text(answers))
        assert row["questions"] == len({*made.values()})
        assert (row["sealed_at"], row["bank_date"], row["bank_amount"]) == (35, None, None)
    assert [(int(tie.one), int(tie.other)) for tie in ties] == [(1000, 1000), (1000, 1000), (0, 0)]


def test_nothing_is_owed_before_the_seal_and_all_of_it_before_the_payment(tmp_path: Path) -> None:
    """The contest hidden-only of the same log has a board that can still change."""
    projections = replay(sealed_log(tmp_path, paid=False)).projections
    rows, _ = tie_out(projections, PLAIN)
    assert [row["owed"] for row in rows] == ["108.00", "779.30", "44.80", "67.90", "1000.00"]
    assert {row["owed"] for row in tie_out(projections, "hidden-only")[0]} == {None}


def test_a_payment_to_somebody_without_a_prize_does_not_tie(tmp_path: Path) -> None:
    """5 are paid to cy, who has no prize; the command prints both totals, and exits with 1."""
    log = written(tmp_path / "cup.db", won(pool=100))
    assert run("tie-out", log, "cup").exit_code == FINE
    forge(tmp_path / "cup.db", *prizes_paid(ada=100, cy=5))
    result = run("tie-out", log, "cup")
    assert result.exit_code == FINDINGS
    assert "paid beyond the prizes, and nothing: 5.00 and 0.00" in result.stderr


def test_a_sheet_is_csv_that_no_spreadsheet_runs(tmp_path: Path) -> None:
    """The question of the cup is described at a formula; a column that does not exist is wrong usage."""
    log = written(tmp_path / "cup.db", [opened(source="=HYPERLINK(1)"), *won(pool=1)[1:]])
    result = run("tie-out", log, "cup", "--format", "csv")
    [row, total] = csv.DictReader(io.StringIO(result.stdout))
    assert [*row] == TIE_OUT
    assert (row["documents"], row["prize"], total["row"]) == ("'=HYPERLINK(1)", "1.00", "total")
    assert run("tie-out", log, "cup", "--columns", "bank").exit_code == USAGE
    assert run("tie-out", log, "cups").exit_code == USAGE
    assert json.loads(run("tie-out", log, "cup", "--format", "json").stdout)[0]["forecasts"] == row["forecasts"]


def test_forecasts_of_another_id_are_those_of_the_participant(tmp_path: Path) -> None:
    """What is recorded of ada counts as bo's from the renaming on."""
    log = written(tmp_path / "cup.db", [*won(pool=10)[:-1], renaming()])
    before = tie_out(replay(log, as_of=5).projections, "cup")[0][0]
    row = tie_out(replay(log).projections, "cup")[0][0]
    assert (before["participant"], row["participant"]) == ("ada", "bo")
    assert row["forecasts"] == before["forecasts"] != ""


def test_long_lists_say_how_much_is_left_out() -> None:
    """A cell has at most 1,000 characters before that: spreadsheets cut longer ones without a word."""
    text = positions_text([*range(1, 2_000, 2)])
    first, _, more = text.partition(" and ")
    shown = first.split(" ")
    assert len(first) <= trails.LONGEST
    assert [*map(int, shown)] == [*range(1, 2 * len(shown), 2)]
    assert more == f"{1_000 - len(shown)} more"
    assert positions_text([]) == ""


def test_answers_are_those_that_count_as_of_the_seal(tmp_path: Path) -> None:
    """One that is revoked before has none; after the seal no other answer counts, and no other id."""
    before = written(tmp_path / "before.db", [*won(pool=10)[:-1], revocation()])
    assert Trails(replay(before).projections.facts, "cup").of("ada").answers == []
    after = written(tmp_path / "after.db", [*won(pool=10), revocation(), resolution(outcome="no"), renaming()])
    facts = replay(after).projections.facts
    assert Trails(facts, "cup").of("ada") == (["rain"], [4], [5])
    assert Trails(facts, "cup").of("zoe") == ([], [], [])
    assert positions_text([3, 4, 5]) == "3..5"
