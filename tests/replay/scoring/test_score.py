"""`forecast-ledger score`: tables in the shapes that people have, with scores worked out by hand."""

import json
import pickle
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import OpenContest
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from forecast_ledger.replay.reading.replay import replay
from forecast_ledger.replay.scoring import tables as reading
from forecast_ledger.replay.scoring.options import Options
from forecast_ledger.replay.scoring.plan import plan
from forecast_ledger.replay.scoring.score import record, score
from forecast_ledger.replay.scoring.tables import read_table, table_of_rows
from tests.replay.cli.test_main import run
from tests.support.late import openpyxl

HOME = "question,answer\nrain,1\nsnow,0\n"


def scored(folder: Path, tables: dict[str, str], *options: str, code: int = FINE) -> dict[str, str]:
    """The score of each participant, of tables that are written to files."""
    found = run("score", *written(folder, tables), *options, "--format", "json")
    assert found.exit_code == code, found.stderr
    return {row["participant"]: row["score"].rstrip("0").rstrip(".") for row in json.loads(found.stdout)}


def written(folder: Path, tables: dict[str, str]) -> list[str]:
    """The paths of tables that are written to files."""
    for name, text in tables.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in tables]


def refused(folder: Path, tables: dict[str, str], *options: str) -> str:
    """What is said of tables that are refused; nothing is printed to stdout, and no log is left."""
    log = folder / "season.db"
    found = run("score", *written(folder, tables), *options, "--log", str(log))
    assert (found.exit_code, found.stdout, log.exists()) == (USAGE, "", False)
    return found.stderr


# Name -> the tables, the options that settle them, and the scores. Binary Brier scores are (p - o)^2, those of several
# options half of the sum; a pinball score is twice the mean of (1 - t)(q - y) above the answer and t(y - q) below it.
SHAPES: dict[str, tuple[dict[str, str], list[str], dict[str, str]]] = {
    "a row each": (
        {"f.csv": "Question ID,User,Probability,Outcome\nrain,ada,0.8,yes\nsnow,ada,0.1,no\nrain,bo,0.4,yes\n"},
        [],
        {"ada": "0.025", "bo": "0.36"},  # (0.2² + 0.1²) / 2, 0.6²
    ),
    "a second table": (
        {"f.csv": "market,username,p\nrain,ada,0.8\nrain,bo,0.4\nsnow,bo,0.3\n", "a.csv": HOME},
        [],
        {"ada": "0.04", "bo": "0.225"},  # 0.2², (0.6² + 0.3²) / 2
    ),
    "names of games and of bots": (
        {"f.csv": "id,match_id,model,win_prob,actual_outcome\n1,final,elo,0.8,1\n2,cup,elo,0.1,0\n"},
        [],
        {"elo": "0.025"},
    ),
    "a name of another thing beside the usual one": (
        {"f.csv": "id,ticker,bot,p,win_prob,outcome\n1,AAA,m,0.9,0.5,1\n2,AAA,m,0.8,0.5,1\n3,B,m,0.5,0.9,0\n"},
        [],
        {"m": "0.1"},  # (0.1² + 0.2² + 0.5²) / 3
    ),
    "times of which the last counts": (
        {
            "f.csv": "question,model,timestamp,forecast\n"
            "rain,m1,2026-03-04T09:00:00Z,0.9\nrain,m1,2026-03-01T09:00:00Z,0.2\nrain,m2,2026-03-02T09:00:00Z,0.5\n",
            "a.csv": HOME,
        },
        [],
        {"m1": "0.01", "m2": "0.25"},  # 0.1² of the later one, which is first in the table
    ),
    "the newest first, with the answers": (
        {
            "f.csv": "question,user,time,p,outcome\nrain,ada,2026-03-03T09:00:00Z,0.9,1\n"
            "rain,bo,2026-03-02T09:00:00Z,0.6,1\nrain,ada,2026-03-01T09:00:00Z,0.2,1\n"
        },
        [],
        {"ada": "0.01", "bo": "0.16"},
    ),
    "percent with a sign, semicolons, a decimal comma": (
        {"f.csv": "question;Name;Prob\nrain;ada;62,5%\nsnow;ada;10 %\n", "a.csv": HOME},
        [],
        {"ada": "0.0753125"},  # (0.375² + 0.1²) / 2
    ),
    "numbers without a digit before or after the point": (
        {"f.csv": "question,Name,Prob\nrain,ada,.6\nsnow,ada,0.\n", "a.csv": HOME},
        [],
        {"ada": "0.08"},  # (0.4² + 0²) / 2
    ),
    "numbers without a digit before the comma": (
        {"f.csv": "question;Name;Prob\nrain;ada;,6\nsnow;ada;0,\n", "a.csv": HOME},
        [],
        {"ada": "0.08"},
    ),
    "percent in the name of the column": (
        {"f.csv": "Statement;Name;Forecast (%);Happened\nrain;ada;80;yes\nsnow;ada;0,5;no\n"},
        [],
        {"ada": "0.0200125"},  # (0.2² + 0.005²) / 2
    ),
    "a column for each forecaster": (
        {"f.csv": "question,Ada,Bo,Result\nrain,0.8,0.3,yes\nsnow,0.1,,no\n"},
        [],
        {"Ada": "0.025", "Bo": "0.49"},
    ),
    "an office pool: a column for each question, and a row with the answers": (
        {"pool.csv": "Name,Rain on Friday?,Snow?\nAda,60%,5%\nBo,,20%\nAnswer,yes,no\n"},
        [],
        {"Ada": "0.08125", "Bo": "0.04"},  # (0.4² + 0.05²) / 2
    ),
    "a column for each option": (
        {"sub.csv": "id,p_red,p_green,p_blue,label\n1,0.5,0.3,0.2,red\n2,0.1,0.1,0.8,green\n"},
        [],
        {"sub": "0.46"},  # (0.5² + 0.3² + 0.2²) / 2 = 0.19; (0.1² + 0.9² + 0.8²) / 2 = 0.73
    ),
    "a row for each option, which says whether it happened": (
        {
            "f.csv": "qid,model,option,prob,resolution\n"
            "q1,m1,red,0.5,0\nq1,m1,blue,0.5,1\nq1,m2,red,0.2,0\nq1,m2,blue,0.8,1\n"
        },
        [],
        {"m1": "0.25", "m2": "0.04"},
    ),
    "a row for each option, other options for each question": (
        {
            "f.csv": "qid,user,answer_option,value\nq1,1,a,0.7\nq1,1,b,0.3\nq2,1,a,0.2\nq2,1,b,0.2\nq2,1,c,0.6\n",
            "a.csv": "qid,outcome\nq1,b\nq2,c\n",
        },
        [],
        {"1": "0.305"},  # (0.7² + 0.7²) / 2 = 0.49; (0.2² + 0.2² + 0.4²) / 2 = 0.12
    ),
    "a row for each quantile": (
        {
            "f.csv": "model,question,quantile,value\nnorth,oslo,0.1,14\nnorth,oslo,0.5,20\nnorth,oslo,0.9,31.5\n",
            "a.csv": "question,observed\noslo,18\n",
        },
        [],
        {"north": "1.833333333"},  # 2/3 x (0.1 x 4 + 0.5 x 2 + 0.1 x 13.5)
    ),
    "a column for each quantile": (
        {"f.csv": "question,model,p10,p50,p90,actual\noslo,north,14,20,31.5,18\n"},
        [],
        {"north": "1.833333333"},
    ),
    "JSON lines": (
        {
            "f.jsonl": '{"question": "rain", "model": "m", "probability": 0.70, "resolution": true}\n'
            '{"question": "snow", "probability": 0.2, "model": "m", "resolution": false}\n'
        },
        [],
        {"m": "0.065"},  # (0.3² + 0.2²) / 2
    ),
    "questions of several kinds, by what their rows fill": (
        {
            "f.csv": "question,user,option,quantile,prediction\n"
            "rain,ada,,,0.8\ncup,ada,red,NA,0.3\ncup,ada,blue,,0.7\n",
            "a.csv": "question,resolution\nsnow,no\ncup,blue\nrain,yes\n",
        },
        [],
        {"ada": "0.065"},  # (0.2² + (0.3² + 0.3²) / 2) / 2
    ),
    "questions of some kinds, as a column says them": (
        {
            "f.csv": "id,question_type,who,option,p,outcome\n"
            "rain,binary,ada,,0.8,yes\ncup,MC,ada,red,0.3,blue\ncup,MC,ada,blue,0.7,blue\ncpi,numeric,ada,,3.1,2.9\n"
        },
        ["--kinds", "binary,multiple_choice"],
        {"ada": "0.065"},
    ),
    "a benchmark of bots: several kinds, lists in cells, the newest first, times with a short offset": (
        {
            "f.csv": "forecast_id,question_id,question_title,probability_yes,per_category,"
            "continuous_cdf,forecast_timestamp,forecaster,resolution,scheduled_close_time,actual_close_time,type,options\n"
            '9,7,Rain?,0.9,,,2026-03-03 22:12:07.7+00,ada,no,"",2026-03-04 23:00:00+00,binary,\n'
            '8,8,Cup?,,"[0.3,0.7]",,2026-03-03 09:12:07+00,ada,blue,,'
            '2026-03-04 23:00:00+00,multiple_choice,"[""red"",""blue""]"\n'
            "7,9,Hail?,0.5,,,2026-03-02 22:12:07+00,ada,annulled,,2026-03-04 23:00:00+00,binary,\n"
            "6,7,Rain?,0.4,,,2026-03-02 22:12:07+00,bo,no,,2026-03-04 23:00:00+00,binary,\n"
            "5,7,Rain?,0.2,,,2026-03-02 09:12:07+00,ada,no,,2026-03-04 23:00:00+00,binary,\n"
        },
        ["--column", "closes=actual_close_time", "--kinds", "binary"],
        {"ada": "0.81", "bo": "0.16"},
    ),
    "bots and people beside each other, with ids of two sites": (
        {
            "f.csv": "bot_question_id,cp_post_id,title,resolution,cp_reveal_time,community_prediction,bot_median\n"
            "28959,28972.0,Rain?,0,2026-03-01 14:30:00+00:00,0.6,0.5375\n"
            "28960,28974.0,Snow?,1,2026-03-01 14:30:00+00:00,0.55,0.6\n"
        },
        ["--column", "question=bot_question_id"],
        {"community_prediction": "0.28125", "bot_median": "0.224453125"},  # (0.6² + 0.45²) / 2, (0.5375² + 0.4²) / 2
    ),
    "a register of predictions: percentages, and words for right and wrong": (
        {
            "f.csv": "event,number,outcome,user,time,credence,time_known\n"
            "“Yes” wins,17,right,ada,2026-03-01 22:09:21+00:00,66,2026-03-17 12:00:00+00:00\n"
            "“Yes” wins,17,right,bo,2026-03-01 22:09:21+00:00,100,2026-03-17 12:00:00+00:00\n"
            "I win,18,wrong,ada,2026-03-02 22:09:21+00:00,10,2026-03-18 12:00:00+00:00\n"
        },
        ["--percent", "--answer", "right=yes", "--answer", "wrong=no"],
        {"ada": "0.0628", "bo": "0"},  # (0.34² + 0.1²) / 2
    ),
    "a hub: a question of three columns, and more answers than forecasts": (
        {
            "f.csv": "reference_date,target,horizon,target_end_date,location,output_type,output_type_id,value\n"
            "2026-01-31,flu,0,2026-01-31,oslo,quantile,0.1,14\n2026-01-31,flu,0,2026-01-31,oslo,quantile,0.5,20\n"
            "2026-01-31,flu,0,2026-01-31,oslo,quantile,0.9,31.5\n",
            "a.csv": '"target_end_date","location","target","oracle_value"\n2026-01-31,"oslo","flu",18\n'
            '2026-01-24,"oslo","flu",3.69\n',
        },
        [
            *("--column", "question=target,target_end_date,location", "--column", "quantile=output_type_id"),
            *("--column", "value=value", "--column", "time=", "--forecaster", "north"),
        ],
        {"north": "1.833333333"},
    ),
    "several columns that are the question": (
        {"f.csv": "city,day,who,p,outcome\noslo,1,ada,0.9,1\noslo,2,ada,0.5,0\n"},
        ["--column", "question=city,day"],
        {"ada": "0.13"},  # (0.1² + 0.5²) / 2
    ),
    "independent options, and answers that name one": (
        {
            "f.csv": "question,user,option,p\ncup,ada,red,0.8\ncup,ada,blue,0.5\ncup,bo,red,0.3\nvase,bo,red,0.1\n",
            "a.csv": "question,answer\ncup,blue\nvase,red\nbowl,red\n",
        },
        ["--independent"],
        {"ada": "0.445", "bo": "0.45"},  # (0.8² + 0.5²) / 2, (0.3² + 0.9²) / 2
    ),
    "independent options, others for each question, which two columns name, with closes of their own": (
        {
            "f.csv": "city,day,user,date,option,p\noslo,1,ada,2026-03-01,sun,0.9\noslo,1,ada,2026-03-01,rain,0.4\n"
            "oslo,2,ada,2026-03-02,fog,0.7\n",
            "a.csv": "city,day,answer,closes\noslo,1,sun,2026-03-03\noslo,2,none,2026-03-03\n",
        },
        ["--independent", "--column", "question=city,day"],
        {"ada": "0.085"},  # (0.1² + 0.4²) / 2; fog has no answer
    ),
    "independent options beside the answer that names one": (
        {"f.csv": "question,user,option,p,answer\ncup,ada,red,0.8,red\ncup,ada,blue,0.5,red\ncup,ada,tin,NA,red\n"},
        ["--independent"],
        {"ada": "0.145"},  # (0.2² + 0.5²) / 2
    ),
    "independent options that each have an answer": (
        {"f.csv": "question,user,option,p,answer\ncup,ada,red,0.8,1\ncup,ada,blue,0.5,1\ncup,ada,tin,0.1,0\n"},
        ["--independent"],
        {"ada": "0.1"},  # (0.2² + 0.5² + 0.1²) / 3
    ),
    "independent options in columns beside the answer": (
        {
            "f.csv": "question,user,p_red,p_blue,p_a.b,answer\ncup,ada,0.8,0.5,NA,blue\nvase,ada,,0.3,0.4,a.b\n"
            "bowl,ada,0.9,,,void\nvase,bo,,0.3,0,a.b\n"
        },
        ["--independent"],
        {"ada": "0.335", "bo": "0.545"},  # (0.8² + 0.5² + 0.3² + 0.6²) / 4, (0.3² + 1²) / 2
    ),
    "independent options in columns, and a second table": (
        {"f.csv": "question,user,red,blue\ncup,ada,0.8,0.5\ncup,bo,0.3,0.1\n", "a.csv": "question,answer\ncup,red\n"},
        ["--independent"],
        {"ada": "0.145", "bo": "0.25"},  # (0.2² + 0.5²) / 2, (0.7² + 0.1²) / 2
    ),
    "independent options among other questions": (
        {"f.csv": "question,user,option,p,answer\nrain,ada,,0.8,yes\ncup,ada,red,0.8,red\ncup,ada,blue,0.5,red\n"},
        ["--independent"],
        {"ada": "0.11"},  # (0.2² + 0.2² + 0.5²) / 3
    ),
    "nobody is named": ({"mine.csv": "question,p,outcome\nrain,0.9,1\n"}, [], {"mine": "0.01"}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_is_scored_as_it_is(shape: str, tmp_path: Path) -> None:
    """Columns are recognised by their usual names; the scores are those worked out above."""
    tables, options, expected = SHAPES[shape]
    assert scored(tmp_path, tables, *options) == expected


# Name -> the tables that are refused, what the refusal says, and the options that settle it, with the scores.
AMBIGUOUS: dict[str, tuple[dict[str, str], list[str], list[str], dict[str, str]]] = {
    "two columns that may name the forecaster": (
        {"f.csv": "question,user,model,p,outcome\nrain,ada,m1,0.9,1\nrain,bo,m1,0.8,1\n"},
        ["'user', 'model'", "--column forecaster=user"],
        ["--column", "forecaster=user"],
        {"ada": "0.01", "bo": "0.04"},
    ),
    "two columns that may have the probability": (
        {"f.csv": "question,user,forecast,win_prob,outcome\nrain,ada,0.9,0.5,1\n"},
        ["'forecast', 'win_prob'", "--column probability=forecast"],
        ["--column", "probability=forecast"],
        {"ada": "0.01"},
    ),
    "percent or not": (
        {"f.csv": "question,user,p,outcome\nrain,ada,90,1\nrain,bo,0.8,1\n"},
        ["p = '90': f.csv, line 2: more than 1", "--percent"],
        ["--percent"],
        {"ada": "0.01", "bo": "0.984064"},  # 0.992²
    ),
    "only some with a sign": (
        {"f.csv": "question,user,p,outcome\nrain,ada,90%,1\nrain,bo,0.8,1\n"},
        ["'90%'", "'0.8'", "--percent"],
        ["--percent"],
        {"ada": "0.01", "bo": "0.984064"},
    ),
    "the day or the month first": (
        {"f.csv": "question,user,date,p\nrain,ada,03/04/2026,0.9\nrain,ada,04/03/2026,0.8\n", "a.csv": HOME},
        ["03/04/2026", "--day-first or --month-first"],
        ["--day-first"],
        {"ada": "0.01"},  # April 3rd is later
    ),
    "the same with the month first": (
        {"f.csv": "question,user,date,p\nrain,ada,03/04/2026,0.9\nrain,ada,04/03/2026,0.8\n", "a.csv": HOME},
        ["03/04/2026"],
        ["--month-first"],
        {"ada": "0.04"},  # April 3rd is 04/03
    ),
    "no time zone": (
        {"f.csv": "question,user,time,p\nrain,ada,2026-03-01 09:00:00,0.9\n", "a.csv": HOME},
        ["do not say their time zone", "--zone UTC"],
        ["--zone", "Europe/Berlin"],
        {"ada": "0.01"},
    ),
    "an answer that is no known word": (
        {"f.csv": "question,user,p,outcome\nrain,ada,0.9,ja\nsnow,ada,0.5,nein\n"},
        ["'ja', 'nein' may be", '--answer "ja=MEANING" --answer "nein=MEANING"', "f.csv, line 2"],
        ["--answer", "ja=yes", "--answer", "nein=no"],
        {"ada": "0.13"},
    ),
    "options or forecasters": (
        {"f.csv": "question,red,blue\nq1,0.7,0.3\n", "a.csv": "question,answer\nq1,red\n"},
        ["each row sums to 1", "--columns-are options"],
        ["--columns-are", "options"],
        {"f": "0.09"},
    ),
    "sums that are not 1": (
        {"f.csv": "question,user,option,p\nq,a,x,0.33\nq,a,y,0.33\nq,a,z,0.33\n", "a.csv": "question,answer\nq,x\n"},
        ["not_summing_to_one", "line 2", "--normalize 0.01"],
        ["--normalize", "0.01"],
        {"a": "0.333333333"},  # ((2/3)² + (1/3)² + (1/3)²) / 2
    ),
    "options of which several may come true": (
        {
            "f.csv": "qid,user,option,p\nq,a,x,0.9\nq,a,y,0.8\nq,a,z,0.3\n",
            "a.csv": "qid,option,resolved_to\nq,x,1\nq,y,1\nq,z,0\n",
        },
        ["1 of 1 forecasts do not sum to 1", "--normalize 1.0", "--independent"],
        ["--independent"],
        {"a": "0.046666667"},  # (0.1² + 0.2² + 0.3²) / 3
    ),
    "sums far from 1": (
        {"f.csv": "qid,user,option,p\nq,a,x,0.9\nq,a,y,0.8\nq,a,z,0.8\n", "a.csv": "qid,answer\nq,x\n"},
        ["1 of 1 forecasts do not sum to 1", "--normalize 1.5"],
        ["--normalize", "1.5"],
        {"a": "0.3072"},  # shares 0.36, 0.32 and 0.32: (0.64² + 0.32² + 0.32²) / 2
    ),
    "a question of two kinds": (
        {"f.csv": "question,user,option,p,outcome\nq,ada,,0.9,x\nq,ada,x,0.4,x\nq,ada,y,0.6,x\nrain,bo,,0.8,1\n"},
        ["some of its rows are those of a binary question", "--column kind=NAME"],
        ["--kinds", "multiple_choice"],
        {"ada": "0.36"},
    ),
    "numeric questions without quantiles": (
        {"f.csv": "id,type,who,p,outcome\nrain,binary,ada,0.8,yes\ncpi,numeric,ada,3.1,2.9\n"},
        ["numeric questions: their rows have probabilities, and no quantiles", "--kinds binary,multiple_choice"],
        ["--kinds", "binary"],
        {"ada": "0.04"},
    ),
    "two forecasts and no time": (
        {"f.csv": "question,user,p,outcome,round\nrain,ada,0.9,1,2026-03-02\nrain,ada,0.8,1,2026-03-01\n"},
        ["lines 2 and 3", "--column time=NAME"],
        ["--column", "time=round"],
        {"ada": "0.01"},
    ),
    "no answers": (
        {"f.csv": "question,user,p,result_text\nrain,ada,0.9,yes\n"},
        ["no second table", "--column outcome=NAME; the columns are 'question', 'user', 'p', 'result_text'"],
        ["--column", "outcome=result_text"],
        {"ada": "0.01"},
    ),
    "no column of probabilities": (
        {"f.csv": "question,user,guesses,outcome\nrain,ada,0.9,yes\n"},
        ["perhaps 'guesses'", "--column probability=NAME"],
        ["--column", "probability=guesses"],
        {"ada": "0.01"},
    ),
    "columns of which none is known": (
        {"f.csv": "Frage,Mitarbeiter,Tipp,Datum,Ergebnis\nrain,ada,0.9,2026-03-01,yes\n"},
        [
            "of a forecast (perhaps 'Tipp'), the question, the answer; ",
            "=NAME --column question=NAME --column outcome=",
        ],
        ["--column", "probability=Tipp", "--column", "question=Frage", "--column", "outcome=Ergebnis"],
        {"f": "0.01"},
    ),
    "columns of games, of which none is known": (
        {"f.csv": "home,away,chance,chance2,won\nx,y,0.9,0.1,1\n"},
        [
            "to have the question or the forecaster; of a table with a row for each forecast, name its columns: ",
            "--column probability=NAME --column question=NAME --column outcome=NAME; of one with a column for each q",
        ],
        ["--column", "probability=chance", "--column", "question=home,away", "--column", "outcome=won"],
        {"f": "0.01"},
    ),
    "columns that are no questions": (
        {"f.csv": "model,state,red,blue,winner\nm1,OH,0.9,0.1,red\nm1,PA,0.4,0.6,blue\n"},
        [
            "lines 2 and 3 both have",
            "if the columns are no questions, name that of the question, --column question=NAME",
        ],
        ["--column", "question=state", "--column", "outcome=winner"],
        {"m1": "0.085"},  # (0.1² + 0.4²) / 2
    ),
    "a forecaster who is named twice": (
        {"f.csv": "question,user_id,p,outcome\nrain,u7,0.9,1\n"},
        ["f.csv: the column 'user_id' may say who made each forecast", "--column forecaster="],
        ["--column", "forecaster="],
        {"market": "0.01"},
    ),
    "forecasters who are named twice": (
        {"f.csv": "question,fair,raw,outcome\nrain,0.9,0.8,1\n"},
        ["the columns fair, raw may be those of the forecasters", "--column probability=NAME"],
        ["--column", "probability=fair"],
        {"market": "0.01"},
    ),
    "a kind, and no known probability": (
        {"f.csv": "qid,type,model,parsed,ok,outcome\nrain,binary,m1,0.9,1,yes\ncpi,numeric,m1,0.5,1,\n"},
        ["the columns parsed, ok may be their options", "name it, --column probability=NAME, or say"],
        ["--column", "probability=parsed", "--kinds", "binary"],
        {"m1": "0.01"},
    ),
    "a winner whom no option names": (
        {
            "f.csv": "question,user,option,p\nrain,ada,,0.9\ncup,ada,x,0.4\ncup,ada,y,0.6\n",
            "a.csv": "question,answer\nrain,Smith\ncup,y\n",
        },
        ["binary questions: 'Smith' may be yes", "--kinds multiple_choice,numeric"],
        ["--kinds", "multiple_choice"],
        {"ada": "0.16"},
    ),
    "nobody who made two forecasts": (
        {"f.csv": "question,Mitarbeiter,p,outcome\nrain,ada,0.9,1\nrain,bo,0.8,1\n"},
        ["lines 2 and 3", "--column forecaster=NAME, or", "the columns are 'question', 'Mitarbeiter'"],
        ["--column", "forecaster=Mitarbeiter"],
        {"ada": "0.01", "bo": "0.04"},
    ),
    "a time that is unlike the others": (
        {"f.csv": "question,user,date,p,outcome\nrain,ada,2026-03-01,0.9,1\nrain,bo,soon,0.8,1\n"},
        ["date = 'soon': f.csv, line 3: not in the format of the others", "correct the cell"],
        ["--column", "time="],
        {"ada": "0.01", "bo": "0.04"},
    ),
    "rules that weigh time, and no close": (
        {"f.csv": "question,user,date,p\nrain,ada,2026-03-01,0.8\nrain,ada,2026-03-02,0.9\n", "a.csv": HOME},
        ["the rules brier-daily weigh forecasts by the time", "--closes"],
        ["--closes", "2026-03-04"],
        {"ada": "0.04"},  # 2 (0.2² + 0.1² + 0.1²) / 3
    ),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_is_ambiguous_is_refused_until_an_option_settles_it(name: str, tmp_path: Path) -> None:
    """The refusal says what may be meant, and names the option; with it, the scores are those worked out above."""
    tables, said, options, expected = AMBIGUOUS[name]
    rules = ["--rules", "brier-daily"] if "rules" in name else []
    rules += ["--forecaster", "market"] if "named twice" in name else []
    told = refused(tmp_path, tables, *rules)
    assert [part for part in said if part not in told] == [], told
    assert scored(tmp_path, tables, *rules, *options) == expected


def test_all_that_is_ambiguous_is_told_at_once(tmp_path: Path) -> None:
    """A line each, but nothing of a column that may be another one, as those of the times and of the answers may."""
    tables = {
        "f.csv": "question,user,date,timestamp,forecast\nrain,ada,03/04/2026,1,80\n",
        "a.csv": "question,answer,outcome,closes\nrain,ja,nein,2026-03-04 09:00:00\n",
    }
    told = [line.removeprefix("forecast-ledger: ") for line in refused(tmp_path, tables).splitlines()]
    assert [line.split(":")[1] for line in told] == [" time", " forecast = '80'", " outcome", " closes"]
    assert [line.startswith("also ") for line in told] == [False, True, True, True]


def test_all_that_is_ambiguous_is_told_of_questions_of_several_kinds(tmp_path: Path) -> None:
    """What is ambiguous of one kind does not hide the rest."""
    table = "question,user,model,option,forecast\nrain,ada,m,,80\nwin,ada,m,red,70\nwin,ada,m,blue,30\n"
    told = refused(tmp_path, {"f.csv": table, "a.csv": "question,outcome\nrain,ja\nwin,red\n"}).splitlines()
    fields = [line.removeprefix("forecast-ledger: ").split(": ")[1] for line in told]
    assert fields == ["forecaster", "forecast = '80'", "outcome = 'ja'"]


def test_a_refusal_of_a_table_can_be_pickled() -> None:
    """With its notes, as every error of the project."""
    rows = [{"question": "rain", "user": "ada", "model": "m", "p": "80", "outcome": "1"}]
    with pytest.raises(Refused) as refused:
        plan(table_of_rows(rows, "f"), None, Options())
    back = pickle.loads(pickle.dumps(refused.value))  # noqa: S301 - our own bytes
    assert (str(back), back.__notes__) == (str(refused.value), refused.value.__notes__)
    assert back.__notes__[0].startswith("also ambiguous: p = '80': f, row 1: more than 1")


def test_what_was_recognised_is_said_column_by_column(tmp_path: Path) -> None:
    """Every column is named, also those that are not used, and so is what the rules count."""
    table = "Question ID,User,Date,Prob,Note\nrain,ada,3/14/2026,60%,x\nhail,ada,3/2/2026,10%,\n"
    found = run("score", *written(tmp_path, {"f.csv": table, "a.csv": f"{HOME}ice,1\nhail,\n"}))
    assert found.exit_code == FINE
    for line in (
        "f.csv: 2 rows",
        "question     'Question ID'",
        "time         'Date': days as %m/%d/%Y, in UTC",
        "probability  'Prob': in percent",
        "not used     'Note'",
        "'1': yes",
        "'': no answer yet",
        "left out     'snow', 'ice': on which there is no forecast",
        "2 binary questions, 1 forecaster, 2 forecasts",
        "all questions close at 2026-03-15T00:00:00Z",
        "the last forecast before the close counts; lower is better",
    ):
        assert line in found.stderr
    assert "to see this as a map, which you can edit: --write-map FILE" in found.stderr
    assert "[[command]]" not in found.stderr  # the map itself is longer than all the rest


@pytest.mark.parametrize("shape", SHAPES)
def test_the_maps_that_are_written_give_the_same_log(shape: str, tmp_path: Path) -> None:
    """`append --map` accepts as many commands, and the tables of both logs are the same, digest by digest."""
    tables, options, _ = SHAPES[shape]
    here, there = str(tmp_path / "here.db"), str(tmp_path / "there.db")
    paths = written(tmp_path, tables)
    found = run("score", *paths, *options, "--log", here, "--write-map", str(tmp_path / "own.toml"))
    assert found.exit_code == FINE
    lines = [line.split() for line in found.stderr.splitlines() if line.startswith("the same by a map:")]
    assert {table for *_, table in lines} == {*paths}
    for *_, path, table in lines:
        assert run("append", there, "--map", path, table).exit_code == FINE
    digests = [[replay(log).table(name).digest() for name in ("leaderboard", "scores")] for log in (here, there)]
    assert digests[0] == digests[1]


def test_a_table_with_times_and_closes_of_its_own(tmp_path: Path) -> None:
    """The close of each question comes from the table of answers: until the end of that day, by which time counts."""
    tables = {
        "f.csv": "question,user,date,p\nrain,ada,2026-03-01,0.8\nrain,ada,2026-03-02,0.9\n",
        "a.csv": "question,open_date,close_date,outcome\nrain,2026-03-01,2026-03-02,yes\n",
    }
    assert scored(tmp_path, tables, "--rules", "brier-daily") == {"ada": "0.05"}  # 2 (0.2² + 0.1²) / 2
    assert scored(tmp_path, tables, "--rules", "peer") == {"ada": "0"}  # alone, there are no peers
    said = run("score", *written(tmp_path, tables)).stderr
    assert "opens        'open_date': days, in UTC\n" in said
    assert "closes       'close_date': days, in UTC; questions close at the end of the day\n" in said


def test_a_row_that_is_refused_is_named_and_the_others_count(tmp_path: Path) -> None:
    """The exit code is 1, as that of `append`; a probability that is no number makes no forecast, and is said."""
    table = "question,user,p,outcome\nrain,ada,0.9,1\nrain,bo,-0.1,1\nrain,cy,NA,1\n"
    found = run("score", *written(tmp_path, {"f.csv": table}), "--format", "csv")
    assert found.exit_code == FINDINGS
    assert found.stdout.splitlines() == ["rank,participant,score,completion", "1,ada,0.010000000,1/1"]
    assert "line 3, submit_forecast, column 'p': out_of_range" in found.stderr
    assert "no forecast is made of 1 row without a number" in found.stderr


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ("question,user,p,outcome\nhail,ada,0.8,yes,really\nrain,ada,0.8,yes\n", {"ada": "0.04"}),
        ("Name,Tea?,Late?\nDi,10%\nAda,60%,5%\nAnswer,yes,no\n", {"Ada": "0.08125"}),  # (0.4² + 0.05²) / 2
        ("#,question,user,p,outcome\n0,hail,ada,0.9,yes\n2,rain,ada,0.8,yes\n", {"ada": "0.025"}),
    ],
)
def test_a_first_row_that_is_refused_loses_no_other(text: str, scores: dict[str, str], tmp_path: Path) -> None:
    """The contest was opened with the first row alone, and all that was scored was a traceback."""
    assert scored(tmp_path, {"f.csv": text}, code=FINE if text.startswith("#") else FINDINGS) == scores


def test_a_contest_whose_name_is_refused_has_no_board(tmp_path: Path) -> None:
    """It ended in a traceback."""
    found = run("score", *written(tmp_path, {"first.csv": FIRST}), "--contest", "a\tb")
    assert (found.exit_code, found.stdout) == (FINDINGS, "")
    assert "open_contest: id_not_plain" in found.stderr


def test_a_question_that_does_not_count_is_annulled(tmp_path: Path) -> None:
    """An answer such as void or ambiguous takes the question out of all scores."""
    table = "question,user,p,outcome\nrain,ada,0.9,1\nsnow,ada,0.5,Ambiguous\n"
    assert scored(tmp_path, {"f.csv": table}) == {"ada": "0.01"}


def test_without_the_answers_row_a_pool_needs_a_table_of_answers(tmp_path: Path) -> None:
    """Its questions are the titles of the columns."""
    pool = {"pool.csv": "Name,Rain?,Snow?\nAda,60%,5%\n", "a.csv": "Question,Answer\nRain?,yes\nSnow?,no\n"}
    assert scored(tmp_path, pool) == {"Ada": "0.08125"}


def test_a_workbook_and_a_parquet_file_are_tables(tmp_path: Path) -> None:
    """A percentage of a workbook is one; instants of Parquet that have a time zone need no other."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["Name", "Rain?", "Snow?"], ["Ada", 0.6, 0.05], ["Bo", None, 0.2], ["Answer", "yes", "no"]):
        sheet.append(row)
    for cell in ("B2", "C2", "C3"):
        sheet[cell].number_format = "0%"
    book.save(tmp_path / "pool.xlsx")
    found = run("score", str(tmp_path / "pool.xlsx"), "--format", "csv")
    assert found.stdout.splitlines()[1:] == ["1,Bo,0.040000000,1/2", "2,Ada,0.081250000,2/2"]
    assert "questions    the columns 'Rain?', 'Snow?': in percent" in found.stderr
    rows = {
        "question": ["rain", "rain"],
        "model": ["m", "m"],
        "time": pa.array([2, 1], pa.timestamp("us", tz="Europe/Berlin")),
        "forecast": [0.9, 0.2],
        "resolution": [1.0, 1.0],
    }
    pq.write_table(pa.table(rows), tmp_path / "f.parquet")
    found = run("score", str(tmp_path / "f.parquet"), "--format", "csv")
    assert found.stdout.splitlines()[1:] == ["1,m,0.010000000,1/1"]
    assert "the time" not in found.stderr


def book(path: Path, sheets: dict[str, list[list[Any]]]) -> str:
    """A workbook with these sheets."""
    made = openpyxl.Workbook()
    made.remove(made.worksheets[0])
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return str(path)


TIPS: list[list[Any]] = [["question", "user", "p"], ["rain", "ada", 0.8], ["snow", "ada", 0.1], ["rain", "bo", 0.4]]
TRUTH: list[list[Any]] = [["question", "answer"], ["rain", "yes"], ["snow", "no"]]
TWO = ["1,ada,0.025000000,2/2", "2,bo,0.360000000,1/2"]  # (0.2² + 0.1²) / 2, 0.6²


@pytest.mark.parametrize(
    "names", [("Tips", "Outcomes"), ("results ", "Answers!")], ids=["usual", "one of two is usual"]
)
def test_the_answers_may_be_on_a_second_sheet_of_the_workbook(names: tuple[str, str], tmp_path: Path) -> None:
    """Of two sheets, one named as answers are has them, wherever it stands; the map reads each sheet by its name."""
    tips, told = names if names[1] == "Outcomes" else names[::-1]
    path = book(tmp_path / "pool.xlsx", {name: TIPS if name == tips else TRUTH for name in names})
    found = run("score", path, "--format", "csv", "--write-map", str(tmp_path / "own.toml"))
    assert found.stdout.splitlines()[1:] == TWO
    assert f"pool.xlsx, sheet {told!r}: 2 rows" in found.stderr
    for part in ("forecasts", "answers"):
        made = run("append", str(tmp_path / "own.db"), path, "--map", str(tmp_path / f"own-{part}.toml"))
        assert made.exit_code == FINE, made.stderr
    assert run("leaderboard", str(tmp_path / "own.db"), "--format", "csv").stdout.count("ada,0.025") == 1


def test_sheets_that_are_not_recognised_are_named_by_options(tmp_path: Path) -> None:
    """Nothing is guessed of three sheets, or of other names; a hidden sheet is none; a refusal names the sheet."""
    path = book(tmp_path / "pool.xlsx", {"Notes": [["see below"]], "Tips": TIPS, "Truth": TRUTH})
    asked = run("score", path)
    assert asked.exit_code == USAGE
    assert "'Notes', 'Tips', 'Truth'; name the sheet with --sheet and, if the answers are on another" in asked.stderr
    found = run("score", path, "--sheet", "Tips", "--answers-sheet", "Truth", "--format", "csv")
    assert found.stdout.splitlines()[1:] == TWO
    odd = book(tmp_path / "odd.xlsx", {"Tips": [*TIPS, ["snow", "bo", "half"]], "Answers": TRUTH})
    assert "odd.xlsx, Tips row 5" in run("score", odd).stderr


def test_a_role_that_no_column_has_is_left_out(tmp_path: Path) -> None:
    """`--column time=` says that a column with the name of a time is none; a role that there is not is refused."""
    table = {"f.csv": "question,user,date,p,outcome\nrain,ada,soon,0.9,1\n"}
    assert "in none known here" in refused(tmp_path, table)
    assert scored(tmp_path, table, "--column", "time=") == {"ada": "0.01"}
    assert "there is no such role" in refused(tmp_path, table, "--column", "when=date")
    assert "no column has this name; the columns are: date, " in refused(tmp_path, table, "--column", "time=dates")


def test_a_json_array_is_refused_with_how_to_make_lines_of_it(tmp_path: Path) -> None:
    """Its first line would be a strange header."""
    assert "FILE is one JSON array; write each object" in refused(
        tmp_path, {"f.json": '[\n {"question": "rain", "p": 1}]'}
    )
    spread = '{\n  "forecasts": [\n    {"question": "rain", "p": 1}\n  ]\n}\n'
    assert "several lines; write each row on a line of its own, as jq -c . FILE" in refused(
        tmp_path, {"f.json": spread}
    )
    own = '{"organization": "o", "forecasts": [{"id": "q", "forecast": 0.2}]}\n'
    assert "forecast-ledger import-from forecastbench LOG FOLDER" in refused(tmp_path, {"f.json": own, "a.csv": HOME})


def test_two_answers_to_one_question_are_refused(tmp_path: Path) -> None:
    """With the lines of both, and so are tables that share no question."""
    table = {"f.csv": "question,user,p\nrain,ada,0.9\n", "a.csv": "question,answer\nrain,yes\nrain,no\n"}
    assert "a.csv: lines 2 and 3 say 'yes' and 'no'" in refused(tmp_path, table)
    apart = {**table, "a.csv": "question,answer\nRain,yes\n"}
    assert "'rain' in f.csv, 'Rain' in a.csv" in refused(tmp_path, apart)
    further = {**apart, "a.csv": "question,answer\nRain on Friday?,yes\nSnow,no\n"}
    assert "'rain' in f.csv, 'Rain on Friday?' in a.csv" in refused(tmp_path, further)


def test_an_answer_that_is_no_option_is_refused(tmp_path: Path) -> None:
    """With the options of the question, of which one that has a space is in quotes."""
    table = {"f.csv": "question,user,option,p\nq,a,x,0.5\nq,a,y z,0.5\n", "a.csv": "question,answer\nq,z\n"}
    assert "the answer of 'q' is none of its options x, 'y z'" in refused(tmp_path, table)
    assert "the table has only the option 'x'" in refused(tmp_path, {**table, "f.csv": "question,option,p\nq,x,1\n"})


INDEPENDENT = "question,user,option,p\ncup,ada,red,0.8\ncup,ada,blue,0.5\n"


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (
            {"f.csv": f"{INDEPENDENT}cup,ada,dark red,0.1\n", "a.csv": "question,answer\ncup,tin\n"},
            "none of its options red, blue, 'dark red'",
        ),
        ({"f.csv": INDEPENDENT, "a.csv": "question,answer\ncup,red\ncup,blue\n"}, "lines 2 and 3 say 'red' and 'blue'"),
        (
            {"f.csv": f"{INDEPENDENT}cup a,ada,b,0.1\ncup,ada,a b,0.1\n", "a.csv": "question,answer\ncup,red\n"},
            "'cup a b': f.csv: ('cup a', 'b') and ('cup', 'a b') would be one question",
        ),
        (
            {"f.csv": "question,user,p\ncup,ada,0.8\n", "a.csv": "question,answer\ncup,yes\n"},
            "no question has options that could be questions of their own; leave --independent out",
        ),
    ],
)
def test_independent_options_are_refused(tables: dict[str, str], said: str, tmp_path: Path) -> None:
    """An answer that is no option, two answers of one question, options that would have one name, and no options."""
    assert said in refused(tmp_path, tables, "--independent")


def test_a_published_format_is_known_by_its_columns(tmp_path: Path) -> None:
    """What cannot be recognised as a plain table is read by the importer of its format; all that is open is named."""
    hub = {"f.csv": "location,output_type,output_type_id,value\noslo,quantile,0.5,7\n", "a.csv": HOME}
    assert "forecast-ledger import-from hubverse LOG FOLDER" in refused(tmp_path, hub)
    rows = "rain,ada,m,03/04/2026,80,\nrain,bo,m,04/03/2026,40,\n"
    table = f"Question ID,Forecaster Username,Model,Start Time,Probability Yes,Continuous CDF\n{rows}"
    first, other = refused(tmp_path, {"f.csv": table, "a.csv": "question,outcome\nrain,1\n"}).splitlines()
    assert "Start Time: dates such as '03/04/2026'" in first
    assert first.endswith("; or read the whole download: forecast-ledger import-from metaculus LOG FOLDER")
    assert other.startswith("also ambiguous: Probability Yes = '80': f.csv, line 2: more than 1")


def test_of_two_forecasts_at_one_time_the_later_row_counts(tmp_path: Path) -> None:
    """They are two commands, though question, forecaster and time are the same."""
    rows = "question,user,date,p\nrain,ada,2026-03-01,0.2\nrain,ada,2026-03-01,0.9\nsnow,ada,2026-03-02,0.5\n"
    assert scored(tmp_path, {"f.csv": rows, "a.csv": HOME}) == {"ada": "0.13"}  # (0.1² + 0.5²) / 2


def test_a_question_is_opened_once_however_many_rows_it_has(tmp_path: Path) -> None:
    """Each command is made once, so that none is a duplicate: the contest, three a question, and the forecasts."""
    rows = [f"{question},{user},0.{user}" for user in range(1, 4) for question in ("rain", "snow")]
    tables = {
        "f.csv": "\n".join(["question,user,p", *rows, ""]),
        "a.csv": HOME,
        "both.csv": "\n".join(["question,user,p,outcome", *(f"{row},1" for row in rows), ""]),
    }
    forecasts, answers, both = (read_table(Path(path), Options()) for path in written(tmp_path, tables))
    for made in (plan(forecasts, answers, Options()), plan(both, None, Options())):
        with Ledger.open(":memory:") as ledger:
            counts = record(ledger, made, lambda *_: None)
        assert counts == {"accepted": 1 + 2 * 3 + 6, "duplicate": 0, "refused": 0}


def test_the_log_has_the_numbers_that_were_divided_by_their_sum(tmp_path: Path) -> None:
    """And the rule by which they were; `explain` and `log` show both. A forecast that sums to 1 is as it was given."""
    rows = "q,a,x,0.3\nq,a,y,0.2\nq,b,x,0.25\nq,b,y,0.75\n"
    paths = written(tmp_path, {"f.csv": f"question,user,option,p\n{rows}", "a.csv": "question,answer\nq,x\n"})
    log = str(tmp_path / "own.db")
    assert run("score", *paths, "--normalize", "0.5", "--log", log).exit_code == FINE
    for said in (run("log", log, "--format", "csv").stdout, run("explain", log, "score", "f", "q", "a").stdout):
        assert "a on q: x 0.6, y 0.4, by_sum from x 0.3, y 0.2" in said
    assert '"b on q: x 0.25, y 0.75"' in run("log", log, "--format", "csv").stdout
    assert (
        "normalize = 'a little': this is not a decimal number" in run("score", *paths, "--normalize", "a little").stderr
    )


MIXED = {
    "f.csv": "id,kind,model,option,quantile,prediction\n"
    "rain,binary,ada,,,0.8\nrain,binary,bo,,,0.4\n"
    "cup,multiple_choice,ada,red,,0.5\ncup,multiple_choice,ada,blue,,0.5\n"
    "oslo,numeric,ada,,0.1,14\noslo,numeric,ada,,0.5,20\noslo,numeric,ada,,0.9,31.5\n",
    "a.csv": "id,resolution\nrain,yes\ncup,blue\noslo,18\n",
}


@pytest.mark.parametrize("columns", ["all", "without the kind"])
def test_each_kind_of_questions_has_its_own_rules(columns: str, tmp_path: Path) -> None:
    """Probabilities are in one contest and quantiles in another, since their scores cannot be added up.

    What was recognised says the kinds; maps choose the rows of each, and give the same log.
    """
    tables = dict(MIXED)
    if columns != "all":
        rows = [line.split(",") for line in tables["f.csv"].splitlines()]
        tables["f.csv"] = "".join(f"{','.join([*row[:1], *row[2:]])}\n" for row in rows)
    here, there, paths = str(tmp_path / "here.db"), str(tmp_path / "there.db"), written(tmp_path, tables)
    found = run("score", *paths, "--log", here, "--write-map", str(tmp_path / "own.toml"), "--format", "csv")
    assert found.stdout.splitlines() == [
        "contest,rank,participant,score,completion",
        "f,1,ada,0.145000000,2/2",  # (0.2² + 0.5²) / 2
        "f,2,bo,0.360000000,1/2",  # 0.6²
        "f numeric,1,ada,1.833333333,1/1",  # 2/3 x (0.1 x 4 + 0.5 x 2 + 0.1 x 13.5)
    ]
    how = "by the column 'kind'" if columns == "all" else "by the columns 'quantile' and 'option'"
    assert f"f.csv: questions of several kinds, {how}: binary, multiple_choice, numeric" in found.stderr
    assert "left out" not in found.stderr
    for line in found.stderr.splitlines():
        if line.startswith("the same by a map:"):
            *_, path, table = line.split()
            assert run("append", there, "--map", path, table).exit_code == FINE
    digests = [run("replay", log, "--format", "csv", "--only", "scores").stdout for log in (here, there)]
    assert digests[0] == digests[1] != ""


def test_rules_that_score_only_some_kinds_are_refused_with_the_kinds_that_they_score(tmp_path: Path) -> None:
    """A kind that there is not is wrong usage; of a table of one kind, all is scored."""
    assert "--kinds binary,multiple_choice" in refused(tmp_path, MIXED, "--rules", "log")
    assert "the kinds are binary, multiple_choice, numeric" in refused(tmp_path, MIXED, "--kinds", "dates")
    only = {**MIXED, "f.csv": "id,kind,user,p\nrain,binary,ada,0.8\ncpi,date,ada,0.5\n"}
    assert "it has binary, numeric" in refused(tmp_path, only, "--kinds", "multiple_choice")
    odd = {**MIXED, "f.csv": "id,kind,user,p\nrain,binary,ada,0.8\ncpi,ranking,ada,0.5\n"}
    assert "'ranking' is no kind of question" in refused(tmp_path, odd, "--column", "kind=kind")
    assert scored(tmp_path, odd) == {"ada": "0.04"}  # a column of this name need not have kinds


UNREADABLE = {
    "another encoding": (
        b"question,user,p,outcome\nrain,ada,0.9,1\nsn\xf6w,bo,0.8,1\n",
        ["line 3: not UTF-8", "--encoding cp1252"],
    ),
    "a missing quotation mark": (
        b'question,user,p,outcome\nrain,ada,0.9,1\nsnow,bo,"0.8,1\n',
        ["line 3: unexpected end"],
    ),
    "a title above the header": (
        b"Forecasts 2026,,\nquestion,p,outcome\n",
        ["the first line has columns without a name"],
    ),
    "rows of another width": (b"question,user,p\nrain,ada\n", ["line 2: 2 cells, and the header has 3"]),
    "a header alone": (b"question,user,p\n", ["f.csv: the table has no rows"]),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_table_that_cannot_be_read_to_its_end_has_no_board(name: str, tmp_path: Path) -> None:
    """The refusal names the line; a board of the rows before it would be taken for the board of all."""
    table, said = UNREADABLE[name]
    (tmp_path / "f.csv").write_bytes(table)
    told = refused(tmp_path, {}, str(tmp_path / "f.csv"))
    assert [part for part in said if part not in told] == [], told


def test_a_table_that_takes_too_much_memory_is_refused_at_the_row_that_exceeds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of `rain,ada,0.9,1` counts for 4 x 16 and 11 characters, 75 bytes; the second exceeds 149, and not 150."""
    tables = {"f.csv": "question,user,p,outcome\nrain,ada,0.9,1\nsnow,ada,0.8,1\n"}
    monkeypatch.setattr(reading, "LARGEST", 150)
    assert scored(tmp_path, tables) == {"ada": "0.025"}  # (0.1² + 0.2²) / 2
    monkeypatch.setattr(reading, "LARGEST", 149)
    told = refused(tmp_path, tables, str(tmp_path / "f.csv"))
    assert "f.csv: up to line 3 it takes " in told
    assert "append --map" in told


def test_a_row_without_a_question_or_a_forecaster_is_left_out_and_counted(tmp_path: Path) -> None:
    """It is neither a forecast of everybody nor a command that is refused."""
    table = {"f.csv": "question,user,p,outcome\nrain,ada,0.9,1\nrain,,0.8,1\n,bo,0.7,1\n"}
    assert scored(tmp_path, table) == {"ada": "0.01"}
    said = run("score", str(tmp_path / "f.csv")).stderr
    assert "1 binary question, 1 forecaster, 1 forecast\n" in said
    assert "no forecast is made of 2 rows without a number, a question or a forecaster; the first is line 3" in said


def test_the_time_of_reading_a_table_grows_as_its_rows_do() -> None:
    """20,000 rows take a tenth of a second; they took 2.8 s when each row looked through all of them."""
    rows = [
        {"question": f"q{row // 10}", "user": f"p{row % 10}", "p": "0.5", "outcome": "yes"} for row in range(20_000)
    ]
    table, begun = table_of_rows(rows, "f"), time.thread_time()
    assert "2,000 binary questions, 10 forecasters, 20,000 forecasts" in plan(table, None, Options()).words
    assert time.thread_time() - begun < 1


FIRST = "question,user,p,outcome\nrain,ada,0.8,yes\nrain,bo,0.4,yes\n"


@pytest.mark.parametrize(
    ("name", "text", "options", "said"),
    [
        ("other.csv", FIRST, [], "line 2, open_contest"),
        ("first.csv", FIRST, ["--rules", "log"], "line 2, open_contest"),
        ("first.csv", FIRST.replace("0.4", "0.3"), [], "line 3, submit_forecast"),
        ("first.csv", FIRST.replace("rain,bo", "snow,bo").replace("0.8", "0.9"), [], "line 2, submit_forecast"),
        ("first.csv", FIRST.replace("yes", "no"), [], "line 2, resolve_question"),
    ],
)
def test_a_log_with_another_table_or_copy_is_refused_and_left_as_it_is(
    tmp_path: Path, name: str, text: str, options: list[str], said: str
) -> None:
    """Its board was printed as if it were of the new table, or a traceback."""
    log = str(tmp_path / "season.db")
    first = written(tmp_path, {"first.csv": FIRST})
    before = run("score", *first, "--log", log)
    again = run("score", *first, "--log", log)
    assert (again.exit_code, again.stdout) == (FINE, before.stdout)
    rows = run("log", log).stdout
    found = run("score", *written(tmp_path, {name: text}), *options, "--log", log)
    assert (found.exit_code, found.stdout, run("log", log).stdout) == (USAGE, "", rows)
    assert (
        f"command_id_reused: log: it has rows of another table, or of another copy of this one: {said}" in found.stderr
    )
    table = [dict(zip(("question", "user", "p", "outcome"), row.split(","), strict=True)) for row in text.split()[1:]]
    rules = options[-1] if options else ""
    with pytest.raises(Refused, match="nothing is recorded; keep it in a log of its own"):
        score(table, rules=rules, contest=name.removesuffix(".csv"), location=log)
    assert run("log", log).stdout == rows


def test_a_contest_that_another_command_opened_is_not_scored_in_place_of_the_table(tmp_path: Path) -> None:
    """The log may be one that other commands recorded."""
    log, at = tmp_path / "season.db", "2026-03-01T00:00:00Z"
    with Ledger.open(log) as ledger:
        ledger.handle(OpenContest(at=at, contest="first", rules="peer-2024-03"), command_id="own")
    found = run("score", *written(tmp_path, {"first.csv": FIRST}), "--log", str(log))
    assert (found.exit_code, found.stdout) == (USAGE, "")
    assert "duplicate_contest: log: it has rows of another table" in found.stderr
    assert replay(str(log)).checkpoint.position == 1


def test_rows_that_were_added_to_a_table_are_recorded(tmp_path: Path) -> None:
    """A forecast on a question without an answer; what was recorded before is the same."""
    log = str(tmp_path / "season.db")
    assert run("score", *written(tmp_path, {"first.csv": FIRST}), "--log", log).exit_code == FINE
    more = run(
        "score", *written(tmp_path, {"first.csv": f"{FIRST}snow,ada,0.9,no\n"}), "--log", log, "--format", "json"
    )
    # Ada: (0.2² + 0.9²) / 2
    assert (more.exit_code, json.loads(more.stdout)[0]["score"]) == (FINE, "0.360000000")
