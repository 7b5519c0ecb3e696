"""The shapes of published dumps, in small handmade tables: each goes in whole by one map."""

import json
from pathlib import Path

from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from tests.replay.cli.test_main import opened, run

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


def append(folder: Path, map_: str, table: str, *options: str) -> tuple[int, str]:
    """Append a table by a map; return the exit code, and what is printed on stderr."""
    (folder / "map.toml").write_text(map_, encoding="utf-8")
    (folder / "table.csv").write_text(table, encoding="utf-8")
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
    assert [said for said in says(tmp_path, "forecast_made") if said.startswith("ada")][-1] == "ada on 7: 0.9, 0.1"
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
    assert says(tmp_path, "forecast_made") == ["102 on 1001-0: 0.1, 0.9", "101 on 1001-0: 0.65, 0.35"]
