"""Which events can change a row of a table: more than do, never fewer."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.boards.totals import takes_its_name

FORECASTS = (events.ForecastMade, events.ForecastWithdrawn)
SETTLING = (events.QuestionResolved, events.QuestionAnnulled, events.ResolutionRevoked)
_OF_QUESTION = (events.QuestionOpened, events.QuestionClosed, *SETTLING)
_WITHOUT_ANSWER = (events.QuestionOpened, events.QuestionClosed, events.QuestionAdded)  # no score sees them without
# What a table is made of. Those of forecasts change with each of them; those of scores with what settles a question;
# those of values with quotes and movements in whatever contest; some of them with the clock, which every event moves.
OF_FORECASTS = frozenset({"standing", "consensus", "admissions"})
OF_SCORES = frozenset(
    {"score_parts", "scores", "leaderboard", "kind_means", "prizes", "brier", "brier_overall", "calibration"}
)
OF_TALLIES = frozenset({"leaderboard", "kind_means", "prizes"})  # of those, what follows from a contest's tally alone
OF_VALUES = frozenset({"accounts", "positions", "portfolio_snapshots", "arena_leaderboard", "arena_overall", "marks"})
OF_CLOCK = OF_VALUES - {"accounts", "arena_overall"}
OF_ACCOUNTS = frozenset({"cash", "trades", "decisions", "refused_legs", "bet_brier"})
_OF_ONE_EVENT = frozenset({"journal", "cash", "refused_legs"})  # whose rows are as they came
_OF_NO_CONTEST = frozenset({"consensus", "standing"})  # what no contest has a part in


class Scope(NamedTuple):
    """A row: its table, its key by column, and the questions of each contest."""

    table: str
    key: Mapping[str, Any]
    questions: Mapping[str, Collection[str]]

    def has(self, question: str) -> bool:
        """Whether a row may depend on a question."""
        if self.key.get("question", question) != question and self.table not in OF_ACCOUNTS | OF_VALUES:
            return False
        contest = self.key.get("contest")
        return contest is None or question in self.questions.get(contest, ())


def alone(event: Any) -> str:
    """The one question whose rows an event can touch, nobody's name considered; none if it is of more, or of none."""
    if isinstance(event, FORECASTS) and takes_its_name(event.participant):
        return ""
    return str(getattr(event, "question", ""))


def can_change(scope: Scope, recorded: Recorded, *, settled: bool) -> bool:
    """Whether an event can change the row; settled: whether the event's question has an answer as it happens."""
    if scope.table in _OF_ONE_EVENT:
        return str(recorded.position) == str(scope.key["log_position"])
    if scope.table in OF_SCORES and isinstance(recorded.event, _WITHOUT_ANSWER) and not settled:
        return False
    return _reaches(scope, recorded.event, settled=settled)


def _reaches(scope: Scope, event: Any, *, settled: bool) -> bool:
    table, key = scope.table, scope.key
    if table in OF_CLOCK:
        return True
    if isinstance(event, FORECASTS):
        return _of_forecast(scope, event, settled=settled)
    if isinstance(event, _OF_QUESTION):
        return table in OF_VALUES or scope.has(event.question)
    if table in OF_VALUES or isinstance(event, events.PricesQuoted | events.TextKept):
        return table in OF_VALUES and not isinstance(event, events.TextKept)
    if isinstance(event, events.OfAccount):
        return _of_account(scope, event)
    return table not in _OF_NO_CONTEST and bool(key.get("contest", event.contest) == event.contest)


def _of_forecast(scope: Scope, event: Any, *, settled: bool) -> bool:
    """Scores are of what has an answer, and of the consensus by name; no other table of scores or accounts sees one."""
    if scope.table in OF_SCORES:
        return (settled and scope.has(event.question)) or takes_its_name(event.participant)
    own = scope.table == "consensus" or scope.key.get("participant") in {None, event.participant}
    return scope.table in OF_FORECASTS and own and scope.has(event.question)


def _of_account(scope: Scope, event: events.OfAccount) -> bool:
    """Of decisions and movements; they make no forecast's tables."""
    same = scope.key.get("contest", event.contest) == event.contest
    if scope.table in OF_ACCOUNTS:
        return bool(same and scope.key["participant"] == event.participant)
    return same and scope.table in {"contests", "journal"}


class Settled:
    """Which questions have an answer, followed through a log in its order."""

    def __init__(self) -> None:
        self._now: set[str] = set()

    def before(self, recorded: Recorded) -> bool:
        """Whether the question that an event speaks of had an answer; then takes the event in."""
        event = recorded.event
        question = getattr(event, "question", "")
        there = question in self._now
        if isinstance(event, events.QuestionResolved | events.QuestionAnnulled):
            self._now.add(question)
        elif isinstance(event, events.ResolutionRevoked):
            self._now.discard(question)
        return there
