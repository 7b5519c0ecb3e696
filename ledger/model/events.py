"""Every event: a fact that is recorded, in integers and ids. The tag is its stored name and never changes.

Instants are µs since the epoch, probabilities and prices 1e-9, cumulative probabilities 1e-10, money, shares and
weights 1e-6, percentages 1e-6 of a percent. `forecast-ledger help events` describes each field.

>>> from forecast_ledger import events
>>> events.TAGS[events.ForecastMade]
'forecast_made.v1'
"""

from typing import Literal, get_args

from msgspec import Struct

from forecast_ledger.ledger.model import forms
from forecast_ledger.ledger.model.mismatch import event_json
from forecast_ledger.ledger.model.rules import Level, RuleSet

Attestation = forms.Attestation
NumericRange = forms.NumericRange
StatedPoints = forms.StatedPoints
StatedShares = forms.StatedShares
QuestionKind = Literal["binary", "multiple_choice", "numeric", "date", "discrete"]
RANGED = frozenset({"numeric", "date", "discrete"})  # the kinds of questions with a range
CancelPolicy = Literal["refund_cost", "void_trades", "refund_stake"]
Action = Literal["BET", "SELL", "HOLD"]
TradeAction = Literal["buy", "sell"]


class Event(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The base of every event. `at` is the instant that the command gave, or that the ledger stamped."""

    at: int

    def to_json(self) -> str:
        """Return the event on one line of JSON, with decimals and instants as commands have them; see `event_json`.

        >>> CashGranted(at=0, contest="spring", participant="ada", amount=2_500_000).to_json()
        '{"type":"cash_granted.v1","at":"1970-01-01T00:00:00Z","contest":"spring","participant":"ada","amount":"2.5"}'
        """
        return event_json(self)


class QuestionOpened(Event, frozen=True, kw_only=True, tag="question_opened.v1"):
    """Starts a question."""

    question: str
    kind: QuestionKind
    title: str = ""
    outcomes: tuple[str, ...] = ()
    range: NumericRange | None = None
    opens_at: int
    closes_at: int
    reveals_at: int | None = None
    group: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    url: str = ""
    source: str = ""
    ordered: bool | None = None


class ForecastMade(Event, frozen=True, kw_only=True, tag="forecast_made.v1"):
    """Replaces the participant's standing forecast: one distribution, in the order of the question's outcomes.

    It ends by itself at `until`, unless it was replaced or withdrawn before. `points` are what its cdf was made from,
    and `normalized` the shares that its probabilities were made from.
    """

    question: str
    participant: str
    probabilities: tuple[int, ...] = ()
    cdf: tuple[int, ...] = ()
    quantiles: tuple[int, ...] = ()
    attestation: Attestation | None = None
    until: int | None = None
    samples: tuple[int, ...] = ()
    points: StatedPoints | None = None
    normalized: StatedShares | None = None


class ForecastWithdrawn(Event, frozen=True, kw_only=True, tag="forecast_withdrawn.v1"):
    """Ends the participant's standing forecast."""

    question: str
    participant: str


class ForecastsRetracted(Event, frozen=True, kw_only=True, tag="forecasts_retracted.v1"):
    """Retracts all that the participant forecast on the question before; the forecasts that follow count instead.

    restated: how many ForecastMade follow from the same command.
    """

    question: str
    participant: str
    restated: int = 0
    reason: str


class ParticipantRenamed(Event, frozen=True, kw_only=True, tag="participant_renamed.v1"):
    """Lets all that is recorded of a participant count as recorded under another id, `to`, which may be in use."""

    participant: str
    to: str
    reason: str


class VersionRequired(Event, frozen=True, kw_only=True, tag="version_required.v1"):
    """States the least version that may write to the ledger, in place of an earlier one."""

    version: str


class QuestionClosed(Event, frozen=True, kw_only=True, tag="question_closed.v1"):
    """Closes a question before its scheduled close; standing forecasts end."""

    question: str


class QuestionAmended(Event, frozen=True, kw_only=True, tag="question_amended.v1"):
    """Changes what describes a question, or its weight in a contest; what is null stays."""

    question: str
    title: str | None = None
    tags: tuple[str, ...] | None = None
    url: str | None = None
    source: str | None = None
    contest: str = ""
    weight: int | None = None
    reason: str = ""


class QuestionRescheduled(Event, frozen=True, kw_only=True, tag="question_rescheduled.v1"):
    """Gives a question other times; those that are null stay. A new close also ends an early close."""

    question: str
    opens_at: int | None = None
    closes_at: int | None = None
    reveals_at: int | None = None
    reason: str = ""


class OutcomesChanged(Event, frozen=True, kw_only=True, tag="outcomes_changed.v1"):
    """Adds outcomes to a question, after all that it ever had, or removes some. Later forecasts give what it has."""

    question: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    grace_ends_at: int | None = None


class QuestionResolved(Event, frozen=True, kw_only=True, tag="question_resolved.v1"):
    """Records the answer of a question."""

    question: str
    outcome: int
    value: str = ""
    known_at: int
    payout_unit: int = 0
    payouts: tuple[int, ...] = ()


class QuestionAnnulled(Event, frozen=True, kw_only=True, tag="question_annulled.v1"):
    """Removes the question from every score."""

    question: str
    reason: str
    policy: CancelPolicy = "refund_cost"


class ResolutionRevoked(Event, frozen=True, kw_only=True, tag="resolution_revoked.v1"):
    """Undoes the resolution or annulment; the question can be resolved again."""

    question: str
    reason: str


class ContestOpened(Event, frozen=True, kw_only=True, tag="contest_opened.v1"):
    """Starts a contest under the rule set it carries."""

    contest: str
    title: str = ""
    rules: RuleSet
    pool: int = 0
    currency: str = ""
    payable_unit: int
    starts_at: int | None = None
    series: str = ""


class Spot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One of several instants at which a question counts, and how many times it counts."""

    at: int
    weight: int = 1


class QuestionAdded(Event, frozen=True, kw_only=True, tag="question_added.v1"):
    """Puts a question into a contest."""

    contest: str
    question: str
    weight: int
    hidden_coverage_weight: int | None = None
    spot_at: int | None = None
    spots: tuple[Spot, ...] = ()


class ParticipantEnrolled(Event, frozen=True, kw_only=True, tag="participant_enrolled.v1"):
    """Enrols a participant: who entered it and whether it is a bot; the last enrolment counts."""

    contest: str
    participant: str
    entrant: str = ""
    bot: bool = False
    family: str = ""
    release: str = ""


class ParticipantExcluded(Event, frozen=True, kw_only=True, tag="participant_excluded.v1"):
    """Excludes a participant from prizes, from ranks, or from the contest's board; the last exclusion counts."""

    contest: str
    participant: str
    level: Level
    reason: str


class ContestFinalized(Event, frozen=True, kw_only=True, tag="contest_finalized.v1"):
    """Freezes the contest's board at this log position."""

    contest: str


class PrizePaid(Event, frozen=True, kw_only=True, tag="prize_paid.v1"):
    """Pays one winner's prize, in 1e-6 of the contest's currency."""

    contest: str
    participant: str
    amount: int


class Quote(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The price, bid and ask of a share of each outcome in their order, and the sizes of both; None where missing."""

    question: str
    prices: tuple[int | None, ...]
    bids: tuple[int | None, ...] = ()
    asks: tuple[int | None, ...] = ()
    bid_sizes: tuple[int | None, ...] = ()
    ask_sizes: tuple[int | None, ...] = ()


class RefusedQuote(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Prices of a question that are not recorded, because they are bad.

    place: of the question among those of the command, from 0. code, field: of the refusal. given: its prices, as JSON.
    """

    place: int
    question: str
    code: str
    field: str
    given: str


class PricesQuoted(Event, frozen=True, kw_only=True, tag="prices_quoted.v1"):
    """Records the prices that a source quoted at one instant; each question occurs once, or is among those refused."""

    source: str
    quoted_at: int
    refused: tuple[RefusedQuote, ...] = ()
    quotes: tuple[Quote, ...]


class AccountEvent(Event, frozen=True, kw_only=True):
    """The base of events about one participant's cash and positions in a contest."""

    contest: str
    participant: str


class LegEvent(AccountEvent, frozen=True, kw_only=True):
    """The base of events about one leg of a decision; legs are numbered from 1."""

    period: int
    attempt: int
    leg: int


class PositionEvent(AccountEvent, frozen=True, kw_only=True):
    """The base of events about one position. against: its shares pay if the outcome does not come true."""

    question: str
    outcome: int
    against: bool = False
    position: int


class CashGranted(AccountEvent, frozen=True, kw_only=True, tag="cash_granted.v1"):
    """Grants a participant its starting cash."""

    amount: int


class CashDeposited(AccountEvent, frozen=True, kw_only=True, tag="cash_deposited.v1"):
    """Adds cash from outside to an account."""

    amount: int
    reason: str


class CashWithdrawn(AccountEvent, frozen=True, kw_only=True, tag="cash_withdrawn.v1"):
    """Takes cash out of an account."""

    amount: int
    reason: str


class TextKept(Event, frozen=True, kw_only=True, tag="text_kept.v1"):
    """Stores a prompt or a reply, each text once."""

    digest: str
    text: str


class Bet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A bet as requested; question and side are as written."""

    question: str
    side: str
    amount: int


class Sale(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A sale as requested; position is as written."""

    position: str
    percentage: int


class ModelCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call of a model: what it used, cost and took, its settings, and the markets that it was shown."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: int | None = None
    latency_ms: int | None = None
    settings: dict[str, str] = {}
    shown: str = ""


class DecisionRecorded(AccountEvent, frozen=True, kw_only=True, tag="decision_recorded.v1"):
    """Records a participant's decision for a period; the events of its legs follow."""

    period: int
    attempt: int
    action: Action
    bets: tuple[Bet, ...] = ()
    sells: tuple[Sale, ...] = ()
    executed: int = 0
    reasoning: str
    prompt: str = ""
    response: str = ""
    call: ModelCall | None = None


class DecisionMalformed(AccountEvent, frozen=True, kw_only=True, tag="decision_malformed.v1"):
    """Records a reply that is not a decision, with its fault."""

    period: int
    attempt: int
    fault: str
    prompt: str = ""
    response: str
    call: ModelCall | None = None


class CallFailed(AccountEvent, frozen=True, kw_only=True, tag="call_failed.v1"):
    """Records a call of a model that brought no reply; it uses up no attempt."""

    period: int
    error: str
    prompt: str = ""
    call: ModelCall | None = None


class DecisionDefaulted(AccountEvent, frozen=True, kw_only=True, tag="decision_defaulted.v1"):
    """Records HOLD for a period in which no attempt was a decision."""

    period: int


class SharesBought(LegEvent, frozen=True, kw_only=True, tag="shares_bought.v1"):
    """Carries out a bet. requested: its amount, if the depth of the quote was enough for a part only."""

    question: str
    outcome: int
    against: bool = False
    position: int
    price: int
    quote: int
    cash: int
    amount: int
    shares: int
    confidence: int
    fee: int = 0
    requested: int = 0


class SharesSold(LegEvent, frozen=True, kw_only=True, tag="shares_sold.v1"):
    """Carries out a sale. requested: its shares, if the depth of the quote was enough for a part only."""

    question: str
    outcome: int
    against: bool = False
    position: int
    price: int
    quote: int
    shares: int
    cost: int
    proceeds: int
    fee: int = 0
    requested: int = 0


class LegRefused(LegEvent, frozen=True, kw_only=True, tag="leg_refused.v1"):
    """Refuses a leg, with the reason."""

    code: str


class TradeRecorded(PositionEvent, frozen=True, kw_only=True, tag="trade_recorded.v1"):
    """Records a trade that happened elsewhere, or its part of one outcome, if it is a trade of several.

    shares: bought, or below 0 sold. amount: paid or received, without the fee. cost: added to that of the position.
    parts: of how many outcomes the trade is; the events of the others follow that of the first.
    """

    shares: int
    amount: int
    cost: int
    fee: int = 0
    parts: int = 1


class PositionSettled(PositionEvent, frozen=True, kw_only=True, tag="position_settled.v1"):
    """Pays for the shares of an open position when the question is resolved."""

    shares: int
    cost: int
    payout_unit: int = 0
    payout: int
    proceeds: int


class PositionRefunded(PositionEvent, frozen=True, kw_only=True, tag="position_refunded.v1"):
    """Refunds the cost of an open position."""

    shares: int
    cost: int


class TradesVoided(PositionEvent, frozen=True, kw_only=True, tag="trades_voided.v1"):
    """Undoes the trades of a position: refunds what was paid for it, less what was received, and their fees.

    If only its stake is refunded, nothing is taken from an account that received more, and no fee is given back.
    """

    shares: int
    cost: int
    amount: int
    fee: int = 0


class SettlementReversed(PositionEvent, frozen=True, kw_only=True, tag="settlement_reversed.v1"):
    """Returns a position to its state before an earlier event."""

    reverses: int
    amount: int


AnyEvent = (
    QuestionOpened | ForecastMade | ForecastWithdrawn | ForecastsRetracted | ParticipantRenamed | QuestionClosed
    | QuestionAmended | QuestionRescheduled | OutcomesChanged | QuestionResolved | QuestionAnnulled | ResolutionRevoked
    | ContestOpened | QuestionAdded | ParticipantEnrolled | ParticipantExcluded | ContestFinalized | PrizePaid
    | PricesQuoted | CashGranted | CashDeposited | CashWithdrawn | TextKept
    | DecisionRecorded | DecisionMalformed | DecisionDefaulted | CallFailed | SharesBought | SharesSold | LegRefused
    | TradeRecorded | PositionSettled | PositionRefunded | TradesVoided | SettlementReversed | VersionRequired
)  # fmt: skip
TAGS: dict[type[Event], str] = {kind: str(kind.__struct_config__.tag) for kind in get_args(AnyEvent)}
