"""The catalogue of the tables that say how sure boards are, and the functions that build them."""

from forecast_ledger.projections.catalogue.inputs import SCORED
from forecast_ledger.projections.catalogue.schemas import CONTEST, PARTICIPANT, Projection
from forecast_ledger.projections.core.column_values import Column
from forecast_ledger.projections.tables import interval_tables

UNCERTAINTY: dict[str, Projection] = {
    "intervals": Projection(
        2,
        "how far scores, ranks and prizes move if the questions of a contest are drawn again, best first",
        ("contest", "participant"),
        (
            CONTEST,
            PARTICIPANT,
            Column("score", "points", "the total score on the leaderboard"),
            Column("score_low", "points", "lower end of its interval, at the level_ppm of the rules"),
            Column("score_high", "points", "upper end"),
            Column("rank", "count", "the rank on the leaderboard; empty if there is none"),
            Column("rank_low", "count", "lower end of its interval, the better rank"),
            Column("rank_high", "count", "upper end"),
            Column("rank_set_low", "count", "the best rank that the data allow, for all participants at once"),
            Column("rank_set_high", "count", "the worst rank that they allow; empty if it cannot be said"),
            Column("first", "share", "share of the replicates in which the rank is 1"),
            Column("best_5_percent", "share", "share of the replicates in which the rank is among the best 5%"),
            Column("prize", "money", "the prize on the leaderboard; empty if the participant cannot win one"),
            Column("prize_low", "money", "lower end of its interval"),
            Column("prize_high", "money", "upper end"),
            Column("replicates", "count", "number of replicates"),
            Column("seed", "text", "seed of the draws: SHA-256 of the digest of the log, `intervals` and the contest"),
        ),
        interval_tables.intervals_values,
        reads=(*SCORED, "digest"),
        as_built=True,
        on_request=True,
    ),
    "resolution": Projection(
        2,
        "the least difference of total scores that the questions of a contest could have shown",
        ("contest",),
        (
            CONTEST,
            Column("ranked", "count", "number of participants with a rank"),
            Column("pairs", "count", "number of pairs of them"),
            Column("smallest", "points", "least difference that would be significant for some pair, all at once"),
            Column("middle", "points", "the same for a pair in the middle, the lower of two"),
            Column("largest", "points", "the same for the pair whose difference varies most"),
        ),
        interval_tables.resolution_values,
        reads=("resolutions", "scored_forecasts", "scored_questions", "contests", "digest"),
        on_request=True,
    ),
    "pairwise": Projection(
        2,
        "pairs of participants compared on the questions that both have forecast on, in the order of the leaderboard",
        ("contest", "participant", "other"),
        (
            CONTEST,
            PARTICIPANT,
            Column("other", "id", "a participant who is lower on the leaderboard"),
            Column("questions", "count", "number of questions that both have a score on"),
            Column("won", "count", "on how many of them the participant has the better score"),
            Column("lost", "count", "on how many the other has the better score"),
            Column("won_share", "share", "share of the questions that the participant won; a tie counts half"),
            Column(
                "difference",
                "points",
                "weighted mean of the differences of scores, above 0 if the participant is better",
            ),
            Column("difference_low", "points", "lower end of its interval, as in the table `intervals`"),
            Column("difference_high", "points", "upper end"),
            Column(
                "p", "share", "p-value of a permutation test with 999 permutations: that nobody of the two is better"
            ),
            Column("p_adjusted", "share", "the p-value adjusted for the number of pairs by Holm's method"),
            Column("hoeffding_low", "points", "lower end of a confidence sequence: valid however often one looks"),
            Column("hoeffding_high", "points", "upper end; empty if scores have no bounds"),
            Column("bernstein_low", "points", "lower end of an empirical Bernstein confidence sequence"),
            Column("bernstein_high", "points", "upper end"),
            Column("seed", "text", "seed of the draws: SHA-256 of the digest of the log, `pairwise` and the contest"),
        ),
        interval_tables.pairwise_values,
        reads=(*SCORED, "digest"),
        as_built=True,
        on_request=True,
    ),
}
