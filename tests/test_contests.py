"""Contests, their questions and their exclusions: what is recorded, what is refused, and which refusal comes first."""

from typing import Any

import pytest

from ledger import Refused, contests, events
from ledger.commands import AnyCommand
from ledger.rules import PRESETS, RuleSet
from tests.given import (
    BEFORE,
    CLOSES,
    REVEALS,
    annulment,
    choices,
    contest,
    entry,
    exclusion,
    finalization,
    given,
    micros,
    opened,
    promised,
    resolution,
    revocation,
)

MILLION = 10**6
RAIN, CUP = opened(), contest()
HIDDEN = opened(reveals_at=REVEALS)
ALL_HIDDEN = opened(reveals_at=CLOSES)
OWN = RuleSet(name="own", kernel="log2", early_forecasts=False, least_probability_ppm=1, least_density_ppm=500_000)

# One row a promise: the decider's function, the code and field it refuses with, the history, the command.
REFUSED: list[tuple[str, str, str, list[AnyCommand], AnyCommand]] = [
    ("open_contest", "out_of_range", "pool", [], contest(pool="-0.01")),
    ("open_contest", "out_of_range", "pool", [], contest(pool="1000000000000.01")),
    ("open_contest", "out_of_range", "payable_unit", [], contest(payable_unit=0)),
    ("open_contest", "out_of_range", "payable_unit", [], contest(payable_unit="-0.01")),
    ("open_contest", "out_of_range", "payable_unit", [], contest(payable_unit="0.0000005")),
    ("open_contest", "unknown_rules", "rules", [], contest(rules="relative")),
    ("open_contest", "unknown_rules", "rules", [], contest(rules="")),
    ("open_contest", "duplicate_contest", "contest", [CUP], contest(rules="relative-2021-11")),
    ("open_contest", "duplicate_contest", "contest", [CUP, finalization()], contest()),
    ("open_contest", "pool_not_payable", "pool", [], contest(pool="10.005")),
    ("open_contest", "pool_not_payable", "pool", [], contest(pool="10.5", payable_unit=1)),
    ("open_contest", "pool_not_payable", "pool", [], contest(pool=1, payable_unit=2)),
    ("add_question", "out_of_range", "weight", [RAIN, CUP], entry(weight=0)),
    ("add_question", "out_of_range", "weight", [RAIN, CUP], entry(weight="-1")),
    ("add_question", "out_of_range", "weight", [RAIN, CUP], entry(weight="0.0000005")),
    ("add_question", "out_of_range", "weight", [RAIN, CUP], entry(weight="1000000.000001")),
    ("add_question", "out_of_range", "hidden_coverage_weight", [HIDDEN, CUP], entry(hidden_coverage_weight="-0.1")),
    ("add_question", "out_of_range", "hidden_coverage_weight", [HIDDEN, CUP], entry(hidden_coverage_weight="1.1")),
    ("add_question", "unknown_contest", "contest", [RAIN], entry()),
    ("add_question", "unknown_question", "question", [CUP], entry()),
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
    ("exclude_participant", "unknown_contest", "contest", [], exclusion()),
    ("exclude_participant", "contest_finalized", "contest", [CUP, finalization()], exclusion()),
    ("finalize_contest", "unknown_contest", "contest", [], finalization()),
    ("finalize_contest", "contest_finalized", "contest", [CUP, finalization()], finalization()),
]
NAMES = [f"{function}-{code}-{number}" for number, (function, code, *_) in enumerate(REFUSED)]


@pytest.mark.parametrize(("function", "code", "field", "history", "command"), REFUSED, ids=NAMES)
def test_a_command_that_breaks_one_rule_is_refused_for_it(
    function: str, code: str, field: str, history: list[AnyCommand], command: AnyCommand
) -> None:
    """With the code and field of that rule, and the log stays as it was."""
    given(*history).when(command).refuses(code, field)


FUNCTIONS = sorted({function for function, *_ in REFUSED})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_refusal_a_docstring_promises_is_tested_above_and_no_other(function: str) -> None:
    """The docstrings list what can happen: not less, not more."""
    tested = {code for name, code, *_ in REFUSED if name == function}
    assert tested == set(promised(getattr(contests, function)))


# Two faults at once: the two codes, the one to report first, the history and the command.
BOTH: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("out_of_range", "unknown_rules", [], contest(pool=-1, rules="none")),
    ("out_of_range", "unknown_rules", [], contest(payable_unit=0, rules="none")),
    ("unknown_rules", "duplicate_contest", [CUP], contest(rules="none")),
    ("duplicate_contest", "pool_not_payable", [CUP], contest(pool="0.001")),
    ("unknown_rules", "pool_not_payable", [], contest(rules="none", pool="0.001")),
    ("out_of_range", "unknown_contest", [], entry(weight=0)),
    ("out_of_range", "no_hidden_period", [RAIN, CUP], entry(hidden_coverage_weight=2)),
    ("unknown_contest", "unknown_question", [], entry()),
    ("unknown_question", "contest_finalized", [CUP, finalization()], entry()),
    ("contest_finalized", "question_in_contest", [RAIN, CUP, entry(), finalization()], entry()),
    ("contest_finalized", "no_hidden_period", [RAIN, CUP, finalization()], entry(hidden_coverage_weight=1)),
    ("question_in_contest", "no_hidden_period", [RAIN, CUP, entry()], entry(hidden_coverage_weight=1)),
]


@pytest.mark.parametrize(("first", "second", "history", "command"), BOTH)
def test_of_two_broken_rules_the_earlier_is_reported(
    first: str, second: str, history: list[AnyCommand], command: AnyCommand
) -> None:
    """The order in which a docstring lists its refusals is the order in which they apply."""
    outcome = given(*history).when(command).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == first


def test_the_pairs_above_walk_the_order_of_the_docstrings() -> None:
    """Each pair stands in some docstring in this order."""
    orders = [promised(getattr(contests, function)) for function in FUNCTIONS]
    for first, second, *_ in BOTH:
        assert any(first in order and second in order[order.index(first) + 1 :] for order in orders), (first, second)


@pytest.mark.parametrize("name", ["relative-2021-11", "relative-2022-04"])
def test_a_contest_records_the_whole_rule_set_of_a_preset(name: str) -> None:
    """Not its name alone: no later edit of the preset changes this contest. Defaults: no pool, cents."""
    given().when(contest(rules=name)).records(
        events.ContestOpened(at=micros(5), contest="cup", rules=PRESETS[name], pool=0, payable_unit=10_000)
    )


def test_the_presets_differ_in_the_base_of_the_logarithm() -> None:
    """Seed 000: before April 2022 the logarithm was base 2, since then natural."""
    assert {name: rules.kernel for name, rules in PRESETS.items()} == {
        "relative-2021-11": "log2",
        "relative-2022-04": "ln",
    }
    assert all(name == rules.name for name, rules in PRESETS.items())


def test_a_contest_records_a_whole_rule_set_as_it_was_given() -> None:
    """With title, currency, pool and payable unit, money in 1e-6."""
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
        ({"pool": "0.0099999999"}, 10_000, 10_000),  # brought to 1e-6 first
    ],
)
def test_a_pool_is_a_whole_number_of_payable_units(fields: dict[str, Any], pool: int, unit: int) -> None:
    """From nothing to 1e12, in units from 1e-6 on."""
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
        (ALL_HIDDEN, {"hidden_coverage_weight": 1}, MILLION, MILLION),  # nothing follows it: all weight on it
        (ALL_HIDDEN, {}, MILLION, None),
    ],
)
def test_an_added_question_records_its_weights(
    question: AnyCommand, fields: dict[str, Any], weight: int, hidden: int | None
) -> None:
    """In 1e-6; a hidden coverage weight only where there is a hidden period."""
    given(question, CUP).when(entry(**fields)).records(
        events.QuestionAdded(at=micros(5), contest="cup", question="rain", weight=weight, hidden_coverage_weight=hidden)
    )


def test_a_question_may_be_in_several_contests_and_a_contest_have_several_questions() -> None:
    """Only the same question in the same contest is refused."""
    history = [RAIN, choices(), CUP, contest("league"), entry()]
    assert isinstance(given(*history).when(entry("league")).outcome, list)
    assert isinstance(given(*history).when(entry("cup", "colour")).outcome, list)


@pytest.mark.parametrize(
    "history",
    [[resolution()], [annulment()], [annulment(), revocation()]],
    ids=["resolved", "annulled", "revoked"],
)
def test_a_question_may_be_added_whatever_has_become_of_it(history: list[AnyCommand]) -> None:
    """What counts on the board is for the projections to say."""
    assert isinstance(given(RAIN, CUP, *history).when(entry()).outcome, list)


@pytest.mark.parametrize("level", ["no_prize", "no_rank", "hidden"])
def test_an_exclusion_is_recorded_and_may_be_changed(level: str) -> None:
    """The last one counts; a participant need not have forecast before."""
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
    """The board stands at that log position; questions and other contests go on."""
    given(CUP).when(finalization()).records(events.ContestFinalized(at=micros(25), contest="cup"))
    history = [RAIN, CUP, contest("league"), entry(), finalization()]
    assert isinstance(given(*history).when(resolution()).outcome, list)
    assert isinstance(given(*history).when(entry("league")).outcome, list)
    assert isinstance(given(*history).when(exclusion("league")).outcome, list)


def test_a_contest_and_a_question_may_have_the_same_id() -> None:
    """They are different things with different names for their ids."""
    given(opened("cup")).when(contest("cup", at=BEFORE)).records(
        events.ContestOpened(at=micros(5), contest="cup", rules=PRESETS["relative-2022-04"], payable_unit=10_000)
    )
