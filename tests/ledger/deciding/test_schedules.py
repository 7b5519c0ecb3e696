"""Tests of other times for a question: the recorded events, what follows from them, and the refusals."""

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion, Spot
from tests.support import oracle
from tests.support.given import (
    AFTER,
    CLOSES,
    LATER,
    OPENS,
    REVEALS,
    annulment,
    bet,
    closing,
    contest,
    day,
    decision,
    entry,
    finalization,
    forecast,
    given,
    micros,
    opened,
    rescheduling,
    resolution,
    revocation,
    trading_floor,
    withdrawal,
)

RAIN, SHOWN = opened(), opened(reveals_at=REVEALS)
IN_CUP: list[AnyCommand] = [SHOWN, contest(rules="spot-peer")]
BOUGHT: list[AnyCommand] = [*trading_floor(), decision(bet())]  # on March 2nd


def moved(**times: str) -> AnyCommand:
    """Other times of the question that is traded."""
    return rescheduling(next(each.question for each in BOUGHT if isinstance(each, OpenQuestion)), **times)


REFUSED: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("malformed", "closes_at", [RAIN], rescheduling(opens_at=None)),
    ("unknown_question", "question", [], rescheduling()),
    ("question_resolved", "question", [RAIN, resolution(at=day(12))], rescheduling()),
    ("question_resolved", "question", [RAIN, annulment()], rescheduling()),
    ("wrong_order_of_instants", "closes_at", [RAIN], rescheduling(closes_at=OPENS)),
    ("wrong_order_of_instants", "closes_at", [RAIN], rescheduling(closes_at="2126-03-12T00:00:00Z")),
    ("wrong_order_of_instants", "opens_at", [RAIN], rescheduling(opens_at=CLOSES)),
    ("wrong_order_of_instants", "opens_at", [RAIN, closing(at=day(15))], rescheduling(opens_at=day(15))),
    ("wrong_order_of_instants", "reveals_at", [SHOWN], rescheduling(closes_at=day(11))),
    ("wrong_order_of_instants", "reveals_at", [SHOWN], rescheduling(opens_at=REVEALS)),
    ("wrong_order_of_instants", "reveals_at", [RAIN], rescheduling(reveals_at=LATER)),
    (
        "wrong_order_of_instants",
        "opens_at",
        [*IN_CUP, entry(spot_at=day(11))],
        rescheduling(opens_at="2026-03-11T00:00:00.000001Z"),
    ),
    (
        "wrong_order_of_instants",
        "opens_at",
        [*IN_CUP, entry(spots=(Spot(at=day(11)), Spot(at=day(15))))],
        rescheduling(opens_at="2026-03-11T00:00:00.000001Z"),
    ),
    ("no_hidden_period", "reveals_at", [*IN_CUP, entry(hidden_coverage_weight="0.3")], rescheduling(closes_at=REVEALS)),
    ("no_hidden_period", "reveals_at", [*IN_CUP, entry(hidden_coverage_weight=0)], rescheduling(reveals_at=CLOSES)),
    ("out_of_order", "closes_at", BOUGHT, moved(closes_at=day(2))),
    ("out_of_order", "opens_at", BOUGHT, moved(opens_at=day(2))),
]


FUNCTIONS = ["reschedule_question"]


@pytest.mark.parametrize(
    ("first", "history", "command"),
    [
        ("malformed", [], rescheduling(opens_at=None)),
        ("unknown_question", [], rescheduling(closes_at=OPENS, opens_at=OPENS)),
        ("question_resolved", [RAIN, resolution(at=day(12))], rescheduling(closes_at=OPENS)),
        (
            "wrong_order_of_instants",
            [*IN_CUP, entry(spot_at=OPENS, hidden_coverage_weight=0)],
            rescheduling(opens_at=day(11), closes_at=REVEALS),
        ),
        ("wrong_order_of_instants", BOUGHT, moved(opens_at=day(2), closes_at=day(2))),
    ],
)
def test_the_earlier_of_two_broken_rules_is_reported(
    first: str, history: list[AnyCommand], command: AnyCommand
) -> None:
    """The rules apply in the order of the docstring's list."""
    outcome = given(*history).when(command).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == first


def test_the_event_has_the_times_that_were_given_and_no_others() -> None:
    """The other times stay as they are, so the event leaves them out."""
    given(RAIN).when(rescheduling(closes_at=LATER, reason="late")).records(
        events.QuestionRescheduled(at=micros(14), question="rain", closes_at=micros(23), reason="late")
    )
    given(RAIN).when(rescheduling(at=AFTER, opens_at=day(9), reveals_at=CLOSES)).records(
        events.QuestionRescheduled(at=micros(25), question="rain", opens_at=micros(9), reveals_at=micros(20))
    )


ACCEPTED: dict[str, list[AnyCommand]] = {
    "a close put off, and a forecast after the first one": [rescheduling(), forecast(at=day(22))],
    "a question that is closed by its time": [rescheduling(at=day(22)), forecast(at=day(22))],
    "a question that is closed early is open again": [
        closing(at=day(15)),
        rescheduling(closes_at=CLOSES),
        forecast(at=day(16)),
    ],
    "an early close after a new close": [rescheduling(), closing(at=day(21))],
    "a withdrawal after the first close": [forecast(), rescheduling(), withdrawal(at=day(21))],
    "a close set back to before forecasts that are recorded": [forecast(at=day(18)), rescheduling(closes_at=day(12))],
    "a revoked question": [resolution(at=day(15)), revocation(), rescheduling()],
    "an opening put off to after forecasts": [forecast(at=day(11)), rescheduling(opens_at=day(12))],
    "a spot up to the new close": [contest(rules="spot-peer"), rescheduling(), entry(spot_at=LATER)],
    "the same times again": [rescheduling(opens_at=OPENS, closes_at=CLOSES)],
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_other_times_hold_for_what_comes_after_them(name: str) -> None:
    """Nothing is refused: forecasts, withdrawals, early closes and spots are measured by the times in force."""
    *history, last = ACCEPTED[name]
    assert not isinstance(given(RAIN, *history).when(last).outcome, Refused)


@pytest.mark.parametrize(
    ("history", "command"),
    [
        ([rescheduling(closes_at=day(12))], forecast(at=day(12))),
        ([closing(at=day(15)), rescheduling(opens_at=day(9))], forecast(at=day(16))),
        ([rescheduling(), closing(at=day(21))], forecast(at=day(21))),
    ],
    ids=["after a close set back", "an early close stays if no close is given", "closed early after a new close"],
)
def test_a_question_is_closed_from_the_close_in_force(history: list[AnyCommand], command: AnyCommand) -> None:
    """Forecasts at that instant or later are refused."""
    given(RAIN, *history).when(command).refuses("question_closed", "at")


def test_an_answer_is_known_by_the_close_in_force() -> None:
    """Without known_at it is the earlier of `at` and the close, as Metaculus has it, before or after the close."""
    for at, known in ((LATER, LATER), (AFTER, LATER), (day(12), day(12))):
        recorded = oracle.attempted([RAIN, rescheduling(), resolution(at=at)])[0]
        [answer] = [each.event for each in recorded if isinstance(each.event, events.QuestionResolved)]
        assert answer.known_at == micros(int(known[8:10]))


def scores(*asked: AnyCommand) -> dict[tuple[str, str], str]:
    """The coverage of each participant in each contest."""
    table = oracle.projected(*asked).table("scores")
    return {(row["contest"], row["participant"]): row["coverage"] for row in table.rows()}


def test_a_finalized_board_keeps_the_times_that_it_was_made_with() -> None:
    """The cup has 10 days, of which Ada's forecast stood on 8; the league has 16, of which it stood on 14."""
    asked: list[AnyCommand] = [RAIN, contest(rules="baseline"), contest("league", rules="baseline")]
    asked += [entry(), entry("league"), forecast(at=day(12)), resolution(at=AFTER), finalization()]
    asked += [revocation(), rescheduling(closes_at=day(26)), resolution(at=day(27))]
    assert scores(*asked) == {("cup", "ada"): "0.800000000", ("league", "ada"): "0.875000000"}


def test_a_default_spot_follows_the_close() -> None:
    """Of a question without a spot, the close in force counts: Ada's later forecast stands at it, not the first."""
    asked: list[AnyCommand] = [RAIN, contest(rules="spot-baseline"), entry(), forecast(at=day(12), probability="0.4")]
    asked += [rescheduling(), forecast(at=day(21), probability="0.8"), resolution(at=AFTER)]
    [row] = oracle.projected(*asked).table("scores").rows()
    assert row["score"] == "67.807190511"  # 100 (log2 0.8 + 1)


def test_a_spot_after_a_close_set_back_counts_at_the_close() -> None:
    """As after an early close: the forecast that stands last is scored, and a later one is not."""
    asked: list[AnyCommand] = [RAIN, contest(rules="spot-baseline"), entry(spot_at=day(18))]
    asked += [forecast(at=day(12), probability="0.8"), forecast(at=day(16), probability="0.4")]
    [row] = oracle.projected(*asked, rescheduling(closes_at=day(15)), resolution(at=AFTER)).table("scores").rows()
    assert (row["score"], row["coverage"]) == ("67.807190511", "1.000000000")
