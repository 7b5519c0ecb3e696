"""The rows of the catalogue for tables of calibration without bins."""

from forecast_ledger.projections.catalogue.inputs import SAMPLED
from forecast_ledger.projections.catalogue.schemas import CONTEST, PARTICIPANT, Projection
from forecast_ledger.projections.core.column_values import Column
from forecast_ledger.projections.tables import analytics_tables

CALIBRATION: dict[str, Projection] = {
    "corp": Projection(
        1,
        "the Brier score as miscalibration - discrimination + uncertainty, by isotonic regression, without bins",
        ("contest", "participant"),
        (
            CONTEST,
            PARTICIPANT,
            Column("n", "count", "number of questions forecast on"),
            Column("brier", "points", "mean of (p - o)², 0 is perfect; as in the table `brier`"),
            Column("miscalibration", "points", "what recalibrated forecasts would take off it; 0 is perfect"),
            Column("discrimination", "points", "by how much recalibrated forecasts beat the base rate"),
            Column("uncertainty", "points", "the score of the base rate itself"),
        ),
        analytics_tables.corp_values,
        reads=SAMPLED,
        on_request=True,
    ),
    "corp_blocks": Projection(
        1,
        "how often forecasts came true, where isotonic regression gives them the same probability",
        ("contest", "participant", "from_probability"),
        (
            CONTEST,
            PARTICIPANT,
            Column("from_probability", "share", "the least forecast of the block"),
            Column("to_probability", "share", "the greatest forecast of the block"),
            Column("n", "count", "number of forecasts in the block"),
            Column("happened", "count", "number of these forecasts whose question resolved yes"),
            Column("recalibrated", "share", "happened / n: what these forecasts should have been"),
        ),
        analytics_tables.corp_blocks_values,
        reads=SAMPLED,
        on_request=True,
    ),
}
