"""Tests of other ids of participants: the recorded event, what may follow, and the refusals."""

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.batching.writer_state import WriterState
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import oracle
from tests.support.given import (
    bet,
    cash_out,
    contest,
    day,
    decision,
    enrolment,
    exclusion,
    finalization,
    forecast,
    given,
    micros,
    opened,
    quote,
    remembered,
    renaming,
    replied,
    resolution,
    restatement,
    revocation,
    sale,
    sold,
    traded,
    trading_floor,
    withdrawal,
)

ADA: list[AnyCommand] = [opened(), forecast(at=day(12))]
BOTH = [*ADA, forecast(participant="bo", at=day(14))]
REFUSED: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("participant_renamed", "participant", [*ADA, renaming()], renaming()),
    ("participant_renamed", "participant", [*ADA, renaming()], renaming(to="ada")),
    ("participant_renamed", "participant", [*ADA, renaming(), renaming("bo", "cy")], renaming("bo", "ada")),
    ("participant_renamed", "to", [*BOTH, renaming(to="dan")], renaming("bo", "ada")),
    ("participant_renamed", "to", [opened(), *BOTH[1:], renaming(to="dan")], renaming("zoe", "ada")),
    ("unknown_participant", "participant", ADA, renaming("zoe", "bo")),
    ("unknown_participant", "participant", ADA, renaming("zoe", "zoe")),
    ("unknown_participant", "participant", ADA, renaming("zoe", "ada")),
    ("same_participant", "to", ADA, renaming("ada", "ada")),
    ("same_participant", "to", [*ADA, renaming()], renaming("bo", "bo")),
    ("account_keeps_id", "participant", trading_floor("ada", "bo"), renaming()),
    ("account_keeps_id", "participant", [*trading_floor("al", "bo"), renaming("al", "ada")], renaming()),
]
FUNCTIONS = ["rename_participant"]


def test_one_event_is_recorded() -> None:
    """Of a participant who forecast, or was only enrolled or excluded, or who is somebody else besides."""
    event = events.ParticipantRenamed(at=micros(16), participant="ada", to="bo", reason="one person")
    for history in (ADA, BOTH, [contest(), enrolment()], [contest(), exclusion()]):
        given(*history).when(renaming()).records(event)


UNDER_THE_OLD_ID: list[AnyCommand] = [
    forecast(at=day(15)),
    withdrawal(at=day(15)),
    restatement(),
    enrolment(),
    enrolment(participant="cy", entrant="ada"),
    exclusion(),
    decision(),
    forecast("no such question"),
]


@pytest.mark.parametrize("command", UNDER_THE_OLD_ID, ids=lambda command: type(command).__name__)
def test_a_command_under_the_old_id_is_refused_and_told_the_new_one(command: AnyCommand) -> None:
    """Before anything else is checked; after two renames it is told the last."""
    history: list[AnyCommand] = [*ADA, contest(), renaming(to="al"), renaming("al", "bo")]
    then = given(*history).when(command)
    then.refuses("participant_renamed", "entrant" if getattr(command, "entrant", None) else "participant")
    assert "'ada' is 'bo' now" in str(then.outcome)


def test_a_retry_of_an_old_command_returns_what_was_recorded() -> None:
    """By its id; the same content under another id is refused."""
    said = oracle.with_ids([*ADA, renaming()])
    with Ledger.open(":memory:") as ledger:
        ledger.handle_many(said)
        assert [ledger.handle(each) for each in said] == [
            Receipt(f"c{place}", place + 1, place + 1, duplicate=True) for place in range(3)
        ]
        with pytest.raises(Refused, match="'ada' is 'bo' now"):
            ledger.handle(said[1], "another")


ACCEPTED: dict[str, list[AnyCommand]] = {
    "back": [*ADA, renaming(), renaming("bo", "ada"), forecast(at=day(13))],
    "back after a merge": [*BOTH, renaming(), renaming("bo", "ada"), forecast(at=day(14))],
    "on and back to the first": [*ADA, renaming(), renaming("bo", "cy"), renaming("cy", "ada"), withdrawal()],
    "a withdrawal of what was said before": [*ADA, renaming(), withdrawal(participant="bo")],
    "one of what the other said": [*BOTH, renaming(), withdrawal(participant="bo", at=day(14))],
    "a restatement as nothing": [*ADA, renaming(), restatement(participant="bo")],
    "an early forecast after it": [*BOTH, renaming(), restatement(participant="bo"), forecast(participant="bo")],
    "a merge with an account": [*trading_floor("bo"), forecast(at=day(2)), renaming()],
    "whose account is of a finalized contest, as is that of the other": [
        *trading_floor("ada", "bo"),
        decision(action="HOLD"),
        decision(action="HOLD", participant="bo"),
        finalization("week"),
        renaming(),
    ],
    "with an account, and back": [*trading_floor("ada"), renaming(), renaming("bo", "ada"), renaming()],
    "who is excluded, with an account of the other": [*trading_floor("bo"), exclusion("week", "ada"), renaming()],
    "whose account is of a finalized contest": [
        *trading_floor("ada"),
        decision(action="HOLD"),
        finalization("week"),
        renaming(),
    ],
    "after the answer": [*ADA, resolution(), renaming(), revocation(), withdrawal(participant="bo")],
}


@pytest.mark.parametrize("said", ACCEPTED.values(), ids=ACCEPTED)
def test_what_may_follow(said: list[AnyCommand]) -> None:
    """The participant goes on where the last of its forecasts under any id stands."""
    assert oracle.history(*said)


REFUSED_AFTER: dict[str, tuple[str, list[AnyCommand]]] = {
    "a forecast before the last under the old id": ("out_of_order", [*ADA, renaming(), forecast(participant="bo")]),
    "a forecast before the last of the other": ("out_of_order", [*BOTH, renaming("bo", "ada"), forecast(at=day(13))]),
    "a withdrawal after one under the old id": (
        "nothing_standing",
        [*ADA, withdrawal(), renaming(), withdrawal(participant="bo", at=day(14))],
    ),
    "a withdrawal after a later one of the other": (
        "nothing_standing",
        [*BOTH, withdrawal(participant="bo", at=day(15)), renaming(), withdrawal(participant="bo", at=day(16))],
    ),
    "a second restatement as nothing": (
        "nothing_standing",
        [*BOTH, renaming(), restatement(participant="bo"), restatement(participant="bo")],
    ),
}


@pytest.mark.parametrize(("code", "said"), REFUSED_AFTER.values(), ids=REFUSED_AFTER)
def test_what_may_not_follow(code: str, said: list[AnyCommand]) -> None:
    """Forecasts and withdrawals of all ids are of one participant."""
    outcome = given(*said[:-1]).when(said[-1]).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == code


def test_forecasts_in_one_batch_with_a_rename_are_decided_like_alone() -> None:
    """Many forecasts take a quick way, which must see the ids of the batch before them."""
    said = [*BOTH, renaming(), forecast(at=day(17)), forecast(participant="bo", at=day(13)), forecast(participant="bo")]
    late = structs.replace(forecast(participant="bo", at=day(14)), id=None)
    recorded, refused = oracle.attempted([*said, late])
    assert [each.code for each in refused] == ["participant_renamed", "out_of_order", "out_of_order"]
    assert len(recorded) == 5


def test_a_new_id_is_one_that_can_be_seen() -> None:
    """An id that is brought in by a rename is checked like that of a new participant."""
    given(*ADA).when(renaming(to="b\ufe0fo")).refuses("id_not_visible", "to")
    given(*ADA).when(renaming(to="")).refuses("id_empty", "to")


OPEN = RuleSet(name="open", trading=Trading(recapitalisation=True, period_days=0, stale_after_seconds=10**9))
BOUGHT: list[AnyCommand] = [*trading_floor("ada", rules=OPEN), decision(bet())]  # 1,250 shares at 0.40
ATTEMPTED: list[AnyCommand] = [*trading_floor("ada", rules=OPEN), replied("?")]
REFUSED_OF_ACCOUNTS: dict[str, tuple[str, str, list[AnyCommand], AnyCommand]] = {
    "a second account": ("enrolled_already", "participant", BOUGHT, enrolment("week", "bo")),
    "a decision that is taken": ("decision_taken", "period", BOUGHT, decision(participant="bo")),
    "an attempt that was made": ("wrong_attempt", "attempt", ATTEMPTED, decision(participant="bo")),
    "more cash than there is": ("not_enough_cash", "amount", BOUGHT, cash_out("9500.000001", participant="bo")),
}


@pytest.mark.parametrize(("code", "field", "said", "command"), REFUSED_OF_ACCOUNTS.values(), ids=REFUSED_OF_ACCOUNTS)
def test_an_account_is_not_a_new_one_under_a_new_id(
    code: str, field: str, said: list[AnyCommand], command: AnyCommand
) -> None:
    """The starting cash is granted once, and what was decided is decided; also after two renames."""
    given(*said, renaming()).when(command).refuses(code, field)
    given(*said, renaming(to="al"), renaming("al", "bo")).when(command).refuses(code, field)


def test_an_account_goes_on_under_the_new_id() -> None:
    """Cash, position 1 and the attempts: 9,500 can be taken out; half of 1,250 shares at 0.40 bring 250; 1 is due for
    each share in the end.
    """
    then = [*BOUGHT, renaming()]
    assert isinstance(given(*then).when(cash_out(9_500, participant="bo")).outcome, list)
    assert isinstance(given(*ATTEMPTED, renaming()).when(decision(participant="bo", attempt=2)).outcome, list)
    outcome = given(*then).when(decision(sale(50), participant="bo", period=2)).outcome
    assert isinstance(outcome, list)
    leg = outcome[-1]
    assert isinstance(leg, events.SharesSold)
    assert (leg.participant, leg.position, leg.shares, leg.proceeds) == ("bo", 1, 625 * 10**6, 250 * 10**6)
    outcome = given(*then).when(resolution(at=day(8))).outcome
    assert isinstance(outcome, list)
    settled = outcome[-1]
    assert isinstance(settled, events.PositionSettled)
    assert (settled.participant, settled.position, settled.proceeds) == ("bo", 1, 1_250 * 10**6)


def test_shares_that_were_bought_elsewhere_are_sold_under_the_new_id() -> None:
    """Of 100 shares in position 1, all can be sold, and not one more."""
    rules = structs.replace(OPEN, trading=Trading(recorded_trades=True))
    then = given(*trading_floor("ada", rules=rules), traded(), renaming())
    then.when(sold(101, participant="bo")).refuses("not_enough_shares", "shares")
    outcome = then.when(sold(participant="bo")).outcome
    assert isinstance(outcome, list)
    trade = outcome[0]
    assert isinstance(trade, events.TradeRecorded)
    assert (trade.participant, trade.position, trade.cost) == ("bo", 1, -40 * 10**6)


def test_a_decision_that_claims_no_instant_is_stamped_after_those_under_the_old_id() -> None:
    """Ada's claims April 2, and the ledger's clock is at March 31; an earlier instant would be out of order."""
    ahead = decision(at="2026-04-02T00:00:00Z")
    outcome = (
        given(*trading_floor("ada", "cy", rules=OPEN), ahead, renaming())
        .when(decision(participant="bo", period=2, at=None))
        .outcome
    )
    assert isinstance(outcome, list)
    assert outcome[-1].at == micros(33)


def test_the_shares_of_a_quote_that_an_account_has_taken_stay_taken() -> None:
    """Of 1,000 shares to be had, 750 are taken before the rename; of 500 more, 250 are left."""
    rules = structs.replace(OPEN, trading=Trading(period_days=0, cohorts="none", depth="partial"))
    said = [*trading_floor("ada", rules=rules), quote(ask_sizes={"yes": 1_000}), decision(bet(300)), renaming()]
    outcome = given(*said).when(decision(bet(200), participant="bo", period=2)).outcome
    assert isinstance(outcome, list)
    bought = outcome[-1]
    assert isinstance(bought, events.SharesBought)
    assert bought.shares == 250 * 10**6


def test_a_batch_that_is_refused_leaves_accounts_where_they_are() -> None:
    """The rename in it is undone: the account is ada's, who goes on, and bo has none."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle_many(oracle.with_ids(BOUGHT))
        before = remembered(ledger)
        batch = [
            structs.replace(each, id=f"b{place}") for place, each in enumerate([renaming(), renaming("zoe", "al")])
        ]
        ledger.handle_many(batch, atomic=True)
        assert remembered(ledger) == before
        ledger.handle(cash_out(9_500), "more")
        with pytest.raises(Refused, match="not_enrolled"):
            ledger.handle(cash_out(1, participant="bo"), "of another")


def test_a_log_in_which_two_accounts_become_one_is_damaged() -> None:
    """Neither the writer nor a replay adds them up, and neither opens an account twice under two ids."""
    renamed = events.ParticipantRenamed(at=micros(16), participant="ada", to="bo", reason="")
    recorded = oracle.followed(oracle.history(*trading_floor("ada", "bo")), renamed)
    with pytest.raises(Corrupt, match="'ada' and 'bo' each have an account in 'week'"):
        WriterState().apply(recorded)
    with pytest.raises(Corrupt, match="one account of 'ada' and 'bo' in contest 'week'"):
        oracle.facts_in(recorded)
    granted = events.CashGranted(at=micros(16), contest="week", participant="bo", amount=1)
    with pytest.raises(Corrupt, match="opens"):
        WriterState().apply(oracle.followed(oracle.history(*trading_floor("ada"), renaming()), granted))
