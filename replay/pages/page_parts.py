"""Parts of a page: tables with their cells, pictures, and what is said of a contest and of a participant."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import floor, log10
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import format_count
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import LOGARITHMS, RuleSet
from forecast_ledger.ledger.model.task_ids import task_values
from forecast_ledger.projections.core.columns import plain_values
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.tables.catalogue import Projections, Row
from forecast_ledger.projections.tables.scores import participant_review_ends
from forecast_ledger.replay.pages.pictures import percent
from forecast_ledger.replay.reading.blocks import Cell, Number, Table
from forecast_ledger.replay.reading.board_notes import seal_notes, sentences, subsequent_events

BEST = 3  # questions or positions of a participant, at either end
MOST_PARTICIPANTS = 500
NEARLY = 10  # nearly everybody is all but one in ten
MOST_SUBSEQUENT = 100  # events after a seal
NAMED, ON_RANGE, BY_QUANTILES = "A score is", "On a range", "By quantiles"  # scores by the form of a question
NONE = "-"  # in a cell: there is no such number


class Part(NamedTuple):
    """A table with a title.

    note: paragraphs, a line each. seed: from which the samples that it rests on follow. source: how all its rows are
    printed, if paper has a part.
    """

    title: str
    note: str
    caption: str
    table: Table
    seed: str = ""
    source: str = ""


class Figure(NamedTuple):
    """A picture, and the table that it is drawn from."""

    title: str
    note: str
    svg: str
    table: Table


class Participant(NamedTuple):
    """What a page says of one participant."""

    anchor: str
    name: str
    words: str
    caption: str
    table: Table


class Contest(NamedTuple):
    """What a page says of one contest.

    about: what it asks, in its own words. findings: sentences, the main one first. left_out: what cannot be shown, and
    why. reviewed: how to read the sections of participants.
    """

    anchor: str
    title: str
    about: str
    findings: list[str]
    left_out: list[str]
    facts: list[tuple[str, str]]
    parts: list[Part]
    figures: list[Figure]
    reviewed: str
    participants: list[Participant]


def short_table(kinds: Mapping[str, str], rows: Sequence[Row], columns: Iterable[str]) -> Table:
    """Return columns of rows with few digits, by their kinds; a column whose name ends in `percent` has that sign."""
    names = [*columns]
    headings = [
        (str if kinds[name] in {"id", "text"} else Number)(name.removesuffix("_percent").replace("_", " "))
        for name in names
    ]
    digits = {name: digits_of([float(row[name]) for row in rows if row[name] is not None]) for name in names
              if kinds[name] == "points"}  # fmt: skip

    def text(name: str, value: Any) -> str:
        """Return the text of a cell: counts whole, shares in percent, other numbers with the digits of their column."""
        if kinds[name] in {"id", "text"}:
            return "" if value is None else str(value)
        if value is None:
            return NONE
        if kinds[name] == "count":
            return str(value)
        if kinds[name] == "share" or name.endswith("_percent"):
            share = float(value) / (1 if kinds[name] == "share" else 100)
            return f"{share:.1%}"
        return number_text(value, digits.get(name, 2))

    return Table(headings, [[text(name, row[name]) for name in names] for row in rows])


def number_text(value: Any, digits: int) -> str:
    """Return a number with so many decimals; 0 has no sign.

    >>> number_text("-1234.56", 1), number_text("-0.04", 1)
    ('-1,234.6', '0.0')
    """
    return f"{round(float(value), digits) + 0.0:,.{digits}f}"


def digits_of(numbers: Sequence[float]) -> int:
    """Return how many decimals show four digits of the largest of some numbers."""
    largest = max((abs(number) for number in numbers), default=0)
    return min(max(3 - floor(log10(largest)), 0), 6) if largest else 0


def kinds_of(projections: Projections, table: str) -> dict[str, str]:
    """Return the kind of each column of a table."""
    return {column.name: column.kind for column in projections.table(table).columns}


def by_participant(
    projections: Projections, table: str, contest: str, only: Collection[str] | None = None
) -> dict[str, list[Row]]:
    """Return the rows of a contest by participant. only: of which participants; None is all."""
    rows = projections.table(table).only("contest", contest)
    if only is not None:
        ids = rows.ids("participant")
        chosen = np.array([label in only for label in ids.labels], bool)
        rows = rows.rows_at(np.flatnonzero(chosen[ids.codes]))
    grouped: dict[str, list[Row]] = {}
    for row in rows.rows():
        grouped.setdefault(row["participant"], []).append(row)
    return grouped


def reviewed_ends(
    projections: Projections, contest: str, participants: Collection[str]
) -> dict[str, tuple[list[Row], int]]:
    """Return the questions that gained some participants most and least, the best first, and how many count."""
    values, numbers = participant_review_ends(projections, contest, participants, BEST)
    table = projections.as_table("participant_review", values)
    counted = defaultdict[int, list[int]](list)
    gained = plain_values(table.numbers("gained"))
    for row, (code, points) in enumerate(zip(table.ids("participant").codes.tolist(), gained, strict=True)):
        if points is not None:
            counted[code].append(row)
    ends = [
        indices if len(indices) <= 2 * BEST else [*indices[:BEST], *indices[-BEST:]] for indices in counted.values()
    ]
    printed = table.rows_at(np.array([row for indices in ends for row in indices], np.int64)).rows()
    shown = [[next(printed) for _ in indices] for indices in ends]
    return {rows[0]["participant"]: (rows, numbers[rows[0]["participant"]]) for rows in shown}


def short_name(question: QuestionOpened) -> str:
    """Return the id of a question, or the title if the id is that of a hub's question, which says the same."""
    return question.title if question.title and task_values(question.question) else question.question


def question_name(question: QuestionOpened) -> str:
    """Return the short name of a question, and its title if that is another text."""
    return ": ".join(dict.fromkeys(filter(None, (short_name(question), question.title))))


MOST_OUTCOMES = 6  # of a question, in a sentence


def about(questions: Sequence[QuestionOpened]) -> str:
    """Say what some questions ask, in their own words: what a hub's have in common, and the first as an example."""
    if not questions:
        return ""
    first, targets = questions[0], {question.title.partition(": ")[0] for question in questions}
    outcomes = first.outcomes or ()
    more = f" or {format_count(len(outcomes) - MOST_OUTCOMES, 'other')}" * (len(outcomes) > MOST_OUTCOMES)
    asks = {"binary": "yes or no", "multiple_choice": f"one of {', '.join(outcomes[:MOST_OUTCOMES])}{more}"}
    shared = f"It is about {next(iter(targets))}. " * (len(targets) == 1 and task_values(first.question) is not None)
    one = "Its question" if len(questions) == 1 else f"One of its {len(questions):,} questions"
    return f"{shared}{one} is {question_name(first)}; the answer is {asks.get(first.kind, 'a number')}."


def form_of(question: QuestionOpened) -> str:
    """Return which of the scores of a rule set are those of a question."""
    if question.range is None:
        return NAMED
    return BY_QUANTILES if question.range.measures else ON_RANGE


def row_anchor(contest: str, kind: str, number: int) -> str:
    """Return the anchor of the section about a row of a board; that of the contest if the row is beyond the last."""
    return f"{contest}-{kind}-{number + 1}" if number < MOST_PARTICIPANTS else contest


def in_table(table: str) -> str:
    """Say where everything is that a page has only a part of."""
    return f"whoever has the log can print all: forecast-ledger table LOG {table}"


def beyond(every: int, noun: str, table: str) -> list[str]:
    """Say that only the first of the rows of a board have sections of their own, if so."""
    told = f"Not shown: sections about {noun} after the first {MOST_PARTICIPANTS:,} of {every:,}"
    return [f"{told}; {in_table(table)}."] * (every > MOST_PARTICIPANTS)


def ends_of(rows: Sequence[Row], noun: str, table: str, every: int) -> tuple[Sequence[Row], str]:
    """Return the first and the last few of rows in order, the best first, and a caption that names the whole table.

    every: how many there are; rows may be their ends alone.
    """
    if every <= 2 * BEST:
        return rows, f"All {noun}, the best first"
    caption = f"The best {BEST} and the worst {BEST} of {every:,} {noun}; {in_table(table)}"
    return [*rows[:BEST], *rows[-BEST:]], caption


def subsequent_part(projections: Projections, name: str) -> list[Part]:
    """Return what is recorded about a sealed contest since, and what it would change; [] if nothing is."""
    told = subsequent_events(projections.facts, projections.facts.contests[name])
    shown = told[:MOST_SUBSEQUENT]
    more = f": the first {len(shown)} of {len(told):,}" * (len(told) > len(shown))
    rows = [[str(each.position), f"after {each.after}", each.says] for each in shown]
    table = Table([Number("log position"), "when", "says"], rows)
    note = sentences(seal_notes(projections, name)) or "Nothing on the board rests on it."
    return [Part("Subsequent events", note, f"What is recorded since the seal{more}", table)] if told else []


def span_cell(sure: Row, low: float, high: float, digits: int) -> Cell:
    """Return an interval as a line on a scale from low to high; an end beyond the scale is at 0 or 100."""
    if sure["score_low"] is None:
        return Cell("")
    ends = [float(sure[end]) for end in ("score_low", "score", "score_high")]
    percents = [1 + 98 * (end - low) / (high - low) if high > low else 50.0 for end in ends]
    percents = [0.0 if percent < 1 else 100.0 if percent > 99 else percent for percent in percents]
    words = f"{ends[0]:,.{digits}f} to {ends[2]:,.{digits}f}"
    return Cell(words, span=(round(percents[0], 2), round(percents[1], 2), round(percents[2], 2)))


def alike(board: Sequence[Row], ranges: Sequence[str]) -> str:
    """Say in a sentence which ranks are possible, if they are the same for nearly everybody who has some.

    >>> ada, bob = {"participant": "ada"}, {"participant": "bob"}
    >>> alike([ada, bob], ["1 to 2", "1 to 2"]), alike([ada, bob], ["1", "2"])
    ('Possible ranks are 1 to 2 for all 2.', '')
    >>> alike([ada] * 10 + [bob], ["1 to 11"] * 10 + ["3 to 11"])
    'Possible ranks are 1 to 11 for 10 of 11, and for bob 3 to 11.'
    >>> alike([ada, bob, bob], ["1 to 3", "", "1 to 3"])
    'Possible ranks are 1 to 3 for all 2 of whom they can be said.'
    """
    known = [(row["participant"], words) for row, words in zip(board, ranges, strict=True) if words]
    for words, number in Counter(words for _, words in known).most_common(1):
        others = [f"{who} {possible}" for who, possible in known if possible != words]
        if number > 1 and len(others) * NEARLY <= len(known):
            several = f"{number:,} of {len(known):,}" if others else f"all {number:,}"
            several += " of whom they can be said" * (len(known) < len(board))
            several += f", and for {', '.join(others)}" * bool(others)
            return f"Possible ranks are {words} for {several}."
    return ""


def printed_table(columns: Iterable[str], rows: Sequence[Row]) -> Table:
    """Return rows as they are printed."""
    names = [*columns]
    texts = {name for name in names if any(isinstance(row[name], str) and not _is_number(row[name]) for row in rows)}
    headings = [(str if name in texts else Number)(name.replace("_", " ")) for name in names]
    return Table(headings, [["" if row[name] is None else str(row[name]) for name in names] for row in rows])


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdecimal()


def range_text(low: Any, high: Any) -> str:
    """Return two ends in words, or one if they are the same; nothing without them."""
    if low is None:
        return ""
    return str(low) if low == high else f"{low} to {high}"


def questions_table(rows: Sequence[Row], named: Mapping[str, str], reviewed: bool) -> Table:
    """Return questions of a participant. named: what each is called.

    reviewed: whether the rows are of `participant_review`, not of `scores`.
    """
    columns = ("score", *(("median", "gained") if reviewed else ()))
    digits = digits_of([float(row[name]) for row in rows for name in columns if row[name] is not None])

    def number(value: str | None) -> str:
        return NONE if value is None else number_text(value, digits)

    cells = []
    for row in rows:
        line = [named[row["question"]], number(row["score"]), percent(float(row["coverage"]))]
        if reviewed:
            rank = "no forecast" if row["rank"] is None else f"{row['rank']} of {row['forecasters']}"
            line[2:2] = [rank, number(row["median"]), number(row["gained"])]
        cells.append(line)
    names = ["score", *(["rank", "median", "gained"] if reviewed else []), "coverage"]
    return Table(["question", *map(Number, names)], cells)


_PLAIN = {  # what a score is, for readers who do not know its formula
    **dict.fromkeys(("brier", "brier_sum", "brier_mean"), "how far the probabilities were from what happened"),
    "ordered_brier": "how far the probabilities were from what happened, less so if the outcomes beside it had them",
    **dict.fromkeys(LOGARITHMS, "how much probability the forecast gave to what happened: very little costs much"),
    "crps": "how far the forecast's distribution of the answer was from the answer",
    "pinball": "how far the numbers of the forecast were from the answer (its quantile loss: of numbers that the "
    "answer is below with probabilities t, those on the wrong side count more)",
}


def plain_words(rules: RuleSet, kernels: Collection[str]) -> list[tuple[str, str]]:
    """Say what a score is without a formula, if it is one for all kernels of a contest."""
    plain = {_PLAIN.get(kernel, "") for kernel in kernels}
    if len(plain) != 1 or not (words := plain.pop()):
        return []
    beside = {"none": "", "uniform": "; compared with a forecast that gives all outcomes the same"}
    better = "lower" if lower_is_better(rules) else "higher"
    return [
        (
            "In plain words",
            f"{words}{beside.get(rules.reference, '; compared with the forecasts of others')}; {better} is better",
        )
    ]
