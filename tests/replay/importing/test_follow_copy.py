"""A newer copy of a source: other times, other answers, and forecasts that are gone, corrected or back again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.values import format_instant, read_instant
from forecast_ledger.ledger.model.commands import (
    AmendQuestion,
    CloseQuestion,
    EnrolParticipant,
    FinalizeContest,
    OpenContest,
    OpenQuestion,
    RenameParticipant,
    RescheduleQuestion,
    ResolveQuestion,
    RestatedForecast,
    RestateForecasts,
    RevokeResolution,
)
from forecast_ledger.ledger.model.events import (
    ForecastWithdrawn,
    ParticipantEnrolled,
    QuestionAdded,
    QuestionClosed,
    QuestionRescheduled,
    ResolutionRevoked,
)
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.replay.importing import metaculus_questions
from forecast_ledger.replay.importing.follow_copy import (
    ANSWER_MISSED,
    ANSWER_UNREAD,
    BY_HAND_TIMES,
    OTHER_CONTEST,
    SEALED,
    SEALED_QUESTION,
)
from forecast_ledger.replay.importing.metaculus import NO_WEIGHTS
from forecast_ledger.replay.importing.new_names import SEALED_BOT
from forecast_ledger.replay.importing.question_forecasts import BEFORE_CHANGE, BY_HAND, MERGED, MISSED, UNREAD
from forecast_ledger.replay.importing.record_copy import REPLACED, REVOKED
from tests.replay.importing.test_metaculus import CHANGED, DOWNLOAD, FORECASTS, QUESTIONS, replacing, rewrite
from tests.support.paths import DATA
from tests.support.sources import edit, import_into, scores, table, ticking, told

RESTATED, RETRACTED = (f"the forecasts of a participant on a question {what}" for what in ("restated", "retracted"))
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
        [moved] = [event for event in told(ledger) if isinstance(event, QuestionRescheduled)]
        assert (moved.question, format_instant(moved.at)) == ("501", "2026-03-01T12:00:00Z")
        assert counts(ledger, newer) == (0, 0)


def test_the_copy_that_is_imported_last_counts(older: Path, newer: Path) -> None:
    """The older copy sets the close back and does not have the last forecast, the newer one has both again.

    The older copy is the download's 47 commands without the answer.
    """
    with ticking() as ledger:
        for path, accepted, closes in ((older, 46, 3), (newer, 2, 4), (older, 2, 3), (older, 0, 3), (newer, 2, 4)):
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
        assert len([event for event in told(ledger) if isinstance(event, QuestionClosed)]) == 2


def test_an_early_close_that_was_ended_by_hand_stays_ended_until_the_source_changes(tmp_path: Path) -> None:
    """The source is compared with the early close that it had before, not with the one in force."""
    early = copy(tmp_path / "early", Actual_Close_Time="2026-03-09 12:00:00+00:00")
    earlier = copy(tmp_path / "earlier", Actual_Close_Time="2026-03-08 12:00:00+00:00")
    by_hand = RescheduleQuestion(
        id="by hand", at="2026-03-10T00:00:00Z", question="501", closes_at="2026-03-30T00:00:00Z"
    )
    with ticking() as ledger:
        counts(ledger, early)
        ledger.handle(by_hand)
        assert (counts(ledger, early), times(ledger)[2]) == ((0, 0), "2026-03-30T00:00:00Z")
        assert (counts(ledger, earlier), times(ledger)[2]) == ((1, 0), "2026-03-08T12:00:00Z")


def test_a_question_that_was_closed_by_hand_stays_so_until_the_source_closes_it(older: Path, tmp_path: Path) -> None:
    """Forecasts that were recorded before are known, also those after that close; a new one there is refused."""
    closed = copy(tmp_path / "closed", Actual_Close_Time="2026-03-09 12:00:00+00:00")
    newer = Path(shutil.copytree(older, tmp_path / "newer"))
    edit(newer / FORECASTS, lambda text: text + NEW.replace("03-20", "03-10"))
    with ticking() as ledger:
        counts(ledger, older)
        ledger.handle(CloseQuestion(id="by hand", at="2026-03-04T00:00:00Z", question="501"))
        assert (counts(ledger, older), times(ledger)[2]) == ((0, 0), "2026-03-04T00:00:00Z")
        assert counts(ledger, newer) == (0, 1)
        assert (counts(ledger, closed), times(ledger)[2]) == ((2, 0), "2026-03-09T12:00:00Z")


def test_another_opening_and_reveal_are_taken_over(older: Path, tmp_path: Path) -> None:
    """The contest has the question already, whatever its opening is now."""
    other = {"Open_Time": "2026-03-01 06:00:00+00:00", "CP_Reveal_Time": "2026-03-04 12:00:00+00:00"}
    newer = copy(tmp_path / "newer", **other)
    with ticking() as ledger:
        counts(ledger, older)
        assert counts(ledger, newer) == (1, 0)
        [moved] = [event for event in told(ledger) if isinstance(event, QuestionRescheduled)]
        assert times(ledger)[0] == "2026-03-01T06:00:00Z"
        assert moved.reveals_at is not None
        assert format_instant(moved.reveals_at) == "2026-03-04T12:00:00Z"


@pytest.mark.parametrize("closed", [KNOWN, "2026-03-10 12:00:00+00:00"])
def test_an_answered_question_with_other_times_is_answered_again(tmp_path: Path, closed: str) -> None:
    """Its answer is revoked first, so that its scores are those of the new times; a second import adds nothing."""
    newer = Path(shutil.copytree(DOWNLOAD, tmp_path / "newer"))
    rewrite(newer / QUESTIONS, replacing("501", Scheduled_Close_Time=LATER, Actual_Close_Time=closed))
    with ticking() as ledger, ticking() as alone:
        import_into(ledger, "metaculus", DOWNLOAD)
        import_into(ledger, "metaculus", newer)
        import_into(alone, "metaculus", newer)
        assert times(ledger) == times(alone)
        assert scores(ledger) == scores(alone)
        assert counts(ledger, newer) == (0, 0)


def test_an_answer_by_hand_stays_until_the_source_has_another(tmp_path: Path) -> None:
    """Then the times of its question stay, too, and the line says so; a new answer of the source replaces it."""
    moved, corrected = (Path(shutil.copytree(DOWNLOAD, tmp_path / name)) for name in ("moved", "corrected"))
    rewrite(moved / QUESTIONS, replacing("501", Scheduled_Close_Time=LATER))
    rewrite(corrected / QUESTIONS, replacing("501", Resolution="annulled"))
    with ticking() as ledger:
        import_into(ledger, "metaculus", DOWNLOAD)
        ledger.handle(RevokeResolution(id="h1", at="2026-05-01T00:00:00Z", question="501", reason="misread"))
        assert counts(ledger, DOWNLOAD) == (0, 0)
        ledger.handle(ResolveQuestion(id="h2", at="2026-05-01T00:00:00Z", question="501", outcome="no"))
        found = import_into(ledger, "metaculus", moved)
        assert (found.counts["accepted"], found.left_out[BY_HAND_TIMES]) == (0, 1)
        assert counts(ledger, corrected) == (2, 0)
        assert counts(ledger, corrected) == (0, 0)


def standing(ledger: Ledger, question: str = "501") -> list[tuple[str, ...]]:
    """Who stands on a question, and until when."""
    rows = table(ledger, "forecasts", "question", "participant", "outcome", "probability", "ended_by")
    return [row[1:4] for row in rows if row[0] == question and row[2] == "yes" and row[4] == "None"]


def without(*names: str) -> Callable[[dict[str, str]], dict[str, str] | None]:
    """The rows of a download but for the forecasts of some people on question 501."""
    return lambda row: None if row["Question ID"] == "501" and row["Forecaster Username"] in names else row


def test_a_forecast_that_is_gone_while_its_question_is_open_is_withdrawn_from_then_on(
    older: Path, tmp_path: Path
) -> None:
    """The ledger stamps when; it is withdrawn once, and stands again from its start if it is back."""
    newer = Path(shutil.copytree(older, tmp_path / "newer"))
    rewrite(newer / FORECASTS, without("ada"))
    day_8 = "2026-03-08T00:00:00Z"
    ada = ("ada", "yes", "0.8")
    with Ledger.open(":memory:", clock=lambda: read_instant(day_8)) as ledger:
        import_into(ledger, "metaculus", older, now=day_8)
        assert ada in standing(ledger)
        assert import_into(ledger, "metaculus", newer, now=day_8).counts["accepted"] == 1
        assert ada not in standing(ledger)
        [withdrawn] = [each for each in told(ledger) if getattr(each, "participant", "") == "ada"][-1:]
        assert isinstance(withdrawn, ForecastWithdrawn)
        assert format_instant(withdrawn.at) == day_8
        for now in ("2026-03-09T00:00:00Z", "2026-04-09T00:00:00Z"):
            assert import_into(ledger, "metaculus", newer, now=now).counts["accepted"] == 0
        assert import_into(ledger, "metaculus", older, now=day_8).counts["accepted"] == 1
        assert ada in standing(ledger)


def test_a_forecast_that_is_gone_after_the_close_was_never_made(older: Path, tmp_path: Path) -> None:
    """It has no score, as if only the newer copy had been imported; `keep_missing` keeps it and says so."""
    newest = Path(shutil.copytree(DOWNLOAD, tmp_path / "newest"))
    rewrite(newest / FORECASTS, without("ada", "cy-bot"))
    with ticking() as ledger, ticking() as kept, ticking() as alone:
        for each in (ledger, kept):
            import_into(each, "metaculus", older)
        import_into(ledger, "metaculus", newest)
        import_into(alone, "metaculus", newest)
        assert scores(ledger) == scores(alone)
        assert import_into(kept, "metaculus", newest, keep_missing=True).left_out[MISSED] == 2
        assert {row[2] for row in scores(kept) if row[1] == "501"} == {"ada", "bo", "cy-bot"}


def test_an_answer_that_is_gone_is_revoked(older: Path) -> None:
    """The question is open again; `keep_missing` keeps the answer and says so; one that is back counts again."""
    with ticking() as ledger:
        import_into(ledger, "metaculus", DOWNLOAD)
        expected = scores(ledger)
        kept = import_into(ledger, "metaculus", older, keep_missing=True)
        assert (kept.counts["accepted"], kept.left_out[ANSWER_MISSED]) == (0, 1)
        assert counts(ledger, older) == (1, 0)
        assert not [row for row in scores(ledger) if row[1] == "501"]
        assert counts(ledger, DOWNLOAD) == (1, 0)
        assert scores(ledger) == expected


@pytest.mark.parametrize(
    ("kind", "file", "stays"),
    [
        ("metaculus", "forecast_data.csv", UNREAD),
        ("hub", "model-output/team1-a/2026-03-07-team1-a.csv", UNREAD),
        ("hub", "target-data/oracle-output.csv", ANSWER_UNREAD),
        ("forecastbench", "forecast_sets/2026-03-01/2026-03-01.Acme.1.json", UNREAD),
        (
            "forecastbench",
            "resolution_sets/2026-03-01_resolution_set.json",
            "",
        ),  # a copy without answers says none is gone
    ],
    ids=["forecasts", "a model", "truth", "a forecast set", "a resolution set"],
)
def test_a_file_that_cannot_be_read_whole_takes_nothing_back(kind: str, file: str, stays: str, tmp_path: Path) -> None:
    """What is behind the place of the damage may still be in the source, and nobody knows; a mended copy says it."""
    whole, damaged, reader = DATA / f"{kind}-import", tmp_path / "damaged", kind.replace("hub", "hubverse")
    path = shutil.copytree(whole, damaged) / file
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    cut = [*lines[:3], '"' + lines[3]] if file.endswith(".csv") else lines[: len(lines) // 2]
    path.write_text("".join(cut), encoding="utf-8")
    with ticking() as ledger:
        import_into(ledger, reader, whole)
        before = scores(ledger)
        assert before
        found = import_into(ledger, reader, damaged)
        assert (found.counts["accepted"], found.counts["refused"] > 0, {stays} - {""} <= {*found.left_out}) == (
            0,
            True,
            True,
        )
        assert scores(ledger) == before


@pytest.mark.parametrize(
    ("kind", "file", "change", "stay"),
    [
        ("hubverse", "hub-import/target-data/time-series.csv", (",US,25", ",US"), 4),
        (
            "forecastbench",
            "forecastbench-import/resolution_sets/2026-03-01_resolution_set.json",
            ("2026-03-08", "2026-03-32"),
            1,
        ),
    ],
)
def test_a_row_that_cannot_be_read_takes_no_answer_back(
    kind: str, file: str, change: tuple[str, str], stay: int, tmp_path: Path
) -> None:
    """Nor does the answer return to an older version, which can still be read: a mended copy says which is the last."""
    folder, _, name = file.partition("/")
    damaged = Path(shutil.copytree(DATA / folder, tmp_path / "damaged"))
    edit(damaged / name, lambda text: text.replace(*change))
    with ticking() as ledger:
        import_into(ledger, kind, DATA / folder)
        before = scores(ledger)
        found = import_into(ledger, kind, damaged)
        assert (found.counts["accepted"], found.changes, found.left_out.get(ANSWER_UNREAD)) == (0, {}, stay)
        assert scores(ledger) == before
        assert import_into(ledger, kind, DATA / folder).counts["accepted"] == 0


def test_a_page_of_bets_that_cannot_be_read_takes_no_bet_back(tmp_path: Path) -> None:
    """Bets are saved in pages; those of the other pages are known."""
    whole, damaged = DATA / "manifold-import", Path(shutil.copytree(DATA / "manifold-import", tmp_path / "damaged"))
    bets = json.loads((damaged / "bets.json").read_text(encoding="utf-8"))
    for number, page in enumerate((bets[::2], bets[1::2])):
        (damaged / f"bets-{number}.json").write_text(json.dumps(page)[: -number or None], encoding="utf-8")
    (damaged / "bets.json").unlink()
    with ticking() as ledger:
        assert import_into(ledger, "manifold", whole).changes == {}
        before = scores(ledger)
        found = import_into(ledger, "manifold", damaged)
        assert (found.counts["accepted"], found.counts["refused"], UNREAD in found.left_out) == (0, 1, True)
        assert scores(ledger) == before


def test_the_versions_of_an_answer_in_one_copy_take_nothing_back() -> None:
    """A hub that revises its target data has older answers in its first copy; no earlier copy is changed by it."""
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", DATA / "hub-import")
        assert any(type(event) is ResolutionRevoked for event in told(ledger))
        assert found.changes == {}


def test_forecasts_that_were_recorded_by_hand_stay(tmp_path: Path) -> None:
    """If the source has others, the line says so; those of bo, who withdrew, and of cy-bot are taken over."""
    corrected = Path(shutil.copytree(DOWNLOAD, tmp_path / "corrected"))
    rewrite(
        corrected / FORECASTS, lambda row: row | ({"Probability Yes": "0.3"} if row["Question ID"] == "501" else {})
    )
    by_hand = RestateForecasts(
        id="by hand",
        question="501",
        participant="ada",
        forecasts=(RestatedForecast(at="2026-03-02T00:00:00Z", probability="0.6"),),
        reason="the source is wrong",
    )
    with ticking() as ledger:
        import_into(ledger, "metaculus", DOWNLOAD)
        ledger.handle(by_hand)
        found = import_into(ledger, "metaculus", corrected)
        assert (found.counts["accepted"], found.left_out[BY_HAND]) == (2, 1)
        assert sorted(standing(ledger)) == [("ada", "yes", "0.6"), ("cy-bot", "yes", "0.3")]
        assert import_into(ledger, "metaculus", corrected).counts["accepted"] == 0


def test_a_new_title_weight_and_address_amend_the_question(older: Path, tmp_path: Path) -> None:
    """Once; what was amended by hand stays until the source changes it, and a finalized contest keeps its weight."""
    new = {"Question_Title": "Will it snow?", "Question_Weight": "0.5", "Question_URL": "https://example.org/snow"}
    newer = copy(tmp_path / "newer", **new, Scheduled_Close_Time=LATER)
    with ticking() as ledger:
        counts(ledger, older)
        assert counts(ledger, newer) == (3, 0)
        assert table(ledger, "questions", "question", "title", "url")[0][1:] == (
            "Will it snow?",
            "https://example.org/snow",
        )
        assert facts(ledger.read()).contests["A month of questions"].entries[0].weight == 500_000
        assert counts(ledger, newer) == (0, 0)
        ledger.handle(AmendQuestion(question="501", title="By hand"), "by hand")
        assert counts(ledger, newer) == (0, 0)
        ledger.handle(FinalizeContest(contest="A month of questions"), "seal")
        found = import_into(ledger, "metaculus", older)
        assert (found.counts["accepted"], found.left_out[SEALED], found.refused) == (2, 1, [])


def test_a_copy_without_a_column_of_weights_changes_none(older: Path) -> None:
    """Where it has another name, new questions have the weight 1, and that is said; not of an older download."""
    edit(older / QUESTIONS, lambda text: text.replace("False,1.0", "False,2.5", 1))
    with ticking() as ledger:
        import_into(ledger, "metaculus", older)
        edit(older / QUESTIONS, lambda text: text.replace("Question Weight", "Weight", 1))
        for said in (1, 0):
            if not said:
                rewrite(older / QUESTIONS, lambda row: {name: row[name] for name in row if name != "Weight"})
            for log, weight in ((ledger, 2_500_000), (ticking(), 1_000_000)):
                found = import_into(log, "metaculus", older)
                assert found.left_out.get(NO_WEIGHTS, 0) == said
                assert facts(log.read()).contests["A month of questions"].entries[0].weight == weight
                assert found.changes == {}


def test_first_forecasts_on_an_answered_question_are_no_change(tmp_path: Path) -> None:
    """An earlier copy has the questions and nothing of ada; her forecasts are new then, and other ones restate them."""
    before = Path(shutil.copytree(DOWNLOAD, tmp_path / "before"))
    rewrite(before / FORECASTS, lambda row: None if row["Forecaster Username"] == "ada" else row)
    with ticking() as ledger:
        import_into(ledger, "metaculus", before)
        found = import_into(ledger, "metaculus", DOWNLOAD)
        assert found.counts["accepted"] > 0
        assert found.changes == {}
        assert import_into(ledger, "metaculus", before).changes == {RETRACTED: 3}
        assert import_into(ledger, "metaculus", DOWNLOAD).changes == {RESTATED: 3}


@pytest.mark.parametrize("first", ["", "yes", "no"])
def test_a_forecast_that_is_gone_from_a_copy_with_the_answer_was_never_made(first: str, tmp_path: Path) -> None:
    """Also before the close, and if the answer or the times change with it; the same copy again changes nothing."""
    known = {"Resolution_Known_Time": KNOWN} if first else {}
    older = copy(tmp_path / "older", Resolution=first, Scheduled_Close_Time=CLOSE, **known)
    newer = copy(tmp_path / "newer", Resolution="yes", Resolution_Known_Time=KNOWN, Scheduled_Close_Time=LATER)
    rewrite(newer / FORECASTS, lambda row: None if row["Forecaster Username"] == "bo" else row)
    with ticking() as ledger, ticking() as alone:
        import_into(ledger, "metaculus", older, now="2026-03-10T00:00:00Z")
        for accepts in (True, False):
            found = import_into(ledger, "metaculus", newer, now="2026-03-20T00:00:00Z")
            assert (found.refused, found.counts["accepted"] > 0) == ([], accepts)
        import_into(alone, "metaculus", newer, now="2026-03-20T00:00:00Z")
        assert [row for row in scores(ledger) if row[1] == "501"] == [row for row in scores(alone) if row[1] == "501"]


def test_a_question_of_another_contest_is_in_both(older: Path, tmp_path: Path) -> None:
    """A ledger takes no question out of a contest, and the import says so."""
    newer = copy(tmp_path / "newer", Default_Project="another month")
    with ticking() as ledger:
        import_into(ledger, "metaculus", older)
        found = import_into(ledger, "metaculus", newer)
        assert (found.counts["accepted"], found.refused, found.left_out[OTHER_CONTEST]) == (3, [], 1)  # with its bot
        added = [event for event in told(ledger) if isinstance(event, QuestionAdded) and event.question == "501"]
        assert [event.contest for event in added] == ["A month of questions", "another month"]
        assert import_into(ledger, "metaculus", newer).counts["accepted"] == 0


def test_another_kind_of_question_under_the_same_id_is_refused(older: Path, tmp_path: Path) -> None:
    """What a question asks cannot change."""
    newer = copy(tmp_path / "newer", Question_Type="numeric", Lower_Bound="0", Upper_Bound="1")
    with ticking() as ledger:
        counts(ledger, older)
        assert "command_id_reused" in import_into(ledger, "metaculus", newer).refused[0]


@pytest.mark.parametrize("now", ["2026-03-08T00:00:00Z", "2026-06-01T00:00:00Z"])
@pytest.mark.parametrize("answered", [False, True])
def test_a_forecaster_of_another_name_is_one_person(tmp_path: Path, now: str, answered: bool) -> None:
    """The forecasts go on under the new name alone, as if only the newer copy had been imported; but for those
    from before a change of options, which are counted.
    """
    older = Path(shutil.copytree(DOWNLOAD, tmp_path / "older")) if answered else copy(tmp_path / "older")
    for name in (QUESTIONS, FORECASTS):
        rewrite(older / name, lambda row: None if row["Question ID"] in CHANGED else row)
    newer = Path(shutil.copytree(older, tmp_path / "newer"))
    rename = {"ada": "ada lovelace"}
    rewrite(
        newer / FORECASTS,
        lambda row: row | {"Forecaster Username": rename.get(row["Forecaster Username"], row["Forecaster Username"])},
    )
    with ticking() as ledger, ticking() as alone:
        import_into(ledger, "metaculus", older, now=now)
        assert import_into(ledger, "metaculus", newer, now=now).refused == []
        import_into(alone, "metaculus", newer, now=now)
        for name in ("501", "502", "503"):
            assert sorted(standing(ledger, name)) == sorted(standing(alone, name))
        assert scores(ledger) == scores(alone)
        assert import_into(ledger, "metaculus", newer, now=now).counts["accepted"] == 0


def test_who_was_renamed_by_hand_goes_on_under_the_id_of_the_ledger(newer: Path, older: Path, tmp_path: Path) -> None:
    """Whether the source has the old name or the new one, on a question that the ledger has or on a new one."""
    rename = RenameParticipant(id="by hand", participant="ada", to="countess", reason="a new name")
    again = Path(shutil.copytree(newer, tmp_path / "again"))
    edit(again / FORECASTS, lambda text: text.replace(",7,ada,", ",7,countess,"))
    first = Path(shutil.copytree(older, tmp_path / "first"))
    for name in (QUESTIONS, FORECASTS):
        rewrite(first / name, lambda row: row if row["Question ID"] == "501" else None)
        for path in (newer, again):
            rewrite(path / name, lambda row: None if row["Question ID"] in CHANGED else row)
    with ticking() as ledger:
        counts(ledger, first)
        ledger.handle(rename)
        assert ("countess", "yes", "0.8") in standing(ledger)
        assert import_into(ledger, "metaculus", newer).refused == []
        assert "ada" not in {row[0] for name in ("501", "502", "503") for row in standing(ledger, name)}
        assert ("countess", "yes", "0.95") in standing(ledger)
        for path in (newer, again, newer):
            assert counts(ledger, path) == (0, 0)


def test_the_forecasts_of_ids_that_were_made_one_stay(newer: Path, older: Path) -> None:
    """Where both forecast, the source cannot say in what order; what it has is counted as not carried over."""
    merge = RenameParticipant(id="by hand", participant="ada", to="bo", reason="one person")
    with ticking() as ledger:
        counts(ledger, older)
        ledger.handle(merge)
        before = standing(ledger, "501")
        found = import_into(ledger, "metaculus", newer)
        assert found.refused == []
        assert found.left_out[MERGED] > 0
        assert standing(ledger, "501") == before


def test_a_forecaster_may_have_a_third_name(tmp_path: Path) -> None:
    """The forecasts on an open question go on under the newest name alone."""
    with ticking() as ledger:
        for number, name in enumerate(("ada", "ada lovelace", "countess")):
            newer = copy(tmp_path / str(number))
            forecasts = (newer / FORECASTS).read_text(encoding="utf-8").replace("501,7,ada,", f"501,7,{name},")
            (newer / FORECASTS).write_text(forecasts, encoding="utf-8")
            assert import_into(ledger, "metaculus", newer).refused == []
        assert {row[0] for row in standing(ledger, "501")} & {"ada", "ada lovelace", "countess"} == {"countess"}


# --- whether outcomes have an order


def test_the_options_of_metaculus_have_no_order_and_an_older_import_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A ledger whose questions do not say it takes a newer copy without a refusal, and does not say it afterwards."""
    with ticking() as ledger:
        counts(ledger, DOWNLOAD)
        assert {row for row in table(ledger, "questions", "kind", "ordered") if row[1]} == {("multiple_choice", "no")}
        assert counts(ledger, DOWNLOAD) == (0, 0)
    with ticking() as ledger:
        with monkeypatch.context() as before:
            before.setattr(metaculus_questions, "OpenQuestion", lambda **said: OpenQuestion(**said | {"ordered": None}))
            counts(ledger, DOWNLOAD)
        assert counts(ledger, DOWNLOAD) == (0, 0)
        assert {*table(ledger, "questions", "ordered")} == {("",)}


def test_a_bot_that_is_none_any_more_is_enrolled_again(older: Path, tmp_path: Path) -> None:
    """The last enrolment counts, so that its peers are compared with it from now on; and a bot again is a bot."""
    newer = Path(shutil.copytree(older, tmp_path / "newer"))
    rewrite(newer / FORECASTS, lambda row: row | {"Is Bot": "False"})
    with ticking() as ledger, ticking() as alone:
        assert import_into(ledger, "metaculus", older).refused == []
        assert import_into(ledger, "metaculus", newer).counts["accepted"] == 1
        enrolled = [event for event in told(ledger) if isinstance(event, ParticipantEnrolled)]
        assert [(event.participant, event.bot) for event in enrolled] == [("cy-bot", True), ("cy-bot", False)]
        assert import_into(ledger, "metaculus", newer).counts["accepted"] == 0
        import_into(alone, "metaculus", newer)
        assert scores(ledger) == scores(alone)
        assert [import_into(ledger, "metaculus", older).counts["accepted"] for _ in range(2)] == [1, 0]


def test_a_bot_that_is_none_any_more_stays_one_on_a_sealed_board(older: Path, tmp_path: Path) -> None:
    """The import says so."""
    newer = Path(shutil.copytree(older, tmp_path / "newer"))
    rewrite(newer / FORECASTS, lambda row: row | {"Is Bot": "False"})
    with ticking() as ledger:
        import_into(ledger, "metaculus", older)
        ledger.handle(FinalizeContest(contest="A month of questions"), "seal")
        found = import_into(ledger, "metaculus", newer)
        assert (found.counts["accepted"], found.refused, found.left_out[SEALED_BOT]) == (0, [], 1)


def test_what_is_new_after_the_seal_is_recorded_without_the_contest(older: Path, tmp_path: Path) -> None:
    """A question, and another whose project is sealed: the board stays without both, and without a new bot."""
    newest = Path(shutil.copytree(DOWNLOAD, tmp_path / "newest"))
    rewrite(newest / FORECASTS, lambda row: row | {"Is Bot": str(row["Forecaster Username"] in {"ada", "bo"})})
    rewrite(older / QUESTIONS, lambda row: None if row["Question ID"] == "502" else row | {"Default Project": "b"})
    rewrite(older / FORECASTS, lambda row: None if row["Question ID"] in {"502", "503"} else row | {"Is Bot": "False"})
    with ticking() as ledger:
        import_into(ledger, "metaculus", older)
        ledger.handle(OpenContest(contest="A month of questions", rules="peer-2024-03"), "open")
        ledger.handle(EnrolParticipant(contest="A month of questions", participant="ada", bot=True), "by hand")
        ledger.handle(FinalizeContest(contest="A month of questions"), "seal")
        for accepted in (True, False):
            found = import_into(ledger, "metaculus", newest)
            questions = len(facts(ledger.read()).questions)
            assert (found.refused, found.left_out[SEALED_QUESTION]) == ([], questions)
            assert (found.left_out[SEALED_BOT], found.counts["accepted"] > 0) == (1, accepted)
        assert facts(ledger.read()).contests["A month of questions"].entries == {}


def test_an_import_counts_what_it_changes_and_takes_back(older: Path, tmp_path: Path) -> None:
    """A partial copy that counts as a whole is seen at once."""
    newer = copy(tmp_path / "newer", Scheduled_Close_Time=LATER, Question_Title="Rain?")
    rewrite(newer / FORECASTS, lambda row: None if row["Forecaster Username"] == "ada" else row)
    with ticking() as ledger:
        assert import_into(ledger, "metaculus", older).changes == {}
        found = import_into(ledger, "metaculus", newer)
        gone = found.changes["the forecasts of a participant on a question retracted"]
        assert gone + found.changes.get("a forecast withdrawn", 0) == len({row[1] for row in scores(ledger)} | {"501"})
        assert (found.changes["a question rescheduled"], found.changes["a question amended"]) == (1, 1)
        assert import_into(ledger, "metaculus", newer).changes == {}


def test_a_new_name_where_options_changed_is_counted_and_the_old_one_stays(tmp_path: Path) -> None:
    """Forecasts from before the change cannot be recorded again under the new name: nobody loses what counts.

    The ids are others, too, so that nothing says who they are. On question 507, `c` is added on 4 March; ada and bo
    forecast before, and bo then. On 510, an option is removed at the instant of the second forecast of ada.
    """
    older = Path(shutil.copytree(DOWNLOAD, tmp_path / "older"))
    newer = Path(shutil.copytree(DOWNLOAD, tmp_path / "newer"))
    edit(newer / FORECASTS, lambda text: text.replace(",7,ada,", ",70,ada lovelace,").replace(",8,bo,", ",80,robert,"))
    with ticking() as ledger:
        import_into(ledger, "metaculus", older)
        before = [row for row in scores(ledger) if row[1] in CHANGED]
        found = import_into(ledger, "metaculus", newer)
        assert (found.refused, found.left_out[BEFORE_CHANGE]) == ([], 3)
        assert [row for row in scores(ledger) if row[1] in CHANGED] == before
        assert import_into(ledger, "metaculus", newer).counts["accepted"] == 0


def test_an_answer_that_is_recorded_again_counts_as_replaced(older: Path) -> None:
    """First the copy has another answer to a question, then none, then the first one."""
    answers = [("no", {REPLACED: 1}), ("", {REVOKED: 1}), ("no", {})]
    with ticking() as ledger:
        import_into(ledger, "metaculus", DOWNLOAD)
        for answer, changes in answers:
            rewrite(older / QUESTIONS, replacing("501", Resolution=answer, Resolution_Known_Time=KNOWN))
            found = import_into(ledger, "metaculus", older).changes
            assert {what: count for what, count in found.items() if "answer" in what} == changes


def test_a_copy_that_does_not_say_who_is_a_bot_changes_none(older: Path) -> None:
    """The column of bots has another name: nobody is enrolled again, and the column is named."""
    with ticking() as ledger:
        import_into(ledger, "metaculus", DOWNLOAD)
        bots = [event for event in told(ledger) if isinstance(event, ParticipantEnrolled) and event.bot]
        assert bots
        edit(older / FORECASTS, lambda text: text.replace("Is Bot", "Was Bot", 1))
        assert "a column that is not read: 'Was Bot'" in import_into(ledger, "metaculus", older).left_out
        assert [event for event in told(ledger) if isinstance(event, ParticipantEnrolled)] == bots


@pytest.mark.parametrize(
    ("rows", "accepted"),
    [
        (["501,90,eve,False,2026-03-05 12:00:00+00:00,,,1.4,,,,,,,,,,"], 0),
        (
            [
                "501,7,ada,False,2026-03-09 12:00:00+00:00,,,1.5,,,,,,,,,,",
                "501,7,ada,False,2026-03-10 12:00:00+00:00,,,0.95,,,,,,,,,,",
            ],
            1,
        ),
    ],
)
def test_a_forecast_that_the_ledger_refuses_is_refused_once_and_never_a_duplicate(
    rows: list[str], accepted: int, tmp_path: Path
) -> None:
    """Also if it is the only one of a new forecaster, or of those of somebody that are known; others are recorded."""
    older, newer = copy(tmp_path / "older", **OPEN), copy(tmp_path / "newer", **OPEN)
    edit(newer / FORECASTS, lambda text: text + "\n".join([*rows, ""]))
    with ticking() as ledger:
        import_into(ledger, "metaculus", older)
        known = import_into(ledger, "metaculus", older).counts["duplicate"]
        for new in (accepted, 0):
            found = import_into(ledger, "metaculus", newer)
            assert [line.partition(": ")[2].split()[0] for line in found.refused] == ["out_of_range"]
            assert found.counts == {"accepted": new, "duplicate": known, "refused": 1}
            known += new


def test_forecasts_from_before_a_change_of_options_follow_a_new_name_by_a_rename(tmp_path: Path) -> None:
    """They cannot be restated; once the ledger has the new id, the next import has nothing to report."""
    older, newer = copy(tmp_path / "older"), copy(tmp_path / "newer")
    edit(newer / FORECASTS, lambda text: text.replace(",7,ada,", ",70,ada.l,"))
    with ticking() as ledger:
        import_into(ledger, "metaculus", older)
        found = import_into(ledger, "metaculus", newer)
        assert found.left_out[BEFORE_CHANGE] > 0
        assert "rename_participant" in BEFORE_CHANGE
        ledger.handle(RenameParticipant(id="by hand", participant="ada", to="ada.l", reason="a new name"))
        found = import_into(ledger, "metaculus", newer)
        assert (found.refused, found.counts["accepted"], BEFORE_CHANGE in found.left_out) == ([], 0, False)
        with ticking() as alone:
            import_into(alone, "metaculus", newer)
            columns = ("contest", "question", "participant", "score", "coverage")
            assert sorted(table(ledger, "scores", *columns)) == sorted(table(alone, "scores", *columns))
