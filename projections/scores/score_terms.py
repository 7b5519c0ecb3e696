"""Score terms: the kernel score of every standing forecast and of its reference, which scores add up over time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.rules import NEVER_LATE, RuleSet, shown_references
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, index_where, run_starts, spread, stable_order
from forecast_ledger.projections.core.wide_int import LARGEST_COUNT
from forecast_ledger.projections.facts.columns import CHANCE, Contest, Facts, Forecasts, Intervals, intervals, joined
from forecast_ledger.projections.facts.outcomes import as_counted, changed_as_of
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.reference_kinds import (
    Compared,
    Steps,
    against_consensus,
    against_peers,
    fine_bits,
)
from forecast_ledger.projections.scores.reference_terms import (
    against_median,
    against_others,
    code_of,
    consensus,
    median_scores,
    reference_forecasts,
)
from forecast_ledger.projections.scores.sampling import chunks, in_units, shifts
from forecast_ledger.projections.scores.scored_questions import (
    QUANTILES,
    Questions,
    are_members,
    question_ruler,
    uniform_score,
)
from forecast_ledger.projections.scores.terms import (
    Terms,
    Timeline,
    forms,
    layouts,
    numbers,
    quantile_numbers,
    rebased,
    time_slices,
    timeline,
)

OFTEN = 8  # intervals for each participant
NO_LIMIT = 1 << 62
_MINUTE = 60 * 10**6  # µs
_OfConsensus = tuple[Int64Array, ...]  # twice its probability, and its kernel score, in each step; () if not scored
CHUNK = 1 << 15  # forecasts scored at once, so that they fit in a processor's cache; any size gives the same numbers


class _Scored(NamedTuple):
    """What is scored: contests of one rule set, and the reference forecasters that have a row on their boards."""

    facts: Facts
    contests: Sequence[Contest]
    shown: Sequence[str]


def terms_in_chunks(
    facts: Facts, contests: Sequence[Contest], questions: Questions, chunk: int = CHUNK, slice_size: int = 0
) -> Iterator[tuple[int, Terms]]:
    """Yield the terms of scores, some questions at a time, with the index of the first question of each.

    The terms of reference forecasters but the consensus come apart, after the others of the same questions: they are
    scored on a separate timeline, so that their rows change no digit of anybody's score.

    contests: of one rule set, in the order in which the questions number them. slice_size: if it is not 0, the terms of
    a question with more intervals come in slices of time, of about so many, if that takes less time or there is no
    other way; what they earn adds up to the same.

    Raises OverflowError if one question has 2^26 forecasts or more, and slice_size is 0.
    """
    rules = contests[0].opened.rules
    scored = _Scored(facts, contests, shown_references(rules))
    sizes = facts.forecasts.counts(questions.code)
    nothing = np.zeros_like(questions.length)
    largest = NO_LIMIT if slice_size else LARGEST_COUNT - 1
    for part in chunks(sizes, nothing, questions.length, chunk, largest):
        subset = questions.of(part)
        size = slice_size if part.stop - part.start == 1 else 0
        for terms in _terms(scored, subset, _counted(facts, rules, subset, _made_on(facts, rules, subset)), size):
            yield part.start, terms
        if {*scored.shown} - {"consensus"}:
            for terms in _terms(scored, subset, scored_forecasts(facts, rules, subset, scored.shown), size):
                yield part.start, terms.of(np.flatnonzero(terms.standing.participant > code_of(facts, "consensus")))


def standing_in_chunks(
    facts: Facts, contests: Sequence[Contest], questions: Questions, chunk: int = CHUNK
) -> Iterator[tuple[int, Questions, Forecasts, Intervals]]:
    """Yield the forecasts that count, of participants and reference forecasters but the consensus, as they stand.

    Of some questions at a time: the index of the first question, the questions, their forecasts, and the intervals on
    which these stand, as in `Terms`.

    contests: of one rule set, in the order in which the questions number them.
    """
    rules = contests[0].opened.rules
    shown = shown_references(rules)
    nothing = np.zeros_like(questions.length)
    for part in chunks(facts.forecasts.counts(questions.code), nothing, questions.length, chunk):
        subset = questions.of(part)
        forecasts = _by_clock(rules, scored_forecasts(facts, rules, subset, shown))
        yield part.start, subset, forecasts, _in_units(contests[0], subset, forecasts)


def scored_forecasts(facts: Facts, rules: RuleSet, questions: Questions, shown: Sequence[str]) -> Forecasts:
    """Return the forecasts on these questions, by index: of participants, then of reference forecasters.

    shown: the names of reference forecasters; those of the consensus are not among the forecasts.
    """
    made, stated = _made_on(facts, rules, questions), reference_forecasts(facts, rules, questions, shown)
    if len(stated.position):
        made = joined(made.packed(np.where(made.made, questions.width[made.question], 0)), stated)
    return _counted(facts, rules, questions, made)


def _made_on(facts: Facts, rules: RuleSet, questions: Questions) -> Forecasts:
    """Return the forecasts on these questions, by index, as they were made; one that is late, when it was recorded."""
    made = facts.forecasts.on(questions.code, questions.as_of)
    made = made if rules.clock == "recorded" else made.in_time_order()
    if rules.late_minutes == NEVER_LATE:
        return made
    is_late = made.recorded_at - made.at > rules.late_minutes * _MINUTE
    return replace(made, at=np.where(is_late, made.recorded_at, made.at))


def _counted(facts: Facts, rules: RuleSet, questions: Questions, forecasts: Forecasts) -> Forecasts:
    """Return the forecasts as they count: those on questions whose outcomes changed have more rows."""
    changed = changed_as_of(facts, questions.code.tolist(), questions.as_of.tolist())
    if not changed or rules.early_forecasts:
        return as_counted(forecasts, changed)
    made_at = forecasts.recorded_at if rules.clock == "recorded" else forecasts.at
    return as_counted(forecasts, changed, np.flatnonzero(made_at < questions.opens[forecasts.question]))


def _terms(scored: _Scored, questions: Questions, forecasts: Forecasts, slice_size: int) -> Iterator[Terms]:
    """Yield the terms of these forecasts: all at once, or in slices; see `terms_in_chunks`."""
    facts, contests, shown = scored
    rules = contests[0].opened.rules
    forecasts = _by_clock(rules, forecasts)
    standing = _in_units(contests[0], questions, forecasts)
    member = are_members(facts, contests, spread(questions.contest, standing.question), standing.participant)
    chance, scores = _kernels(rules, questions, forecasts, standing)
    terms = Terms(questions, standing, member, 2 * chance, scores)
    if "uniform" in shown:
        _score_uniform(rules, forecasts, terms, np.flatnonzero(standing.participant == code_of(facts, "uniform")))
    consensus_code = code_of(facts, "consensus") if "consensus" in shown else None
    if not len(scores) or (REFERENCES[rules.reference].compared is None and consensus_code is None):
        yield terms
        return
    age = standing.row
    if rules.consensus_weights == "recency":
        age = _ages(forecasts, standing, facts.participant_codes.labels)
    is_sliced = 0 < slice_size < len(scores) and (_is_often_replaced(standing) or len(scores) >= LARGEST_COUNT)
    for part, rows in time_slices(terms, slice_size) if is_sliced else [(terms, slice(None))]:
        yield _compared(rules, forecasts, part, age[rows], consensus_code)


def _is_often_replaced(standing: Intervals) -> bool:
    """Return whether the forecasts on a question are replaced so often that few of them stand at any time."""
    return OFTEN * len(run_starts(standing.participant)) <= len(standing.participant)


def _by_clock(rules: RuleSet, forecasts: Forecasts) -> Forecasts:
    """Return forecasts made at the instants of the clock that the rule set names."""
    return replace(forecasts, at=forecasts.recorded_at) if rules.clock == "recorded" else forecasts


def _ages(forecasts: Forecasts, standing: Intervals, labels: list[str]) -> Int64Array:
    """Return the rank of each interval by the instant of its forecast, oldest first.

    Forecasts of the same instant are ordered by participant id, so that it does not matter which was recorded first.
    """
    codes, whose = np.unique(standing.participant, return_inverse=True)
    names = [labels[code] if code < len(labels) else "" for code in codes.tolist()]  # "" for those without a vote
    by_id = sorted(range(len(names)), key=names.__getitem__)
    order = np.lexsort((_indices(by_id)[whose], forecasts.at[standing.row]))
    return _indices(order)


def _indices(order: Int64Array | list[int]) -> Int64Array:
    """Return the index of each number in an order."""
    index = np.empty(len(order), np.int64)
    index[order] = np.arange(len(order))
    return index


def _in_units(contest: Contest, questions: Questions, forecasts: Forecasts) -> Intervals:
    """Return the intervals on which forecasts stand, in the units of time of the rule set."""
    rules, days = contest.opened.rules, question_ruler(contest, questions)
    standing = intervals(forecasts, questions.opens, questions.until, early=rules.early_forecasts)
    return in_units(rules.sampling, days, standing)


def _kernels(
    rules: RuleSet, questions: Questions, forecasts: Forecasts, standing: Intervals
) -> tuple[Int64Array, Int64Array]:
    """Return the outcome's probability as scored, 1e-10, and the kernel score, for the forecast of every interval."""
    question = standing.question
    chance, scores = np.full(len(question), -1), np.zeros(len(question), np.int64)
    for form, name in forms(rules):
        of_form = questions.form == form
        if not of_form.any():
            continue
        rows = _on(of_form, question)
        if form != QUANTILES:
            happened = _on(of_form & (questions.outcome >= 0), question)
            outcome, bins = (spread(column, question[happened]) for column in (questions.outcome, questions.bins))
            chance[happened] = forecasts.chance(standing.row[happened], outcome, bins)
        kernel = KERNELS[name]
        if kernel.of_chance is not None:
            chance[rows] = questions.as_scored(chance[rows], question[rows])
            scores[rows] = kernel.of_chance(chance[rows], CHANCE)
        elif kernel.of_numbers is not None:
            start = forecasts.start[standing.row[rows]]
            made = (questions, forecasts.chances, start, question[rows])
            scores[rows] = kernel.of_numbers(quantile_numbers(rules, *made) if form == QUANTILES else numbers(*made))
    if (questions.catch_all >= 0).any():
        for layout in layouts(questions, forecasts.chances, forecasts.start[standing.row], question):
            scores[layout.rows] = rebased(rules, questions, layout, scores[layout.rows])
    return chance, scores


def _on(chosen: BoolArray, question: Int64Array) -> Int64Array | slice:
    """Return an index of the rows on some questions, as `index_where`. chosen: which questions, shape (q,)."""
    return slice(None) if chosen.all() else index_where(chosen[question])


def _score_uniform(rules: RuleSet, forecasts: Forecasts, terms: Terms, rows: Int64Array) -> None:
    """Score these rows, of the uniform distribution, exactly and without limits, as the reference does."""
    questions, question = terms.questions, terms.standing.question
    for number in np.unique(question[rows]).tolist():
        score = uniform_score(rules, questions.answers[number])
        if score is not None:
            chosen = rows[question[rows] == number]
            outcome, bins = (np.full(len(chosen), column[number]) for column in (questions.outcome, questions.bins))
            terms.kernel_scores[chosen] = score
            if questions.outcome[number] < 0:
                continue
            terms.doubled[chosen] = 2 * forecasts.chance(terms.standing.row[chosen], outcome, bins)
    start = forecasts.start[terms.standing.row[rows]]
    for layout in layouts(questions, forecasts.chances, start, question[rows]):
        score = uniform_score(rules, layout.answer)
        if score is not None:
            uniform = np.full(len(layout.rows), score)
            terms.kernel_scores[rows[layout.rows]] = rebased(rules, questions, layout, uniform)


def _compared(rules: RuleSet, forecasts: Forecasts, terms: Terms, age: Int64Array, consensus_code: int | None) -> Terms:
    """Return the terms with their reference, and with those of the consensus if it has a row on the board.

    consensus_code: its participant code; None if it has no row.
    """
    questions = terms.questions
    shift = shifts(np.zeros_like(questions.length), questions.length)
    line = timeline(terms, shift, age)
    all_steps = line.steps
    of_consensus: _OfConsensus = ()
    if rules.reference == "consensus" or consensus_code is not None:
        of_consensus = consensus(rules, forecasts, terms, line)
    compared = REFERENCES[rules.reference].compared
    if compared is not None:
        terms = replace(terms, compared=compared(rules, terms, line, of_consensus))
    if consensus_code is None:
        return terms
    doubled, kernel = of_consensus
    busy = np.flatnonzero(all_steps.stand)
    question = line.question[busy]
    rows = Intervals(
        row=np.full(len(busy), -1),
        question=question,
        participant=np.full(len(busy), consensus_code),
        start=all_steps.instant[busy] - shift[question],
        end=all_steps.instant[busy + 1] - shift[question],
    )
    consensus_terms = Terms(questions, rows, np.zeros(len(busy), bool), doubled[busy], kernel[busy])
    return _joined(terms, all_steps, busy, consensus_terms)


def _with_consensus(rules: RuleSet, terms: Terms, timeline: Timeline, of_consensus: _OfConsensus) -> Compared:
    """Compare with the consensus."""
    doubled, kernel = of_consensus
    against = against_consensus(timeline.steps, kernel)
    leaves_one_out = rules.consensus_of == "others" and timeline.steps.stand.any()
    of_members = against_others(rules, terms, timeline) if leaves_one_out else None
    return Compared(timeline.steps, against, against, doubled, kernel, of_members)


def _with_peers(rules: RuleSet, terms: Terms, timeline: Timeline, of_consensus: _OfConsensus) -> Compared:
    """Compare with the mean kernel score of the other members."""
    steps, member, fine = timeline.steps, terms.member, fine_bits(rules)
    members = outsiders = against_peers(steps, terms.kernel_scores, member, fine, leave_out_self=True)
    if rules.scored_only_factor == "one" and (of_consensus or not member.all()):
        outsiders = against_peers(steps, terms.kernel_scores, member, fine, leave_out_self=False)
    return Compared(steps, members, outsiders)


def _with_median(_: RuleSet, terms: Terms, timeline: Timeline, __: _OfConsensus) -> Compared:
    """Compare with the median of the members' kernel scores, the participant's included."""
    rows = np.flatnonzero(terms.member)
    ordered = timeline.changes if len(rows) == len(terms.member) else None
    against = against_median(
        timeline.steps, median_scores(timeline.standing.of(rows), terms.kernel_scores[rows], ordered)
    )
    return Compared(timeline.steps, against, against)


def _with_mean(rules: RuleSet, terms: Terms, timeline: Timeline, _: _OfConsensus) -> Compared:
    """Compare with the mean of the members' kernel scores, the participant's included."""
    against = against_peers(timeline.steps, terms.kernel_scores, terms.member, fine_bits(rules), leave_out_self=False)
    return Compared(timeline.steps, against, against)


class Reference(NamedTuple):
    """One kind of reference, with which forecasts are compared.

    words: as `explain` prints them, with the fields {average} and {others}. compared: computes the reference; None if
    it does not change over time: then it is each question's `uniform`, which is 0 without a reference.
    """

    words: str
    compared: Callable[[RuleSet, Terms, Timeline, _OfConsensus], Compared] | None
    source: str


REFERENCES: dict[str, Reference] = {
    "none": Reference("", None, "the kernel itself"),
    "uniform": Reference(
        "minus the score of the uniform distribution", None, 'Metaculus, Scores FAQ, "What is the Baseline score?"'
    ),
    "peers": Reference(
        "minus the mean score of the other members", _with_peers, 'Metaculus, Scores FAQ, "What is the Peer score?"'
    ),
    "consensus": Reference(
        "minus the score of the {average} of the standing forecasts{others}",
        _with_consensus,
        'Metaculus, Scores FAQ, "What is the Relative score?"',
    ),
    "median_score": Reference(
        "minus the median score of the members",
        _with_median,
        'Good Judgment Open, FAQ, "How are my forecasts scored for accuracy?"',
    ),
    "mean_score": Reference(
        "minus the mean score of the members",
        _with_mean,
        'Metaculus, Scores FAQ, "What is the Peer score?": a member\'s peer score x (n - 1) / n',
    ),
}


def _joined(terms: Terms, all_steps: Steps, busy: Int64Array, consensus: Terms) -> Terms:
    """Merge terms with those of the consensus, which come last on each question."""
    standing = Intervals(*map(np.concatenate, zip(terms.standing, consensus.standing, strict=True)))
    order = stable_order(standing.question)
    begins = np.concatenate([all_steps.begins, busy])[order]
    ends = np.concatenate([all_steps.ends, busy + 1])[order]
    compared = terms.compared and terms.compared._replace(steps=all_steps._replace(begins=begins, ends=ends))
    return replace(
        terms,
        standing=standing.of(order),
        member=np.concatenate([terms.member, consensus.member])[order],
        doubled=np.concatenate([terms.doubled, consensus.doubled])[order],
        kernel_scores=np.concatenate([terms.kernel_scores, consensus.kernel_scores])[order],
        compared=compared,
    )
