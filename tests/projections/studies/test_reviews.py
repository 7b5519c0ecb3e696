"""Reviews: each participant's questions, the best first, beside the others'."""

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from random import Random
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.projections.tables.scores import participant_review_ends
from tests.projections.studies.test_intervals import exact_scores
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, day, entry, exclusion, forecast, opened, resolution
from tests.support.seasons import Season, drawn_rules

Row = dict[str, Any]
MEAN = RuleSet(name="brier", kernel="brier", period="covered", total="mean")
WORST = RuleSet(name="brier", kernel="brier", period="covered", total="kind_means")
SUM = RuleSet(name="peers", kernel="ln", reference="peers", scale="peer")


def reviewed(*commands: AnyCommand) -> list[Row]:
    """The rows of the table."""
    return list(oracle.projected(*commands).table("participant_review").rows())


def two_questions(rules: RuleSet, **weights: int) -> list[AnyCommand]:
    """Two questions that come true; Ada and Bob forecast on rain, Ada 0.9 and Bob 0.6, and only Bob, 0.5, on snow."""
    said: list[AnyCommand] = [contest(rules=rules)]
    for name in ("rain", "snow"):
        said += [opened(name), entry(question=name, weight=weights.get(name, 1))]
    said += [forecast(probability="0.9"), forecast(participant="bob", probability="0.6")]
    said += [forecast("snow", "bob", probability="0.5"), resolution(), resolution("snow")]
    return said


def own(rows: list[Row], participant: str, *names: str) -> list[list[Any]]:
    """Columns of one participant's rows."""
    return [[row[name] for name in names] for row in rows if row["participant"] == participant]


def test_a_question_gains_what_it_is_better_than_the_median() -> None:
    """Brier scores of 0.01 and 0.16 on rain: the median is 0.085; on snow Bob is alone with 0.25."""
    rows = reviewed(*two_questions(MEAN))
    names = ("place", "question", "score", "rank", "forecasters", "median", "gained")
    assert own(rows, "ada", *names)[0] == [1, "rain", "0.010000000", 1, 2, "0.085000000", "0.075000000"]
    assert own(rows, "bob", *names) == [
        [1, "snow", "0.250000000", 1, 1, "0.250000000", "0.000000000"],
        [2, "rain", "0.160000000", 2, 2, "0.085000000", "-0.075000000"],
    ]


@pytest.mark.parametrize(
    ("rules", "counted", "gained"),
    [
        (MEAN, None, None),  # the mean is over the questions with a forecast
        (WORST, "1.000000000", "-0.750000000"),  # the worst Brier score, where Bob's is 0.25
        (SUM, "0.000000000", "0.000000000"),  # Bob alone has no peers
    ],
)
def test_a_missed_question_costs_what_the_rules_count_for_it(rules: RuleSet, counted: Any, gained: Any) -> None:
    """Less the median of those who did forecast."""
    [missed] = [row for row in reviewed(*two_questions(rules)) if row["score"] is None]
    assert [missed[name] for name in ("participant", "question", "rank", "coverage")] == [
        "ada",
        "snow",
        None,
        "0.000000000",
    ]
    assert (missed["counted"], missed["gained"]) == (counted, gained)


@pytest.mark.parametrize("total", ["per_question", "per_coverage"])
@pytest.mark.parametrize(("least", "counted"), [(1, None), (2, "0.000000000")])
def test_below_the_least_coverage_a_missed_question_counts(total: Any, least: int, counted: Any) -> None:
    """Ada forecast on one question, all the time: divided by 2, her total counts the other as 0; by 1, it does not."""
    rules = RuleSet(name="own", kernel="ln", reference="uniform", total=total, least_coverage=least)
    said = [each if each.at != day(11) else replace(each, at=day(10)) for each in two_questions(rules)]
    [missed] = [row for row in reviewed(*said) if row["score"] is None]
    assert (missed["participant"], missed["counted"]) == ("ada", counted)


def test_the_order_is_that_of_what_counts() -> None:
    """By kind means, Ada gains 0.075 on rain and loses 0.75 on snow; weight decides among what Bob gains."""
    rows = reviewed(*two_questions(WORST))
    assert own(rows, "ada", "place", "question") == [[1, "rain"], [2, "snow"]]
    third = [forecast("snow", "ada", probability="0.6"), forecast(participant="kim", probability="0.1")]
    said = two_questions(MEAN, snow=3)
    more = oracle.projected(*said[:-2], *third, *said[-2:]).table("participant_review")
    # rain: 0.01, 0.16, 0.81, median 0.16: Ada gains 0.15; snow: 0.16, 0.25, median 0.205: 0.045 with weight 3
    assert own([*more.rows()], "ada", "question", "gained") == [["rain", "0.150000000"], ["snow", "0.045000000"]]


@pytest.mark.parametrize("rules", [MEAN, RuleSet(name="own", kernel="ln", reference="uniform")])
def test_equal_scores_share_the_better_rank(rules: RuleSet) -> None:
    """Whether a lower or a higher score is better; the median of four is the mean of the middle two, as one is here."""
    said: list[AnyCommand] = [contest(rules=rules), opened("rain"), entry(question="rain")]
    for who, chance in (("ada", "0.2"), ("bob", "0.9"), ("kim", "0.5"), ("lee", "0.5")):
        said.append(forecast(participant=who, probability=chance))
    ranks = [(row["participant"], row["rank"], row["gained"]) for row in reviewed(*said, resolution())]
    assert [rank for _, rank, _ in ranks] == [4, 1, 2, 2]
    assert [gained for *_, gained in ranks[2:]] == ["0.000000000"] * 2


def test_questions_without_weight_and_hidden_participants_are_left_out() -> None:
    """Neither is on the leaderboard."""
    rows = reviewed(*two_questions(MEAN, snow=0), exclusion(participant="bob", level="hidden", at=day(26)))
    assert [[row["participant"], row["question"], row["forecasters"]] for row in rows] == [["ada", "rain", 1]]


@pytest.mark.parametrize("rules", [MEAN, WORST, SUM])
def test_the_ends_of_a_review_are_among_a_part_of_the_questions(rules: RuleSet) -> None:
    """The first two and the last two of each participant are those of all 40, with the same numbers but their place."""
    random, said = Random(7), list[AnyCommand]([contest(rules=rules)])
    for name in (f"q{number:02}" for number in range(40)):
        said += [opened(name), entry(question=name, weight=random.choice((1, 2)))]
        for who in ("ada", "bob", "kim"):
            if random.random() < 0.9:
                said.append(forecast(name, who, probability=f"{random.randint(5, 95) / 100}"))
    projections = oracle.projected(
        *said, *(resolution(each.question) for each in said if isinstance(each, OpenQuestion))
    )
    every = [*projections.table("participant_review").rows()]
    values, counted = participant_review_ends(projections, "cup", ["ada", "kim"], 2)
    fewer = [*projections.as_table("participant_review", values).rows()]
    assert {row["participant"] for row in fewer} == {"ada", "kim"}
    assert len(fewer) < 2 * 10  # four of each, and what is in doubt
    for who in ("ada", "kim"):
        whole, part = ([row | {"place": 0} for row in rows if row["participant"] == who and row["counted"]]
                       for rows in (every, fewer))  # fmt: skip
        assert counted[who] == len(whole)
        assert (part[:2], part[-2:]) == (whole[:2], whole[-2:])


def test_an_end_that_rounded_scores_put_elsewhere_is_among_those_in_doubt() -> None:
    """In 1e-9, Ada's scores are 10,000,000 - 0.4 on rain and - 0.6 on snow, Bob's 40,000,000 + 0.4 and - 0.4.

    Of rounded scores, she is better than him by 30,000,000 and 30,000,001, of exact ones by + 0.8 and + 0.2.
    """
    said: list[AnyCommand] = [contest(rules=MEAN)]
    chances = {
        "rain": ("0.900000002", "0.799999999"),
        "snow": ("0.900000003", "0.800000001"),
        "hail": ("0.5", "0.5"),
    }
    for name, (ada, bob) in chances.items():
        said += [opened(name), entry(question=name)]
        said += [forecast(name, "ada", probability=ada), forecast(name, "bob", probability=bob)]
    projections = oracle.projected(*said, *map(resolution, chances))
    values, _ = participant_review_ends(projections, "cup", ["ada"], 1)
    rows = [*projections.as_table("participant_review", values).rows()]
    assert [row["question"] for row in rows] == ["rain", "snow", "hail"]


@settings(max_examples=times(24), deadline=None)
@given(st.integers(0, 2**64).map(Random))
def test_reviews_follow_from_the_scores(random: Random) -> None:
    """Under any rules: ranks by counting, medians by the standard library, and one row for each of all pairs.

    All are of exact scores, and each number is rounded once.
    """
    season = Season(random, drawn_rules(random), uncounted=0.2)
    recorded = oracle.attempted(season.commands)[0]
    projections = Projections(oracle.facts_in(recorded))
    shown = {row["participant"] for row in projections.table("leaderboard").rows()}
    people = shown & {*projections.facts.participant_codes.labels}
    if "cup0" not in projections.facts.contests:
        return
    weights = {
        projections.facts.questions[code].question: each.weight
        for code, each in projections.facts.contests["cup0"].entries.items()
    }
    scores: defaultdict[str, dict[str, Fraction]] = defaultdict(dict)
    for (question, participant), (exact, _) in exact_scores(projections, "cup0").items():
        if participant in people and weights[question]:
            scores[question][participant] = exact
    rows = [*projections.table("participant_review").rows()]
    assert {(row["participant"], row["question"]) for row in rows} == {(p, q) for p in people for q in scores}
    lower = lower_is_better(projections.facts.contests["cup0"].opened.rules)
    for row in rows:
        of_question = scores[row["question"]]
        middle = median(of_question.values())
        assert (Decimal(row["median"]), row["forecasters"]) == (oracle.nine(middle), len(of_question))
        if row["score"] is not None:
            score = of_question[row["participant"]]
            better = sum(each < score if lower else each > score for each in of_question.values())
            assert (Decimal(row["score"]), row["rank"]) == (oracle.nine(score), better + 1)
            assert Decimal(row["gained"]) == oracle.nine(middle - score if lower else score - middle)
        else:
            assert row["participant"] not in of_question
    for who in people:
        mine = [row for row in rows if row["participant"] == who]
        gains = [Decimal(row["gained"]) * weights[row["question"]] for row in mine if row["gained"] is not None]
        assert gains == sorted(gains, reverse=True)
        assert [row["place"] for row in mine] == [*range(1, len(mine) + 1)]
