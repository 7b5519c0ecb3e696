"""The questions of a contest that count, and what scoring them needs to know of each."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.scored_questions import (
    CDF,
    NAMED,
    QUANTILES,
    Questions,
    members,
    question_ruler,
    scored_questions,
)
from tests.support import oracle
from tests.support.given import (
    BEFORE,
    CLOSES,
    DAY,
    HOUR,
    OPENS,
    annulment,
    choices,
    closing,
    contest,
    day,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    micros,
    numeric,
    opened,
    quartiles,
    resolution,
    revocation,
)

PICO = 10**12
MEAN: dict[str, Any] = {"period": "covered", "total": "mean"}
PINBALL = MEAN | {"kernel": "none", "cdf_kernel": "none", "quantile_kernel": "pinball", "reference": "none"}


def rules(**fields: Any) -> RuleSet:
    """The natural logarithm against the consensus, unless otherwise given."""
    given: dict[str, Any] = {"name": "own", "kernel": "ln", "cdf_kernel": "ln", "reference": "consensus"}
    return RuleSet(**(given | fields))


def read(*said: AnyCommand) -> tuple[Facts, Contest]:
    """The facts and the contest in them."""
    found = oracle.projected(*said).facts
    return found, found.contests["cup"]


def scored(*said: AnyCommand, under: RuleSet | None = None) -> Questions:
    """The questions that count after this was said in a contest under these rules."""
    return scored_questions(*read(contest(rules=under or rules()), *said))


def one(question: OpenQuestion, *said: AnyCommand, under: RuleSet | None = None, **added: Any) -> Questions:
    """The one question of a contest, once it is resolved."""
    answer: dict[str, Any] = {"value": "1.5"} if question.kind == "numeric" else {}
    answer |= {"outcome": "green"} if question.kind == "multiple_choice" else {}
    said = said or (resolution(question.question, **answer),)
    return scored(question, entry(question=question.question, **added), *said, under=under)


def test_a_question_counts_that_was_added_and_is_resolved() -> None:
    """Of five, one is open, one annulled, one revoked, and one in no contest; in order of their opening in the log."""
    names = ("hail", "rain", "wind", "snow", "frost", "fog")
    asked: list[AnyCommand] = [opened(name) for name in names]
    asked += [contest(rules=rules()), *(entry(question=name) for name in reversed(names[:-1]))]
    asked += [resolution("fog"), resolution("frost", outcome="no"), resolution(), annulment("wind"), annulment("snow")]
    asked += [revocation("snow"), resolution("hail"), revocation("hail")]
    found = scored_questions(*read(*asked))
    assert [names[code] for code in found.code] == ["rain", "frost"]
    assert found.outcome.tolist() == [0, 1]
    assert [answer.question.question for answer in found.answers] == ["rain", "frost"]


def test_a_sealed_board_counts_the_questions_as_they_were() -> None:
    """Later answers, revocations and closings are none of its business."""
    asked: list[AnyCommand] = [opened(), opened("wind"), contest(rules=rules()), entry(), entry(question="wind")]
    asked += [resolution(known_at=day(15)), finalization(), resolution("wind"), revocation(), resolution(outcome="no")]
    found = scored_questions(*read(*asked))
    assert (found.code.tolist(), found.outcome.tolist(), found.until.tolist()) == ([0], [0], [micros(15)])


@pytest.mark.parametrize(
    ("said", "until"),
    [
        ([resolution()], 20),
        ([closing(at=day(14)), resolution()], 14),
        ([resolution(known_at=day(13))], 13),
        ([closing(at=day(14)), resolution(known_at=day(13))], 13),
        ([closing(at=day(14)), resolution(known_at=day(17))], 14),
        ([resolution(known_at=day(24))], 20),
    ],
)
def test_scored_time_lasts_until_the_close_or_the_answer(said: list[AnyCommand], until: int) -> None:
    """Whichever is first; the period is the scheduled one."""
    found = one(opened(), *said)
    assert (found.opens.tolist(), found.until.tolist()) == ([micros(10)], [micros(until)])
    assert (found.length.tolist(), found.reached.tolist()) == ([10 * DAY], [(until - 10) * DAY])


@pytest.mark.parametrize(
    ("sampling", "length", "reached", "hidden"),
    [("time", 10 * DAY - 6 * HOUR, 3 * DAY, 2 * DAY - 6 * HOUR), ("day", 10, 4, 2), ("spot", 1, 1, 0)],
)
def test_periods_are_counted_in_the_units_of_the_rule_set(
    sampling: str, length: int, reached: int, hidden: int
) -> None:
    """From the 10th at six to the 20th at midnight, hidden until the 12th, known on the 13th at six."""
    asked = opened(opens_at=day(10, 6), reveals_at=day(12))
    found = one(asked, resolution(known_at=day(13, 6)), under=rules(sampling=sampling))
    assert [column.tolist() for column in (found.length, found.reached, found.hidden)] == [
        [length],
        [reached],
        [hidden],
    ]


@pytest.mark.parametrize("sampling", ["time", "day", "spot"])
def test_nothing_is_reached_of_a_question_whose_answer_is_known_as_it_opens(sampling: str) -> None:
    """Opened in the middle of a day, even that day's end is not."""
    found = one(opened(opens_at=day(10, 6)), resolution(known_at=day(10, 6)), under=rules(sampling=sampling))
    assert found.reached.tolist() == [0]


@pytest.mark.parametrize(
    ("sampling", "reveals_at", "share"),
    [
        ("time", day(12), 250_000),
        ("day", day(12), 250_000),
        ("day", day(11), 250_000),
        ("day", day(10, 6), -1),
        ("day", day(19, 6), 250_000),
        ("spot", day(12), -1),
    ],
)
def test_a_hidden_weight_counts_where_the_hidden_period_and_the_rest_both_have_units(
    sampling: str, reveals_at: str, share: int
) -> None:
    """A reveal on the first day leaves no whole hidden day; one instant is not divided."""
    question = opened(reveals_at=reveals_at)
    found = one(question, under=rules(sampling=sampling), hidden_coverage_weight="0.25", weight="2.5")
    assert (found.hidden_weight.tolist(), found.weight.tolist()) == ([share], [2_500_000])
    assert one(question, under=rules(sampling=sampling)).hidden_weight.tolist() == [-1]


def test_a_question_hidden_to_its_close_has_all_its_weight_there() -> None:
    """By the clock; by days there is no rest, and coverage is plain, which is the same."""
    question = opened(reveals_at=CLOSES)
    for sampling, share in (("time", 10**6), ("day", -1)):
        found = one(question, under=rules(sampling=sampling), hidden_coverage_weight=1)
        assert (found.hidden.tolist(), found.hidden_weight.tolist()) == (found.length.tolist(), [share])


@pytest.mark.parametrize(
    ("reveals_at", "added", "spot"),
    [(None, None, 20), ("12", None, 12), ("12", 14, 14), (None, 10, 10), (None, 20, 20)],
)
def test_the_spot_is_its_own_else_the_reveal_else_the_close(
    reveals_at: str | None, added: int | None, spot: int
) -> None:
    """Whatever the sampling: only one of them looks at it."""
    question = opened(reveals_at=None if reveals_at is None else day(int(reveals_at)))
    found = one(question, spot_at=None if added is None else day(added))
    assert found.spot.tolist() == [micros(spot)]


QUESTIONS: dict[str, tuple[OpenQuestion, int, int, int, int]] = {
    "binary": (opened(), NAMED, 2, 0, 0),
    "multiple choice": (choices(), NAMED, 3, 0, 1),
    "bins": (numeric(), CDF, 5, 4, 2),
    "quantiles": (quartiles(), QUANTILES, 3, 0, 1),
}


@pytest.mark.parametrize(("question", "form", "width", "bins", "outcome"), QUESTIONS.values(), ids=QUESTIONS.keys())
def test_a_question_has_the_form_and_width_of_its_forecasts(
    question: OpenQuestion, form: int, width: int, bins: int, outcome: int
) -> None:
    """Probabilities, the cdf at every edge, or a quantile a level."""
    under = rules(quantile_kernel="pinball", kernel="brier", cdf_kernel="crps", reference="none", **MEAN)
    found = one(question, under=under)
    columns = (found.form, found.width, found.bins, found.outcome)
    assert [column.tolist() for column in columns] == [[form], [width], [bins], [outcome]]


@pytest.mark.parametrize(
    ("question", "fields", "least"),
    [
        (opened(), {}, 10**7),
        (opened(), {"least_probability_ppm": 7}, 70_000),
        (numeric(), {}, 10**8 // 4),
        (opened(), {"kernel": "spherical", "cdf_kernel": "none"}, 0),
        (opened(), {"kernel": "brier", "cdf_kernel": "none", **MEAN, "reference": "none"}, 0),
        (numeric(), {"kernel": "none", "cdf_kernel": "crps", **MEAN, "reference": "none"}, 0),
    ],
)
def test_only_a_logarithm_floors_what_it_scores(question: OpenQuestion, fields: dict[str, Any], least: int) -> None:
    """0.1% of an outcome, a hundredth of the uniform density of a bin; other kernels take a forecast as it is."""
    assert one(question, under=rules(**fields)).least.tolist() == [least]


def test_what_a_quadratic_kernel_scored_is_shown_as_it_was() -> None:
    """A probability of nought is nought, although the rule set has a floor for logarithms."""
    under = rules(kernel="brier", cdf_kernel="none", reference="none", **MEAN)
    asked: list[AnyCommand] = [opened(), contest(rules=under), entry(), forecast(probability=0), resolution()]
    [part] = oracle.projected(*asked).table("score_parts").rows()
    assert (part["probability"], part["term"]) == ("0", "1.000000000000")


@pytest.mark.parametrize(
    ("question", "value", "kernel", "chance"),
    [
        (opened(), None, "ln", Fraction(1, 2)),
        (choices(), None, "ln", Fraction(1, 3)),
        (choices(), None, "log2", Fraction(1, 3)),
        (numeric(), "1.5", "ln", Fraction(1, 4)),
        (numeric(open_lower=True), "1.5", "ln", Fraction(95, 400)),
        (numeric(open_lower=True, open_upper=True), "4", "log2", Fraction(90, 400)),
        (numeric(open_lower=True, open_upper=True), "5", "ln", Fraction(5, 100)),
        (numeric(open_lower=True), "-1", "ln", Fraction(5, 100)),
    ],
)
def test_the_uniform_distribution_has_what_each_open_end_leaves(
    question: OpenQuestion, value: str | None, kernel: str, chance: Fraction
) -> None:
    """Metaculus, Scores FAQ and Metaculus's published code: 1 / K; (1 - 0.05 B) / bins inside, 0.05 outside."""
    under = rules(kernel=kernel, cdf_kernel=kernel, reference="uniform")
    answer: dict[str, Any] = {"value": value} if value else {"outcome": (question.outcomes or ("yes",))[0]}
    found = one(question, resolution(question.question, **answer), under=under)
    assert found.uniform.tolist() == [oracle.picos(kernel, chance)]


def test_an_open_end_of_the_uniform_distribution_is_the_rule_sets_own() -> None:
    """A tenth at each end leaves 0.8 for four bins."""
    under = rules(reference="uniform", open_end_ppm=100_000)
    for value, chance in (("1", "0.2"), ("9", "0.1")):
        question = numeric(open_lower=True, open_upper=True)
        found = one(question, resolution("depth", value=value), under=under)
        assert found.uniform.tolist() == [oracle.picos("ln", Fraction(chance))]


@pytest.mark.parametrize(
    ("fields", "question", "uniform"),
    [
        ({"kernel": "brier"}, choices(), Fraction(1, 3)),
        ({"kernel": "brier_sum"}, choices(), Fraction(2, 3)),
        ({"kernel": "ordered_brier"}, choices(), Fraction(2, 9)),
        ({"kernel": "none", "cdf_kernel": "crps"}, numeric(), Fraction(27 + 125, 3 * 512)),
    ],
)
def test_the_uniform_distribution_is_scored_by_the_rule_sets_kernel(
    fields: dict[str, Any], question: OpenQuestion, uniform: Fraction
) -> None:
    """Of three outcomes the second came true; 1.5 of 0 to 4 is three eighths of the way: (y³ + (1 - y)³) / 3."""
    under = rules(**({"cdf_kernel": "none", "reference": "uniform"} | fields))
    assert one(question, under=under).uniform.tolist() == [round(uniform * PICO)]


@pytest.mark.parametrize(
    ("fields", "question", "unit", "per_point"),
    [
        ({}, opened(), PICO, Fraction(PICO)),
        ({"scale": "peer", "reference": "peers"}, opened(), PICO, Fraction(PICO, 100)),
        ({"scale": "peer", "reference": "peers"}, numeric(), PICO, Fraction(PICO, 50)),
        ({"scale": "peer_whole", "reference": "peers"}, opened(), PICO, Fraction(PICO, 100)),
        ({"scale": "peer_whole", "reference": "peers"}, numeric(), PICO, Fraction(PICO, 100)),
        ({"scale": "baseline", "reference": "uniform"}, choices(), PICO, Fraction(1_098_612_288_668, 100)),
        ({"scale": "baseline", "reference": "uniform"}, numeric(), PICO, Fraction(PICO, 50)),
        (PINBALL, quartiles(), 10**7, Fraction(10**7)),
    ],
)  # fmt: skip
def test_a_point_is_so_much_of_the_kernels_unit(
    fields: dict[str, Any], question: OpenQuestion, unit: int, per_point: Fraction
) -> None:
    """Certainty is worth 100 on the baseline scale: ln 3 = 1.098612288668; quantiles of 3 decimals count 7."""
    found = one(question, under=rules(**fields))
    assert (found.unit.tolist(), found.per_point) == ([unit], [per_point])


def test_some_of_the_questions_are_a_slice_of_every_column() -> None:
    """Whatever there is of them."""
    names = ("rain", "wind", "snow")
    asked: list[AnyCommand] = [opened(name) for name in names]
    asked += [entry(question=name, weight=number + 1) for number, name in enumerate(names)]
    whole = scored(*asked, *(resolution(name) for name in names))
    part = whole.of(slice(1, 3))
    assert (part.code.tolist(), part.weight.tolist()) == ([1, 2], [2 * 10**6, 3 * 10**6])
    assert [answer.question.question for answer in part.answers] == ["wind", "snow"]
    assert len(part.per_point) == len(part.uniform) == 2


def test_a_contest_without_questions_has_empty_columns() -> None:
    """And a ruler without a period."""
    found, empty = read(contest())
    questions = scored_questions(found, empty)
    assert len(questions.code) == len(questions.answers) == len(question_ruler(empty, questions).opens) == 0


def test_the_ruler_of_a_contest_ends_with_scored_time() -> None:
    """Its days are those of the rule set."""
    asked: list[AnyCommand] = [opened(), contest(rules=rules(day_minutes=90)), entry(spot_at=day(13))]
    found, cup = read(*asked, resolution(known_at=day(15)))
    of = question_ruler(cup, scored_questions(found, cup))
    assert (of.opens.tolist(), of.until.tolist(), of.spot.tolist()) == ([micros(10)], [micros(15)], [micros(13)])
    assert of.east == 90 * HOUR // 60


PEOPLE = ("ada", "bob", "cyd", "dan")


def who_counts(under: RuleSet, *said: AnyCommand) -> list[str]:
    """The members among four who forecast."""
    asked: list[AnyCommand] = [opened(), contest(rules=under), *(forecast(participant=who) for who in PEOPLE)]
    found, cup = read(*asked, *said)
    return [who for who, counts in zip(found.participant_codes.labels, members(found, cup), strict=True) if counts]


def test_everybody_is_a_member_unless_the_rules_say_otherwise() -> None:
    """Bots, and who is excluded, only where they are named."""
    said: list[AnyCommand] = [
        enrolment(participant="ada", bot=True),
        exclusion(participant="bob", level="hidden"),
        exclusion(participant="zoe"),
    ]
    assert who_counts(rules(), *said) == list(PEOPLE)
    assert who_counts(rules(bots="scored_only"), *said) == ["bob", "cyd", "dan"]
    assert who_counts(rules(scored_only_levels=("hidden",)), *said) == ["ada", "cyd", "dan"]
    assert who_counts(rules(scored_only_levels=("no_prize", "no_rank")), *said) == list(PEOPLE)


def test_the_last_enrolment_and_the_last_exclusion_count() -> None:
    """Also of somebody who never forecast, and in this contest only."""
    under = rules(bots="scored_only", scored_only_levels=("no_rank",))
    said: list[AnyCommand] = [enrolment(participant="ada", bot=True), enrolment(participant="ada")]
    said += [
        enrolment(participant="zoe", bot=True),
        enrolment(participant="bob"),
        enrolment(participant="bob", bot=True),
    ]
    said += [exclusion(participant="cyd", level="no_rank"), exclusion(participant="cyd", level="hidden")]
    said += [contest("league"), enrolment("league", "dan", bot=True), exclusion("league", "dan", level="no_rank")]
    assert who_counts(under, *said) == ["ada", "cyd", "dan"]


@settings(max_examples=100, deadline=None)
@given(oracle.logs())
def test_the_questions_that_count_are_those_of_the_slow_definition(asked: list[AnyCommand]) -> None:
    """With outcome, weight, and end of scored time, over logs of all kinds."""
    recorded, _ = oracle.attempted(asked)
    projections = Projections(oracle.told(recorded))
    for name in projections.contests:
        questions = projections.scored(name).questions
        fast = {
            answer.question.question: (outcome, weight, until)
            for answer, outcome, weight, until in zip(
                questions.answers,
                questions.outcome.tolist(),
                questions.weight.tolist(),
                questions.until.tolist(),
                strict=True,
            )
        }
        slow = {
            question: (found.resolved.outcome, added.weight, found.scored_until())
            for question, (found, added) in oracle.counting(recorded, name).items()
            if found.resolved
        }
        assert fast == slow


@given(st.integers(1, 10_000), st.integers(1, 500_000))
@settings(max_examples=25, deadline=None)
def test_the_least_density_of_a_bin_is_a_share_of_the_uniform_one(bins: int, ppm: int) -> None:
    """Rounded half-even to 1e-10, and never nought."""
    made = commands.OpenQuestion(
        at=BEFORE, question="depth", kind="numeric", opens_at=OPENS, closes_at=CLOSES,
        range=commands.Range(lower=0, upper=1, bins=bins),
    )  # fmt: skip
    found = one(made, resolution("depth", value=Decimal("0.5")), under=rules(least_density_ppm=ppm))
    assert found.least.tolist() == [max(round(Fraction(ppm * 10**4, bins)), 1)]
