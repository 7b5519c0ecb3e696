"""The maps of `forecast-ledger score --write-map`, by which later copies of a table are appended."""

from pathlib import Path

import pytest

from forecast_ledger.replay.cli.main import FINDINGS, FINE
from tests.replay.cli.test_main import run

ANSWERED, OPEN = "q,user,p,answer\nrain,ada,0.8,1\nsnow,ada,0.1,0\n", "q,user,p,answer\nrain,ada,0.8,\nsnow,ada,0.1,\n"
OPTIONS = "q,user,option,p,answer\ncup,ada,red,0.3,0\ncup,ada,blue,0.7,1\ncap,ada,red,0.4,\ncap,ada,blue,0.6,\n"
POOL = "Name,Tea?,Late?\nAda,60%,5%\nAnswer,yes,no\n"
EITHER = "q,user,red,blue,answer\ncup,ada,0.9,0.7,red\n"


def board(folder: Path, first: str, later: str, *options: str, code: int = FINE) -> tuple[dict[str, str], str]:
    """The scores of a log of two copies by the map that is made of the first one, and what is said of the second."""
    texts = {"first.csv": first, "later.csv": later}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    own, log = folder / "own.toml", str(folder / "season.db")
    made = run("score", str(folder / "first.csv"), "--column", "question=q", *options, "--write-map", str(own))
    assert made.exit_code == FINE, made.stderr
    own.write_text(f'source = "sheet"\n{own.read_text(encoding="utf-8")}', encoding="utf-8")
    assert run("append", log, "--map", str(own), str(folder / "first.csv")).exit_code == FINE
    found = run("append", log, "--map", str(own), str(folder / "later.csv"))
    assert found.exit_code == code, found.stderr
    rows = run("table", log, "leaderboard", "--columns", "participant,score", "--format", "csv").stdout.split()[1:]
    return {who: score.rstrip("0") for who, score in (row.split(",") for row in rows)}, found.stderr


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (ANSWERED, ANSWERED + "hail,ada,0.3,yes\n"),
        (ANSWERED, ANSWERED + "hail,ada,0.3,maybe\n"),
        (OPEN, OPEN + "hail,ada,0.3,won\n"),
        (OPTIONS, OPTIONS.replace("red,0.4,", "red,0.4,yes")),
        (OPTIONS, OPTIONS.replace("red,0.4,", "red,0.4,no")),
    ],
)
def test_an_answer_in_other_words_than_before_is_refused(first: str, later: str, tmp_path: Path) -> None:
    """The map chose the rows with the words of the first copy, so that the answer was left out and nothing was said."""
    _, said = board(tmp_path, first, later, code=FINDINGS)
    assert "resolve_question, column 'answer'" in said


def test_answers_are_recorded_of_a_table_that_had_none_at_first(tmp_path: Path) -> None:
    """The map had no command for answers: (0.2² + 0.1²) / 2."""
    scores, _ = board(tmp_path, OPEN, OPEN.replace("0.8,", "0.8,yes").replace("0.1,", "0.1,no"))
    assert scores == {"ada": "0.025"}


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (["1", "0"], ["1.0", "0.0", "0.0"]),  # a column of numbers with an empty cell, as pandas writes it
        (["True", ""], ["True", "False", "False"]),
        (["", "NO"], ["YES", "NO", "NO"]),
        (["", ""], ["Yes", "No", "No"]),
    ],
)
def test_an_answer_like_those_before_is_recorded(first: list[str], later: list[str], tmp_path: Path) -> None:
    """Other digits of one number change nothing, and one word comes with its opposite: (0.2² + 0.1² + 0.2²) / 3."""
    rows = ["rain,ada,0.8", "snow,ada,0.1", "hail,ada,0.2"]
    copies = [
        "".join(f"{row}\n" for row in ("q,user,p,answer", *map(",".join, zip(rows, answers, strict=False))))
        for answers in (first, later)
    ]
    assert board(tmp_path, *copies) == ({"ada": "0.03"}, "")


def test_the_answer_of_an_option_is_recorded_later(tmp_path: Path) -> None:
    """Half of 0.3² + 0.3² and of 0.6² + 0.6², and their mean."""
    scores, _ = board(tmp_path, OPTIONS, OPTIONS.replace("red,0.4,", "red,0.4,1").replace("blue,0.6,", "blue,0.6,0"))
    assert scores == {"ada": "0.225"}


@pytest.mark.parametrize(
    ("first", "later", "options", "scores"),
    [
        (
            "q,ada,bo,dee,answer\nrain,0.8,0.3,,yes\n",
            "q,ada,bo,cy,dee,answer\nrain,0.8,0.3,0.9,0.6,yes\n",
            [],
            {"ada": "0.04", "bo": "0.49", "cy": "0.01", "dee": "0.16"},
        ),
        (
            POOL,
            "Name,Tea?,Late?,Snow?\nAda,60%,5%,10%\nAnswer,yes,no,no\n",
            ["--column", "question=", "--columns-are", "questions"],
            {"Ada": "0.0575"},  # (0.4² + 0.05² + 0.1²) / 3
        ),
    ],
)
def test_a_column_that_a_later_copy_adds_is_read(
    first: str, later: str, options: list[str], scores: dict[str, str], tmp_path: Path
) -> None:
    """The map had the columns of the first copy by name: a forecaster or a question that came later was left out."""
    assert board(tmp_path, first, later, *options)[0] == scores


def test_a_later_column_of_answers_is_no_forecaster(tmp_path: Path) -> None:
    """It would be the best one, without a word."""
    first = "q,ada,bo,answer\nrain,0.8,0.3,yes\n"
    later = "q,ada,bo,answer,Outcome\nrain,0.8,0.3,yes,1\n"
    assert board(tmp_path, first, later) == ({"ada": "0.04", "bo": "0.49"}, "")


def test_columns_that_the_caller_named_stay_the_only_ones(tmp_path: Path) -> None:
    """A number in another column may be no forecast."""
    named = ["--column", "probability=ada,bo"]
    later = "q,ada,bo,rate,answer\nrain,0.8,0.3,0.9,yes\n"
    scores, _ = board(tmp_path, "q,ada,bo,answer\nrain,0.8,0.3,yes\n", later, *named)
    assert scores == {"ada": "0.04", "bo": "0.49"}


def test_an_option_that_came_true_is_known_by_its_name(tmp_path: Path) -> None:
    """Of independent options, an answer that names none of them is refused: 0.1² and 0.7², and their mean."""
    scores, said = board(tmp_path, EITHER, EITHER + "cap,ada,0.9,0.7,grey\n", "--independent", code=FINDINGS)
    assert (scores, "resolve_question" in said) == ({"ada": "0.25"}, True)
