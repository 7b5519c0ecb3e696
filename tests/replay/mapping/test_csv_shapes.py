"""The shapes of published dumps, in small handmade tables: each goes in whole by one map."""

import json
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from tests.replay.cli.test_main import opened, run
from tests.support.paths import ROOT

# Metaculus's data download, newest first: the columns of question_data.csv and forecast_data.csv, shortened.
QUESTIONS = """Question ID,Question Title,Question Type,MC Options (Current),Lower Bound,Open Lower Bound,Upper Bound,\
Open Upper Bound,Open Time,Scheduled Close Time,Resolution,Question Weight
7,Will it rain?,binary,,,False,,False,2026-01-19 16:06:00+00:00,2026-02-28 00:00:00+00:00,,1.0
8,Which colour?,multiple_choice,"['red, dark', ""Bo's blue"", 'other']",,False,,False,\
2026-01-19 16:06:00+00:00,2026-02-28 00:00:00+00:00,,1.0
9,How many?,numeric,,-1000.0,True,2000.0,True,2026-01-19 16:06:00+00:00,2026-02-28 00:00:00+00:00,,1.0
"""
QUESTION_MAP = """
[[command]]
type = "open_question"
id = "open {Question ID}"
[command.fields]
at = "{Open Time}"
question = "{Question ID}"
title = "{Question Title}"
kind = "{Question Type}"
opens_at = "{Open Time}"
closes_at = "{Scheduled Close Time}"
outcomes = { from = "{MC Options (Current)}", split = "," }
range = { lower = "{Lower Bound}", upper = "{Upper Bound}", open_lower = "{Open Lower Bound}", \
open_upper = "{Open Upper Bound}", bins = 4 }
"""
FORECASTS = """Question ID,Forecaster ID,Forecaster Username,Is Bot,Start Time,End Time,Forecaster Count,\
Probability Yes,Probability Yes Per Category,Continuous CDF
9,3,cy,True,2026-01-22 16:45:56.319217+00:00,,,,,"[0.1, 0.3, 0.5, 0.7, 0.9]"
8,2,bo,False,2026-01-21 16:45:56.319217+00:00,,,,"[0.25, 0.5, 0.25]",
7,1,ada,False,2026-01-21 12:00:00.000001+00:00,,,0.9,,
7,1,ada,False,2026-01-20 12:00:00+00:00,2026-01-21 12:00:00.000001+00:00,,0.6,,
7,1,ada,False,2026-01-19 18:00:00+00:00,2026-01-20 12:00:00+00:00,,0.2,,
"""
FORECAST_MAP = """
[[command]]
type = "submit_forecast"
id = "forecast {Question ID} {Forecaster ID} {Start Time}"
[command.fields]
at = "{Start Time}"
question = "{Question ID}"
participant = "{Forecaster Username}"
probability = "{Probability Yes}"
probabilities = { from = "{Probability Yes Per Category}", json = true, names = ["red, dark", "Bo's blue", "other"] }
cdf = { from = "{Continuous CDF}", json = true }
"""
# The Good Judgment Project's survey_fcasts.yr1.csv: a row for each answer option of a forecast, without offsets.
SURVEY = """ifp_id,ctt,cond,training,team,user_id,forecast_id,fcast_type,answer_option,value,fcast_date,timestamp
1001-0,1a,1,a,,101,11,0,a,0.65,2011-09-03,2011-09-03 08:30:00
1001-0,1a,1,a,,101,11,0,b,0.35,2011-09-03,2011-09-03 08:30:00
1001-0,1a,1,a,,102,12,0,a,0.1,2011-09-02,2011-09-02 20:00:00
1001-0,1a,1,a,,102,12,0,b,0.9,2011-09-02,2011-09-02 20:00:00
"""
SURVEY_MAP = """
offset = "-05:00"
sort = "at"

[[command]]
type = "submit_forecast"
id = "forecast {forecast_id}"
group = ["forecast_id"]
[command.fields]
at = "{timestamp}"
question = "{ifp_id}"
participant = "{user_id}"
probabilities = { level = "{answer_option}", value = "{value}", levels = ["a", "b"] }
"""

DUMPS = ROOT / "data" / "dumps"


def append(folder: Path, map_: str, table: str | bytes, *options: str) -> tuple[int, str]:
    """Append a table by a map; return the exit code, and what is printed on stderr."""
    (folder / "map.toml").write_text(map_, encoding="utf-8")
    (folder / "table.csv").write_bytes(table if isinstance(table, bytes) else table.encode())
    asked = ("append", str(folder / "log.db"), str(folder / "table.csv"), "--map", str(folder / "map.toml"), *options)
    result = run(*asked)
    return result.exit_code, result.stderr


def says(folder: Path, kind: str) -> list[str]:
    """What the log says of events of a type."""
    rows = json.loads(run("log", str(folder / "log.db"), "--type", kind, "--format", "json").stdout)
    return [row["says"] for row in rows]


def test_a_dump_of_metaculus_with_the_newest_first_goes_in_whole(tmp_path: Path) -> None:
    """Options have commas and quotes; binary questions have open ends but no range; one line of the map sorts."""
    assert append(tmp_path, QUESTION_MAP, QUESTIONS) == (FINE, "")
    code, told = append(tmp_path, FORECAST_MAP, FORECASTS)
    assert (code, 'write sort = "at"' in told) == (USAGE, True)
    assert append(tmp_path, 'sort = "at"' + FORECAST_MAP, FORECASTS) == (FINE, "")
    assert [said.split(":")[0] for said in says(tmp_path, "forecast_made")] == [*["ada on 7"] * 3, "bo on 8", "cy on 9"]
    newest = [said for said in says(tmp_path, "forecast_made") if said.startswith("ada")][-1]
    assert newest == "ada on 7: yes 0.9, no 0.1"
    rows = json.loads(run("show", str(tmp_path / "log.db"), "2", "--format", "json").stdout)
    assert "red, dark" in json.dumps(rows)


def test_a_survey_of_the_good_judgment_project_goes_in_whole(tmp_path: Path) -> None:
    """A forecast is two rows; an option that is missing refuses that forecast alone."""
    span = {"opens_at": "2011-09-01T00:00:00Z", "closes_at": "2011-10-01T00:00:00Z"}
    question = opened("q", question="1001-0", kind="multiple_choice", outcomes=["a", "b"], **span)
    assert run("append", str(tmp_path / "log.db"), "-", given=question).exit_code == FINE
    short = "1001-0,1a,1,a,,103,13,0,a,1,2011-09-04,2011-09-04 20:00:00\n"
    code, told = append(tmp_path, SURVEY_MAP, SURVEY + short)
    assert (code, "line 6: no level b" in told) == (FINDINGS, True)
    assert says(tmp_path, "forecast_made") == ["102 on 1001-0: a 0.1, b 0.9", "101 on 1001-0: a 0.65, b 0.35"]


def board(folder: Path) -> list[tuple[str, str, str]]:
    """The participants of each contest, and their scores."""
    rows = json.loads(run("table", str(folder / "log.db"), "leaderboard", "--format", "json").stdout)
    return [(row["contest"], row["participant"], row["score"]) for row in rows]


def dump(name: str, map_: str = "") -> tuple[str, bytes]:
    """A map of data/dumps, and a table."""
    return (DUMPS / f"{map_ or name}.toml").read_text(encoding="utf-8"), (DUMPS / f"{name}.csv").read_bytes()


def test_the_good_judgment_projects_files_go_in_as_they_are(tmp_path: Path) -> None:
    """Lines end in carriage returns; a letter is not UTF-8; commas are part of options, which are known by letter.

    0.1² + 0.1² = 0.02 and 0.2² + 0.5² + 0.3² = 0.38, on average 0.2; of ordered options, 2 / 3 x 0.5² = 0.166667.
    """
    map_, table = dump("good-judgment-questions")
    table = table.decode().replace("will he vacate", "will Orb\u00e1n vacate").encode("mac_roman").replace(b"\n", b"\r")
    code, told = append(tmp_path, map_.replace('encoding = "mac_roman"', ""), table)
    assert (code, 'such as encoding = "cp1252"' in told) == (FINDINGS, True)
    assert append(tmp_path, map_, table) == (FINE, "")
    assert append(tmp_path, *dump("good-judgment-forecasts")) == (FINE, "")
    answers, _ = dump("good-judgment-questions", "good-judgment-answers")
    assert append(tmp_path, answers, table) == (FINE, "")
    rows = json.loads(run("table", str(tmp_path / "log.db"), "questions", "--format", "json").stdout)
    assert {row["question"]: (row["outcomes"], row["outcome"], row["state"]) for row in rows} == {
        "1001-0": ('["a", "b"]', "b", "resolved"),
        "1007-0": ('["a", "b", "c"]', "b", "resolved"),
        "1113-6": ('["a", "b", "c", "d"]', "d", "resolved"),
        "1306-1": ('["a", "b"]', None, "annulled"),
    }
    assert any("will Orb\u00e1n vacate" in row["title"] for row in rows)
    assert board(tmp_path) == [
        ("Good Judgment", "600", "0.200000000"),
        ("Good Judgment, ordered", "600", "0.166666667"),
    ]
    for each in (dump("good-judgment-forecasts"), (map_, table.replace(b"\r", b"\r\n")), (answers, table)):
        assert append(tmp_path, *each) == (FINE, "")  # all are there already


def test_a_table_that_repeats_the_answer_in_every_row_loses_no_forecast(tmp_path: Path) -> None:
    """Sorted, commands go by their own instants: an answer comes after forecasts of later rows.

    gwern: ((0.6 - 0)² + (0.9 - 1)²) / 2 = 0.185. bran: (0.7² + 0.05²) / 2 = 0.24625.
    """
    assert append(tmp_path, *dump("predictionbook")) == (FINE, "")
    assert board(tmp_path) == [("PredictionBook", "gwern", "0.185000000"), ("PredictionBook", "bran", "0.246250000")]


def test_games_are_won_by_the_team_with_more_runs(tmp_path: Path) -> None:
    """`above` compares two columns; a game of 1871 has one forecast, and one without runs is left out, which is said.

    elo: (0.5² + 0.3² + 0.5²) / 3 = 0.196667. rating: (0.6² + 0.2²) / 2 = 0.2.
    """
    map_, table = dump("mlb-elo")
    code, told = append(tmp_path, map_, table)
    assert (code, told.startswith("the map makes no command of 1 row, "), told.endswith(": line 4\n")) == (
        FINE,
        True,
        True,
    )
    assert board(tmp_path) == [("MLB", "elo", "0.196666667"), ("MLB", "rating", "0.200000000")]
    code, told = append(tmp_path, map_, table.replace(b",2,3", b",two,3"))
    assert (code, "line 2, resolve_question, column 'score1': bad_number: score1 = 'two'" in told) == (FINDINGS, True)


@pytest.mark.parametrize(
    ("map_", "table"),
    [
        ("google-forms", "google-forms.csv"),
        ("google-forms-grid", "google-forms-grid.csv"),
        ("google-sheet", "google-sheet.xlsx"),
        ("microsoft-forms", "microsoft-forms.xlsx"),
        ("microsoft-forms-csv", "microsoft-forms.csv"),
    ],
)
def test_the_answers_to_a_form_go_in_as_the_service_saves_them(map_: str, table: str, tmp_path: Path) -> None:
    """Files with the same answers: the same instants, and the same scores; sent again, all are duplicates.

    9:30:12 in Berlin is 8:30:12Z in March. bo: 0.2² = 0.04. ada: (0.4² + 0.05²) / 2 = 0.08125. cy: (0.15² + 0.5²) / 2.
    """
    log = str(tmp_path / "log.db")
    for _ in range(2):
        sent = run("append", log, "--map", str(DUMPS / f"{map_}.toml"), str(DUMPS / table), "--strict")
        assert (sent.exit_code, sent.stderr) == (FINE, "")
    assert (
        run("append", log, "--map", str(DUMPS / "form-answers.toml"), str(DUMPS / "form-answers.csv")).exit_code == FINE
    )
    made = run("log", log, "--type", "forecast_made", "--columns", "at,says", "--format", "csv").stdout.splitlines()[1:]
    assert made == [
        '2026-03-02T08:30:12Z,"ada@example.org on Q1: yes 0.6, no 0.4"',
        '2026-03-02T08:30:12Z,"ada@example.org on Q2: yes 0.05, no 0.95"',
        '2026-03-02T13:05:00Z,"bo@example.org on Q2: yes 0.2, no 0.8"',
        '2026-03-02T23:00:07Z,"cy@example.org on Q1: yes 0.85, no 0.15"',
        '2026-03-02T23:00:07Z,"cy@example.org on Q2: yes 0.5, no 0.5"',
    ]
    assert board(tmp_path) == [
        ("Weather", "bo@example.org", "0.040000000"),
        ("Weather", "ada@example.org", "0.081250000"),
        ("Weather", "cy@example.org", "0.136250000"),
    ]


@pytest.mark.parametrize("ending", [" EST", " GMT+5:30", " GMT-3", ""])
def test_letters_behind_a_time_of_a_form_are_not_read(ending: str, tmp_path: Path) -> None:
    """Google Forms writes EST in summer too, so the map names the time zone."""
    map_, table = dump("google-forms")
    assert append(tmp_path, map_, table.replace(b" GMT+1", ending.encode())) == (FINE, "")
    assert says(tmp_path, "forecast_made")[0] == "ada@example.org on Q1: yes 0.6, no 0.4"


def test_answers_without_names_are_not_one_person(tmp_path: Path) -> None:
    """Microsoft Forms writes `anonymous` for all: their forecasts would replace each other, and are counted instead."""
    map_, table = dump("microsoft-forms", "microsoft-forms-csv")
    table = table.replace(b"bo@example.org", b"anonymous").replace(b"ada@example.org", b"anonymous")
    code, told = append(tmp_path, map_, table)
    assert (code, "no command of 1 row" in told, "no command of 2 cells" in told) == (FINE, True, True)
    assert [each.split()[0] for each in says(tmp_path, "forecast_made")] == ["cy@example.org"] * 2


def test_prices_of_markets_in_unix_time_go_in(tmp_path: Path) -> None:
    """As the markets' own price histories have it: seconds since 1970, or milliseconds."""
    asked = opened("q", question="0xabc", opens_at="2026-03-01T00:00:00Z", closes_at="2026-03-09T00:00:00Z")
    assert run("append", str(tmp_path / "log.db"), "-", given=asked).exit_code == FINE
    map_ = """
instant = "unix"
[[command]]
type = "quote"
id = "{t}"
[command.fields]
at = "{t}"
quoted_at = { from = "{ms}", instant = "unix ms" }
question = "0xabc"
prices = { yes = "{p}" }
source = "clob"
"""
    table = "t,ms,p\n1772326800,1772326800000,0.5\n1772330400.25,1772330400250,0.75\n"
    assert append(tmp_path, map_, table) == (FINE, "")
    rows = json.loads(run("log", str(tmp_path / "log.db"), "--type", "prices_quoted", "--format", "json").stdout)
    assert [row["at"] for row in rows] == ["2026-03-01T01:00:00Z", "2026-03-01T02:00:00.250000Z"]
    for wrong in ("1e9", "now", "9" * 15, "-" + "9" * 15):
        code, told = append(tmp_path, map_, f"t,ms,p\n{wrong},0,0.5\n")
        assert (code, "bad_instant" in told, "unix" in told) == (FINDINGS, True, True)


def test_what_is_refused_of_a_file_with_old_line_ends_can_be_mended_and_sent(tmp_path: Path) -> None:
    """It is kept in the file's encoding, with line feeds."""
    map_, table = dump("good-judgment-questions")
    letters = table.replace(b"vacate office", "vacate b\u00fcro".encode("mac_roman")).replace(
        b"9/1/11,3/30", b"soon,3/30"
    )
    code, _ = append(tmp_path, map_, letters.replace(b"\n", b"\r"), "--refused", str(tmp_path / "rest.csv"))
    rest = (tmp_path / "rest.csv").read_bytes()
    assert (code, b"\r" in rest, rest.count(b"\n"), b"b\x9fro" in rest) == (FINDINGS, False, 2, True)
    assert append(tmp_path, map_, rest.replace(b"soon,", b"9/1/11,")) == (FINE, "")
    assert append(tmp_path, map_, letters.replace(b"soon,", b"9/1/11,")) == (FINE, "")


CLOSES = """
[[command]]
type = "close_question"
id = "{{question}}"
[command.fields]
question = "question"
at = {{ from = "at", instant = "{}" }}
"""


@pytest.mark.parametrize("form", ["%Y-%m-%m", "%d %d", "%d.%m. %H:%M", "%Y %", "%Q", "%Y-%m-%d %", "%j%j", "%:"])
def test_a_format_that_strptime_does_not_have_is_a_fault_of_the_map(form: str) -> None:
    """It is found when the map is read, and not cell by cell, or as an error of Python."""
    described = CLOSES.format(form)
    with pytest.raises(Refused) as refused:
        parse_map(described.encode())
    assert (refused.value.code, refused.value.field) == ("bad_map", "command[0].fields.at.instant")


@pytest.mark.parametrize("form", ["%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M:%S%z", "%Y%j", "(%Y) [%m] {%d}"])
def test_a_format_that_strptime_has_is_taken(form: str) -> None:
    """Other signs between the directives stand for themselves."""
    described = CLOSES.format(form)
    parse_map(described.encode())
