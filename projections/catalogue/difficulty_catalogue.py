"""The rows of the catalogue for tables of difficulty."""

from forecast_ledger.projections.catalogue.inputs import SCORED
from forecast_ledger.projections.catalogue.schemas import CONTEST, PARTICIPANT, QUESTION, Projection
from forecast_ledger.projections.core.column_values import Column
from forecast_ledger.projections.tables import difficulty_tables

_DESIGN = (
    Column("by", "id", "contest or category: what the scores of one fit have in common"),
    Column(
        "name", "id", "the contest; or the category, of which questions are in several contests with the same rules"
    ),
    Column("part", "count", "1 for the part with most scores; only scores within a part can be compared"),
)

DIFFICULTY: dict[str, Projection] = {
    "difficulty": Projection(
        2,
        "how much each question raises or lowers scores, whoever forecasts on it: its effect, fitted by least squares",
        ("by", "name", "part", "contest", "question"),
        (
            *_DESIGN,
            CONTEST,
            QUESTION,
            Column("participants", "count", "number of participants whose scores are fitted"),
            Column("mean_score", "points", "mean of their scores"),
            Column("effect", "points", "what the question adds to a score; the weighted mean of a part's effects is 0"),
        ),
        difficulty_tables.difficulty_values,
        reads=("resolutions", "scored_forecasts", "scored_questions", "contests"),
        on_request=True,
        whole=True,
    ),
    "adjusted_scores": Projection(
        2,
        "mean scores adjusted for the difficulty of the questions that each participant forecast on, best first",
        ("by", "name", "part", "participant"),
        (
            *_DESIGN,
            Column("rank", "count", "1, 2, 2, 4 by adjusted score; empty if the scores are not fitted"),
            PARTICIPANT,
            Column(
                "questions",
                "count",
                "number of questions of the part that the participant forecast on; a question without a fitted score "
                "is in no part",
            ),
            Column("mean_score", "points", "weighted mean of the scores on these questions of the part"),
            Column(
                "adjusted_score", "points", "weighted mean of score - effect of the question, on the same questions"
            ),
            Column(
                "brier_index",
                "points",
                "100 x (1 - √adjusted_score), if the scores are Brier scores; always ½ has 50; empty below 0",
            ),
            Column("excluded", "text", "why the scores are not fitted: no_rank, consensus or reference"),
        ),
        difficulty_tables.adjusted_scores_values,
        reads=SCORED,
        as_built=True,
        on_request=True,
        whole=True,
    ),
    "relative_skill": Projection(
        2,
        "mean scores beside those of others on the same questions; only of rules by which 0 is the best score",
        ("contest", "baseline", "participant"),
        (
            CONTEST,
            Column("baseline", "id", "the participant whose relative skill is 1 in scaled_relative_skill"),
            PARTICIPANT,
            Column("compared", "count", "number of participants in the geometric mean, themselves included"),
            Column(
                "relative_skill",
                "points",
                "geometric mean of the ratios of the own mean score to each other's, on common questions; lower is "
                "better; empty if a mean is 0",
            ),
            Column("scaled_relative_skill", "points", "relative_skill / that of the baseline"),
            Column("excluded", "text", "why nobody else is compared with them: no_rank, consensus or reference"),
        ),
        difficulty_tables.relative_skill_values,
        reads=SCORED,
        on_request=True,
    ),
    "participant_review": Projection(
        2,
        "the questions of each participant, the best first, beside the others, with what a missed question cost",
        ("contest", "participant", "place"),
        (
            CONTEST,
            PARTICIPANT,
            Column("place", "count", "1 for the question that gained most, times its weight"),
            QUESTION,
            Column("score", "points", "the score; empty without a forecast"),
            Column("rank", "count", "rank of the score on this question; empty without a forecast"),
            Column("forecasters", "count", "number of participants on the leaderboard with a forecast on it"),
            Column("coverage", "share", "share of the period with a standing forecast"),
            Column("attainable", "share", "coverage of a forecast that stood all the time that is scored"),
            Column("median", "points", "median of the scores of these participants"),
            Column(
                "counted",
                "points",
                "the score or, without a forecast, what the rules count; empty if they count nothing",
            ),
            Column("gained", "points", "by how much counted is better than the median; below 0, what it cost"),
        ),
        difficulty_tables.participant_review_values,
        reads=("resolutions", "scored_forecasts", "scored_questions", "contests"),
        on_request=True,
    ),
}
