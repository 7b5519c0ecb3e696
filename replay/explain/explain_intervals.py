"""Explain intervals and pairs: the seed and the replicates that they come from, question by question."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import WEIGHT, format_fixed
from forecast_ledger.ledger.model.rules import ALONE, RuleSet
from forecast_ledger.projections.boards.totals import score_labels
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.clusters import cluster_of, units_of
from forecast_ledger.projections.studies.expansion import detectable_difference
from forecast_ledger.projections.studies.grounds import reasons_of
from forecast_ledger.projections.studies.intervals import board_rows, resample
from forecast_ledger.projections.studies.resampling import (
    LEAST_CLUSTERS,
    Limits,
    Units,
    drawn_limits,
    first_draws,
    limits,
)
from forecast_ledger.projections.tables.boards import pairwise_values
from forecast_ledger.replay.explain.explain_boards import (
    board_row,
    explanation,
    imputed_column,
    nine,
    number_key,
    read_contest,
    scores_without_forecast,
)
from forecast_ledger.replay.explain.explain_scores import Explanation
from forecast_ledger.replay.reading.descriptions import describe_total, money
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.studies import describe_samples, warn_of_dependence

MOST_STRATA, MOST_DRAWS = 4, 8  # whose first draws are printed, and how many of each


def interval(source: Log, contest: str, participant: str) -> Explanation:
    """Explain the intervals of a row of a board: their seed, their replicates, and how often questions were drawn.

    A part is a question: its cluster as stratum:number, by each field, its score, and how often it was drawn in the
    first replicate and in those whose totals are the low and the high limit of the score. `first_draws` are the numbers
    of the clusters that come first out of each stratum in the first replicate, so that a reader can compare draws one
    by one. If nothing is said of the row, `withheld` says why. Raises, first that applies: what `read_log` raises;
    Refused: unknown_contest, nothing_standing, out_of_range (see `intervals`).
    """
    reading = read_contest(source, contest, participant)
    projections, participant_row = board_row(reading, contest, participant)
    opened, scored, board = reading.facts.contests[contest], projections.scored(contest), projections.board(contest)
    rules, number = opened.opened.rules, board.index(participant_row)
    units = units_of(rules, scored)
    seed = projections.seed(contest, "intervals")
    drawn = resample(opened, scored, board, board_rows(reading.facts, board), seed)
    level = int(drawn.grounds.levels(rules.level_ppm)[number])
    score = drawn_limits(drawn.total, number, level)
    withheld = drawn.grounds.withheld_of(number, score and (score.least, score.greatest))
    score = None if withheld else score
    prize = limits(drawn.prize[number], level) if drawn.paid[number] and not withheld else None
    times = units.times(seed, rules.replicates)
    shown = {"first": times[0]}
    if score is not None:
        shown |= {"low": times[score.low], "high": times[score.high]}
    scores = _scores(reading.facts, scored, rules, participant)
    imputed = scores_without_forecast(projections, contest, participant)
    parts = [
        part | imputed_column(rules, None if index in scores else imputed.get(index))
        for index, part in _parts(scored, rules.clusters, units, scores, shown)
    ]
    described = {
        **number_key("interval", contest, participant),
        "score": nine(participant_row.score),
        **_described("score", score, lambda value: nine(Fraction(value, POINTS))),
        **_described("prize", prize, money),
        **({"withheld": f"{withheld}: {reasons_of(rules, scored)[withheld]}"} if withheld else {}),
        "level": format_fixed(rules.level_ppm, 10**6, least=2),
        "expanded_level": format_fixed(level, 10**6, least=2),
        "clusters": int(drawn.grounds.clusters[number]),
        "replicates": rules.replicates,
        "without_total": rules.replicates - int(drawn.total.defined[number].sum()),
        "drawn": units.size,
        "samples": describe_samples(rules, units),
        **({"warning": warning} if (warning := warn_of_dependence(projections, contest)) else {}),
        "digest": projections.scored_digest(contest),
        "seed": seed.hex(),
        "first_draws": _described_draws(seed, units.strata),
    }
    words = (
        "expanded percentile bootstrap over clusters of questions within kinds, one draw for all participants; "
        f"{describe_total(rules)}"
    )
    return explanation(reading, opened, described, parts, words)


def pair(source: Log, contest: str, participant: str, other: str) -> Explanation:
    """Explain the comparison of two participants: their scores on each common question.

    The numbers are those of the table `pairwise`, where the participant with the better rank comes first. They are
    computed for this pair alone, so that there is no p-value adjusted for all pairs. From 20 clusters on, `detectable`
    is the true difference that such a test finds in 80% of contests with as many clusters. Raises, first that applies:
    what `read_log` raises; Refused: unknown_contest, nothing_standing (one of the two is not on the board, or they have
    no question in common), out_of_range.
    """
    reading = read_contest(source, contest, participant)
    projections, _ = board_row(reading, contest, participant)
    board_row(reading, contest, other)
    names = (participant, other)
    table = projections.as_table("pairwise", pairwise_values(projections, contest, only=names))
    pair_row = next(table.rows(), None)
    if pair_row is None:
        detail = f"no question has a score of both {participant} and {other}"
        raise Refused("nothing_standing", "other", other, detail, remedy="`table LOG pairwise` lists the pairs")
    first, second = pair_row["participant"], pair_row["other"]
    opened, scored = reading.facts.contests[contest], projections.scored(contest)
    scores = {name: _scores(reading.facts, scored, opened.opened.rules, name) for name in (first, second)}
    sign = -1 if lower_is_better(opened.opened.rules) else 1
    parts = [
        {
            "question": scored.questions.answers[number].question.question,
            "weight": format_fixed(int(scored.questions.weight[number]), WEIGHT),
            "score": nine(scores[first][number]),
            "other_score": nine(scores[second][number]),
            "difference": nine(sign * (scores[first][number] - scores[second][number])),
        }
        for number in sorted(scores[first].keys() & scores[second].keys())
        if scored.questions.weight[number] > 0
    ]
    del pair_row["p_adjusted"]  # it depends on all pairs
    pair_row |= _power(opened.opened.rules, scored, scores[first], scores[second])
    described = {
        **number_key("pair", contest, participant),
        **pair_row,
        "digest": projections.scored_digest(contest),
    }
    words = (
        "the weighted mean of the differences of scores on common questions, above 0 if the participant is better; "
        "p is of this pair alone, and `table LOG pairwise` adjusts it for all pairs"
    )
    return explanation(reading, opened, described, parts, words)


def _power(
    rules: RuleSet, scored: ContestScores, one: dict[int, Fraction], other: dict[int, Fraction]
) -> dict[str, Any]:
    """Return which difference the clusters in which two have scores can tell; by one field."""
    units, weight = units_of(rules, scored), scored.questions.weight
    sums: dict[int, tuple[Fraction, int]] = {}
    for number in sorted(one.keys() & other.keys()):
        if (unit := int(units.unit[number])) >= 0:
            difference, unit_weight = sums.get(unit, (Fraction(0), 0))
            share = int(weight[number])
            sums[unit] = difference + share * (one[number] - other[number]), unit_weight + share
    count, whole = len(sums), sum(unit_weight for _, unit_weight in sums.values())
    if len(units.counts) > 1 or count < LEAST_CLUSTERS:
        return {}
    mean = sum((difference for difference, _ in sums.values()), Fraction(0)) / whole
    squares = sum((difference - mean * unit_weight) ** 2 for difference, unit_weight in sums.values())
    variance = Fraction(count, count - 1) * squares / whole**2
    return {"detectable": nine(detectable_difference(variance, rules.level_ppm))}


def _scores(facts: Facts, scored: ContestScores, rules: RuleSet, participant: str) -> dict[int, Fraction]:
    """Return the scores of a participant by question."""
    rows = scored.rows.of(score_labels(facts).index(participant))
    return dict(zip(rows.question.tolist(), time_weighted.points(rules, scored.questions, rows).exact(), strict=True))


def _described(name: str, limits: Limits | None, text: Callable[[int], object]) -> dict[str, Any]:
    """Return the two limits and the replicates that have them, counted from 0."""
    if limits is None:
        return {}
    return {
        f"{name}_low": text(limits.least),
        f"{name}_low_replicate": limits.low,
        f"{name}_high": text(limits.greatest),
        f"{name}_high_replicate": limits.high,
    }


def _described_draws(seed: bytes, strata: Sequence[int]) -> str:
    """Return the first draws of the first replicate: the numbers of clusters, from 0, out of each of a few strata."""
    drawn = first_draws(seed, strata[:MOST_STRATA], MOST_DRAWS)
    words = [
        f"stratum {number} of {count:,}: {' '.join(map(str, draws))}{' ...' * (count > len(draws))}"
        for number, (count, draws) in enumerate(zip(strata, drawn, strict=False))
    ]
    return "; ".join([*words, *["..."] * (len(strata) > len(words))])


def _parts(
    scored: ContestScores,
    fields: Sequence[str],
    units: Units,
    scores: dict[int, Fraction],
    times: dict[str, Int64Array],
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the questions that count, by index, with their clusters by some fields.

    times: how often each unit is drawn in some replicates, by name.
    """
    labels = [f"{stratum}:{index}" for stratum, count in enumerate(units.strata) for index in range(count)]
    for number, unit in enumerate(units.unit.tolist()):
        if unit >= 0:
            opened = scored.questions.answers[number].question
            part = {
                "question": opened.question,
                **{field: cluster_of(opened, field) for field in fields if field != ALONE},
                "kind": opened.kind,
                "cluster": " ".join(labels[column] for column in units.clusters[:, unit].tolist()),
                "weight": format_fixed(int(scored.questions.weight[number]), WEIGHT),
                "score": nine(scores[number]) if number in scores else None,
                **{f"drawn_in_{name}": int(drawn[unit]) for name, drawn in times.items()},
            }
            yield number, part
