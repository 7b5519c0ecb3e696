"""Metaculus's data download: published scores, order of time, newer downloads, older columns, and cells that attack."""

import csv
import io
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model.events import (
    ForecastMade,
    ForecastWithdrawn,
    OutcomesChanged,
    ParticipantEnrolled,
    QuestionClosed,
    QuestionOpened,
    QuestionResolved,
)
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.metaculus import EARLY, FUTURE_END, FUTURE_START
from forecast_ledger.replay.importing.metaculus_questions import (
    FUTURE_CHANGE,
    LATE_REMOVAL,
    date_zero_point,
    read_list,
    zero_point,
)
from forecast_ledger.replay.importing.source_items import AGGREGATES_ALONE
from tests.support.paths import DATA
from tests.support.sources import edit, import_into, table, ticking, told, zipped

DOWNLOAD = DATA / "metaculus-import"
QUESTIONS, FORECASTS = "question_data.csv", "forecast_data.csv"
ALL = {"accepted": 47, "duplicate": 0, "refused": 0}
CHANGED = {"507", "510"}
HISTORY = "MC Options History"
DAY_4, DAY_6, DAY_11 = (f"2026-03-{day:02}T12:00:00+00:00" for day in (4, 6, 11))
FIRST = "['0001-01-01T00:00:00', ['a', 'b', 'other']]"
HISTORY_507 = [("0001-01-01T00:00:00", ["a", "other"]), (DAY_4, ["a", "c", "other"])]
Cells = dict[str, str]


@pytest.fixture
def download(tmp_path: Path) -> Path:
    """A copy of the download."""
    return Path(shutil.copytree(DOWNLOAD, tmp_path / "download"))


def rewrite(path: Path, change: Callable[[Cells], Cells | None]) -> None:
    """Change every row; a row without a successor is left out."""
    before = csv.DictReader(io.StringIO(path.read_bytes().decode(), newline=""))
    rows = [after for row in before if (after := change(row)) is not None]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8", newline="")


def replacing(question: str, **cells: str) -> Callable[[Cells], Cells]:
    """Other cells in the rows of a question; `_` stands for a space."""
    changed = {name.replace("_", " "): cell for name, cell in cells.items()}
    return lambda row: row | (changed if row["Question ID"] == question else {})


def question(ledger: Ledger, name: str) -> QuestionOpened:
    """How a question was opened."""
    [found] = [event for event in told(ledger) if isinstance(event, QuestionOpened) and event.question == name]
    return found


def test_the_published_scores_come_out() -> None:
    """Every row of score_data.csv, to nine decimals; nothing is refused."""
    with ticking() as ledger:
        found = import_into(ledger, "metaculus", DOWNLOAD, "baseline")
        assert found.counts == ALL
        rows = table(ledger, "scores", "question", "participant", "score", "coverage")
    scored = {(question, who): (Decimal(score), Decimal(coverage)) for question, who, score, coverage in rows}
    with (DOWNLOAD / "score_data.csv").open(encoding="utf-8", newline="") as file:
        published = {
            (row["Question ID"], row["User Username"]): (round(Decimal(row["Score"]), 9), Decimal(row["Coverage"]))
            for row in csv.DictReader(file)
        }
    assert len(published) == 11
    assert scored == published


def test_what_is_not_carried_over_is_counted() -> None:
    """By reason."""
    with ticking() as ledger:
        assert import_into(ledger, "metaculus", DOWNLOAD).left_out == {
            "published scores, which can be compared with the table `scores`": 1,
            "a forecast of an aggregate: the ledger computes its own": 2,
            "a question without an opening or a closing time": 1,
        }


def test_what_is_too_long_is_cut_and_counted(download: Path) -> None:
    """The end of a title beyond 10,000 characters, and each tag beyond the first hundred, in order of their names."""
    tags = str([f"t{number:03}" for number in range(103)])
    cells = {"Question_Title": "x" * 10_001, "Categories": tags, "Leaderboard_Tags": ""}
    rewrite(download / "question_data.csv", replacing("501", **cells))
    with ticking() as ledger:
        left_out = import_into(ledger, "metaculus", download).left_out
        found = question(ledger, "501")
    assert left_out["the end of a title of more than 10,000 characters"] == 1
    assert left_out["a tag beyond the first 100"] == 3
    assert (found.title, found.tags) == ("x" * 10_000, tuple(f"t{number:03}" for number in range(100)))


def test_forecasts_on_questions_without_an_answer_lack_their_last_cell(download: Path) -> None:
    """Metaculus writes `PDF at Resolution` only beside an answer; a row that lacks more is refused."""
    lines = (download / FORECASTS).read_text(encoding="utf-8").splitlines()
    [short] = [line for line in lines if line.startswith("506,")]
    assert (len(next(csv.reader([short]))), len(lines[0].split(","))) == (18, 19)
    edit(download / FORECASTS, lambda text: text.replace(short, short[:-1]))
    with ticking() as ledger:
        found = import_into(ledger, "metaculus", download)
        assert found.counts == {"accepted": ALL["accepted"] - 1, "duplicate": 0, "refused": 1}
        assert found.refused == [f"{FORECASTS}, line 3: bad_source : the row has 17 cells, the header has 19"]


@pytest.mark.parametrize("anonymized", [False, True])
def test_a_download_of_aggregates_alone_has_them_as_forecasters(download: Path, anonymized: bool) -> None:
    """The download that everyone gets has no forecasters; an aggregate counts as a bot, which is no peer."""
    rewrite(download / FORECASTS, lambda row: row if row["Forecaster Username"] == "recency_weighted" else None)
    if anonymized:
        edit(
            download / FORECASTS,
            lambda text: text.replace("Forecaster ID,Forecaster Username", "Forecaster (Anonymized)", 1).replace(
                ",,recency_weighted,", ",recency_weighted,"
            ),
        )
    with ticking() as ledger:
        found = import_into(ledger, "metaculus", download)
        made = [event for event in told(ledger) if isinstance(event, ForecastMade)]
        assert found.refused == []
        assert len(made) == 2
        assert {event.participant for event in made} == {"recency_weighted"}
        assert [(event.participant, event.bot) for event in told(ledger) if isinstance(event, ParticipantEnrolled)]
        again = import_into(ledger, "metaculus", download)
        assert (again.counts["accepted"], AGGREGATES_ALONE in again.left_out) == (0, False)
    with ticking() as ledger:  # which has forecasts of others
        import_into(ledger, "metaculus", DOWNLOAD)
        questions = {name for name, _ in table(ledger, "forecasts", "question", "participant")} - {"504"}  # not read
        assert import_into(ledger, "metaculus", download).left_out[AGGREGATES_ALONE] == len(questions)


def test_a_download_in_any_order_gives_the_same_log(download: Path) -> None:
    """Newest first, oldest first, or by question: commands are sorted by time before any is recorded."""
    with ticking() as ledger:
        import_into(ledger, "metaculus", DOWNLOAD)
        made = [event.at for event in told(ledger) if isinstance(event, ForecastMade)]
        assert made == sorted(made)
        expected = sorted(table(ledger, "scores", "question", "participant", "score"))
    lines = list(csv.reader(io.StringIO((download / FORECASTS).read_bytes().decode(), newline="")))
    with (download / FORECASTS).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([lines[0], *reversed(lines[1:])])
    with ticking() as ledger:
        assert import_into(ledger, "metaculus", download).counts == ALL
        assert sorted(table(ledger, "scores", "question", "participant", "score")) == expected


def test_a_newer_download_adds_what_is_new(download: Path, tmp_path: Path) -> None:
    """A forecast, the end of another, and an answer that replaces one; the zip is the same as the folder."""
    with ticking() as ledger:
        import_into(ledger, "metaculus", download)
        again = import_into(ledger, "metaculus", zipped(download, tmp_path / "download.zip"))
        assert again.counts == {"accepted": 0, "duplicate": 47, "refused": 0}
    with ticking() as ledger:
        rewrite(download / QUESTIONS, replacing("501", Resolution="", Resolution_Known_Time="", Actual_Close_Time=""))
        import_into(ledger, "metaculus", download)
        ended = {"End Time": "2026-03-08 12:00:00+00:00"}
        rewrite(
            download / FORECASTS,
            lambda row: row | (ended if (row["Question ID"], row["Forecaster Username"]) == ("501", "ada") else {}),
        )
        assert import_into(ledger, "metaculus", download).counts == {"accepted": 1, "duplicate": 46, "refused": 0}
        rewrite(download / QUESTIONS, replacing("502", Resolution="blue's"))
        assert import_into(ledger, "metaculus", download).counts == {"accepted": 2, "duplicate": 46, "refused": 0}
        assert import_into(ledger, "metaculus", download).counts["accepted"] == 0


def test_a_question_that_has_another_range_now_stays_as_it_is(download: Path) -> None:
    """A cdf says something else on another range; it was said that a command has the id of another one."""
    with ticking() as ledger:
        import_into(ledger, "metaculus", download)
        before = table(ledger, "scores", "question", "participant", "score")
        change = replacing("504", Lower_Bound="0.5", Upper_Bound="5.5", Continuous_Range="", Resolution="3.0")
        rewrite(download / "question_data.csv", change)
        found = import_into(ledger, "metaculus", download)
        assert table(ledger, "scores", "question", "participant", "score") == before
    [line] = found.refused
    assert "504: it had the range -0.5 to 4.5 in an earlier copy, and has 0.5 to 5.5 now" in line


def test_kinds_bounds_and_answers() -> None:
    """A logarithmic scale, a bin for each value, dates in seconds, an answer by name, bots, weights, reveals."""
    with ticking() as ledger:
        import_into(ledger, "metaculus", DOWNLOAD)
        numeric, discrete, date = (question(ledger, name).range for name in ("503", "504", "505"))
        assert numeric is not None
        assert (numeric.lower, numeric.upper, numeric.zero_point, numeric.bins) == ("1", "100", "0", 200)
        assert (numeric.open_lower, numeric.open_upper) == (False, True)
        assert discrete is not None
        assert (discrete.lower, discrete.upper, discrete.bins) == ("-0.5", "4.5", 5)
        assert date is not None
        assert (date.lower, date.upper) == ("1772323200", "1780963200")  # 1 March and 9 June, 00:00 UTC
        assert [question(ledger, name).kind for name in ("503", "504", "505")] == ["numeric", "discrete", "date"]
        assert question(ledger, "502").outcomes == ("red, dark", "green", "blue's")
        answers = {event.question: event.value for event in told(ledger) if isinstance(event, QuestionResolved)}
        assert (answers["503"], answers["504"], answers["505"]) == ("above_upper_bound", "2", "2026-04-20T00:00:00Z")
        assert table(ledger, "contests", "contest", "rules") == [("A month of questions", "peer-2024-03")]
        first = question(ledger, "501")
        assert first.reveals_at is not None
        assert (first.tags, first.url, first.source) == (
            ("Weather",),
            "https://example.org/questions/101/",
            "Metaculus",
        )


@pytest.mark.parametrize(
    ("lower", "upper", "zero", "parts"),
    [(1, 100, 0, 200), (-10, 90, -20, 200), (0.5, 2_000_000, 0.25, 200), (1, 9, 10, 8)],
)
def test_the_zero_point_is_found_in_the_places_of_the_cdf(lower: float, upper: float, zero: float, parts: int) -> None:
    """The places as Metaculus computes them, in binary fractions; the zero point is in no column of its own."""
    ratio = (upper - zero) / (lower - zero)
    places = [lower + (upper - lower) * (ratio ** (k / parts) - 1) / (ratio - 1) for k in range(parts + 1)]
    assert zero_point(str(places), Decimal(str(lower)), Decimal(str(upper))) == Decimal(str(zero))
    linear = [lower + (upper - lower) * k / parts for k in range(parts + 1)]
    assert zero_point(str(linear), Decimal(str(lower)), Decimal(str(upper))) is None
    with pytest.raises(Refused, match="no logarithmic scale"):
        zero_point(
            str([*places[: parts // 4], places[0], *places[parts // 4 + 1 :]]), Decimal(str(lower)), Decimal(str(upper))
        )


def test_a_question_that_closes_before_its_answer_is_known(download: Path) -> None:
    """It is closed; an answer beyond an open end is recorded by its name."""
    rewrite(download / QUESTIONS, replacing("501", Actual_Close_Time="2026-03-09 12:00:00+00:00"))
    rewrite(download / QUESTIONS, replacing("503", Resolution="below_lower_bound", Open_Lower_Bound="True"))
    with ticking() as ledger:
        import_into(ledger, "metaculus", download)
        assert [event.question for event in told(ledger) if isinstance(event, QuestionClosed)] == ["501"]
        answers = {event.question: event.value for event in told(ledger) if isinstance(event, QuestionResolved)}
        assert answers["503"] == "below_lower_bound"


@pytest.mark.parametrize("readme", ["", "This data was exported on 2026-03-07 12:00:00.123456+00:00\n"])
def test_an_end_in_the_future_is_left_to_a_newer_download(download: Path, readme: str) -> None:
    """The forecast may be replaced before it: were it withdrawn in advance, its successor would come too late."""
    open_until = replacing("501", Scheduled_Close_Time="2026-04-11 12:00:00+00:00", Actual_Close_Time="", Resolution="")
    rewrite(download / QUESTIONS, lambda row: open_until(row) | ({"Resolution Known Time": ""} if readme else {}))
    (download / "README.md").write_text(readme, encoding="utf-8")
    ends, at = "2026-03-20 12:00:00+00:00", "2026-03-13 12:00:00+00:00"
    shutil.copytree(download, download / "newer")

    def ended(row: Cells, end: str) -> Cells:
        return row | ({"End Time": end} if (row["Question ID"], row["Forecaster Username"]) == ("501", "ada") else {})

    rewrite(download / FORECASTS, lambda row: ended(row, ends))
    rewrite(download / "newer" / FORECASTS, lambda row: ended(row, at))
    added = f"501,7,ada,False,{at},,,0.95,,,,,,,,,,,\n"
    edit(download / "newer" / FORECASTS, lambda text: text + added)
    (download / "newer" / "README.md").unlink()
    older = download.rename(download.with_name("older"))
    newer = (older / "newer").rename(older.with_name("newer"))
    with ticking() as ledger:
        found = import_into(ledger, "metaculus", older)
        assert (found.left_out[FUTURE_END], found.counts["refused"]) == (1, 0)
        found = import_into(ledger, "metaculus", newer)
        assert (found.counts["accepted"], found.counts["refused"]) == (1, 0)
        last = [event for event in told(ledger) if isinstance(event, ForecastMade)][-1]
        assert (last.participant, last.probabilities) == ("ada", (950_000_000, 50_000_000))


def test_older_and_anonymized_downloads_are_read(download: Path) -> None:
    """`MC Options` in one column; a digest in place of a forecaster, and an aggregate by its method's name."""

    def older(row: Cells) -> Cells:
        options = row.pop("MC Options (All)")
        del row["MC Options History"], row["MC Options (Current)"]
        return {**row, "MC Options": options}

    def anonymized(row: Cells) -> Cells:
        who, method = row.pop("Forecaster ID"), row.pop("Forecaster Username")
        del row["Is Bot"]
        return {
            "Question ID": row.pop("Question ID"),
            "Forecaster (Anonymized)": who.zfill(64) if who else method,
            **row,
        }

    rewrite(download / QUESTIONS, lambda row: older(row) if row["Question ID"] not in CHANGED else None)
    rewrite(download / FORECASTS, anonymized)
    with ticking() as ledger:
        found = import_into(ledger, "metaculus", download)
        assert found.counts == {"accepted": 33, "duplicate": 0, "refused": 0}  # without the enrolment of the bot
        assert found.left_out[f"a forecast on a question that {QUESTIONS} does not have"] == 5
        assert found.left_out["a forecast of an aggregate: the ledger computes its own"] == 2
        assert f"{9:064}" in {row[0] for row in table(ledger, "scores", "participant")}


def test_a_forecast_from_before_the_opening_is_recorded(download: Path) -> None:
    """It comes after the question in the log."""
    before = {"Start Time": "2026-02-28 12:00:00+00"}  # as PostgreSQL writes UTC
    first = "2026-03-01 12:00:00+00:00"
    rewrite(download / FORECASTS, lambda row: row | (before if row["Start Time"] == first else {}))
    with ticking() as ledger:
        assert import_into(ledger, "metaculus", download).counts == ALL


def changes(ledger: Ledger) -> list[OutcomesChanged]:
    """All changes of options."""
    return [event for event in told(ledger) if isinstance(event, OutcomesChanged)]


def test_options_that_are_added_and_removed() -> None:
    """An addition is recorded at the end of its grace period, which forecasts from before end with; see the scores."""
    with ticking() as ledger:
        import_into(ledger, "metaculus", DOWNLOAD)
        assert (question(ledger, "507").outcomes, question(ledger, "510").outcomes) == (
            ("a", "other"),
            ("a", "b", "other"),
        )
        added, removed = changes(ledger)
        assert (added.question, added.added, added.removed) == ("507", ("c",), ())
        assert (added.grace_ends_at, added.at) == (read_instant(DAY_4), read_instant(DAY_4) - 1)
        assert (removed.question, removed.added, removed.removed) == ("510", (), ("b",))
        assert (removed.grace_ends_at, removed.at) == (None, read_instant(DAY_6))
        ended = [event.question for event in told(ledger) if isinstance(event, ForecastWithdrawn)]
        assert "507" not in ended
        made = [event for event in told(ledger) if isinstance(event, ForecastMade) and event.question in CHANGED]
        assert [(event.question, event.participant, event.probabilities) for event in made] == [
            ("507", "ada", (600_000_000, 400_000_000)),
            ("510", "ada", (200_000_000, 300_000_000, 500_000_000)),
            ("507", "bo", (600_000_000, 400_000_000)),
            ("507", "bo", (500_000_000, 200_000_000, 300_000_000)),
            ("510", "ada", (200_000_000, 800_000_000)),
        ]


def test_a_change_in_the_future_is_left_to_a_newer_download(download: Path) -> None:
    """In a grace period, with the forecasts that begin at its end: the newer download has others perhaps."""
    older, newer = download, download.with_name("newer")
    shutil.copytree(download, newer)
    exported = "This data was exported on 2026-03-03 18:00:00+00:00\n"
    (older / "README.md").write_text(exported, encoding="utf-8")
    rewrite(
        older / QUESTIONS, lambda row: row | {"Resolution": "", "Resolution Known Time": "", "Actual Close Time": ""}
    )
    with ticking() as ledger:
        found = import_into(ledger, "metaculus", older)
        assert (found.left_out[FUTURE_CHANGE], found.left_out[FUTURE_START]) == (2, 4)
        assert (found.refused, changes(ledger)) == ([], [])
        assert import_into(ledger, "metaculus", newer).refused == []
        assert len(changes(ledger)) == 2
        again = sorted(table(ledger, "scores", "question", "participant", "score"))
    with ticking() as ledger:
        import_into(ledger, "metaculus", newer)
        assert sorted(table(ledger, "scores", "question", "participant", "score")) == again


@pytest.mark.parametrize("opened", ["2026-03-04 12:00:00+00:00", "2026-03-05 12:00:00+00:00"])
def test_a_question_opens_with_the_options_that_count_by_then(download: Path, opened: str) -> None:
    """A change that counts from the opening or earlier is no change of an open question."""
    rewrite(download / QUESTIONS, replacing("507", Open_Time=opened))
    with ticking() as ledger:
        found = import_into(ledger, "metaculus", download)
        assert (found.refused, found.left_out[EARLY]) == ([], 2)
        assert question(ledger, "507").outcomes == ("a", "c", "other")
        assert [change.question for change in changes(ledger)] == ["510"]


def test_options_that_are_removed_after_the_end_stay(download: Path) -> None:
    """There are no forecasts any more whose probability could move; the reason is counted."""
    rewrite(download / QUESTIONS, replacing("510", **{HISTORY: f"[{FIRST}, ['{DAY_11}', ['a', 'other']]]"}))
    rewrite(download / FORECASTS, lambda row: row if "0.8" not in row["Probability Yes Per Category"] else None)
    with ticking() as ledger:
        found = import_into(ledger, "metaculus", download)
        assert (found.refused, found.left_out[LATE_REMOVAL]) == ([], 1)


def test_a_grace_period_that_goes_on_after_the_end(download: Path) -> None:
    """The added option never counts, so that the last one has its probability: 100 (1 + log2 0.4) for either answer."""
    rewrite(
        download / QUESTIONS, replacing("507", **{HISTORY: str(HISTORY_507).replace(DAY_4, "2026-03-20T12:00:00Z")})
    )
    rewrite(download / FORECASTS, lambda row: row | ({"End Time": ""} if row["Question ID"] == "507" else {}))
    rewrite(download / FORECASTS, lambda row: row if "0.5, 0.3" not in row["Probability Yes Per Category"] else None)
    for answer in ("c", "other"):
        rewrite(download / QUESTIONS, replacing("507", Resolution=answer))
        with ticking() as ledger:
            (download / "README.md").write_text("", encoding="utf-8")
            rewrite(download / QUESTIONS, replacing("508", Resolution_Known_Time="2026-03-21 12:00:00+00:00"))
            assert import_into(ledger, "metaculus", download, "baseline").refused == []
            assert ("507", "ada", "-32.192809489") in table(ledger, "scores", "question", "participant", "score")


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        (
            QUESTIONS,
            replacing("502", **{"MC Options (All)": "__import__('os').system('true')"}),
            "not a list as Python",
        ),
        (QUESTIONS, replacing("502", **{"MC Options (All)": "[" * 50_000}), "not a list as Python"),
        (QUESTIONS, replacing("502", **{"MC Options (All)": "[1, 2]"}), "not a list of names"),
        (QUESTIONS, replacing("503", Lower_Bound="nan"), "bad_number Lower Bound"),
        (QUESTIONS, replacing("503", Continuous_Range="[1, x, 100]"), "not a list of numbers"),
        (QUESTIONS, replacing("503", Resolution="many"), "bad_number Resolution"),
        (QUESTIONS, replacing("505", Lower_Bound="March"), "bad_instant Lower Bound"),
        (QUESTIONS, replacing("501", Open_Time="2026-03-01 12:00:00"), "naive_instant Open Time"),
        (QUESTIONS, replacing("501", Question_Weight="-1"), "out_of_range weight"),
        (FORECASTS, replacing("509", Start_Time="yesterday"), "bad_instant Start Time"),
        (FORECASTS, replacing("501", Probability_Yes="2"), "out_of_range probability"),
        (FORECASTS, replacing("502", Probability_Yes_Per_Category="[0.5, 0.5]"), "it has 2 probabilities"),
        (FORECASTS, replacing("502", Probability_Yes_Per_Category="[None, 0.5, 0.5]"), "bad_number"),
        (FORECASTS, replacing("505", Continuous_CDF="[0, 1]"), "wrong_length cdf"),
        (FORECASTS, replacing("507", Probability_Yes_Per_Category="[0.5, 0.1, 0.4]"), "'c', which was not an option"),
        (QUESTIONS, replacing("507", **{HISTORY: "[['0001-01-01T00:00:00', ['a', 2]]]"}), "not a list of names"),
        (QUESTIONS, replacing("507", **{HISTORY: "[[0, ['a', 'other']]]"}), "not a list of instants with options"),
        (QUESTIONS, replacing("507", **{HISTORY: "[['soon', ['a', 'other']]]"}), "bad_instant MC Options History"),
        (
            QUESTIONS,
            replacing("507", **{HISTORY: f"[{FIRST}, ['{DAY_4}', ['c', 'other']]]"}),
            "added and removed at once",
        ),
        (
            QUESTIONS,
            replacing("510", **{HISTORY: f"[{FIRST}, ['{DAY_4}', ['other']], ['{DAY_6}', ['a', 'other']]]"}),
            "added again after they were removed",
        ),
        (FORECASTS, replacing("501", Start_Time="2026-04-01 12:00:00+00:00"), "question_"),
    ],
)
def test_what_is_wrong_in_a_row_is_refused_with_its_place(
    download: Path, file: str, change: Callable[[Cells], Cells], expected: str
) -> None:
    """The rest is recorded."""
    rewrite(download / file, change)
    with ticking() as ledger:
        found = import_into(ledger, "metaculus", download)
        assert any(expected in line and line.startswith(f"{file}, line ") for line in found.refused), found
        assert found.counts["accepted"] >= 25


@pytest.mark.parametrize(
    ("column", "at"),
    [("Resolution Known Time", "2026-03-01 11:59:59.999999+00:00"), ("Actual Close Time", "2026-03-01 12:00:00+00:00")],
)
def test_an_answer_or_a_close_before_the_opening_is_refused_by_its_cell(download: Path, column: str, at: str) -> None:
    """The message names the cell and says what to do; the question and its forecasts are recorded without an answer."""
    with ticking() as ledger:
        assert import_into(ledger, "metaculus", download).refused == []
        rewrite(download / QUESTIONS, replacing("501", **{"Resolution Known Time": "", column: at}))
        expected = (
            f"{QUESTIONS}, line 2: before_opening {column}: the question opens at 2026-03-01T12:00:00Z (`Open Time`); "
            "its close and its answer are not taken"
        )
        assert import_into(ledger, "metaculus", download).refused == [expected]
        with ticking() as alone:
            assert import_into(alone, "metaculus", download).refused == [expected]
            columns = ("question", "participant", "from_at", "to_at")
            for each in (ledger, alone):
                assert ("501", "unresolved") in table(each, "questions", "question", "state")
            assert sorted(table(ledger, "standing", *columns)) == sorted(table(alone, "standing", *columns))


def test_a_question_may_be_answered_at_the_instant_at_which_it_opens(download: Path) -> None:
    """Its forecasts are then too late, but the answer is recorded."""
    rewrite(
        download / QUESTIONS, replacing("501", Resolution_Known_Time="2026-03-01 12:00:00+00:00", Actual_Close_Time="")
    )
    with ticking() as ledger:
        refused = import_into(ledger, "metaculus", download).refused
        assert [line for line in refused if "before_opening" in line] == []
        assert "501" in {event.question for event in told(ledger) if isinstance(event, QuestionResolved)}


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (QUESTIONS, lambda text: text.replace("Question Type", "Kind", 1).encode(), "'Question Type' is missing"),
        (FORECASTS, lambda text: text.replace("Start Time", "End Time", 1).encode(), "'Start Time' is missing"),
        (QUESTIONS, lambda text: text.encode("utf-16"), "UTF-8"),
        (QUESTIONS, lambda _: b"", "the file is empty"),
        (QUESTIONS, None, "there is no such file"),
    ],
)
def test_a_download_that_cannot_be_read_records_nothing(
    download: Path, file: str, change: Callable[[str], bytes] | None, message: str
) -> None:
    """The message names the file and the column."""
    if change is None:
        (download / file).unlink()
    else:
        (download / file).write_bytes(change((download / file).read_text(encoding="utf-8")))
    with ticking() as ledger:
        with pytest.raises(Refused, match="bad_source") as refused:
            import_into(ledger, "metaculus", download)
        assert message in str(refused.value)
        assert ledger.head().position == 0


def test_a_cell_that_is_too_large_ends_the_reading_and_says_so(download: Path) -> None:
    """What was read before it is recorded."""
    edit(download / FORECASTS, lambda text: text + "501," + "x" * 200_000 + "\n")
    with ticking() as ledger:
        found = import_into(ledger, "metaculus", download)
        assert found.counts == {**ALL, "refused": 1}
        assert "field larger than field limit" in found.refused[0]


def test_a_list_is_never_run() -> None:
    """Only what is written as a list."""
    for text in ("open('/etc/passwd')", "{1: 2}", "[" * 10_000, "['a', b]", "[" + "'a'," * 100_000 + "]"):
        with pytest.raises(Refused):
            read_list(text, "MC Options")


@pytest.mark.parametrize("zero", ["2025-07-01", "2020-02-29", "2040-01-01"])
def test_the_zero_point_of_dates_is_found(zero: str) -> None:
    """The places as Metaculus computes them, cut to days; the day that is found gives all of them again."""
    low, high, at = (datetime.fromisoformat(f"{text}T00:00:00+00:00") for text in ("2026-01-01", "2036-01-01", zero))
    lower, upper, nought = low.timestamp(), high.timestamp(), at.timestamp()
    ratio = (upper - nought) / (lower - nought)

    def places(of: float, by: float) -> list[str]:
        seconds = [lower + (upper - lower) * (by ** (k / 200) - 1) / (by - 1) for k in range(201)]
        return [datetime.fromtimestamp(each + of, UTC).strftime("%Y-%m-%d") for each in seconds]

    said = places(0.001, ratio)
    found = date_zero_point(str(said), Decimal(int(lower)), Decimal(int(upper)))
    assert found is not None
    assert abs(float(found) - nought) <= 10 * 86_400
    assert places(0.001, (upper - float(found)) / (lower - float(found))) == said


def test_dates_at_equal_distances_have_no_zero_point() -> None:
    """A linear scale, cut to days; dates that no scale gives are refused."""
    low = datetime(2026, 1, 1, tzinfo=UTC)
    lower, upper = (Decimal(int((low + timedelta(days=days)).timestamp())) for days in (0, 365))
    linear = [(low + timedelta(days=365 * k / 200)).strftime("%Y-%m-%d") for k in range(201)]
    assert date_zero_point(str(linear), lower, upper) is None
    with pytest.raises(Refused, match="no logarithmic scale"):
        date_zero_point(str(["2026-01-01", "2026-12-01", "2026-02-01", "2026-01-05", "2027-01-01"]), lower, upper)


def test_bots_are_peers_where_the_download_includes_them_in_aggregates(download: Path) -> None:
    """100 (ln 0.9 - ln 0.5) = 58.778666490 for one of two bots, and its opposite for the other."""
    bots = {"Is Bot": "True", "Start Time": "2026-03-01 12:00:00+00:00", "End Time": ""}
    chances = {"ada": "0.9", "bo": "0.5"}
    rewrite(download / QUESTIONS, lambda row: row | {"Include Bots in Aggregates": "True"})
    rewrite(
        download / FORECASTS,
        lambda row: (
            row | bots | {"Probability Yes": chances[row["Forecaster Username"]]}
            if row["Question ID"] == "501" and row["Forecaster Username"] in chances
            else None
        ),
    )
    rewrite(download / QUESTIONS, lambda row: row if row["Question ID"] == "501" else None)
    with ticking() as ledger:
        assert import_into(ledger, "metaculus", download).refused == []
        assert sorted(table(ledger, "scores", "participant", "score")) == [
            ("ada", "58.778666490"),
            ("bo", "-58.778666490"),
        ]
