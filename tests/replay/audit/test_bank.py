"""Bank statements: their lines are matched with prizes paid, and what does not match is said."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.replay.audit.trails import TOTAL, Line, matched
from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from tests.replay.audit.test_trails import sealed_log
from tests.replay.cli.test_main import run
from tests.support.waiting import quick

PAID = "Date,Payee,Amount,Text\n2022-04-21,a,-108.00,\n2022-04-21,Bob Ltd,-779.30,prize of B\n"
WHOLE = f"{PAID}2022-04-22,C,-40.00,first part\n2022-04-23,C,-4.80,rest\n2022-04-23,bot,67.90,\n"


def banked(folder: Path, statement: str, *options: str) -> tuple[int, list[str], str]:
    """The exit code, what is said of each row, and stderr. A, B, C and bot were paid 108, 779.30, 44.80 and 67.90."""
    (folder / "bank.csv").write_text(statement, encoding="utf-8")
    columns = ("--format", "csv", "--columns", "row,participant,bank_amount,bank")
    done = run("tie-out", sealed_log(folder), "plain", "--bank", str(folder / "bank.csv"), *options, *columns)
    return done.exit_code, done.stdout.splitlines()[1:], done.stderr


def test_lines_are_matched_by_payee_or_by_a_word_of_the_text(tmp_path: Path) -> None:
    """Capitals and signs do not matter, and the parts of a payment are added up: 40 + 4.80."""
    code, rows, said = banked(tmp_path, WHOLE)
    assert (code, rows) == (
        FINE,
        ["1,A,-108.00,matched", "2,B,-779.30,matched", "3,C,-44.80,matched", "4,bot,67.90,matched", "total,,-864.20,"],
    )
    assert "bank: 4 matched, 0 missing, 0 different amount, 0 surplus" in said


def test_what_does_not_match_is_found(tmp_path: Path) -> None:
    """A payment that is not there, one of a cent more, and lines that name nobody, or two, of the contest."""
    lines = "Payee;Amount;Text\nA;-108,01;\nAB;-1,50;\nshop;-1.000,00;for B and C\nB;779,30;\n"
    code, rows, said = banked(tmp_path, lines, "--decimal-comma")
    assert (code, rows) == (
        FINDINGS,
        [
            "1,A,-108.01,different amount", "2,B,779.30,matched", "3,C,,missing", "4,bot,,missing",
            "line 3,,-1.50,surplus", "line 4,,-1000.00,surplus", "total,,-330.21,",
        ],
    )  # fmt: skip
    assert "bank: 1 matched, 2 missing, 1 different amount, 2 surplus" in said


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("date,amount\nx,1\n", "no column payee"),
        ("payee,amount\nA,many\n", "line 2 of the statement: 'many' is no amount"),
        ("payee,amount\nA\n", "line 2 of the statement does not fit its header"),
        ("", "no column payee"),
        (
            "payee,amount\n" + "A,1\n" * 20_001,
            "the statement has more than 20,000 lines; give the lines of the prizes alone",
        ),
        (
            "payee,amount\n" + "A,1\n" * 2**22,
            "the statement has more than 16,777,216 bytes; give the lines of the prizes",
        ),
    ],
    ids=["no payee", "no number", "a cell is missing", "empty", "too many lines", "too many bytes"],
)
def test_a_statement_that_cannot_be_read_is_wrong_usage(statement: str, said: str, tmp_path: Path) -> None:
    """Nothing is guessed, and nothing is printed."""
    code, rows, told = banked(tmp_path, statement)
    assert (code, rows) == (USAGE, [])
    assert said in told


def test_a_long_statement_is_matched_with_many_participants_in_time() -> None:
    """1,000 lines and 1,000 participants are a million pairs, most of which one look tells apart."""
    rows: list[dict[str, Any]] = [
        {"row": str(number), "participant": f"P{number}", "paid": "1"} for number in range(1_000)
    ]
    lines = [Line(number + 2, "", f"to p{number}", Fraction(-1), "") for number in range(1_000)]
    found = quick(2.5)(matched)([*rows, {"row": TOTAL, "participant": None, "paid": "1000"}], lines)
    assert [row["bank"] for row in found] == ["matched"] * 1_000 + [None]
