"""The charts of a contest: each makes one picture from the tables of a replay."""

from collections.abc import Callable
from typing import NamedTuple

from forecast_ledger.projections.tables.projection import Projections
from forecast_ledger.replay.report.account_charts import profit
from forecast_ledger.replay.report.matrix_charts import coverage, pairwise
from forecast_ledger.replay.report.pictures import Picture
from forecast_ledger.replay.report.score_charts import board, calibration, prizes, score_over_time


class Chart(NamedTuple):
    """A kind of chart. words: what it shows. draw: returns None if a contest has nothing to show."""

    words: str
    draw: Callable[[Projections, str], Picture | None]


CHARTS: dict[str, Chart] = {
    "board": Chart("scores in the order of the leaderboard, with their intervals", board),
    "score": Chart("the scores of the best participants after each answer", score_over_time),
    "pairwise": Chart("which of two participants is better on common questions", pairwise),
    "calibration": Chart("how often what was forecast happened", calibration),
    "coverage": Chart("how much of the time each participant had a forecast on each question", coverage),
    "prizes": Chart("how the pool is divided", prizes),
    "profit": Chart("the profit of each account over time, and how far below its peak it is", profit),
}
