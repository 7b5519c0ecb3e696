"""Every command: what may be asked for, at the edge, in decimals and RFC 3339 instants.

One command a line of JSON: `id`, `type`, `at`, then the fields of its type.
"""

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, json

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import hint
from forecast_ledger.ledger.core.values import Instant, Number
from forecast_ledger.ledger.model.events import Attestation, Kind, Policy
from forecast_ledger.ledger.model.rules import Level, RuleSet

if TYPE_CHECKING:  # what a caller may pass
    Rules = str | RuleSet | dict[str, Any]
else:  # what a decoder makes of JSON
    Rules = str | RuleSet

BINS = 200  # of a range that says neither bins nor levels
DECIMALS = 6  # of the unit in which quantiles are counted, where a range with levels does not say


class _Kind(Struct):
    """As much of a command as tells its kind."""

    type: str = ""


class Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", gc=False):
    """`id` makes a retry harmless; `at` is the instant the command claims."""

    id: str = ""
    at: Instant


class Range(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A numeric question's range; logarithmic where zero_point is given.

    Asked by bins, 200 unless given, or by quantiles at these levels, counted to so many decimals, 6 unless given; the
    level 0.5 alone asks for a point.
    """

    lower: Number
    upper: Number
    bins: int | None = None
    open_lower: bool = False
    open_upper: bool = False
    zero_point: Number | None = None
    levels: tuple[Number, ...] | None = None
    decimals: int | None = None


class OpenQuestion(Command, frozen=True, kw_only=True, tag="open_question"):
    """Opens a question."""

    question: str
    kind: Kind
    title: str = ""
    outcomes: tuple[str, ...] | None = None
    range: Range | None = None
    opens_at: Instant
    closes_at: Instant
    reveals_at: Instant | None = None


class SubmitForecast(Command, frozen=True, kw_only=True, tag="submit_forecast"):
    """Makes or replaces a participant's forecast: exactly one of probability, probabilities, cdf, quantiles."""

    question: str
    participant: str
    probability: Number | None = None
    probabilities: dict[str, Number] | None = None
    cdf: tuple[Number, ...] | None = None
    quantiles: tuple[Number, ...] | None = None
    attestation: Attestation | None = None


class WithdrawForecast(Command, frozen=True, kw_only=True, tag="withdraw_forecast"):
    """Withdraws a participant's standing forecast."""

    question: str
    participant: str


class CloseQuestion(Command, frozen=True, kw_only=True, tag="close_question"):
    """Closes a question early, at `at`."""

    question: str


class ResolveQuestion(Command, frozen=True, kw_only=True, tag="resolve_question"):
    """Records the answer; known_at defaults to the earlier of `at` and the scheduled close.

    payouts: what a share of each outcome pays, 0 to 1, where no one outcome came true.
    """

    question: str
    outcome: str | None = None
    value: Number | None = None
    known_at: Instant | None = None
    payouts: dict[str, Number] | None = None


class AnnulQuestion(Command, frozen=True, kw_only=True, tag="annul_question"):
    """Makes a question count nowhere."""

    question: str
    reason: str


class CancelMarket(Command, frozen=True, kw_only=True, tag="cancel_market"):
    """Annuls a question and says what becomes of the stakes on it."""

    question: str
    policy: Policy = "refund_cost"
    reason: str


class RevokeResolution(Command, frozen=True, kw_only=True, tag="revoke_resolution"):
    """Undoes a resolution, or an annulment, which leaves the resolution before it."""

    question: str
    reason: str


class OpenContest(Command, frozen=True, kw_only=True, tag="open_contest"):
    """Opens a contest under a preset or a whole rule set, which in Python may be a dict."""

    contest: str
    rules: Rules
    pool: Number | None = None
    currency: str = ""
    payable_unit: Number = Decimal("0.01")
    title: str = ""
    starts_at: Instant | None = None
    series: str | None = None


class AddQuestion(Command, frozen=True, kw_only=True, tag="add_question"):
    """Puts a question into a contest."""

    contest: str
    question: str
    weight: Number = Decimal(1)
    hidden_coverage_weight: Number | None = None
    spot_at: Instant | None = None


class EnrolParticipant(Command, frozen=True, kw_only=True, tag="enrol_participant"):
    """Says whose submission a participant is, if not its own, and whether it is a bot; in a contest in which one
    trades it grants the starting cash.
    """

    contest: str
    participant: str
    entrant: str | None = None
    bot: bool = False
    family: str | None = None
    release: str | None = None


class ExcludeParticipant(Command, frozen=True, kw_only=True, tag="exclude_participant"):
    """Leaves a participant without prize, without rank, or off the contest's board."""

    contest: str
    participant: str
    level: Level
    reason: str


class FinalizeContest(Command, frozen=True, kw_only=True, tag="finalize_contest"):
    """Freezes the contest's board."""

    contest: str


class PayPrizes(Command, frozen=True, kw_only=True, tag="pay_prizes"):
    """Pays the winners of a finalized contest what its sealed board says, each once."""

    contest: str


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The price of a share of each outcome: of a binary question of `yes` alone."""

    question: str
    prices: dict[str, Number]


class QuotePrices(Command, frozen=True, kw_only=True, tag="quote"):
    """What a source quotes for one question, or for many."""

    question: str | None = None
    prices: dict[str, Number] | None = None
    quotes: tuple[Prices, ...] | None = None
    source: str
    quoted_at: Instant


class Bet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Money on one outcome of a question."""

    market_id: str
    side: str
    amount: Number


class Sale(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A percentage of the shares that a position now has."""

    position_id: str | int
    percentage: Number


class RecordDecision(Command, frozen=True, kw_only=True, tag="record_decision"):
    """What a participant decides for a period: said in fields, or in the text of a response alone."""

    contest: str
    participant: str
    period: int
    attempt: int = 1
    action: str | None = None
    bets: tuple[Bet, ...] | None = None
    sells: tuple[Sale, ...] | None = None
    reasoning: str | None = None
    prompt: str | None = None
    response: str | None = None


class DepositCash(Command, frozen=True, kw_only=True, tag="deposit_cash"):
    """Adds cash from outside."""

    contest: str
    participant: str
    amount: Number
    reason: str


class WithdrawCash(Command, frozen=True, kw_only=True, tag="withdraw_cash"):
    """Takes cash out."""

    contest: str
    participant: str
    amount: Number
    reason: str


AnyCommand = (
    OpenQuestion
    | SubmitForecast
    | WithdrawForecast
    | CloseQuestion
    | ResolveQuestion
    | AnnulQuestion
    | CancelMarket
    | RevokeResolution
    | OpenContest
    | AddQuestion
    | EnrolParticipant
    | ExcludeParticipant
    | FinalizeContest
    | PayPrizes
    | QuotePrices
    | RecordDecision
    | DepositCash
    | WithdrawCash
)
_decoder = json.Decoder(AnyCommand, float_hook=Decimal)
_rule_sets = json.Decoder(RuleSet)
_kinds = json.Decoder(_Kind)


def read(line: bytes | str) -> AnyCommand:
    """The command on one line of JSON.

    Refuses: malformed, with the path of the field.

    >>> read('{"id": "c1", "type": "close_question", "at": "2026-03-01T00:00:00Z", "question": "q1"}').question
    'q1'
    """
    try:
        command: AnyCommand = _decoder.decode(line)
    except (msgspec.DecodeError, InvalidOperation, RecursionError, UnicodeError) as error:
        raise malformed(error, "", _kind(line)) from None
    return command


def rule_set(said: dict[str, Any], name: str) -> RuleSet:
    """The rule set that a dict says, as an object of JSON would. Refuses: malformed, with the path of the field."""
    try:
        return _rule_sets.decode(json.encode(said, order="deterministic"))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise malformed(error, name) from None


def malformed(error: Exception, name: str, kind: str = "") -> Refused:
    """A refusal that names the field as a path from the command, or from the field `name` of it; where that is one of
    a few values or fields, it lists them, the nearest first.

    kind: of the command, where its own fields may be at fault.
    """
    message, _, path = str(error).partition(" - at `$")
    field = f"{name}{path.rstrip('`')}".lstrip(".")
    return Refused("malformed", field or "line", None, message + hint(AnyCommand, message, field, kind))


def _kind(line: bytes | str) -> str:
    """What kind of command a line says that it is; empty where it does not."""
    try:
        return _kinds.decode(line).type
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return ""
