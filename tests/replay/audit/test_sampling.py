"""Samples are drawn from the digest of a log, and evaluated with exact limits."""

import csv
import io
import json
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from math import comb
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.replay.audit import sampling
from forecast_ledger.replay.audit.sampling import MILLION, draw, drawn_by_amount, drawn_by_chance, upper_limit
from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from forecast_ledger.replay.reading.replay import replay
from tests.replay.audit.test_trails import PLAIN, sealed_log
from tests.replay.cli.test_main import run
from tests.support.given import (
    TRADES,
    bet,
    contest,
    decision,
    entry,
    forecast,
    opened,
    quote,
    resolution,
    trading_floor,
)
from tests.support.logs import written


def test_a_sample_by_chance_is_that_of_the_command_sha256sum() -> None:
    """`printf '%s %d' DIGEST NUMBER | sha256sum` for each number of 1 to 100, sorted: these come first."""
    assert drawn_by_chance("0" * 64, 100, 3) == [1, 46, 55]
    assert drawn_by_chance("0" * 64, 3, 20) == [1, 2, 3]


def test_every_item_is_as_likely_as_any_other() -> None:
    """Of 2,000 digests, each of 5 items is drawn with 2 of them: 800 times, and 6 standard deviations are 131."""
    counts = dict.fromkeys(range(1, 6), 0)
    for number in range(2_000):
        for item in drawn_by_chance(sha256(b"%d" % number).hexdigest(), 5, 2):
            counts[item] += 1
    assert all(abs(count - 800) < 131 for count in counts.values()), counts


# Source: For Dummies, "How Does Monetary Unit Sampling Work?": of a book value of 300,000, 96 are to be drawn, so that
# the interval is 3,125; a random start at 556 draws the second of these customers, then the fourth with unit 3,681.
BALANCES = [435, 785, 1_510, 5_000]


def test_a_sample_by_amount_is_that_of_the_textbook() -> None:
    """The unit number 556 is the one that 555 come before."""
    drawn = drawn_by_amount(555 * 96, [*BALANCES, 300_000 - sum(BALANCES)], 96)
    assert list(drawn)[:2] == [2, 4]
    assert (drawn[2], drawn[4], sum(drawn.values())) == (1, 2, 96)  # 556; 3,681 and 6,806, up to 7,730


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any), st.integers(1, 30), st.data())
def test_each_interval_of_the_total_has_one_unit_that_is_drawn(
    amounts: list[int], size: int, data: st.DataObject
) -> None:
    """The item that has the unit (number x total + start) / size, rounded down, for each number: unit by unit here."""
    units = [item for item, amount in enumerate(amounts, 1) for _ in range(amount)]
    start = data.draw(st.integers(0, len(units) - 1))
    expected: dict[int, int] = {}
    for number in range(size):
        item = units[(number * len(units) + start) // size]
        expected[item] = expected.get(item, 0) + 1
    assert drawn_by_amount(start, amounts, size) == expected


@pytest.mark.parametrize(
    ("size", "wrong", "percent"),
    [
        (20, 0, "14.0"), (25, 0, "11.3"), (30, 0, "9.6"), (50, 0, "5.9"), (60, 0, "4.9"), (100, 0, "3.0"),
        (20, 1, "21.7"), (30, 1, "14.9"), (50, 1, "9.2"), (60, 1, "7.7"), (100, 1, "4.7"), (100, 2, "6.2"),
    ],
)  # fmt: skip
def test_limits_are_those_of_the_table_of_auditors(size: int, wrong: int, percent: str) -> None:
    """Source: AICPA, Audit Guide "Audit Sampling", evaluation table, risk of overreliance 5%; rounded up to 0.1%."""
    assert -(-upper_limit(wrong, size, 95) // (MILLION // 1_000)) == int(Decimal(percent) * 10)


def test_a_limit_by_hand() -> None:
    """Without an error in n the limit is 1 - 0.05^(1/n): of 1, 0.95; of 2, 1 - 0.2236067977... = 0.7763932023.

    With 1 error in 2, 1 - p^2 = 0.05: p = 0.9746794345. With only errors it is 1. All are rounded up.
    """
    assert [upper_limit(0, 1, 95), upper_limit(0, 2, 95), upper_limit(1, 2, 95)] == [950_000, 776_394, 974_680]
    assert [upper_limit(0, 1, 90), upper_limit(2, 2, 95)] == [900_000, MILLION]


@given(st.integers(1, 120), st.data(), st.integers(50, 99))
def test_a_limit_is_the_least_rate_at_which_so_few_errors_are_rare(
    size: int, data: st.DataObject, confidence: int
) -> None:
    """In fractions: at a rate that is 1e-6 less, the chance of so few errors is above 1 - confidence."""
    wrong = data.draw(st.integers(0, size - 1))
    limit = upper_limit(wrong, size, confidence)

    def at_most(rate: Fraction) -> Fraction:
        return sum((comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(wrong + 1)), Fraction(0))

    assert at_most(Fraction(limit, MILLION)) <= Fraction(100 - confidence, 100) < at_most(Fraction(limit - 1, MILLION))


def sheet(log: str, *options: str) -> list[dict[str, str]]:
    """The rows of a sheet of the contest plain."""
    result = run("sample", log, "--contest", PLAIN, "--format", "csv", *options)
    assert result.exit_code == FINE, result.stderr
    return [*csv.DictReader(io.StringIO(result.stdout))]


def filled(folder: Path, rows: list[dict[str, str]], delimiter: str = ",") -> str:
    """The path of a sheet with these rows."""
    path = folder / "sheet.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def evaluated(log: str, path: str, *options: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the row and the messages of an evaluation."""
    result = run("sample", log, "--contest", PLAIN, "--evaluate", path, "--format", "json", *options)
    return result.exit_code, json.loads(result.stdout)[0], result.stderr


def test_scores_are_drawn_with_what_they_rest_on(tmp_path: Path) -> None:
    """Of the 11 scores of the contest, those with the smallest digests; prizes are the published ones."""
    log = sealed_log(tmp_path)
    rows = sheet(log, "--size", "4")
    checkpoint, scores = replay(log).checkpoint, [*replay(log).table("scores").only("contest", PLAIN).rows()]
    assert len(scores) == 11
    order = sorted(range(1, 12), key=lambda n: sha256(f"{checkpoint.digest} {n}".encode()).hexdigest())
    assert [int(row["item"]) for row in rows] == sorted(order[:4])
    prizes = {"A": "108.00", "B": "779.30", "C": "44.80", "bot": "67.90"}
    for row in rows:
        score = scores[int(row["item"]) - 1]
        assert (row["question"], row["participant"]) == (score["question"], score["participant"])
        assert (row["score"], row["amount"]) == (score["score"], prizes[row["participant"]])
        assert (row["as_of"], row["times"], row["found"], row["remark"]) == ("39", "1", "", "")
        answer = {"olympics-2021": "32", "gdp-next-year": "33", "sp500-4500": "34"}[row["question"]]
        assert row["events"].split()[-1] == answer


def test_an_evaluation_counts_what_is_wrong_or_empty(tmp_path: Path) -> None:
    """Values agree to the decimals written. With 1 wrong of 4, 1 - p is the root of 4 q^3 - 3 q^4 = 0.05, 0.248605."""
    log = sealed_log(tmp_path)
    rows = [row | {"found": f"{Decimal(row['score']):.4f}"} for row in sheet(log, "--size", "4")]
    code, row, told = evaluated(log, filled(tmp_path, rows))
    assert (code, row["wrong"], row["rate"], row["drawn"], row["items"]) == (FINE, 0, "0.000000", 4, 11)
    assert row["upper_limit"] == "0.527130"  # 1 - 0.05^(1/4) = 0.5271292...
    rows[2] |= {"found": "9.9", "remark": "=cmd"}
    code, row, told = evaluated(log, filled(tmp_path, rows))
    assert (code, row["wrong"], row["rate"], row["upper_limit"]) == (FINDINGS, 1, "0.250000", "0.751396")
    assert f"line 4: plain {rows[2]['question']} {rows[2]['participant']}: found 9.9, recorded " in told
    assert told.rstrip().endswith(": =cmd")
    rows[2]["found"] = ""
    code, row, told = evaluated(log, filled(tmp_path, rows), "--confidence", "90")
    assert (code, row["wrong"], row["upper_limit"]) == (FINDINGS, 1, "0.679540")
    assert "nothing found, which counts as wrong" in told


def test_if_every_score_is_examined_the_rate_is_known(tmp_path: Path) -> None:
    """1 of 11 is wrong; there is no other that could be."""
    log = sealed_log(tmp_path)
    rows = [row | {"found": row["score"]} for row in sheet(log, "--size", "50")]
    rows[0]["found"] = "7"
    _, row, _ = evaluated(log, filled(tmp_path, rows))
    assert (row["drawn"], row["items"], row["rate"], row["upper_limit"]) == (11, 11, "0.090909", "0.090910")


def test_amounts_are_evaluated_by_the_units_that_were_drawn(tmp_path: Path) -> None:
    """Of 20 units of 50 each, B's 779.30 has 15 or 16; the amount is the limit's part of 1,000. A spreadsheet that has
    decimal commas writes semicolons.
    """
    log = sealed_log(tmp_path)
    rows = sheet(log, "--by", "amount")
    times = {row["participant"]: int(row["times"]) for row in rows}
    assert sum(times.values()) == 20
    assert times["B"] in {15, 16}
    assert {row["participant"]: row["events"] for row in rows}["B"] == "35 37"
    local = [
        row | {"found": row["amount"].replace(".", ","), "amount": row["amount"].replace(".", ",")} for row in rows
    ]
    code, row, _ = evaluated(log, filled(tmp_path, local, ";"))
    assert (code, row["wrong"], row["total"], row["upper_amount"]) == (FINE, 0, "1000.00", "139.109")
    local[[each["participant"] for each in rows].index("B")]["found"] = "779,31"
    code, row, _ = evaluated(log, filled(tmp_path, local, ";"))
    assert (code, row["wrong"]) == (FINDINGS, times["B"])


def test_a_sheet_is_evaluated_as_of_the_position_that_it_was_drawn_at(tmp_path: Path) -> None:
    """The log has grown since."""
    log = sealed_log(tmp_path, paid=False)
    rows = [row | {"found": row["score"]} for row in sheet(log)]
    run("pay", log, PLAIN)
    assert evaluated(log, filled(tmp_path, rows))[0] == FINE


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("score", "5", "line 2: score: the sheet has '5', and this log gives "),
        ("participant", "=zoe", "line 2: participant: "),
        ("item", "99", "line 2: item: "),
        ("as_of", "9" * 18, "as_of"),
        ("as_of", "9" * 9_999, "no log position in as_of"),
        ("by", "luck", "neither score nor amount in by"),
        ("times", "1e3", "a cell of the column times is not a number"),
        ("times", "999999", "a sample has 1 to 2,000"),
        ("times", "0", "3 rows, and 2 are drawn"),
    ],
)
def test_a_sheet_that_was_not_drawn_from_the_log_is_refused(tmp_path: Path, field: str, value: str, said: str) -> None:
    """Nothing is believed because a sheet says so: it is drawn again."""
    log = sealed_log(tmp_path)
    rows = [row | {"found": row["score"]} for row in sheet(log, "--size", "3")]
    rows[0][field] = value
    result = run("sample", log, "--contest", PLAIN, "--evaluate", filled(tmp_path, rows))
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert said in result.stderr
    del rows[0]["found"]
    path = tmp_path / "sheet.csv"
    path.write_text("item,by\n1,score\n", encoding="utf-8")
    assert "the sheet has no column as_of, " in run("sample", log, "--evaluate", str(path)).stderr


def test_a_sheet_with_more_rows_than_a_sample_has_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row after the limit is the last that is read, whatever follows it."""
    log, rows = sealed_log(tmp_path), sheet(sealed_log(tmp_path), "--size", "3")
    monkeypatch.setattr(sampling, "MOST", 2)
    with Path(filled(tmp_path, rows)).open("a", encoding="utf-8") as file:
        file.write('"a cell without an end')
    told = run("sample", log, "--contest", PLAIN, "--evaluate", str(tmp_path / "sheet.csv"))
    assert (told.exit_code, "the sheet has more than 2 rows" in told.stderr) == (USAGE, True), told.stderr


def test_columns_that_an_examiner_adds_are_left_alone(tmp_path: Path) -> None:
    """So is the order of columns."""
    log = sealed_log(tmp_path)
    rows = [{"initials": "@x", **row, "found": row["score"]} for row in sheet(log, "--size", "2")]
    assert evaluated(log, filled(tmp_path, rows))[0] == FINE


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    """A log without scores or money, and one with two currencies and a contest that names none."""
    empty = written(tmp_path / "empty.db", [opened()])
    assert "there is no score to draw from; --by amount draws" in run("sample", empty).stderr
    assert "no prize and no movement of cash" in run("sample", empty, "--by", "amount").stderr
    pools = [
        contest(name, pool=10, currency=each, rules="relative-2022-04")
        for name, each in (("a", "EUR"), ("b", "USD"), ("c", ""))
    ]
    told: list[AnyCommand] = [opened(), *pools, entry("a"), entry("b"), entry("c"), forecast()]
    two = written(tmp_path / "two.db", [*told, resolution()])
    result = run("sample", two, "--by", "amount")
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert "amounts in no currency and EUR and USD have no sum: name a contest" in result.stderr
    assert draw(replay(two), "amount", 3, "a").total == 10 * 10**15


def test_movements_of_cash_are_drawn_by_their_size(tmp_path: Path) -> None:
    """Each participant of a trading contest is given its cash; a purchase takes 500 out, and counts as 500."""
    log = written(tmp_path / "week.db", [*trading_floor("ada", "bo"), quote(), decision(bet(500), at=TRADES)])
    drawn = draw(replay(log), "amount", 30, None)
    cash = [row for row in replay(log).table("journal").rows() if row["account"] == "cash"]
    assert drawn.items == len(cash) == 3
    assert drawn.total == sum(abs(int(Fraction(row["amount"]) * 10**15)) for row in cash)
    assert {row["events"] for row in drawn.rows} <= {str(row["log_position"]) for row in cash}
