"""Decide the commands of contests and participants: questions, enrolments, exclusions, prizes and other ids."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.core.hints import nearest
from forecast_ledger.ledger.deciding.state import NOT_EXCLUDED, ContestState, Decide, EntryState, Evolve, State, Write
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.answers import why_unscorable
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet, inconsistency
from forecast_ledger.ledger.model.trading_rules import latest_sunday


def open_contest(command: commands.OpenContest, state: State) -> events.ContestOpened:
    """Refuses, first that applies: out_of_range, unknown_rules, rules_not_consistent, duplicate_contest,
    pool_not_payable, not_trading, duplicate_cohort.
    """
    at = values.read_instant(command.at)
    pool = values.read_fixed(command.pool or 0, values.MONEY, "pool", 0, values.LARGEST_POOL)
    unit = values.read_fixed(command.payable_unit, values.MONEY, "payable_unit", 1, values.LARGEST_POOL)
    rules = _rule_set(command.rules)
    starts_at = _start_instant(command, rules)
    rules = check_rule_set(rules, command.rules)
    if command.contest in state.contests:
        raise Refused("duplicate_contest", "contest", command.contest)
    if pool % unit:
        raise Refused("pool_not_payable", "pool", values.format_fixed(pool, values.MONEY))
    if rules.trading is None and (command.starts_at is not None or command.series is not None):
        raise Refused("not_trading", "rules", rules.name)
    weekly = rules.trading is not None and rules.trading.cohorts == "weekly"
    if weekly and (cohort := state.cohorts.get(command.series or "", {}).get(starts_at)):
        detail = f"{cohort!r} is the cohort of {values.format_instant(starts_at)}"
        raise Refused("duplicate_cohort", "starts_at", command.starts_at, detail)
    return events.ContestOpened(
        at=at,
        contest=command.contest,
        title=command.title,
        rules=rules,
        pool=pool,
        currency=command.currency,
        payable_unit=unit,
        starts_at=starts_at if rules.trading is not None else None,
        series=command.series or "",
    )


def check_rule_set(rules: RuleSet | None, written: commands.Rules) -> RuleSet:
    """Return a consistent rule set; written: as in the command. Refuses: unknown_rules (rules is None: there is no such
    preset), then rules_not_consistent.
    """
    if rules is None:
        near = nearest(str(written), PRESETS)
        detail = f"no such preset{f'; the nearest is {near}' * bool(near)}; the presets are {', '.join(PRESETS)}"
        raise Refused("unknown_rules", "rules", written, detail)
    if wrong := inconsistency(rules):
        raise Refused("rules_not_consistent", "rules", rules.name, wrong)
    return rules


def _rule_set(written: commands.Rules) -> RuleSet | None:
    """Return the rule set of a preset's name or a dict; None if there is no such preset."""
    if isinstance(written, dict):
        return commands.read_rule_set(written, "rules")
    return PRESETS.get(written) if isinstance(written, str) else written


def start_of(command: commands.OpenContest) -> int:
    """Return when a contest starts, µs, by its own rules. Refuses: out_of_range, and what cannot be read."""
    return _start_instant(command, _rule_set(command.rules))


def _start_instant(command: commands.OpenContest, rules: RuleSet | None) -> int:
    """Return when the contest starts, µs: a weekly cohort starts on a Sunday, which must not be before the year 1."""
    starts_at = values.read_instant(command.at if command.starts_at is None else command.starts_at)
    if rules is None or rules.trading is None or rules.trading.cohorts == "none":
        return starts_at
    if latest_sunday(starts_at) < values.FIRST_INSTANT:
        raise Refused("out_of_range", "starts_at", command.starts_at, "its week starts before the year 1")
    return latest_sunday(starts_at)


def add_question(command: commands.AddQuestion, state: State) -> events.QuestionAdded:
    """Refuses, first that applies: malformed (spot_at and spots), out_of_range, unknown_contest, unknown_question,
    wrong_order_of_instants, contest_finalized, question_in_contest, unscorable_question, no_hidden_period.
    """
    if command.spot_at is not None and command.spots is not None:
        raise Refused("malformed", "spots", None, "give either spot_at or spots")
    weight = values.read_fixed(command.weight, values.WEIGHT, "weight", 0, values.LARGEST_WEIGHT)
    hidden = command.hidden_coverage_weight
    share = (
        None if hidden is None else values.read_fixed(hidden, values.WEIGHT, "hidden_coverage_weight", 0, values.WEIGHT)
    )
    spot_at = None if command.spot_at is None else values.read_instant(command.spot_at)
    spots = _read_spots(command.spots)
    contest = state.contest(command.contest)
    question = state.question(command.question)
    if spot_at is not None and not question.opens_at <= spot_at <= question.closes_at:
        raise Refused("wrong_order_of_instants", "spot_at", command.spot_at)
    instants = [spot.at for spot in spots]
    if any(not question.opens_at <= at <= question.closes_at for at in instants) or instants != sorted({*instants}):
        detail = "spots are in increasing order, from opens_at to closes_at"
        raise Refused("wrong_order_of_instants", "spots", None, detail)
    state.open_contest(command.contest)
    if (command.contest, command.question) in state.entries:
        raise Refused("question_in_contest", "question", command.question)
    if wrong := why_unscorable(question.range, contest.rules, len(question.outcomes)):
        raise Refused("unscorable_question", "question", command.question, wrong)
    reveals_at = question.reveals_at
    is_all_hidden = reveals_at == question.closes_at and share != values.WEIGHT
    if share is not None and (reveals_at is None or is_all_hidden):
        raise Refused("no_hidden_period", "hidden_coverage_weight", str(hidden))
    return events.QuestionAdded(
        at=values.read_instant(command.at),
        contest=command.contest,
        question=command.question,
        weight=weight,
        hidden_coverage_weight=share,
        spot_at=spot_at,
        spots=spots,
    )


def _read_spots(spots: tuple[commands.Spot, ...] | None) -> tuple[events.Spot, ...]:
    """Return the instants that count, with their weights; none if none are given. Refuses: out_of_range."""
    if spots is None:
        return ()
    if not 0 < len(spots) <= values.MOST_SPOTS:
        raise Refused("out_of_range", "spots", len(spots), f"give 1 to {values.MOST_SPOTS} instants")
    for spot in spots:
        if not 0 < spot.weight <= values.LARGEST_SPOT_WEIGHT:
            detail = f"a weight is a whole number from 1 to {values.LARGEST_SPOT_WEIGHT}"
            raise Refused("out_of_range", "spots.weight", spot.weight, detail)
    return tuple(events.Spot(at=values.read_instant(spot.at), weight=spot.weight) for spot in spots)


def enrol_participant(command: commands.EnrolParticipant, state: State) -> tuple[events.AnyEvent, ...]:
    """Return the enrolment, which replaces an earlier one; in a trading contest, the only one, with the starting cash.

    Refuses, first that applies: unknown_contest, contest_finalized, enrolled_already, contest_complete.
    """
    contest, at = state.open_contest(command.contest), values.read_instant(command.at)
    enrolled = events.ParticipantEnrolled(
        at=at,
        contest=command.contest,
        participant=command.participant,
        entrant=command.entrant or "",
        bot=command.bot,
        family=command.family or "",
        release=command.release or "",
    )
    if contest.rules.trading is None:
        return (enrolled,)
    if state.account_key(command.contest, command.participant) in state.accounts:
        raise Refused("enrolled_already", "participant", command.participant)
    if contest.complete():
        raise Refused("contest_complete", "contest", command.contest)
    cash = contest.rules.trading.starting_cash_micros
    return enrolled, events.CashGranted(at=at, contest=command.contest, participant=command.participant, amount=cash)


def exclude_participant(command: commands.ExcludeParticipant, state: State) -> events.ParticipantExcluded:
    """A later exclusion replaces an earlier one. Refuses, first that applies: unknown_contest, contest_finalized."""
    state.open_contest(command.contest)
    return events.ParticipantExcluded(
        at=values.read_instant(command.at),
        contest=command.contest,
        participant=command.participant,
        level=command.level,
        reason=command.reason,
    )


def finalize_contest(command: commands.FinalizeContest, state: State) -> events.ContestFinalized:
    """Refuses, first that applies: unknown_contest, contest_finalized, contest_not_complete."""
    contest = state.open_contest(command.contest)
    if contest.rules.trading is not None and not contest.can_end():
        waiting, positions = contest.enrolled - contest.decided, contest.open
        detail = f"participants without a decision: {waiting}, open positions: {positions}"
        raise Refused("contest_not_complete", "contest", command.contest, detail)
    return events.ContestFinalized(at=values.read_instant(command.at), contest=command.contest)


def pay_prizes(command: commands.PayPrizes, state: State) -> tuple[events.PrizePaid, ...]:
    """Return one event for each winner who is not paid yet, by id. Refuses, first that applies: unknown_contest,
    contest_not_finalized, prizes_paid (the whole pool), prizes_unknown, nobody_wins, prizes_differ (a prize that is
    recorded as paid is not the leaderboard's).

    Raises ValueError if `state.prizes` returns prizes that no leaderboard can give.
    """
    at = values.read_instant(command.at)
    contest = state.contest(command.contest)
    if not contest.finalized:
        raise Refused("contest_not_finalized", "contest", command.contest)
    if contest.is_paid:
        raise Refused("prizes_paid", "contest", command.contest)
    if state.prizes is None:
        raise Refused("prizes_unknown", "contest", command.contest)
    prizes = state.prizes(command.contest)
    if not prizes and contest.pool and contest.rules.take == "none":
        detail = f"the rules {contest.rules.name} have no take; they never pay, so that its pool stays unpaid"
        remedy = "to pay it, open a contest of the same questions whose rules have a take: `forecast-ledger rules`"
        raise Refused("nobody_wins", "contest", command.contest, detail, remedy=remedy)
    if not prizes:
        raise Refused("nobody_wins", "contest", command.contest)
    _check_prizes(prizes, command.contest, state)
    _check_paid(prizes, command.contest, state)
    return tuple(
        events.PrizePaid(at=at, contest=command.contest, participant=winner, amount=amount)
        for winner, amount in sorted(prizes.items())
        if (command.contest, winner) not in state.paid
    )


def contest_opened(event: events.ContestOpened, state: State, _: int) -> tuple[Write, ...]:
    """Add the contest; a cohort also to its series."""
    opened = ContestState(event.rules, event.pool, event.payable_unit, finalized=False, paid=0)
    if event.starts_at is None:
        return ((state.contests, event.contest, opened),)
    opened = structs.replace(opened, starts_at=event.starts_at, series=event.series)
    writes: tuple[Write, ...] = ((state.contests, event.contest, opened),)
    if event.rules.trading is None or event.rules.trading.cohorts == "none":
        return writes
    cohorts = state.cohorts.get(event.series, {})
    return *writes, (state.cohorts, event.series, cohorts), (cohorts, event.starts_at, event.contest)


def question_added(event: events.QuestionAdded, state: State, _: int) -> tuple[Write, ...]:
    """Add the question to the contest."""
    state.contests[event.contest]
    state.questions[event.question]
    spots = [*([] if event.spot_at is None else [event.spot_at]), *(spot.at for spot in event.spots)]
    entry = EntryState(min(spots, default=values.NEVER), event.hidden_coverage_weight not in {None, values.WEIGHT})
    return ((state.entries, (event.contest, event.question), entry),)


def participant_enrolled(event: events.ParticipantEnrolled, state: State, _: int) -> tuple[Write, ...]:
    """Note that the participant was enrolled."""
    state.contests[event.contest]
    return ((state.enrolled, event.participant, True),)


def participant_excluded(event: events.ParticipantExcluded, state: State, position: int) -> tuple[Write, ...]:
    """Remember who is hidden."""
    state.contests[event.contest]
    key, exclusion = (event.contest, event.participant), (position, event.level == "hidden")
    change = state.is_hidden(*key) - exclusion[1]
    return ((state.hidden, key, exclusion), *count_again(event.contest, state.account_key(*key), change, state))


def count_again(name: str, key: tuple[str, str], change: int, state: State) -> tuple[Write, ...]:
    """Let a trading contest no longer wait for an account of this key (change: -1), or wait for it again (1)."""
    contest, account = state.contests[name], state.accounts.get(key)
    trading = contest.rules.trading
    if account is None or trading is None or trading.completed_by == "all" or not change:
        return ()
    held = sum(state.positions[*key, number].is_open() for number in range(1, account.positions + 1))
    contest = structs.replace(
        contest,
        enrolled=contest.enrolled + change,
        decided=contest.decided + change * (account.taken > 0),
        open=contest.open + change * held,
    )
    return ((state.contests, name, contest),)


def contest_finalized(event: events.ContestFinalized, state: State, _: int) -> tuple[Write, ...]:
    """Mark the contest as finalized."""
    return ((state.contests, event.contest, structs.replace(state.contests[event.contest], finalized=True)),)


def prize_paid(event: events.PrizePaid, state: State, _: int) -> tuple[Write, ...]:
    """Add a prize to those paid by the contest and to the participant."""
    contest, key = state.contests[event.contest], (event.contest, event.participant)
    return (
        (state.contests, event.contest, structs.replace(contest, paid=contest.paid + event.amount)),
        (state.paid, key, state.paid.get(key, 0) + event.amount),
    )


def _check_prizes(prizes: Mapping[str, int], contest: str, state: State) -> None:
    """Raise ValueError unless the whole pool, in payable units, goes to participants who forecast in the contest."""
    pool, unit = state.contests[contest].pool, state.contests[contest].payable_unit
    questions = [question for contest_of, question in state.entries if contest_of == contest]
    strangers = {*prizes}
    for question in questions:
        strangers = strangers and {who for who in strangers if not _forecast_on(question, who, state)}
    payable = all(type(amount) is int and amount > 0 and amount % unit == 0 for amount in prizes.values())
    if strangers or not payable or sum(prizes.values()) != pool:
        raise ValueError(f"contest {contest!r}: no leaderboard can give these prizes: {dict(prizes)!r}")


def _forecast_on(question: str, participant: str, state: State) -> bool:
    """Return whether a participant forecast on a question, under any id; a sealed board may have one that is former."""
    return state.last_of(question, state.renamed.get(participant) or participant) is not None


def _check_paid(prizes: Mapping[str, int], contest: str, state: State) -> None:
    """Refuse if a prize that was paid is not the one due."""
    paid = {winner: amount for winner in prizes if (amount := state.paid.get((contest, winner)))}
    for winner, amount in sorted(paid.items()):
        if amount != prizes[winner]:
            was, due = (values.format_fixed(prize, values.MONEY) for prize in (amount, prizes[winner]))
            raise Refused(
                "prizes_differ", "contest", contest, f"{winner!r} was paid {was}, but the leaderboard gives {due}"
            )
    if sum(paid.values()) != state.contests[contest].paid:
        raise Refused(
            "prizes_differ", "contest", contest, "a participant was paid to whom the leaderboard gives nothing"
        )


def check_present(command: Any, state: State) -> None:
    """Refuse a command under an id that a participant no longer has: participant_renamed."""
    if state.renamed:
        for field in ("participant", "entrant"):
            _check_present(field, getattr(command, field, None), state)


def _check_present(field: str, name: str | None, state: State) -> None:
    if name is not None and (present := state.renamed.get(name)):
        raise Refused("participant_renamed", field, name, f"{name!r} is {present!r} now")


def rename_participant(command: commands.RenameParticipant, state: State) -> events.ParticipantRenamed:
    """Refuses, first that applies: participant_renamed (it has another id now, or `to` is a former id of somebody
    else), unknown_participant, same_participant, account_keeps_id (both ids have an account in a contest).
    """
    former = state.former.get(command.participant, ())
    if command.to not in former:
        _check_present("to", command.to, state)
    if not former and not state.takes_part(command.participant):
        raise Refused("unknown_participant", "participant", command.participant)
    if command.to == command.participant:
        raise Refused("same_participant", "to", command.to)
    if contest := _with_two_accounts(command.participant, command.to, state):
        detail = f"{command.participant!r} and {command.to!r} each have an account in {contest!r}"
        raise Refused("account_keeps_id", "participant", command.participant, detail)
    return events.ParticipantRenamed(
        at=values.read_instant(command.at),
        participant=command.participant,
        to=command.to,
        reason=command.reason,
    )


def _with_two_accounts(participant: str, to: str, state: State) -> str:
    """Return the first contest that is not finalized, and in which both ids have an account; "" if there is none."""
    keys = ({state.account_key(name, who) for who in (participant, to)} for name in _trading(state))
    both = (pair for pair in keys if len(pair) == 2 and pair <= state.accounts.keys())
    return min((name for pair in both for name, _ in pair), default="")


def _trading(state: State) -> Iterator[str]:
    """Yield the trading contests that are not finalized."""
    return (name for name, each in state.contests.items() if each.rules.trading is not None and not each.finalized)


def participant_renamed(event: events.ParticipantRenamed, state: State, position: int) -> tuple[Write, ...]:
    """Note which id each former one stands for. Raises Corrupt: both have an account in a contest."""
    if contest := _with_two_accounts(event.participant, event.to, state):
        raise Corrupt(position, f"{event.participant!r} and {event.to!r} each have an account in {contest!r}")
    everyone = (*state.former.get(event.to, ()), *state.former.get(event.participant, ()), event.participant)
    former = tuple(name for name in dict.fromkeys(everyone) if name != event.to)
    return (
        *((state.renamed, name, event.to) for name in former),
        (state.renamed, event.to, ""),
        (state.former, event.participant, ()),
        (state.former, event.to, former),
        *(write for contest in _trading(state) for write in _moved(event, contest, state)),
    )


def _moved(event: events.ParticipantRenamed, contest: str, state: State) -> Iterator[Write]:
    """Yield the changes of a trading contest: whose the account is, and which exclusion counts, the later of two."""
    old, new = (contest, event.participant), (contest, event.to)
    key, holder = state.account_key(*old), old
    if key in state.accounts:
        yield state.opened_as, new, key[1]
    else:
        key, holder = state.account_key(*new), new
    last = max(state.hidden.get(who, NOT_EXCLUDED) for who in (old, new))
    if last != NOT_EXCLUDED:
        yield state.hidden, new, last
    yield from count_again(contest, key, state.is_hidden(*holder) - last[1], state)


DECIDE: dict[type, Decide] = {
    commands.OpenContest: open_contest,
    commands.AddQuestion: add_question,
    commands.EnrolParticipant: enrol_participant,
    commands.ExcludeParticipant: exclude_participant,
    commands.FinalizeContest: finalize_contest,
    commands.PayPrizes: pay_prizes,
    commands.RenameParticipant: rename_participant,
}
EVOLVE: dict[type, Evolve] = {
    events.ContestOpened: contest_opened,
    events.QuestionAdded: question_added,
    events.ParticipantEnrolled: participant_enrolled,
    events.ParticipantExcluded: participant_excluded,
    events.ContestFinalized: contest_finalized,
    events.PrizePaid: prize_paid,
    events.ParticipantRenamed: participant_renamed,
}
