"""The accounts of a contest with trading in a report: their ranking, what they hold, and how their cash moved."""

from collections.abc import Sequence
from decimal import Decimal

from forecast_ledger.ledger.core.values import format_count
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.tables.catalogue import Projections, Row
from forecast_ledger.replay.pages.page_parts import (
    MOST_PARTICIPANTS,
    Part,
    Participant,
    by_participant,
    ends_of,
    in_table,
    kinds_of,
    row_anchor,
    short_table,
)
from forecast_ledger.replay.reading.descriptions import trading_words

MOST_MOVEMENTS = 100
HELD = {"open", "pending"}  # states of a position that is worth its mark
_RANKING = (
    "The total is cash and the value of the positions held; the profit is the total less what was paid in. There is "
    "no interval that says how sure the order is; with other questions, it could be another. The drawdown is the "
    "largest fall of an account from its peak, as a share of the peak; a debt makes it more than 100%. The win rate "
    "is the share of purchases on resolved questions whose outcome happened; one that is paid in part did not. The "
    "Sharpe ratio is the mean return of the positions that were sold or settled, divided by the standard deviation of "
    "these returns; it needs two different ones, and a refund has none."
)
_ACCOUNT_STATES = {
    "open": "held",
    "pending": "held; the question is closed, and has no answer yet",
    "closed": "ended by a sale",
    "settled": "ended by the answer",
    "refunded": "ended by a refund",
}


def trading_facts(rules: Trading, currency: str) -> list[tuple[str, str]]:
    """Return how participants trade and are ranked, in words."""
    cash = f"{rules.starting_cash_micros / 10**6:,.2f} {currency}".rstrip()
    how = "participants buy and sell shares of outcomes at quoted prices, and a share pays 1 if its outcome happens"
    return [
        ("Accounts", f"start with {cash}; {how}"),
        ("Rules of trading", "; ".join(trading_words(rules))),
        ("Ranking", "by profit, rounded to the payable unit, best first"),
    ]


def account_parts(projections: Projections, name: str) -> list[Part]:
    """Return the ranking of accounts, what they hold, and how their cash moved."""
    positions, cash = by_participant(projections, "positions", name), by_participant(projections, "cash", name)
    rows = projections.rows_of("arena_leaderboard", name)
    for row in rows:
        row["cash"] = cash[row["participant"]][-1]["balance"] if row["participant"] in cash else None
        held = positions.get(row["participant"], [])
        row["positions"] = str(sum((Decimal(each["value"]) for each in held), Decimal(0)))
    columns = ("participant", "rank", "cash", "positions", "total", "profit", "return_percent", "drawdown", "win_rate",
               "sharpe_ratio", *["fees"] * any(Decimal(row["fees"]) for row in rows))  # fmt: skip
    kinds = kinds_of(projections, "arena_leaderboard") | {"cash": "money", "positions": "money"}
    ranking = short_table(kinds, rows, columns)
    parts = [Part("Ranking", _RANKING, "Accounts, the largest profit first", ranking)]
    return [*parts, *_held(projections, name), *_movements(projections, name)]


def _held(projections: Projections, name: str) -> list[Part]:
    """Return the positions that are held."""
    rows = [row for row in projections.rows_of("positions", name) if row["status"] in HELD]
    for row in rows:
        row |= {"paid_a_share": row["average_entry"], "price": row["mark"], "gain": row["unrealised"]}
    columns = ("participant", "question", "outcome", "shares", "paid_a_share", "cost", "price", "value", "gain")
    kinds = kinds_of(projections, "positions") | {"paid_a_share": "points", "price": "points", "gain": "money"}
    return [Part("Positions held", "", "Positions held", short_table(kinds, rows, columns))] * bool(rows)


def _movements(projections: Projections, name: str) -> list[Part]:
    """Return the last movements of cash, with the trades that they are of."""
    trades = {(row["participant"], row["log_position"]): row for row in projections.rows_of("trades", name)}
    outcomes = {(row["participant"], row["position"]): row["outcome"] for row in projections.rows_of("positions", name)}
    rows = sorted(projections.rows_of("cash", name), key=lambda row: row["log_position"])
    rows = [row for row in rows if row["movement"] != "granted"]
    shown, note = rows[-MOST_MOVEMENTS:], "Times are UTC."
    for row in shown:
        trade = trades.get((row["participant"], row["log_position"]), {})
        row |= {"shares": trade.get("shares"), "price": trade.get("price")}
        row |= {"outcome": outcomes.get((row["participant"], row["position"])), "cash": row["balance"]}
        row["at"] = f"{row['at'][:10]}\u00a0{row['at'][11:16]}"
    if len(shown) < len(rows):
        note += f" The last {len(shown)} of {len(rows):,} are shown; {in_table('cash')}."
    columns = ("participant", "at", "movement", "question", "outcome", "shares", "price", "amount", "cash")
    kinds = kinds_of(projections, "cash") | {"at": "text", "outcome": "id", "shares": "money", "price": "points"}
    table = short_table(kinds | {"cash": "money"}, shown, columns)
    return [Part("Trades and payments", note, "Movements of cash, the oldest first", table)] * bool(rows)


def accounts(projections: Projections, name: str, anchor: str) -> list[Participant]:
    """Return a section for each account: its profit, and the positions on which most was gained and lost."""
    positions, bought = by_participant(projections, "positions", name), _bought(projections.rows_of("trades", name))
    titles = {row["question"]: row["title"] for row in projections.table("questions").rows()}
    sections = []
    for number, row in enumerate(projections.rows_of("arena_leaderboard", name)[:MOST_PARTICIPANTS]):
        who = row["participant"]
        holdings = positions.get(who, [])
        for holding in holdings:
            holding["gain"] = str(Decimal(holding["realised"]) + Decimal(holding["unrealised"]))
            holding["bought_for"] = str(bought.get((who, holding["position"]), 0))
            holding["state"] = _ACCOUNT_STATES.get(holding["status"], holding["status"])
            holding["question"] = ": ".join(filter(None, (holding["question"], titles.get(holding["question"]))))
        holdings.sort(key=lambda each: (-Decimal(each["gain"]), each["position"]))
        shown, caption = ends_of(holdings, "positions", "positions", len(holdings))
        kinds = kinds_of(projections, "positions") | {"bought_for": "money", "state": "text", "gain": "money"}
        table = short_table(kinds, shown, ("question", "outcome", "bought_for", "state", "gain"))
        section = row_anchor(anchor, "account", number)
        sections.append(Participant(section, who, _account_words(row, len(holdings)), caption, table))
    return sections


def _account_words(row: Row, positions: int) -> str:
    """Say what an account stands for, its rank and profit, and how many positions and decisions it had."""
    known = ", ".join(f"{name} {row[name]}" for name in ("family", "release") if row[name])
    rank = "has no rank" if row["rank"] is None else f"has rank {row['rank']}"
    words = f"{known} {rank}" if known else rank
    words += f" with a profit of {Decimal(row['profit']):,.2f}; {format_count(positions, 'position')}"
    words += f" in {format_count(row['decided'], 'decision')}" * bool(row["decided"])
    return words + (f"; excluded: {row['excluded']}." if row["excluded"] else ".")


def _bought(trades: Sequence[Row]) -> dict[tuple[str, int], Decimal]:
    """Return the amount for which each position of a participant was bought."""
    sums: dict[tuple[str, int], Decimal] = {}
    for row in trades:
        if row["type"] == "buy":
            key = row["participant"], row["position"]
            sums[key] = sums.get(key, Decimal(0)) + Decimal(row["amount"])
    return sums
