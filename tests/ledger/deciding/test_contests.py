"""Tests of contests, their questions and exclusions: the recorded events, the refusals and their precedence."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import FIRST_INSTANT
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand, Spot
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet, inconsistency
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.support.given import (
    AFTER,
    BEFORE,
    CLOSES,
    NOW,
    OPENS,
    REVEALS,
    SUNDAY,
    annulment,
    bet,
    cancellation,
    choices,
    cohort,
    contest,
    day,
    decision,
    enrolment,
    ensemble,
    entry,
    exclusion,
    finalization,
    forecast,
    given,
    micros,
    numeric,
    opened,
    payment,
    quartiles,
    quote,
    ran,
    replied,
    resolution,
    revocation,
    sale,
    trading_floor,
    won,
)

MILLION = 10**6
LEAGUE = RuleSet(name="league", trading=Trading(cohorts="none"))  # a trading contest that starts on any day
WEEK = cohort()
TRADED = trading_floor()
CONTRADICTORY: list[dict[str, Any]] = [
    {},
    {"kernel": "ln", "least_probability_ppm": 0},
    {"kernel": "brier", "cdf_kernel": "ln"},
    {"kernel": "ln", "rank_by": "take"},
    {"kernel": "brier"},
]
RAIN, CUP = opened(), contest()
HIDDEN = opened(reveals_at=REVEALS)
ALL_HIDDEN = opened(reveals_at=CLOSES)
FLOW, DEPTH = quartiles(), numeric()
POINT = quartiles(levels=("0.5",))
WITH_POOL = contest(pool=10)
PAYABLE = won()
# Rule sets that each score one form of question.
NAMED_ONLY = RuleSet(name="named", kernel="brier", period="covered", total="mean")
CURVES_ONLY = RuleSet(name="curves", cdf_kernel="crps", period="covered", total="mean")
SQUARES_ONLY = RuleSet(name="squares", quantile_kernel="squared", period="covered", total="mean")
QUANTILES_ONLY = RuleSet(name="quantiles", quantile_kernel="pinball", period="covered", total="mean")
POINTS_ONLY = RuleSet(name="points", quantile_kernel="absolute", period="covered", total="mean")
OWN = RuleSet(name="own", kernel="log2", early_forecasts=False, least_probability_ppm=1, least_density_ppm=500_000)

Promise = tuple[str, str, str, list[AnyCommand], AnyCommand]


def unscorable(rules: RuleSet, question: AnyCommand, name: str) -> Promise:
    """Return the case of a question that a contest with these rules refuses."""
    history = [question, contest(rules=rules)]
    return "add_question", "unscorable_question", "question", history, entry(question=name)


def beside_the_period(spot_at: str) -> Promise:
    """Return the case of a question that is added with a spot_at at which it is not open."""
    return "add_question", "wrong_order_of_instants", "spot_at", [HIDDEN, CUP], entry(spot_at=spot_at)


# One row for each refusal in a docstring: the decider's function, the code and field, the history, the command.
REFUSED: list[Promise] = [
    ("open_contest", "out_of_range", "pool", [], contest(pool="-0.01")),
    ("open_contest", "out_of_range", "pool", [], contest(pool="1000000000000.01")),
    ("open_contest", "out_of_range", "payable_unit", [], contest(payable_unit=0)),
    ("open_contest", "out_of_range", "payable_unit", [], contest(payable_unit="-0.01")),
    ("open_contest", "out_of_range", "payable_unit", [], contest(payable_unit="0.0000005")),
    ("open_contest", "unknown_rules", "rules", [], contest(rules="relative")),
    ("open_contest", "unknown_rules", "rules", [], contest(rules="")),
    *[
        ("open_contest", "rules_not_consistent", "rules", [], contest(rules=RuleSet(name="x", **fields)))
        for fields in CONTRADICTORY
    ],
    ("open_contest", "duplicate_contest", "contest", [CUP], contest(rules="relative-2021-11")),
    ("open_contest", "duplicate_contest", "contest", [CUP, finalization()], contest()),
    ("open_contest", "pool_not_payable", "pool", [], contest(pool="10.005")),
    ("open_contest", "pool_not_payable", "pool", [], contest(pool="10.5", payable_unit=1)),
    ("open_contest", "pool_not_payable", "pool", [], contest(pool=1, payable_unit=2)),
    ("open_contest", "out_of_range", "starts_at", [], cohort(at="0001-01-06T23:59:59Z")),  # a Saturday
    ("open_contest", "out_of_range", "starts_at", [], cohort(starts_at="0001-01-01T00:00:00Z")),
    ("open_contest", "not_trading", "rules", [], contest(starts_at=SUNDAY)),
    ("open_contest", "not_trading", "rules", [], contest(series="cups")),
    ("open_contest", "duplicate_cohort", "starts_at", [WEEK], cohort("other")),
    ("open_contest", "duplicate_cohort", "starts_at", [WEEK], cohort("other", at=day(7, 23))),
    ("open_contest", "duplicate_cohort", "starts_at", [WEEK], cohort("other", at=AFTER, starts_at=day(4))),
    ("open_contest", "duplicate_cohort", "starts_at", [WEEK], cohort("other", rules="arena-v2")),
    ("add_question", "malformed", "spots", [RAIN, CUP], entry(spot_at=day(12), spots=(Spot(at=day(12)),))),
    ("add_question", "out_of_range", "spots", [RAIN, CUP], entry(spots=())),
    ("add_question", "out_of_range", "spots", [RAIN, CUP], entry(spots=(Spot(at=day(12)),) * 366)),
    ("add_question", "out_of_range", "spots.weight", [RAIN, CUP], entry(spots=(Spot(at=day(12), weight=0),))),
    ("add_question", "out_of_range", "spots.weight", [RAIN, CUP], entry(spots=(Spot(at=day(12), weight=101),))),
    ("add_question", "wrong_order_of_instants", "spots", [RAIN, CUP], entry(spots=(Spot(at=AFTER),))),
    ("add_question", "wrong_order_of_instants", "spots", [RAIN, CUP], entry(spots=(Spot(at=day(12)),) * 2)),
    (
        "add_question",
        "wrong_order_of_instants",
        "spots",
        [RAIN, CUP],
        entry(spots=(Spot(at=day(14)), Spot(at=day(12)))),
    ),
    ("add_question", "out_of_range", "weight", [RAIN, CUP], entry(weight="-1")),
    ("add_question", "out_of_range", "weight", [RAIN, CUP], entry(weight="-0.000001")),
    ("add_question", "out_of_range", "weight", [RAIN, CUP], entry(weight="1000000.000001")),
    ("add_question", "out_of_range", "hidden_coverage_weight", [HIDDEN, CUP], entry(hidden_coverage_weight="-0.1")),
    ("add_question", "out_of_range", "hidden_coverage_weight", [HIDDEN, CUP], entry(hidden_coverage_weight="1.1")),
    ("add_question", "unknown_contest", "contest", [RAIN], entry()),
    ("add_question", "unknown_question", "question", [CUP], entry()),
    beside_the_period(BEFORE),
    beside_the_period("2026-03-09T23:59:59.999999Z"),
    beside_the_period("2026-03-20T00:00:00.000001Z"),
    beside_the_period(AFTER),
    ("add_question", "contest_finalized", "contest", [RAIN, CUP, finalization()], entry()),
    ("add_question", "question_in_contest", "question", [RAIN, CUP, entry()], entry(weight=2)),
    ("add_question", "no_hidden_period", "hidden_coverage_weight", [RAIN, CUP], entry(hidden_coverage_weight=1)),
    ("add_question", "no_hidden_period", "hidden_coverage_weight", [RAIN, CUP], entry(hidden_coverage_weight=0)),
    (
        "add_question",
        "no_hidden_period",
        "hidden_coverage_weight",
        [ALL_HIDDEN, CUP],
        entry(hidden_coverage_weight="0.999999"),
    ),
    unscorable(NAMED_ONLY, DEPTH, "depth"),
    unscorable(NAMED_ONLY, FLOW, "flow"),
    unscorable(CURVES_ONLY, RAIN, "rain"),
    unscorable(CURVES_ONLY, choices(), "colour"),
    unscorable(CURVES_ONLY, FLOW, "flow"),
    unscorable(QUANTILES_ONLY, RAIN, "rain"),
    unscorable(QUANTILES_ONLY, DEPTH, "depth"),
    unscorable(POINTS_ONLY, FLOW, "flow"),
    unscorable(POINTS_ONLY, ensemble(samples=1), "depths"),
    unscorable(SQUARES_ONLY, ensemble(samples=2), "depths"),
    unscorable(SQUARES_ONLY, POINT, "flow"),
    unscorable(SQUARES_ONLY, ensemble(samples=1, open_lower=True), "depths"),  # 10^13 thousandths are too far
    unscorable(SQUARES_ONLY, ensemble(samples=1, upper=500_000_001), "depths"),
    unscorable(POINTS_ONLY, quartiles(levels=("0.5",), open_upper=True), "flow"),
    unscorable(PRESETS["relative-2022-04"], FLOW, "flow"),
    unscorable(PRESETS["autocast-2022"], DEPTH, "depth"),
    ("enrol_participant", "unknown_contest", "contest", [], enrolment()),
    ("enrol_participant", "contest_finalized", "contest", [CUP, finalization()], enrolment()),
    ("enrol_participant", "enrolled_already", "participant", TRADED, enrolment("week")),
    ("enrol_participant", "enrolled_already", "participant", TRADED, enrolment("week", family="gpt")),
    ("enrol_participant", "contest_complete", "contest", [*TRADED, decision()], enrolment("week", "bob")),
    ("finalize_contest", "contest_not_complete", "contest", [WEEK], finalization("week")),
    ("finalize_contest", "contest_not_complete", "contest", TRADED, finalization("week")),
    ("pay_prizes", "unknown_contest", "contest", [], payment()),
    ("pay_prizes", "unknown_contest", "contest", PAYABLE, payment("cap")),
    ("pay_prizes", "contest_not_finalized", "contest", [WITH_POOL], payment()),
    ("pay_prizes", "contest_not_finalized", "contest", PAYABLE[:-1], payment()),
    ("pay_prizes", "prizes_paid", "contest", [*PAYABLE, payment()], payment()),
    ("pay_prizes", "prizes_paid", "contest", [*PAYABLE, payment()], payment(at=OPENS)),
    ("pay_prizes", "nobody_wins", "contest", [WITH_POOL, finalization()], payment()),
    ("pay_prizes", "nobody_wins", "contest", won(pool=0), payment()),  # a prize of 0 is not recorded
    ("exclude_participant", "unknown_contest", "contest", [], exclusion()),
    ("exclude_participant", "contest_finalized", "contest", [CUP, finalization()], exclusion()),
    ("finalize_contest", "unknown_contest", "contest", [], finalization()),
    ("finalize_contest", "contest_finalized", "contest", [CUP, finalization()], finalization()),
]


FUNCTIONS = sorted({function for function, *_ in REFUSED})


# Two faults at once: the two codes, the one to report first, the history and the command.
ORDER: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("out_of_range", "unknown_rules", [], contest(pool=-1, rules="none")),
    ("out_of_range", "unknown_rules", [], contest(payable_unit=0, rules="none")),
    ("unknown_rules", "duplicate_contest", [CUP], contest(rules="none")),
    ("out_of_range", "rules_not_consistent", [], contest(pool=-1, rules=RuleSet(name="x"))),
    ("rules_not_consistent", "duplicate_contest", [CUP], contest(rules=RuleSet(name="x"))),
    ("rules_not_consistent", "pool_not_payable", [], contest(rules=RuleSet(name="x"), pool="0.001")),
    ("duplicate_contest", "pool_not_payable", [CUP], contest(pool="0.001")),
    ("unknown_rules", "pool_not_payable", [], contest(rules="none", pool="0.001")),
    ("pool_not_payable", "not_trading", [], contest(pool="0.001", series="cups")),
    ("out_of_range", "duplicate_contest", [WEEK], cohort(starts_at="0001-01-01T00:00:00Z")),
    ("out_of_range", "pool_not_payable", [], cohort(starts_at="0001-01-01T00:00:00Z", pool="0.001")),
    ("duplicate_contest", "not_trading", [CUP], contest(series="cups")),
    ("duplicate_contest", "duplicate_cohort", [WEEK], cohort()),
    ("pool_not_payable", "duplicate_cohort", [WEEK], cohort("other", pool="0.001")),
    ("enrolled_already", "contest_complete", [*TRADED, decision()], enrolment("week")),
    ("contest_finalized", "enrolled_already", [*TRADED, decision(), finalization("week")], enrolment("week")),
    ("contest_finalized", "contest_complete", [*TRADED, decision(), finalization("week")], enrolment("week", "bob")),
    ("malformed", "out_of_range", [RAIN, CUP], entry(spot_at=day(12), spots=(), weight=-1)),
    ("out_of_range", "unknown_contest", [], entry(spots=())),
    ("out_of_range", "unknown_contest", [], entry(weight=-1)),
    ("out_of_range", "no_hidden_period", [RAIN, CUP], entry(hidden_coverage_weight=2)),
    ("unknown_contest", "unknown_question", [], entry()),
    ("unknown_contest", "wrong_order_of_instants", [RAIN], entry(spot_at=AFTER)),
    ("out_of_range", "wrong_order_of_instants", [RAIN, CUP], entry(spot_at=AFTER, weight=-1)),
    ("wrong_order_of_instants", "contest_finalized", [RAIN, CUP, finalization()], entry(spot_at=AFTER)),
    ("wrong_order_of_instants", "question_in_contest", [RAIN, CUP, entry()], entry(spot_at=AFTER)),
    ("wrong_order_of_instants", "unscorable_question", [FLOW, CUP], entry(question="flow", spot_at=AFTER)),
    ("wrong_order_of_instants", "no_hidden_period", [RAIN, CUP], entry(spot_at=AFTER, hidden_coverage_weight=1)),
    ("contest_finalized", "unscorable_question", [FLOW, CUP, finalization()], entry(question="flow")),
    ("unscorable_question", "no_hidden_period", [FLOW, CUP], entry(question="flow", hidden_coverage_weight=1)),
    ("contest_not_finalized", "nobody_wins", [WITH_POOL], payment()),
    ("contest_not_finalized", "nobody_wins", won(pool=0)[:-1], payment()),
    ("unknown_question", "contest_finalized", [CUP, finalization()], entry()),
    ("contest_finalized", "question_in_contest", [RAIN, CUP, entry(), finalization()], entry()),
    ("contest_finalized", "no_hidden_period", [RAIN, CUP, finalization()], entry(hidden_coverage_weight=1)),
    ("question_in_contest", "no_hidden_period", [RAIN, CUP, entry()], entry(hidden_coverage_weight=1)),
]


@pytest.mark.parametrize("name", ["relative-2021-11", "relative-2022-04"])
def test_a_contest_records_the_whole_rule_set_of_a_preset(name: str) -> None:
    """The event has all fields, so a later change of the preset has no effect. The defaults are no pool, and cents."""
    given().when(contest(rules=name)).records(
        events.ContestOpened(at=micros(5), contest="cup", rules=PRESETS[name], pool=0, payable_unit=10_000)
    )


@pytest.mark.parametrize("fields", CONTRADICTORY, ids=str)
def test_a_refused_rule_set_says_which_of_its_rules_contradict_one_another(fields: dict[str, Any]) -> None:
    """The message has the words of the rule."""
    rules = RuleSet(name="mine", **fields)
    outcome = given().when(contest(rules=rules)).outcome
    assert isinstance(outcome, Refused)
    assert (outcome.value, outcome.detail) == ("mine", inconsistency(rules))
    assert outcome.detail in str(outcome)


def test_a_question_that_the_rules_do_not_score_is_refused_with_the_reason() -> None:
    """The message says what the contest would need."""
    outcome = given(FLOW, CUP).when(entry(question="flow")).outcome
    assert isinstance(outcome, Refused)
    assert "no quantile_kernel" in str(outcome)


@pytest.mark.parametrize(
    ("rules", "question", "name"),
    [
        (NAMED_ONLY, RAIN, "rain"),
        (NAMED_ONLY, choices(), "colour"),
        (CURVES_ONLY, DEPTH, "depth"),
        (QUANTILES_ONLY, FLOW, "flow"),
        (QUANTILES_ONLY, ensemble(), "depths"),
        (SQUARES_ONLY, ensemble(samples=1), "depths"),
        (SQUARES_ONLY, ensemble(samples=1, upper=500_000_000), "depths"),
        (SQUARES_ONLY, ensemble(samples=1, open_lower=True, open_upper=True, decimals=5), "depths"),
        (QUANTILES_ONLY, quartiles(open_lower=True, open_upper=True), "flow"),
        (POINTS_ONLY, POINT, "flow"),
        (PRESETS["autocast-2022"], POINT, "flow"),
        (PRESETS["autocast-2022"], choices(), "colour"),
        (PRESETS["peer-2024-03"], DEPTH, "depth"),
    ],
)
def test_a_contest_takes_the_questions_that_its_rules_score(rules: RuleSet, question: AnyCommand, name: str) -> None:
    """Each form of distribution needs a kernel."""
    given(question, contest(rules=rules)).when(entry(question=name)).records(
        events.QuestionAdded(at=micros(5), contest="cup", question=name, weight=MILLION)
    )


@pytest.mark.parametrize(
    ("spot_at", "micros_then"),
    [(OPENS, micros(10)), (CLOSES, micros(20)), ("2026-03-12T07:30:00.0000005+05:30", micros(12, 2))],
)
def test_an_added_question_records_the_instant_that_counts(spot_at: str, micros_then: int) -> None:
    """The instant may be from the opening to the close, both included; it is in µs."""
    given(RAIN, CUP).when(entry(spot_at=spot_at)).records(
        events.QuestionAdded(at=micros(5), contest="cup", question="rain", weight=MILLION, spot_at=micros_then)
    )


@pytest.mark.parametrize(
    ("fields", "entrant", "bot"),
    [
        ({}, "", False),
        ({"entrant": "team"}, "team", False),
        ({"bot": True}, "", True),
        ({"entrant": "ada"}, "ada", False),
    ],
)
def test_an_enrolment_is_recorded_and_may_be_changed(fields: dict[str, Any], entrant: str, bot: bool) -> None:
    """The last enrolment counts as a whole: one without `bot` says that the participant is not a bot."""
    event = events.ParticipantEnrolled(at=micros(5), contest="cup", participant="ada", entrant=entrant, bot=bot)
    given(CUP).when(enrolment(**fields)).records(event)
    given(CUP, enrolment(entrant="other", bot=True), exclusion()).when(enrolment(**fields)).records(event)


def test_prizes_are_recorded_one_a_winner_in_order_of_id() -> None:
    """The prizes are in 1e-6 of the currency, and one command pays the whole pool.

    The median is 0.5; the probabilities are 1, 1.6, 0.4 and 1 in 4.
    """
    history = won(chances={"eve": "0.5", "ada": "0.8", "cyd": "0.2", "Bob": "0.5"})
    given(*history).when(payment()).records(
        events.PrizePaid(at=micros(25), contest="cup", participant="Bob", amount=2_500_000),
        events.PrizePaid(at=micros(25), contest="cup", participant="ada", amount=4_000_000),
        events.PrizePaid(at=micros(25), contest="cup", participant="cyd", amount=1_000_000),
        events.PrizePaid(at=micros(25), contest="cup", participant="eve", amount=2_500_000),
    )


@pytest.mark.parametrize(
    ("pool", "unit", "chances", "paid"),
    [
        ("0.000001", "0.000001", {"ada": "0.8"}, {"ada": 1}),
        (10**12, 10**12, {"ada": "0.8"}, {"ada": 10**18}),
        (15, 5, {"ada": "0.8", "bob": "0.2"}, {"ada": 10 * MILLION, "bob": 5 * MILLION}),  # 2.4 and 0.6 units
        (0.3, 0.01, {"ada": "0.8", "bob": "0.2"}, {"ada": 240_000, "bob": 60_000}),
        (2, 2, {"ada": "0.2", "bob": "0.8"}, {"bob": 2 * MILLION}),
    ],
)
def test_a_pool_is_paid_in_whole_units(pool: Any, unit: Any, chances: dict[str, str], paid: dict[str, int]) -> None:
    """Two participants with 0.8 and 0.2 get four parts and one, for units from the smallest to the largest."""
    given(*won(chances=chances, pool=pool, payable_unit=unit)).when(payment()).records(
        *[events.PrizePaid(at=micros(25), contest="cup", participant=who, amount=paid[who]) for who in sorted(paid)]
    )


def test_a_contest_is_paid_by_itself() -> None:
    """The prizes of other contests do not matter; each contest has its own sealed board."""
    history = [*PAYABLE, contest("league", pool=10), entry("league"), finalization("league"), payment()]
    assert isinstance(given(*history).when(payment("league")).outcome, list)
    given(*history).when(exclusion()).refuses("contest_finalized", "contest")


@pytest.mark.parametrize(
    ("history", "code"), [([], "unknown_contest"), ([WITH_POOL], "contest_not_finalized"), (PAYABLE, "prizes_unknown")]
)
def test_a_ledger_that_cannot_compute_prizes_pays_nobody(history: list[AnyCommand], code: str) -> None:
    """The refusal comes after all others."""
    given(*history).when(payment(), prizes=None).refuses(code, "contest")


@pytest.mark.parametrize("history", [[], [WITH_POOL], PAYABLE[:-1], [*PAYABLE, payment()]])
def test_prizes_are_computed_last(history: list[AnyCommand]) -> None:
    """It takes as long as reading the log, so it is computed after all other checks."""
    contests_read: list[str] = []

    def prizes(pages: Iterable[Sequence[Recorded]], name: str) -> Mapping[str, int]:
        contests_read.append(name)
        return prizes_from_log(pages, name)

    assert isinstance(given(*history).when(payment(), prizes=prizes).outcome, Refused)
    assert contests_read == ["cup"] * (payment() in history)


HOSTILE: list[dict[Any, Any]] = [
    {"ada": 9_990_000},
    {"ada": 10_010_000},
    {"ada": 5_000_000, "bob": 5_010_000},
    {"ada": 11_000_000, "bob": -1_000_000},
    {"ada": 10_000_000, "bob": 0},
    {"ada": 0},
    {"ada": 9_995_000, "bob": 5_000},  # half cents
    {"ada": 10_000_000.0},
    {"ada": "10"},
    {"ada": True},
    {"ada": None},
    {"zoe": 10_000_000},
    {"ada": 9_000_000, "zoe": 1_000_000},
    {"": 10_000_000},
    {1: 10_000_000},
    {"sun": 10_000_000},  # a participant who forecast, but not in this contest
]


@pytest.mark.parametrize("worth", HOSTILE, ids=str)
def test_prizes_that_no_board_can_give_are_not_paid(worth: dict[Any, Any]) -> None:
    """Prizes must be whole payable units that sum to the pool, for participants who forecast on its questions.

    Other prizes are not the fault of a command, so they raise an error, not a refusal. Nothing of the command or its
    batch is recorded; afterwards the ledger works.
    """
    history = [*won(chances={"ada": "0.5", "bob": "0.5"}), opened("snow"), forecast("snow", "sun")]
    worths = [worth, {"bob": 5_000_000, "ada": 5_000_000}]
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=lambda *_: worths.pop(0)) as ledger:
        for number, earlier in enumerate(history):
            ledger.handle(earlier, f"c{number}")
        before = ledger.head()
        batch: list[AnyCommand] = [structs.replace(opened("hail"), id="hail"), structs.replace(payment(), id="pay")]
        with pytest.raises((ValueError, TypeError)):
            ledger.handle_many(batch)
        assert ledger.head() == before
        assert [type(outcome) for outcome in ledger.handle_many(batch)] == [Receipt, Receipt]
        paid = [recorded.event for page in ledger.read(before.position + 1) for recorded in page]
        assert [event.participant for event in paid if isinstance(event, events.PrizePaid)] == ["ada", "bob"]


def test_a_contest_records_a_whole_rule_set_as_it_was_given() -> None:
    """The event has the title, currency, pool and payable unit too, with money in 1e-6."""
    command = contest(rules=OWN, title="Cup", currency="EUR", pool="1000.50", payable_unit="0.5")
    given().when(command).records(
        events.ContestOpened(
            at=micros(5),
            contest="cup",
            title="Cup",
            rules=OWN,
            pool=1_000_500_000,
            currency="EUR",
            payable_unit=500_000,
        )
    )


@pytest.mark.parametrize(
    ("fields", "pool", "unit"),
    [
        ({"pool": 0}, 0, 10_000),
        ({"pool": "10.01"}, 10_010_000, 10_000),
        ({"pool": 10**12}, 10**18, 10_000),
        ({"pool": 7, "payable_unit": 7}, 7 * MILLION, 7 * MILLION),
        ({"pool": "0.000001", "payable_unit": "0.000001"}, 1, 1),
        ({"pool": 0, "payable_unit": 10**12}, 0, 10**18),
        ({"pool": "0.0099999999"}, 10_000, 10_000),  # rounded to 1e-6 first
    ],
)
def test_a_pool_is_a_whole_number_of_payable_units(fields: dict[str, Any], pool: int, unit: int) -> None:
    """A pool is from 0 to 1e12, in units from 1e-6 on."""
    given().when(contest(**fields)).records(
        events.ContestOpened(
            at=micros(5), contest="cup", rules=PRESETS["relative-2022-04"], pool=pool, payable_unit=unit
        )
    )


@pytest.mark.parametrize(
    ("question", "fields", "weight", "hidden"),
    [
        (RAIN, {}, MILLION, None),
        (RAIN, {"weight": "0.5"}, 500_000, None),
        (RAIN, {"weight": "0.000001"}, 1, None),
        (RAIN, {"weight": 10**6}, 10**12, None),
        (HIDDEN, {}, MILLION, None),
        (HIDDEN, {"hidden_coverage_weight": 0}, MILLION, 0),
        (HIDDEN, {"hidden_coverage_weight": "0.3333335"}, MILLION, 333_334),  # half-even: 333333.5
        (HIDDEN, {"hidden_coverage_weight": 1}, MILLION, MILLION),
        (ALL_HIDDEN, {"hidden_coverage_weight": 1}, MILLION, MILLION),  # no period follows it, so it has all the weight
        (ALL_HIDDEN, {}, MILLION, None),
    ],
)
def test_an_added_question_records_its_weights(
    question: AnyCommand, fields: dict[str, Any], weight: int, hidden: int | None
) -> None:
    """Weights are in 1e-6; a hidden coverage weight needs a hidden period."""
    given(question, CUP).when(entry(**fields)).records(
        events.QuestionAdded(at=micros(5), contest="cup", question="rain", weight=weight, hidden_coverage_weight=hidden)
    )


def test_a_question_may_be_in_several_contests_and_a_contest_have_several_questions() -> None:
    """Only a question that is already in the contest is refused."""
    history = [RAIN, choices(), CUP, contest("league"), entry()]
    assert isinstance(given(*history).when(entry("league")).outcome, list)
    assert isinstance(given(*history).when(entry("cup", "colour")).outcome, list)


@pytest.mark.parametrize(
    "history", [[resolution()], [annulment()], [annulment(), revocation()]], ids=["resolved", "annulled", "revoked"]
)
def test_a_question_may_be_added_in_any_state(history: list[AnyCommand]) -> None:
    """The projections decide what counts on the board."""
    assert isinstance(given(RAIN, CUP, *history).when(entry()).outcome, list)


@pytest.mark.parametrize("level", ["no_prize", "no_rank", "hidden"])
def test_an_exclusion_is_recorded_and_may_be_changed(level: str) -> None:
    """The last exclusion counts; the participant need not have forecast."""
    event = events.ParticipantExcluded(
        at=micros(25),
        contest="cup",
        participant="ada",
        level=level,  # type: ignore[arg-type]
        reason="staff",
    )
    given(CUP).when(exclusion(level=level)).records(event)
    given(CUP, exclusion(level="hidden")).when(exclusion(level=level)).records(event)


def test_a_finalized_contest_is_frozen_and_the_others_are_not() -> None:
    """The board is fixed at that log position; questions and other contests go on."""
    given(CUP).when(finalization()).records(events.ContestFinalized(at=micros(25), contest="cup"))
    history = [RAIN, CUP, contest("league"), entry(), finalization()]
    assert isinstance(given(*history).when(resolution()).outcome, list)
    assert isinstance(given(*history).when(entry("league")).outcome, list)
    assert isinstance(given(*history).when(exclusion("league")).outcome, list)


def test_a_contest_and_a_question_may_have_the_same_id() -> None:
    """Contests and questions have separate ids."""
    given(opened("cup")).when(contest("cup", at=BEFORE)).records(
        events.ContestOpened(at=micros(5), contest="cup", rules=PRESETS["relative-2022-04"], payable_unit=10_000)
    )


@pytest.mark.parametrize(
    ("fields", "starts_at"),
    [
        ({"at": SUNDAY}, micros(1)),
        ({"at": "2026-03-01T00:00:00.000001Z"}, micros(1)),
        ({"at": day(4, 15)}, micros(1)),  # opened on a Wednesday, it is the cohort of that week
        ({"at": "2026-03-07T23:59:59.999999Z"}, micros(1)),
        ({"at": day(8)}, micros(8)),
        ({"at": "2026-02-28T23:59:59.999999Z"}, micros(1) - 7 * 86_400 * 10**6),
        ({"at": AFTER, "starts_at": day(4)}, micros(1)),
        ({"starts_at": day(12)}, micros(8)),  # it may be opened before it starts
        ({"starts_at": "0001-01-07T12:00:00Z"}, FIRST_INSTANT + 6 * 86_400 * 10**6),  # the first Sunday of the calendar
        ({"starts_at": "2026-03-08T01:00:00+02:00"}, micros(1)),  # Saturday, 23:00 UTC
        ({"starts_at": "2026-03-07T22:30:00-02:00"}, micros(8)),  # Sunday, 00:30 UTC
    ],
    ids=str,
)
def test_a_weekly_contest_starts_on_the_latest_sunday(fields: dict[str, Any], starts_at: int) -> None:
    """It starts at 00:00 UTC, at or before starts_at, or at; 2026-03-01 is a Sunday.

    Source: Forecaster Arena, Methodology v1, "Schedule".
    """
    [event] = ran(cohort(**fields))
    assert isinstance(event, events.ContestOpened)
    assert event.starts_at == starts_at


def test_a_contest_without_weeks_starts_at_starts_at() -> None:
    """Without starts_at, it starts when it is opened; a series may have several such contests at one instant."""
    history = [cohort("a", rules=LEAGUE, starts_at=day(4, 7)), cohort("b", rules=LEAGUE, at=day(4, 7))]
    opened_then = [event for event in ran(*history, cohort("c", at=day(4))) if isinstance(event, events.ContestOpened)]
    assert [event.starts_at for event in opened_then] == [micros(4, 7), micros(4, 7), micros(1)]


def test_a_contest_without_trading_has_no_start() -> None:
    """Its event has the same bytes as before the field existed."""
    [event] = ran(CUP)
    assert isinstance(event, events.ContestOpened)
    assert (event.starts_at, event.series) == (None, "")


def test_a_series_has_one_cohort_a_week() -> None:
    """Another week, or another series, may have its own cohort; a finalized cohort keeps its week."""
    history = [
        WEEK,
        cohort("next", at=day(8)),
        cohort("other", series="b"),
        cohort("their next", at=day(8), series="b"),
    ]
    given(*history[:1]).when(history[1]).records(
        events.ContestOpened(
            at=micros(8), contest="next", rules=PRESETS["arena-v1"], payable_unit=10_000, starts_at=micros(8)
        )
    )
    assert len(ran(*history)) == 4
    given(*history).when(cohort("third", at=day(9), series="b")).refuses("duplicate_cohort", "starts_at")
    done: list[AnyCommand] = [*TRADED, decision(), finalization("week")]
    given(*done).when(cohort("again")).refuses("duplicate_cohort", "starts_at")


def test_a_refused_second_cohort_names_the_first() -> None:
    """The message also names the week."""
    outcome = given(WEEK).when(cohort("other", at=day(3))).outcome
    assert isinstance(outcome, Refused)
    assert outcome.detail == "'week' is the cohort of 2026-03-01T00:00:00Z"


def test_an_enrolment_in_a_trading_contest_grants_the_starting_cash() -> None:
    """The participant gets 10,000 once; the event has the family and the release.

    Source: Forecaster Arena, Methodology v1, "Starting Capital".
    """
    given(WEEK).when(enrolment("week", family="claude", release="claude-4.5", at=SUNDAY)).records(
        events.ParticipantEnrolled(
            at=micros(1), contest="week", participant="ada", family="claude", release="claude-4.5"
        ),
        events.CashGranted(at=micros(1), contest="week", participant="ada", amount=10_000 * MILLION),
    )
    own = RuleSet(name="own", trading=Trading(starting_cash_micros=0, recapitalisation=True))
    assert ran(cohort(rules=own), enrolment("week"))[-1] == events.CashGranted(
        at=micros(5), contest="week", participant="ada", amount=0
    )


def test_one_participant_has_an_account_in_each_contest() -> None:
    """A participant who is enrolled in one week may enrol in the next."""
    history: list[AnyCommand] = [WEEK, cohort("next", at=day(8)), enrolment("week"), enrolment("next")]
    granted = [event for event in ran(*history) if isinstance(event, events.CashGranted)]
    assert [(event.contest, event.participant) for event in granted] == [("week", "ada"), ("next", "ada")]


BOTH_ENROLLED = trading_floor("ada", "bob")
INCOMPLETE: dict[str, list[AnyCommand]] = {
    "nobody is enrolled": [WEEK],
    "nobody has decided": BOTH_ENROLLED,
    "one has not decided": [*BOTH_ENROLLED, decision()],
    "one has been malformed once": [*BOTH_ENROLLED, decision(), replied("?", "bob")],
    "all legs of one were refused": [*BOTH_ENROLLED, decision(), decision(bet(side="up"), participant="bob")],
    "one has decided twice": [*BOTH_ENROLLED, decision(), decision(period=2, at=day(9))],
    "something is open": [*BOTH_ENROLLED, decision(bet()), decision(participant="bob")],
    "something is left": [
        *[*TRADED, decision(bet()), quote(at=day(9)), decision(sale("99.9999"), period=2, at=day(9))]
    ],
    "one of two markets is settled": [*TRADED, decision(bet(), bet(side="red", market_id="colour")), resolution()],
    "the resolution is revoked": [*TRADED, decision(bet()), resolution(), revocation()],
    "the cancellation is revoked": [*TRADED, decision(bet()), cancellation(), revocation()],
}
COMPLETE: dict[str, list[AnyCommand]] = {
    "all hold": [*BOTH_ENROLLED, decision(), decision(participant="bob")],
    "one holds by default": [*BOTH_ENROLLED, decision(), *[replied("?", "bob"), replied("?", "bob", attempt=2)]],
    "all is settled": [*BOTH_ENROLLED, decision(bet()), decision(bet(side="no"), participant="bob"), resolution()],
    "all is sold": [*TRADED, decision(bet()), quote(at=day(9)), decision(sale(), period=2, at=day(9))],
    "all is refunded": [*TRADED, decision(bet()), annulment()],
    "all is void": [*TRADED, decision(bet()), cancellation()],
    "all is settled after a correction": [
        *[*TRADED, decision(bet()), resolution(), revocation(), resolution(outcome="no")]
    ],
    "others hold positions in another contest": [
        *[*trading_floor("ada", series="a"), cohort("b", series="b"), entry("b"), enrolment("b", "bob")],
        *[decision(bet(), contest="b", participant="bob"), decision()],
    ],
}


@pytest.mark.parametrize("history", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_a_contest_that_is_not_complete_is_not_finalized(history: list[AnyCommand]) -> None:
    """A contest is complete if it has participants, all have taken a decision, and no position is open."""
    given(*history).when(finalization("week")).refuses("contest_not_complete", "contest")


@pytest.mark.parametrize("history", COMPLETE.values(), ids=COMPLETE.keys())
def test_a_complete_contest_is_finalized_and_takes_no_more_decisions(history: list[AnyCommand]) -> None:
    """It also takes no decision for a second period, and no new participant."""
    given(*history).when(finalization("week")).records(events.ContestFinalized(at=micros(25), contest="week"))
    given(*history).when(decision(period=4, at=AFTER)).refuses("contest_complete", "contest")
    given(*history).when(enrolment("week", "cyd")).refuses("contest_complete", "contest")


def test_the_refusal_says_what_is_missing_for_completion() -> None:
    """The message gives the number of participants without a decision, and of open positions."""
    outcome = (
        given(*trading_floor("ada", "bob", "cyd"), decision(bet(), bet(50, "no"))).when(finalization("week")).outcome
    )
    assert isinstance(outcome, Refused)
    assert outcome.detail == "participants without a decision: 2, open positions: 2"


def test_a_contest_without_trading_can_always_be_finalized() -> None:
    """Completeness matters only in trading contests."""
    given(RAIN, CUP, entry(), enrolment()).when(finalization()).records(
        events.ContestFinalized(at=micros(25), contest="cup")
    )


def test_a_board_of_trades_wins_no_prize() -> None:
    """The arena's presets have no take, so the pool is not paid."""
    history = [*trading_floor(pool=100), decision(bet()), resolution(), finalization("week")]
    given(*history).when(payment("week")).refuses("nobody_wins", "contest")


def test_an_added_question_records_the_instants_that_count_with_their_weights() -> None:
    """A weight is 1 unless it is given; the opening and the close are within the period."""
    spots = (Spot(at=day(10)), Spot(at=day(20), weight=100))
    recorded = (events.Spot(at=micros(10)), events.Spot(at=micros(20), weight=100))
    given(RAIN, CUP).when(entry(spots=spots)).records(
        events.QuestionAdded(at=micros(5), contest="cup", question="rain", weight=MILLION, spots=recorded)
    )
