"""Shares whose sum is not quite 1: divided by it where the map says so, within what it says."""

import io
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import SubmitForecast
from forecast_ledger.replay.cli.main import FINDINGS
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from tests.replay.cli.test_main import run
from tests.support.maps import read_rows

PARTS = '{ red = "{r}", blue = "{b}", green = "{g}" }'
LIST = '{ from = "{r}/{b}/{g}", split = "/", names = ["red", "blue", "green"] }'


def mapped(normalize: str, *rows: str, shares: str = PARTS) -> list[Any]:
    """What a map makes of rows of three shares."""
    map_ = f"""
[[command]]
type = "submit_forecast"
id = "{{#}}"
{normalize}
[command.fields]
at = "2026-03-01T00:00:00Z"
question = "colour"
participant = "ada"
probabilities = {shares}
"""
    table = "\n".join(["r,b,g", *rows, ""]).encode()
    return [made for _, made in read_rows(parse_map(map_.encode()), io.BytesIO(table)).commands]


def chances(made: Any) -> list[Fraction]:
    """The probabilities of a forecast."""
    assert isinstance(made, SubmitForecast), made
    return [Fraction(str(each)) for each in (made.probabilities or {}).values()]


@pytest.mark.parametrize("shares", [PARTS, LIST])
@pytest.mark.parametrize(
    ("row", "parts"),
    [
        ("0.33,0.33,0.33", (33, 33, 33)),
        ("0.5,0.3,0.21", (50, 30, 21)),
        ("0.99,0,0", (99, 0, 0)),
        ("1e-2,0.49,0.5", (1, 49, 50)),
    ],
)
def test_shares_are_divided_by_their_sum(row: str, parts: tuple[int, ...], shares: str) -> None:
    """A sum of 0.99 or 1.01 that is within 0.01 of 1 divides every share, to far more digits than are recorded."""
    [made] = mapped("normalize = { within = 0.01 }", row, shares=shares)
    for found, part in zip(chances(made), parts, strict=True):
        assert abs(found - Fraction(part, sum(parts))) < Fraction(1, 10**20)


def test_a_sum_further_from_one_is_refused_with_the_sum() -> None:
    """0.98 is not within 0.01; the bound itself is."""
    low, high, bound = mapped("normalize = { within = 0.01 }", "0.5,0.3,0.18", "0.5,0.3,0.3", "0.5,0.3,0.21")
    assert [(each.code, each.value) for each in (low, high)] == [
        ("not_summing_to_one", "0.98"),
        ("not_summing_to_one", "1.1"),
    ]
    assert "differs from 1 by more than 0.01" in str(low)
    assert isinstance(bound, SubmitForecast)


def test_the_ledger_divides_where_the_map_says_so() -> None:
    """With the field `normalized`, numbers go to the ledger as they are; `normalize` says which sums are refused."""
    for guard in ("", "normalize = { within = 0.02 }"):
        named = f'{PARTS}\nnormalized = "by_sum"'
        made, far = mapped(guard, "0.33,0.33,0.33", "0.5,0.5,0.5", shares=named)
        assert made.normalized == "by_sum"
        assert chances(made) == [Fraction(33, 100)] * 3
        assert isinstance(far, Refused if guard else SubmitForecast)
    [zeros] = mapped("normalize = { within = 1.5 }", "0,0,0", shares=named)
    assert chances(zeros) == [0, 0, 0]


def test_a_sum_that_the_ledger_takes_for_one_stays() -> None:
    """0.333333333 three times is what it would be without `normalize`: the digits are those that were sent."""
    [made] = mapped("normalize = { within = 0.01 }", "0.333333333,0.333333333,0.333333333")
    assert chances(made) == [Fraction(333333333, 10**9)] * 3


def test_a_share_that_is_no_number_is_left_to_its_own_refusal() -> None:
    """What is wrong with the number is said, not that the sum is not 1; a huge one takes no time."""
    made = mapped("normalize = { within = 0.01 }", "0.33,x,0.33", "-0.2,0.6,0.595", "1e999999999,0,0")
    assert all(isinstance(each, SubmitForecast) for each in made)
    assert chances(made[1]) == [Fraction(-2, 10), Fraction(6, 10), Fraction(595, 1000)]


def test_a_list_without_names_is_left_to_its_own_refusal() -> None:
    """Probabilities are by name: a bare list is no forecast, normalized or not."""
    [made] = mapped("normalize = { within = 0.01 }", "0.33,0.33,0.33", shares='{ from = "{r}/{b}/{g}", split = "/" }')
    assert (made.code, made.field) == ("malformed", "probabilities")


@pytest.mark.parametrize(
    ("normalize", "says"),
    [
        ("normalize = { within = 0 }", "between 0 and 1"),
        ("normalize = { within = 1 }", "between 0 and 1"),
        ("normalize = { within = nan }", "bad_map"),
        ("normalize = {}", "within"),
        ("normalize = true", "normalize"),
    ],
)
def test_the_tolerance_is_given(normalize: str, says: str) -> None:
    """A map says how far a sum may be from 1; within 1, everything would be."""
    with pytest.raises(Refused, match=says) as refused:
        mapped(normalize, "0.33,0.33,0.33")
    assert refused.value.code == "bad_map"


def test_percentages_that_sum_to_99_or_101_are_recorded(tmp_path: Path) -> None:
    """33, 33 and 33 percent are a third each, the first with the last billionth; without the key, it is named."""
    question = (
        '{"id": "q", "type": "open_question", "at": "2026-03-01T00:00:00Z", "question": "colour", "kind": '
        '"multiple_choice", "outcomes": ["red", "blue", "green"], "opens_at": "2026-03-01T00:00:00Z", '
        '"closes_at": "2026-04-01T00:00:00Z"}\n'
    )
    map_ = """
[[command]]
type = "submit_forecast"
id = "{r}"
NORMALIZE
[command.fields]
at = "2026-03-02T00:00:00Z"
question = "colour"
participant = "ada"
probabilities = { red = { from = "{r}", percent = true }, GREEN }
"""
    map_ = map_.replace("GREEN", 'blue = { from = "{b}", percent = true }, green = { from = "{g}", percent = true }')
    paths = {name: str(tmp_path / name) for name in ("a.db", "q.jsonl", "m.toml", "t.csv")}
    Path(paths["q.jsonl"]).write_text(question)
    Path(paths["t.csv"]).write_text("r,b,g\n33%,33%,33%\n50%,30%,21%\n")
    Path(paths["m.toml"]).write_text(map_.replace("NORMALIZE", ""))
    run("append", paths["a.db"], paths["q.jsonl"])
    refused = run("append", paths["a.db"], "--map", paths["m.toml"], paths["t.csv"])
    assert refused.exit_code == FINDINGS
    assert "not_summing_to_one: probabilities = '0.99'" in refused.stderr
    assert "`normalize`" in refused.stderr
    Path(paths["m.toml"]).write_text(map_.replace("NORMALIZE", "normalize = { within = 0.01 }"))
    run("append", paths["a.db"], "--map", paths["m.toml"], paths["t.csv"])
    said = run("log", paths["a.db"], "--type", "forecast_made", "--columns", "says", "--format", "csv").stdout
    assert said.splitlines()[1:] == [
        '"ada on colour: red 0.333333334, blue 0.333333333, green 0.333333333"',
        # 50 / 101, 30 / 101, 21 / 101 = 0.4950495049…, 0.2970297029…, 0.2079207920…, half-even to nine decimals
        '"ada on colour: red 0.495049505, blue 0.297029703, green 0.207920792"',
    ]
    assert Decimal("0.495049505") + Decimal("0.297029703") + Decimal("0.207920792") == 1
