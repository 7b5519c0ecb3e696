"""People who have another name in the next copy of a source."""

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from forecast_ledger.ledger.model.commands import RenameParticipant
from forecast_ledger.ledger.model.events import ForecastsRetracted, ParticipantEnrolled, ParticipantRenamed
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.new_names import OTHERS_NAME
from tests.replay.importing.test_hub_outputs import LEVELS, hub, quantiles
from tests.support.paths import DATA
from tests.support.sources import edit, import_into, table, ticking, told

HALVES = {"7": "0.8", "8": "0.5", "9": "0.2"}  # yes, of a question of a cup


def download(folder: Path, *people: str) -> Path:
    """A download of one question with a forecast of each person, given as `7 ada`."""
    folder.mkdir()
    (folder / "question_data.csv").write_text(
        "Question ID,Question Title,Question Type,Default Project,Open Time,Scheduled Close Time,Resolution,"
        "Resolution Known Time\n1,Rain,binary,cup,2026-03-01,2026-03-11,yes,2026-03-11\n"
    )
    header = "Question ID,Forecaster ID,Forecaster Username,Is Bot,Start Time,End Time,Probability Yes"
    lines = [f"{header},Probability Yes Per Category,Continuous CDF"]
    for person, name in (each.split(" ") for each in people):
        lines.append(f"1,{person},{name},{person == '8'},2026-03-01,,{HALVES[person]},,")
    (folder / "forecast_data.csv").write_text("\n".join(lines) + "\n")
    return folder


def said(ledger: Ledger) -> dict[str, str]:
    """Who forecasts what."""
    rows = table(ledger, "forecasts", "participant", "outcome", "probability", "ended_by")
    return {who: chance for who, outcome, chance, ended in rows if outcome == "yes" and ended != "retracted"}


@pytest.mark.parametrize(
    ("copies", "renames", "people"),
    [
        ([("7 ada", "8 bo"), ("7 ada", "8 bonnie")], ["bo bonnie"], {"ada": "0.8", "bonnie": "0.5"}),
        ([("8 bo",), ("8 bonnie",), ("8 bo",)], ["bo bonnie", "bonnie bo"], {"bo": "0.5"}),
        ([("8 bo",), ("8 bonnie",), ("8 bea",)], ["bo bonnie", "bonnie bea"], {"bea": "0.5"}),
        ([("7 ada", "8 bo"), ("7 bo", "8 ada")], ["ada bo-7", "bo ada-8"], {"bo 7": "0.8", "ada 8": "0.5"}),
        ([("8 bo",), ("8 bonnie",), ("8 bonnie", "9 bo")], ["bo bonnie"], {"bonnie": "0.5", "bo 9": "0.2"}),
        ([("7 ada", "8 bo"), ("7 ada", "8 bo", "9 ada")], [], {"ada": "0.2", "bo": "0.5"}),
    ],
)
def test_a_person_with_an_id_of_the_source_is_one_participant(
    copies: list[tuple[str, ...]], renames: list[str], people: dict[str, str], tmp_path: Path
) -> None:
    """No forecast is taken back; a name that somebody else had is told apart by the id of the source.

    In the last case, two people have one name in one copy, and are one participant, as they would be in a new ledger:
    of two forecasts of one instant, the later one counts.
    """
    with ticking() as ledger:
        for number, names in enumerate(copies):
            folder = download(tmp_path / str(number), *names)
            assert import_into(ledger, "metaculus", folder).refused == []
            again = import_into(ledger, "metaculus", folder)
            assert again.counts["accepted"] == 0
        assert said(ledger) == people
        assert (OTHERS_NAME in again.left_out) == any(" " in who for who in people)
        found = [event for event in told(ledger) if isinstance(event, ParticipantRenamed)]
        assert [f"{event.participant} {event.to.replace(' ', '-')}" for event in found] == renames
        assert all(event.restated for event in told(ledger) if isinstance(event, ForecastsRetracted))
        assert sum(isinstance(event, ParticipantEnrolled) for event in told(ledger)) == 1, "the bot is one bot"


def test_a_rename_by_hand_is_not_undone_by_any_copy_before_the_source_has_another_name(tmp_path: Path) -> None:
    """The source still has bo, then has bonnie, which was never said, and then returns to bo."""
    with ticking() as ledger:
        for number, (name, present) in enumerate([("bo", "bo"), ("bo", "b"), ("bonnie", "bonnie"), ("bo", "bo")]):
            if number == 1:
                ledger.handle(RenameParticipant(id="by hand", participant="bo", to="b", reason="as asked"))
            import_into(ledger, "metaculus", download(tmp_path / str(number), f"8 {name}"))
            assert [*said(ledger)] == [present]


@pytest.mark.parametrize("is_late", [False, True])
def test_where_the_source_has_no_ids_a_rename_by_hand_stays(tmp_path: Path, *, is_late: bool) -> None:
    """A model of a hub has its name alone. The rename comes before or after the import of the newer copy."""
    levels, rows = LEVELS % ("[0.1, 0.5, 0.9]", "null"), quantiles("0.1 0.5 0.9", "10 20 30")
    older, newer = (hub(tmp_path / name, levels, {name: rows}) for name in ("x-old", "x-new"))
    with ticking() as ledger:
        for path in (older, newer)[: 1 + is_late]:
            import_into(ledger, "hubverse", path)
        ledger.handle(RenameParticipant(id="by hand", participant="x-old", to="x-new", reason="one model"))
        for path in (newer, older, newer):
            assert import_into(ledger, "hubverse", path).counts["accepted"] == 0
        assert {who for (who,) in table(ledger, "scores", "participant")} == {"x-new"}


def test_an_account_with_another_name_goes_on_as_one(tmp_path: Path) -> None:
    """A user of Manifold sells under the new name what was bought under the old one; published profits still agree.

    ada has -9.75, as the README of the sample works out.
    """
    older, newer = (Path(shutil.copytree(DATA / "manifold-trades", tmp_path / name)) for name in ("older", "newer"))
    edit(newer / "users.json", lambda text: text.replace('"ada"', '"countess"'))
    with ticking() as ledger:
        before = import_into(ledger, "manifold", older, trades=True)
        found = import_into(ledger, "manifold", newer, trades=True)
        assert (found.counts["accepted"], found.changes) == (1, {"a participant renamed": 1})
        assert [line for line in found.compared if "countess" in line] == []
        assert found.compared[-1:] == before.compared[-1:]
        board = table(ledger, "arena_leaderboard", "participant", "profit")
        assert [Fraction(profit) for who, profit in board if who == "countess"] == [Fraction("-9.75")]
        assert "ada" not in {who for who, _ in board}
        assert import_into(ledger, "manifold", newer, trades=True).counts["accepted"] == 0
