"""The questions of a contest that count, and the numbers that scoring them needs."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.rules import RuleSet
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
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
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
    """Return rules: the natural logarithm against the consensus, unless other fields are given."""
    defaults: dict[str, Any] = {"name": "own", "kernel": "ln", "cdf_kernel": "ln", "reference": "consensus"}
    return RuleSet(**(defaults | fields))


def read(*commands: AnyCommand) -> tuple[Facts, Contest]:
    """Return the facts after these commands, and the contest in them."""
    facts = oracle.projected(*commands).facts
    return facts, facts.contests["cup"]


def scored(*commands: AnyCommand, under: RuleSet | None = None) -> Questions:
    """Return the questions that count after these commands in a contest under these rules."""
    return scored_questions(*read(contest(rules=under or rules()), *commands))


def only(question: OpenQuestion, *commands: AnyCommand, under: RuleSet | None = None, **added: Any) -> Questions:
    """Return the only question of a contest, once it is resolved."""
    answer: dict[str, Any] = {"value": "1.5"} if question.kind == "numeric" else {}
    answer |= {"outcome": "green"} if question.kind == "multiple_choice" else {}
    commands = commands or (resolution(question.question, **answer),)
    return scored(question, entry(question=question.question, **added), *commands, under=under)


def test_a_question_counts_that_was_added_and_is_resolved() -> None:
    """Open, annulled and revoked questions do not count, nor one without a contest; the order is that of opening."""
    names = ("hail", "rain", "wind", "snow", "frost", "fog")
    commands: list[AnyCommand] = [opened(name) for name in names]
    commands += [contest(rules=rules()), *(entry(question=name) for name in reversed(names[:-1]))]
    commands += [
        resolution("fog"),
        resolution("frost", outcome="no"),
        resolution(),
        annulment("wind"),
        annulment("snow"),
    ]
    commands += [revocation("snow"), resolution("hail"), revocation("hail")]
    questions = scored_questions(*read(*commands))
    assert [names[code] for code in questions.code] == ["rain", "frost"]
    assert questions.outcome.tolist() == [0, 1]
    assert [answer.question.question for answer in questions.answers] == ["rain", "frost"]


def test_a_sealed_board_counts_the_questions_as_they_were() -> None:
    """Later answers, revocations and closings change nothing."""
    commands: list[AnyCommand] = [opened(), opened("wind"), contest(rules=rules()), entry(), entry(question="wind")]
    commands += [
        resolution(known_at=day(15)),
        finalization(),
        resolution("wind"),
        revocation(),
        resolution(outcome="no"),
    ]
    questions = scored_questions(*read(*commands))
    assert (questions.code.tolist(), questions.outcome.tolist(), questions.until.tolist()) == ([0], [0], [micros(15)])


@pytest.mark.parametrize(
    ("commands", "until"),
    [
        ([resolution()], 20),
        ([closing(at=day(14)), resolution()], 14),
        ([resolution(known_at=day(13))], 13),
        ([closing(at=day(14)), resolution(known_at=day(13))], 13),
        ([closing(at=day(14)), resolution(known_at=day(17))], 14),
        ([resolution(known_at=day(24))], 20),
    ],
)
def test_scored_time_lasts_until_the_close_or_the_answer(commands: list[AnyCommand], until: int) -> None:
    """The first of the two ends it; the period is the scheduled one."""
    questions = only(opened(), *commands)
    assert (questions.opens.tolist(), questions.until.tolist()) == ([micros(10)], [micros(until)])
    assert (questions.length.tolist(), questions.reached.tolist()) == ([10 * DAY], [(until - 10) * DAY])


@pytest.mark.parametrize(
    ("sampling", "length", "reached", "hidden"),
    [("time", 10 * DAY - 6 * HOUR, 3 * DAY, 2 * DAY - 6 * HOUR), ("day", 10, 4, 2), ("spot", 1, 1, 0)],
)
def test_periods_are_counted_in_the_units_of_the_rule_set(
    sampling: str, length: int, reached: int, hidden: int
) -> None:
    """From the 10th at six to the 20th at midnight, hidden until the 12th, known on the 13th at six."""
    question = opened(opens_at=day(10, 6), reveals_at=day(12))
    questions = only(question, resolution(known_at=day(13, 6)), under=rules(sampling=sampling))
    assert [column.tolist() for column in (questions.length, questions.reached, questions.hidden)] == [
        [length],
        [reached],
        [hidden],
    ]


@pytest.mark.parametrize("sampling", ["time", "day", "spot"])
def test_nothing_is_reached_of_a_question_whose_answer_is_known_as_it_opens(sampling: str) -> None:
    """The question opens in the middle of a day, and the end of that day is not scored either."""
    questions = only(opened(opens_at=day(10, 6)), resolution(known_at=day(10, 6)), under=rules(sampling=sampling))
    assert questions.reached.tolist() == [0]


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
    questions = only(question, under=rules(sampling=sampling), hidden_coverage_weight="0.25", weight="2.5")
    assert (questions.hidden_weight.tolist(), questions.weight.tolist()) == ([share], [2_500_000])
    assert only(question, under=rules(sampling=sampling)).hidden_weight.tolist() == [-1]


def test_a_question_hidden_to_its_close_has_all_its_weight_there() -> None:
    """So it is by time; by days there is no rest, and coverage is plain, which is the same."""
    question = opened(reveals_at=CLOSES)
    for sampling, share in (("time", 10**6), ("day", -1)):
        questions = only(question, under=rules(sampling=sampling), hidden_coverage_weight=1)
        assert (questions.hidden.tolist(), questions.hidden_weight.tolist()) == (questions.length.tolist(), [share])


@pytest.mark.parametrize(
    ("reveals_at", "added", "spot"),
    [(None, None, 20), ("12", None, 12), ("12", 14, 14), (None, 10, 10), (None, 20, 20)],
)
def test_the_spot_is_its_own_else_the_reveal_else_the_close(
    reveals_at: str | None, added: int | None, spot: int
) -> None:
    """It does not depend on the sampling, although only spot sampling reads it."""
    question = opened(reveals_at=None if reveals_at is None else day(int(reveals_at)))
    questions = only(question, spot_at=None if added is None else day(added))
    assert (questions.spot.tolist(), questions.spot_weight.tolist()) == ([[micros(spot)]], [[1]])


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
    """A forecast has probabilities, a cdf at every edge, or a quantile for each level."""
    under = rules(quantile_kernel="pinball", kernel="brier", cdf_kernel="crps", reference="none", **MEAN)
    questions = only(question, under=under)
    columns = (questions.form, questions.width, questions.bins, questions.outcome)
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
    """0.1% of an outcome, a hundredth of the uniform density of a bin; other kernels score a forecast unchanged."""
    assert only(question, under=rules(**fields)).least.tolist() == [least]


def test_a_quadratic_kernel_scores_and_shows_a_forecast_unchanged() -> None:
    """A probability of 0 is scored as 0, although the rule set has a floor for logarithms."""
    under = rules(kernel="brier", cdf_kernel="none", reference="none", **MEAN)
    commands: list[AnyCommand] = [opened(), contest(rules=under), entry(), forecast(probability=0), resolution()]
    [part] = oracle.projected(*commands).table("score_parts").rows()
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
    questions = only(question, resolution(question.question, **answer), under=under)
    assert questions.uniform.tolist() == [oracle.picos(kernel, chance)]


def test_an_open_end_of_the_uniform_distribution_is_the_rule_sets_own() -> None:
    """A tenth at each end leaves 0.8 for four bins."""
    under = rules(reference="uniform", open_end_ppm=100_000)
    for value, chance in (("1", "0.2"), ("9", "0.1")):
        question = numeric(open_lower=True, open_upper=True)
        questions = only(question, resolution("depth", value=value), under=under)
        assert questions.uniform.tolist() == [oracle.picos("ln", Fraction(chance))]


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
    """The second of three outcomes happened; 1.5 from 0 to 4 is at 3/8: (y³ + (1 - y)³) / 3."""
    under = rules(**({"cdf_kernel": "none", "reference": "uniform"} | fields))
    assert only(question, under=under).uniform.tolist() == [round(uniform * PICO)]


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
    """On the baseline scale a certain forecast has 100 points: ln 3 = 1.098612288668; 3 decimals make 7."""
    questions = only(question, under=rules(**fields))
    assert (questions.unit.tolist(), questions.per_point) == ([unit], [per_point])


BY_UNIFORM: dict[str, Any] = {"cdf_kernel": "none", "reference": "uniform", **MEAN}
UNLIKE: dict[str, tuple[dict[str, Any], list[tuple[OpenQuestion, str]], list[Fraction]]] = {
    "outcomes": (
        {"kernel": "brier_sum"},
        [(choices("a"), "green"), (choices("b", ("amber", "green", "red", "blue")), "green"), (choices("c"), "green")],
        [Fraction(2, 3), Fraction(3, 4), Fraction(2, 3)],
    ),
    "order": (
        {"kernel": "ordered_brier"},
        [(choices("a"), "green"), (choices("b", ordered=False), "green"), (choices("c"), "red")],
        [Fraction(2, 9), Fraction(2, 3), Fraction(5, 9)],
    ),
    "numbers": (
        {"kernel": "none", "cdf_kernel": "crps"},
        [(numeric("a"), "1.5"), (numeric("b", upper=8, bins=8), "1.5"), (numeric("c"), "1.75")],
        [Fraction(27 + 125, 3 * 512), Fraction(27 + 2197, 3 * 4096), Fraction(343 + 729, 3 * 4096)],
    ),
}


@pytest.mark.parametrize(("fields", "questions", "uniform"), UNLIKE.values(), ids=UNLIKE.keys())
def test_unlike_questions_of_one_contest_have_each_its_own_columns(
    fields: dict[str, Any], questions: list[tuple[OpenQuestion, str]], uniform: list[Fraction]
) -> None:
    """Of K outcomes, 1 - 1/K; in order, the squares of 1/3 and 2/3; of a number, (y³ + (1 - y)³) / 3."""
    commands: list[AnyCommand] = []
    for question, answer in questions:
        said = {"value" if question.kind == "numeric" else "outcome": answer}
        commands += [question, entry(question=question.question), resolution(question.question, **said)]
    assert scored(*commands, under=rules(**(BY_UNIFORM | fields))).uniform.tolist() == [
        round(each * PICO) for each in uniform
    ]


def test_some_of_the_questions_are_a_slice_of_every_column() -> None:
    """All their columns are cut."""
    names = ("rain", "wind", "snow")
    commands: list[AnyCommand] = [opened(name) for name in names]
    commands += [entry(question=name, weight=number + 1) for number, name in enumerate(names)]
    whole = scored(*commands, *(resolution(name) for name in names))
    part = whole.of(slice(1, 3))
    assert (part.code.tolist(), part.weight.tolist()) == ([1, 2], [2 * 10**6, 3 * 10**6])
    assert [answer.question.question for answer in part.answers] == ["wind", "snow"]
    assert len(part.per_point) == len(part.uniform) == 2


def test_a_contest_without_questions_has_empty_columns() -> None:
    """Its ruler has no period."""
    facts, empty = read(contest())
    questions = scored_questions(facts, empty)
    assert len(questions.code) == len(questions.answers) == len(question_ruler(empty, questions).opens) == 0


def test_the_ruler_of_a_contest_ends_with_scored_time() -> None:
    """Its days are the days of the rule set."""
    commands: list[AnyCommand] = [opened(), contest(rules=rules(day_minutes=90)), entry(spot_at=day(13))]
    facts, cup = read(*commands, resolution(known_at=day(15)))
    ruler = question_ruler(cup, scored_questions(facts, cup))
    assert (ruler.opens.tolist(), ruler.until.tolist(), ruler.spot.tolist()) == (
        [micros(10)],
        [micros(15)],
        [[micros(13)]],
    )
    assert ruler.east == 90 * HOUR // 60


PEOPLE = ("ada", "bob", "cyd", "dan")


def counting_members(under: RuleSet, *commands: AnyCommand) -> list[str]:
    """Return the members among four participants with forecasts."""
    before: list[AnyCommand] = [opened(), contest(rules=under), *(forecast(participant=who) for who in PEOPLE)]
    facts, cup = read(*before, *commands)
    return [who for who, counts in zip(facts.participant_codes.labels, members(facts, cup), strict=True) if counts]


def test_everybody_is_a_member_unless_the_rules_say_otherwise() -> None:
    """Bots and excluded participants are left out only if the rules name them."""
    commands: list[AnyCommand] = [
        enrolment(participant="ada", bot=True),
        exclusion(participant="bob", level="hidden"),
        exclusion(participant="zoe"),
    ]
    assert counting_members(rules(), *commands) == list(PEOPLE)
    assert counting_members(rules(bots="scored_only"), *commands) == ["bob", "cyd", "dan"]
    assert counting_members(rules(scored_only_levels=("hidden",)), *commands) == ["ada", "cyd", "dan"]
    assert counting_members(rules(scored_only_levels=("no_prize", "no_rank")), *commands) == list(PEOPLE)


def test_the_last_enrolment_and_the_last_exclusion_count() -> None:
    """It also holds for a participant without a forecast, and in this contest only."""
    under = rules(bots="scored_only", scored_only_levels=("no_rank",))
    commands: list[AnyCommand] = [enrolment(participant="ada", bot=True), enrolment(participant="ada")]
    commands += [
        enrolment(participant="zoe", bot=True),
        enrolment(participant="bob"),
        enrolment(participant="bob", bot=True),
    ]
    commands += [exclusion(participant="cyd", level="no_rank"), exclusion(participant="cyd", level="hidden")]
    commands += [contest("league"), enrolment("league", "dan", bot=True), exclusion("league", "dan", level="no_rank")]
    assert counting_members(under, *commands) == ["ada", "cyd", "dan"]


@settings(max_examples=times(50), deadline=None)
@given(oracle.logs())
def test_the_questions_that_count_agree_with_the_slow_definition(commands: list[AnyCommand]) -> None:
    """Outcome, weight and end of scored time agree, for logs of all kinds."""
    recorded, _ = oracle.attempted(commands)
    projections = Projections(oracle.facts_in(recorded))
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
            question: (slow.resolved.outcome, added.weight, slow.scored_until())
            for question, (slow, added) in oracle.counting(recorded, name).items()
            if slow.resolved
        }
        assert fast == slow


@given(st.integers(1, 10_000), st.integers(1, 500_000))
@settings(max_examples=times(25), deadline=None)
def test_the_least_density_of_a_bin_is_a_share_of_the_uniform_one(bins: int, ppm: int) -> None:
    """It is rounded half-even to 1e-10 and never 0."""
    made = commands.OpenQuestion(
        at=BEFORE, question="depth", kind="numeric", opens_at=OPENS, closes_at=CLOSES,
        range=commands.Range(lower=0, upper=1, bins=bins),
    )  # fmt: skip
    questions = only(made, resolution("depth", value=Decimal("0.5")), under=rules(least_density_ppm=ppm))
    assert questions.least.tolist() == [max(round(Fraction(ppm * 10**4, bins)), 1)]
