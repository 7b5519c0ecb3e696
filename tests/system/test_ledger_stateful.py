"""Random commands, alone and in batches, through old and newly opened ledgers, against a naive model of the rules."""

import copy
import dataclasses
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands as said
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import Attestation
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import NOW

Told = str | tuple[int, int, bool]  # a refusal's code; or first and last log position, and whether it was a retry


def decimal(number: object) -> Decimal:
    """The number as it is written."""
    return Decimal(str(number))


@dataclass
class Question:
    """A question of the model; instants are RFC 3339 texts, all in UTC and of one form."""

    opened: said.OpenQuestion
    outcomes: list[str]
    closed_at: str
    fate: str = "open"
    known_at: str = ""  # of the resolution that stands, or stood before it was annulled
    last: dict[str, str] = field(default_factory=dict)  # participant -> instant of their last word
    standing: dict[str, str] = field(default_factory=dict)  # participant -> instant at which their forecast ends
    quoted_at: str = ""
    names: list[str] = field(default_factory=list)  # all that its outcomes ever had
    changed_at: str = ""
    grace_ends_at: str = ""


@dataclass
class Contest:
    """A contest of the model."""

    opened: said.OpenContest
    questions: dict[str, said.AddQuestion] = field(default_factory=dict)
    finalized: bool = False
    winners: int = 0
    paid: bool = False


@dataclass
class Model:
    """The rules as the task states them: for each command, which faults it has, in the documented order."""

    questions: dict[str, Question] = field(default_factory=dict)
    contests: dict[str, Contest] = field(default_factory=dict)
    people: set[str] = field(default_factory=set)  # the ids under which anything is recorded
    renamed: dict[str, str] = field(default_factory=dict)  # former id -> the present one
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)  # command id -> first and last log position
    length: int = 0

    def standing(self) -> list[tuple[str, str]]:
        """The questions and participants of the forecasts that stand."""
        return [(name, who) for name, question in self.questions.items() for who in sorted(question.standing)]

    def payable(self) -> list[str]:
        """The contests that are final and have winners, paid or not."""
        return [name for name, contest in self.contests.items() if contest.winners]

    def decide(self, command: AnyCommand) -> str | None:
        """The code with which a new command is refused; None if it is accepted, and then it has happened."""
        faults, happens = RULES[type(command)]
        who = getattr(command, "participant", "")
        code = "participant_renamed" if who in self.renamed else next(faults(self, command), None)
        if code is None:
            self.people |= {who} - {""}
            rows = self.rows_of(command)
            happens(self, command)
            self.positions[command.id] = self.length + 1, self.length + rows
            self.length += rows
        return code

    def rows_of(self, command: AnyCommand) -> int:
        """The number of events of an accepted command: one, but for prizes, and for an answer that stands again."""
        if isinstance(command, said.PayPrizes):
            return self.contests[command.contest].winners
        if isinstance(command, said.RevokeResolution):
            question = self.questions[command.question]
            return 2 if question.fate == "annulled" and question.known_at else 1
        if isinstance(command, said.RestateForecasts):
            return 1 + len(command.forecasts)
        return 1


def sound(span: said.Range) -> bool:
    """Return whether a range asks either for bins or for levels that increase between 0 and 1."""
    if not decimal(span.lower) < decimal(span.upper):
        return False
    if span.levels is None:
        return span.decimals is None and 1 <= (200 if span.bins is None else span.bins) <= 10_000
    levels = [decimal(level) for level in span.levels]
    inside = all(0 < level < 1 for level in levels)
    return bool(levels) and inside and levels == sorted(set(levels)) and span.bins is None


def form(question: said.OpenQuestion) -> str:
    """The field that a forecast on the question has."""
    numeric = "quantiles" if question.range and question.range.levels else "cdf"
    return {"binary": "probability", "multiple_choice": "probabilities", "numeric": numeric}[question.kind]


def no_open_faults(model: Model, command: said.OpenQuestion) -> Iterator[str]:
    """Faults of open_question."""
    span = command.range
    if span and not sound(span):
        yield "out_of_range"
    if command.question in model.questions:
        yield "duplicate_question"
    names = ["yes", "no"] if command.kind == "binary" else list(command.outcomes or [])
    if command.kind != "numeric" and (len(names) < 2 or len(names) != len(set(names))):
        yield "duplicate_outcome"
    if (command.outcomes is not None, span is not None) != {
        "binary": (False, False),
        "multiple_choice": (True, False),
        "numeric": (False, True),
    }[command.kind]:
        yield "wrong_fields_for_kind"
    if not str(command.opens_at) < str(command.closes_at):
        yield "wrong_order_of_instants"
    if command.reveals_at and not str(command.opens_at) < str(command.reveals_at) <= str(command.closes_at):
        yield "wrong_order_of_instants"


def open_question(model: Model, command: said.OpenQuestion) -> None:
    """It is there."""
    names = ["yes", "no"] if command.kind == "binary" else list(command.outcomes or [])
    model.questions[command.question] = Question(command, names, str(command.closes_at), names=names)


def distribution_faults(question: Question, command: said.SubmitForecast) -> Iterator[str]:
    """Faults of a distribution, in view of the question."""
    wanted = form(question.opened)
    forms = ["probability", "probabilities", "cdf", "quantiles"]
    given = {name for name in forms if getattr(command, name) is not None}
    if given != {wanted}:
        yield "wrong_distribution"
    if wanted == "probabilities" and command.probabilities is not None:
        if not set(command.probabilities) <= set(question.outcomes):
            yield "unknown_outcome"
        if set(command.probabilities) != set(question.outcomes):
            yield "wrong_length"
        total = sum(map(decimal, command.probabilities.values()), Decimal(0))
        if not Decimal("0.999999") <= total <= Decimal("1.000001"):
            yield "not_summing_to_one"
    if question.opened.range and command.cdf is not None:
        span = question.opened.range
        heights = [decimal(height) for height in command.cdf]
        if len(heights) != (span.bins or 0) + 1:
            yield "wrong_length"
        if heights != sorted(heights):
            yield "decreasing"
        if (heights[0] > 0 and not span.open_lower) or (heights[-1] < 1 and not span.open_upper):
            yield "open_end_needed"
    if question.opened.range and command.quantiles is not None:
        yield from quantile_faults(question.opened.range, [decimal(quantile) for quantile in command.quantiles])


def quantile_faults(span: said.Range, quantiles: list[Decimal]) -> Iterator[str]:
    """Faults of quantiles on a range with levels."""
    if len(quantiles) != len(span.levels or ()):
        yield "wrong_length"
    if quantiles != sorted(quantiles):
        yield "decreasing"
    below, above = quantiles[0] < decimal(span.lower), quantiles[-1] > decimal(span.upper)
    if (below and not span.open_lower) or (above and not span.open_upper) or quantiles[-1] > FARTHEST:
        yield "open_end_needed"


def submit_faults(model: Model, command: said.SubmitForecast) -> Iterator[str]:
    """Faults of submit_forecast."""
    numbers = [command.probability or 0, *(command.probabilities or {}).values(), *(command.cdf or ())]
    if any(not 0 <= decimal(number) <= 1 for number in numbers) or "1e31" in (command.quantiles or ()):
        yield "out_of_range"
    if command.question not in model.questions:
        yield "unknown_question"
    question = model.questions[command.question]
    yield from distribution_faults(question, command)
    yield from timing_faults(question, command)
    if command.until is not None and str(command.until) <= str(command.at):
        yield "wrong_order_of_instants"
    if str(command.at) < max(question.last.get(command.participant, ""), question.changed_at):
        yield "out_of_order"


def submit_forecast(model: Model, command: said.SubmitForecast) -> None:
    """It stands."""
    question = model.questions[command.question]
    question.last[command.participant] = str(command.at)
    question.standing[command.participant] = str(command.until or "9")


def timing_faults(question: Question, command: AnyCommand) -> Iterator[str]:
    """Faults of whatever needs an open question."""
    if question.fate != "open":
        yield "question_resolved"
    if str(command.at) >= question.closed_at:
        yield "question_closed"


def withdraw_faults(model: Model, command: said.WithdrawForecast) -> Iterator[str]:
    """Faults of withdraw_forecast."""
    if command.question not in model.questions:
        yield "unknown_question"
    question = model.questions[command.question]
    yield from timing_faults(question, command)
    if str(command.at) < max(question.last.get(command.participant, ""), question.changed_at):
        yield "out_of_order"
    if str(command.at) >= question.standing.get(command.participant, ""):
        yield "nothing_standing"


def withdraw_forecast(model: Model, command: said.WithdrawForecast) -> None:
    """It stands no more."""
    question = model.questions[command.question]
    question.last[command.participant] = str(command.at)
    question.standing.pop(command.participant, None)


def restate_faults(model: Model, command: said.RestateForecasts) -> Iterator[str]:
    """Faults of restate_forecasts: those of each forecast, as if the question were not resolved."""
    made, before = command.forecasts, ""
    known = {name: dataclasses.replace(question, fate="open", last={}) for name, question in model.questions.items()}
    for forecast in made:
        yield from submit_faults(Model(known), forecast.made(command.question, command.participant))
        if str(forecast.at) <= before:
            yield "out_of_order"
        before = str(forecast.at)
    if command.question not in model.questions:
        yield "unknown_question"
    if not made and command.participant not in model.questions[command.question].last:
        yield "nothing_standing"


def restate_forecasts(model: Model, command: said.RestateForecasts) -> None:
    """What was said is forgotten, and the last of the others stands."""
    question = model.questions[command.question]
    question.last.pop(command.participant, None)
    question.standing.pop(command.participant, None)
    for forecast in command.forecasts:
        submit_forecast(model, forecast.made(command.question, command.participant))


def rename_faults(model: Model, command: said.RenameParticipant) -> Iterator[str]:
    """Faults of rename_participant. No contest here has trading."""
    if model.renamed.get(command.to, command.participant) != command.participant:
        yield "participant_renamed"
    if command.participant not in {*model.people, *model.renamed.values()}:
        yield "unknown_participant"
    if command.to == command.participant:
        yield "same_participant"


def rename(model: Model, command: said.RenameParticipant) -> None:
    """All is moved to the other id: on each question, what was said last is the last, of one instant a forecast."""
    old, new = command.participant, command.to
    model.people.add(new)
    model.renamed = {who: new if last == old else last for who, last in model.renamed.items()} | {old: new}
    model.renamed.pop(new, None)
    for question in model.questions.values():
        both = [(question.last.pop(who), question.standing.pop(who, "")) for who in (old, new) if who in question.last]
        if both:
            question.last[new], stands = max(both)
            question.standing |= {new: stands} if stands else {}


def amend_faults(model: Model, command: said.AmendQuestion) -> Iterator[str]:
    """Faults of amend_question."""
    if (command.contest is None) != (command.weight is None) or (command.title is None and command.contest is None):
        yield "malformed"
    if command.weight is not None and not 0 <= decimal(command.weight) <= 10**6:
        yield "out_of_range"
    if command.contest is not None and command.contest not in model.contests:
        yield "unknown_contest"
    if command.question not in model.questions:
        yield "unknown_question"
    if command.contest is not None:
        contest = model.contests[command.contest]
        if contest.finalized:
            yield "contest_finalized"
        if command.question not in contest.questions:
            yield "question_not_in_contest"


def close_faults(model: Model, command: said.CloseQuestion) -> Iterator[str]:
    """Faults of close_question."""
    if command.question not in model.questions:
        yield "unknown_question"
    question = model.questions[command.question]
    yield from timing_faults(question, command)
    if str(command.at) <= str(question.opened.opens_at):
        yield "before_opening"


def close_question(model: Model, command: said.CloseQuestion) -> None:
    """Closed at that instant."""
    model.questions[command.question].closed_at = str(command.at)


def change_faults(model: Model, command: said.ChangeOutcomes) -> Iterator[str]:
    """Faults of change_outcomes."""
    added, removed = [*(command.add or ())], [*(command.remove or ())]
    if bool(added) == bool(removed) or bool(added) != bool(command.grace_ends_at):
        yield "malformed"
    if command.question not in model.questions:
        yield "unknown_question"
    question = model.questions[command.question]
    left = [name for name in question.outcomes if name not in removed]
    if question.opened.kind == "multiple_choice":
        if len({*question.names, *added}) < len(question.names) + len(added):
            yield "duplicate_outcome"
        if len({*removed}) < len(removed) or len(left) < 2:
            yield "duplicate_outcome"
    else:
        yield "wrong_fields_for_kind"
    if not {*removed} <= {*question.outcomes} or (question.opened.outcomes or "?")[-1] in removed:
        yield "unknown_outcome"
    if question.quoted_at:
        yield "outcomes_quoted"
    yield from timing_faults(question, command)
    if str(command.at) < str(question.opened.opens_at):
        yield "before_opening"
    if command.grace_ends_at and str(command.grace_ends_at) <= str(command.at):
        yield "wrong_order_of_instants"
    if str(command.at) < max(question.changed_at, question.grace_ends_at, *question.last.values(), ""):
        yield "out_of_order"


def change_outcomes(model: Model, command: said.ChangeOutcomes) -> None:
    """Others are there; forecasts without the new ones end with the grace period."""
    question, added = model.questions[command.question], [*(command.add or ())]
    question.outcomes = [name for name in question.outcomes if name not in (command.remove or ())] + added
    question.names, question.changed_at = question.names + added, str(command.at)
    if command.grace_ends_at:
        question.grace_ends_at = str(command.grace_ends_at)
        question.standing = {who: min(ends, question.grace_ends_at) for who, ends in question.standing.items()}


def rescheduled(question: Question, command: said.RescheduleQuestion) -> tuple[said.OpenQuestion, str]:
    """The question with the times that are given, and when it closes: a new close ends an early one."""
    given = {name: getattr(command, name) for name in ("opens_at", "closes_at", "reveals_at")}
    new = msgspec.structs.replace(question.opened, **{name: at for name, at in given.items() if at})
    return new, str(command.closes_at or question.closed_at)


def reschedule_faults(model: Model, command: said.RescheduleQuestion) -> Iterator[str]:
    """Faults of reschedule_question."""
    if not (command.opens_at or command.closes_at or command.reveals_at):
        yield "malformed"
    if command.question not in model.questions:
        yield "unknown_question"
    question = model.questions[command.question]
    if question.fate != "open":
        yield "question_resolved"
    new, closed_at = rescheduled(question, command)
    opens_at, closes_at, reveals_at = str(new.opens_at), str(new.closes_at), str(new.reveals_at or "")
    if not opens_at < closes_at or closed_at <= opens_at:
        yield "wrong_order_of_instants"
    if reveals_at and not opens_at < reveals_at <= closes_at:
        yield "wrong_order_of_instants"
    contests = [contest for contest in model.contests.values() if not contest.finalized]
    entries = [contest.questions[command.question] for contest in contests if command.question in contest.questions]
    if any(str(entry.spot_at or "9") < opens_at for entry in entries):
        yield "wrong_order_of_instants"
    weights = [decimal(entry.hidden_coverage_weight) for entry in entries if entry.hidden_coverage_weight is not None]
    if reveals_at == closes_at and any(weight < 1 for weight in weights):
        yield "no_hidden_period"


def reschedule_question(model: Model, command: said.RescheduleQuestion) -> None:
    """It has other times."""
    question = model.questions[command.question]
    question.opened, question.closed_at = rescheduled(question, command)


def resolve_faults(model: Model, command: said.ResolveQuestion) -> Iterator[str]:
    """Faults of resolve_question."""
    if not in_range(command.payouts):
        yield "out_of_range"
    if command.question not in model.questions:
        yield "unknown_question"
    question = model.questions[command.question]
    span = question.opened.range
    answers = [command.outcome, command.payouts, command.value]
    if [answer is not None for answer in answers].count(True) != 1 or (command.value is None) != (span is None):
        yield "wrong_resolution"
    if command.outcome is not None and command.outcome not in question.outcomes:
        yield "unknown_outcome"
    if command.payouts is not None:
        yield from payout_faults(question, command.payouts)
    if span and command.value is not None:
        value = decimal(command.value)
        below, above = value < decimal(span.lower), value > decimal(span.upper)
        if (below and not span.open_lower) or (above and not span.open_upper):
            yield "open_end_needed"
        if span.levels and value > FARTHEST:
            yield "open_end_needed"
    if question.fate != "open":
        yield "question_resolved"
    known_at = known(question, command)
    if min(str(command.at), known_at) < str(question.opened.opens_at):
        yield "before_opening"
    if known_at > str(command.at):
        yield "wrong_order_of_instants"


def known(question: Question, command: said.ResolveQuestion) -> str:
    """When an answer was known: as given, else by the earlier of the command's instant and the scheduled close."""
    return str(command.known_at or min(str(command.at), str(question.opened.closes_at)))


def payout_faults(question: Question, payouts: dict[str, Any]) -> Iterator[str]:
    """Faults of payouts, in view of the question."""
    if not set(payouts) <= set(question.outcomes):
        yield "unknown_outcome"
    if len(payouts) != len(question.outcomes):
        yield "wrong_length"
    if sum(map(decimal, payouts.values()), Decimal(0)) != 1:
        yield "not_summing_to_one"


def in_range(chances: dict[str, Any] | None) -> bool:
    """Return whether all probabilities are from 0 to 1; true if there are none."""
    return all(0 <= decimal(chance) <= 1 for chance in (chances or {}).values())


def quote_faults(model: Model, command: said.Quote) -> Iterator[str]:
    """Faults of quote, of one question or of many."""
    quotes = command.quotes or [said.Prices(question=command.question or "", prices=command.prices or {})]
    if (command.question is None) == (command.quotes is None):
        yield "malformed"
    if not all(in_range(quote.prices or {}) for quote in quotes):
        yield "out_of_range"
    if any(quote.question not in model.questions for quote in quotes):
        yield "unknown_question"
    if len({quote.question for quote in quotes}) < len(quotes):
        yield "duplicate_question"
    for quote in quotes:
        question = model.questions[quote.question]
        if question.opened.kind == "numeric" or not quote.prices:
            yield "wrong_fields_for_kind"
        if not set(quote.prices or {}) <= {*(["yes"] if question.opened.kind == "binary" else question.outcomes)}:
            yield "unknown_outcome"
    if str(command.quoted_at) > str(command.at):
        yield "wrong_order_of_instants"
    if any(str(command.quoted_at) < model.questions[quote.question].quoted_at for quote in quotes):
        yield "out_of_order"
    if any(str(command.at) < model.questions[quote.question].changed_at for quote in quotes):
        yield "out_of_order"


def quote_prices(model: Model, command: said.Quote) -> None:
    """The last instant of a price of each question."""
    for name in [quote.question for quote in command.quotes or []] or [command.question or ""]:
        model.questions[name].quoted_at = str(command.quoted_at)


def money_faults(model: Model, command: said.DepositCash | said.WithdrawCash) -> Iterator[str]:
    """Faults of moving cash: none of the model's contests has any."""
    if not 0 < decimal(command.amount) <= 10**9:
        yield "out_of_range"
    yield from board_faults(model, command.contest)
    yield "not_trading"


def fate_faults(model: Model, command: AnyCommand, question: str, codes: dict[str, str]) -> Iterator[str]:
    """Faults of annulling and revoking: by what has become of the question."""
    if question not in model.questions:
        yield "unknown_question"
    code = codes.get(model.questions[question].fate)
    if code:
        yield code


def resolve(model: Model, command: said.ResolveQuestion) -> None:
    """It has an answer."""
    question = model.questions[command.question]
    question.fate, question.known_at = "resolved", known(question, command)


def annul(model: Model, command: said.AnnulQuestion | said.CancelMarket) -> None:
    """It counts nowhere."""
    model.questions[command.question].fate = "annulled"


def revoke_faults(model: Model, command: said.RevokeResolution) -> Iterator[str]:
    """Faults of revoking: nothing to revoke, or too early for the answer that stands again."""
    yield from fate_faults(model, command, command.question, {"open": "not_resolved"})
    question = model.questions[command.question]
    if question.fate == "annulled" and str(command.at) < question.known_at:
        yield "wrong_order_of_instants"


def revoke(model: Model, command: said.RevokeResolution) -> None:
    """An annulled question has the answer that it had before, if it had one; a resolved one has none."""
    question = model.questions[command.question]
    if question.fate == "annulled" and question.known_at:
        question.fate = "resolved"
    else:
        question.fate, question.known_at = "open", ""


def found_faults(model: Model, command: said.OpenContest) -> Iterator[str]:
    """Faults of open_contest."""
    pool, unit = decimal(command.pool or 0), decimal(command.payable_unit)
    if pool < 0 or unit <= 0:
        yield "out_of_range"
    if command.rules == "relative":
        yield "unknown_rules"
    if command.rules == EMPTY:
        yield "rules_not_consistent"
    if command.contest in model.contests:
        yield "duplicate_contest"
    if pool % unit:
        yield "pool_not_payable"
    if command.series is not None:
        yield "not_trading"


def board_faults(model: Model, contest: str) -> Iterator[str]:
    """Faults of whatever needs a board that is not frozen."""
    if contest not in model.contests:
        yield "unknown_contest"
    if model.contests[contest].finalized:
        yield "contest_finalized"


def add_faults(model: Model, command: said.AddQuestion) -> Iterator[str]:
    """Faults of add_question."""
    hidden = command.hidden_coverage_weight
    if not 0 <= decimal(command.weight) <= 10**6 or not 0 <= decimal(hidden or 0) <= 1:
        yield "out_of_range"
    if command.contest not in model.contests:
        yield "unknown_contest"
    if command.question not in model.questions:
        yield "unknown_question"
    opened = model.questions[command.question].opened
    if command.spot_at and not str(opened.opens_at) <= str(command.spot_at) <= str(opened.closes_at):
        yield "wrong_order_of_instants"
    yield from board_faults(model, command.contest)
    contest = model.contests[command.contest]
    if command.question in contest.questions:
        yield "question_in_contest"
    if not scorable(opened, contest.opened.rules):
        yield "unscorable_question"
    nothing_hidden = opened.reveals_at is None
    nothing_follows = opened.reveals_at == opened.closes_at
    if hidden is not None and (nothing_hidden or (nothing_follows and decimal(hidden) < 1)):
        yield "no_hidden_period"


def scorable(question: said.OpenQuestion, rules: said.Rules) -> bool:
    """Return whether these rules have a kernel for such a question."""
    if rules == PINBALL:
        return form(question) == "quantiles"
    if rules == "autocast-2022":  # quantiles only as points on a closed range
        span = question.range
        return span is None or (span.levels == ("0.5",) and not span.open_lower and not span.open_upper)
    return form(question) != "quantiles"


def add_question(model: Model, command: said.AddQuestion) -> None:
    """It is in the contest."""
    model.contests[command.contest].questions[command.question] = command


def finalize(model: Model, command: said.FinalizeContest) -> None:
    """Its board is frozen: whoever has forecast on its questions by now wins, if there is a pool."""
    contest = model.contests[command.contest]
    contest.finalized = True
    forecasters = {who for question in contest.questions for who in model.questions[question].last}
    contest.winners = len(forecasters) if contest.opened.pool else 0


def pay_faults(model: Model, command: said.PayPrizes) -> Iterator[str]:
    """Faults of pay_prizes."""
    if command.contest not in model.contests:
        yield "unknown_contest"
    contest = model.contests[command.contest]
    if not contest.finalized:
        yield "contest_not_finalized"
    if contest.paid:
        yield "prizes_paid"
    if not contest.winners:
        yield "nobody_wins"


def pay_prizes(model: Model, command: said.PayPrizes) -> None:
    """It is paid."""
    model.contests[command.contest].paid = True


def nothing(model: Model, command: AnyCommand) -> None:
    """Nothing that a later command depends on."""


RULES: dict[type, tuple[Callable[[Model, Any], Iterator[str]], Callable[[Model, Any], object]]] = {
    said.OpenQuestion: (no_open_faults, open_question),
    said.SubmitForecast: (submit_faults, submit_forecast),
    said.WithdrawForecast: (withdraw_faults, withdraw_forecast),
    said.RestateForecasts: (restate_faults, restate_forecasts),
    said.RenameParticipant: (rename_faults, rename),
    said.AmendQuestion: (amend_faults, nothing),
    said.CloseQuestion: (close_faults, close_question),
    said.ChangeOutcomes: (change_faults, change_outcomes),
    said.RescheduleQuestion: (reschedule_faults, reschedule_question),
    said.ResolveQuestion: (resolve_faults, resolve),
    said.AnnulQuestion: (
        lambda model, command: fate_faults(model, command, command.question, {"annulled": "question_resolved"}),
        annul,
    ),
    said.CancelMarket: (
        lambda model, command: fate_faults(model, command, command.question, {"annulled": "question_resolved"}),
        annul,
    ),
    said.Quote: (quote_faults, quote_prices),
    said.DepositCash: (money_faults, nothing),
    said.WithdrawCash: (money_faults, nothing),
    said.RevokeResolution: (revoke_faults, revoke),
    said.OpenContest: (
        found_faults,
        lambda model, command: model.contests.update({command.contest: Contest(command)}),
    ),
    said.AddQuestion: (add_faults, add_question),
    said.EnrolParticipant: (lambda model, command: board_faults(model, command.contest), nothing),
    said.ExcludeParticipant: (lambda model, command: board_faults(model, command.contest), nothing),
    said.FinalizeContest: (lambda model, command: board_faults(model, command.contest), finalize),
    said.PayPrizes: (pay_faults, pay_prizes),
}

EMPTY = RuleSet(name="empty")  # no kernel
PINBALL = RuleSet(name="pinball", quantile_kernel="pinball", period="covered", total="mean")
FARTHEST = Decimal(10**10)  # 1e13 thousandths
HOURS = [f"2026-03-01T{hour:02}:00:00Z" for hour in range(10)]
CLOSED = said.Range(lower=0, upper=2, bins=2)
OPEN = said.Range(lower=0, upper=2, bins=2, open_lower=True, open_upper=True)
QUANTILES = said.Range(lower=0, upper=2, levels=("0.25", "0.75"), decimals=3, open_upper=True)
POINT = said.Range(lower=0, upper=2, levels=("0.5",), decimals=3)
SHAPES: list[dict[str, Any]] = [
    *[{"kind": "binary"}] * 4,
    *[{"kind": "multiple_choice", "outcomes": ("a", "b", "c")}] * 3,
    *[{"kind": "numeric", "range": CLOSED}, {"kind": "numeric", "range": OPEN}] * 2,
    *[{"kind": "numeric", "range": QUANTILES}, {"kind": "numeric", "range": POINT}] * 2,
    {"kind": "multiple_choice"},
    {"kind": "multiple_choice", "outcomes": ("a",)},
    {"kind": "multiple_choice", "outcomes": ("a", "b", "a")},
    {"kind": "binary", "outcomes": ("yes", "no")},
    {"kind": "numeric"},
    {"kind": "numeric", "range": said.Range(lower=2, upper=0, bins=2)},
    {"kind": "binary", "range": said.Range(lower=0, upper=2, bins=0)},
    {"kind": "numeric", "range": said.Range(lower=0, upper=2, bins=2, levels=("0.5",))},
    {"kind": "numeric", "range": said.Range(lower=0, upper=2, levels=())},
    {"kind": "numeric", "range": said.Range(lower=0, upper=2, levels=("0.5", "0.25"))},
    {"kind": "numeric", "range": said.Range(lower=0, upper=2, bins=2, decimals=3)},
    {"kind": "binary", "range": POINT},
]
CHANCES: list[dict[str, Any]] = [{"probability": chance} for chance in ("0.3", 1, 0, 0.5, "1.000000001", -1)]
CHOICES: list[dict[str, Any]] = [
    {"probabilities": dict(zip("abcd", chances, strict=False))}
    for chances in [
        ("0.2", "0.3", "0.5"),
        ("0.2", "0.3", "0.499999"),
        ("0.2", "0.3", "0.500001"),
        ("0.2", "0.3", "0.499998"),
        ("0.5", "0.5"),
        ("0.2", "0.3", "0.5", "0"),
        ("0.2", "0.3", "0.1", "0.4"),
        ("2", "0", "0"),
    ]
]
CHOICES += [
    {"probabilities": dict(zip(names, chances, strict=True))}
    for names, chances in [("bc", ("0.4", "0.6")), ("bcd", ("0.1", "0.2", "0.7")), ("ac", ("1", "0"))]
]
CURVES: list[dict[str, Any]] = [
    {"cdf": cdf}
    for cdf in [("0", "0.4", "1"), ("0", "0", "1"), ("0.1", "0.4", "0.9"), ("0.5", "0.4", "1"), ("0", "1"), (0, 2, 1)]
]
ROWS: list[dict[str, Any]] = [
    {"quantiles": row}
    for row in [("0", "2"), (1, 1), ("0.5", "1e10"), (1, "1e11"), (-1, 1), (2, 1), (1,), (1, 2, 3), (1, "1e31")]
]
STAMPED: list[dict[str, Any]] = [{}, {}, {"attestation": Attestation(newest_source="2026-02", note="by hand")}]
ENDS: list[dict[str, Any]] = [{}, {}, *[{"until": hour} for hour in HOURS[2:9:2]]]
ANY: list[dict[str, Any]] = [*CHANCES, *CHOICES, *CURVES, *ROWS, {}, {"probability": "0.5", "cdf": ("0", "0.4", "1")}]
ANSWERS: list[dict[str, Any]] = [
    *[{"outcome": outcome} for outcome in ("yes", "no", "a", "c", "d")],
    *[{"value": value} for value in ("0", "1.5", "2", "-0.5", "2.5", "1e11")],
    *[{"payouts": {"yes": share, "no": "0.5"}} for share in ("0.5", "0.4", "1.5")],
    *[{"payouts": dict(zip("abcd", shares, strict=False))} for shares in [(0, 1, 0), (0, 1), (0, 0, 0, 1)]],
    {"payouts": {"yes": 1, "no": 0}, "outcome": "yes"},
    {},
]
CHANGES: list[dict[str, Any]] = [
    *[{"remove": names} for names in [("a",), ("b",), ("c",), ("a", "b"), ("d", "a"), ("a", "a"), ()]],
    *[{"add": names, "grace_ends_at": HOURS[hour]} for names, hour in [(("d",), 5), (("d",), 9), (("e", "f"), 7)]],
    *[{"add": names, "grace_ends_at": HOURS[4]} for names in [("a",), ("g", "g"), ("g",)]],
    {"add": ("d",)},
    {"remove": ("a",), "grace_ends_at": HOURS[9]},
]
TIMES: list[dict[str, Any]] = [
    {},
    *[{"opens_at": HOURS[hour]} for hour in (0, 3, 8)],
    *[{"closes_at": HOURS[hour]} for hour in (2, 5, 9)],
    *[{"reveals_at": HOURS[hour]} for hour in (2, 5, 9)],
    {"opens_at": HOURS[1], "closes_at": HOURS[7], "reveals_at": HOURS[7]},
]
AMENDED: list[dict[str, Any]] = [
    {},
    {"title": "Rain?"},
    {"contest": "k1"},
    {"weight": "2"},
    *[{"contest": contest, "weight": weight} for contest in ("k1", "k2") for weight in ("0", "0.5", "-1")],
]
PRICES: list[dict[str, Any]] = [
    *[{"question": "binary", "prices": {"yes": price}} for price in ("0.3", 0, "1.1")],
    *[{"question": "choice", "prices": prices} for prices in ({"a": "0.3"}, {"a": 1, "b": 0, "c": 1}, {"d": 1}, {})],
    *[{"question": name, "prices": {"yes": 1}} for name in ("new", "open")],
    {"quotes": [said.Prices(question=name, prices={"yes": 1}) for name in ("binary", "new")]},
    {"quotes": [said.Prices(question="binary", prices={"yes": 1})] * 2},
    {"question": "binary", "quotes": [said.Prices(question="binary", prices={"yes": 1})]},
]
POOLS: list[dict[str, Any]] = [
    {},
    {"pool": "10"},
    {"pool": "10.005"},
    {"pool": "-1"},
    {"pool": 3, "payable_unit": 2},
    {"payable_unit": 0},
    {"series": "cups"},
]
QUESTIONS = st.sampled_from(["binary", "choice", "closed", "open", "quantiles", "new"])
PARTICIPANTS = st.sampled_from(["ada", "bob"])
CONTESTS = st.sampled_from(["k1", "k2"])
AT = st.sampled_from(HOURS)


def merged(kind: Any, *pools: Any, **fields: Any) -> st.SearchStrategy[AnyCommand]:
    """A command of a kind: some fields drawn one by one, some together from pools of choices."""
    drawn = st.tuples(st.fixed_dictionaries({"at": AT, **fields}), *[st.sampled_from(pool) for pool in pools])
    return drawn.map(lambda parts: kind(**{name: value for part in parts for name, value in part.items()}))


SPANS: list[dict[str, Any]] = [
    {"opens_at": HOURS[2], "closes_at": HOURS[8]},
    {"opens_at": HOURS[2], "closes_at": HOURS[8], "reveals_at": HOURS[4]},
    {"opens_at": HOURS[1], "closes_at": HOURS[6], "reveals_at": HOURS[6]},
    {"opens_at": HOURS[6], "closes_at": HOURS[6]},
    {"opens_at": HOURS[2], "closes_at": HOURS[8], "reveals_at": HOURS[2]},
]
WEIGHTS: list[dict[str, Any]] = [
    {},
    {"weight": "0.5"},
    {"weight": 0},
    {"weight": "-0.5"},
    *[{"hidden_coverage_weight": share} for share in (0, "0.5", 1, 2)],
    *[{"spot_at": HOURS[hour]} for hour in (0, 2, 5, 8, 9)],
]
OPENINGS = merged(said.OpenQuestion, SHAPES, SPANS, question=st.sampled_from(["new", "new", "binary"]))
FITTING = [
    ("binary", CHANCES),
    ("choice", CHOICES),
    ("closed", CURVES),
    ("open", CURVES),
    ("quantiles", ROWS),
    ("new", ANY),
    ("choice", ANY),
]
FORECASTS = st.one_of(
    *[
        merged(said.SubmitForecast, pool, STAMPED, ENDS, question=st.just(question), participant=PARTICIPANTS)
        for question, pool in FITTING
    ]
)
RESTATED = FORECASTS.map(lambda command: oracle.restated(cast("said.SubmitForecast", command)))
RESTATEMENTS = st.builds(
    said.RestateForecasts,
    at=AT,
    question=QUESTIONS,
    participant=PARTICIPANTS,
    forecasts=st.lists(RESTATED, max_size=2).map(tuple),
    reason=st.just("found"),
)
RENAMINGS = st.builds(
    said.RenameParticipant, at=AT, participant=PARTICIPANTS, to=PARTICIPANTS | st.just("new"), reason=st.just("one")
)
WITHDRAWALS = merged(said.WithdrawForecast, question=QUESTIONS, participant=PARTICIPANTS)
POLICIES = ["refund_cost", "refund_stake", "void_trades"]
FATES = st.one_of(
    merged(said.CloseQuestion, question=QUESTIONS),
    merged(said.ResolveQuestion, ANSWERS, question=QUESTIONS, known_at=st.none() | AT),
    merged(said.AnnulQuestion, question=QUESTIONS, reason=st.just("")),
    merged(said.CancelMarket, question=QUESTIONS, reason=st.just(""), policy=st.sampled_from(POLICIES)),
    merged(said.RevokeResolution, question=QUESTIONS, reason=st.just("")),
    merged(said.ChangeOutcomes, CHANGES, question=st.sampled_from(["choice", "choice", "choice", "new", "binary"])),
    merged(said.RescheduleQuestion, TIMES, question=QUESTIONS),
    merged(said.AmendQuestion, AMENDED, question=QUESTIONS),
    merged(said.Quote, PRICES, quoted_at=AT, source=st.just("feed")),
)
RULE_SETS = st.sampled_from(["relative-2022-04", "autocast-2022", "relative", PINBALL, PINBALL, EMPTY])
LEVELS = st.sampled_from(["no_prize", "no_rank", "hidden"])
BOARDS = st.one_of(
    merged(said.OpenContest, POOLS, contest=CONTESTS, rules=RULE_SETS),
    merged(said.DepositCash, contest=CONTESTS, participant=PARTICIPANTS, amount=st.integers(0, 2), reason=st.just("")),
    merged(
        said.EnrolParticipant,
        contest=CONTESTS,
        participant=PARTICIPANTS,
        entrant=st.sampled_from([None, "team"]),
        bot=st.booleans(),
    ),
    merged(said.AddQuestion, WEIGHTS, contest=CONTESTS, question=QUESTIONS),
    merged(said.AddQuestion, WEIGHTS, contest=CONTESTS, question=QUESTIONS),
    merged(said.ExcludeParticipant, contest=CONTESTS, participant=PARTICIPANTS, level=LEVELS, reason=st.just("")),
    merged(said.FinalizeContest, contest=CONTESTS),
    merged(said.PayPrizes, contest=CONTESTS),
)


def divided(pages: Iterable[Sequence[Recorded]], contest: str) -> dict[str, int]:
    """A board that a model can work out: a unit to each who forecast on the contest's questions before its seal, by
    their ids at that time, the rest of the pool to the first of them by id.
    """
    questions, forecasters, opened = set[str](), defaultdict[str, set[str]](set), list[events.ContestOpened]()
    for event in (recorded.event for page in pages for recorded in page):
        match event:
            case events.ForecastMade():
                forecasters[event.question].add(event.participant)
            case events.ForecastsRetracted():
                forecasters[event.question].discard(event.participant)
            case events.ParticipantRenamed():
                for names in forecasters.values():
                    if event.participant in names:
                        names.remove(event.participant)
                        names.add(event.to)
            case events.ContestOpened(contest=name) if name == contest:
                opened.append(event)
            case events.QuestionAdded(contest=name, question=question) if name == contest:
                questions.add(question)
            case events.ContestFinalized(contest=name) if name == contest:
                break
    first, *others = sorted(set().union(*(forecasters[question] for question in questions))) or [""]
    rest = opened[0].pool - len(others) * opened[0].payable_unit
    return dict.fromkeys(others, opened[0].payable_unit) | {first: rest} if first and opened[0].pool else {}


class LedgerMachine(RuleBasedStateMachine):
    """Commands go to a ledger opened at the start or to one opened just now; both must do what the model does."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger.db"
        self.old = Ledger.open(self.path, clock=lambda: NOW, prizes=divided)
        self.model = Model()
        self.accepted: list[AnyCommand] = []
        self.sent = 0

    def teardown(self) -> None:
        """Everything accepted can be read, and every table can be computed from it. Then leave nothing behind."""
        projections = Projections(facts(self.old.read()))
        for name in CATALOGUE:
            projections.table(name)
        for name, contest in self.model.contests.items():
            paid = {who: payment.amount for who, payment in projections.facts.contests[name].paid.items()}
            assert paid == (divided(self.old.read(), name) if contest.paid else {})
        self.old.close()
        self.folder.cleanup()

    def send(self, commands: list[AnyCommand], *, fresh: bool, atomic: bool = False) -> list[Told]:
        """The result of each command: its refusal code, or its log positions and whether they are a retry's."""
        if fresh:
            with Ledger.open(self.path, clock=lambda: NOW, prizes=divided) as ledger:
                outcomes = ledger.handle_many(commands, atomic=atomic)
        else:
            outcomes = self.old.handle_many(commands, atomic=atomic)
        return [told(outcome) for outcome in outcomes]

    def numbered(self, command: AnyCommand) -> AnyCommand:
        """The command under the next unused id; each third says who asked for it, which decides nothing."""
        self.sent += 1
        about = {"by": "desk", "correlation": f"r{self.sent}"} if self.sent % 3 == 0 else {}
        return msgspec.structs.replace(command, id=f"c{self.sent}", **about)

    def one(self, command: AnyCommand, *, fresh: bool) -> None:
        """One new command, and the same outcome in ledger and model."""
        command = self.numbered(command)
        expected = self.model.decide(command)
        if expected is None:
            self.accepted.append(command)
        assert self.send([command], fresh=fresh) == [expected or (*self.model.positions[command.id], False)]

    @initialize()
    def begins(self) -> None:
        """A question of each kind, and a contest with one of them, on which Ada has forecast."""
        kinds = [("binary", SHAPES[0]), ("choice", SHAPES[4]), ("closed", SHAPES[7]), ("open", SHAPES[8])]
        kinds += [("quantiles", SHAPES[11])]
        for number, (question, shape) in enumerate(kinds):
            self.one(said.OpenQuestion(at=HOURS[0], question=question, **shape, **SPANS[number % 3]), fresh=False)
        self.one(said.OpenContest(at=HOURS[0], contest="k1", rules="relative-2022-04", pool=10), fresh=True)
        self.one(said.AddQuestion(at=HOURS[0], contest="k1", question="binary"), fresh=False)
        early = said.SubmitForecast(at=HOURS[0], question="binary", participant="ada", probability="0.3")
        self.one(early, fresh=True)
        assert len(self.accepted) == 8

    @rule(command=OPENINGS, fresh=st.booleans())
    def opens(self, command: AnyCommand, fresh: bool) -> None:
        """A question is opened."""
        self.one(command, fresh=fresh)

    @rule(command=FORECASTS, fresh=st.booleans())
    def forecasts(self, command: AnyCommand, fresh: bool) -> None:
        """A forecast is submitted."""
        self.one(command, fresh=fresh)

    @rule(command=WITHDRAWALS, fresh=st.booleans())
    def withdraws(self, command: AnyCommand, fresh: bool) -> None:
        """A forecast is withdrawn."""
        self.one(command, fresh=fresh)

    @rule(command=RESTATEMENTS, fresh=st.booleans())
    def restates(self, command: AnyCommand, fresh: bool) -> None:
        """What somebody forecast is restated, at any time."""
        self.one(command, fresh=fresh)

    @rule(command=RENAMINGS, fresh=st.booleans())
    def renames(self, command: AnyCommand, fresh: bool) -> None:
        """A participant gets another id, which may be somebody's."""
        self.one(command, fresh=fresh)

    @precondition(lambda self: self.model.standing())
    @rule(data=st.data(), at=AT, fresh=st.booleans())
    def withdraws_what_stands(self, data: st.DataObject, at: str, fresh: bool) -> None:
        """A forecast is withdrawn that is known to stand, at whatever instant."""
        question, participant = data.draw(st.sampled_from(self.model.standing()))
        self.one(said.WithdrawForecast(at=at, question=question, participant=participant), fresh=fresh)

    @rule(command=FATES, fresh=st.booleans())
    def settles(self, command: AnyCommand, fresh: bool) -> None:
        """A question is closed, resolved, annulled or revoked."""
        self.one(command, fresh=fresh)

    @rule(command=BOARDS, fresh=st.booleans())
    def competes(self, command: AnyCommand, fresh: bool) -> None:
        """A contest is opened, filled, corrected or frozen."""
        self.one(command, fresh=fresh)

    @precondition(lambda self: self.model.payable())
    @rule(data=st.data(), at=AT, fresh=st.booleans())
    def pays_what_is_due(self, data: st.DataObject, at: str, fresh: bool) -> None:
        """The pool of a contest that is known to be final and to have winners."""
        contest = data.draw(st.sampled_from(self.model.payable()))
        self.one(said.PayPrizes(at=at, contest=contest), fresh=fresh)

    @rule(
        commands=st.lists(st.one_of(OPENINGS, FORECASTS, WITHDRAWALS, FATES, BOARDS), max_size=5),
        fresh=st.booleans(),
        atomic=st.booleans(),
    )
    def batches(self, commands: list[AnyCommand], fresh: bool, atomic: bool) -> None:
        """Several in one batch: each after the one before; if atomic, all or none."""
        self.many(commands, fresh=fresh, atomic=atomic)

    @rule(contest=CONTESTS, at=AT, forecast=FORECASTS, fresh=st.booleans(), atomic=st.booleans())
    def seals_and_pays(self, contest: str, at: str, forecast: AnyCommand, fresh: bool, atomic: bool) -> None:
        """A contest is paid in the batch that seals it, and that has a last forecast before the seal."""
        sealing: list[AnyCommand] = [
            said.FinalizeContest(at=at, contest=contest),
            said.PayPrizes(at=at, contest=contest),
        ]
        self.many([forecast, *sealing], fresh=fresh, atomic=atomic)

    def many(self, commands: list[AnyCommand], *, fresh: bool, atomic: bool) -> None:
        """A batch of new commands, and the same outcomes in ledger and model."""
        commands = [self.numbered(command) for command in commands]
        before = copy.deepcopy(self.model)
        codes = [self.model.decide(command) for command in commands]
        if atomic and any(codes):
            self.model = before
            expected: list[Told] = [code or "batch_refused" for code in codes]
        else:
            self.accepted += [command for command, code in zip(commands, codes, strict=True) if code is None]
            expected = [code or (*self.model.positions[c.id], False) for c, code in zip(commands, codes, strict=True)]
        assert self.send(commands, fresh=fresh, atomic=atomic) == expected

    @rule(data=st.data(), fresh=st.booleans())
    def retries(self, data: st.DataObject, fresh: bool) -> None:
        """An accepted command that is sent again gets its first receipt, whatever has happened since."""
        command = data.draw(st.sampled_from(self.accepted))
        assert self.send([command], fresh=fresh) == [(*self.model.positions[command.id], True)]

    @rule(data=st.data(), fresh=st.booleans())
    def reuses(self, data: st.DataObject, fresh: bool) -> None:
        """An id that is in the log comes with something else."""
        command = data.draw(st.sampled_from(self.accepted))
        other = said.FinalizeContest(id=command.id, at=HOURS[0], contest="another")
        assert self.send([other], fresh=fresh) == ["command_id_reused"]

    @rule()
    def restarts(self) -> None:
        """The old ledger is closed and opened again."""
        self.old.close()
        self.old = Ledger.open(self.path, clock=lambda: NOW, prizes=divided)

    @invariant()
    def anyone_who_opens_the_file_finds_the_same_log(self) -> None:
        """As long as the model's, sound from the start, and with one head."""
        with Ledger.open(self.path) as fresh:
            assert fresh.head() == self.old.head()
            assert fresh.head().position == self.model.length
            rows = [(row.command_id, row.position) for page in fresh.read() for row in page]
            first = {command_id: position for command_id, position in reversed(rows)}  # noqa: C416 - the first stays
            assert {command_id: (first[command_id], last) for command_id, last in rows} == self.model.positions


def told(outcome: Receipt | Refused) -> Told:
    """An outcome as the model says it."""
    return outcome.code if isinstance(outcome, Refused) else (outcome.first, outcome.last, outcome.duplicate)


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=times(30), stateful_step_count=50, deadline=None)
