"""From scores to what a board sums: exact weighted sums, coverages, and what is missing."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.core.lazy_fractions import sum_of_terms
from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.boards.totals import ParticipantSums, worst_score
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores import coverage
from forecast_ledger.projections.scores.coverage import QUESTION_KINDS
from forecast_ledger.projections.scores.forecast_numbers import Numbers
from forecast_ledger.projections.scores.kernels import KERNELS
from tests.support import oracle
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
    """A contest's sums, by participant."""
    found = projections.facts
    return {
        each.participant: each for each in totals.participant_sums(found, found.contests[name], projections.tally(name))
    }


@given(PAIRS)
def test_fractions_are_added_exactly(pairs: list[tuple[int, int]]) -> None:
    """However many, in any signs; nothing adds up to nothing."""
    assert sum_of_terms(pairs) == sum((Fraction(*pair) for pair in pairs), Fraction(0))


def test_the_consensus_is_labelled_as_nobody_is() -> None:
    """Brackets are put around it until nobody is called that."""
    found = Facts()
    assert totals.consensus_label(found) == "[consensus]"
    for name in ("[consensus]", "[[consensus]]"):
        found.participant_codes.add(name)
    assert totals.consensus_label(found) == "[[[consensus]]]"


# --- whole logs


def season(*said: AnyCommand, rules: str | RuleSet = "relative-2022-04") -> Projections:
    """Three questions: one hidden for two of ten days and of weight 3, one plain, one closed early."""
    questions: list[AnyCommand] = [opened(reveals_at=REVEALS), opened("wind"), opened("snow"), contest(rules=rules)]
    entries: list[AnyCommand] = [
        entry(weight=3, hidden_coverage_weight="0.5"),
        entry(question="wind"),
        entry(question="snow", weight=2),
    ]
    answers: list[AnyCommand] = [resolution(), resolution("wind"), closing("snow", at=day(14)), resolution("snow")]
    return oracle.projected(*questions, *entries, *said, *answers)


def test_coverages_are_exact_shares_weighed_over_all_questions_that_count() -> None:
    """Ada: 1/2 · 1 + 1/2 · 3/8, all, none; (3 · 11/16 + 1 · 1 + 2 · 0) / 6. Bob: 4/10 of the last, all there was."""
    said: list[AnyCommand] = [forecast(at=OPENS), withdrawal(at=day(15)), forecast("wind", at=OPENS)]
    found = season(*said, forecast("snow", "bob", at=OPENS))
    each = own(found)
    assert coverage.coverages(*found.scored("cup")).exact() == [Fraction(11, 16), 1, Fraction(4, 10)]
    assert (each["ada"].coverage, each["bob"].coverage) == (Fraction(49, 96), Fraction(8, 60))
    assert (each["ada"].covered, each["bob"].covered) == (Fraction(49, 16), Fraction(4, 5))
    assert [each[who].weight for who in ("ada", "bob")] == [4, 2]
    assert (each["ada"].questions, each["bob"].questions) == (2, 1)


def test_what_could_be_attained_is_what_somebody_who_always_stood_would_cover() -> None:
    """All of two questions, and four of ten days of the third: (3 + 1 + 2 · 0.4) / 6."""
    found = season(forecast(at=OPENS))
    assert coverage.attainable_shares(found.scored("cup").questions) == [1, 1, Fraction(2, 5)]
    assert found.tally("cup").attainable == Fraction(48, 60)


def test_a_contest_may_weigh_as_little_as_a_weight_can() -> None:
    """A millionth: all of it can be attained, and is."""
    start: list[AnyCommand] = [opened(), contest(), entry(weight="0.000001"), forecast(at=OPENS), resolution()]
    found = oracle.projected(*start)
    assert found.tally("cup").attainable == own(found)["ada"].coverage == 1
    assert own(found)["ada"].weight == Fraction(1, MICRO)


@pytest.mark.parametrize("known", [11, 15])
def test_what_could_be_attained_of_a_hidden_period_is_weighed_like_what_was(known: int) -> None:
    """Known within the hidden days, 1/2 · 1/2; after them, 1/2 + 1/2 · 3/8: what who stood from the opening has."""
    start: list[AnyCommand] = [opened(reveals_at=REVEALS), contest(), entry(hidden_coverage_weight="0.5")]
    found = oracle.projected(*start, forecast(at=OPENS), resolution(known_at=day(known)))
    share = Fraction(1, 4) if known == 11 else Fraction(11, 16)
    assert found.tally("cup").attainable == own(found)["ada"].coverage == share


def test_questions_alike_are_told_from_others_by_everything_that_divides_them() -> None:
    """Kind, weight, hidden weight, period, scored time and scale; two of three here are alike."""
    names = ("rain", "wind", "snow", "hail", "fog")
    asked: list[AnyCommand] = [opened(name, closes_at=day(19 if name == "fog" else 20)) for name in names]
    asked += [choices(), contest(), entry(question="colour")]
    asked += [entry(question=name, weight=2 if name == "hail" else 1) for name in names]
    asked += [closing("snow", at=day(15)), *(resolution(name) for name in names), resolution("colour", outcome="red")]
    questions = oracle.projected(*asked).scored("cup").questions
    kinds = coverage.group_questions(questions)
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


@settings(max_examples=60, deadline=None)
@given(oracle.logs(), st.sampled_from(RULES))
def test_sums_are_those_of_the_scores_exactly(asked: list[AnyCommand], rules: RuleSet) -> None:
    """Σ w · score, Σ w · coverage, Σ w and how many, from published numerators, over logs and rules of all kinds."""
    facts = oracle.told(oracle.attempted(asked)[0])
    for each in facts.contests.values():
        each.opened = structs.replace(each.opened, rules=rules)
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
        covered = dict(zip(pairs, coverage.coverages(questions, scores).exact(), strict=True))
        mine: dict[str, list[tuple[Fraction, Fraction, Fraction]]] = {}
        for row in rows:
            if row["contest"] == name:
                weight, score = weights[row["question"]], Fraction(int(row["numerator"]), int(row["denominator"]))
                terms = weight, weight * score, weight * covered[row["question"], row["participant"]]
                mine.setdefault(row["participant"], []).append(terms)
        expected = {
            who: (*(sum(column, Fraction(0)) for column in zip(*each, strict=True)), len(each))
            for who, each in mine.items()
        }
        found = own(projections, name)
        assert {who: (s.weight, s.score, s.covered, s.questions) for who, s in found.items()} == expected
        assert all(s.coverage == s.covered / sum(weights.values()) for s in found.values())
        assert [who for who, s in found.items() if s.is_consensus] == ["[consensus]"] * ("[consensus]" in found)
        assert not any(s.kinds for s in found.values())


# --- kinds


def farthest(name: str) -> int:
    """What a kernel scores a forecast that could not be worse, in 1e-12: sure of what is farthest from the answer."""
    kernel = KERNELS[name].of_numbers
    assert kernel
    bins = NumericRange(lower="0", upper="4", bins=2, open_lower=True)
    median = NumericRange(lower="0", upper="4", levels=(BILLION // 2,))
    absolute = dict.fromkeys(["absolute", "absolute_clipped"], ([0], median))
    flat, span = ({"crps": ([10**10] * 3, bins)} | absolute).get(name, ([BILLION, 0, 0], None))
    zero = np.zeros(1, np.int64)
    [score] = kernel(Numbers(np.array(flat), zero, zero + len(flat), zero + 2, zero, [span], ["4"])).tolist()
    return int(score)


@pytest.mark.parametrize(
    "name", [name for name, row in KERNELS.items() if row.lower_is_better and row.worst is not None]
)
def test_a_missing_forecast_counts_as_the_worst_there_is(name: str) -> None:
    """Nothing that can be forecast scores more."""
    assert farthest(name) == worst_score(name) * 10**12


def test_what_has_no_bound_has_no_worst() -> None:
    """A quantile may be as far off as one likes; a rule set that would need its worst is refused."""
    with pytest.raises(ValueError, match="pinball"):
        worst_score("pinball")


AUTOCAST = "autocast-2022"


def point(question: str = "size") -> OpenQuestion:
    """A numeric question from 0 to 1, asked by a point."""
    return numeric(question, lower=0, upper=1, bins=None, levels=("0.5",), decimals=2)


def combined(*said: AnyCommand) -> dict[str, ParticipantSums]:
    """A contest over two binary questions of weight 1 and 3, one of three outcomes and one numeric."""
    start: list[AnyCommand] = [opened(), opened("wind"), choices(), point(), contest(rules=AUTOCAST)]
    start += [entry(), entry(question="wind", weight=3), entry(question="colour"), entry(question="size")]
    answers = [resolution(), resolution("wind"), resolution("colour", outcome="green")]
    return own(oracle.projected(*start, *said, *answers, resolution("size", value="0.7")))


def made(who: str, *asked: str) -> list[AnyCommand]:
    """Return forecasts of one participant; their kernel scores are 0.04, 0.64, 0.39 and 0.15."""
    colours = {"red": "0.5", "green": "0.3", "blue": "0.2"}
    given: Sequence[AnyCommand] = [
        forecast("rain", who, probability="0.8"),
        forecast("wind", who, probability="0.2"),
        forecast("colour", who, probabilities=colours),
        forecast("size", who, quantiles=("0.55",)),
    ]
    return [each for each in given if getattr(each, "question", "") in asked]


def test_each_kind_is_summed_by_itself_with_what_is_missing_at_its_worst() -> None:
    """0.04 + 3 · 0.64 of weight 4, 0.39, 0.15; without wind 0.04 + 3 · 1, without the point 1."""
    assert QUESTION_KINDS == ("binary", "multiple_choice", "numeric")
    said = *made("ada", "rain", "wind", "colour", "size"), *made("bob", "rain", "colour"), *made("cyd", "size")
    found = combined(*said)
    expected = {
        "ada": ["1.96", "0.39", "0.15"],
        "bob": ["3.04", "0.39", "1"],
        "cyd": ["4", "1", "0.15"],
    }
    for who, scores in expected.items():
        assert [each.score for each in found[who].kinds] == [Fraction(score) for score in scores]
        assert [each.kind for each in found[who].kinds] == list(QUESTION_KINDS)
        assert [each.weight for each in found[who].kinds] == [4, 1, 1]
        assert [each.questions for each in found[who].kinds] == [2, 1, 1]
    assert [[each.forecast_on for each in found[who].kinds] for who in expected] == [[2, 1, 1], [1, 1, 0], [0, 0, 1]]
    assert [each.mean for each in found["ada"].kinds] == [49, 39, 15]


@pytest.mark.parametrize(
    ("cdf_kernel", "quantile_kernel"), [("crps", "none"), ("none", "absolute"), ("crps", "absolute")]
)
def test_a_missing_numeric_forecast_is_as_bad_as_its_kernel_can_be(cdf_kernel: str, quantile_kernel: str) -> None:
    """Whichever of the two scores it."""
    rules = RuleSet(
        name="own", kernel="ordered_brier", cdf_kernel=cdf_kernel, quantile_kernel=quantile_kernel,  # type: ignore[arg-type]
        period="covered", total="kind_means",
    )  # fmt: skip
    question = point("depth") if cdf_kernel == "none" else numeric(lower=0, upper=1)
    start: list[AnyCommand] = [opened(), choices(), question, contest(rules=rules)]
    start += [entry(), entry(question="colour"), entry(question="depth"), forecast(probability=1)]
    answers = [resolution(), resolution("colour", outcome="red"), resolution("depth", value="0.5")]
    found = own(oracle.projected(*start, *answers))["ada"].kinds
    assert [each.score for each in found] == [0, 2, 1]


def test_a_kind_that_a_contest_has_not_is_not_missing() -> None:
    """Nothing is missing of what was never asked."""
    start: list[AnyCommand] = [opened(closes_at=CLOSES), contest(rules=AUTOCAST), entry()]
    found = own(oracle.projected(*start, forecast(probability="0.8"), resolution()))
    assert [(each.kind, each.score) for each in found["ada"].kinds] == [("binary", Fraction("0.04"))]


@settings(max_examples=30, deadline=None)
@given(oracle.logs(), st.data())
def test_tallies_of_questions_add_up_and_can_be_taken_off_again(said: list[AnyCommand], data: st.DataObject) -> None:
    """A question at a time in any order: to the tally of all; without some, what is left is that of the others."""
    found = Projections(oracle.told(oracle.attempted(said)[0]))
    people = found.facts.participant_codes.codes
    for name, held in found.facts.contests.items():
        questions, rows = found.scored(name)
        apart = np.arange(len(questions.code))
        each = totals.tallies(held.opened.rules, questions, rows, len(people), apart)
        mixed = data.draw(st.permutations(each))
        whole = totals.Tally({}, totals.NO_SCORES)
        for one in mixed:
            whole = whole.plus(one)
        assert whole == found.tally(name)
        upto = data.draw(st.integers(0, len(mixed)))
        some = totals.Tally({}, totals.NO_SCORES)
        for one in mixed[:upto]:
            some = some.plus(one)
        for one in mixed[upto:]:
            whole = whole.plus(one, -1)
        assert whole == some
