"""Possible ranks: the sets of ranks that a page and its pictures show, and who may be the best by them."""

from collections.abc import Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.studies.grounds import reasons_of
from forecast_ledger.projections.studies.resampling import LEAST_CLUSTERS
from forecast_ledger.projections.tables.analysis import per_contest
from forecast_ledger.projections.tables.boards import intervals_values
from forecast_ledger.projections.tables.catalogue import Projections, Row
from forecast_ledger.projections.tables.scores import adjusted_intervals_values, adjusted_scores_values
from forecast_ledger.replay.pages.pictures import leaderboard_rows

ENOUGH = f"with scores in at least {LEAST_CLUSTERS} clusters"
HARDLY = "neighbouring rounds of one season, for example, are hardly so, and then"  # independent, as is assumed
NARROW = "intervals and possible ranks are too narrow"
OFTEN = "differences are called significant too often"
DOUBT = f"{HARDLY} {NARROW}, and {OFTEN}"
MOST_FIRST = 5  # names of those who may be first


class PossibleRanks(NamedTuple):
    """The possible ranks of a contest, of adjusted scores where scores are means over different questions.

    rows: of the table `intervals`, with these sets of ranks. differ: whether questions differ. adjusted: rows of the
    table `adjusted_scores` by participant; {} if questions do not differ, or there are no scores that compare all.
    sure: who may be the best, and withheld: a sentence that says why there are no sets of adjusted scores; "" if there
    is nothing to say.
    """

    rows: Sequence[Row]
    differ: bool
    adjusted: dict[str, Row]
    sure: str
    withheld: str


def possible_ranks(projections: Projections, contest: str, intervals: Sequence[Row]) -> PossibleRanks:
    """Return the possible ranks of a contest. intervals: its rows of the table `intervals`; [] if it has none."""
    if not questions_differ(projections, contest):
        return PossibleRanks(intervals, False, {}, who_may_be_first(intervals), "")
    adjusted, why = _adjusted(projections, contest)
    sets = dict[str, Row]()
    if adjusted:
        try:
            table = projections.as_table("adjusted_intervals", adjusted_intervals_values(projections, contest))
            sets = {row["participant"]: row for row in table.rows()}
        except Refused as error:  # too many questions for so many samples
            why = error.detail
    rows = [row | _set_of(sets.get(row["participant"], {})) for row in intervals]
    sure = who_may_be_first(
        [row | _set_of(sets.get(who, {})) for who, row in adjusted.items()],
        "whose adjusted scores have intervals",
        "none",
        intervals,
    )
    if sure:
        return PossibleRanks(rows, True, adjusted, f"By adjusted scores, {sure[0].lower()}{sure[1:]}", "")
    others = {row["withheld"] for row in sets.values()} - {row["withheld"] for row in intervals} - {""}
    reasons = reasons_of(projections.facts.contests[contest].opened.rules, projections.scored(contest))
    why = why or "; ".join(["no adjusted score has an interval", *(reasons[reason] for reason in sorted(others))])
    words = f"No possible ranks are shown: scores are means over different questions, and {why}."
    return PossibleRanks(rows, True, adjusted, "", words)


@per_contest
def interval_rows(projections: Projections, contest: str) -> list[Row]:
    """Return the rows of a contest in the table `intervals`, without its sets of ranks if others are shown.

    Raises Refused: the contest is too large.
    """
    with_sets = not questions_differ(projections, contest)
    return [*projections.as_table("intervals", intervals_values(projections, contest, with_sets=with_sets)).rows()]


def known_intervals(projections: Projections, contest: str) -> list[Row]:
    """Return what `interval_rows` returns; [] if it is refused, and `left_out` says why."""
    try:
        return interval_rows(projections, contest)
    except Refused:
        return []


@per_contest
def questions_differ(projections: Projections, contest: str) -> bool:
    """Return whether scores are means over different questions."""
    rules, board = projections.facts.contests[contest].opened.rules, leaderboard_rows(projections, contest)
    if rules.total != "mean" or rules.imputation != "none" or not board:
        return False
    if len({row["completion"] for row in board}) > 1:
        return True
    done, every = map(int, board[0]["completion"].split("/"))
    if done == every:
        return False
    names, questions = {row["participant"] for row in board}, projections.scored(contest).questions
    counted = {
        each.question.question for each, weight in zip(questions.answers, questions.weight, strict=True) if weight
    }
    rows = projections.rows_of("scores", contest)  # as many questions need not be the same ones
    return len(counted & {row["question"] for row in rows if row["participant"] in names}) > done


def _adjusted(projections: Projections, contest: str) -> tuple[dict[str, Row], str]:
    """Return the adjusted scores of those with a rank, by participant; {} and why, if they do not compare all."""
    try:
        table = projections.as_table("adjusted_scores", adjusted_scores_values(projections, contest))
    except Refused as error:  # too many scores for an exact fit
        return {}, error.detail
    rows = {row["participant"]: row for row in table.rows() if row["rank"] is not None}
    if len({row["part"] for row in rows.values()}) > 1:
        return {}, "no common questions connect all participants"
    return rows, ""


def _set_of(row: Row) -> Row:
    """Return the set of ranks of a row; None where it has none."""
    return {end: row.get(end) for end in ("rank_set_low", "rank_set_high")}


def board_finding(rows: Sequence[Row], ranks: PossibleRanks | None = None, where: str = "on the board") -> str:
    """Say who may be first, if that is known, and who is. rows: of the table `leaderboard`, or `intervals`.

    where: who is first is so, if questions differ.

    >>> ada, bob = {"rank": 1, "participant": "ada"}, {"rank": 2, "participant": "bob"}
    >>> board_finding([ada, bob])
    'ada is first'
    >>> board_finding([ada, bob], PossibleRanks([], True, {}, "By adjusted scores, only bob may be the best", ""))
    'By adjusted scores, only bob may be the best; ada is first on the board'
    """
    first = [row for row in rows if row["rank"] == 1]
    if not first:
        return "Nobody has a rank"
    if len(first) > 1:
        words = f"{len(first)} participants share the first rank"
    elif sum(row["rank"] is not None for row in rows) == 1:
        return f"{first[0]['participant']} is the only one with a rank"
    else:
        words = f"{first[0]['participant']} is first"
    if ranks is None:
        return words
    return "; ".join(filter(None, [ranks.sure, words + f" {where}" * ranks.differ]))


def who_may_be_first(
    rows: Sequence[Row], enough: str = ENOUGH, lacks: str = "fewer", board: Sequence[Row] | None = None
) -> str:
    """Say who may be the best by the sets of ranks; nothing if there are none. rows: of the table `intervals`.

    enough: what those have who are tested. lacks: what of that the others have. board: rows with the ranks of the
    board, if `rows` have those of adjusted scores.

    >>> ada, bob = ({"rank": 1, "participant": name} for name in ("ada", "bob"))
    >>> who_may_be_first([ada | {"rank_set_low": 1}, bob | {"rank_set_low": 2}])
    'Only ada may be the best'
    >>> who_may_be_first([ada | {"rank_set_low": None}, bob | {"rank_set_low": 1}])
    'Only bob may be the best of the 1 with scores in at least 20 clusters; ada has fewer, and is not tested'
    >>> who_may_be_first([ada | {"rank": rank, "rank_set_low": low} for rank, low in ((1, 1), (2, 1), (3, None))])
    'Any of the 2 participants with scores in at least 20 clusters may be the best; ada has fewer, and is not tested'
    """
    names = [row["participant"] for row in rows if row.get("rank_set_low") == 1]
    if not names:
        return ""
    told, ranked = (sum(row.get(name) is not None for row in rows) for name in ("rank_set_low", "rank"))
    among = f" of the {told:,} {enough}" * (told < ranked)
    untold = _not_tested(rows, lacks, board)
    if len(names) == 1:
        return f"Only {names[0]} may be the best{among}{untold}"
    if among and len(names) == told:
        return f"Any of the {told:,} participants {enough} may be the best{untold}"
    listed = ": " + " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if len(names) <= MOST_FIRST else ""
    return f"Any of {len(names):,} participants may be the best{among}{listed}{untold}"


def _not_tested(rows: Sequence[Row], lacks: str, board: Sequence[Row] | None) -> str:
    """Say who has a rank and no set of ranks, and if a first is among them; "" if nobody. As `who_may_be_first`."""
    names = [row["participant"] for row in rows if row["rank"] is not None and row.get("rank_set_low") is None]
    if len(names) < 2:
        return "".join(f"; {name} has {lacks}, and is not tested" for name in names)
    boards = {"the first of the board": rows if board is None else board}
    if board is not None:
        boards["the first by adjusted score"] = rows
    firsts = {words: [row["participant"] for row in ranked if row["rank"] == 1] for words, ranked in boards.items()}
    told = " and ".join(words for words, first in firsts.items() if len(first) == 1 and first[0] in names)
    among = f"{told} among them, " if told else ""
    return f"; {len(names):,} have {lacks}, {among}and are not tested"
