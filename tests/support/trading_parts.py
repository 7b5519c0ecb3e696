"""The parts of the model of the trading book: numbers at the edge, replies, an account as the fold of its movements.

Instants are µs since the epoch; inside, money and shares 1e-6, prices 1e-9, percentages 1e-6 of a percent.
Sources: Forecaster Arena, Scoring Methodology, "Position Mechanics"; Forecaster Arena, Methodology v1, sections 5, 8
and 10.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from math import ceil, floor
from typing import Any, NamedTuple

Event = dict[str, Any]  # its type, its instant, its fields; its place in the log is its log position
Number = str | int | Decimal
SECOND, DAY = 10**6, 86_400 * 10**6  # µs
LARGEST_HOLDING = 10**18  # shares in 1e-6 that one account ever buys
ONE, MONEY, PERCENT = 10**9, 10**6, 10**6  # units in: a price or payout, money or a share, a percent
DEFAULTS: dict[str, Any] = {
    "starting_cash": 10_000 * MONEY,
    "least_bet": 50 * MONEY,
    "cap_divisor": 4,
    "least_percentage": 1 * PERCENT,
    "legs": "independent",
    "sum_capped": False,
    "attempts": 2,
    "stale_after_seconds": 3_600,
    "snapshot_seconds": 600,
    "period_days": 7,
    "cohorts": "weekly",
    "deciding_cohorts": 0,
    "recapitalisation": False,
    "closed_marks": "prior",
    "replies": "strict",
    "completed_by": "all",
    "fee_rate_ppm": 0,
    "fee_exponent": 1,
    "fee_unit": 1,
    "fee_rounding": "up",
    "fills": "price",
    "marks": "price",
    "depth": "unlimited",
    "shares_against": False,
}
PRESETS: dict[str, dict[str, Any]] = {
    "arena-v1": DEFAULTS,
    "arena-v2": DEFAULTS | {"legs": "all_or_nothing", "sum_capped": True, "deciding_cohorts": 5},
}
MOVEMENTS = {
    "cash_granted.v1": "granted",
    "cash_deposited.v1": "deposited",
    "cash_withdrawn.v1": "withdrawn",
    "shares_bought.v1": "bought",
    "shares_sold.v1": "sold",
    "position_settled.v1": "settled",
    "position_refunded.v1": "refunded",
    "trades_voided.v1": "voided",
    "settlement_reversed.v1": "reversed",
}


class Refusal(NamedTuple):
    """Nothing was recorded."""

    code: str


class Again(NamedTuple):
    """The receipt of a command that is recorded already, at these log positions."""

    first: int
    last: int


Outcome = list[Event] | Refusal | Again


# --- numbers and texts at the edge


def half_even(number: Fraction) -> int:
    """The nearest integer, the even one of two."""
    return round(number)


def units(number: Number, unit: int) -> int:
    """A decimal in 1/unit, rounded half-even."""
    return half_even(Fraction(str(number)) * unit)


def written(value: Any) -> Fraction | None:
    """The finite number that a value of a reply is, a JSON number or decimal text; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | str | float | Decimal):
        return None
    text = str(value)
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        return None
    size = Decimal(text).adjusted()
    return Fraction(text) if abs(size) < 100 else Fraction(10) ** (100 if size > 0 else -100)  # beyond, any will do


def micros(value: Any, unit: int) -> int:
    """A number known to be one, in 1/unit."""
    number = written(value)
    assert number is not None
    return half_even(number * unit)


AMOUNTS = ("starting_cash", "least_bet", "least_percentage", "fee_unit")  # in 1e-6 here, in a command a decimal


def written_trading(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Trading rules as a command gives them."""
    return {name: f"{Decimal(rule).scaleb(-6):f}" if name in AMOUNTS else rule for name, rule in rules.items()}


def read_trading(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Trading rules of a command, in the units of the model."""
    return {name: int(Decimal(rule).scaleb(6)) if name in AMOUNTS else rule for name, rule in rules.items()}


def fee_of(rules: Mapping[str, Any], shares: int, price: int, change: int) -> int:
    """The fee of a trade, in 1e-6: the rate of shares times (p (1 - p))^e, in whole units.

    Source: Kalshi, Fee Schedule, "General Trading Fees"; Polymarket, documentation, "Fees".
    """
    chance = Fraction(price, ONE)
    rate = Fraction(rules["fee_rate_ppm"], 10**6)
    exact: Fraction = rate * shares * (chance * (1 - chance)) ** int(rules["fee_exponent"])
    unit = int(rules["fee_unit"])
    if not rate:
        return 0
    if rules["fee_rounding"] == "cash":  # what is left in whole units, which is the most that is
        return change - floor((change - exact) / unit) * unit
    parts = exact / unit
    rounded = {"up": ceil(parts), "down": floor(parts), "half_even": half_even(parts)}
    return rounded[str(rules["fee_rounding"])] * unit


def digest(text: str) -> str:
    """The name under which a text is kept; none for none."""
    return sha256(text.encode()).hexdigest() if text else ""


def canonical(reply: Mapping[str, Any]) -> str:
    """A reply given in fields as one text."""
    said = {name: value for name, value in reply.items() if value is not None}
    return json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def sunday(at: int) -> int:
    """The latest Sunday 00:00 UTC not after it; day 3 after the epoch was one."""
    return at - (at - 3 * DAY) % (7 * DAY)


def midnight(at: int) -> int:
    """The start of its UTC day."""
    return at - at % DAY


# --- one account: the fold of its movements


@dataclass
class Position:
    """A participant's shares of one outcome, and what it has paid and received for them, and in fees."""

    number: int
    question: str
    outcome: str
    shares: int = 0
    cost: int = 0
    paid: int = 0
    received: int = 0
    fees: int = 0
    realised: int = 0
    status: str = "open"
    before: "Position | None" = None  # its settlement, of which a reversal gives it back


@dataclass
class Account:
    """Cash, what came in from outside, and positions, after some movements."""

    cash: int = 0
    net_deposits: int = 0
    bought: int = 0  # for how much
    shares_bought: int = 0
    sold: int = 0
    positions: list[Position] = field(default_factory=list)
    trades: list[Event] = field(default_factory=list)

    def open(self) -> list[Position]:
        """The positions that are open, in order of number."""
        return [position for position in self.positions if position.status == "open"]

    def held(self, question: str, outcome: str) -> Position | None:
        """The one open position of an outcome."""
        return next((each for each in self.open() if (each.question, each.outcome) == (question, outcome)), None)

    def moved(self, event: Event) -> None:
        """One movement."""
        kind = MOVEMENTS[event["type"]]
        if kind in {"granted", "deposited", "withdrawn"}:
            amount = -event["amount"] if kind == "withdrawn" else event["amount"]
            self.cash += amount
            self.net_deposits += amount
            return
        if kind == "bought" and event["position"] > len(self.positions):
            self.positions.append(Position(event["position"], event["question"], event["outcome"]))
        position = self.positions[event["position"] - 1]
        assert (position.question, position.outcome) == (event["question"], event["outcome"])
        if kind == "bought":
            self._bought(position, event)
        elif kind == "sold":
            self._sold(position, event)
        elif kind == "reversed":
            assert position.before is not None
            self.cash -= event["amount"]
            self.positions[position.number - 1] = position.before
        else:
            self._settled(position, kind, event)

    def _bought(self, position: Position, event: Event) -> None:
        assert position.status == "open"
        assert event["cash"] == self.cash
        self.trades.append(event)
        self.cash -= event["amount"]
        self._charged(position, event)
        self.bought += event["amount"]
        self.shares_bought += event["shares"]
        position.paid += event["amount"]
        position.cost += event["amount"]
        position.shares += event["shares"]

    def _sold(self, position: Position, event: Event) -> None:
        assert position.status == "open"
        self.trades.append(event)
        self.cash += event["proceeds"]
        self._charged(position, event)
        self.sold += event["proceeds"]
        position.received += event["proceeds"]
        position.realised += event["proceeds"] - event["cost"]
        position.cost -= event["cost"]
        position.shares -= event["shares"]
        position.status = "open" if position.shares else "closed"

    def _charged(self, position: Position, event: Event) -> None:
        self.cash -= event["fee"]
        position.fees += event["fee"]
        position.realised -= event["fee"]

    def _settled(self, position: Position, kind: str, event: Event) -> None:
        assert (position.shares, position.cost) == (event["shares"], event["cost"])
        position.before = replace(position)
        position.status = kind
        if kind == "settled":
            self.cash += event["proceeds"]
            position.realised += event["proceeds"] - event["cost"]
        elif kind == "refunded":
            self.cash += event["cost"]
        else:
            self.cash += event["amount"]
            position.shares = position.cost = 0
            position.realised = position.received + event["amount"] - position.paid - position.fees


# --- what was said of questions and contests


@dataclass
class Question:
    """A market: its outcomes, its period, and what has become of it."""

    kind: str
    outcomes: tuple[str, ...]
    opens: int
    closes: int
    payouts: tuple[int, ...] = ()  # in 1e-9, in order of outcomes, once resolved
    annulled: str = ""  # the policy
    stood: tuple[int, ...] = ()  # the payouts of before the annulment

    def side(self, text: str, *, against: bool) -> str | None:
        """What a bet's side names: an outcome, of a binary question in any case, else exactly; or, where the rules
        allow it, `not` and one of several outcomes.
        """
        said = text.lower() if self.kind == "binary" else text
        others = [f"not {each}" for each in self.outcomes if against and self.kind == "multiple_choice"]
        return said if said in self.outcomes or said in others else None

    def place(self, side: str) -> tuple[int, bool]:
        """The place of an outcome, and whether the side is against it."""
        against = side not in self.outcomes
        return self.outcomes.index(side.removeprefix("not ") if against else side), against

    def trades(self, at: int) -> bool:
        """Return whether the question can be traded at an instant."""
        return not self.payouts and not self.annulled and self.opens <= at < self.closes


@dataclass
class Contest:
    """A contest; no trading rules, no stakes."""

    trading: dict[str, Any] | None
    start: int
    series: str
    pool: int
    questions: set[str] = field(default_factory=set)
    participants: dict[str, tuple[str, str]] = field(default_factory=dict)  # -> family, release
    finalized: bool = False


class Attempt(NamedTuple):
    """A decision as it was sent, where it is recorded, and whether it was malformed."""

    content: str
    first: int
    last: int
    malformed: bool


Key = tuple[str, str, int]  # contest, participant, period


# --- replies


def read_reply(text: str) -> dict[str, Any] | None:
    """The one JSON object of the documented form that a text is; None if it is not. Text is no number in it."""
    try:
        reply = json.loads(text, parse_float=Decimal, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    meant = defaulted(reply) if isinstance(reply, dict) else None
    for leg, name in _figures(meant or {}):
        leg[name] = None if isinstance(leg[name], str) else leg[name]
    return meant


def _no_number(text: str) -> None:
    raise ValueError(text)


def _figures(reply: Mapping[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Each leg of a reply, and the field that its figure is in."""
    bets = [(leg, "amount") for leg in reply.get("bets") or []]
    return bets + [(leg, "percentage") for leg in reply.get("sells") or []]


def unwritten(reply: Mapping[str, Any]) -> str:
    """Why the figures of a reply given in fields are none, as of any command; empty if they are numbers."""
    texts = [str(leg[name]) for leg, name in _figures(reply) if written(leg[name]) is None]
    if any(text.lower() not in {"nan", "infinity"} for text in texts):
        return "bad_number"
    return "not_finite" if texts else ""


def defaulted(reply: Mapping[str, Any]) -> dict[str, Any] | None:
    """A reply, legs and reasoning blank where not given, without what else it says; None if it has another form."""
    said = {"action": None, "bets": [], "sells": [], "reasoning": ""} | dict(reply)
    said |= {name: [] for name in ("bets", "sells") if said[name] is None}
    if not isinstance(said["action"], str) or not isinstance(said["reasoning"], str):
        return None
    said["bets"] = _legs(said["bets"], {"market_id": str, "side": str, "amount": object})
    said["sells"] = _legs(said["sells"], {"position_id": str | int, "percentage": object})
    return None if said["bets"] is None or said["sells"] is None else said


def _legs(legs: Any, form: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Legs; None if one lacks a field or has another form."""
    if not isinstance(legs, list | tuple) or not all(isinstance(leg, dict) and set(form) <= set(leg) for leg in legs):
        return None
    fits = all(isinstance(leg[name], kind) for leg in legs for name, kind in form.items())
    fits = fits and not any(isinstance(leg.get("position_id"), bool) for leg in legs)
    return [{name: leg[name] for name in form} for leg in legs] if fits else None
