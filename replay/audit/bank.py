"""The lines of a bank statement, matched with the prizes that a contest paid."""

import io
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import MONEY
from forecast_ledger.replay.audit.compare import read_number
from forecast_ledger.replay.audit.trails import TIE_OUT, TOTAL
from forecast_ledger.replay.mapping.csv_reader import read_records
from forecast_ledger.replay.reading.descriptions import money

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
    found = [_with_bank(row, owned.get(row["participant"], [])) for row in rows[:-1]]
    found += [
        dict.fromkeys(BANKED) | {"row": f"line {line.number}"} | _told([line]) | {"bank": "surplus"}
        for line in owned.get(None, [])
    ]
    return [*found, rows[-1] | {"bank": None, "bank_amount": _shown(sum((line.amount for line in lines), Fraction(0)))}]


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
