"""Every command: what may be asked for, at the edge, in decimals and RFC 3339 instants.

One command a line of JSON: `id`, `type`, `at`, then the fields of its type.
"""

from decimal import Decimal, InvalidOperation

import msgspec
from msgspec import Struct, json

from ledger.errors import Refused
from ledger.events import Kind, Level
from ledger.rules import RuleSet
from ledger.values import Instant, Number


class Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", gc=False):
    """`id` makes a retry harmless; `at` is the instant the command claims."""

    id: str = ""
    at: Instant


class Range(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A numeric question's range, cut into bins; logarithmic where zero_point is given."""

    lower: Number
    upper: Number
    bins: int = 200
    open_lower: bool = False
    open_upper: bool = False
    zero_point: Number | None = None


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
    """Makes or replaces a participant's forecast: exactly one of probability, probabilities, cdf."""

    question: str
    participant: str
    probability: Number | None = None
    probabilities: dict[str, Number] | None = None
    cdf: tuple[Number, ...] | None = None


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


class ExcludeParticipant(Command, frozen=True, kw_only=True, tag="exclude_participant"):
    """Leaves a participant without prize, without rank, or off the contest's board."""

    contest: str
    participant: str
    level: Level
    reason: str


class FinalizeContest(Command, frozen=True, kw_only=True, tag="finalize_contest"):
    """Freezes the contest's board."""

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
    | ExcludeParticipant
    | FinalizeContest
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
