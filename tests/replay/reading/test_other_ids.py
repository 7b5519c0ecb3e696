"""Wherever a number of a participant who was renamed is printed, both ids are said; a sealed board keeps the old."""

from pathlib import Path

import pytest

from forecast_ledger import audit, replay
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import PrizePaid
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.replay.reading.board_notes import (
    changed_since,
    ids_of,
    left_out,
    renames_of,
    says_ids,
    says_present_id,
    seal_notes,
    with_ids_of_now,
)
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.replay.cli.test_main import run
from tests.support import oracle
from tests.support.given import (
    NOW,
    bet,
    contest,
    day,
    decision,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    opened,
    payment,
    renaming,
    resolution,
    trading_floor,
    won,
)
from tests.support.logs import written

CHANCES = {"ada": "0.8", "bob": "0.4"}  # ada has two thirds of the pool of 10


# Log positions: ada 3, bo 4, ada is al 5, al is bo 6, the answer 7, bo is cy 8.
STORY: list[AnyCommand] = [
    opened(),
    contest(),
    forecast(at=day(11)),
    forecast(participant="bo", at=day(12), probability="0.4"),
    renaming(to="al"),
    renaming("al", "bo"),
    resolution(),
    renaming("bo", "cy"),
]


def told() -> Facts:
    """The facts of the story."""
    return oracle.facts_in(oracle.history(*STORY))


def test_the_ids_of_a_participant_are_those_up_to_a_log_position() -> None:
    """In the order of the renames; a former id has those that it had itself."""
    facts = told()
    assert [rename.position for rename in renames_of(facts, "cy", 8)] == [5, 6, 8]
    assert ids_of(facts, "cy", 8) == {"cy", "bo", "al", "ada"}
    assert ids_of(facts, "cy", 7) == {"cy"}
    assert ids_of(facts, "bo", 7) == {"bo", "al", "ada"}
    assert ids_of(facts, "zoe", 8) == {"zoe"}
    assert says_ids(facts, "bo", 6) == [
        "since log position 5, what is recorded of ada counts as of al",
        "since log position 6, what is recorded of al counts as of bo",
    ]


def test_who_has_another_id_is_told_the_last_and_since_when() -> None:
    """Of several renames, the last."""
    facts = told()
    assert says_present_id(facts, "ada", 8) == "ada is cy since log position 8"
    assert says_present_id(facts, "ada", 5) == "ada is al since log position 5"
    assert says_present_id(facts, "cy", 8) == says_present_id(facts, "zoe", 8) == ""
    back = oracle.facts_in(oracle.history(*STORY, renaming("cy", "ada")))
    assert says_present_id(back, "ada", 9) == ""
    assert says_present_id(back, "bo", 9) == "bo is ada since log position 9"


def test_explanations_say_under_which_ids_forecasts_are_recorded(tmp_path: Path) -> None:
    """Both forecasts are parts of the score; the events are those of all ids, and the renames."""
    cup = [entry(), *STORY[2:]]
    log = written(tmp_path / "log.db", [*STORY[:2], *cup])
    explained = run("explain", log, "score", "cup", "rain", "cy")
    assert "since log position 6, what is recorded of ada counts as of al" in explained.stdout
    assert "since log position 9, what is recorded of bo counts as of cy" in explained.stdout
    for event in ("ada on rain: yes 0.7", "bo on rain: yes 0.4", "ada is al from here on: one person"):
        assert event in explained.stdout
    for number in ("take", "prize", "rank"):
        assert "what is recorded of bo counts as of cy" in run("explain", log, number, "cup", "cy").stdout
        assert "ada is cy since log position 9" in run("explain", log, number, "cup", "ada").stderr
    assert "ada is cy since log position 9" in run("explain", log, "score", "cup", "rain", "ada").stderr


def test_the_log_shows_both_ids(tmp_path: Path) -> None:
    """Whichever of them is asked for."""
    log = written(tmp_path / "log.db", [*STORY])
    for who in ("ada", "al"):
        assert "ada is al from here on: one person" in run("log", log, "--participant", who).stdout
    assert "bo is cy from here on: one person" in run("log", log, "--type", "participant_renamed").stdout


def test_nobody_is_missing_from_a_board_because_of_a_former_id(tmp_path: Path) -> None:
    """The last id is there with what was recorded of three others."""
    log = written(tmp_path / "log.db", [*STORY[:2], entry(), *STORY[2:]])
    assert left_out(replay(log).projections, "cup") == []


def test_a_paper_compares_the_ids_that_participants_have(tmp_path: Path) -> None:
    """Two that look alike are listed; a former id of one of them is not."""
    said = [*STORY[:2], entry(), forecast(participant="c1"), forecast(participant="cl")]
    alike = written(tmp_path / "alike.db", [*said])
    apart = written(tmp_path / "apart.db", [*said, renaming("c1", "dan")])
    told = [audit(log, f"{log}.md").paper for log in (alike, apart)]
    assert ["c1, cl" in str(paper) for paper in told] == [True, False]


def test_a_diff_names_the_rename_as_the_cause(tmp_path: Path) -> None:
    """The row under the old id is gone, and that under the new one is new."""
    log = written(tmp_path / "log.db", [*STORY[:2], entry(), *STORY[2:]])
    shown = run("diff", log, "@8", "@9", "--table", "leaderboard")
    assert "participant_renamed" in shown.stdout
    rows = {tuple(line.split()[1:3]) for line in shown.stdout.splitlines() if line.startswith("cup")}
    assert rows == {("bo", "gone"), ("cy", "new")}


def test_an_explanation_from_a_read_model_knows_the_renames(tmp_path: Path) -> None:
    """Its index has the rows of a question and a contest; a rename is about neither."""
    log = written(tmp_path / "log.db", [*STORY[:2], entry(), *STORY[2:]])
    model = str(tmp_path / "model.db")
    assert run("follow", log, model, "--once").exit_code == 0
    whole = run("explain", log, "score", "cup", "rain", "cy")
    assert whole.exit_code == 0
    indexed = run("explain", log, "score", "cup", "rain", "cy", "--model", model)
    assert indexed.stdout == whole.stdout


def test_a_board_that_was_sealed_with_other_ids_says_so(tmp_path: Path) -> None:
    """Of participants of the contest alone; what it would be now is said, too."""
    others: list[AnyCommand] = [opened("wind"), forecast("wind", "eve"), renaming("eve", "eva")]
    log = written(tmp_path / "log.db", [*won(chances=CHANCES), *others])
    assert seal_notes(replay(log).projections, "cup") == []
    log = written(tmp_path / "other.db", [*won(chances=CHANCES), *others, renaming(to="al"), renaming("al", "bob")])
    ids, rows, remedy = seal_notes(replay(log).projections, "cup")
    assert ids.endswith("with ids of participants that changed since: ada is al (#11); al is bob (#12)")
    assert rows.startswith("with the ids of now, if cup were not sealed: ada: not on the board; bob: ")
    assert "prize 10.00 for 3.33" in rows
    assert "forecast-ledger what-if LOG --unsealed --contest cup" in remedy
    explained = run("explain", log, "score", "cup", "rain", "ada")
    assert "ids of participants changed after cup was sealed: ada is al (#11), al is bob (#12)" in explained.stdout
    assert "with the ids of now, if cup were not sealed: there would be no score" in explained.stdout
    assert "1 sealed board rests on ids that changed since." in audit(log, tmp_path / "paper.md").paper.verdict


def test_enrolments_of_a_sealed_contest_are_of_the_ids_of_now_only_if_it_is_unsealed() -> None:
    """So that what it would be now has the bots and exclusions of now."""
    said: list[AnyCommand] = [contest(), enrolment(bot=True), exclusion(), finalization(), renaming(to="al")]
    facts = oracle.facts_in(oracle.history(*said))
    sealed = facts.contests["cup"]
    assert [*sealed.enrolments, *sealed.levels] == ["ada", "ada"]
    now = with_ids_of_now(facts, sealed)
    assert [*now.enrolments, *now.levels] == ["al", "al"]
    assert changed_since(facts, sealed).renamed == ["ada is al (#5)"]


def test_a_prize_is_paid_to_the_id_that_the_board_has_and_once(tmp_path: Path) -> None:
    """Under the id of the seal, whatever it is since; under the last one, if it was renamed before the seal."""
    story = won(chances=CHANCES)
    seal = next(place for place, command in enumerate(story) if command == finalization())
    for name, said, winner in (
        ("after", [*story[: seal + 1], renaming(to="al")], "ada"),
        ("before", [*story[:seal], renaming(to="al"), finalization()], "al"),
        ("between", [*story[:seal], renaming(to="al"), finalization(), renaming("al", "an")], "al"),
    ):
        log = written(tmp_path / name, [*said])
        with Ledger.open(log, clock=lambda: NOW, prizes=prizes_from_log) as ledger:
            receipt = ledger.handle(payment(), "pay")
            paid = [each.event for page in ledger.read(receipt.first - 1) for each in page]
            assert {each.participant: each.amount for each in paid if isinstance(each, PrizePaid)} == {
                winner: 6_670_000,
                "bob": 3_330_000,
            }
            ledger.handle(renaming("bob", "rob"), "later")
            with pytest.raises(Refused, match="prizes_paid"):
                ledger.handle(payment(), "again")
        assert run("verify", log).exit_code == 0


def test_the_balance_of_an_account_is_explained_under_the_new_id(tmp_path: Path) -> None:
    """With the movements and the enrolment of the former one, and the event that moved them."""
    said: list[AnyCommand] = [
        *trading_floor("ada", "cy"),
        decision(bet()),
        renaming(to="al"),
        renaming("al", "bo"),
        resolution(at=day(8)),
    ]
    log = written(tmp_path / "log.db", said)
    explained = run("explain", log, "balance", "week", "bo")
    assert "10750.00" in explained.stdout
    moves = ("ada in week: 10000.00", "ada in week, position 1", "bo in week, position 1")
    for event in (*moves, "ada is al from here on"):
        assert event in explained.stdout, explained.stdout
    assert "cy in week" not in explained.stdout
    assert "week" in run("explain", log, "rank", "week", "bo").stdout
    old = run("explain", log, "balance", "week", "ada")
    assert (old.exit_code, "ada is bo since log position" in old.stderr) == (2, True)


def test_a_blame_finds_the_rename_in_rows_that_else_never_change(tmp_path: Path) -> None:
    """The row of a movement is under the new id since the rename."""
    log = written(tmp_path / "log.db", [*trading_floor("ada"), decision(bet()), renaming()])
    shown = run("blame", log, "cash", "week", "bo", "11")
    assert shown.stdout.count("participant_renamed") == shown.stdout.count("\n") - 1, shown.stdout
