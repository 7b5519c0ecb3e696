"""Trails: the log positions and documents of a score or a prize, and the tie-out sheet, beside a bank statement."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import MONEY
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.audit.compare import read_number
from forecast_ledger.replay.mapping.csv_reader import read_records
from forecast_ledger.replay.reading.descriptions import money
from forecast_ledger.replay.reading.log import find_contest

LONGEST = 1_000  # characters of a cell that lists positions or documents


class Trail(NamedTuple):
    """What the number of a participant on some questions of a contest rests on.

    questions: ids, those with a forecast that counts. forecasts, answers: log positions, ascending, as of the seal;
    withdrawals are among the forecasts.
    """

    questions: list[str]
    forecasts: list[int]
    answers: list[int]

    def events(self) -> list[int]:
        """Return all of its log positions, ascending."""
        return sorted({*self.forecasts, *self.answers})


class Trails:
    """The trails of a contest's participants, as of its seal or, without one, the end of the log."""

    def __init__(self, facts: Facts, name: str) -> None:
        contest = facts.contests[name]
        codes = np.array(sorted(contest.entries), np.int64)
        rows = facts.forecasts.on(codes, contest.as_of(facts))
        self._questions = [facts.questions[code].question for code in codes.tolist()]
        self._answers = _answers(facts, contest)
        self._labels = facts.participant_codes.codes
        order = np.lexsort((rows.position, rows.question, rows.participant))
        self._people, self._questions_of_rows, self._positions = (
            column[order] for column in (rows.participant, rows.question, rows.position)
        )

    def of(self, participant: str, question: str | None = None) -> Trail:
        """Return the trail of a participant on one question, or on all of the contest."""
        code = self._labels.get(participant, -1)
        begin, end = self._people.searchsorted([code, code + 1]).tolist()
        forecasts = [
            (self._questions[code_of_question], position)
            for code_of_question, position in zip(
                self._questions_of_rows[begin:end].tolist(), self._positions[begin:end].tolist(), strict=True
            )
            if question in {None, self._questions[code_of_question]}
        ]
        names = list(dict.fromkeys(name for name, _ in forecasts))
        answers = {self._answers[name] for name in names if name in self._answers}
        return Trail(names, sorted(position for _, position in forecasts), sorted(answers))


def _answers(facts: Facts, contest: Contest) -> dict[str, int]:
    """Return the log position of the answer that counts for each question of a contest that has one."""
    positions: dict[str, int] = {}
    for settlement in facts.settlements:
        if settlement.question in contest.entries and settlement.position <= contest.as_of(facts):
            question = facts.questions[settlement.question].question
            positions.pop(question, None)
            if settlement.settles:
                positions[question] = settlement.position
    return positions


def positions_text(positions: Sequence[int]) -> str:
    """Return ascending log positions, runs of them as ranges that no spreadsheet takes for a date; of many, the first.

    >>> positions_text([1, 2, 3, 7, 9, 10])
    '1..3 7 9..10'
    """
    ends = [index for index in range(1, len(positions)) if positions[index] != positions[index - 1] + 1]
    runs = [(positions[a], positions[b - 1]) for a, b in zip([0, *ends], [*ends, len(positions)], strict=True) if a < b]
    return _joined([str(first) if first == last else f"{first}..{last}" for first, last in runs])


def documents_text(facts: Facts, questions: Iterable[str]) -> str:
    """Return where these questions are described, or from which text their answers are taken, each once."""
    codes = facts.question_codes.codes
    told = (facts.questions[codes[name]] for name in questions)
    return _joined([*dict.fromkeys(document for each in told if (document := each.url or each.source))])


def _joined(texts: Sequence[str]) -> str:
    """Return texts with spaces between them; of many, the first ones and how many there are besides."""
    whole = " ".join(texts)
    if len(whole) <= LONGEST:
        return whole
    kept = whole[:LONGEST].rpartition(" ")[0].count(" ") + 1
    return f"{' '.join(texts[:kept])} and {len(texts) - kept:,} more"


# --- The tie-out sheet of a contest: from documents to events, to the score, to the prize, to a line of the bank.


TIE_OUT = [
    "row", "participant", "questions", "documents", "forecasts", "answers", "sealed_at", "score", "take", "prize",
    "paid_at", "paid", "owed", "bank_date", "bank_reference", "bank_amount",
]  # fmt: skip
TOTAL = "total"  # in the column `row` of the last row


class Tie(NamedTuple):
    """Two totals that must be equal, as money; what each is."""

    what: str
    one: Fraction
    other: Fraction


def tie_out(projections: Projections, name: str) -> tuple[list[dict[str, Any]], list[Tie]]:
    """Return the rows of a contest's tie-out sheet, by participant and with a last row of totals, and what must tie.

    A row is of a participant with a prize or a payment. The columns of the bank are empty: the auditor fills them in.
    Raises Refused (unknown_contest).
    """
    facts = projections.facts
    contest = find_contest(facts, name)
    trails, sealed = Trails(facts, name), contest.sealed
    board = {row["participant"]: row for row in projections.rows_of("leaderboard", name)}
    rows: list[dict[str, Any]] = []
    for row in projections.rows_of("prizes", name):
        who, board_row = row["participant"], board.get(row["participant"])
        if not Fraction(row["prize"]) and not Fraction(row["paid"]):
            continue
        trail, payment = trails.of(who), contest.paid.get(who)
        owed = Fraction(row["prize"]) - Fraction(row["paid"])
        rows.append(
            dict.fromkeys(TIE_OUT)
            | {
                "row": str(len(rows) + 1),
                "participant": who,
                "questions": len(trail.questions),
                "documents": documents_text(facts, trail.questions),
                "forecasts": positions_text(trail.forecasts),
                "answers": positions_text(trail.answers),
                "sealed_at": None if sealed is None else sealed.position,
                **{column: None if board_row is None else board_row[column] for column in ("score", "take")},
                "prize": row["prize"],
                "paid_at": None if payment is None else payment.position,
                "paid": row["paid"],
                "owed": None if sealed is None else money(int(owed * MONEY)),
            }
        )
    sums = {column: _sum(rows, column) for column in ("prize", "paid", "owed")}
    told = {column: money(int(total * MONEY)) for column, total in sums.items() if column != "owed" or sealed}
    last = dict.fromkeys(TIE_OUT) | {"row": TOTAL} | told
    return [*rows, last], [*_ties(projections, name, contest, rows, sums["paid"])]


def _ties(
    projections: Projections, name: str, contest: Contest, rows: Sequence[dict[str, Any]], paid: Fraction
) -> Iterator[Tie]:
    """Yield the totals that must be equal: of the sheet, of the journal, and of the pool."""
    journal = projections.rows_of("journal", name)
    pool = Fraction(contest.opened.pool, MONEY)
    left = sum((Fraction(row["amount"]) for row in journal if row["account"] == "prize_pool"), Fraction(0))
    booked = sum((Fraction(row["amount"]) for row in journal if row["account"] == "prizes"), Fraction(0))
    yield Tie("paid, and the account prizes of the journal", paid, booked)
    yield Tie("the pool, and paid with the account prize_pool of the journal", pool, paid + left)
    beyond = (max(Fraction(row["paid"]) - Fraction(row["prize"]), Fraction(0)) for row in rows)
    yield Tie("paid beyond the prizes, and nothing", sum(beyond, Fraction(0)), Fraction(0))


def _sum(rows: Iterable[dict[str, Any]], column: str) -> Fraction:
    return sum((Fraction(row[column]) for row in rows if row[column] is not None), Fraction(0))


BANKED = [*TIE_OUT, "bank"]
FINDINGS = ("matched", "missing", "different amount", "surplus")  # what the column `bank` says
LARGEST_STATEMENT, MOST_LINES = 2**24, 20_000  # bytes; each line is compared with each participant
_NEEDED, _DELIMITERS = ("payee", "amount"), (",", ";", "\t")
_PARTS = "give the lines of the prizes alone"


class Line(NamedTuple):
    """A line of a statement. number: of the line in the file. amount: in the currency; less than 0 if it was paid."""

    number: int
    date: str
    payee: str
    amount: Fraction
    text: str


def read_statement(content: bytes, *, decimal_comma: bool = False) -> list[Line]:
    """Return the lines of a CSV with the columns payee and amount and, if they are there, date and text.

    Raises ValueError: it is too large, a column is missing, or an amount is no number; UnicodeDecodeError, which is
    one, too.
    """
    if len(content) > LARGEST_STATEMENT:
        raise ValueError(f"the statement has more than {LARGEST_STATEMENT:,} bytes; {_PARTS}")
    content.decode("utf-8-sig")
    first = content.split(b"\n", 1)[0].decode("utf-8-sig")
    delimiter = max(_DELIMITERS, key=first.count)
    records = read_records(io.BytesIO(content), delimiter)
    _, header = next(records, (1, []))
    names = [] if isinstance(header, Refused) else [name.strip().lower() for name in header]
    if absent := [name for name in _NEEDED if name not in names]:
        raise ValueError(
            f"the statement has no column {absent[0]}; it needs payee and amount, and may have date and text"
        )
    lines = [_line(number, row, names, decimal_comma=decimal_comma) for number, row in islice(records, MOST_LINES + 1)]
    if len(lines) > MOST_LINES:
        raise ValueError(f"the statement has more than {MOST_LINES:,} lines; {_PARTS}")
    return lines


def _line(number: int, row: Refused | list[str], names: Sequence[str], *, decimal_comma: bool) -> Line:
    if isinstance(row, Refused) or len(row) != len(names):
        raise ValueError(f"line {number} of the statement does not fit its header")
    cells = {name: cell.strip() for name, cell in zip(names, row, strict=True)}
    amount = read_number(cells["amount"], decimal_comma=decimal_comma)
    if amount is None:
        raise ValueError(f"line {number} of the statement: {cells['amount']!r} is no amount")
    return Line(number, cells.get("date", ""), cells["payee"], amount.value, cells.get("text", ""))


def matched(rows: Sequence[dict[str, Any]], lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return the rows of a tie-out sheet with what a statement has for each, and a row for each line that none has.

    A line is of the participant whose id is its payee or, if no id is, whose id alone is a word of its payee or its
    text; capitals do not matter. The lines of a participant are added up, without the sign of the sum.
    """
    people = [(row["participant"], row["participant"].casefold()) for row in rows if row["row"] != TOTAL]
    owned: dict[str | None, list[Line]] = {}
    for line in lines:
        owned.setdefault(_owner(line, people), []).append(line)
    lines_with_bank = [_with_bank(row, owned.get(row["participant"], [])) for row in rows[:-1]]
    lines_with_bank += [
        dict.fromkeys(BANKED) | {"row": f"line {line.number}"} | _told([line]) | {"bank": "surplus"}
        for line in owned.get(None, [])
    ]
    return [
        *lines_with_bank,
        rows[-1] | {"bank": None, "bank_amount": _shown(sum((line.amount for line in lines), Fraction(0)))},
    ]


def _owner(line: Line, people: Sequence[tuple[str, str]]) -> str | None:
    """Return the participant of a line. people: each as it is written, and without capitals."""
    payee = line.payee.casefold()
    if exact := [who for who, plain in people if plain == payee]:
        return exact[0] if len(exact) == 1 else None
    said = f"{payee}\n{line.text.casefold()}"
    named = [who for who, plain in people if plain in said and re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", said)]
    return named[0] if len(named) == 1 else None


def _with_bank(row: dict[str, Any], lines: Sequence[Line]) -> dict[str, Any]:
    total, paid = abs(sum((line.amount for line in lines), Fraction(0))), Fraction(row["paid"])
    if not lines:
        return row | {"bank": "missing" if paid else None}
    return row | _told(lines) | {"bank": "matched" if total == paid else "different amount"}


def _told(lines: Sequence[Line]) -> dict[str, Any]:
    texts = (" ".join(filter(None, (line.payee, line.text))) for line in lines)
    dates = " ".join(dict.fromkeys(line.date for line in lines if line.date))
    return {
        "bank_date": dates,
        "bank_reference": "; ".join(dict.fromkeys(texts)),
        "bank_amount": _shown(sum((line.amount for line in lines), Fraction(0))),
    }


def _shown(amount: Fraction) -> str:
    return money(round(amount * MONEY))


def summary(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    """Yield how many rows have each finding."""
    said = [row["bank"] for row in rows]
    yield from ((finding, said.count(finding)) for finding in FINDINGS)
