"""`compare` on the command line: what it prints where, and what it exits with."""

import json
from pathlib import Path

import pytest

from forecast_ledger.replay.audit import compare as comparing
from forecast_ledger.replay.cli.main import FINDINGS, FINE, UNREADABLE, USAGE
from tests.replay.cli.test_main import run

# The prizes of the contest "plain" as Metaculus's documentation of its tournament scores prints them.
PUBLISHED = "Forecaster,Prize\nA,$108.00\nB,$779.30\nC,$44.80\nbot,$67.90\n"
OPTIONS = ["--table", "leaderboard", "--contest", "plain", "--rename", "Forecaster=participant"]


def claim(folder: Path, text: str) -> str:
    """The path of a published table."""
    path = folder / "claim.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_table_that_agrees_exits_with_0(log: str, tmp_path: Path) -> None:
    """Stderr says how many rows agree, to how many decimals, the verdict, and up to which log position."""
    result = run("compare", log, claim(tmp_path, PUBLISHED), *OPTIONS)
    assert (result.exit_code, result.stdout) == (FINE, "")
    told = result.stderr.splitlines()
    assert told[:3] == [
        "4 of 4 rows of the file agree with the log",
        "compared to the decimals in the file: prize 2",
        "ok: no differences",
    ]
    assert told[3].startswith("as of log position 34, ")


def test_a_table_that_differs_exits_with_1_and_prints_what_is_claimed_and_ours(log: str, tmp_path: Path) -> None:
    """Rows have the key, the line of the file, what it is, the column, and both values."""
    wrong = PUBLISHED.replace("779.30", "779.31").replace("bot,$67.90\n", "Zoe,1\n")
    result = run("compare", log, claim(tmp_path, wrong), *OPTIONS, "--format", "json")
    assert result.exit_code == FINDINGS
    rows = [tuple(row.values()) for row in json.loads(result.stdout)]
    assert rows == [
        ("plain", "B", 3, "differs", "prize", "$779.31", "779.30"),
        (None, "Zoe", 5, "extra", None, None, None),
        ("plain", "bot", None, "missing", None, None, None),
    ]
    assert "not ok: values that differ: 1, missing rows: 1, extra rows: 1" in result.stderr


def test_a_part_of_a_table_agrees_if_it_may_be_one(log: str, tmp_path: Path) -> None:
    """As the first places of a leaderboard do; without --partial the other rows are missing."""
    empty = run("compare", log, claim(tmp_path, PUBLISHED), *OPTIONS, "--format", "json")
    assert (empty.exit_code, json.loads(empty.stdout)) == (FINE, [])
    path = claim(tmp_path, PUBLISHED[: PUBLISHED.index("C,")])
    assert run("compare", log, path, *OPTIONS, "--partial").exit_code == FINE
    assert run("compare", log, path, *OPTIONS).exit_code == FINDINGS


def test_standard_input_a_cut_and_skipped_columns(log: str) -> None:
    """A claim is compared with the log as of its time: before the answers there were no prizes."""
    given = PUBLISHED.replace("Prize\n", "Prize,Country\n").replace("0\n", "0,NL\n").encode()
    whole = run("compare", log, "-", *OPTIONS, "--ignore", "Country", given=given)
    assert (whole.exit_code, "not compared: 'Country'" in whole.stderr) == (FINE, True)
    early = run("compare", log, "-", *OPTIONS, "--ignore", "Country", "--as-of", "20", given=given)
    assert (early.exit_code, "as of log position 20" in early.stderr) == (FINDINGS, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--table", "leaderbord"], "the nearest is leaderboard"),
        (["--table", "leaderboard"], "our table has no column 'Forecaster'"),
        (["--table", "marks", "--contest", "plain"], "has no column contest"),
        ([*OPTIONS, "--rename", "Prize"], "has no '='"),
        ([*OPTIONS, "--rename", "Prize=price"], "the nearest is prize"),
        ([*OPTIONS[:2], "--contest", "plane", *OPTIONS[4:]], "plain"),
        (OPTIONS[:2] + OPTIONS[4:], "use --contest"),
        ([*OPTIONS, "--columns", "prize"], "no column named 'prize'"),
    ],
)
def test_wrong_usage_is_told_with_the_names_that_there_are(
    log: str, tmp_path: Path, options: list[str], message: str
) -> None:
    """The exit code is 2, and nothing is compared."""
    result = run("compare", log, claim(tmp_path, PUBLISHED), *options)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert message in result.stderr


def test_a_file_of_rows_that_are_not_those_of_the_table_is_refused(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to a limit each is listed; beyond it, the file is of another table, and would fill the memory."""
    monkeypatch.setattr(comparing, "MOST_STRANGE", 2)
    some = run("compare", log, claim(tmp_path, PUBLISHED + "Zoe,1\nA,$108.00\n"), *OPTIONS)
    assert (some.exit_code, "repeated rows: 1" in some.stderr, "extra rows: 1" in some.stderr) == (FINDINGS, True, True)
    for more in ("Zoe,1\nYan,1\nXia,1\n", "A,$108.00\n" * 3):
        result = run("compare", log, claim(tmp_path, PUBLISHED + more), *OPTIONS)
        assert (result.exit_code, result.stdout) == (USAGE, "")
        assert "more than 2 rows of the file are not in leaderboard, or repeated" in result.stderr


def test_a_log_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    """The claim alone is nothing to compare with."""
    path = tmp_path / "none.db"
    assert run("compare", str(path), claim(tmp_path, PUBLISHED), *OPTIONS).exit_code == UNREADABLE
    assert not path.exists()


def test_a_file_about_one_contest_of_several_is_told_how_to_compare_no_other(log: str, tmp_path: Path) -> None:
    """The board that `leaderboard` prints lacks the rows of other contests; with --contest it agrees."""
    board = claim(tmp_path, run("leaderboard", log, "plain", "--format", "csv").stdout)
    result = run("compare", log, board, "--table", "leaderboard")
    assert result.exit_code == FINDINGS
    advice = "the file has rows of one contest only; to compare no other: --contest plain"
    assert advice in result.stderr.splitlines()
    alone = run("compare", log, board, "--table", "leaderboard", "--contest", "plain")
    assert alone.exit_code == FINE
    assert advice not in alone.stderr
