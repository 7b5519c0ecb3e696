"""The community forecast: averages of every kind, normalized, and scored like any forecast."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.scores import community
from forecast_ledger.projections.scores.community import (
    AVERAGES,
    Aged,
    average,
    average_columns,
    distributions,
    share,
)
from forecast_ledger.projections.scores.reference_kinds import steps
from tests.support import oracle, rules_oracle
from tests.support.effort import times
from tests.support.given import (
    OPENS,
    choices,
    contest,
    day,
    enrolment,
    entry,
    forecast,
    numeric,
    opened,
    resolution,
    withdrawal,
)
from tests.support.logs import printed

BILLION = 10**9
CDF = 10**10
DOUBLED = st.sampled_from([0, 1, 2, CDF, 2 * CDF]) | st.integers(0, 2 * CDF)
Row = dict[str, Any]


def columns(table: Sequence[Sequence[int]]) -> list[Int64Array]:
    """Return the columns of a table."""
    return [np.array(column, np.int64) for column in zip(*table, strict=True)]


@st.composite
def tables(draw: st.DrawFn, value: st.SearchStrategy[int] = DOUBLED) -> list[list[int]]:
    """Draw averages of two to forty outcomes at a few instants."""
    width = draw(st.integers(2, 40))
    return draw(st.lists(st.lists(value, min_size=width, max_size=width), min_size=1, max_size=4))


def test_every_average_a_rule_set_can_name_exists() -> None:
    """The community consensus is the median on named outcomes and the mean on a range, with the rule set's weights."""
    mean = {"equal": community.plain_means, "recency": community.means}
    middle = {"equal": community._medians, "recency": community.recent_medians}
    assert set(AVERAGES.values()) == {*mean.values(), *middle.values()}
    for weights in ("equal", "recency"):
        for kind, of_named, of_ranges in (
            ("median", middle, middle),
            ("community", middle, mean),
            ("squeezed", middle, mean),
            ("mean", mean, mean),
        ):
            rules = own(consensus=kind, consensus_weights=weights)
            functions = average(rules, named=True).average, average(rules, named=False).average
            assert functions == (of_named[weights], of_ranges[weights])


STOOD = st.tuples(st.integers(0, 5), st.integers(1, 5), st.sampled_from([0, 1, 2, BILLION]) | st.integers(0, BILLION))


@settings(max_examples=times(50), deadline=None)
@given(st.lists(STOOD, min_size=1, max_size=9), st.sampled_from(["equal", "recency"]))
@example([(0, 1, 7), (3, 1, 5), (3, 2, 9)], "equal")
def test_the_median_of_two_complements_is_that_of_each(rows: list[tuple[int, int, int]], weights: str) -> None:
    """Also where nobody stands, and of two columns that are no complements, or are in some rows only."""
    start, lasts, value = columns(rows)
    averaged, end = average(own(consensus="median", consensus_weights=weights), named=True), start + lasts
    members, timeline = Aged(start, end, np.zeros_like(start), np.arange(len(start))), steps(start, end, start >= 0)
    at = np.arange(len(timeline.instant))
    for other in (BILLION - value, value, BILLION - value + (value > 5)):
        found = average_columns(averaged, members, timeline, [value, other], at)
        alone = [average_columns(averaged, members, timeline, [each], at)[0].tolist() for each in (value, other)]
        assert [column.tolist() for column in found] == alone


@settings(deadline=None)
@given(tables(), st.data())
@example([[0] * 33], None)
@example([[1, 0], [0, 1]], None)
def test_an_outcomes_share_of_all_averages_is_rounded_half_even_once(
    table: list[list[int]], data: st.DataObject | None
) -> None:
    """It is in 1e-18 and doubled, as the averages are; it is 0 if all averages are 0; squeezed or not."""
    outcomes = [data.draw(st.integers(0, len(row) - 1)) if data else 0 for row in table]
    doubled = share(columns(table), np.array(outcomes))
    expected = [
        2 * round(Fraction(row[o] * 10**18, sum(row))) if any(row) else 0
        for row, o in zip(table, outcomes, strict=True)
    ]
    assert doubled.tolist() == expected
    shares = [rules_oracle.squeezed([Fraction(number, 2 * CDF) for number in row]) for row in table]
    squeezed = [2 * round(row[o] * 10**18) for row, o in zip(shares, outcomes, strict=True)]
    assert share(columns(table), np.array(outcomes), squeezed=True).tolist() == squeezed


@settings(deadline=None)
@given(tables(st.sampled_from([0, 1, 2, BILLION, 2 * BILLION]) | st.integers(0, 2 * BILLION)))
@example([[0, 0, 0]])
@example([[0] * 7])
def test_averages_of_named_outcomes_become_a_forecast_that_sums_to_one(table: list[list[int]]) -> None:
    """Each outcome has its share, rounded half-even; the first largest takes the rest; if all are 0, they are equal."""
    for row, made in zip(table, distributions(columns(table), named=True).tolist(), strict=True):
        parts = row if any(row) else [1] * len(row)
        shares = [round(Fraction(part * BILLION, sum(parts))) for part in parts]
        shares[shares.index(max(shares))] += BILLION - sum(shares)
        assert made == shares
        assert sum(made) == BILLION


@given(tables())
def test_averages_of_a_range_become_a_cdf_without_normalization(table: list[list[int]]) -> None:
    """The doubled averages are halved, half-even."""
    expected = [[round(Fraction(number, 2)) for number in row] for row in table]
    assert distributions(columns(table), named=False).tolist() == expected


# --- whole logs


def own(**fields: Any) -> RuleSet:
    """Return rules that score the consensus by its logarithm, without a reference."""
    defaults: dict[str, Any] = {"name": "own", "kernel": "ln", "cdf_kernel": "ln", "score_consensus": True}
    return RuleSet(**(defaults | fields))


def consensus(
    rules: RuleSet, *commands: AnyCommand, start: OpenQuestion | None = None, label: str = "[consensus]"
) -> list[Row]:
    """Return the score parts of the consensus on a question."""
    question = start or opened()
    before: list[AnyCommand] = [question, contest(rules=rules), entry(question=question.question)]
    return [
        row for row in oracle.projected(*before, *commands).table("score_parts").rows() if row["participant"] == label
    ]


def forecasts(*chances: str, question: str = "rain") -> list[AnyCommand]:
    """Return forecasts of different participants, an hour apart; all stand from the last one on."""
    return [
        forecast(question, f"p{number}", probability=chance, at=day(10, number))
        for number, chance in enumerate(chances)
    ]


def last(rows: list[Row]) -> tuple[str, str]:
    """Return the probability and term of the last part."""
    return rows[-1]["probability"], rows[-1]["term"]


def log_of(chance: Fraction | str) -> str:
    """Return a logarithm as a term is printed."""
    return str(Decimal(oracle.picos("ln", Fraction(chance))).scaleb(-12))


FIVE = ("0.1", "0.2", "0.3", "0.8", "0.9")  # the oldest first


@pytest.mark.parametrize(
    ("rules", "chance"),
    [
        (own(), "0.3"),
        (own(consensus="mean"), "0.46"),
        (own(consensus_weights="recency"), "0.8"),
        (own(consensus="community"), "0.3"),
    ],
    ids=["median", "mean", "by recency", "community"],
)
def test_the_consensus_is_scored_as_the_rules_average_it(rules: RuleSet, chance: str) -> None:
    """By recency the weights are .29 .44 .60 .79 1: the running weight passes half of 3.12 at the fourth."""
    assert last(consensus(rules, *forecasts(*FIVE), resolution())) == (chance, log_of(chance))


@pytest.mark.parametrize("kernel", ["ln", "log2"])
@pytest.mark.parametrize(("chances", "chance"), [(("0.1", "0.2"), "0.15"), (("0.1", "0.100000001"), "0.1000000005")])
def test_the_median_of_an_even_number_is_the_mean_of_the_middle_two(
    kernel: str, chances: tuple[str, ...], chance: str
) -> None:
    """Metaculus, Tournament Scoring, question 1, day 1: 15% for 10% and 20%; halves of a billionth are kept."""
    rows = consensus(own(kernel=kernel, cdf_kernel="none"), *forecasts(*chances), resolution())
    assert last(rows) == (chance, str(Decimal(oracle.picos(kernel, Fraction(chance))).scaleb(-12)))


def test_a_mean_by_recency_has_the_weights_e_to_the_root_of_the_place() -> None:
    """It is Σ w p / Σ w with w = e^(√i - √n): 0.5828… for 0.2, 0.4 and 0.9, here to 1e-9."""
    weights = [oracle.EXACT.exp(oracle.EXACT.sqrt(Decimal(i)) - oracle.EXACT.sqrt(Decimal(3))) for i in (1, 2, 3)]
    total = sum(weight * Decimal(p) for weight, p in zip(weights, ("0.2", "0.4", "0.9"), strict=True))
    chance, _ = last(
        consensus(own(consensus="mean", consensus_weights="recency"), *forecasts("0.2", "0.4", "0.9"), resolution())
    )
    assert abs(Decimal(chance) - total / sum(weights, Decimal(0))) < Decimal("1e-9")


def test_age_counts_from_the_forecast_also_if_it_was_made_before_the_opening() -> None:
    """Five were made in reverse order: .9 .8 .3 .2 .1 have the weights .29 .44 .60 .79 1, and half is 1.56."""
    early = [forecast(participant=f"p{number}", probability=p, at=day(9, 5 - number)) for number, p in enumerate(FIVE)]
    assert last(consensus(own(consensus_weights="recency"), *early, resolution()))[0] == "0.2"
    again = forecast(participant="p4", probability="0.9", at=day(11))  # the oldest becomes the newest
    assert last(consensus(own(consensus_weights="recency"), *early, again, resolution()))[0] == "0.3"


THREE = [("0.6", "0.3", "0.1"), ("0.2", "0.7", "0.1"), ("0.1", "0.1", "0.8")]
HALVES = [("0.5", "0.5", "0"), ("0.5", "0", "0.5"), ("0.5", "0.25", "0.25")]


def coloured(rows: Sequence[tuple[str, str, str]]) -> list[AnyCommand]:
    """Return forecasts on a question with three outcomes."""
    names = ("red", "green", "blue")
    return [
        forecast("colour", f"p{number}", probabilities=dict(zip(names, row, strict=True)), at=OPENS)
        for number, row in enumerate(rows)
    ]


@pytest.mark.parametrize(("kind", "chance"), [("median", Fraction(3, 10)), ("mean", Fraction(11, 30))])
def test_only_the_average_of_the_outcome_that_happened_counts(kind: str, chance: Fraction) -> None:
    """The averages of the other outcomes change nothing: here of 0.3, 0.7 and 0.1."""
    rows = consensus(own(consensus=kind), *coloured(THREE), resolution("colour", outcome="green"), start=choices())
    assert last(rows)[1] == log_of(chance)


def test_a_community_normalizes_the_medians_of_all_outcomes() -> None:
    """The medians 0.2, 0.3 and 0.1 sum to 0.6: green has half of it."""
    rows = consensus(
        own(consensus="community"), *coloured(THREE), resolution("colour", outcome="green"), start=choices()
    )
    assert last(rows) == ("0.5", log_of("1/2"))


def test_a_community_floors_every_outcome_before_it_normalizes() -> None:
    """A median of 0 counts as 0.001: 1 of 1.002 with two such medians; without any, 0.5 of 0.5 + 0.25 + 0.25."""
    sure = [("1", "0", "0")] * 3
    rows = consensus(own(consensus="community"), *coloured(sure), resolution("colour", outcome="red"), start=choices())
    assert last(rows)[1] == log_of(Fraction(1000, 1002))
    rows = consensus(
        own(consensus="community"), *coloured(HALVES), resolution("colour", outcome="red"), start=choices()
    )
    assert last(rows)[1] == log_of("1/2")


SQUEEZED = {
    "red": Fraction(199, 597) * Fraction(997, 1_000) + Fraction(1, 1_000),
    "green": Fraction(299, 597) * Fraction(997, 1_000) + Fraction(1, 1_000),
    "blue": Fraction(99, 597) * Fraction(997, 1_000) + Fraction(1, 1_000),
}


@pytest.mark.parametrize("outcome", SQUEEZED)
def test_a_squeezed_consensus_leaves_a_thousandth_to_every_outcome(outcome: str) -> None:
    """The medians 0.2, 0.3 and 0.1 less 0.001 sum to 0.597: green has 0.299 / 0.597 · 0.997 + 0.001."""
    answer = resolution("colour", outcome=outcome)
    rows = consensus(own(consensus="squeezed"), *coloured(THREE), answer, start=choices())
    assert last(rows)[1] == log_of(SQUEEZED[outcome])


def test_a_squeezed_consensus_scored_whole_is_a_forecast_of_billionths() -> None:
    """Its score is the halved Brier score of the same shares."""
    rules = own(consensus="squeezed", kernel="brier", cdf_kernel="none", period="covered", total="mean")
    rows = consensus(rules, *coloured(THREE), resolution("colour", outcome="green"), start=choices())
    score = sum(((part - (name == "green")) ** 2 for name, part in SQUEEZED.items()), Fraction(0)) / 2
    assert abs(Fraction(last(rows)[1]) - score) < Fraction(2, BILLION)


@pytest.mark.parametrize(
    ("sure", "shares"),
    [
        ([("1", "0", "0")] * 3, (Fraction(998, 1_000), Fraction(1, 1_000))),  # 0.001 less 0.001 leaves nothing
        ([("1", "0", "0"), ("0", "1", "0"), ("0", "0", "1")], (Fraction(1, 3), Fraction(1, 3))),  # all are equal
    ],
)
def test_a_squeezed_consensus_of_certain_forecasts_stays_within_its_bounds(
    sure: list[tuple[str, str, str]], shares: tuple[Fraction, Fraction]
) -> None:
    """The greatest probability is 1 - 0.001 (K - 1)."""
    for name, chance in zip(("red", "green"), shares, strict=True):
        answer = resolution("colour", outcome=name)
        rows = consensus(own(consensus="squeezed"), *coloured(sure), answer, start=choices())
        assert last(rows)[1] == log_of(chance)


def test_a_squeezed_consensus_is_the_median_on_a_binary_question_and_the_mean_on_a_range() -> None:
    """Multiple choice with two outcomes is squeezed: 0.3 and 0.7 less 0.001 sum to 0.998."""
    assert last(consensus(own(consensus="squeezed"), *forecasts(*FIVE), resolution())) == ("0.3", log_of("0.3"))
    answer = resolution("depth", value="2.5")
    assert last(consensus(own(consensus="squeezed"), *deep(), answer, start=numeric())) == ("0.3", log_of("0.3"))
    two = forecast("colour", probabilities={"a": "0.3", "b": "0.7"}, at=OPENS)
    start = choices(outcomes=("a", "b"))
    rows = consensus(own(consensus="squeezed"), two, resolution("colour", outcome="a"), start=start)
    assert last(rows)[1] == log_of(Fraction(299, 998) * Fraction(998, 1_000) + Fraction(1, 1_000))


def test_a_squeezed_consensus_needs_room_for_a_thousandth_each() -> None:
    """There is room for 999 outcomes; a question with 1,000 is refused."""
    for count, refused in ((999, []), (1_000, ["unscorable_question"])):
        names = tuple(f"o{number}" for number in range(count))
        commands = choices(outcomes=names), contest(rules=own(consensus="squeezed")), entry(question="colour")
        assert [refusal.code for refusal in oracle.attempted(commands)[1]] == refused


DEPTHS = [(0, "0.2", "0.4", "0.8", 1), (0, "0.1", "0.1", "0.2", 1), (0, 0, "0.5", "0.9", 1)]


def deep() -> list[AnyCommand]:
    """Return forecasts on a numeric question with four bins."""
    return [forecast("depth", f"p{number}", cdf=cdf, at=OPENS) for number, cdf in enumerate(DEPTHS)]


@pytest.mark.parametrize(("kind", "chance"), [("median", "0.4"), ("mean", "0.3"), ("community", "0.3")])
def test_a_numeric_community_is_a_mean(kind: str, chance: str) -> None:
    """The forecasts give the third bin 0.4, 0.1 and 0.4."""
    rows = consensus(own(consensus=kind), *deep(), resolution("depth", value="2.5"), start=numeric())
    assert last(rows) == (chance, log_of(chance))


def test_a_kernel_of_whole_distributions_scores_the_average_of_every_number() -> None:
    """The medians .2 .3 .1 become .333 .5 .167, the means are .3 .3667 .3333: halved Brier scores by hand."""
    fields = {"kernel": "brier", "cdf_kernel": "crps", "period": "covered", "total": "mean"}
    answer = resolution("colour", outcome="green")
    for kind, numbers in (("median", (2, 3, 1)), ("community", (2, 3, 1)), ("mean", (9, 11, 10))):
        rows = consensus(own(consensus=kind, **fields), *coloured(THREE), answer, start=choices())
        shares = [Fraction(round(Fraction(number, sum(numbers)) * BILLION), BILLION) for number in numbers]
        score = (shares[0] ** 2 + (shares[1] - 1) ** 2 + shares[2] ** 2) / 2
        assert abs(Fraction(last(rows)[1]) - score) < Fraction(2, BILLION)


@pytest.mark.parametrize("kind", ["median", "mean"])
def test_the_crps_of_the_consensus_is_the_crps_of_the_average_cdf(kind: str) -> None:
    """The average is taken at every edge; a participant who forecasts it scores the same."""
    fields = {"kernel": "none", "cdf_kernel": "crps", "period": "covered", "total": "mean"}
    middle = {
        "median": [median(map(Fraction, edge)) for edge in zip(*DEPTHS, strict=True)],
        "mean": [Fraction(round(sum(map(Fraction, edge)) / 3 * CDF), CDF) for edge in zip(*DEPTHS, strict=True)],
    }[kind]
    answer = resolution("depth", value="1.3")
    rows = consensus(own(consensus=kind, **fields), *deep(), answer, start=numeric())
    same = forecast("depth", "p9", cdf=[Decimal(int(height * CDF)).scaleb(-10) for height in middle], at=OPENS)
    alone = consensus(own(consensus=kind, **fields), same, answer, start=numeric(), label="p9")
    assert last(rows)[1] == last(alone)[1]
    assert rows[-1]["probability"] is None


def test_medians_that_are_all_zero_are_equal() -> None:
    """Three participants are certain of three outcomes: any outcome scores (2/3)² + 2 (1/3)², halved."""
    rules = own(kernel="brier", cdf_kernel="none", period="covered", total="mean", least_probability_ppm=0)
    sure = coloured([("1", "0", "0"), ("0", "1", "0"), ("0", "0", "1")])
    scores = {
        name: Fraction(last(consensus(rules, *sure, resolution("colour", outcome=name), start=choices()))[1])
        for name in ("red", "green", "blue")
    }
    assert all(abs(score - Fraction(1, 3)) < Fraction(2, BILLION) for score in scores.values())


# --- the row of the consensus


def test_the_consensus_has_a_row_of_its_own_without_rank_or_prize() -> None:
    """Its coverage is that of its members: here the days from 11 to 13 and from 16 on."""
    rules = own(take="positive_square", reference="uniform", scale="baseline")
    start: list[AnyCommand] = [opened(), contest(rules=rules, pool=100), entry()]
    made: list[AnyCommand] = [
        forecast(probability="0.8", at=day(11)),
        withdrawal(at=day(13)),
        forecast(probability="0.9", at=day(16)),
    ]
    board = printed("leaderboard", *start, *made, resolution())
    assert [(row["participant"], row["rank"], row["excluded"], row["prize"], row["coverage"]) for row in board] == [
        ("[consensus]", None, "consensus", "0.00", "0.600000000"),
        ("ada", 1, "", "100.00", "0.600000000"),
    ]
    assert board[0]["score"] == board[1]["score"]


def test_without_a_standing_forecast_there_is_no_consensus() -> None:
    """Its parts leave out a gap; without a member it has no row."""
    made: list[AnyCommand] = [forecast(at=day(11)), withdrawal(at=day(13)), forecast(at=day(16)), resolution()]
    spans = [(row["from_at"], row["to_at"]) for row in consensus(own(), *made)]
    assert spans == [(day(11), day(13)), (day(16), day(20))]
    assert consensus(own(bots="scored_only"), enrolment(bot=True), *made) == []


def test_only_members_make_the_consensus() -> None:
    """A bot is compared with the consensus and does not change it."""
    three = forecasts("0.2", "0.4", "0.9")
    bot = [enrolment(participant="p2", bot=True)]
    assert last(consensus(own(), *three, resolution()))[0] == "0.4"
    assert last(consensus(own(bots="scored_only"), *bot, *three, resolution()))[0] == "0.3"
    assert last(consensus(own(), *bot, *three, resolution()))[0] == "0.4"


def test_the_consensus_has_a_name_that_no_participant_has() -> None:
    """A participant may have any id."""
    made: list[AnyCommand] = [forecast(participant="[consensus]", probability="0.8", at=OPENS), resolution()]
    assert [row["probability"] for row in consensus(own(), *made, label="[[consensus]]")] == ["0.8"]


def test_against_itself_the_consensus_earns_nothing() -> None:
    """It has full coverage."""
    rules = own(reference="consensus")
    start: list[AnyCommand] = [opened(), contest(rules=rules), entry(), *forecasts("0.2", "0.4"), resolution()]
    [row] = [row for row in printed("scores", *start) if row["participant"] == "[consensus]"]
    assert (row["score"], row["coverage"]) == ("0.000000000", "1.000000000")


@pytest.mark.parametrize(("factor", "times"), [("one", 1), ("members", 2)])
def test_against_peers_the_consensus_is_not_a_member(factor: str, times: int) -> None:
    """Members forecast 0.2 and 0.8, so it is 0.5: factor · (ln 0.5 - (ln 0.2 + ln 0.8) / 2) = factor · 0.2231…."""
    rules = own(reference="peers", scored_only_factor=factor, scale="peer")
    start: list[AnyCommand] = [opened(), contest(rules=rules), entry()]
    made = [forecast(participant=who, probability=p, at=OPENS) for who, p in (("ada", "0.2"), ("bob", "0.8"))]
    [row] = [row for row in printed("scores", *start, *made, resolution()) if row["participant"] == "[consensus]"]
    lead = oracle.picos("ln", Fraction(1, 2)) - Fraction(oracle.picos("ln", Fraction(4, 25)), 2)
    assert Decimal(row["score"]) == oracle.nine(100 * times * lead / 10**12)


def test_parts_end_where_any_probability_of_the_consensus_changes() -> None:
    """Red has half all the time; with the second forecast of p1, green and blue change."""
    rules = RuleSet(name="own", kernel="brier", reference="consensus", consensus="mean", least_probability_ppm=0)
    start: list[AnyCommand] = [choices(), contest(rules=rules), entry(question="colour")]
    made = coloured([("0.5", "0.5", "0"), ("0.5", "0.5", "0")])
    again = forecast("colour", "p1", probabilities={"red": "0.5", "green": 0, "blue": "0.5"}, at=day(14))
    parts = printed("score_parts", *start, *made, again, resolution("colour", outcome="red"))
    own_parts = [(row["from_at"], row["to_at"], row["term"]) for row in parts if row["participant"] == "p0"]
    assert own_parts == [(OPENS, day(14), "0.000000000000"), (day(14), day(20), "0.062500000000")]
    assert {(row["probability"], row["reference"], row["peers"]) for row in parts} == {("0.5", "0.5", None)}
