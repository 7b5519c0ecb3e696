"""Part of the decider: contests, their questions, their exclusions."""

from ledger import commands, events, values
from ledger.errors import Refused
from ledger.rules import PRESETS
from ledger.state import State, Write

LARGEST_POOL = 10**12 * values.MONEY
LARGEST_WEIGHT = 10**6 * values.WEIGHT


def open_contest(command: commands.OpenContest, state: State) -> events.ContestOpened:
    """Refuses, first that applies: out_of_range, unknown_rules, duplicate_contest, pool_not_payable."""
    pool = values.fixed(command.pool or 0, values.MONEY, "pool", 0, LARGEST_POOL)
    unit = values.fixed(command.payable_unit, values.MONEY, "payable_unit", 1, LARGEST_POOL)
    rules = PRESETS.get(command.rules) if isinstance(command.rules, str) else command.rules
    if rules is None:
        raise Refused("unknown_rules", "rules", command.rules, f"no such preset; there are {', '.join(PRESETS)}")
    if command.contest in state.contests:
        raise Refused("duplicate_contest", "contest", command.contest)
    if pool % unit:
        raise Refused("pool_not_payable", "pool", values.format_fixed(pool, values.MONEY))
    return events.ContestOpened(
        at=values.instant(command.at),
        contest=command.contest,
        title=command.title,
        rules=rules,
        pool=pool,
        currency=command.currency,
        payable_unit=unit,
    )


def add_question(command: commands.AddQuestion, state: State) -> events.QuestionAdded:
    """Refuses, first that applies: out_of_range, unknown_contest, unknown_question, contest_finalized,
    question_in_contest, no_hidden_period.
    """
    weight = values.fixed(command.weight, values.WEIGHT, "weight", 1, LARGEST_WEIGHT)
    hidden = command.hidden_coverage_weight
    share = None if hidden is None else values.fixed(hidden, values.WEIGHT, "hidden_coverage_weight", 0, values.WEIGHT)
    finalized = _finalized(command.contest, state)
    question = state.questions.get(command.question)
    if question is None:
        raise Refused("unknown_question", "question", command.question)
    if finalized:
        raise Refused("contest_finalized", "contest", command.contest)
    if (command.contest, command.question) in state.entries:
        raise Refused("question_in_contest", "question", command.question)
    reveals_at = question.reveals_at
    nothing_after = reveals_at == question.closes_at and share != values.WEIGHT
    if share is not None and (reveals_at is None or nothing_after):
        raise Refused("no_hidden_period", "hidden_coverage_weight", str(hidden))
    return events.QuestionAdded(
        at=values.instant(command.at),
        contest=command.contest,
        question=command.question,
        weight=weight,
        hidden_coverage_weight=share,
    )


def exclude_participant(command: commands.ExcludeParticipant, state: State) -> events.ParticipantExcluded:
    """A later exclusion replaces an earlier one. Refuses, first that applies: unknown_contest, contest_finalized."""
    if _finalized(command.contest, state):
        raise Refused("contest_finalized", "contest", command.contest)
    return events.ParticipantExcluded(
        at=values.instant(command.at),
        contest=command.contest,
        participant=command.participant,
        level=command.level,
        reason=command.reason,
    )


def finalize_contest(command: commands.FinalizeContest, state: State) -> events.ContestFinalized:
    """Refuses, first that applies: unknown_contest, contest_finalized."""
    if _finalized(command.contest, state):
        raise Refused("contest_finalized", "contest", command.contest)
    return events.ContestFinalized(at=values.instant(command.at), contest=command.contest)


def contest_opened(event: events.ContestOpened, state: State) -> Write:
    """A new contest."""
    return state.contests, event.contest, False


def question_added(event: events.QuestionAdded, state: State) -> Write:
    """The contest has the question."""
    state.contests[event.contest]
    state.questions[event.question]
    return state.entries, (event.contest, event.question), True


def participant_excluded(event: events.ParticipantExcluded, state: State) -> Write:
    """Nothing that a decision depends on."""
    return state.contests, event.contest, state.contests[event.contest]


def contest_finalized(event: events.ContestFinalized, state: State) -> Write:
    """The contest is frozen."""
    state.contests[event.contest]
    return state.contests, event.contest, True


def _finalized(contest: str, state: State) -> bool:
    finalized = state.contests.get(contest)
    if finalized is None:
        raise Refused("unknown_contest", "contest", contest)
    return finalized
