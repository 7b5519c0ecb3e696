"""Samples of a log's numbers to examine by hand: drawn from its digest, and evaluated with an upper limit."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from hashlib import sha256
from heapq import nsmallest
from itertools import accumulate, islice
from math import comb
from typing import IO, Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.core.columns import FINE_MONEY, KINDS, Column
from forecast_ledger.projections.core.late_fractions import round_to_units
from forecast_ledger.projections.core.table import Table
from forecast_ledger.replay.audit.compare import agrees, read_claim, records_of
from forecast_ledger.replay.audit.trails import Trails, documents_text, positions_text
from forecast_ledger.replay.reading.log import find_contest
from forecast_ledger.replay.reading.replay import Replay

MOST = 2_000  # items of a sample
MILLION = 10**6  # units in 1 of a rate
SHEET = (
    Column("item", "count", "number in the population, from 1, in the order of its rows"),
    Column("by", "text", "what is to be found: score or amount"),
    Column("as_of", "count", "log position as of which the sample was drawn"),
    Column("contest", "id", "the contest"),
    Column("question", "id", "the question; empty for an amount"),
    Column("participant", "id", "the forecaster"),
    Column("document", "text", "where the question is described, or the source of its answer"),
    Column("events", "text", "log positions that the number rests on"),
    Column("score", "points", "the score"),
    Column("amount", "fine_money", "the prize, or the movement of cash"),
    Column("times", "count", "how often it was drawn; by amount, large ones several times"),
    Column("found", "points", "to fill in: the value that the examination gave"),
    Column("remark", "text", "to fill in"),
)
_FILLED_IN = {"found", "remark"}
_DIGITS = 19  # of a log position


class Sample(NamedTuple):
    """A sample. by: score or amount. items: of the population; total: of its amounts, 1e-15. size: how many were drawn.

    rows: those of the sheet; `times` adds up to the size.
    """

    by: str
    items: int
    total: int
    size: int
    rows: list[dict[str, Any]]


class Evaluation(NamedTuple):
    """What an examination found. wrong: of the size drawn, those whose value is another one or is empty.

    limit: upper limit of the rate of error, 1e-6. findings: a sentence about each item that is wrong.
    """

    sample: Sample
    wrong: int
    limit: int
    findings: list[str]

    def row(self, confidence: int) -> dict[str, Any]:
        """Return it as printed."""
        rate, by_amount = round_to_units(Fraction(self.wrong, self.sample.size), MILLION), self.sample.by == "amount"
        limit = -(-self.sample.total * self.limit // MILLION)
        return {
            "by": self.sample.by,
            "items": self.sample.items,
            "total": _money(self.sample.total) if by_amount else None,
            "drawn": self.sample.size,
            "wrong": self.wrong,
            "rate": _rate(rate),
            "upper_limit": _rate(self.limit),
            "upper_amount": _money(limit) if by_amount else None,
            "confidence": f"{confidence}%",
        }


EVALUATED = ["by", "items", "total", "drawn", "wrong", "rate", "upper_limit", "upper_amount", "confidence"]


def draw(season: Replay, by: str, size: int, contest: str | None = None) -> Sample:
    """Draw a sample. by: chance, of the rows of the table scores, each as likely as any other and once at most; or
    amount, of the prizes and the movements of cash, each as likely as it is large. contest: only of this one.

    Raises Refused (unknown_contest), ValueError (nothing to draw from; amounts in several currencies).
    """
    if contest is not None:
        find_contest(season.projections.facts, contest)
    return DRAWN[by](season, size, contest)


def drawn_by_chance(digest: str, items: int, size: int) -> list[int]:
    """Return the numbers of the items that are drawn, ascending: those with the smallest SHA-256 of `DIGEST NUMBER`.

    So anybody who has the digest draws the same. A simple random sample without replacement.

    >>> drawn_by_chance("0" * 64, 100, 3)
    [1, 46, 55]
    """
    numbers = range(1, items + 1)
    return sorted(nsmallest(size, numbers, key=lambda number: sha256(f"{digest} {number}".encode()).digest()))


def drawn_by_amount(start: int, amounts: Sequence[int], size: int) -> dict[int, int]:
    """Return the numbers of the items that are drawn, from 1, and how often each is.

    amounts: units of each item, 0 or more. One unit in each interval of total / size is drawn, from start / size on,
    and with it the item that has the unit. start: 0 up to the total, without it.

    Source: AICPA, Audit Guide "Audit Sampling", monetary unit sampling, fixed intervals with a random start; ISA 530,
    Appendix 4.

    >>> drawn_by_amount(50, [10, 60, 30], 2)  # the units 25 and 75
    {2: 1, 3: 1}
    """
    sums, counts = [*accumulate(amounts)], dict[int, int]()
    for number in range(size):
        item = bisect_right(sums, (number * sums[-1] + start) // size) + 1
        counts[item] = counts.get(item, 0) + 1
    return counts


def upper_limit(wrong: int, size: int, confidence: int) -> int:
    """Return the one-sided upper limit of a rate of error, 1e-6, rounded up: that of Clopper and Pearson.

    It is the least rate p at which so few errors, or fewer, in a sample of this size have a chance of at most
    1 - confidence: the sum over j up to wrong of C(size, j) p^j (1 - p)^(size - j). Exact, in integers. confidence:
    percent.

    Source: Clopper and Pearson (1934), Biometrika 26(4):404-413, doi:10.1093/biomet/26.4.404.

    >>> upper_limit(0, 20, 95)  # 1 - 0.05^(1/20)
    139109
    """

    def is_rare(rate: int) -> bool:
        """Return whether so few errors have at most the chance that the confidence leaves, at a rate in millionths."""
        sound, chance = MILLION - rate, 0
        for j in range(wrong + 1):
            chance += comb(size, j) * rate**j * sound ** (wrong - j)
        whole: int = MILLION**size
        few: int = chance * sound ** (size - wrong)  # the chance of so few errors, 1/whole
        return few * 100 <= (100 - confidence) * whole

    return bisect_left(range(MILLION), True, key=is_rare)


def evaluate(file: IO[bytes], season_at: Callable[[int], Replay], confidence: int, contest: str | None) -> Evaluation:
    """Evaluate a sheet that was filled in: whether each value found is that of the log, to the decimals written.

    The sample is drawn a second time; all cells but those that were filled in must be equal to it. season_at: replays
    the log as of a position. An item without a value found is wrong: it could not be examined. If all items were
    examined, the rate is known, and is its own limit.

    Raises Refused: bad_csv (not a sheet, or not one of this log), what `season_at` raises; ValueError: see `draw`.
    """
    claim = read_claim(file, SHEET, others=True)
    if lacking := [column.name for column in SHEET if column.name not in {*claim.cell_of, *_FILLED_IN - {"found"}}]:
        raise _bad(f"the sheet has no column {', '.join(lacking)}")
    lines = {}
    for line, cells in islice(records_of(claim), MOST + 1):
        lines[line] = {name: cells[index] for name, index in claim.cell_of.items()}
    if len(lines) > MOST:
        raise _bad(f"the sheet has more than {MOST:,} rows, the most that a sample has")
    first = next(iter(lines.values()), None)
    if first is None or not _is_count(first["as_of"]) or first["by"] not in {"score", "amount"}:
        raise _bad("the first row has no log position in as_of, or neither score nor amount in by")
    times = [cells["times"] for cells in lines.values()]
    if not all(map(_is_count, times)):
        raise _bad("a cell of the column times is not a number")
    by, size = "chance" if first["by"] == "score" else "amount", sum(map(int, times))
    if not 1 <= size <= MOST:
        raise _bad(f"{size:,} items were drawn, and a sample has 1 to {MOST:,}")
    sample = draw(season_at(int(first["as_of"])), by, size, contest)
    wrong, findings = _examined(sample, lines, decimal_comma=claim.decimal_comma)
    everything = sample.by == "score" and sample.size == sample.items
    limit = -(-wrong * MILLION // size) if everything else upper_limit(wrong, size, confidence)
    return Evaluation(sample, wrong, limit, findings)


def _examined(sample: Sample, lines: dict[int, dict[str, str]], *, decimal_comma: bool) -> tuple[int, list[str]]:
    """Compare the rows of a sheet, by line, with those that are drawn; return how many are wrong, and what is."""
    kinds = {column.name: column.kind for column in SHEET}
    if len(lines) != len(sample.rows):
        raise _bad(f"the sheet has {len(lines):,} rows, and {len(sample.rows):,} are drawn from this log")
    wrong, findings = 0, []
    for (line, cells), row in zip(lines.items(), sample.rows, strict=True):
        for name, drawn in row.items():
            if name not in _FILLED_IN and not agrees(cells[name], drawn, kinds[name], decimal_comma=decimal_comma):
                raise _bad(f"line {line}: {name}: the sheet has {cells[name]!r}, and this log gives {drawn!r}")
        recorded, examined = row[sample.by], cells["found"]
        if not examined or not agrees(examined, recorded, kinds[sample.by], decimal_comma=decimal_comma):
            wrong += row["times"]
            about = " ".join(filter(None, (row["contest"], row["question"], row["participant"])))
            what = f"found {examined}, recorded {recorded}" if examined else "nothing found, which counts as wrong"
            findings.append(f"line {line}: {about}: {what}{': ' * bool(remark := cells.get('remark', ''))}{remark}")
    return wrong, findings


def _bad(detail: str) -> Refused:
    remedy = "fill in the columns found and remark of what `sample --format csv` printed, with the same --contest"
    return Refused("bad_csv", "", None, detail, remedy=remedy)


def _by_chance(season: Replay, size: int, contest: str | None) -> Sample:
    """Draw rows of the table scores."""
    table, facts = _of(season.table("scores"), contest), season.projections.facts
    if not len(table):
        raise ValueError("there is no score to draw from; --by amount draws prizes and movements of cash")
    numbers = drawn_by_chance(season.checkpoint.digest, len(table), size)
    prizes = {(row["contest"], row["participant"]): row["prize"] for row in season.table("prizes").rows()}
    trails, rows = dict[str, Trails](), []
    for number, row in zip(numbers, table.rows_at(np.array(numbers, np.int64) - 1).rows(), strict=True):
        where, question, who = row["contest"], row["question"], row["participant"]
        if where not in trails:
            trails[where] = Trails(facts, where)
        trail = trails[where].of(who, question)
        known = {"document": documents_text(facts, [question]), "events": positions_text(trail.events())}
        amounts = {"score": row["score"], "amount": prizes.get((where, who)), "times": 1}
        key = {"item": number, "by": "score", "contest": where, "question": question, "participant": who}
        rows.append(_row(season, **key, **known, **amounts))
    return Sample("score", len(table), 0, len(rows), rows)


def _by_amount(season: Replay, size: int, contest: str | None) -> Sample:
    """Draw prizes and movements of cash, by their units of money."""
    contests = season.projections.facts.contests
    entries = [
        (Fraction(row["prize"]), row, positions_text(_prize_events(season, row)))
        for row in _of(season.table("prizes"), contest).rows()
    ]
    entries += [
        (Fraction(row["amount"]), row, str(row["log_position"]))
        for row in _of(_of(season.table("journal"), "cash", "account"), contest).rows()
    ]
    entries = [each for each in entries if each[0]]
    if not entries:
        raise ValueError("there is no prize and no movement of cash to draw from; --by chance draws scores")
    if len(used := sorted({contests[row["contest"]].opened.currency for _, row, _ in entries})) > 1:
        names = " and ".join(each or "no currency" for each in used)
        raise ValueError(f"amounts in {names} have no sum: name a contest with --contest")
    amounts = [int(abs(amount) * FINE_MONEY) for amount, _, _ in entries]
    total = sum(amounts)
    start = int(sha256(f"{season.checkpoint.digest} start".encode()).hexdigest(), 16) % total
    rows = []
    for number, times in drawn_by_amount(start, amounts, size).items():
        amount, row, told = entries[number - 1]
        key = {"item": number, "by": "amount", "contest": row["contest"], "participant": row["participant"] or None}
        rows.append(_row(season, **key, events=told, amount=_money(int(amount * FINE_MONEY)), times=times))
    return Sample("amount", len(entries), total, size, rows)


DRAWN: dict[str, Callable[[Replay, int, str | None], Sample]] = {"chance": _by_chance, "amount": _by_amount}


def _prize_events(season: Replay, row: dict[str, Any]) -> list[int]:
    """Return the log positions of the seal and of the payment of a prize, those that there are."""
    contest = season.projections.facts.contests[row["contest"]]
    paid = contest.paid.get(row["participant"])
    return [each.position for each in (contest.sealed, paid) if each is not None]


def _of(table: Table, label: str | None, column: str = "contest") -> Table:
    return table if label is None else table.only(column, label)


def _row(season: Replay, **values: Any) -> dict[str, Any]:
    return dict.fromkeys(column.name for column in SHEET) | {"as_of": season.checkpoint.position} | values


def _money(amount: int) -> str:
    text: str = KINDS["fine_money"].printed(amount)
    return text


def _is_count(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) < _DIGITS


def _rate(millionths: int) -> str:
    return f"{millionths // MILLION}.{millionths % MILLION:06}"
