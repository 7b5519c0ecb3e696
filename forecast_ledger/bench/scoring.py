"""Scores and boards: how fast they are computed, and how that grows with the season."""

import gc
import time
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from msgspec import structs

from forecast_ledger.bench.inputs import COUNT, crowd, one_question, season
from forecast_ledger.bench.logs import season_log
from forecast_ledger.bench.timing import RUNS, fastest, timed
from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.scores.scored_questions import scored_questions
from forecast_ledger.projections.scores.time_weighted import SLICE, scores
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.reading.replay import summarize_tables

FOUR = ("baseline", "peer-2024-03", "spot-peer", "relative-2022-04")
RULES = {
    **PRESETS,
    "recency": structs.replace(PRESETS["relative-2022-04"], consensus="community", consensus_weights="recency"),
}


def scored(facts: Facts, names: tuple[str, ...]) -> float:
    """The seconds of this process to score a contest under each of these presets; the median of several runs."""
    seconds: list[float] = []
    contest = facts.contests["c"]
    opened = contest.opened
    for _ in range(RUNS):
        gc.collect()
        before = time.process_time()
        for name in names:
            contest.opened = structs.replace(opened, rules=RULES[name])
            Projections(facts).scored("c")
        seconds.append(time.process_time() - before)
    contest.opened = opened
    return median(seconds)


def scoring(folder: Path) -> dict[str, float]:
    """Measure the scoring of a season under each rule set, and of one binary and one numeric question."""
    with Ledger.open(season_log(folder)) as ledger:
        season_facts = facts(ledger.read())
    binary, numeric = one_question(10_000, 1_000), one_question(2_000, 200, numeric=True)
    return {
        "scoring, baseline: events/s (aim 1,000,000)": COUNT / scored(season_facts, ("baseline",)),
        "scoring, peer: events/s (aim 1,000,000)": COUNT / scored(season_facts, ("peer-2024-03",)),
        "scoring, relative to the median: events/s (aim 1,000,000)": COUNT
        / scored(season_facts, ("relative-2022-04",)),
        "scoring, relative to recency-weighted medians: events/s (aim 100,000)": COUNT
        / scored(season_facts, ("recency",)),
        "one binary question, 1,000 forecasters, 10,000 forecasts, all four scores: ms (aim 100)": 1e3
        * scored(binary, FOUR),
        "one numeric question, 200 forecasters, 2,000 cdfs of 201 points, all four scores: ms": 1e3
        * scored(numeric, FOUR),
    }


def growing(_: Path) -> dict[str, float]:
    """Measure the scoring of one question with 10,000 and with 1,000,000 forecasts under all four rules."""
    few, many = (scored(one_question(count, count // 5), FOUR) for count in (10_000, 1_000_000))
    n_log_n = 100 * np.log2(1_000_000) / np.log2(10_000)
    busy = one_question(1_000_000, 2_000)
    contest = busy.contests["c"]
    questions = scored_questions(busy, contest)  # under the preset relative-2022-04
    sliced, whole = (fastest(partial(scores, busy, [contest], questions, slice_size=size)) for size in (SLICE, 0))
    return {
        "one question, 1,000,000 forecasts by 2,000 participants, in slices of time: time over whole (aim 1)": sliced
        / whole,
        "one question, 1,000,000 forecasts, all four scores: ms": many * 1e3,
        "growth from 10,000 to 1,000,000, over that of n log n (aim 1 or less)": many / few / float(n_log_n),
    }


def many_contests(_: Path) -> dict[str, float]:
    """Measure the tables of 2,000 contests of one question each against those of one contest of 2,000 questions."""
    one, few, many = (_seconds_of_tables(season(*size)) for size in ((2_000, 1), (500, 500), (2_000, 2_000)))
    return {
        "2,000 contests of one question, every table, over one contest of 2,000 (aim 5)": many / one,
        "the same: growth from 500 contests to 2,000 (aim 4)": many / few,
    }


def unlike_lengths(_: Path) -> dict[str, float]:
    """Measure a board of one row on questions that are all open for different times, against scoring them.

    The garbage collector waits, as it does when a replay is asked for a table.
    """
    measured = {}
    for count in (10_000, 40_000):
        projections = Projections(season(count, 1, unlike=True))
        scoring: list[float] = []
        board: list[float] = []
        with gc_pause.paused(), timed(scoring):
            projections.scored("c0")
        with gc_pause.paused(), timed(board):
            projections.table("leaderboard")
        measured[count] = (scoring[0], board[0])
    return {
        "board of one row, 40,000 questions of unlike lengths, over scoring them (aim 5)": measured[40_000][1]
        / measured[40_000][0],
        "the same: growth from 10,000 questions to 40,000 (aim 4)": measured[40_000][1] / measured[10_000][1],
    }


def unlike_sums(_: Path) -> dict[str, float]:
    """Measure the sums and the board of 2,000 participants on 4,000 questions of unlike lengths, against scoring."""
    projections = Projections(crowd(4_000, 2_000, 1_000_000))
    seconds: dict[str, list[float]] = {"scored": [], "tally": [], "board": [], "prizes": []}
    for name, into in seconds.items():
        with timed(into):
            getattr(projections, name)("c0")
    [scoring], [tally], [board], [prizes] = seconds.values()
    return {
        "tally of 2,000 participants on 4,000 questions of unlike lengths, over scoring them (aim 1.5)": tally
        / scoring,
        "the same: board": board / scoring,
        "the same: prizes": prizes / scoring,
    }


def intervals(_: Path) -> dict[str, float]:
    """Measure intervals with ranks and prizes: of few participants on many questions, and of many ranked by take."""
    return {
        "intervals of 100 participants on 1,000 questions, 1,999 replicates: s (aim 2)": _intervals(
            crowd(1_000, 100, 400_000), "peer-2024-03"
        ),
        "intervals of 2,000 participants, ranked by take, on 200 questions, 1,999 replicates: s": _intervals(
            crowd(200, 2_000, 100_000), "relative-2022-04"
        ),
    }


def _intervals(facts: Facts, rules: str) -> float:
    """Return the seconds of a table of intervals under a preset, after scores and prizes."""
    contest = facts.contests["c0"]
    contest.opened = structs.replace(contest.opened, rules=PRESETS[rules])
    projections = Projections(facts)
    projections.prizes("c0")
    seconds: list[float] = []
    with timed(seconds):
        projections.table("intervals")
    return seconds[0]


def refusing(_: Path) -> dict[str, float]:
    """Measure the refusal of a score_parts table that would have 8 million rows."""
    projections = Projections(one_question(4_000, 10**9))
    projections.scored("c")
    seconds: list[float] = []
    refused = False
    with timed(seconds):
        try:
            projections.table("score_parts")
        except Refused:
            refused = True
    if not refused:
        raise AssertionError("the table was not refused")
    return {"score_parts of one question with 4,000 forecasters, refused: ms": 1_000 * seconds[0]}


def _seconds_of_tables(facts: Facts) -> float:
    seconds: list[float] = []
    with timed(seconds):
        summarize_tables(facts)
    return seconds[0]
