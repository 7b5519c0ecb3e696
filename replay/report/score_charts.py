"""Charts of scores: boards with their intervals, scores over time, calibration, prizes."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.projections.boards import leaderboard
from forecast_ledger.projections.boards.contest_groups import tallies_over_time
from forecast_ledger.projections.boards.totals import score_labels
from forecast_ledger.projections.core.column_values import POINTS, round_to_points
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.tables.calibration import owner_band
from forecast_ledger.projections.tables.projection import Projections
from forecast_ledger.replay.report.chart_parts import (
    HALF,
    MOST_LINES,
    MOST_ROWS,
    STEP,
    chosen,
    count,
    left_out,
    names_axis,
    names_legend,
    numbered,
    percent,
    rows_of,
)
from forecast_ledger.replay.report.pictures import PLAIN, WIDTH, Picture, Row, specify

CURVE = 320  # pixels
FEWEST = 2  # answers of a line, and lines of a picture
MOST_ANSWERS = 60  # of a line
MOST_TICKS = 10


def board(projections: Projections, contest: str) -> Picture | None:
    """Scores in the order of the leaderboard, with their intervals."""
    every = rows_of(projections, "intervals", contest)
    rows = [row for row in every if row["score_low"] is not None]
    if not rows:
        return None
    columns = ("rank", "participant", "score", "score_low", "score_high", "first")
    shown = [chosen(row, columns) for row in rows[:MOST_ROWS]]
    values = numbered(shown, "score", "score_low", "score_high")
    y = {"field": "row", "type": "ordinal", "axis": names_axis(shown), "title": None}
    specification = specify(
        values,
        width=WIDTH,
        height={"step": STEP},
        encoding={"y": y},
        layer=[
            {
                "mark": {"type": "rule", "strokeWidth": 4, "color": PLAIN, "opacity": 0.35},
                "encoding": {
                    "x": {"field": "score_low", "type": "quantitative", "scale": {"zero": False}, "title": "score"},
                    "x2": {"field": "score_high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 45, "color": PLAIN, "opacity": 1},
                "encoding": {"x": {"field": "score", "type": "quantitative"}},
            },
        ],
    )
    level = percent(projections.facts.contests[contest].opened.rules.level_ppm, 10**6)
    note = f"Points are scores; lines are the {level} intervals of scores if the questions are sampled again."
    without = f" {count(len(every) - len(rows), 'row')} of the board without an interval." * (len(every) > len(rows))
    note += left_out(rows, shown) + without
    return Picture(board_finding(rows), note, columns, shown, specification)


def board_finding(rows: Sequence[Row]) -> str:
    """Say who is first, and how sure that is. rows: of the table `intervals`; those of `leaderboard` do not say it.

    >>> ada, bob = {"rank": 1, "participant": "ada"}, {"rank": 2, "participant": "bob"}
    >>> board_finding([ada, bob])
    'ada is first'
    >>> board_finding([ada | {"first": "0.980000000"}, bob | {"first": "0.020000000"}])
    'ada is first, and stays first in 98% of the samples'
    """
    first = [row for row in rows if row["rank"] == 1]
    if not first:
        return "Nobody has a rank"
    if len(first) > 1:
        return f"{len(first)} participants share the first rank"
    if sum(row["rank"] is not None for row in rows) == 1:
        return f"{first[0]['participant']} is the only one with a rank"
    if "first" not in first[0]:
        return f"{first[0]['participant']} is first"
    share = float(first[0]["first"])
    words = f"{first[0]['participant']} is first, and stays first {how_often(share)}"
    rival = max((row for row in rows if row is not first[0]), key=lambda row: float(row["first"] or 0))
    if float(rival["first"] or 0) > share:
        words += f"; {rival['participant']} is first {how_often(float(rival['first']))}"
    return words


def how_often(share: float) -> str:
    """Say in which share of samples something is so.

    >>> how_often(0.4), how_often(0.999), how_often(1.0)
    ('in only 40% of the samples', 'in over 99% of the samples', 'in every sample')
    """
    if share == 1:
        return "in every sample"
    return (
        f"in {'over 99%' if percent(share) == percent(1) else 'only ' * (share < HALF) + percent(share)} of the samples"
    )


def score_over_time(projections: Projections, contest: str) -> Picture | None:
    """The scores of the best participants after each answer, as the board would be without later ones."""
    facts, scored, final = projections.facts, projections.scored(contest), projections.board(contest)
    names = [row.participant for row in final if row.rank is not None][:MOST_LINES]
    opened, answers = facts.contests[contest], int((scored.questions.weight > 0).sum())
    if answers < FEWEST or len(names) < FEWEST:
        return None
    size, led = -(-answers // MOST_ANSWERS), dict.fromkeys(names, 0)
    columns, shown, values = ("answered", "participant", "score", "rank"), list[Row](), list[Row]()
    for number, (_, tally) in enumerate(tallies_over_time(facts, opened, scored), start=1):
        if number % size and number != answers:
            continue
        rows = {row.participant: row for row in leaderboard.board(facts, opened, tally)}
        for line, name in enumerate(names):
            row = rows.get(name)
            led[name] = 0 if row is None or row.rank != 1 else led[name] or number
            if row is not None:
                score = format_fixed(round_to_points(row.score), POINTS, least=9)
                shown.append({"answered": number, "participant": name, "score": score, "rank": row.rank})
                values.append({"row": line, "answered": number, "score": float(score)})
    steps = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
    step = next(step for step in steps if step * MOST_TICKS >= answers)
    axis = {"values": [*range(step, answers + 1, step)], "format": ",d"}
    x = {
        "field": "answered",
        "type": "quantitative",
        "title": "questions answered",
        "axis": axis,
        "scale": {"nice": False},
    }
    specification = specify(
        values,
        width=WIDTH,
        height=CURVE,
        mark={"type": "line", "strokeWidth": 1.8},
        encoding={
            "x": x,
            "y": {"field": "score", "type": "quantitative", "title": "score", "scale": {"zero": False}},
            "color": {"field": "row", "type": "nominal", "legend": names_legend(names)},
        },
    )
    note = (
        "After each answer, in the order in which answers were recorded, the board as it would be without later ones; "
        "questions are scored as they are now."
    )
    more = sum(row.rank is not None for row in final) - len(names)
    left = f" The best {len(names)} are shown, of {len(names) + more}." * bool(more)
    best = " The lowest score is the best." * lower_is_better(opened.opened.rules)
    every = f" Every {size} answers there is a point." * (size > 1)
    return Picture(_leading(led, answers, size), note + best + every + left, columns, shown, specification)


def _leading(led: Mapping[str, int], answers: int, size: int) -> str:
    """Say since when the first has led without a break, as far as boards were looked at.

    led: since which answer; 0 for who is not first. size: a board was made every so many answers.
    """
    first = [name for name, since in led.items() if since]
    if len(first) != 1:
        return f"{len(first) or 'No'} participants share the first rank after {count(answers, 'answer')}"
    about = "about " * (size > 1)
    return f"{first[0]} has led since {about}answer {led[first[0]]:,} of {answers:,}, in the order of their recording"


def calibration(projections: Projections, contest: str) -> Picture | None:
    """How often what was forecast happened, for the consensus or whoever has most forecasts."""
    rows = rows_of(projections, "calibration", contest)
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["participant"]] = counts.get(row["participant"], 0) + row["n"]
    if not counts:
        return None
    who = "[consensus]" if "[consensus]" in counts else max(counts, key=lambda name: counts[name])
    columns = ("from_probability", "to_probability", "n", "happened", "mean_forecast", "observed_frequency",
               "wilson_low", "wilson_high")  # fmt: skip
    shown = [chosen(row, columns) for row in rows if row["participant"] == who]
    values = numbered(shown, *columns)
    inside = sum(row["wilson_low"] <= row["mean_forecast"] <= row["wilson_high"] for row in values)
    name = "the consensus" if who == "[consensus]" else who
    title = f"Forecasts of {name} agree with what happened in {inside} of {count(len(values), 'group')}"
    note = (
        f"{count(counts[who], 'forecast')}, grouped by probability. A point on the dashed line: what was forecast "
        "happened as often as forecast. Lines are 95% Wilson intervals; bars count forecasts. The grey band, of the "
        "table corp_band, is where isotonic regression would put forecasts if they were calibrated."
    )
    note += f" The table calibration also has {count(len(counts) - 1, 'other')}." * (len(counts) > 1)
    most = max(row["n"] for row in values)
    return Picture(
        title,
        note,
        columns,
        shown,
        specify(values, vconcat=[_curve(_band(projections, contest, who)), _histogram(most)]),
    )


_SHARE = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {"format": "%", "tickCount": 5}}


def _band(projections: Projections, contest: str, who: str) -> list[Row]:
    """Return the consistency band of one participant at each probability that they forecast."""
    labels = score_labels(projections.facts)
    owners = np.unique(projections.brier_sample(contest).sample.owner).tolist()
    owner = next(code for code in owners if labels[code] == who)
    _, band = owner_band(projections, contest, owner)
    shown = [(place.probability, place.low, place.high) for place in band]
    return [
        {name: float(format_fixed(share, POINTS)) for name, share in zip(("p", "low", "high"), each, strict=True)}
        for each in shown
    ]


def _curve(band: list[Row]) -> dict[str, Any]:
    """Return what happened against what was forecast, over a band."""
    x = {"field": "mean_forecast", "title": "forecast", **_SHARE}
    low = {"field": "wilson_low", "title": "happened", **_SHARE}
    line = {"x": {"field": "p", **_SHARE}, "y": {"field": "p", **_SHARE}}
    return {
        "width": CURVE,
        "height": CURVE,
        "layer": [
            {
                "data": {"values": band},
                "mark": {"type": "area", "color": "#888", "opacity": 0.25},
                "encoding": {
                    "x": {"field": "p", **_SHARE},
                    "y": {"field": "low", **_SHARE},
                    "y2": {"field": "high"},
                },
            },
            {
                "data": {"values": [{"p": 0}, {"p": 1}]},
                "mark": {"type": "line", "color": "#888", "strokeDash": [4, 4]},
                "encoding": line,
            },
            {
                "mark": {"type": "rule", "strokeWidth": 4, "color": PLAIN, "opacity": 0.35},
                "encoding": {"x": x, "y": low, "y2": {"field": "wilson_high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60, "color": PLAIN, "opacity": 1},
                "encoding": {"x": x, "y": {"field": "observed_frequency", **_SHARE}},
            },
        ],
    }


def _histogram(most: float) -> dict[str, Any]:
    """Return how many forecasts there are at each probability. most: of one bar."""
    counts = {"field": "n", "type": "quantitative", "title": "forecasts", "axis": {"values": [0, most], "format": ",d"}}
    return {
        "width": CURVE,
        "height": 60,
        "mark": {"type": "bar", "color": PLAIN},
        "encoding": {
            "x": {"field": "from_probability", "title": None, "bin": {"binned": True, "step": 0.1}, **_SHARE},
            "x2": {"field": "to_probability"},
            "y": counts,
        },
    }


def prizes(projections: Projections, contest: str) -> Picture | None:
    """How the pool is divided."""
    rows = [row for row in rows_of(projections, "leaderboard", contest) if float(row["prize"] or 0) > 0]
    if not rows:
        return None
    columns = ("rank", "participant", "prize", "share")
    shown = [chosen(row, columns) for row in rows[:MOST_ROWS]]
    currency = projections.facts.contests[contest].opened.currency
    specification = specify(
        numbered(shown, "prize"),
        width=WIDTH,
        height={"step": STEP},
        mark={"type": "bar", "color": PLAIN, "height": 11},
        encoding={
            "y": {"field": "row", "type": "ordinal", "axis": names_axis(shown), "title": None},
            "x": {"field": "prize", "type": "quantitative", "title": f"prize {currency}".strip()},
        },
    )
    best = max(rows, key=lambda row: float(row["prize"]))
    total = sum(float(row["prize"]) for row in rows)
    title = f"{best['participant']} gets {percent(float(best['prize']) / total)} of what is paid out"
    note = f"{count(len(rows), 'prize')}, {total:,.2f} {currency}".rstrip() + "."
    return Picture(title, note + left_out(rows, shown), columns, shown, specification)
