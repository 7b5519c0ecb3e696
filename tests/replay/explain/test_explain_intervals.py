"""Intervals taken apart: their seed, the replicates at their limits, and the questions that were drawn in these."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger import explain
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand, ResolveQuestion
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies import grounds
from forecast_ledger.replay.cli.main import FINE
from forecast_ledger.replay.reading.replay import replay
from tests.projections.studies.test_intervals import redrawn
from tests.replay.cli.test_main import run
from tests.support.given import contest, day, entry, forecast, opened, resolution
from tests.support.logs import written
from tests.support.seeds import seed_of
from tests.system.test_stories import METACULUS

GROUPS = "question-groups"
pytestmark = pytest.mark.usefixtures("little_is_enough")


@pytest.fixture
def log(story: str, log_of: Callable[[str], str]) -> str:
    """The path of a story's log."""
    return log_of(story)


def drawn(number: dict[str, Any], limit: str, strata: list[list[list[str]]]) -> dict[str, int]:
    """Return how often each question is drawn in the replicate that is a limit of the score."""
    return dict(redrawn(bytes.fromhex(number["seed"]), number[f"score_{limit}_replicate"], strata))


@pytest.mark.parametrize("story", [METACULUS])
@pytest.mark.parametrize("participant", ["A", "B", "C"])
def test_each_limit_is_the_total_of_the_questions_drawn_in_its_replicate(log: str, participant: str) -> None:
    """The total of these rules is the sum of the scores, each rounded here; the draws follow from the seed."""
    found = explain(log, "interval", "plain", participant)
    number, asked = found.number, ("gdp-next-year", "olympics-2021", "sp500-4500")
    seed = seed_of(
        "intervals", dict.fromkeys(asked, (1, "")), replay(log).table("scores", contest="plain").rows()
    ).hex()
    assert (number["seed"], number["replicates"], number["drawn"]) == (seed, 1999, 3)
    assert sha256(f"{number['digest']}\nintervals".encode()).hexdigest() == seed
    for limit in ("low", "high"):
        times = drawn(number, limit, [[["olympics-2021"], ["sp500-4500"]], [["gdp-next-year"]]])
        assert {part["question"]: part[f"drawn_in_{limit}"] for part in found.parts} == {
            part["question"]: times.get(part["question"], 0) for part in found.parts
        }
        scores = {part["question"]: Fraction(part["score"] or 0) for part in found.parts}
        total = sum(times[question] * scores[question] for question in times)
        assert abs(Fraction(number[f"score_{limit}"]) - total) <= Fraction(sum(times.values()) + 1, 2 * 10**9)


@pytest.mark.parametrize("story", [METACULUS, GROUPS])
def test_the_limits_are_those_of_the_table(log: str) -> None:
    """In every contest, and for every participant on its board."""
    for row in replay(log).table("intervals").rows():
        number = explain(log, "interval", row["contest"], row["participant"]).number
        for name in ("score_low", "score_high", "prize_low", "prize_high", "clusters"):
            assert number.get(name) == row[name] or Fraction(number[name]) == Fraction(row[name])
        assert number["seed"] == row["seed"]


@pytest.mark.parametrize("story", [METACULUS])
def test_the_first_draws_are_those_of_each_stratum(log: str) -> None:
    """Yes-no questions are stratum 0, and the numeric one, which is drawn once, is stratum 1."""
    found = explain(log, "interval", "plain", "A")
    seed, zero = bytes.fromhex(found.number["seed"]), bytes(4)
    words = sha256(seed + zero + zero + zero).digest()
    one, two = (int.from_bytes(words[begin : begin + 4], "big") % 2 for begin in (0, 4))
    assert found.number["first_draws"] == f"stratum 0 of 2: {one} {two}; stratum 1 of 1: 0"
    assert {part["question"]: (part["cluster"], part["drawn_in_first"]) for part in found.parts} == {
        "olympics-2021": ("0:0", [one, two].count(0)),
        "sp500-4500": ("0:1", [one, two].count(1)),
        "gdp-next-year": ("1:0", 1),
    }


@pytest.mark.parametrize("story", [GROUPS])
def test_a_score_that_does_not_move_has_no_limits(log: str) -> None:
    """The two groups are of different kinds, so that each is drawn once in every replicate."""
    found = explain(log, "interval", "cup", "ada")
    assert (found.number["drawn"], found.number["clusters"]) == (2, 2)
    assert found.number["withheld"] == "constant_score: every sample gives the same score"
    assert not found.number.keys() & {"score_low", "prize_low"}
    assert not any("drawn_in_low" in part for part in found.parts)
    assert found.number["samples"] == "4 questions in 2 clusters by group, as if no two clusters had anything in common"


@pytest.mark.parametrize("story", [METACULUS])
def test_of_few_clusters_it_is_said_why_there_are_no_limits(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three questions are fewer than twenty; the seed and the draws are there as ever."""
    monkeypatch.setattr(grounds, "LEAST_CLUSTERS", 20)
    found = explain(log, "interval", "plain", "A").number
    assert (found["clusters"], found["drawn"], found["level"]) == (3, 3, "0.95")
    assert found["withheld"].startswith("few_clusters: scores in fewer than 20 clusters")
    assert "score_low" not in found


@pytest.mark.parametrize("story", [METACULUS])
def test_an_interval_that_does_not_exist_is_refused(log: str) -> None:
    """The contest is looked for first."""
    for where, who, code in (("nowhere", "A", "unknown_contest"), ("plain", "nobody", "nothing_standing")):
        with pytest.raises(Refused) as refused:
            explain(log, "interval", where, who)
        assert refused.value.code == code


@pytest.mark.parametrize("story", [METACULUS, GROUPS])
def test_a_pair_is_the_questions_that_both_have_forecast_on(log: str) -> None:
    """In either order of the two; the differences, weighted, have the mean of the table, to the last digit shown."""
    rows = [*replay(log).table("pairwise").rows()]
    for row in rows:
        found = explain(log, "pair", row["contest"], row["other"], row["participant"])
        assert {name: found.number.get(name) for name in row} == row | {"p_adjusted": None}
        assert len(found.parts) == row["questions"]
        total = sum(Fraction(part["difference"]) * Fraction(part["weight"]) for part in found.parts)
        weight = sum(Fraction(part["weight"]) for part in found.parts)
        assert abs(total - weight * Fraction(row["difference"])) <= Fraction(weight, 10**9)
        assert sum(Fraction(part["difference"]) > 0 for part in found.parts) == row["won"]
    assert rows


def paired(folder: Path, questions: int, size: int) -> dict[str, Any]:
    """Return what is said of a pair whose scores differ by 0.24 and 0.08 in turn, in groups of so many questions."""
    told: list[AnyCommand] = [contest(rules=RuleSet(name="own", kernel="brier", period="covered", total="mean"))]
    for number in range(questions):
        name = f"q{number:02}"
        told += [opened(name, group=f"g{number // size:02}"), entry(question=name), resolution(name)]
        told.append(forecast(name, probability="0.9"))
        told.append(forecast(name, "bo", at=day(10), probability="0.7" if number % 2 else "0.5"))
    told.sort(key=lambda command: isinstance(command, ResolveQuestion))
    return explain(written(folder / "pair.db", told), "pair", "cup", "ada", "bo").number


def test_a_pair_says_which_difference_it_can_tell(tmp_path: Path) -> None:
    """With 20 deviations of 0.08, the variance of the mean is 20 x 0.0064 / (19 x 20); quantiles are from a table."""
    found = paired(tmp_path, 20, 1)
    quantiles = Decimal("1.959963985") + Decimal("0.841621234")
    expected = quantiles * (20 * Decimal("0.0064") / (19 * 20)).sqrt()
    assert (found["difference"], found["clusters"]) == ("0.160000000", 20)
    assert abs(Decimal(found["detectable"]) - expected) < Decimal("1e-9")


def test_groups_are_what_counts_for_a_difference_that_can_be_told(tmp_path: Path) -> None:
    """Forty questions in 20 groups of equal means: no deviation; in fewer than 20 groups nothing is said."""
    assert (found := paired(tmp_path, 40, 2))["clusters"] == 20
    assert found["detectable"] == "0.000000000"
    (tmp_path / "few").mkdir()
    assert "detectable" not in paired(tmp_path / "few", 38, 2)


@pytest.mark.parametrize("story", [METACULUS])
@pytest.mark.parametrize("other", ["nobody", "A"])
def test_a_pair_that_does_not_exist_is_refused(log: str, other: str) -> None:
    """The other is not on the board, or is the participant."""
    with pytest.raises(Refused) as refused:
        explain(log, "pair", "plain", "A", other)
    assert refused.value.code == "nothing_standing"


@pytest.mark.parametrize("story", [METACULUS])
def test_the_command_prints_the_seed_and_the_replicates(log: str) -> None:
    """As lines of names and values, and one line a question."""
    result = run("explain", log, "interval", "plain", "A")
    assert result.exit_code == FINE
    lines = [line.split() for line in result.stdout.splitlines()]
    seed = explain(log, "interval", "plain", "A").number["seed"]
    assert ["seed", seed] in lines
    assert "samples 3 questions, each by itself, as if none had anything in common; no two have the same group" in (
        " ".join(line) for line in lines
    )
    drawn_in = ["drawn_in_first", "drawn_in_low", "drawn_in_high"]
    assert ["question", "group", "kind", "cluster", "weight", "score", *drawn_in] in lines
    assert [line[-2:] for line in lines if line[:1] == ["olympics-2021"]] == [["2", "0"]]
