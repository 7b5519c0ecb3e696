"""The rows of the catalogue for tables that say what is wrong with forecasts: calibration, width and bias."""

from forecast_ledger.projections.catalogue.inputs import SAMPLED
from forecast_ledger.projections.catalogue.schemas import CONTEST, PARTICIPANT, QUESTION, Projection
from forecast_ledger.projections.core.column_values import Column
from forecast_ledger.projections.tables import analytics_tables, range_tables

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
    "wis_parts": Projection(
        1,
        "the weighted interval score of each participant on each question, split into the width of the forecasts and "
        "the penalties for answers above or below their intervals",
        ("contest", "question", "participant"),
        (
            CONTEST,
            QUESTION,
            PARTICIPANT,
            Column("wis", "points", "the weighted interval score, in the question's unit; without a reference"),
            Column("dispersion", "points", "dispersion_numerator / denominator: how wide the intervals are"),
            Column("overprediction", "points", "the same for answers below intervals, or below the median"),
            Column("underprediction", "points", "the same for answers above intervals, or above the median"),
            Column("median_error", "points", "absolute error of the median; empty if 0.5 is not a level"),
            Column("dispersion_numerator", "integer", "the three numerators add up to that of the score"),
            Column("overprediction_numerator", "integer", "exactly 0 if every answer is within or above the intervals"),
            Column("underprediction_numerator", "integer", "exactly 0 if every answer is within or below them"),
            Column("median_error_numerator", "integer", "its share of the score is this / number of levels"),
            Column("denominator", "integer", "what all numerators are divided by; as in `scores` without a reference"),
        ),
        range_tables.wis_parts_values,
        reads=("resolutions", "scored_forecasts", "scored_questions", "reference_names"),
        division="scores",
        on_request=True,
    ),
    "interval_coverage": Projection(
        3,
        "how often answers fell within the central intervals of numeric forecasts; as often as their probability says, "
        "if forecasts are calibrated",
        ("contest", "participant", "probability"),
        (
            CONTEST,
            PARTICIPANT,
            Column(
                "probability",
                "share",
                "of the interval: 0.5 for that from the quantile of 0.25 to that of 0.75; a cdf or samples have those "
                "of 0.5, 0.8, 0.9 and 0.95",
            ),
            Column("n", "count", "number of forecasts with such an interval"),
            Column(
                "covered",
                "points",
                "how many answers these hold: 1 for an answer within or at an end; if the forecast puts probability on "
                "the answer itself (a discrete value, all beyond an open end, several equal quantiles), the share of "
                "this probability that the interval has. Of n samples, each of the n + 1 gaps has the same probability",
            ),
            Column("coverage", "share", "covered / n"),
        ),
        range_tables.interval_coverage_values,
        reads=("resolutions", "scored_forecasts", "scored_questions"),
        on_request=True,
    ),
    "pit_counts": Projection(
        2,
        "in which tenth of their numeric forecasts answers fell: a tenth of them in each, if forecasts are calibrated",
        ("contest", "participant", "from_probability"),
        (
            CONTEST,
            PARTICIPANT,
            Column("from_probability", "share", "lower end of the tenth, excluded unless it is 0"),
            Column(
                "to_probability", "share", "upper end, included: an answer at a quantile is in the tenth that it ends"
            ),
            Column(
                "n",
                "points",
                "how many answers fell in it; quantiles need the levels 0.1 to 0.9, and samples count as in "
                "`interval_coverage`. If the forecast puts probability on the answer itself (a discrete value, all "
                "beyond an open end, several equal quantiles), the answer counts in each tenth by the share of this "
                "probability that the tenth has",
            ),
        ),
        range_tables.pit_counts_values,
        reads=("resolutions", "scored_forecasts", "scored_questions"),
        on_request=True,
    ),
    "calibration_by_option": Projection(
        1,
        "observed frequency by forecast probability, in bins, of the outcomes of multiple-choice questions",
        ("contest", "participant", "from_probability"),
        (
            CONTEST,
            PARTICIPANT,
            Column("from_probability", "share", "lower end of the bin, included"),
            Column("to_probability", "share", "upper end of the bin, excluded unless it is 1"),
            Column("n", "count", "number of probabilities in the bin: one for each outcome of each forecast"),
            Column("happened", "count", "number of these outcomes that happened"),
            Column("mean_forecast", "share", "mean of these probabilities"),
            Column("observed_frequency", "share", "happened / n"),
            Column("wilson_low", "share", "lower end of the 95% Wilson interval, as if outcomes were independent"),
            Column("wilson_high", "share", "upper end"),
        ),
        analytics_tables.calibration_by_option_values,
        reads=("resolutions", "scored_forecasts", "scored_questions"),
        on_request=True,
    ),
    "calibration_time_weighted": Projection(
        1,
        "observed frequency by forecast probability, in the 21 bins that Metaculus draws; every forecast on a binary "
        "question counts, by the share of its open time that the forecast stood",
        ("contest", "participant", "from_probability"),
        (
            CONTEST,
            PARTICIPANT,
            Column("from_probability", "share", "lower end of the bin, included; a 24th is rounded up"),
            Column("to_probability", "share", "upper end of the bin, excluded unless it is 1"),
            Column("n", "count", "number of forecasts in the bin, several of a question among them"),
            Column("weight", "points", "sum over them of the share of the question's open time that each stood"),
            Column("mean_forecast", "share", "weighted mean probability of these forecasts"),
            Column("observed_frequency", "share", "weighted share of these forecasts whose question resolved yes"),
            Column("band_low", "share", "5% place of n events that have the lower end as their probability, / n"),
            Column("expected", "share", "50% place with the middle of the bin"),
            Column("band_high", "share", "95% place with the upper end; outside the band, forecasts are miscalibrated"),
        ),
        analytics_tables.calibration_time_weighted_values,
        reads=("resolutions", "scored_forecasts", "scored_questions"),
        on_request=True,
    ),
    "corp_band": Projection(
        2,
        "where recalibrated probabilities would be if forecasts were calibrated, by drawing what happens again",
        ("contest", "participant", "probability"),
        (
            CONTEST,
            PARTICIPANT,
            Column("probability", "share", "a probability that the participant has forecast"),
            Column("n", "count", "number of forecasts with it"),
            Column("recalibrated", "share", "what these forecasts should have been; as in `corp_blocks`"),
            Column("band_low", "share", "lower end of the band, at the level_ppm of the rules"),
            Column("band_high", "share", "upper end; calibrated forecasts are seldom outside"),
            Column(
                "replicates",
                "count",
                "number of replicates; in each, p comes true with probability p. As in the rules; in a contest of very "
                "many forecasts the most for which forecasts x replicates is at most 40,000,000, but at least 199",
            ),
            Column("seed", "text", "seed of the draws: SHA-256 of digest, `corp_band`, contest and participant"),
        ),
        analytics_tables.corp_band_values,
        reads=(*SAMPLED, "digest"),
        on_request=True,
    ),
    "murphy_curve": Projection(
        1,
        "the mean elementary score of probabilities at each threshold of action; its integral is half the Brier score",
        ("contest", "participant", "threshold"),
        (
            CONTEST,
            PARTICIPANT,
            Column("threshold", "share", "t: whoever acts if a forecast is above it"),
            Column("n", "count", "number of questions forecast on"),
            Column("false_alarms", "count", "forecasts above t of what did not happen; each costs t"),
            Column("misses", "count", "forecasts of t or less of what happened; each costs 1 - t"),
            Column("score", "points", "(t x false_alarms + (1 - t) x misses) / n; 0 is perfect"),
        ),
        analytics_tables.murphy_curve_values,
        reads=SAMPLED,
        on_request=True,
    ),
}
