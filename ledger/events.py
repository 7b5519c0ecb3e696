"""Every event: what has happened, in integers and ids; the tag is its stored name, for ever.

Instants are µs since the epoch, probabilities 1e-9, cumulative probabilities 1e-10, money 1e-6, weights 1e-6.
"""

from typing import Literal, get_args

from msgspec import Struct

from ledger.rules import Level, RuleSet

Kind = Literal["binary", "multiple_choice", "numeric"]


class Event(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """`at` is the instant the command claimed. No event is part of a cycle, so the collector need not look at it."""

    at: int


class NumericRange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Equal bins of lower..upper, equal in the logarithm of the distance from zero_point where there is one; or,
    without bins, the levels of the quantiles asked for.

    Bounds are exact decimal text. Outcome 0 is below the range, 1..bins inside, bins + 1 above; without bins, 1 is
    inside and 2 above. levels: 1e-9 each, increasing. decimals: quantiles are counted in 10^-decimals.
    """

    lower: str
    upper: str
    bins: int = 0
    open_lower: bool = False
    open_upper: bool = False
    zero_point: str | None = None
    levels: tuple[int, ...] = ()
    decimals: int = 0


class Attestation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What a forecast's maker declares about what it stands on; stamps as they were given, at their own precision."""

    newest_source: str | None = None
    model_released: str | None = None
    training_cutoff: str | None = None
    restricted_sources: bool | None = None
    restricted_list: str = ""
    note: str = ""


class QuestionOpened(Event, frozen=True, kw_only=True, tag="question_opened.v1"):
    """Starts a question; outcomes are empty where it is numeric."""

    question: str
    kind: Kind
    title: str = ""
    outcomes: tuple[str, ...] = ()
    range: NumericRange | None = None
    opens_at: int
    closes_at: int
    reveals_at: int | None = None


class ForecastMade(Event, frozen=True, kw_only=True, tag="forecast_made.v1"):
    """Replaces the participant's standing forecast: one distribution, in the order of the question's outcomes.

    probabilities: 1e-9 each, summing to 1e9; empty where the question is numeric.
    cdf: bins + 1 values in 1e-10, at the edges of the bins. quantiles: one for each level, in 10^-decimals.
    """

    question: str
    participant: str
    probabilities: tuple[int, ...] = ()
    cdf: tuple[int, ...] = ()
    quantiles: tuple[int, ...] = ()
    attestation: Attestation | None = None


class ForecastWithdrawn(Event, frozen=True, kw_only=True, tag="forecast_withdrawn.v1"):
    """Ends the participant's standing forecast."""

    question: str
    participant: str


class QuestionClosed(Event, frozen=True, kw_only=True, tag="question_closed.v1"):
    """Ends every standing forecast before the scheduled close."""

    question: str


class QuestionResolved(Event, frozen=True, kw_only=True, tag="question_resolved.v1"):
    """Records the outcome, by its index; value is the exact decimal text of a numeric answer."""

    question: str
    outcome: int
    value: str = ""
    known_at: int


class QuestionAnnulled(Event, frozen=True, kw_only=True, tag="question_annulled.v1"):
    """Takes the question out of every score."""

    question: str
    reason: str


class ResolutionRevoked(Event, frozen=True, kw_only=True, tag="resolution_revoked.v1"):
    """Undoes the resolution or annulment; the question can be resolved again."""

    question: str
    reason: str


class ContestOpened(Event, frozen=True, kw_only=True, tag="contest_opened.v1"):
    """Starts a contest under the rule set it carries; pool and payable_unit in 1e-6 of the currency."""

    contest: str
    title: str = ""
    rules: RuleSet
    pool: int = 0
    currency: str = ""
    payable_unit: int


class QuestionAdded(Event, frozen=True, kw_only=True, tag="question_added.v1"):
    """Puts a question into a contest; weights in 1e-6, hidden_coverage_weight None for plain coverage.

    spot_at: the instant that counts where the rule set counts only one; None for the reveal, else the close.
    """

    contest: str
    question: str
    weight: int
    hidden_coverage_weight: int | None = None
    spot_at: int | None = None


class ParticipantEnrolled(Event, frozen=True, kw_only=True, tag="participant_enrolled.v1"):
    """Says of a participant in a contest whose submission it is, and whether it is a bot; the last one counts."""

    contest: str
    participant: str
    entrant: str = ""
    bot: bool = False


class ParticipantExcluded(Event, frozen=True, kw_only=True, tag="participant_excluded.v1"):
    """Sets how far a participant is left off the contest's board; the last one counts."""

    contest: str
    participant: str
    level: Level
    reason: str


class ContestFinalized(Event, frozen=True, kw_only=True, tag="contest_finalized.v1"):
    """Freezes the contest's board at this log position."""

    contest: str


class PrizePaid(Event, frozen=True, kw_only=True, tag="prize_paid.v1"):
    """One winner's prize, in 1e-6 of the contest's currency."""

    contest: str
    participant: str
    amount: int


AnyEvent = (
    QuestionOpened
    | ForecastMade
    | ForecastWithdrawn
    | QuestionClosed
    | QuestionResolved
    | QuestionAnnulled
    | ResolutionRevoked
    | ContestOpened
    | QuestionAdded
    | ParticipantEnrolled
    | ParticipantExcluded
    | ContestFinalized
    | PrizePaid
)
TAGS: dict[type[Event], str] = {kind: str(kind.__struct_config__.tag) for kind in get_args(AnyEvent)}
