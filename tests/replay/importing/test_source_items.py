"""A newer copy of a source with other times of a question that is not resolved: it is rescheduled."""

import shutil
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import RescheduleQuestion, RevokeResolution
from forecast_ledger.ledger.model.events import QuestionClosed, QuestionRescheduled
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.source_items import SETTLED
from tests.replay.importing.test_metaculus import DOWNLOAD, FORECASTS, QUESTIONS, events, replacing, rewrite
from tests.support.sources import edit, import_into, table, ticking

CLOSE, LATER = "2026-03-11 12:00:00+00:00", "2026-04-11 12:00:00+00:00"
OPEN = {"Resolution": "", "Resolution_Known_Time": "", "Actual_Close_Time": ""}
KNOWN = "2026-03-12 09:30:00.250000+00:00"  # when its answer was
NEW = "501,7,ada,False,2026-03-20 12:00:00+00:00,,,0.95,,,,,,,,,,\n"  # after the first close


def copy(folder: Path, **cells: str) -> Path:
    """A copy of the download in which question 501 has no answer yet, and these cells."""
    there = Path(shutil.copytree(DOWNLOAD, folder))
    (there / "README.md").unlink()
    rewrite(there / QUESTIONS, replacing("501", **(OPEN | cells)))
    return there


def counts(ledger: Ledger, path: Path) -> tuple[int, int]:
    """How many commands of a copy were accepted, and how many refused."""
    found = import_into(ledger, "metaculus", path)
    return found.counts["accepted"], found.counts["refused"]


def times(ledger: Ledger) -> tuple[str, ...]:
    """Opening, scheduled and actual close of question 501."""
    [row] = [
        row[1:]
        for row in table(ledger, "questions", "question", "opens_at", "closes_at", "closed_at")
        if row[0] == "501"
    ]
    return row


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """The download while question 501 is open, to 11 March."""
    return copy(tmp_path / "older")


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A newer one, by which it is open to 11 April, with a forecast of 20 March."""
    path = copy(tmp_path / "newer", Scheduled_Close_Time=LATER)
    edit(path / FORECASTS, lambda text: text + NEW)
    return path


def test_a_close_that_is_put_off_reschedules_the_question(older: Path, newer: Path) -> None:
    """Then a forecast after the first close is accepted; another import adds nothing."""
    with ticking() as ledger:
        assert counts(ledger, older)[1] == 0
        assert counts(ledger, newer) == (2, 0)
        assert times(ledger) == ("2026-03-01T12:00:00Z", "2026-04-11T12:00:00Z", "2026-04-11T12:00:00Z")
        [moved] = [event for event in events(ledger) if isinstance(event, QuestionRescheduled)]
        assert (moved.question, format_instant(moved.at)) == ("501", "2026-03-01T12:00:00Z")
        assert counts(ledger, newer) == (0, 0)


def test_the_copy_that_is_imported_last_counts(older: Path, newer: Path) -> None:
    """The older copy sets the close back, and the newer one puts it off again; forecasts are recorded once.

    The older copy is the download's 47 commands without the answer.
    """
    with ticking() as ledger:
        for path, accepted, closes in ((older, 46, 3), (newer, 2, 4), (older, 1, 3), (older, 0, 3), (newer, 1, 4)):
            assert counts(ledger, path) == (accepted, 0)
            assert times(ledger)[1] == f"2026-{closes:02}-11T12:00:00Z"


def test_times_that_were_changed_by_hand_stay_until_the_source_changes(older: Path, newer: Path) -> None:
    """The source is compared with what it said before, not with the times in force."""
    by_hand = RescheduleQuestion(
        id="by hand", at="2026-03-10T00:00:00Z", question="501", closes_at="2026-03-30T00:00:00Z"
    )
    with ticking() as ledger:
        counts(ledger, older)
        ledger.handle(by_hand)
        assert counts(ledger, older) == (0, 0)
        assert times(ledger)[1] == "2026-03-30T00:00:00Z"
        assert counts(ledger, newer) == (2, 0)
        assert times(ledger)[1] == "2026-04-11T12:00:00Z"


def test_an_early_close_that_the_source_keeps_is_kept(tmp_path: Path) -> None:
    """A new close ends it, so it is closed again at that instant; a copy without it leaves the question open."""
    early, closed = "2026-03-09 12:00:00+00:00", "2026-03-09T12:00:00Z"
    older = copy(tmp_path / "older", Actual_Close_Time=early)
    newer = copy(tmp_path / "newer", Actual_Close_Time=early, Scheduled_Close_Time=LATER)
    newest = copy(tmp_path / "newest", Scheduled_Close_Time="2026-04-12 12:00:00+00:00")
    with ticking() as ledger:
        assert counts(ledger, older)[1] == 0
        assert (counts(ledger, newer), times(ledger)[2]) == ((2, 0), closed)
        assert (counts(ledger, newer), times(ledger)[2]) == ((0, 0), closed)
        assert (counts(ledger, newest), times(ledger)[2]) == ((1, 0), "2026-04-12T12:00:00Z")
        assert len([event for event in events(ledger) if isinstance(event, QuestionClosed)]) == 2


def test_another_opening_and_reveal_are_taken_over(older: Path, tmp_path: Path) -> None:
    """The contest has the question already, whatever its opening is now."""
    other = {"Open_Time": "2026-03-01 06:00:00+00:00", "CP_Reveal_Time": "2026-03-04 12:00:00+00:00"}
    newer = copy(tmp_path / "newer", **other)
    with ticking() as ledger:
        counts(ledger, older)
        assert counts(ledger, newer) == (1, 0)
        [moved] = [event for event in events(ledger) if isinstance(event, QuestionRescheduled)]
        assert times(ledger)[0] == "2026-03-01T06:00:00Z"
        assert moved.reveals_at is not None
        assert format_instant(moved.reveals_at) == "2026-03-04T12:00:00Z"


@pytest.mark.parametrize(("closed", "left_out"), [(KNOWN, 1), ("2026-03-10 12:00:00+00:00", 2)])
def test_a_question_that_is_answered_is_not_rescheduled(tmp_path: Path, closed: str, left_out: int) -> None:
    """Its answer would have to be revoked first; the line says so. Nothing is refused, also if it is imported daily."""
    newer = Path(shutil.copytree(DOWNLOAD, tmp_path / "newer"))
    rewrite(newer / QUESTIONS, replacing("501", Scheduled_Close_Time=LATER, Actual_Close_Time=closed))
    with ticking() as ledger:
        assert import_into(ledger, "metaculus", DOWNLOAD).counts["refused"] == 0
        for _ in range(2):
            found = import_into(ledger, "metaculus", newer)
            assert (found.counts["accepted"], found.counts["refused"]) == (0, 0)
            assert found.left_out[SETTLED] == left_out
        ledger.handle(RevokeResolution(id="by hand", at="2026-05-01T00:00:00Z", question="501", reason="other times"))
        assert import_into(ledger, "metaculus", newer).counts["accepted"] >= 1
        assert times(ledger)[1] == "2026-04-11T12:00:00Z"


def test_what_changes_beside_the_times_is_refused_as_before(older: Path, tmp_path: Path) -> None:
    """Another title under the same id is another question."""
    newer = copy(tmp_path / "newer", Question_Title="Will it snow?", Scheduled_Close_Time=LATER)
    with ticking() as ledger:
        counts(ledger, older)
        found = import_into(ledger, "metaculus", newer)
        assert [line.split(": ")[1].split()[0] for line in found.refused] == ["command_id_reused"]
