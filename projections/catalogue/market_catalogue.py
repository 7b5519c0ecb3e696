"""The rows of the catalogue for tables that compare forecasts with prices."""

from forecast_ledger.projections.catalogue.schemas import CONTEST, PARTICIPANT, QUESTION, Projection
from forecast_ledger.projections.core.column_values import Column
from forecast_ledger.projections.tables import arena_tables

_READS = ("resolutions", "scored_forecasts", "scored_questions", "quotes")
_ALL_IN = Column("all_in", "points", "return of a stake on the outcome with the largest probability / price")
_PROPORTIONAL = Column("proportional", "points", "return of a stake divided between outcomes as the probabilities are")
_KELLY = Column("kelly", "points", "return, on all the money, of Kelly's stake on the bought outcome")
_BRIER = Column("brier", "points", "mean over outcomes of (probability - o)²")
_MARKET_BRIER = Column("market_brier", "points", "mean over outcomes of (price - o)²")
_ALPHA = Column("alpha", "points", "market_brier - brier: above 0, the forecast beats the prices")

MARKET: dict[str, Projection] = {
    "implied_returns": Projection(
        1,
        "what the forecasts of the Brier scores would have earned at the last prices known when they were made",
        ("contest", "question", "participant"),
        (
            CONTEST,
            QUESTION,
            PARTICIPANT,
            Column("forecast_at", "instant", "when the forecast was made"),
            Column("quoted_at", "instant", "when the oldest of the prices was quoted"),
            Column("bought", "text", "the outcome with the largest probability / price, of equals the first"),
            Column("probability", "share", "the forecast's probability of that outcome"),
            Column("price", "share", "its price"),
            _ALL_IN,
            _PROPORTIONAL,
            Column(
                "kelly_stake", "share", "(probability - price) / (1 - price), at least 0: Kelly's share of the money"
            ),
            _KELLY,
            _BRIER,
            _MARKET_BRIER,
            _ALPHA,
            Column("left_out", "text", "why there is no return: no_quote, stale_quote, no_price or outcomes_changed"),
        ),
        arena_tables.implied_returns_values,
        reads=_READS,
        on_request=True,
    ),
    "mean_implied_returns": Projection(
        1,
        "the means of implied returns by participant, over the questions of a contest that have a quote",
        ("contest", "participant"),
        (
            CONTEST,
            PARTICIPANT,
            Column("n", "count", "number of forecasts with returns"),
            Column("left_out", "count", "number of forecasts without"),
            _ALL_IN,
            _PROPORTIONAL,
            _KELLY,
            _BRIER,
            _MARKET_BRIER,
            _ALPHA,
        ),
        arena_tables.mean_implied_returns_values,
        reads=_READS,
        on_request=True,
    ),
}
