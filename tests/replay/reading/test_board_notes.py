"""Whatever rests on an answer that changed after a seal says so wherever it is printed, and what it would be now."""

import json
from pathlib import Path

import pytest

from forecast_ledger import audit, export, replay, report
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.replay.cli.main import FINE
from forecast_ledger.replay.files.manifest import read_manifest
from forecast_ledger.replay.pages import page_parts, working_paper
from forecast_ledger.replay.reading import board_notes
from forecast_ledger.replay.reading.board_notes import every_seal_note, seal_notes, subsequent_events
from tests.replay.cli.test_main import run
from tests.support.given import (
    OPENS,
    annulment,
    entry,
    finalization,
    forecast,
    opened,
    payment,
    renaming,
    resolution,
    restatement,
    revocation,
    won,
)
from tests.support.logs import written

CHANCES = {"ada": "0.8", "bob": "0.4"}
# The median is 0.6. With yes the takes are 8/6 and 4/6, so ada has two thirds of the pool of 10; with no they are 2/4
# and 6/4, so she has a quarter.
ANSWER = "rain: yes (#6), revoked by #8, now no (#9)"
ADA, BOB = "ada: rank 2 for 1, prize 2.50 for 6.67", "bob: rank 1 for 2, prize 7.50 for 3.33"


def recorded(path: Path, *later: AnyCommand) -> str:
    """The path of a log of a sealed contest that ada and bob won, and of later commands."""
    return written(path, [*won(chances=CHANCES), *later])


@pytest.fixture
def changed(tmp_path: Path) -> str:
    """The log, with the answer revoked after the seal, and given anew as no."""
    return recorded(tmp_path / "log.db", revocation(), resolution(outcome="no"))


def test_the_answer_and_the_rows_of_now_are_said(changed: str) -> None:
    """Log positions of all three events; rank, prize and score of each participant whose row would differ."""
    answer, rows, remedy = seal_notes(replay(changed).projections, "cup")
    assert answer.endswith(ANSWER)
    assert "log position 7" in answer
    ada, bob = rows.partition(": ")[2].split("; ")
    assert ada.startswith(ADA)
    assert bob.startswith(BOB)
    assert "forecast-ledger what-if LOG --unsealed --contest cup" in remedy


@pytest.mark.parametrize(
    ("later", "words", "now"),
    [
        ([revocation()], "rain: yes (#6), revoked by #8", "ada: not on the board; bob: not on the board"),
        ([annulment()], "rain: yes (#6), now annulled (#8)", "ada: not on the board; bob: not on the board"),
        (
            [revocation(), resolution()],
            "rain: yes (#6), revoked by #8, now yes (#9)",
            "rank, prize and score would be the same",
        ),
        (
            [revocation(), resolution(outcome="no"), revocation()],
            "rain: yes (#6), revoked by #8, now no answer (#10)",
            "ada: not on the board; bob: not on the board",
        ),
    ],
)
def test_each_way_in_which_an_answer_changes(tmp_path: Path, later: list[AnyCommand], words: str, now: str) -> None:
    """Revoked, annulled, given anew, and revoked again."""
    answer, rows, *_ = seal_notes(replay(recorded(tmp_path / "log.db", *later)).projections, "cup")
    assert answer.endswith(f": {words}")
    assert rows.endswith(f": {now}")


def test_nothing_is_said_of_a_board_that_is_not_sealed_or_whose_answers_stand(tmp_path: Path) -> None:
    """Before the seal a revocation moves the board itself; after it, only answers that the board rests on matter."""
    alone: list[AnyCommand] = [opened("wind"), resolution("wind"), revocation("wind")]
    assert every_seal_note(replay(recorded(tmp_path / "a.db", *alone)).projections) == []
    first, path = [*won(chances=CHANCES)][:-1], tmp_path / "b.db"
    written(path, [*first, revocation(), resolution(outcome="no"), finalization()])
    assert every_seal_note(replay(path).projections) == []


def test_every_command_that_prints_a_board_says_so(changed: str, tmp_path: Path) -> None:
    """On stderr, with what the board would be now; the report and its pictures have it on the page."""
    page, picture = str(tmp_path / "page.html"), str(tmp_path / "board.json")
    for arguments in (
        ("leaderboard", changed, "cup"),
        ("table", changed, "prizes"),
        ("pay", changed, "cup"),
        ("report", changed, page),
        ("what-if", changed, "--rules", "baseline", "--contest", "cup", "--show", "prizes"),
    ):
        done = run(*arguments)
        assert done.exit_code == FINE
        assert ANSWER in done.stderr, arguments
        assert ADA in done.stderr, arguments
    assert run("plot", changed, "prizes", picture).exit_code == FINE
    for file in (page, picture):
        text = Path(file).read_text(encoding="utf-8")
        assert ANSWER in text
        assert ADA in text
    assert '<th scope="col" role="columnheader" class="text">counted</th>' in Path(page).read_text(encoding="utf-8")
    assert ANSWER not in run("table", changed, "questions").stderr


def test_every_explanation_says_so(changed: str) -> None:
    """In words and in JSON; a score has the score of now: ln 0.4 - ln 0.4 for bob with yes is other than with no."""
    for number in ("prize", "take", "rank"):
        [answer, row, _] = json.loads(run("explain", changed, number, "cup", "bob", "--json").stdout)["since"]
        assert answer.endswith(ANSWER)
        assert BOB in row
        assert "ada" not in row
        assert ANSWER in run("explain", changed, number, "cup", "bob").stdout
    # ada's forecast stands all the time: ln(0.8 / 0.6) = 0.287682072, and ln(0.2 / 0.4) = -0.693147181 with no
    [answer, row] = json.loads(run("explain", changed, "score", "cup", "rain", "ada", "--json").stdout)["since"]
    assert answer.endswith(ANSWER)
    assert row.endswith("score -0.693147181 for 0.287682072")


def test_what_if_shows_the_board_without_its_seal(changed: str) -> None:
    """Each value that would differ is a line; --unsealed needs the contest."""
    done = run("what-if", changed, "--unsealed", "--contest", "cup", "--show", "prizes", "--format", "csv")
    assert done.stdout.splitlines()[1:] == ["cup,ada,changed,prize,6.67,2.50", "cup,bob,changed,prize,3.33,7.50"]
    assert "--unsealed needs --contest" in run("what-if", changed, "--unsealed", "--show", "prizes").stderr


@pytest.mark.parametrize("form", ["csv", "sqlite", "parquet"])
def test_an_export_says_it_on_stderr_and_in_its_manifest(changed: str, tmp_path: Path, form: str) -> None:
    """As does a replay in Python; an export of a log whose sealed answers did not change has no notes."""
    done = run("export", changed, str(tmp_path / "out"), "--format", form, "--tables", "leaderboard")
    notes = replay(changed).notes()
    assert notes == every_seal_note(replay(changed).projections)
    assert [line for line in done.stderr.splitlines() if not line.startswith("as of")] == notes
    assert read_manifest(tmp_path / "out").notes == (*notes,)
    if form == "sqlite":
        assert ANSWER in json.loads((tmp_path / "out.metadata.json").read_bytes())["description"]
    sound = export(recorded(tmp_path / "sound.db"), tmp_path / "sound", form, tables=["leaderboard"])
    assert sound.notes == ()
    assert b"notes" not in sound.encoded()


def test_the_paper_begins_with_what_rests_on_other_answers(tmp_path: Path) -> None:
    """Right after the checks: rank, prize and score, sealed and now, and what was paid; the verdict says it, too."""
    path = recorded(tmp_path / "log.db", payment(), revocation(), resolution(outcome="no"))
    paper = audit(path, tmp_path / "paper.md").paper
    first = paper.sections[1]
    assert first.title == "Subsequent events"
    assert first.sheets[0].rows == [
        ["cup", "10", "after the payment", "rain: the answer is revoked"],
        ["cup", "11", "after the payment", "rain: the answer is no"],
    ]
    rows = [[*row[:6], row[-1]] for row in first.sheets[1].rows]
    assert rows == [["cup", "ada", "1", "2", "6.67", "2.50", "6.67"], ["cup", "bob", "2", "1", "3.33", "7.50", "3.33"]]
    assert paper.verdict.endswith("1 sealed board rests on answers that changed since.")
    sound = audit(recorded(tmp_path / "sound.db"), tmp_path / "paper.md").paper
    assert sound.verdict == "All 7 checks of 7 events found no fault."
    assert sound.sections[1].title == "Checkpoint"


def test_subsequent_events_are_told_apart_by_the_payment(tmp_path: Path) -> None:
    """Two answers before the payment, and one that is annulled after it; without a seal there are none."""
    between: list[AnyCommand] = [revocation(), resolution(outcome="no"), payment(), revocation(), annulment()]
    path = recorded(tmp_path / "log.db", *between)
    facts = replay(path).projections.facts
    assert subsequent_events(facts, facts.contests["cup"]) == [
        (8, "the seal", "rain: the answer is revoked"),
        (9, "the seal", "rain: the answer is no"),
        (12, "the payment", "rain: the answer is revoked"),
        (13, "the payment", "rain: annulled"),
    ]
    said = json.loads(run("explain", path, "prize", "cup", "ada", "--json").stdout)
    assert said["subsequent"][2] == {"log_position": 12, "after": "the payment", "says": "rain: the answer is revoked"}
    assert "        12  the payment  rain: the answer is revoked" in run("explain", path, "prize", "cup", "ada").stdout
    before = replay(path, as_of=6).projections.facts
    assert subsequent_events(before, before.contests["cup"]) == []


def test_forecasts_and_ids_that_change_after_a_seal_are_subsequent_events(tmp_path: Path) -> None:
    """In log order, with answers; the page has them in a part of their own, and only then."""
    path = recorded(tmp_path / "log.db", renaming("ada", "al"), restatement(participant="bob"), revocation())
    facts = replay(path).projections.facts
    assert subsequent_events(facts, facts.contests["cup"]) == [
        (8, "the seal", "ada is al"),
        (9, "the seal", "forecasts of bob on rain are restated"),
        (10, "the seal", "rain: the answer is revoked"),
    ]
    report(path, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count("<h3>Subsequent events</h3>") == 1
    assert "forecasts of bob on rain are restated" in page
    report(recorded(tmp_path / "sound.db"), tmp_path / "page.html")
    assert "Subsequent events" not in (tmp_path / "page.html").read_text("utf-8")


def test_of_many_subsequent_events_the_newest_are_in_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caption says how many there are; a page has the first, and says so too."""
    twice: list[AnyCommand] = [revocation(), resolution(outcome="no")] * 2
    path = recorded(tmp_path / "log.db", *twice)
    monkeypatch.setattr(working_paper, "MOST_LISTED", 3)
    monkeypatch.setattr(page_parts, "MOST_SUBSEQUENT", 3)
    sheet = audit(path, tmp_path / "paper.md").paper.sections[1].sheets[0]
    assert sheet.caption == "Recorded after a seal: the newest 3 of 4"
    assert [row[1] for row in sheet.rows] == ["9", "10", "11"]
    report(path, tmp_path / "page.html")
    assert "What is recorded since the seal: the first 3 of 4" in (tmp_path / "page.html").read_text("utf-8")


def test_what_is_cut_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many answers and rows the first are said, and how many there are besides; of many contests only their ids."""
    path = recorded(tmp_path / "log.db", revocation(), resolution(outcome="no"))
    monkeypatch.setattr(board_notes, "MOST_SAID", 1)
    rows = seal_notes(replay(path).projections, "cup")[1]
    assert ADA in rows
    assert rows.endswith("; and 1 more")
    monkeypatch.setattr(board_notes, "MOST_SEALED", 0)
    assert every_seal_note(replay(path).projections)[0].endswith("changed since: cup")


def test_a_question_answered_after_the_seal_is_not_counted(tmp_path: Path) -> None:
    """The list of questions has the answer of now, and says that the board does not count it."""
    story = won(chances=CHANCES)
    sealed = [*story[:-1], opened("wind"), entry(question="wind"), story[-1], resolution("wind")]
    written(tmp_path / "log.db", sealed)
    assert run("report", str(tmp_path / "log.db"), str(tmp_path / "page.html")).exit_code == FINE
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<bdi>not answered yet</bdi>" in page


def test_forecasts_that_were_restated_after_the_seal_are_said(tmp_path: Path) -> None:
    """With 0.2 for ada's 0.8 the median is 0.3 and the takes are 2/3 and 4/3, so that ada has a third of the pool.

    The answer stands; another restatement of the same forecast is said, too.
    """
    restated = restatement(forecast(at=OPENS, probability="0.2"))
    log = recorded(tmp_path / "log.db", restated, restated)
    forecasts, rows, _ = seal_notes(replay(log).projections, "cup")
    assert forecasts.endswith("with forecasts that were restated since: ada on rain (#8); ada on rain (#10)")
    assert rows.startswith("with the forecasts of now, if cup were not sealed: ")
    ada, bob = rows.partition(": ")[2].split("; ")
    assert ada.startswith("ada: rank 2 for 1, prize 3.33 for 6.67")
    assert bob.startswith("bob: rank 1 for 2, prize 6.67 for 3.33")
    explained = run("explain", log, "score", "cup", "rain", "ada")
    assert "forecasts were restated after cup was sealed: ada on rain (#8)" in explained.stdout
    paper = audit(log, tmp_path / "paper.md").paper
    assert "1 sealed board rests on forecasts that changed since." in paper.verdict


def test_an_answer_and_forecasts_that_changed_are_said_together(tmp_path: Path) -> None:
    """In one sentence, the answer first."""
    restated = restatement(forecast(at=OPENS, probability="0.2"))
    log = recorded(tmp_path / "log.db", restated, revocation(), resolution(outcome="no"))
    both, rows, _ = seal_notes(replay(log).projections, "cup")
    assert "an answer that changed since: rain: yes (#6), revoked by #10, now no (#11), and with forecasts" in both
    assert rows.startswith("with the answers and forecasts of now, if cup were not sealed: ")
