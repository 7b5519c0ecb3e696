"""Four markets on whether published findings replicate, as commands; the source's format is not the project's.

A contest a project, a binary question a finding, open from the midnight (UTC) before the project's first order to the
one after its last, when it is resolved. The source dates neither survey answers nor resolutions: answers claim the
instant of the opening. An answer without a forecaster is a forecaster of its own, named as the answer is.

The market maker becomes a quote: each order is carried out at its mean price, cost / shares, quoted at its own instant,
and followed by a quote of the price it left; buying yes and selling no, or the reverse, are at the same price of yes.
SSRP publishes prices only: its orders are quotes, and nobody trades.

- An order of the action `open` is a BET, `close` is a SELL, `flip` both, as two decisions, each at the mean price of
  its part of the maker's path.
- `ambiguous` (both readings fit) and `unmatched` (none does) close if the trader holds as much of the other side, and
  else open; unmatched ones are carried out at the cost that the published prices imply, not at the reported one.
- Nobody sells more than they hold. Where less than DUST is missing, as in 89 orders (64 of them of ML2, whose prices
  have six decimals), all is sold; where more, as in four of EERP called `close`, the rest is bought.
- A period is the number of a trader's decision. Whoever has too little left of what was granted deposits what the order
  costs; what sales bring is not spent again.
"""

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from math import expm1, log1p
from typing import Any, NamedTuple

import msgspec

from tests.support.paths import ROOT

SOURCE = ROOT.parent / "shared" / "data" / "replication_markets.jsonl.gz"
PROJECTS = ("RPP", "ML2", "EERP", "SSRP")  # in order of their first orders
DUST = Decimal("0.02")  # shares
GRANTED = Decimal(100)  # points
OTHER = {"yes": "no", "no": "yes"}
_MICRO, _NANO = Decimal("1e-6"), Decimal("1e-9")

Row = dict[str, Any]
Command = dict[str, Any]


class Leg(NamedTuple):
    """A part of an order: shares of `side` bought, or sold if it closes, at a price of yes."""

    closes: bool
    side: str
    shares: Decimal
    price: Decimal

    @property
    def value(self) -> Decimal:
        """The value of the shares at the price, in points."""
        return (self.shares * (self.price if self.side == "yes" else 1 - self.price)).quantize(_MICRO)


def rows() -> list[Row]:
    """The lines of the source, decimals exact."""
    return msgspec.json.Decoder(float_hook=Decimal).decode_lines(gzip.decompress(SOURCE.read_bytes()))


def of_project(source: Iterable[Row]) -> dict[str, list[Row]]:
    """The lines of each project's questions, in their order."""
    orders: dict[str, list[Row]] = {project: [] for project in PROJECTS}
    projects = {}
    for row in source:
        if row["kind"] == "question":
            projects[row["qid"]] = row["project"]
        orders[projects[row["qid"]]].append(row)
    return orders


def commands(source: Iterable[Row]) -> Iterator[Command]:
    """All commands, project by project, in the order in which they are recorded."""
    for project, lines in of_project(source).items():
        yield from _project(project, lines)


def _project(project: str, lines: list[Row]) -> Iterator[Command]:
    questions = {row["qid"]: row for row in lines if row["kind"] == "question"}
    orders = [row for row in lines if row["kind"] == "trade"]
    opens_at, closes_at = _midnight(orders[0]["at"], 0), _midnight(orders[-1]["at"], 1)
    yield _command(project, "open_contest", opens_at, contest=project, rules=_rules(project), currency="points")
    for question in questions.values():
        yield from _market(project, question, opens_at, closes_at)
    for trader in sorted({row["trader"] for row in orders if "action" in row}):
        enrolled = {"contest": project, "participant": trader}
        yield _command(f"{project}/{trader}", "enrol_participant", opens_at, **enrolled)
    for row in lines:
        if row["kind"] == "forecast":
            said = {"question": row["qid"], "participant": row["forecaster"] or row["fid"]}
            said["probability"] = _text(row["probs"]["yes"])
            yield _command(row["fid"], "submit_forecast", opens_at, **said)
    floor = _Floor(project)
    for row in orders:
        yield from floor.order(row, questions[row["qid"]])
    for row in lines:
        if row["kind"] == "resolution":
            answer = {"question": row["qid"], "outcome": row["outcome"]}
            yield _command(f"{row['qid']}/resolve", "resolve_question", closes_at, **answer)


def _market(project: str, question: Row, opens_at: str, closes_at: str) -> Iterator[Command]:
    qid = question["qid"]
    asked = {"kind": "binary", "title": question["title"], "opens_at": opens_at, "closes_at": closes_at}
    yield _command(f"{qid}/open", "open_question", opens_at, question=qid, **asked)
    yield _command(f"{qid}/add", "add_question", opens_at, contest=project, question=qid)
    yield _quote(f"{qid}/start", opens_at, qid, question["price_start"], "market")


def _rules(project: str) -> dict[str, Any]:
    """Stakes without limits, beside the survey's Brier scores and that of its mean."""
    trading: dict[str, Any] = {
        "cap_divisor": 1,
        "least_bet": "0.000001",
        "least_percentage": "0.000001",
        "starting_cash": str(GRANTED),
    }
    trading |= {"cohorts": "none", "period_days": 0, "attempts": 1, "recapitalisation": True}
    trading |= {"stale_after_seconds": 86_400, "snapshot_seconds": 86_400}
    scoring = {"kernel": "brier", "period": "covered", "total": "mean", "consensus": "mean"}
    return {"name": f"{project} market", **scoring, "least_probability_ppm": 0, "trading": trading}


class _Floor:
    """A project's traders: what they hold by the source, and how their positions are numbered."""

    def __init__(self, contest: str) -> None:
        self.contest = contest
        self.held: dict[tuple[str, str, str], Decimal] = {}  # trader, question, side; shares
        self.number: dict[tuple[str, str, str], int] = {}
        self.opened: Counter[str] = Counter()
        self.decided: Counter[str] = Counter()
        self.left: dict[str, Decimal] = {}  # of what was granted

    def order(self, row: Row, question: Row) -> Iterator[Command]:
        """The commands for an order, and the price after it."""
        if "action" in row:
            side = "yes" if row["yes_shares_delta"] > 0 else "no"
            held = self.held.get((row["trader"], row["qid"], OTHER[side]), Decimal(0))
            for leg in legs(row, held, question["liquidity_b"]):
                identity = f"{row['tid']}/{'close' if leg.closes else 'open'}"
                yield _quote(f"{identity}/price", row["at"], row["qid"], leg.price, "order")
                yield from (self.sell if leg.closes else self.buy)(identity, row, leg)
        yield _quote(f"{row['tid']}/mark", row["at"], row["qid"], row["price_after"], "market")

    def buy(self, identity: str, row: Row, leg: Leg) -> Iterator[Command]:
        """A bet of what the shares cost, after a deposit of it where it is needed."""
        trader, key, amount = row["trader"], (row["trader"], row["qid"], leg.side), leg.value
        left = self.left.get(trader, GRANTED)
        if left < amount:
            deposited = {"amount": _text(amount), "reason": "the grant is spent"}
            yield self.command(f"{identity}/deposit", "deposit_cash", row, **deposited)
        else:
            self.left[trader] = left - amount
        if key not in self.number:
            self.opened[trader] += 1
            self.number[key] = self.opened[trader]
        self.held[key] = self.held.get(key, Decimal(0)) + leg.shares
        bet = {"market_id": row["qid"], "side": leg.side, "amount": _text(amount)}
        yield self.decision(identity, row, action="BET", bets=[bet])

    def sell(self, identity: str, row: Row, leg: Leg) -> Iterator[Command]:
        """A sale of that percentage of the shares held."""
        key = (row["trader"], row["qid"], leg.side)
        number, held = self.number[key], self.held[key]
        percentage = (100 * leg.shares / held).quantize(_MICRO)
        self.held[key] = held - leg.shares
        if percentage == 100:
            del self.held[key], self.number[key]
        sale = {"position_id": str(number), "percentage": _text(percentage)}
        yield self.decision(identity, row, action="SELL", sells=[sale])

    def decision(self, identity: str, row: Row, **fields: Any) -> Command:
        """The trader's next decision; its reasoning names the order."""
        self.decided[row["trader"]] += 1
        numbered = {"period": self.decided[row["trader"]], "reasoning": row["tid"]}
        return self.command(identity, "record_decision", row, **numbered, **fields)

    def command(self, identity: str, type_: str, row: Row, **fields: Any) -> Command:
        """A command of the order's trader at its instant."""
        return _command(identity, type_, row["at"], contest=self.contest, participant=row["trader"], **fields)


def legs(row: Row, held: Decimal, liquidity: Decimal) -> list[Leg]:
    """The parts of an order of somebody who holds so much of the other side.

    >>> row = {"action": "close", "yes_shares_delta": Decimal(-8), "lmsr_yes_cost": Decimal(-2)}
    >>> [(leg.closes, leg.side, leg.shares, leg.price) for leg in legs(row, Decimal(9), Decimal(100))]
    [(True, 'yes', Decimal('8'), Decimal('0.250000000'))]
    """
    delta, cost = row["yes_shares_delta"], row["lmsr_yes_cost"]
    side, whole = ("yes" if delta > 0 else "no"), abs(delta)
    closed = min(_closed(row, held), held)
    if closed and whole - closed < DUST:
        return [Leg(True, OTHER[side], closed, _price(cost, delta))]
    if closed < DUST:
        return [Leg(False, side, whole, _price(cost, delta))]
    first = closed.copy_sign(delta)
    paid = maker_cost(liquidity, row["price_before"], first)
    return [
        Leg(True, OTHER[side], closed, _price(paid, first)),
        Leg(False, side, whole - closed, _price(cost - paid, delta - first)),
    ]


def _closed(row: Row, held: Decimal) -> Decimal:
    """The shares of the other side that an order sells."""
    whole: Decimal = abs(row["yes_shares_delta"])
    said: dict[str, Decimal] = {"open": Decimal(0), "close": whole, "flip": row.get("closed_shares", whole)}
    return said.get(row["action"], whole if held >= whole - DUST else Decimal(0))


def maker_cost(liquidity: Decimal, price: Decimal, shares: Decimal) -> Decimal:
    """The maker's price for shares of yes, negative if it takes them back: b ln(1 + p (e^(q / b) - 1)).

    Source: Hanson (2003), Information Systems Frontiers 5(1):107-119.
    """
    b, p, q = map(float, (liquidity, price, shares))
    return Decimal(b * log1p(p * expm1(q / b))).quantize(_NANO)


def _price(cost: Decimal, shares: Decimal) -> Decimal:
    return (cost / shares).quantize(_NANO)


def _quote(identity: str, at: str, qid: str, price: Decimal, source: str) -> Command:
    quoted = {"question": qid, "prices": {"yes": _text(price)}, "source": source, "quoted_at": at}
    return _command(identity, "quote", at, **quoted)


def _text(number: Decimal) -> str:
    return format(number, "f")


def _midnight(instant: str, days_after: int) -> str:
    return f"{date.fromisoformat(instant[:10]) + timedelta(days=days_after)}T00:00:00Z"


def _command(identity: str, type_: str, at: str, **fields: Any) -> Command:
    return {"id": identity, "type": type_, "at": at, **fields}
