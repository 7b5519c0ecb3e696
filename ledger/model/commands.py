"""Every command: what may be asked for, at the edge, in decimals and RFC 3339 instants.

One command a line of JSON: `id`, `type`, `at`, then the fields of its type. `forecast-ledger help commands` says what
each field means.

>>> from forecast_ledger import commands
>>> commands.read('{"type": "close_question", "at": "2026-03-08T00:00:00Z", "question": "rain"}')
CloseQuestion(id='', at='2026-03-08T00:00:00Z', question='rain')
"""

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, json

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import hint
from forecast_ledger.ledger.model.events import Attestation, CancelPolicy, QuestionKind
from forecast_ledger.ledger.model.forms import (
    Bins,
    Cumulative,
    Decimals,
    Deposit,
    Id,
    Instant,
    LongText,
    Measure,
    Number,
    PayableUnit,
    Pool,
    Preset,
    Probability,
    QuantileLevel,
    Share,
    Text,
    Weight,
    Withdrawal,
)
from forecast_ledger.ledger.model.rules import Level, RuleSet

if TYPE_CHECKING:  # what a caller may pass
    Rules = str | RuleSet | dict[str, Any]
else:  # what a decoder makes of JSON
    Rules = Preset | RuleSet

DEFAULT_BINS = 200  # of a range that says neither bins nor levels
DEFAULT_DECIMALS = 6  # of the unit in which quantiles are counted, where a range with levels does not say


class _Kind(Struct):
    """As much of a command as tells its kind."""

    type: str = ""


class Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", gc=False):
    """What every command has."""

    id: Id = ""
    at: Instant


class Range(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A numeric question's range.

    A forecast gives the probability of each of its bins, or, if there are levels, the quantiles at these levels.
    """

    lower: Measure
    upper: Measure
    bins: Bins | None = None
    open_lower: bool = False
    open_upper: bool = False
    zero_point: Measure | None = None
    levels: tuple[QuantileLevel, ...] | None = None
    decimals: Decimals | None = None


class OpenQuestion(Command, frozen=True, kw_only=True, tag="open_question"):
    """Opens a question."""

    question: Id
    kind: QuestionKind
    title: Text = ""
    outcomes: tuple[Id, ...] | None = None
    range: Range | None = None
    opens_at: Instant
    closes_at: Instant
    reveals_at: Instant | None = None


class SubmitForecast(Command, frozen=True, kw_only=True, tag="submit_forecast"):
    """Makes a participant's forecast, or replaces it. Give one of probability, probabilities, cdf, quantiles.

    The forecast stands from `at`, or from the opening if `at` is earlier, until it is replaced or withdrawn or the
    question closes. Probabilities that miss one by at most 0.000001 are brought to exactly one: the largest, the first
    of equals, takes the difference.
    """

    question: Id
    participant: Id
    probability: Probability | None = None
    probabilities: dict[Id, Probability] | None = None
    cdf: tuple[Cumulative, ...] | None = None
    quantiles: tuple[Measure, ...] | None = None
    attestation: Attestation | None = None


class WithdrawForecast(Command, frozen=True, kw_only=True, tag="withdraw_forecast"):
    """Withdraws a participant's standing forecast."""

    question: Id
    participant: Id


class CloseQuestion(Command, frozen=True, kw_only=True, tag="close_question"):
    """Closes a question early, at `at`.

    That instant may be earlier than forecasts already recorded, which then count nowhere from the close on. It must be
    later than the last trade in the question.
    """

    question: Id


class ResolveQuestion(Command, frozen=True, kw_only=True, tag="resolve_question"):
    """Records the answer. Give one of outcome, value, payouts.

    A numeric answer on an inner edge, or up to 1e-10 of a bin above it, belongs to the bin below. Beyond an open end
    there is one more outcome; beyond a closed end the resolution is refused.
    """

    question: Id
    outcome: str | None = None
    value: Measure | None = None
    known_at: Instant | None = None
    payouts: dict[Id, Probability] | None = None


class AnnulQuestion(Command, frozen=True, kw_only=True, tag="annul_question"):
    """Takes a question out of every score, resolved or not; open positions get back what they cost."""

    question: Id
    reason: Text


class CancelMarket(Command, frozen=True, kw_only=True, tag="cancel_market"):
    """Annuls a question and says what becomes of the stakes on it."""

    question: Id
    policy: CancelPolicy = "refund_cost"
    reason: Text


class RevokeResolution(Command, frozen=True, kw_only=True, tag="revoke_resolution"):
    """Undoes a resolution or an annulment. Every table is then as if it had not been recorded.

    A replay as of an earlier log position still shows it. If a resolution stood before the annulment, it stands again.
    A contest that was finalized before keeps what its sealed position says, in every table that names the contest.
    """

    question: Id
    reason: Text


class OpenContest(Command, frozen=True, kw_only=True, tag="open_contest"):
    """Opens a contest."""

    contest: Id
    rules: Rules
    pool: Pool | None = None
    currency: Text = ""
    payable_unit: PayableUnit = Decimal("0.01")
    title: Text = ""
    starts_at: Instant | None = None
    series: Id | None = None


class AddQuestion(Command, frozen=True, kw_only=True, tag="add_question"):
    """Puts a question into a contest."""

    contest: Id
    question: Id
    weight: Weight = Decimal(1)
    hidden_coverage_weight: Share | None = None
    spot_at: Instant | None = None


class EnrolParticipant(Command, frozen=True, kw_only=True, tag="enrol_participant"):
    """Says whose submission a participant is, and whether it is a bot; where one trades, grants the starting cash.

    Without trading the last enrolment counts; where one trades, there is only one. Nobody has to be enrolled to
    forecast. Bots are ranked and paid like anybody, unless excluded; the rule set says whether they are members.
    """

    contest: Id
    participant: Id
    entrant: Id | None = None
    bot: bool = False
    family: Id | None = None
    release: Id | None = None


class ExcludeParticipant(Command, frozen=True, kw_only=True, tag="exclude_participant"):
    """Leaves a participant without prize, without rank, or off the contest's board; the last exclusion counts.

    The rule set says whether the forecasts of the excluded still count among the peers and in the consensus.
    """

    contest: Id
    participant: Id
    level: Level
    reason: Text


class FinalizeContest(Command, frozen=True, kw_only=True, tag="finalize_contest"):
    """Freezes the contest's board at this log position, for good.

    A question that is not resolved by then counts for nothing, and the contest takes no more questions, enrolments or
    exclusions. That log position and the digest there are the checkpoint in the table `contests`.
    """

    contest: Id


class PayPrizes(Command, frozen=True, kw_only=True, tag="pay_prizes"):
    """Pays the winners of a finalized contest what its sealed board says, each once: the whole pool.

    It records one event a winner. If only some winners are paid, because a log was cut there, it pays the others.
    Nothing that is recorded after the contest was finalized changes the prizes, and `verify` compares them with the
    board again.
    """

    contest: Id


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What one question is quoted at."""

    question: Id
    prices: dict[Id, Probability]


class QuotePrices(Command, frozen=True, kw_only=True, tag="quote"):
    """What a source quotes for one question, or for many. Give question and prices, or quotes."""

    question: Id | None = None
    prices: dict[Id, Probability] | None = None
    quotes: tuple[Prices, ...] | None = None
    source: Text
    quoted_at: Instant


class Bet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Money on one outcome of a question."""

    market_id: Text
    side: Text
    amount: Number


class Sale(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Shares of an open position that are sold."""

    position_id: Text | int
    percentage: Number


class RecordDecision(Command, frozen=True, kw_only=True, tag="record_decision"):
    """What a participant decides for a period. Give its fields, or the text of a reply as response alone.

    A reply is one JSON object of action, bets, sells and reasoning. A decision is BET with bets, SELL with sells, or
    HOLD; anything else is recorded as malformed, with its fault. The same attempt sent again is a duplicate, whatever
    its id.
    """

    contest: Id
    participant: Id
    period: int
    attempt: int = 1
    action: Text | None = None
    bets: tuple[Bet, ...] | None = None
    sells: tuple[Sale, ...] | None = None
    reasoning: LongText | None = None
    prompt: LongText | None = None
    response: LongText | None = None


class DepositCash(Command, frozen=True, kw_only=True, tag="deposit_cash"):
    """Adds cash from outside to a participant's account; the rule set must allow recapitalisation."""

    contest: Id
    participant: Id
    amount: Deposit
    reason: Text


class WithdrawCash(Command, frozen=True, kw_only=True, tag="withdraw_cash"):
    """Takes cash out of a participant's account; the rule set must allow recapitalisation."""

    contest: Id
    participant: Id
    amount: Withdrawal
    reason: Text


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
        raise malformed_refusal(error, "", _kind(line)) from None
    return command


def read_rule_set(said: dict[str, Any], name: str) -> RuleSet:
    """The rule set that a dict says, as an object of JSON would. Refuses: malformed, with the path of the field."""
    try:
        return _rule_sets.decode(json.encode(said, order="deterministic"))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise malformed_refusal(error, name) from None


def malformed_refusal(error: Exception, name: str, kind: str = "") -> Refused:
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
