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

# The Good Judgment Project's ifps.csv: old Mac line ends, bytes that are not UTF-8, American dates, lettered options.
IFPS = """ifp_id,q_type,q_text,q_desc,q_status,date_start,date_suspend,date_to_close,date_closed,outcome,n_opts,options
1001-0,0,Will the talks resume in 2011?,'In' refers to 2011.,closed,9/1/11,12/30/11 0:00,12/31/11,1/2/12,b,2,\
"(a) Yes, (b) No"
1007-0,0,Will there be a lethal confrontation?,"Lethal
requires at least one death.",closed,9/1/11,12/30/11 0:00,12/31/11,12/11/11,b,3,\
"(a) Yes, by 15 October 2011, (b) Yes, between 16 Oct and 31 Dec, (c) No"
1113-6,6,When will Orb\u00e1n vacate office?,Before 2013.,closed,6/25/12,3/30/13 0:00,3/31/13,3/31/13,d,4,\
"(a) By Sep, (b) By Dec, (c) By Mar, (d) Not before 1 April 2013"
1306-1,1,Will it exceed 400?,If so.,voided,11/20/13,12/30/13 0:00,12/31/13,1/14/14,,2,"If it does:  (a) Yes, (b) No"
"""
IFPS_MAP = """
encoding = "mac_roman"
instant = "%m/%d/%y"
offset = "-05:00"
sort = "at"

[[command]]
type = "open_question"
id = "open {ifp_id}"
[command.fields]
at = "{date_start}"
question = "{ifp_id}"
kind = "multiple_choice"
title = "{q_text} {options}"
outcomes = { from = "{n_opts}", map = { 2 = ["a", "b"], 3 = ["a", "b", "c"], 4 = ["a", "b", "c", "d"] } }
opens_at = "{date_start}"
closes_at = { from = "{date_closed}", end_of_day = true }

[[command]]
type = "resolve_question"
id = "answer {ifp_id}"
where = { q_status = "closed" }
[command.fields]
at = { from = "{date_closed}", end_of_day = true }
question = "{ifp_id}"
outcome = "{outcome}"

[[command]]
type = "annul_question"
id = "void {ifp_id}"
where = { q_status = "voided" }
[command.fields]
at = { from = "{date_closed}", end_of_day = true }
question = "{ifp_id}"
reason = "voided"
"""
# PredictionBook's forecasts as iqisa publishes them: one table, which has the question and its answer in every row.
BOOK = """question_id,user_id,team_id,probability,answer_option,timestamp,outcome,open_time,close_time,resolve_time,\
time_open,n_opts,options,q_status,q_type
2,gwern,0,0.6,1,2008-07-29 04:33:37+00:00,0.0,2008-07-29 04:33:37+00:00,2008-07-30 04:33:00+00:00,\
2008-07-30 05:00:00+00:00,1 days 00:00:00,2,"(0) No, (1) Yes",resolved,0
2,bran,0,0.7,1,2008-07-29 05:33:37+00:00,0.0,2008-07-29 04:33:37+00:00,2008-07-30 04:33:00+00:00,\
2008-07-30 05:00:00+00:00,1 days 00:00:00,2,"(0) No, (1) Yes",resolved,0
1,gwern,0,0.9,1,2008-07-28 04:33:37+00:00,1.0,2008-07-28 04:33:37+00:00,2008-08-28 04:33:37+00:00,\
2008-08-29 04:33:37+00:00,30 days 00:00:00,2,"(0) No, (1) Yes",resolved,0
1,bran,0,0.95,1,2008-07-29 04:33:37+00:00,1.0,2008-07-28 04:33:37+00:00,2008-08-28 04:33:37+00:00,\
2008-08-29 04:33:37+00:00,30 days 00:00:00,2,"(0) No, (1) Yes",resolved,0
3,bran,0,0.5,1,2008-07-29 04:33:37+00:00,-1.0,2008-07-28 04:33:37+00:00,2008-08-28 04:33:37+00:00,\
2008-08-29 04:33:37+00:00,30 days 00:00:00,2,"(0) No, (1) Yes",ambiguous,0
"""
_ASKED = """
sort = "at"
offset = "Z"

[[command]]
type = "open_question"
id = "open NAME"
[command.fields]
at = "{OPENS}"
question = "NAME"
kind = "binary"
opens_at = "{OPENS}"
closes_at = CLOSES

[[command]]
type = "add_question"
id = "add NAME"
[command.fields]
at = "{OPENS}"
contest = "c"
question = "NAME"
"""
BOOK_MAP = (
    _ASKED.replace("NAME", "{question_id}").replace("OPENS", "open_time").replace("CLOSES", '"{close_time}"')
    + """
[[command]]
type = "submit_forecast"
id = "forecast {question_id} {user_id} {timestamp}"
[command.fields]
at = "{timestamp}"
question = "{question_id}"
participant = "{user_id}"
probability = "{probability}"

[[command]]
type = "resolve_question"
id = "answer {question_id}"
where = { q_status = "resolved" }
[command.fields]
at = "{resolve_time}"
question = "{question_id}"
outcome = { from = "{outcome}", map = { "1.0" = "yes", "0.0" = "no" } }

[[command]]
type = "annul_question"
id = "void {question_id}"
where = { q_status = "ambiguous" }
[command.fields]
at = "{resolve_time}"
question = "{question_id}"
reason = "judged unknown"
"""
)
# FiveThirtyEight's mlb_elo.csv, newest first: a game a row, with two forecasts and the runs of both teams.
GAMES = """date,season,neutral,playoff,team1,team2,elo_prob1,elo_prob2,rating_prob1,rating_prob2,score1,score2
2021-10-03,2021,0,,STL,CHC,0.5,0.5,0.6,0.4,2,3
2021-10-03,2021,0,,SFG,SDP,0.7,0.3,0.8,0.2,11,4
2021-10-02,2021,0,,NYM,ATL,0.5,0.5,0.4,0.6,,
"""
_FORECAST = """
[[command]]
type = "submit_forecast"
id = "WHO {date} {team1} {team2}"
[command.fields]
at = "{date}"
question = "{date} {team1} {team2}"
participant = "WHO"
probability = "{WHO_prob1}"
"""
_WON = """
[[command]]
type = "resolve_question"
id = "ANSWER {date} {team1} {team2}"
above = { MORE = "{LESS}" }
[command.fields]
at = { from = "{date}", end_of_day = true }
question = "{date} {team1} {team2}"
outcome = "ANSWER"
"""
GAMES_MAP = (_ASKED.replace("NAME", "{date} {team1} {team2}").replace("OPENS", "date")).replace(
    "CLOSES", '{ from = "{date}", end_of_day = true }'
) + "".join(
    [
        _FORECAST.replace("WHO", "elo"),
        _FORECAST.replace("WHO", "rating"),
        _WON.replace("ANSWER", "yes").replace("MORE", "score1").replace("LESS", "score2"),
        _WON.replace("ANSWER", "no").replace("MORE", "score2").replace("LESS", "score1"),
    ]
)
BRIER = {"name": "brier", "kernel": "brier", "period": "covered", "total": "mean", "least_probability_ppm": 0}


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


def board(folder: Path) -> list[tuple[str, str]]:
    """The participants of the contest, and their scores."""
    rows = json.loads(run("table", str(folder / "log.db"), "leaderboard", "--format", "json").stdout)
    return [(row["participant"], row["score"]) for row in rows]


def begin(folder: Path, rules: dict[str, object]) -> None:
    """A ledger with the contest c."""
    line = {"id": "c", "type": "open_contest", "at": "2001-01-01T00:00:00Z", "contest": "c", "rules": rules}
    assert run("append", str(folder / "log.db"), "-", given=json.dumps(line).encode()).exit_code == FINE


def test_the_questions_of_the_good_judgment_project_go_in_as_they_are(tmp_path: Path) -> None:
    """Lines end in carriage returns; a letter is not UTF-8; commas are part of options, which are known by letter."""
    table = IFPS.encode("mac_roman").replace(b"\n", b"\r")
    assert append(tmp_path, IFPS_MAP, table) == (FINE, "")
    rows = json.loads(run("table", str(tmp_path / "log.db"), "questions", "--format", "json").stdout)
    assert [(row["question"], row["outcomes"], row["outcome"], row["state"]) for row in rows] == [
        ("1001-0", '["a", "b"]', "b", "resolved"),
        ("1007-0", '["a", "b", "c"]', "b", "resolved"),
        ("1113-6", '["a", "b", "c", "d"]', "d", "resolved"),
        ("1306-1", '["a", "b"]', None, "annulled"),
    ]
    assert "Orb\u00e1n vacate" in rows[2]["title"]
    assert rows[1]["closes_at"] == "2011-12-12T05:00:00Z"
    assert append(tmp_path, IFPS_MAP, table.replace(b"\r", b"\r\n")) == (FINE, "")  # all are there already
    code, told = append(tmp_path, IFPS_MAP.replace('encoding = "mac_roman"', ""), table)
    assert (code, 'such as encoding = "cp1252"' in told) == (FINDINGS, True)


def test_a_table_that_repeats_the_answer_in_every_row_loses_no_forecast(tmp_path: Path) -> None:
    """Sorted, commands go by their own instants: an answer comes after forecasts of later rows.

    gwern: ((0.6 - 0)² + (0.9 - 1)²) / 2 = 0.185. bran: (0.7² + 0.05²) / 2 = 0.24625.
    """
    begin(tmp_path, {**BRIER, "sampling": "spot"})
    assert append(tmp_path, BOOK_MAP, BOOK) == (FINE, "")
    assert board(tmp_path) == [("gwern", "0.185000000"), ("bran", "0.246250000")]


def test_games_are_won_by_the_team_with_more_runs(tmp_path: Path) -> None:
    """`above` compares two columns; a game without runs has no answer yet.

    elo: ((0.5 - 0)² + (0.7 - 1)²) / 2 = 0.17. rating: (0.6² + 0.2²) / 2 = 0.2.
    """
    begin(tmp_path, BRIER)
    assert append(tmp_path, GAMES_MAP, GAMES) == (FINE, "")
    assert board(tmp_path) == [("elo", "0.170000000"), ("rating", "0.200000000")]
    code, told = append(tmp_path, GAMES_MAP, GAMES.replace(",2,3", ",two,3"))
    assert (code, "line 2, resolve_question, column 'score1': bad_number: score1 = 'two'" in told) == (FINDINGS, True)


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
