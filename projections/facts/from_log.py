"""Reading the facts of a log: events are checked and filed as columns."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, compress, pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import CUMULATIVE, LARGEST_MEASURE, NEVER, PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.model.mismatch import mismatch, short_repr, shorten
from forecast_ledger.ledger.model.plain_rows import CodedTexts, ForecastRows, ReadPage
from forecast_ledger.projections.core.arrays import (
    BoolArray,
    Codes,
    Int64Array,
    compact,
    int64_array,
    run_lengths,
    run_starts,
    stable_order,
)
from forecast_ledger.projections.facts.account_events import enter_event
from forecast_ledger.projections.facts.columns import (
    Contest,
    Facts,
    ForecastPage,
    Forecasts,
    Payment,
    Rename,
    Status,
    codes_of,
    enrolled_as,
    join_pages,
    moved,
    put_last,
    width,
)
from forecast_ledger.projections.facts.event_checks import (
    RequiredNumbers,
    amended,
    check_attestation,
    check_event,
    check_forecasts,
    raise_at_first,
    rescheduled,
)
from forecast_ledger.projections.facts.filed_together import TOGETHER, file_together
from forecast_ledger.projections.facts.outcomes import file_change, laid_out, widths
from forecast_ledger.projections.facts.settlements import Settlement

_FORECASTS = {events.ForecastMade, events.ForecastWithdrawn}
_ENOUGH = 16  # events that are filed together: fewer are as quickly filed one by one
_WITHIN_64_BITS = "numbers of at most 64 bits"


@checked()
def facts(pages: Iterable[Sequence[Recorded]]) -> Facts:
    """Return the facts of recorded events in log order. Raises Corrupt at an event that does not fit those before it.

    >>> from forecast_ledger import commands, facts, open_ledger
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with open_ledger(":memory:") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     list(facts(ledger.read()).contests)
    ['spring']
    """
    return facts_after(Facts(), [], pages)


def facts_after(facts: Facts, columns: list[ForecastPage], pages: Iterable[Sequence[Recorded]]) -> Facts:
    """Return the facts of events that are filed, but for the columns of their forecasts, and of those after them.

    Raises Corrupt at an event that does not fit those before it.
    """
    facts.held = laid_out(facts, gather_forecasts(facts, [*columns, *filed_pages(facts, pages)]))
    return facts


def filed_pages(facts: Facts, pages: Iterable[Sequence[Recorded]]) -> list[ForecastPage]:
    """File the next pages of a log; return the columns of their forecasts. Raises as `file_page` does."""
    filed = (file_page(facts, page) for page in pages)
    return [forecasts for forecasts in filed if forecasts is not None]


def file_page(facts: Facts, page: Sequence[Recorded]) -> ForecastPage | None:
    """File the next page of a log; return the columns of its forecasts, None if it has none.

    Raises Corrupt at an event that does not fit those before it.
    """
    if isinstance(page, ReadPage):
        return _file_read_page(facts, page)
    return file_events(facts, [row.position for row in page], [row.event for row in page], page.__getitem__)


def file_events(
    facts: Facts, position: Sequence[int], several: Sequence[Any], rows: Callable[[slice], Sequence[Recorded]]
) -> ForecastPage | None:
    """File the events of the next page as `file_page` does. rows: returns their rows, or some of these."""
    forecasts = list[Recorded]()
    if _FORECASTS.isdisjoint(map(type, several)):
        _file_others(facts, position, several, rows)
    else:
        page = rows(slice(None))
        forecasts = [row for row in page if type(row.event) in _FORECASTS]
        if len(forecasts) < len(page):
            others = [row for row in page if type(row.event) not in _FORECASTS]
            _file_others(facts, [row.position for row in others], [row.event for row in others], others.__getitem__)
    facts.as_of = position[-1]
    facts.books.clock = max(facts.books.clock, *[event.at for event in several])
    return _columns(facts, forecasts)


def _columns(facts: Facts, forecasts: Sequence[Recorded]) -> ForecastPage | None:
    """Return the columns of the forecasts of a page, None if it has none. Raises Corrupt."""
    try:
        return forecast_columns(facts, forecasts) if forecasts else None
    except OverflowError:
        fault = mismatch(f"{_WITHIN_64_BITS}, here and soon after", "a larger one")
        raise Corrupt(forecasts[0].position, fault) from None


def _file_read_page(facts: Facts, page: ReadPage) -> ForecastPage | None:
    """File a page of which most forecasts are columns, as `file_page` does."""
    others = [row for row in page.others if type(row.event) not in _FORECASTS]
    _file_others(facts, [row.position for row in others], [row.event for row in others], others.__getitem__)
    made = page.forecasts
    facts.as_of = page[-1].position
    facts.books.clock = max(facts.books.clock, int(made.at.max(initial=0)), *[row.event.at for row in page.others])
    try:
        question = _codes(facts.question_codes, made.question, facts.question_codes.codes.__getitem__)
        participant = _codes(facts.participant_codes, made.participant, facts.participant_codes.add)
        columns = columns_of_rows(made, question, participant)
        further = [row for row in page.others if type(row.event) in _FORECASTS]
        if further:
            both = zip(columns, forecast_columns(facts, further), strict=True)
            columns = ForecastPage(*map(np.concatenate, both))
    except (KeyError, OverflowError):  # as if none were columns, to name the first fault
        return _columns(facts, [row for row in page if type(row.event) in _FORECASTS])
    return columns


def _codes(names: Codes, texts: Sequence[bytes], code_of: Callable[[str], int]) -> Int64Array:
    """Return the codes of ids, shape (n,). code_of: returns that of an id. Raises KeyError if it does."""
    if isinstance(texts, CodedTexts):
        return int64_array([*map(code_of, texts.labels)])[texts.codes]
    return names.of_bytes(texts, code_of)


def columns_of_rows(made: ForecastRows, question: Int64Array, participant: Int64Array) -> ForecastPage:
    """Return forecasts of a probability as columns. question, participant: their codes, shape (n,)."""
    ones, nevers, twos = (np.broadcast_to(np.int64(value), len(made.at)) for value in (1, NEVER, 2))
    return ForecastPage(
        made.position,
        made.at,
        made.recorded_at,
        question,
        participant,
        ones,
        nevers,
        twos,
        np.stack([made.yes, made.no], axis=1).ravel(),
    )


def _file_others(
    facts: Facts, position: Sequence[int], several: Sequence[Any], rows: Callable[[slice], Sequence[Recorded]]
) -> None:
    """File events other than forecasts: together where enough of them follow one another. Raises Corrupt."""
    done, others = 0, list[int]()
    if not {*map(type, several)} <= TOGETHER.keys():
        others = [index for index, event in enumerate(several) if type(event) not in TOGETHER]
    for before, end in pairwise((-1, *others, len(several))):
        begin = before + 1
        if end - begin >= _ENOUGH:
            for recorded in rows(slice(done, begin)):
                _file_event(facts, recorded)
            done = end if file_together(facts, position[begin:end], several[begin:end]) else begin
    for recorded in rows(slice(done, len(several))):
        _file_event(facts, recorded)
    facts.books.settle_moves()


def file_columns(facts: Facts, page: ForecastPage) -> ForecastPage:
    """File the next forecasts of a log, which have the codes of the facts; return them."""
    facts.as_of = max(facts.as_of, int(page.position[-1]))
    facts.books.clock = max(facts.books.clock, int(page.at.max()))
    return page


def status(facts: Facts, as_of: int | None = None) -> Status:
    """Return the status of every question as of a log position, by default the last."""
    last = facts.as_of if as_of is None else as_of
    if last not in facts.statuses:
        facts.statuses[last] = _status(facts, last)
    return facts.statuses[last]


def status_of(facts: Facts, questions: Int64Array, as_of: Int64Array) -> Status:
    """Return the status of these questions, by code, each as of its own log position; shape (n,)."""
    now = status(facts).of(questions)
    if (as_of >= facts.as_of).all():
        return now
    if facts.former:
        opened = facts.questions_as_of(questions.tolist(), as_of)
        opens_at, closes_at = zip(*[(question.opens_at, question.closes_at) for question in opened], strict=True)
        now = now._replace(opens_at=int64_array(opens_at), closes_at=int64_array(closes_at))
    closings, settled = int64_array([0, *(at for *_, at in facts.closings)]), [None, *facts.settlements]
    closing = _latest([(position, question) for position, question, _ in facts.closings], questions, as_of)
    answer = _latest([settlement[:2] for settlement in facts.settlements], questions, as_of)
    answers = [settled[number] for number in answer.tolist()]
    known_at = zip(answers, now.closes_at.tolist(), strict=True)
    return now._replace(
        closed_at=np.where(closing > 0, closings[closing], now.closes_at),
        outcome=int64_array([-1 if answer is None else answer.outcome for answer in answers]),
        known_at=int64_array(
            [answer.known_at if answer is not None and answer.settles else at for answer, at in known_at]
        ),
        values=["" if answer is None else answer.value for answer in answers],
        payouts=[() if answer is None else answer.payouts for answer in answers],
    )


def _latest(entries: list[tuple[int, int]], questions: Int64Array, as_of: Int64Array) -> Int64Array:
    """Return the number, from 1, of the last entry of each question up to a log position, shape (n,); 0 for none.

    entries: (log position, question), in log order. questions, as_of: shape (n,) each.
    """
    if not entries:
        return np.zeros_like(questions)
    position, question = map(int64_array, zip(*entries, strict=True))
    order = stable_order(question)
    position, question = position[order], question[order]
    after = int(position.max()) + 1
    index = np.searchsorted(question * after + position, questions * after + np.minimum(as_of, after - 1), "right") - 1
    return np.where((index >= 0) & (question[index] == questions), order[index] + 1, 0)


def _status(facts: Facts, last: int) -> Status:
    questions = facts.questions_as_of(range(len(facts.questions)), np.full(len(facts.questions), last))
    opens_at = int64_array([question.opens_at for question in questions])
    closes_at = int64_array([question.closes_at for question in questions])
    bins = int64_array([question.range.bins if question.range else 0 for question in facts.questions])
    closed_at, known_at, outcome = closes_at.copy(), closes_at.tolist(), [-1] * len(bins)
    values, payouts = [""] * len(bins), list[tuple[Fraction, ...]]([()]) * len(bins)
    for position, question, at in facts.closings:
        if position <= last:
            closed_at[question] = at
    for position, question, answer, known, value, settles, paid, _ in facts.settlements:
        if position <= last:
            outcome[question], values[question], payouts[question] = answer, value, paid
            known_at[question] = known if settles else questions[question].closes_at
    columns = (opens_at, closes_at, bins, closed_at, int64_array(outcome), int64_array(known_at))
    return Status._make([*map(compact, columns), values, payouts])


def _file_event(facts: Facts, recorded: Recorded) -> None:
    """File an event that is neither a forecast nor a withdrawal."""
    event, kind = recorded.event, type(recorded.event)
    try:
        check_event(facts, recorded.position, event)
        enter_event(facts, recorded.position, event)
        if kind in TOGETHER:
            TOGETHER[kind](facts, [recorded.position], [event])
        elif kind in _FILE:
            _FILE[kind](facts, recorded, event)
    except KeyError as missing:
        tag, name = events.TAGS[kind], shorten(str(missing))  # str of a KeyError is its key, escaped
        fault = mismatch("an id that an earlier event introduced", f"{name}, which none did")
        raise Corrupt(recorded.position, f"{tag}: {fault}") from None
    except OverflowError:
        raise Corrupt(recorded.position, mismatch(_WITHIN_64_BITS, "a larger one")) from None


def _file_retraction(facts: Facts, recorded: Recorded, event: events.ForecastsRetracted) -> None:
    codes = codes_of(facts.renames, facts.participant_codes.add(event.participant))
    rows = facts.retractions.setdefault(facts.question_codes.codes[event.question], [])
    rows.extend((recorded.position, who) for who in codes)


def _file_quotes(facts: Facts, recorded: Recorded, event: events.PricesQuoted) -> None:
    facts.books.quotes.enter(recorded.position, recorded.recorded_at, event, facts.question_codes.codes)


def _file_contest(facts: Facts, recorded: Recorded, event: events.ContestOpened) -> None:
    facts.contests[event.contest] = Contest(event, position=recorded.position)


def _file_enrolment(facts: Facts, _: Recorded, event: events.ParticipantEnrolled) -> None:
    put_last(facts.contests[event.contest].enrolments, event.participant, event)


def _file_exclusion(facts: Facts, _: Recorded, event: events.ParticipantExcluded) -> None:
    put_last(facts.contests[event.contest].levels, event.participant, event.level)


def _file_seal(facts: Facts, recorded: Recorded, event: events.ContestFinalized) -> None:
    facts.contests[event.contest].sealed = Checkpoint(recorded.position, recorded.digest)


def _file_prize(facts: Facts, recorded: Recorded, event: events.PrizePaid) -> None:
    facts.contests[event.contest].paid[event.participant] = Payment(recorded.position, event.amount)
    facts.contests[event.contest].paid_total += event.amount


def _file_rename(facts: Facts, recorded: Recorded, event: events.ParticipantRenamed) -> None:
    """File another id of a participant; a contest that is sealed stays as it is."""
    old, new = map(facts.participant_codes.add, (event.participant, event.to))
    facts.renames = (*facts.renames, Rename(recorded.position, old, new))
    for contest in facts.contests.values():
        if contest.sealed is None:
            contest.enrolments = enrolled_as(contest.enrolments, event.participant, event.to)
            contest.levels = moved(contest.levels, event.participant, event.to)


def _file_annulment(
    facts: Facts, recorded: Recorded, event: events.QuestionAnnulled | events.ResolutionRevoked
) -> None:
    """File an annulment, or that an answer or an annulment does not count any more."""
    code, annuls = facts.question_codes.codes[event.question], isinstance(event, events.QuestionAnnulled)
    answer = Settlement(recorded.position, code, -1, facts.questions[code].closes_at, settles=annuls, at=event.at)
    facts.settlements.append(answer)
    facts.settled.pop(code, None)
    if annuls:
        facts.settled[code] = answer


def _file_schedule(facts: Facts, recorded: Recorded, event: events.QuestionClosed | events.QuestionRescheduled) -> None:
    """File an early close, or other times of a question, of which a new close is also its end."""
    code = facts.question_codes.codes[event.question]
    if isinstance(event, events.QuestionRescheduled):
        facts.former.setdefault(code, []).append((recorded.position, facts.questions[code]))
        facts.questions[code] = rescheduled(facts.questions[code], event)
    end = event.at if isinstance(event, events.QuestionClosed) else event.closes_at
    if end is not None:
        facts.closings.append((recorded.position, code, end))


def _file_amendment(facts: Facts, _: Recorded, event: events.QuestionAmended) -> None:
    """File another description of a question, or another weight."""
    code = facts.question_codes.codes[event.question]
    facts.questions[code] = amended(facts.questions[code], event)
    if event.weight is not None:
        entries = facts.contests[event.contest].entries
        entries[code] = entries[code]._replace(weight=event.weight)


_FILE: dict[type, Callable[[Facts, Recorded, Any], None]] = {
    events.QuestionClosed: _file_schedule,
    events.QuestionRescheduled: _file_schedule,
    events.QuestionAmended: _file_amendment,
    events.OutcomesChanged: file_change,
    events.QuestionAnnulled: _file_annulment,
    events.ResolutionRevoked: _file_annulment,
    events.ForecastsRetracted: _file_retraction,
    events.ContestOpened: _file_contest,
    events.ContestFinalized: _file_seal,
    events.ParticipantEnrolled: _file_enrolment,
    events.ParticipantExcluded: _file_exclusion,
    events.ParticipantRenamed: _file_rename,
    events.PricesQuoted: _file_quotes,
    events.PrizePaid: _file_prize,
}


def forecast_columns(facts: Facts, forecasts: Sequence[Recorded]) -> ForecastPage:
    """Return the forecasts among the events of a page as columns; new participants get codes."""
    questions, participants = facts.question_codes.codes, facts.participant_codes.codes
    rows: list[Any] = [recorded.event for recorded in forecasts]
    try:
        question = [questions[event.question] for event in rows]
    except KeyError:
        first = next(row for row, event in enumerate(rows) if event.question not in questions)
        fault = mismatch("a question opened earlier", f"{short_repr(rows[first].question)}, which was not")
        raise Corrupt(forecasts[first].position, fault) from None
    try:
        participant = [participants[event.participant] for event in rows]
    except KeyError:  # a participant is new
        participant = [participants.setdefault(event.participant, len(participants)) for event in rows]
    made = [type(event) is events.ForecastMade for event in rows]
    stands = np.fromiter(made, np.int64, len(made))
    stated = rows if all(made) else [*compress(rows, made)]
    numbers = [event.probabilities or event.cdf or event.quantiles or event.samples for event in stated]
    lengths, until = np.zeros_like(stands), np.full_like(stands, NEVER)
    lengths[stands > 0] = list(map(len, numbers))
    ends = [*map(attrgetter("until"), stated)]
    if ends.count(None) < len(ends):
        until[stands > 0] = [NEVER if end is None else end for end in ends]
    if any(map(attrgetter("attestation"), stated)):
        _file_attestations(facts, compress(forecasts, made))
    return ForecastPage(
        int64_array([recorded.position for recorded in forecasts]),
        int64_array([event.at for event in rows]),
        int64_array([recorded.recorded_at for recorded in forecasts]),
        int64_array(question),
        int64_array(participant),
        stands,
        until,
        lengths,
        np.fromiter(chain.from_iterable(numbers), np.int64),
    )


def _file_attestations(facts: Facts, forecasts: Iterable[Recorded]) -> None:
    """File the attestations of forecasts."""
    for recorded in forecasts:
        event = recorded.event
        if isinstance(event, events.ForecastMade) and event.attestation is not None:
            check_attestation(recorded.position, event.attestation)
            facts.attestations[recorded.position] = event.attestation


def _required_numbers(question: events.QuestionOpened) -> RequiredNumbers:
    """Return the numbers that a question requires of a forecast."""
    span = question.range
    if span is None:
        return _required_shares(len(question.outcomes))
    if span.measures:
        return RequiredNumbers(width(question), LARGEST_MEASURE, 10**span.decimals)
    return RequiredNumbers(width(question), CUMULATIVE, CUMULATIVE)


@lru_cache
def _required_shares(outcomes: int) -> RequiredNumbers:
    return RequiredNumbers(outcomes, PROBABILITY, PROBABILITY)


def gather_forecasts(facts: Facts, pages: list[ForecastPage]) -> Forecasts:
    """Return the checked forecasts of pages of a log, question after question.

    Raises Corrupt at a forecast that does not fit its question. They are not laid out; see `outcomes.laid_out`.
    """
    forecasts, lengths = join_pages(pages)
    opened = int64_array(facts.opened).take(forecasts.question)

    def too_early(row: int) -> str:
        name = short_repr(facts.questions[forecasts.question[row]].question)
        return mismatch("a question opened earlier", f"{name}, opened at log position {opened[row]}")

    raise_at_first(forecasts.position, forecasts.position < opened, too_early)
    codes = np.flatnonzero(np.bincount(forecasts.question[run_starts(forecasts.question)]))
    required = {code: _required_numbers(facts.questions[code]) for code in codes.tolist()}
    base = np.zeros(len(facts.questions), np.int64)
    base[codes] = [question.width for question in required.values()]
    wide = widths(facts, base, forecasts.question, forecasts.position)
    check_forecasts(forecasts, lengths, required, wide)
    return _by_question(forecasts)


def _by_question(forecasts: Forecasts) -> Forecasts:
    """Return forecasts question after question, each in log order."""
    starts = run_starts(forecasts.question)
    order = stable_order(forecasts.question[starts])
    lengths = run_lengths(starts, len(forecasts.question))[order]
    rows = np.arange(len(forecasts.question)) + np.repeat(starts[order] - (np.cumsum(lengths) - lengths), lengths)
    ordered = forecasts if (order[1:] > order[:-1]).all() else forecasts.rows(rows)
    question, position = ordered.question, ordered.position
    if ((position[1:] < position[:-1]) & (question[1:] == question[:-1])).any():  # a segment has some of them as JSON
        return forecasts.rows(np.lexsort((forecasts.position, forecasts.question)))
    return ordered


def select_columns(columns: ForecastPage, rows: BoolArray) -> ForecastPage:
    """Return some rows of the columns of forecasts."""
    *each, numbers = columns
    return ForecastPage._make([*(column[rows] for column in each), numbers[np.repeat(rows, columns.lengths)]])
