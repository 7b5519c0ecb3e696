"""Explain scores adjusted for difficulty: the scores of a participant and the effects of their questions."""

from fractions import Fraction

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import WEIGHT, format_fixed
from forecast_ledger.projections.studies.difficulty import CONTEST
from forecast_ledger.replay.explain.explain_boards import board_row, explanation, nine, number_key, read_contest
from forecast_ledger.replay.explain.explain_scores import Explanation
from forecast_ledger.replay.reading.log import Log

_WORDS = "the weighted mean of score - effect, where the effects of the questions are fitted by least squares"


def adjusted(source: Log, contest: str, participant: str) -> Explanation:
    """Explain an adjusted score: the participant's scores, and what each question adds to a score.

    A part is a question. The numbers are those of the tables `adjusted_scores`, `difficulty` and `scores`; the effects
    are shown to nine decimals, and the adjusted score is computed from exact ones. If somebody who has no rank is in
    several parts of the design, it is the first. Raises, first that applies: what `read_log` raises; Refused:
    unknown_contest, nothing_standing (not on the board, or no score of theirs counts), out_of_range (a fit would take
    too long).
    """
    reading = read_contest(source, contest, participant)
    projections, place = board_row(reading, contest, participant)

    def rows(table: str) -> list[dict[str, str]]:
        own = (row for row in projections.table(table).rows() if row["by"] == CONTEST and row["name"] == contest)
        return [*own]

    found = next((row for row in rows("adjusted_scores") if row["participant"] == participant), None)
    if found is None:
        detail = "no score of theirs counts, or nobody whose scores are fitted has a score on the same questions"
        remedy = "`table LOG adjusted_scores` lists the scores that are adjusted"
        raise Refused("nothing_standing", "participant", participant, detail, remedy=remedy)
    effects = {row["question"]: row for row in rows("difficulty") if row["part"] == found["part"]}
    opened, codes = reading.facts.contests[contest], reading.facts.question_codes.codes
    own = projections.table("scores").only("contest", contest).only("participant", participant).rows()
    scores = {row["question"]: row["score"] for row in own if row["question"] in effects}
    parts = [
        {
            "question": question,
            "weight": format_fixed(opened.entries[codes[question]].weight, WEIGHT),
            "participants": effects[question]["participants"],
            "mean_score": effects[question]["mean_score"],
            "score": score,
            "effect": effects[question]["effect"],
            "adjusted": nine(Fraction(score) - Fraction(effects[question]["effect"])),
        }
        for question, score in scores.items()
    ]
    described = {**number_key("adjusted", contest, place), **found}
    return explanation(reading, opened, described, parts, _WORDS)
