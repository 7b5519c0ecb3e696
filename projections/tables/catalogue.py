"""The catalogue of projections: the schema of each table and the function that builds it from the facts."""

from forecast_ledger.projections.tables import (
    accounts,
    arena,
    boards,
    calibration,
    decisions,
    difficulty,
    forecasts,
    prices,
    questions,
    ranges,
    scores,
    uncertainty,
)
from forecast_ledger.projections.tables.schemas import Projection

CATALOGUE: dict[str, Projection] = {  # in the order in which tables are listed
    **questions.QUESTIONS,
    **forecasts.FORECASTS,
    **scores.SCORES,
    **boards.BOARDS,
    **uncertainty.UNCERTAINTY,
    **boards.PRIZES,
    **calibration.BRIER,
    **ranges.RANGES,
    **calibration.CALIBRATION,
    **forecasts.ADMISSIONS,
    **difficulty.DIFFICULTY,
    **arena.MARKET,
    **accounts.BALANCE,
    **accounts.ACCOUNTS,
    **arena.ARENA,
    **decisions.DECISIONS,
    **accounts.JOURNAL,
    **prices.PRICES,
}
BUILT = tuple(name for name, projection in CATALOGUE.items() if not projection.on_request)  # a replay builds these
EXPORTED = tuple(name for name, projection in CATALOGUE.items() if name in BUILT or projection.exported)
