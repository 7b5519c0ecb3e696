"""Every command: what may be asked for, at the edge, in decimals and RFC 3339 instants.

One command a line of JSON: `id`, `type`, `at`, then the fields of its type.
"""

from decimal import Decimal, InvalidOperation

import msgspec
from msgspec import Struct, json

from ledger.errors import Refused
from ledger.events import Attestation, Kind
from ledger.rules import Level, RuleSet
from ledger.values import Instant, Number

BINS = 200  # of a range that says neither bins nor levels
DECIMALS = 6  # of the unit in which quantiles are counted, where a range with levels does not say


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
    """Records the answer; known_at defaults to the earlier of `at` and the scheduled close."""

    question: str
    outcome: str | None = None
    value: Number | None = None
    known_at: Instant | None = None


class AnnulQuestion(Command, frozen=True, kw_only=True, tag="annul_question"):
    """Makes a question count nowhere."""

    question: str
    reason: str


class RevokeResolution(Command, frozen=True, kw_only=True, tag="revoke_resolution"):
    """Undoes a resolution or an annulment."""

    question: str
    reason: str


class OpenContest(Command, frozen=True, kw_only=True, tag="open_contest"):
    """Opens a contest under a preset or a whole rule set."""

    contest: str
    rules: str | RuleSet
    pool: Number | None = None
    currency: str = ""
    payable_unit: Number = Decimal("0.01")
    title: str = ""


class AddQuestion(Command, frozen=True, kw_only=True, tag="add_question"):
    """Puts a question into a contest."""

    contest: str
    question: str
    weight: Number = Decimal(1)
    hidden_coverage_weight: Number | None = None
    spot_at: Instant | None = None


class EnrolParticipant(Command, frozen=True, kw_only=True, tag="enrol_participant"):
    """Says whose submission a participant is, if not its own, and whether it is a bot."""

    contest: str
    participant: str
    entrant: str | None = None
    bot: bool = False


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
    """Pays the winners of a finalized contest what its sealed board says, once."""

    contest: str


AnyCommand = (
    OpenQuestion
    | SubmitForecast
    | WithdrawForecast
    | CloseQuestion
    | ResolveQuestion
    | AnnulQuestion
    | RevokeResolution
    | OpenContest
    | AddQuestion
    | EnrolParticipant
    | ExcludeParticipant
    | FinalizeContest
    | PayPrizes
)
_decoder = json.Decoder(AnyCommand, float_hook=Decimal)


def read(line: bytes | str) -> AnyCommand:
    """The command on one line of JSON.

    Refuses: malformed, with the path of the field.

    >>> read('{"id": "c1", "type": "close_question", "at": "2026-03-01T00:00:00Z", "question": "q1"}').question
    'q1'
    """
    try:
        command: AnyCommand = _decoder.decode(line)
    except (msgspec.DecodeError, InvalidOperation, RecursionError, UnicodeError) as error:
        raise malformed(error, "") from None
    return command


def malformed(error: Exception, name: str) -> Refused:
    """A refusal that names the field as a path from the command, or from the field `name` of it."""
    message, _, path = str(error).partition(" - at `$")
    return Refused("malformed", f"{name}{path.rstrip('`')}".lstrip(".") or "line", None, message)
