"""Totals: exact weighted sums of scores, coverages, and missing forecasts."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.boards.totals import ParticipantSums, worst_score
from forecast_ledger.projections.core.late_fractions import sum_of_terms
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.question_groups import QUESTION_KINDS
from forecast_ledger.projections.scores.range_kernels import Numbers
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    CLOSES,
    OPENS,
    REVEALS,
    choices,
    closing,
    contest,
    day,
    entry,
    forecast,
    numeric,
    opened,
    resolution,
    withdrawal,
)

BILLION = 10**9
MICRO = 10**6
PAIRS = st.lists(st.tuples(st.integers(-(10**30), 10**30), st.integers(1, 10**12)))


def own(projections: Projections, name: str = "cup") -> dict[str, ParticipantSums]:
    """Return a contest's sums, by participant."""
    facts = projections.facts
    return {
        sums.participant: sums for sums in totals.participant_sums(facts, facts.contests[name], projections.tally(name))
    }


@given(PAIRS)
def test_fractions_are_added_exactly(pairs: list[tuple[int, int]]) -> None:
    """Any number of terms with any signs; no terms sum to 0."""
    assert sum_of_terms(pairs) == sum((Fraction(*pair) for pair in pairs), Fraction(0))


def test_the_label_of_the_consensus_is_nobodys_id() -> None:
    """It gets brackets until no participant has the same id."""
    actual = Facts()
    assert totals.consensus_label(actual) == "[consensus]"
    for name in ("[consensus]", "[[consensus]]"):
        actual.participant_codes.add(name)
    assert totals.consensus_label(actual) == "[[[consensus]]]"


# --- whole logs


def three_questions(*commands: AnyCommand, rules: str | RuleSet = "relative-2022-04") -> Projections:
    """Return a season of three questions: one hidden for two of ten days with weight 3, one plain, one closed early."""
    questions: list[AnyCommand] = [opened(reveals_at=REVEALS), opened("wind"), opened("snow"), contest(rules=rules)]
    entries: list[AnyCommand] = [
        entry(weight=3, hidden_coverage_weight="0.5"),
        entry(question="wind"),
        entry(question="snow", weight=2),
    ]
    answers: list[AnyCommand] = [resolution(), resolution("wind"), closing("snow", at=day(14)), resolution("snow")]
    return oracle.projected(*questions, *entries, *commands, *answers)


def test_coverages_are_exact_shares_weighed_over_all_questions_that_count() -> None:
    """Ada: 1/2 · 1 + 1/2 · 3/8, all, none; (3 · 11/16 + 1 · 1 + 2 · 0) / 6. Bob: 4/10 of the last."""
    commands: list[AnyCommand] = [forecast(at=OPENS), withdrawal(at=day(15)), forecast("wind", at=OPENS)]
    projections = three_questions(*commands, forecast("snow", "bob", at=OPENS))
    sums = own(projections)
    assert time_weighted.coverages(*projections.scored("cup")).exact() == [Fraction(11, 16), 1, Fraction(4, 10)]
    assert (sums["ada"].coverage, sums["bob"].coverage) == (Fraction(49, 96), Fraction(8, 60))
    assert (sums["ada"].covered, sums["bob"].covered) == (Fraction(49, 16), Fraction(4, 5))
    assert [sums[who].weight for who in ("ada", "bob")] == [4, 2]
    assert (sums["ada"].questions, sums["bob"].questions) == (2, 1)


def test_attainable_coverage_is_that_of_a_forecast_for_the_whole_scored_time() -> None:
    """Two questions can be covered whole, the third for four of ten days: (3 + 1 + 2 · 0.4) / 6."""
    projections = three_questions(forecast(at=OPENS))
    assert time_weighted.attainable_shares(projections.scored("cup").questions).tolist() == [10**9, 10**9, 4 * 10**8]
    assert projections.tally("cup").attainable == Fraction(48, 60)


def test_a_contest_may_have_the_least_weight() -> None:
    """The weight is a millionth; the attainable coverage is 1, and it is attained."""
    start: list[AnyCommand] = [opened(), contest(), entry(weight="0.000001"), forecast(at=OPENS), resolution()]
    projections = oracle.projected(*start)
    assert projections.tally("cup").attainable == own(projections)["ada"].coverage == 1
    assert own(projections)["ada"].weight == Fraction(1, MICRO)


@pytest.mark.parametrize("known_day", [11, 15])
def test_attainable_coverage_has_the_hidden_weight_too(known_day: int) -> None:
    """Known within the hidden days: 1/2 · 1/2; after them: 1/2 + 1/2 · 3/8, as a forecast from the opening on."""
    start: list[AnyCommand] = [opened(reveals_at=REVEALS), contest(), entry(hidden_coverage_weight="0.5")]
    projections = oracle.projected(*start, forecast(at=OPENS), resolution(known_at=day(known_day)))
    share = Fraction(1, 4) if known_day == 11 else Fraction(11, 16)
    assert projections.tally("cup").attainable == own(projections)["ada"].coverage == share


def test_questions_in_one_group_share_every_divisor() -> None:
    """Kind, weight, hidden weight, period, scored time and scale; two of three questions form one group."""
    names = ("rain", "wind", "snow", "hail", "fog")
    commands: list[AnyCommand] = [opened(name, closes_at=day(19 if name == "fog" else 20)) for name in names]
    commands += [choices(), contest(), entry(question="colour")]
    commands += [entry(question=name, weight=2 if name == "hail" else 1) for name in names]
    commands += [
        closing("snow", at=day(15)),
        *(resolution(name) for name in names),
        resolution("colour", outcome="red"),
    ]
    questions = oracle.projected(*commands).scored("cup").questions
    kinds = questions.groups
    labels = [answer.question.question for answer in questions.answers]
    group = dict(zip(labels, kinds.group_of.tolist(), strict=True))
    assert group["rain"] == group["wind"]
    assert len(set(group.values())) == len(kinds.groups) == 5
    assert [kinds.groups[group[name]].weight for name in ("rain", "hail")] == [MICRO, 2 * MICRO]


RULES = [
    RuleSet(name="median", kernel="ln", cdf_kernel="ln", reference="consensus"),
    RuleSet(name="peers", kernel="ln", cdf_kernel="ln", reference="peers", scale="peer", score_consensus=True),
    RuleSet(name="base", kernel="log2", cdf_kernel="log2", reference="uniform", scale="baseline", sampling="day"),
    RuleSet(name="brier", kernel="brier", cdf_kernel="crps", period="covered", total="mean", score_consensus=True),
    RuleSet(name="spot", kernel="spherical", cdf_kernel="ln", reference="peers", sampling="spot", period="actual"),
]


@settings(max_examples=times(36), deadline=None)
@given(oracle.logs(), st.sampled_from(RULES))
def test_sums_agree_with_the_scores_exactly(commands: list[AnyCommand], rules: RuleSet) -> None:
    """Σ w · score, Σ w · coverage, Σ w and counts of w > 0 agree with numerators, for logs and rules of all kinds."""
    facts = oracle.facts_in(oracle.attempted(commands)[0])
    for contest_facts in facts.contests.values():
        contest_facts.opened = structs.replace(contest_facts.opened, rules=rules)
    projections = Projections(facts)
    rows = list(projections.table("scores").rows())
    people = [*facts.participant_codes.labels, "[consensus]"]
    for name in projections.contests:
        questions, scores = projections.scored(name)
        names = [answer.question.question for answer in questions.answers]
        weights = dict(zip(names, [Fraction(weight, MICRO) for weight in questions.weight.tolist()], strict=True))
        pairs = [
            (names[q], people[p]) for q, p in zip(scores.question.tolist(), scores.participant.tolist(), strict=True)
        ]
        covered = dict(zip(pairs, time_weighted.coverages(questions, scores).exact(), strict=True))
        mine: dict[str, list[tuple[Fraction, Fraction, Fraction]]] = {}
        for row in rows:
            if row["contest"] == name and weights[row["question"]]:
                weight, score = weights[row["question"]], Fraction(int(row["numerator"]), int(row["denominator"]))
                terms = weight, weight * score, weight * covered[row["question"], row["participant"]]
                mine.setdefault(row["participant"], []).append(terms)
        expected = {
            who: (*(sum(column, Fraction(0)) for column in zip(*scores, strict=True)), len(scores))
            for who, scores in mine.items()
        }
        actual = own(projections, name)
        assert {who: (s.weight, s.score, s.covered, s.questions) for who, s in actual.items()} == expected
        assert all(s.coverage == s.covered / sum(weights.values()) for s in actual.values())
        assert [who for who, s in actual.items() if s.reference] == ["[consensus]"] * ("[consensus]" in actual)
        assert not any(s.kinds for s in actual.values())


# --- kinds


def farthest(name: str) -> int:
    """Return the score of the worst forecast, in 1e-12: it is certain of what is farthest from the answer."""
    kernel = KERNELS[name].of_numbers
    assert kernel
    bins = NumericRange(lower="0", upper="4", bins=2, open_lower=True)
    median = NumericRange(lower="0", upper="4", levels=(BILLION // 2,))
    absolute = dict.fromkeys(["absolute", "absolute_clipped"], ([0], median))
    few = {"brier_mean": ([BILLION, 0], None)}  # of more outcomes no forecast scores 1
    flat, span = ({"crps": ([10**10] * 3, bins)} | few | absolute).get(name, ([BILLION, 0, 0], None))
    zero = np.zeros(1, np.int64)
    [score] = kernel(
        Numbers(np.array(flat), zero, zero + len(flat), zero + len(flat) - 1, zero, [span], ["4"])
    ).tolist()
    return int(score)


@pytest.mark.parametrize(
    "name", [name for name, row in KERNELS.items() if row.lower_is_better and row.worst is not None]
)
def test_a_missing_forecast_gets_the_worst_score(name: str) -> None:
    """No forecast scores more."""
    assert farthest(name) == worst_score(name) * 10**12


def test_a_kernel_without_a_bound_has_no_worst_score() -> None:
    """A quantile may be off by any amount; a rule set that needs its worst score is refused."""
    with pytest.raises(ValueError, match="pinball"):
        worst_score("pinball")


AUTOCAST = "autocast-2022"


def point(question: str = "size") -> OpenQuestion:
    """Return a numeric question from 0 to 1 with point forecasts."""
    return numeric(question, lower=0, upper=1, bins=None, levels=("0.5",), decimals=2)


def combined(*commands: AnyCommand) -> dict[str, ParticipantSums]:
    """Return the sums of a contest over two binary questions with weights 1 and 3, a choice of three, and a number."""
    start: list[AnyCommand] = [opened(), opened("wind"), choices(), point(), contest(rules=AUTOCAST)]
    start += [entry(), entry(question="wind", weight=3), entry(question="colour"), entry(question="size")]
    answers = [resolution(), resolution("wind"), resolution("colour", outcome="green")]
    return own(oracle.projected(*start, *commands, *answers, resolution("size", value="0.7")))


def made(who: str, *questions: str) -> list[AnyCommand]:
    """Return forecasts of one participant; their kernel scores are 0.04, 0.64, 0.39 and 0.15."""
    colours = {"red": "0.5", "green": "0.3", "blue": "0.2"}
    forecasts: Sequence[AnyCommand] = [
        forecast("rain", who, probability="0.8"),
        forecast("wind", who, probability="0.2"),
        forecast("colour", who, probabilities=colours),
        forecast("size", who, quantiles=("0.55",)),
    ]
    return [made for made in forecasts if getattr(made, "question", "") in questions]


def test_each_kind_has_its_own_sum_with_the_worst_score_for_missing_forecasts() -> None:
    """0.04 + 3 · 0.64 with weight 4, 0.39, 0.15; without wind 0.04 + 3 · 1, without the point 1."""
    assert QUESTION_KINDS == ("binary", "multiple_choice", "numeric")
    commands = *made("ada", "rain", "wind", "colour", "size"), *made("bob", "rain", "colour"), *made("cyd", "size")
    actual = combined(*commands)
    expected = {"ada": ["1.96", "0.39", "0.15"], "bob": ["3.04", "0.39", "1"], "cyd": ["4", "1", "0.15"]}
    for who, scores in expected.items():
        assert [kind.score for kind in actual[who].kinds] == [Fraction(score) for score in scores]
        assert [kind.kind for kind in actual[who].kinds] == list(QUESTION_KINDS)
        assert [kind.weight for kind in actual[who].kinds] == [4, 1, 1]
        assert [kind.questions for kind in actual[who].kinds] == [2, 1, 1]
    assert [[kind.forecast_on for kind in actual[who].kinds] for who in expected] == [[2, 1, 1], [1, 1, 0], [0, 0, 1]]
    assert [kind.mean for kind in actual["ada"].kinds] == [49, 39, 15]


@pytest.mark.parametrize(
    ("cdf_kernel", "quantile_kernel"), [("crps", "none"), ("none", "absolute"), ("crps", "absolute")]
)
def test_a_missing_numeric_forecast_gets_the_worst_score_of_its_kernel(cdf_kernel: str, quantile_kernel: str) -> None:
    """Either kernel may score it."""
    rules = RuleSet(
        name="own", kernel="ordered_brier", cdf_kernel=cdf_kernel, quantile_kernel=quantile_kernel,  # type: ignore[arg-type]
        period="covered", total="kind_means",
    )  # fmt: skip
    question = point("depth") if cdf_kernel == "none" else numeric(lower=0, upper=1)
    start: list[AnyCommand] = [opened(), choices(), question, contest(rules=rules)]
    start += [entry(), entry(question="colour"), entry(question="depth"), forecast(probability=1)]
    answers = [resolution(), resolution("colour", outcome="red"), resolution("depth", value="0.5")]
    projections = own(oracle.projected(*start, *answers))["ada"].kinds
    assert [kind.score for kind in projections] == [0, 2, 1]


def test_a_kind_without_questions_is_not_missing() -> None:
    """A kind without a question has no missing forecasts."""
    start: list[AnyCommand] = [opened(closes_at=CLOSES), contest(rules=AUTOCAST), entry()]
    projections = own(oracle.projected(*start, forecast(probability="0.8"), resolution()))
    assert [(kind.kind, kind.score) for kind in projections["ada"].kinds] == [("binary", Fraction("0.04"))]


@settings(max_examples=times(30), deadline=None)
@given(oracle.logs(), st.data())
def test_tallies_of_questions_can_be_added_and_subtracted(commands: list[AnyCommand], data: st.DataObject) -> None:
    """Added in any order they make the tally of all; without some of them, the tally of the rest."""
    projections = Projections(oracle.facts_in(oracle.attempted(commands)[0]))
    people = projections.facts.participant_codes.codes
    for name, held in projections.facts.contests.items():
        questions, rows = projections.scored(name)
        apart = np.arange(len(questions.code))
        tallies = totals.tallies(held.opened.rules, questions, rows, len(people), apart)
        mixed = data.draw(st.permutations(tallies))
        whole = totals.Tally({}, totals.NO_SCORES, {})
        for tally in mixed:
            whole = whole.plus(tally)
        assert whole == projections.tally(name)
        upto = data.draw(st.integers(0, len(mixed)))
        first = totals.Tally({}, totals.NO_SCORES, {})
        for tally in mixed[:upto]:
            first = first.plus(tally)
        for tally in mixed[upto:]:
            whole = whole.plus(tally, -1)
        assert whole == first
