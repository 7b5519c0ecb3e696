"""Commands with defaults for all that a test does not care about, and given / when / then."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing as closing_store
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

from msgspec import structs

from forecast_ledger.ledger.core.errors import REFUSALS, Refused
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AmendQuestion,
    AnnulQuestion,
    AnyCommand,
    Bet,
    CancelMarket,
    ChangeOutcomes,
    CloseQuestion,
    Command,
    DepositCash,
    EnrolParticipant,
    ExcludeParticipant,
    FinalizeContest,
    OpenContest,
    OpenQuestion,
    PayPrizes,
    Points,
    Quote,
    Range,
    RecordDecision,
    RecordFailedCall,
    RecordTrade,
    RenameParticipant,
    RequireVersion,
    RescheduleQuestion,
    ResolveQuestion,
    RestatedForecast,
    RestateForecasts,
    RevokeResolution,
    Sale,
    SubmitForecast,
    WithdrawCash,
    WithdrawForecast,
)
from forecast_ledger.ledger.model.events import TAGS, AnyEvent, PrizePaid
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger, Prizes
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.support.forging import enveloped

HOUR = 3_600 * 10**6  # µs
DAY = 24 * HOUR
MARCH = 20_513 * DAY  # 2026-03-01: 56 years of 365 days, 14 leap days, then January's 31 and February's 28
NOW = MARCH + 30 * DAY


def day(number: int, hour: int = 0) -> str:
    """A full hour of March 2026, UTC."""
    return f"2026-03-{number:02}T{hour:02}:00:00Z"


def micros(number: int, hour: int = 0) -> int:
    """The same hour in µs since the epoch."""
    return MARCH + (number - 1) * DAY + hour * HOUR


OPENS, REVEALS, CLOSES, AFTER = day(10), day(12), day(20), day(25)
LATER = day(23)
BEFORE = day(5)
COLOURS = ("red", "green", "blue")


def opened(question: str = "rain", **fields: Any) -> OpenQuestion:
    """A binary question, open on [OPENS, CLOSES)."""
    given = {"at": BEFORE, "kind": "binary", "opens_at": OPENS, "closes_at": CLOSES}
    return OpenQuestion(question=question, **(given | fields))


def choices(question: str = "colour", outcomes: tuple[str, ...] = COLOURS, **fields: Any) -> OpenQuestion:
    """A multiple-choice question."""
    return opened(question, **({"kind": "multiple_choice", "outcomes": outcomes} | fields))


def numeric(question: str = "depth", **span: Any) -> OpenQuestion:
    """A numeric question from 0 to 4 in four bins, both ends closed."""
    return opened(question, kind="numeric", range=Range(**({"lower": 0, "upper": 4, "bins": 4} | span)))


def quartiles(question: str = "flow", **span: Any) -> OpenQuestion:
    """A numeric question from 0 to 4 asked by three quantiles, in thousandths, both ends closed."""
    asked: dict[str, Any] = {"lower": 0, "upper": 4, "levels": ("0.25", "0.5", "0.75"), "decimals": 3}
    return opened(question, kind="numeric", range=Range(**(asked | span)))


def ensemble(question: str = "depths", **span: Any) -> OpenQuestion:
    """A numeric question from 0 to 4 asked by three samples, in thousandths, both ends closed."""
    return opened(
        question, kind="numeric", range=Range(**({"lower": 0, "upper": 4, "samples": 3, "decimals": 3} | span))
    )


def forecast(question: str = "rain", participant: str = "ada", **fields: Any) -> SubmitForecast:
    """Seven in ten for yes on a binary question, unless another distribution is given."""
    given: dict[str, Any] = {"at": day(11)}
    if not {"probability", "probabilities", "cdf", "quantiles", "samples", "points"} & fields.keys():
        given["probability"] = "0.7"
    return SubmitForecast(question=question, participant=participant, **(given | fields))


def forecasts(question: str = "rain", /, at: str | None = OPENS, **chances: Any) -> list[AnyCommand]:
    """How likely each of these participants calls a binary question: forecasts from its opening on."""
    return [forecast(question, who, at=at, probability=chance) for who, chance in chances.items()]


def points(*quantiles: Any, levels: tuple[Any, ...] = ("0.25", "0.5", "0.75"), method: Any = "linear") -> Points:
    """Quantiles at three levels, from which a cdf is made."""
    return Points(levels=levels, quantiles=quantiles, method=method)


def withdrawal(question: str = "rain", participant: str = "ada", at: str | None = day(13)) -> WithdrawForecast:
    """Takes the standing forecast back."""
    return WithdrawForecast(question=question, participant=participant, at=at)


def restatement(*made: SubmitForecast, participant: str = "ada", question: str = "rain") -> RestateForecasts:
    """What a participant forecast, as it is found on LATER: these forecasts and no others."""
    names = RestatedForecast.__struct_fields__
    parts = tuple(RestatedForecast(**{name: getattr(each, name) for name in names}) for each in made)
    return RestateForecasts(
        at=LATER, question=question, participant=participant, forecasts=parts, reason="the source was corrected"
    )


def renaming(participant: str = "ada", to: str = "bo", at: str | None = day(16)) -> RenameParticipant:
    """Another id of a participant."""
    return RenameParticipant(participant=participant, to=to, at=at, reason="one person")


def requirement(version: str, at: str | None = day(2), **fields: Any) -> RequireVersion:
    """The least version that may write."""
    return RequireVersion(version=version, at=at, **fields)


def closing(question: str = "rain", at: str | None = day(15)) -> CloseQuestion:
    """An early close."""
    return CloseQuestion(question=question, at=at)


def amendment(question: str = "rain", **fields: Any) -> AmendQuestion:
    """Another title, or what is given instead."""
    return AmendQuestion(question=question, **({"at": day(14)} | (fields or {"title": "Will it rain?"})))


def rescheduling(question: str = "rain", at: str | None = day(14), **fields: Any) -> RescheduleQuestion:
    """Other times: a close on LATER, three days later, unless others are given."""
    given = fields if {"opens_at", "closes_at", "reveals_at"} & fields.keys() else {"closes_at": LATER} | fields
    return RescheduleQuestion(question=question, at=at, **given)


def addition(*outcomes: str, question: str = "colour", **fields: Any) -> ChangeOutcomes:
    """Outcomes added on the 13th, with a grace period of two days; violet alone if none are given."""
    given: dict[str, Any] = {"at": day(13), "grace_ends_at": day(15)}
    return ChangeOutcomes(question=question, add=outcomes or ("violet",), **(given | fields))


def removal(*outcomes: str, question: str = "colour", at: str | None = day(13)) -> ChangeOutcomes:
    """Outcomes removed; red alone if none are given."""
    return ChangeOutcomes(question=question, at=at, remove=outcomes or ("red",))


def resolution(question: str = "rain", **fields: Any) -> ResolveQuestion:
    """Resolved as yes, after the close, unless another answer is given."""
    answered = {"outcome", "value", "payouts"} & fields.keys()
    given: dict[str, Any] = {"at": AFTER} | ({} if answered else {"outcome": "yes"})
    return ResolveQuestion(question=question, **(given | fields))


def annulment(question: str = "rain", at: str | None = AFTER, reason: str = "no source") -> AnnulQuestion:
    """A question that counts nowhere."""
    return AnnulQuestion(question=question, at=at, reason=reason)


def revocation(question: str = "rain", at: str | None = AFTER, reason: str = "misread") -> RevokeResolution:
    """A resolution taken back."""
    return RevokeResolution(question=question, at=at, reason=reason)


def contest(contest: str = "cup", **fields: Any) -> OpenContest:
    """A contest under the newer preset."""
    return OpenContest(contest=contest, **({"at": BEFORE, "rules": "relative-2022-04"} | fields))


def entry(contest: str = "cup", question: str = "rain", **fields: Any) -> AddQuestion:
    """A question put into a contest."""
    return AddQuestion(contest=contest, question=question, **({"at": BEFORE} | fields))


def enrolment(contest: str = "cup", participant: str = "ada", **fields: Any) -> EnrolParticipant:
    """A participant who plays for itself and is no bot."""
    return EnrolParticipant(contest=contest, participant=participant, **({"at": BEFORE} | fields))


def asked(
    question: str, chances: Mapping[str, Any], outcome: str = "yes", under: str = "cup", weight: Any = 1, **fields: Any
) -> list[AnyCommand]:
    """A binary question of a contest, how likely each participant calls it, and its answer."""
    start: list[AnyCommand] = [opened(question, **fields), entry(under, question, weight=weight)]
    return [*start, *forecasts(question, **chances), resolution(question, outcome=outcome)]


def exclusion(contest: str = "cup", participant: str = "ada", **fields: Any) -> ExcludeParticipant:
    """A participant without prize."""
    given = {"at": AFTER, "level": "no_prize", "reason": "staff"}
    return ExcludeParticipant(contest=contest, participant=participant, **(given | fields))


def finalization(contest: str = "cup", at: str | None = AFTER) -> FinalizeContest:
    """A board frozen."""
    return FinalizeContest(contest=contest, at=at)


def payment(contest: str = "cup", at: str | None = AFTER) -> PayPrizes:
    """A payment of the prizes of the sealed board."""
    return PayPrizes(contest=contest, at=at)


ALONE = {"ada": "0.7"}  # who forecasts alone wins the whole pool


def won(contest: str = "cup", chances: dict[str, str] = ALONE, **fields: Any) -> list[AnyCommand]:
    """A sealed contest with a pool of 10 over one question, answered yes, and how likely each participant called it.

    Under the newer preset a take is proportional to the probability over the median; `tests/replay/writing/test_pay.py`
    has the arithmetic.
    """
    founded: dict[str, Any] = {"at": BEFORE, "rules": "relative-2022-04", "pool": 10} | fields
    opening: list[AnyCommand] = [opened(), OpenContest(contest=contest, **founded), entry(contest)]
    return [*opening, *forecasts(**chances), resolution(), finalization(contest)]


SUNDAY, TRADES = day(1), day(2)  # the first period is March 1 to 7


def market(question: str = "rain", **fields: Any) -> OpenQuestion:
    """A binary question to trade on, open from the first of the month to the 29th."""
    return opened(question, **({"at": SUNDAY, "opens_at": SUNDAY, "closes_at": day(29)} | fields))


def palette(question: str = "colour", **fields: Any) -> OpenQuestion:
    """A multiple-choice question to trade on."""
    return choices(question, **({"at": SUNDAY, "opens_at": SUNDAY, "closes_at": day(29)} | fields))


def cohort(contest: str = "week", **fields: Any) -> OpenContest:
    """A contest in which one trades, of the week from Sunday the first."""
    return OpenContest(contest=contest, **({"at": SUNDAY, "rules": "arena-v1"} | fields))


def quote(question: str = "rain", **fields: Any) -> Quote:
    """A price of 0.40 for yes, when trades are made, unless others are given."""
    given: dict[str, Any] = {"at": TRADES, "source": "feed", "prices": {"yes": "0.4"}} | fields
    return Quote(question=question, **({"quoted_at": given["at"]} | given))


def quotes(*each: Any, **fields: Any) -> Quote:
    """Prices of several questions in one command."""
    return Quote(quotes=each, **({"at": TRADES, "source": "feed", "quoted_at": TRADES} | fields))


def bet(amount: Any = 500, side: str = "YES", market_id: str = "rain") -> Bet:
    """Money on yes."""
    return Bet(market_id=market_id, side=side, amount=amount)


def sale(percentage: Any = 100, position_id: str | int = "1") -> Sale:
    """All of the first position."""
    return Sale(position_id=position_id, percentage=percentage)


def decision(*legs: Bet | Sale, participant: str = "ada", **fields: Any) -> RecordDecision:
    """A decision said in fields, for the first period: to buy, to sell, or, without legs, to hold."""
    bets = tuple(leg for leg in legs if isinstance(leg, Bet))
    sells = tuple(leg for leg in legs if isinstance(leg, Sale))
    action = "BET" if bets else "SELL" if sells else "HOLD"
    said: dict[str, Any] = {"at": TRADES, "contest": "week", "period": 1, "action": action, "reasoning": "It will."}
    return RecordDecision(participant=participant, **(said | {"bets": bets or None, "sells": sells or None} | fields))


def replied(response: str, participant: str = "ada", **fields: Any) -> RecordDecision:
    """A decision for the first period that is the text of a reply."""
    said: dict[str, Any] = {"at": TRADES, "contest": "week", "period": 1}
    return RecordDecision(participant=participant, response=response, **(said | fields))


def failed_call(participant: str = "ada", **fields: Any) -> RecordFailedCall:
    """A call of a model that brought no reply."""
    said: dict[str, Any] = {"at": TRADES, "contest": "week", "period": 1, "error": "503"}
    return RecordFailedCall(participant=participant, **(said | fields))


def deposit(amount: Any = 1_000, **fields: Any) -> DepositCash:
    """Cash from outside."""
    said: dict[str, Any] = {"at": TRADES, "contest": "week", "participant": "ada", "reason": "more"}
    return DepositCash(amount=amount, **(said | fields))


def cash_out(amount: Any = 1_000, **fields: Any) -> WithdrawCash:
    """Cash taken out."""
    said: dict[str, Any] = {"at": TRADES, "contest": "week", "participant": "ada", "reason": "less"}
    return WithdrawCash(amount=amount, **(said | fields))


def traded(shares: Any = 100, amount: Any = 40, outcome: str | None = "yes", **fields: Any) -> RecordTrade:
    """Shares of yes on rain that were bought elsewhere, at 0.40, unless others are given."""
    said: dict[str, Any] = {"at": TRADES, "contest": "week", "participant": "ada", "question": "rain", "action": "buy"}
    return RecordTrade(shares=shares, amount=amount, outcome=outcome, **(said | fields))


def sold(shares: Any = 100, amount: Any = 40, outcome: str | None = "yes", **fields: Any) -> RecordTrade:
    """The same shares, sold elsewhere."""
    return traded(shares, amount, outcome, **({"action": "sell"} | fields))


def cancellation(question: str = "rain", **fields: Any) -> CancelMarket:
    """A market whose trades are undone."""
    return CancelMarket(question=question, **({"at": AFTER, "policy": "void_trades", "reason": "no source"} | fields))


def trading_floor(*participants: str, **fields: Any) -> list[AnyCommand]:
    """A cohort on a binary and a multiple-choice market, both quoted, in which these participants trade; Ada if none.

    Yes is at 0.40; red, green and blue are at 0.50, 0.30 and nothing.
    """
    entries = [entry("week", name, at=SUNDAY) for name in ("rain", "colour")]
    enrolments = [enrolment("week", name, at=SUNDAY) for name in participants or ("ada",)]
    prices = [quote(), quote("colour", prices={"red": "0.5", "green": "0.3", "blue": 0})]
    return [market(), palette(), cohort(**fields), *entries, *enrolments, *prices]


def ran(*story: AnyCommand) -> list[AnyEvent]:
    """Everything in the log of a ledger that has accepted these commands."""
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes_from_log) as ledger:
        accepted(ledger, story, "c")
        return [recorded.event for page in ledger.read() for recorded in page]


def remembered(ledger: Ledger) -> dict[str, Any]:
    """All that the writer knows of the past: every table of its state, the commands and the attempts at decisions."""
    known = ledger._known
    ids = list({recorded.command_id: None for page in ledger.read() for recorded in page})
    tables: dict[str, Any] = {name: table for name, table in vars(known.state).items() if isinstance(table, dict)}
    tables["applied"] = {question: known.state.peek_standing(question) for question in known.state.standing}
    tables["commands"] = known.commands.recent | known.commands.older(ids, ledger._store.read)
    return deepcopy(tables | {"recorded attempts": known.attempts, "head": known.head})


def accepted(ledger: Ledger, story: Sequence[AnyCommand], ids: str) -> None:
    """Send commands to a ledger, in one batch, under these ids and their numbers. Raises Refused, the first of them."""
    batch = [structs.replace(command, id=f"{ids}{number}") for number, command in enumerate(story)]
    for outcome in ledger.handle_many(batch):
        if isinstance(outcome, Refused):
            raise outcome


class Then:
    """The outcome of a command."""

    def __init__(self, outcome: list[AnyEvent] | Refused) -> None:
        self.outcome = outcome

    def records(self, *events: AnyEvent) -> None:
        """The command was accepted, and exactly these events are in the log."""
        assert self.outcome == list(events)

    def refuses(self, code: str, field: str) -> None:
        """The command was refused for this, and the log is as long as before."""
        assert isinstance(self.outcome, Refused), self.outcome
        assert (self.outcome.code, self.outcome.field) == (code, field)


class Given:
    """A history."""

    def __init__(self, history: tuple[AnyCommand, ...]) -> None:
        self.history = history

    def when(self, command: AnyCommand, prizes: Prizes | None = prizes_from_log) -> Then:
        """Handle one more command in a ledger of its own."""
        with Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes) as ledger:
            accepted(ledger, self.history, "given-")
            before = ledger.head()
            try:
                receipt = ledger.handle(command, "when")
            except Refused as refused:
                assert ledger.head() == before
                assert not list(ledger.read(before.position))
                return Then(refused)
            events = [recorded.event for page in ledger.read(before.position) for recorded in page]
            assert (receipt.first, receipt.last) == (before.position + 1, before.position + len(events))
            return Then(events)


def forge(path: Path | str, *happened: AnyEvent) -> None:
    """Write events at the end of a log, every digest right, whatever a decider would say of them."""
    with closing_store(StoredLog.open(str(path), "main")) as store:
        before = [recorded for page in log.unseal_pages(store.pages()) for recorded in page]
        forged = enveloped(happened, after=before)[len(before) :]
        store.append([(each.position, TAGS[type(each.event)], log.seal(each)[0]) for each in forged])


def prizes_paid(contest: str = "cup", /, **amounts: Any) -> list[AnyEvent]:
    """Events that pay these amounts, in the currency."""
    micros_of = {who: round(float(amount) * 10**6) for who, amount in amounts.items()}
    return [PrizePaid(at=micros(25), contest=contest, participant=who, amount=each) for who, each in micros_of.items()]


def given(*history: Command) -> Given:
    """Commands that have been accepted."""
    return Given(cast("tuple[AnyCommand, ...]", history))


def promised(function: Callable[..., Any]) -> list[str]:
    """The codes that a function's docstring lists, after "Refuses, first that applies:", in its order."""
    _, _, codes = re.sub(r"\s+", " ", function.__doc__ or "").partition("first that applies: ")
    return [word for word in re.findall(r"[a-z_]+", codes.partition(". ")[0]) if word in REFUSALS]
