"""What the rows of a board rest on, and where it is too little."""

from typing import Any

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand, Range
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies.clusters import units_of
from forecast_ledger.projections.studies.grounds import standards_of
from tests.support import oracle
from tests.support.given import choices, contest, entry, forecast, opened, resolution

BRIER: dict[str, Any] = {"name": "mean", "kernel": "brier", "total": "mean", "period": "covered", "replicates": 39}


LOG: dict[str, Any] = {"kernel": "ln"}
PEER: dict[str, Any] = {"kernel": "ln", "reference": "peers"}


def contest_rows(
    answers: str, group: int = 1, kind: str = "binary", skipped: int = 0, table: str = "intervals", **rules: Any
) -> list[dict[str, Any]]:
    """Return the rows of a table of a contest. answers: y or n of each question; so many in a group.

    skipped: the questions on which bob does not forecast.
    """
    story: list[AnyCommand] = [contest(rules=RuleSet(**(BRIER | rules)))]
    for number, answer in enumerate(answers):
        name, within = f"q{number:02}", f"g{number // group:02}" if group > 1 else None
        told: dict[str, dict[str, Any]] = {"ada": {"probability": f"0.{number + 10}"}, "bob": {"probability": "0.5"}}
        asked, outcome = opened(name, group=within), "yes" if answer == "y" else "no"
        if kind == "choices":
            shares = {"red": f"0.{number + 10}", "green": f"0.{80 - number}", "blue": "0.1"}
            told = {who: {"probabilities": shares} for who in told}
            asked, outcome = choices(name, group=within), "red"
        made = [forecast(name, who, **said) for who, said in told.items() if who == "ada" or number >= skipped]
        story += [asked, entry(question=name), *made, resolution(name, outcome=outcome)]
    return [*oracle.projected(*story).table(table).rows()]


@pytest.mark.parametrize(
    ("answers", "fields", "clusters", "withheld"),
    [
        ("yn" * 10, {}, 20, ""),
        ("yn" * 9 + "y", {}, 19, "few_clusters"),
        ("yn" * 20, {"group": 2}, 20, ""),
        ("yn" * 19, {"group": 2}, 19, "few_clusters"),
        ("y" * 5 + "n" * 25, {}, 30, ""),
        ("y" * 4 + "n" * 26, {}, 30, "rare_outcome"),
        ("y" * 26 + "n" * 4, {}, 30, "rare_outcome"),
        ("y" * 9 + "n" * 51, {"group": 2}, 30, ""),  # of five groups, one with both answers
        ("y" * 8 + "n" * 52, {"group": 2}, 30, "rare_outcome"),
        ("y" * 30, {"kind": "choices"}, 30, ""),  # whose outcomes have no rarer one
        ("yn" * 38, LOG, 76, ""),
        ("yn" * 37, LOG, 74, "heavy_tails"),
        ("yn" * 9, LOG, 18, "few_clusters"),
        ("yn" * 25, PEER, 50, ""),
        ("yn" * 24, PEER, 48, "heavy_tails"),
    ],
)
def test_what_is_too_little(answers: str, fields: dict[str, Any], clusters: int, withheld: str) -> None:
    """Twenty clusters are enough, of which five have the rarer answer; no number of a row is there without."""
    [row] = [row for row in contest_rows(answers, **fields) if row["participant"] == "ada"]
    assert (row["clusters"], row["withheld"]) == (clusters, withheld)
    for name in ("score_low", "score_high", "first", "best_5_percent"):
        assert (row[name] is None) == bool(withheld)
    assert row["score"] is not None


def test_each_row_has_its_own_clusters() -> None:
    """Bob, who forecasts on 19 of 30 questions, says too little; an imputed score counts as one that he has."""
    rows = {row["participant"]: row for row in contest_rows("yn" * 15, skipped=11)}
    assert [(rows[who]["clusters"], rows[who]["withheld"]) for who in ("ada", "bob")] == [
        (30, ""),
        (19, "few_clusters"),
    ]
    rows = {row["participant"]: row for row in contest_rows("yn" * 15, skipped=11, imputation="worst")}
    assert [(rows[who]["clusters"], rows[who]["withheld"]) for who in ("ada", "bob")] == [(30, ""), (30, "")]


def test_a_score_that_is_always_the_same_has_no_interval() -> None:
    """Bob's is (1 - 0.5)², whatever happens."""
    rows = {row["participant"]: row for row in contest_rows("yn" * 10)}
    assert (rows["bob"]["score"], rows["bob"]["withheld"]) == ("0.250000000", "constant_score")
    assert rows["bob"]["score_low"] is rows["bob"]["first"] is None


@pytest.mark.parametrize(
    ("answers", "fields", "clusters", "withheld"),
    [
        ("yn" * 15, {"skipped": 10}, 20, ""),
        ("yn" * 15, {"skipped": 11}, 19, "few_clusters"),
        ("yn" * 26, PEER | {"skipped": 2}, 50, ""),
        ("yn" * 26, PEER | {"skipped": 3}, 49, "heavy_tails"),
        ("y" * 9 + "n" * 51, {"group": 2, "skipped": 2}, 29, "rare_outcome"),
    ],
)
def test_a_pair_rests_on_its_common_questions(
    answers: str, fields: dict[str, Any], clusters: int, withheld: str
) -> None:
    """The difference of two scores has an interval if the questions that both have a score on are enough for one."""
    [row] = contest_rows(answers, table="pairwise", **fields)
    assert (row["clusters"], row["withheld"]) == (clusters, withheld)
    assert (row["difference_low"] is None, row["difference_high"] is None) == (bool(withheld),) * 2


@pytest.mark.parametrize(
    ("rules", "measures", "least"),
    [
        ({"quantile_kernel": "pinball"}, True, 400),
        ({"quantile_kernel": "absolute"}, True, 400),
        ({"quantile_kernel": "pinball", "transform": "sqrt"}, True, 100),
        ({"quantile_kernel": "pinball", "transform": "log_shifted"}, True, 0),
        ({"quantile_kernel": "absolute_clipped"}, True, 0),
        ({"cdf_kernel": "crps"}, False, 0),
        ({"cdf_kernel": "ln"}, False, 75),
    ],
)
def test_errors_of_numbers_need_many_clusters(rules: dict[str, Any], measures: bool, least: int) -> None:
    """Unless they have bounds, or are errors of logarithms."""
    span = Range(lower=0, upper=10, levels=("0.5",)) if measures else Range(lower=0, upper=10, bins=4)
    told = {"quantiles": [4]} if measures else {"cdf": ["0", "0.25", "0.5", "0.75", "1"]}
    asked: list[AnyCommand] = [opened("q", kind="numeric", range=span), entry(question="q")]
    ruled = contest(rules=RuleSet(name="x", period="covered", total="mean", **rules))
    projections = oracle.projected(ruled, *asked, forecast("q", **told), resolution("q", value=5))
    scored, own = projections.scored("cup"), projections.facts.contests["cup"].opened.rules
    assert standards_of(own, scored, units_of(own, scored)).least == least
