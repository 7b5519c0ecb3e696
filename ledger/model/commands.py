"""Every command: a request to record something, in decimal numbers and RFC 3339 instants.

A command is one line of JSON: `id`, `type`, `at`, then the fields of its type. `forecast-ledger help commands`
describes each field.

>>> from forecast_ledger import commands
>>> commands.read('{"type": "close_question", "at": "2026-03-08T00:00:00Z", "question": "rain"}')
CloseQuestion(at='2026-03-08T00:00:00Z', question='rain')
"""

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Raw, Struct, json, structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import hint
from forecast_ledger.ledger.model import forms, provenance
from forecast_ledger.ledger.model.events import Attestation, CancelPolicy, QuestionKind, TradeAction
from forecast_ledger.ledger.model.forms import (
    Bins,
    Cumulative,
    Decimals,
    Deposit,
    Id,
    Instant,
    Line,
    LongText,
    Measure,
    Method,
    Normalizing,
    PayableUnit,
    Payout,
    Pool,
    Preset,
    Probability,
    QuantileLevel,
    Quantity,
    Samples,
    Share,
    Text,
    TradedShares,
    Version,
    Weight,
    Withdrawal,
)
from forecast_ledger.ledger.model.pointers import pointer_of
from forecast_ledger.ledger.model.rules import Level, RuleSet, WrittenRuleSet, as_recorded, read_json

if TYPE_CHECKING:  # the types that a caller may pass
    Rules = str | RuleSet | dict[str, Any]
else:  # the types that a decoder returns
    Rules = Preset | WrittenRuleSet

Bet = forms.Bet
Sale = forms.Sale
ModelCall = forms.ModelCall
Prices = forms.Prices
Spot = forms.Spot
Evidence = provenance.Evidence
DEFAULT_BINS = 200  # of a range without bins, levels and samples
DEFAULT_DECIMALS = 6  # of quantiles and samples, if a range with these does not give decimals


class _Kind(Struct):
    """The field of a command that names its type."""

    type: str = ""


class Command(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="type",
    omit_defaults=True,
    repr_omit_defaults=True,
    gc=False,
):
    """The fields of every command.

    A command without `at` claims the instant at which the ledger records it. Its digest has no instant, so that a retry
    is the same command. Who asks for it, why, and the evidence are part of it; correlation and causation are not, so
    that a retry may have others.
    """

    id: Id = ""
    at: Instant | None = None
    by: Line | None = None
    reason: Text | None = None
    evidence: Evidence | provenance.Pieces | None = None
    correlation: Line | None = None
    causation: Line | None = None


class Range(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The range of a numeric, date or discrete question.

    A forecast gives the cumulative probability at the edges of the bins; with levels, its quantiles; with samples, as
    many equally likely values, of which a single one is a point forecast, such as a mean.
    """

    lower: Quantity
    upper: Quantity
    bins: Bins | None = None
    open_lower: bool = False
    open_upper: bool = False
    zero_point: Quantity | None = None
    levels: tuple[QuantileLevel, ...] | None = None
    decimals: Decimals | None = None
    samples: Samples | None = None


class OpenQuestion(Command, frozen=True, kw_only=True, tag="open_question"):
    """Opens a question.

    A date question counts seconds since the epoch; a bound can be a date, which is its beginning in UTC, or an instant.
    A discrete question has one bin for each possible value, and its range begins half a step below the smallest value
    and ends half a step above the largest. A multiple-choice question says by `ordered` whether its outcomes have an
    order, which is the one in which they are listed.
    """

    question: Id
    kind: QuestionKind
    title: Text = ""
    outcomes: tuple[Id, ...] | None = None
    range: Range | None = None
    opens_at: Instant
    closes_at: Instant
    reveals_at: Instant | None = None
    group: Id | None = None
    category: Id | None = None
    tags: tuple[Id, ...] | None = None
    url: Text | None = None
    source: Text | None = None
    ordered: bool | None = None


class Points(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Points of a distribution on bins, for whoever has a few quantiles and no cdf; the method gives the cdf.

    Levels increase, and quantiles do not decrease; equal ones have the probability between them on that value. At a
    closed end the cdf is 0 or 1. At an open end, half of the probability that is left beyond the outermost point lies
    beyond the end, unless that point is on the end or beyond it.
    """

    levels: tuple[QuantileLevel, ...]
    quantiles: tuple[Quantity, ...]
    method: Method


class SubmitForecast(Command, frozen=True, kw_only=True, tag="submit_forecast"):
    """Makes a participant's forecast, or replaces it. Give one of probability, probabilities, cdf, quantiles,
    samples, points.

    The forecast stands from `at`, or from the opening if `at` is earlier, until it is replaced or withdrawn, the
    question closes, or the instant `until`, whichever is first. If the sum of the probabilities differs from 1 by at
    most 0.000001, the largest probability, the first of equals, takes the difference. With `normalized`, the numbers in
    `probabilities` need not sum to 1: each is divided by their sum, and both are recorded.
    """

    question: Id
    participant: Id
    probability: Probability | None = None
    probabilities: dict[Id, Probability] | None = None
    cdf: tuple[Cumulative, ...] | None = None
    quantiles: tuple[Measure, ...] | None = None
    attestation: Attestation | None = None
    until: Instant | None = None
    samples: tuple[Measure, ...] | None = None
    points: Points | None = None
    normalized: Normalizing | None = None


class WithdrawForecast(Command, frozen=True, kw_only=True, tag="withdraw_forecast"):
    """Withdraws a participant's standing forecast."""

    question: Id
    participant: Id


class RestatedForecast(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A forecast of a restatement, which counts from its own `at`, with the fields of a submit_forecast."""

    at: Instant
    probability: Probability | None = None
    probabilities: dict[Id, Probability] | None = None
    cdf: tuple[Cumulative, ...] | None = None
    quantiles: tuple[Measure, ...] | None = None
    attestation: Attestation | None = None
    until: Instant | None = None
    samples: tuple[Measure, ...] | None = None
    points: Points | None = None
    normalized: Normalizing | None = None

    def made(self, question: str, participant: str) -> SubmitForecast:
        """Return the command that makes this forecast."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return SubmitForecast(question=question, participant=participant, **fields)


class RestateForecasts(Command, frozen=True, kw_only=True, tag="restate_forecasts"):
    """Restates what a participant forecast on a question, at any time, even after its close or its answer.

    All forecasts and withdrawals of the participant there count as never made, and the given ones count instead, each
    from its own `at`; with none, the participant never forecast it. The log keeps both, and a replay as of an earlier
    log position shows what counted then. The boards of contests that are already finalized do not change. It is for
    whoever keeps the records, such as an importer whose source was corrected.
    """

    question: Id
    participant: Id
    forecasts: tuple[RestatedForecast, ...]
    reason: Text


class RenameParticipant(Command, frozen=True, kw_only=True, tag="rename_participant"):
    """Gives a participant another id, or merges two ids of one person.

    From this log position on, all that was recorded under the old id counts as recorded under the new one: forecasts,
    withdrawals, restatements, enrolments (also as their entrant), exclusions, and accounts in trading contests with
    their cash, positions and decisions. If the new id has forecasts too, those of both are in one order of time on each
    question. If two have one instant, or are enrolments or exclusions in one contest, the one that was recorded later
    counts. The old id stays in a contest that was finalized before, and in a replay that ends before this log position,
    whatever instant the rename claims: also in one that is cut by the claimed clock before an event that precedes it. A
    command under the old id is refused. Renaming back is possible; ids that were merged stay one participant. Two ids
    that both have an account in a contest cannot be merged before it is finalized: either account had the starting
    cash, and its own largest bets and decisions.

    `at` is no beginning: the participant has one id for all time. If an id was another's from some instant on, as when
    a bot was handed over, restate the forecasts of both ids, each up to or from that instant (`restate_forecasts`).
    """

    participant: Id
    to: Id
    reason: Text


class RequireVersion(Command, frozen=True, kw_only=True, tag="require_version"):
    """States the least version of this program that may write to the ledger, from this log position on.

    A writer of an older version raises NewerVersion and records nothing; retries of what is recorded are still
    answered, and readers still read. A version is written in the normal form of Python packages, such as 0.3.0 or
    1.0rc1, and cannot be newer than that of the program that records the command. The last statement counts, so that a
    lower version takes the requirement back.
    """

    version: Version


class CloseQuestion(Command, frozen=True, kw_only=True, tag="close_question"):
    """Closes a question early, at `at`.

    The close may be earlier than forecasts that are already recorded; from the close on, they do not count. It must be
    later than the question's last trade.
    """

    question: Id


class AmendQuestion(Command, frozen=True, kw_only=True, tag="amend_question"):
    """Changes what describes a question, or its weight in a contest that is not finalized, at any time.

    Give one or more of title, tags, url and source, or contest and weight, or both. Scores do not change; with another
    weight, the boards of that contest do.
    """

    question: Id
    title: Text | None = None
    tags: tuple[Id, ...] | None = None
    url: Text | None = None
    source: Text | None = None
    contest: Id | None = None
    weight: Weight | None = None
    reason: Text = ""


class RescheduleQuestion(Command, frozen=True, kw_only=True, tag="reschedule_question"):
    """Gives a question that is not resolved other times. Give one or more of opens_at, closes_at, reveals_at.

    All forecasts are kept, and count from the opening to the close that are now in force. A new close also ends an
    early close: the question is open until then. A spot after the close counts at the close. Boards that are finalized
    do not change.
    """

    question: Id
    opens_at: Instant | None = None
    closes_at: Instant | None = None
    reveals_at: Instant | None = None
    reason: Text = ""


class ChangeOutcomes(Command, frozen=True, kw_only=True, tag="change_outcomes"):
    """Adds outcomes to an open multiple-choice question, or removes some. Give add with grace_ends_at, or remove.

    The last outcome that the question was opened with stays: it stands for all that are not named. When outcomes are
    removed, each standing forecast goes on with their probability moved to the last outcome. When some are added,
    forecasts give them at once; one that was made before ends at `grace_ends_at`, and one that is made in between
    counts until then with their probability moved to the last outcome.
    """

    question: Id
    add: tuple[Id, ...] | None = None
    remove: tuple[Id, ...] | None = None
    grace_ends_at: Instant | None = None


class ResolveQuestion(Command, frozen=True, kw_only=True, tag="resolve_question"):
    """Records the answer. Give one of outcome, value, payouts.

    A numeric answer on an inner edge, or up to 1e-10 of a bin above it, belongs to the bin below. An answer beyond an
    open end is an outcome of its own, which can be given by name: `below_lower_bound` or `above_upper_bound`. An answer
    beyond a closed end is refused. Payouts whose sum differs from 1 by at most 0.000001 are divided by their sum: those
    of 0.333333333 for each of three outcomes are thirds.
    """

    question: Id
    outcome: str | None = None
    value: Quantity | None = None
    known_at: Instant | None = None
    payouts: dict[Id, Payout] | None = None


class AnnulQuestion(Command, frozen=True, kw_only=True, tag="annul_question"):
    """Removes a question, resolved or not, from every score, and refunds the cost of open positions."""

    question: Id
    reason: Text


class CancelMarket(Command, frozen=True, kw_only=True, tag="cancel_market"):
    """Annuls a question, with a policy for the positions in it."""

    question: Id
    policy: CancelPolicy = "refund_cost"
    reason: Text


class RevokeResolution(Command, frozen=True, kw_only=True, tag="revoke_resolution"):
    """Undoes a resolution or an annulment. Every table is then as if it had not been recorded.

    A replay as of an earlier log position still shows it. If a resolution stood before the annulment, it stands again.
    The rows of a contest that is already finalized do not change, in any table.
    """

    question: Id
    reason: Text


class OpenContest(Command, frozen=True, kw_only=True, tag="open_contest"):
    """Opens a contest. A pool above 0 is at least the least prize of the rule set."""

    contest: Id
    rules: Rules
    pool: Pool | None = None
    currency: Text = ""
    payable_unit: PayableUnit = Decimal("0.01")
    title: Text = ""
    starts_at: Instant | None = None
    series: Id | None = None


class AddQuestion(Command, frozen=True, kw_only=True, tag="add_question"):
    """Puts a question into a contest. Give spot_at for one instant that counts, or spots for several."""

    contest: Id
    question: Id
    weight: Weight = Decimal(1)
    hidden_coverage_weight: Share | None = None
    spot_at: Instant | None = None
    spots: tuple[Spot, ...] | None = None


class EnrolParticipant(Command, frozen=True, kw_only=True, tag="enrol_participant"):
    """Enrols a participant, and with trading grants its starting cash; says who entered it and whether it is a bot.

    Forecasting needs no enrolment. Without trading, the last enrolment counts; with trading, a participant enrols once.
    Bots are ranked and paid like others unless they are excluded; the rule set says whether they are members.
    """

    contest: Id
    participant: Id
    entrant: Id | None = None
    bot: bool = False
    family: Id | None = None
    release: Id | None = None


class ExcludeParticipant(Command, frozen=True, kw_only=True, tag="exclude_participant"):
    """Excludes a participant from prizes, from ranks, or from the contest's board; the last exclusion counts.

    The rule set says whether forecasts of excluded participants still count among the peers and in the consensus.
    """

    contest: Id
    participant: Id
    level: Level
    reason: Text


class FinalizeContest(Command, frozen=True, kw_only=True, tag="finalize_contest"):
    """Freezes the contest's board at this log position, permanently.

    Questions that are not resolved do not count, and the contest takes no more questions, enrolments or exclusions.
    This log position and its digest are the checkpoint in the table `contests`.
    """

    contest: Id


class PayPrizes(Command, frozen=True, kw_only=True, tag="pay_prizes"):
    """Pays each winner of a finalized contest the prize on its final board.

    It records one event for each winner. If a log was cut so that only some winners are paid, it pays the others.
    Nothing that is recorded after the contest is finalized changes the prizes, and `verify` compares them with the
    board again.
    """

    contest: Id


class Quote(Command, frozen=True, kw_only=True, tag="quote"):
    """Records prices, bids and asks of one or more questions from a source. Give question and prices, or quotes.

    With skip_bad, quotes that are good are recorded, those that are bad are refused by name in the receipt, and the
    command is refused only if none is good. Without it, one that is bad refuses all.
    """

    question: Id | None = None
    prices: dict[Id, Probability] | None = None
    bids: dict[Id, Probability] | None = None
    asks: dict[Id, Probability] | None = None
    bid_sizes: dict[Id, forms.Shares] | None = None
    ask_sizes: dict[Id, forms.Shares] | None = None
    quotes: tuple[Prices, ...] | None = None
    source: Text
    quoted_at: Instant
    skip_bad: bool = False


class RecordDecision(Command, frozen=True, kw_only=True, tag="record_decision"):
    """Records a participant's decision for a period. Give its fields, or only response, the text of a reply.

    A reply is one JSON object of action, bets, sells and reasoning: BET with bets, SELL with sells, or HOLD. Any other
    is recorded as malformed, with its fault. An attempt that is sent again is a duplicate, even under another id.
    """

    contest: Id
    participant: Id
    period: forms.Period
    attempt: forms.Attempt = 1
    action: Text | None = None
    bets: tuple[Bet, ...] | None = None
    sells: tuple[Sale, ...] | None = None
    reasoning: LongText | None = None
    prompt: LongText | None = None
    response: LongText | None = None
    call: ModelCall | None = None


class RecordFailedCall(Command, frozen=True, kw_only=True, tag="record_failed_call"):
    """Records that a call of a participant's model brought no reply. It uses up no attempt at the decision."""

    contest: Id
    participant: Id
    period: forms.Period
    error: Text
    prompt: LongText | None = None
    call: ModelCall | None = None


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


class RecordTrade(Command, frozen=True, kw_only=True, tag="record_trade"):
    """Records a trade as it happened on a market elsewhere; the rule set must allow recorded trades.

    Give outcome for shares of one outcome, or all_but for a share of every other outcome. Without both, it is a trade
    of complete sets, a share of every outcome each. It needs no quote, and may be of an instant after the close, until
    the question is resolved.
    """

    contest: Id
    participant: Id
    question: Id
    outcome: str | None = None
    all_but: str | None = None
    action: TradeAction
    shares: TradedShares
    amount: Pool
    fee: Pool = Decimal(0)


AnyCommand = (
    OpenQuestion | SubmitForecast | WithdrawForecast | RestateForecasts | RenameParticipant | CloseQuestion
    | AmendQuestion | RescheduleQuestion | ChangeOutcomes | ResolveQuestion | AnnulQuestion | CancelMarket
    | RevokeResolution | OpenContest | AddQuestion | EnrolParticipant | ExcludeParticipant | FinalizeContest
    | PayPrizes | Quote | RecordDecision | RecordFailedCall | DepositCash | WithdrawCash | RecordTrade | RequireVersion
)  # fmt: skip
_decoder = json.Decoder(AnyCommand, float_hook=Decimal)
_kinds = json.Decoder(_Kind)


@checked()
def read(line: bytes | bytearray | memoryview | str) -> AnyCommand:
    """Return the command on one line of JSON.

    Refuses, with the path of the field: malformed; of an amount in a rule set also bad_number, amount_not_text,
    not_finite, out_of_range.

    >>> read('{"id": "c1", "type": "close_question", "at": "2026-03-01T00:00:00Z", "question": "q1"}').question
    'q1'
    """
    return read_line(line)


def read_line(line: bytes | bytearray | memoryview | str) -> AnyCommand:
    """Return what `read` returns. The type of the argument is not checked, which takes longer than most lines."""
    try:
        command: AnyCommand = _decoder.decode(line)
    except (msgspec.DecodeError, InvalidOperation, RecursionError, UnicodeError) as error:
        raise malformed_refusal(error, "", _kind(line)) from None
    return with_recorded_rules(command)


def with_recorded_rules(command: AnyCommand) -> AnyCommand:
    """Return a command as decoded, its rule set with amounts in 1e-6. Refuses like `as_recorded` of written_rules."""
    if type(command) is OpenContest and type(command.rules) is WrittenRuleSet:
        return structs.replace(command, rules=as_recorded(command.rules, "rules"))
    return command


@checked("participant")
def read_from(participant: str, body: bytes | bytearray | memoryview | str) -> SubmitForecast | WithdrawForecast:
    """Return the command in the JSON that a participant sends: a forecast or a withdrawal of its own.

    participant: who sends it, as the caller knows; the body need not say it. The ledger stamps the command, and the
    caller gives its id to `handle`. Everything else is for those who run a contest: they read it with `read`.

    Refuses: malformed, with the path of the field (also another type, `at`, `id`, or another participant); id_empty,
    id_too_long, id_not_plain (the participant).

    >>> read_from("ada", '{"type": "submit_forecast", "question": "rain", "probability": 0.7}').participant
    'ada'
    """
    try:
        fields = _objects.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise malformed_refusal(error, "") from None
    if (kind := _kind(body)) not in _FROM_PARTICIPANTS:
        refused = Refused("malformed", "type", kind, f"a participant sends {' or '.join(_FROM_PARTICIPANTS)}")
        refused.pointer = "/type"
        raise refused
    for field, reason in _NOT_FROM_PARTICIPANTS.items():
        if field in fields:
            raise _at(pointer_of(field), "malformed", field, reason, remedy="leave it out")
    fields.setdefault("participant", Raw(json.encode(values.check_id(participant, "participant"))))
    command = cast("SubmitForecast | WithdrawForecast", read(json.encode(fields)))
    if command.participant != participant:
        detail = "a participant sends its own commands"
        raise _at("/participant", "malformed", "participant", detail, remedy="leave it out")
    return command


_FROM_PARTICIPANTS = ("submit_forecast", "withdraw_forecast")
_NOT_FROM_PARTICIPANTS = {
    "at": "the ledger stamps what a participant sends",
    "id": "the caller names what a participant sends",
    **dict.fromkeys(["by", "correlation", "causation"], "the caller says who sends it, and in answer to what"),
}
_objects = json.Decoder(dict[str, Raw])


def read_rule_set(rules: dict[str, Any] | str, name: str) -> RuleSet:
    """Return the rule set in a dict, or in the text of a JSON object; `name` is its field.

    Refuses, first that applies, with the path of the field: malformed, bad_number, amount_not_text, not_finite,
    out_of_range.
    """
    try:
        return read_json(rules if isinstance(rules, str) else json.encode(rules, order="deterministic"), name)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise malformed_refusal(error, name) from None


def malformed_refusal(error: Exception, name: str, kind: str = "") -> Refused:
    """Return a refusal with the path of the field, from the command or from its field `name`.

    If the field takes one of a few values, or holds unknown fields, the message lists those that are allowed, the
    nearest first. kind: the command's type, if its own fields may be wrong.
    """
    message, _, path = str(error).partition(" - at `$")
    field = f"{name}{path.rstrip('`')}".lstrip(".")
    return _at(pointer_of(field), "malformed", field or "line", message + hint(AnyCommand, message, field, kind))


def _at(pointer: str, code: str, field: str, detail: str, remedy: str = "") -> Refused:
    refused = Refused(code, field, None, detail, remedy=remedy)
    refused.pointer = pointer
    return refused


def _kind(line: bytes | bytearray | memoryview | str) -> str:
    """Return the type that a line gives; empty if it gives none."""
    try:
        return _kinds.decode(line).type
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return ""
