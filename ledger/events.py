"""Every event: what has happened, in integers and ids; the tag is its stored name, for ever.

Instants are µs since the epoch, probabilities 1e-9, cumulative probabilities 1e-10, money 1e-6, weights 1e-6.
"""

from typing import Literal, get_args

from msgspec import Struct

from ledger.rules import RuleSet

Kind = Literal["binary", "multiple_choice", "numeric"]
Level = Literal["no_prize", "no_rank", "hidden"]


class Event(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """`at` is the instant the command claimed. No event is part of a cycle, so the collector need not look at it."""

    at: int


class NumericRange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Equal bins of lower..upper, equal in the logarithm of the distance from zero_point where there is one.

    Bounds are exact decimal text. Outcome 0 is below the range, 1..bins inside, bins + 1 above.
    """

    lower: str
    upper: str
    bins: int
    open_lower: bool = False
    open_upper: bool = False
    zero_point: str | None = None


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
    cdf: bins + 1 values in 1e-10, at the edges of the bins; empty where it is not.
    """

    question: str
    participant: str
    probabilities: tuple[int, ...] = ()
    cdf: tuple[int, ...] = ()


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
    """Puts a question into a contest; weights in 1e-6, hidden_coverage_weight None for plain coverage."""

    contest: str
    question: str
    weight: int
    hidden_coverage_weight: int | None = None


class ParticipantExcluded(Event, frozen=True, kw_only=True, tag="participant_excluded.v1"):
    """Sets how far a participant is left off the contest's board; the last one counts."""

    contest: str
    participant: str
    level: Level
    reason: str


class ContestFinalized(Event, frozen=True, kw_only=True, tag="contest_finalized.v1"):
    """Freezes the contest's board at this log position."""

    contest: str


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
    | ParticipantExcluded
    | ContestFinalized
)
TAGS: dict[type[Event], str] = {kind: str(kind.__struct_config__.tag) for kind in get_args(AnyEvent)}
