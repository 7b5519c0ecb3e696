"""The chart of accounts: their profits over time."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Any

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.projections.tables.projection import Projections
from forecast_ledger.projections.trading.account_histories import Selection
from forecast_ledger.replay.report.chart_parts import MOST_LINES, chosen, left_out, names_legend, rows_of
from forecast_ledger.replay.report.pictures import WIDTH, Picture, Row, specify

MOST_POINTS = 200  # of a line
COLUMNS = ("participant", "at", "profit", "below_peak")


def profit(projections: Projections, contest: str) -> Picture | None:
    """The profit of each account over time, and how far below its peak it is."""
    if contest not in projections.traded:
        return None
    every = rows_of(projections, "arena_leaderboard", contest)
    board = every[:MOST_LINES]
    names = sorted(row["participant"] for row in board)  # so that a participant has one colour in several contests
    points = _points(projections, contest, board)
    if not points:
        return None
    shown = [point for name in names for point in _thinned(points[name])]
    values = [
        {"row": names.index(point["participant"]), "at": point["at"]}
        | {name: float(point[name]) for name in ("profit", "below_peak")}
        for point in shown
    ]
    currency = projections.facts.contests[contest].opened.currency
    panels = [
        _panel(names, field, f"{title} {currency}".strip(), height)
        for field, title, height in (("profit", "profit", 240), ("below_peak", "below peak", 90))
    ]
    note = "Profit is cash and the value of positions, less net deposits. The lower part is the distance to the peak."
    note += left_out(every, board).replace("first", "best")
    every_point = sum(map(len, points.values()))
    note += f" Of {every_point:,} changes of profit, {len(shown):,} are drawn." * (len(shown) < every_point)
    steps = {name: [(point["at"], Decimal(point["profit"])) for point in own] for name, own in points.items()}
    [contest_row] = rows_of(projections, "contests", contest)
    title = _largest_profit(board, steps, currency, so_far=contest_row["state"] == "open")
    return Picture(title, note, COLUMNS, shown, specify(values, vconcat=panels))


def _points(projections: Projections, contest: str, board: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows at which the profit of each account became another, and the last one."""
    portfolios = projections.selected_portfolios(Selection(contest)).only("contest", contest)
    latest = format_instant(projections.facts.books.clock)
    points: dict[str, list[Row]] = {}
    for last in board:  # the board may be later than the last tick
        rows = [*portfolios.only("participant", last["participant"]).rows(), last | {"at": latest}]
        own, peak, before = points.setdefault(last["participant"], []), Decimal(0), None
        for row in rows:
            amount = Decimal(row["profit"])
            peak = max(peak, amount)
            if amount != before or row is rows[-1]:
                own.append(chosen(row, COLUMNS[:3]) | {"below_peak": str(amount - peak)})
            before = amount
    return points


def _thinned(points: Sequence[Row]) -> list[Row]:
    """Return some of the points of a line, and the last one."""
    size = -(-len(points) // MOST_POINTS)
    return [point for place, point in enumerate(points) if place % size == 0 or place == len(points) - 1]


def _panel(names: Sequence[str], field: str, title: str, height: int) -> dict[str, Any]:
    """Return a line for each account. field: the column of the values."""
    x = {
        "field": "at",
        "type": "temporal",
        "title": None,
        "scale": {"type": "utc"},
        "axis": {"format": "%-d %b", "tickCount": 6},
    }
    y = {"field": field, "type": "quantitative", "title": title, "axis": {"titlePadding": 12}}
    colour = {"field": "row", "type": "nominal", "legend": names_legend(names)}
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8}
    return {"width": WIDTH, "height": height, "mark": mark, "encoding": {"x": x, "y": y, "color": colour}}


def _largest_profit(
    board: Sequence[Row], steps: Mapping[str, Sequence[tuple[str, Decimal]]], currency: str, *, so_far: bool = False
) -> str:
    """Say whose profit is the largest, since when, and what the second one is.

    board: the largest profit first. steps: when the profit of each participant became another, and which one.
    """
    best, *others = ((row["participant"], f"{float(row['profit']):,.2f} {currency}".rstrip()) for row in board)
    if not others:
        return f"{best[0]} has a profit of {best[1]}"
    first = board[0]
    sharing = sum(row["profit"] == first["profit"] or (row["rank"] or 0) == first["rank"] for row in board)
    if sharing > 1:
        return f"{sharing} participants share the largest profit, {best[1]}"
    now, since = dict.fromkeys(steps, Decimal(0)), ""
    changes = sorted((at, who, amount) for who, own in steps.items() for at, amount in own)
    for at, together in groupby(changes, itemgetter(0)):
        now |= {who: amount for _, who, amount in together}
        is_ahead = all(now[best[0]] > other for name, other in now.items() if name != best[0])
        since = (since or at) if is_ahead else ""
    largest = f"{best[0]} has the largest profit{' so far' * so_far}, {best[1]}, since {since[:10]}"
    return f"{largest}; {others[0][0]} has {others[0][1]}"
