"""The questions of Metaculus's data download, a row each: how they open, close and are answered."""

import ast
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any, NamedTuple

from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import MOST_TAGS, TEXT_LENGTH, format_instant, read_instant
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AnnulQuestion,
    AnyCommand,
    ChangeOutcomes,
    CloseQuestion,
    OpenContest,
    OpenQuestion,
    Range,
    ResolveQuestion,
)
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.replay.importing.source_items import Columns, NotCarried, cut_off, fitting_id, instant_of, label_of

PRESET = "peer-2024-03"
BOTS_COUNT = "Include Bots in Aggregates"
CONTINUOUS = {"numeric", "date", "discrete"}
BEYOND = {"below_lower_bound", "above_upper_bound"}  # names that the ledger has for them, too
WEIGHT = "Question Weight"
WITHOUT_ANSWER = {"annulled", "ambiguous"}
_OPTIONS = ("MC Options (All)", "MC Options (Current)", "MC Options")
_HISTORY = "MC Options History"
FUTURE_CHANGE = "a change of options in the future of the download: a newer download has what became of it"
LATE_REMOVAL = "a removal of options after the end of their question"
_WORDS = "words about the question"
COLUMNS_OF_QUESTIONS = Columns(
    used=(
        *("Question ID", "Question URL", "Question Title", "Post ID", "Default Project", "Default Project ID"),
        *("Categories", "Leaderboard Tags", "Label", "Question Type", *_OPTIONS, _HISTORY),
        *("Lower Bound", "Open Lower Bound", "Upper Bound", "Open Upper Bound", "Continuous Range"),
        *("Open Time", "CP Reveal Time", "Scheduled Close Time", "Actual Close Time"),
        *("Resolution", "Resolution Known Time", BOTS_COUNT, WEIGHT),
    ),
    ignored={
        "Post Curation Status": "each question with an opening counts; if it is not approved, it is named",
        "Post Published Time": "a question opens at its `Open Time`",
        "Description": _WORDS,
        "Resolution Criteria": _WORDS,
        "Fine Print": _WORDS,
        "Unit": _WORDS,
    },
    only={"Post Curation Status": ["approved"]},
)

Row = Mapping[str, str]


class OptionsChange(NamedTuple):
    """Options that are added or removed; instants in µs.

    at: when the change is recorded. counts_from: when it counts: an addition at the end of its grace period.
    """

    at: int
    counts_from: int
    added: tuple[str, ...]
    removed: tuple[str, ...]


class DownloadedQuestion(NamedTuple):
    """A question. Instants are texts; `closed` and `known` are None if they are not said. row: its other cells.

    outcomes: those that it opens with. options: all that it ever had, as forecasts give them. changes: of its outcomes.
    left_out: what of it is not carried over, or refused. changed_early: whether its options changed before it opened.
    """

    id: str
    kind: str
    contest: str
    outcomes: tuple[str, ...]
    range: Range | None
    opens: str
    closes: str
    reveals: str | None
    closed: str | None
    known: str | None
    row: Row
    options: tuple[str, ...] = ()
    changes: tuple[OptionsChange, ...] = ()
    left_out: tuple[NotCarried | Refused, ...] = ()
    changed_early: bool = False

    @property
    def opened_at(self) -> int:
        """Return when it opens, µs."""
        return read_instant(self.opens)

    @property
    def ends_at(self) -> int:
        """Return when forecasts end in any case, µs: at the close, or when the answer is known."""
        return min(read_instant(each) for each in (self.closes, self.closed, self.known) if each is not None)

    def openings(self, rules: str | None) -> Iterator[AnyCommand]:
        """Return the commands that open the contest and the question, and put it there."""
        name = fitting_id(f"metaculus contest {self.contest}")
        yield OpenContest(id=name, at=self.opens, contest=self.contest, rules=self.rules(rules or PRESET))
        kind: Any = self.kind
        yield OpenQuestion(
            id=fitting_id(f"metaculus open {self.id}"),
            at=self.opens,
            question=self.id,
            kind=kind,
            title=self.row["Question Title"][:TEXT_LENGTH],
            outcomes=self.outcomes or None,
            range=self.range,
            opens_at=self.opens,
            closes_at=self.closes,
            reveals_at=self.reveals,
            group=label_of(self.row.get("Post ID", "")) if self.row.get("Label") else None,
            tags=self.tags()[:MOST_TAGS] or None,
            url=self.row.get("Question URL") or None,
            source="Metaculus",
            ordered=False if kind == "multiple_choice" else None,
        )
        yield AddQuestion(
            id=fitting_id(f"metaculus add {self.id} to {self.contest}"),
            at=self.opens,
            contest=self.contest,
            question=self.id,
            weight=self.row.get(WEIGHT) or Decimal(1),
        )

    def without_early_end(self) -> "DownloadedQuestion":
        """Return it, without its close and its answer if one of them is before the opening, which is refused."""
        times = [("Actual Close Time", self.closed, 1), ("Resolution Known Time", self.known, 0)]
        for column, at, least in times if self.row["Resolution"] else times[:1]:
            if at is not None and read_instant(at) < self.opened_at + least:
                detail = f"the question opens at {self.opens} (`Open Time`); its close and its answer are not taken"
                remedy = f"correct `{column}` or `Open Time` in the download, and import it again"
                early = Refused("before_opening", column, self.row[column], detail, remedy=remedy)
                row = {**self.row, "Resolution": ""}
                return self._replace(closed=None, known=None, row=row, left_out=(early,))
        return self

    def rules(self, preset: str) -> str | RuleSet:
        """Return the rules of its contest: bots count as peers and in the crowd if the download says so."""
        if self.row.get(BOTS_COUNT) != "True" or preset not in PRESETS or PRESETS[preset].bots == "members":
            return preset
        return structs.replace(PRESETS[preset], name=f"{preset}, bots are members", bots="members")

    def tags(self) -> tuple[str, ...]:
        """Return its categories and leaderboard tags. Refuses: bad_source."""
        cells = [(name, self.row.get(name)) for name in ("Categories", "Leaderboard Tags")]
        said = [tag for name, cell in cells if cell for tag in read_options(cell, name)]
        return tuple(sorted({tag for each in said if (tag := label_of(each))}))

    def cut(self) -> Iterator[NotCarried]:
        """Yield what its row has and the ledger does not take. Refuses: bad_source."""
        yield from cut_off(TEXT_LENGTH, title=self.row["Question Title"])
        yield from (NotCarried(f"a tag beyond the first {MOST_TAGS}") for _ in self.tags()[MOST_TAGS:])

    def options_at(self, instant: int) -> set[str]:
        """Return the options that count at an instant, µs."""
        now = {*self.outcomes}
        for change in self.changes:
            if change.counts_from <= instant:
                now = (now - {*change.removed}) | {*change.added}
        return now

    def outcome_changes(self) -> Iterator[ChangeOutcomes]:
        """Return the commands that add options and remove them."""
        for change in self.changes:
            counts_from = format_instant(change.counts_from)
            yield ChangeOutcomes(
                id=fitting_id(f"metaculus options {self.id} {counts_from}"),
                at=format_instant(change.at),
                question=self.id,
                add=change.added or None,
                remove=change.removed or None,
                grace_ends_at=counts_from if change.added else None,
            )

    def closings(self) -> Iterator[AnyCommand]:
        """Return the command of an early close, unless the answer ends the question at that instant anyway."""
        if self.closed is None or read_instant(self.closed) >= read_instant(self.closes):
            return
        if self.known is None or read_instant(self.closed) < read_instant(self.known):
            yield CloseQuestion(id=fitting_id(f"metaculus close {self.id}"), at=self.closed, question=self.id)

    def answers(self) -> Iterator[AnyCommand]:
        """Return the command of the answer, if there is one. Refuses: bad_number, bad_instant, naive_instant."""
        answer, at = self.row["Resolution"], self.known or self.closed or self.closes
        if not answer:
            return
        if answer in WITHOUT_ANSWER:
            name = fitting_id(f"metaculus annul {self.id}")
            yield AnnulQuestion(id=name, at=at, question=self.id, reason=answer)
            return
        name = fitting_id(f"metaculus answer {answer} {self.id}")
        if self.range is None or answer in BEYOND:
            yield ResolveQuestion(id=name, at=at, question=self.id, outcome=answer)
        else:
            value = read_bound(answer, "Resolution", self.kind)
            yield ResolveQuestion(id=name, at=at, question=self.id, value=value)


def read_question(row: Row, points: int | None, now: int) -> DownloadedQuestion | NotCarried:
    """Return a question of a row, or why it is not carried over. Refuses: bad_source, bad_number, bad_instant.

    points: how many heights the cdf of its forecasts has, if there are forecasts. now: when the download was made, µs;
    changes of options that count from a later instant are left to a newer one.
    """
    kind = row["Question Type"]
    if kind not in {"binary", "multiple_choice", *CONTINUOUS}:
        return NotCarried(f"a question of the type {kind or 'unknown'}")
    if not row["Open Time"] or not row["Scheduled Close Time"]:
        return NotCarried("a question without an opening or a closing time")
    options: tuple[str, ...] = ()
    if kind == "multiple_choice":
        column = next((each for each in _OPTIONS if row.get(each)), _OPTIONS[0])
        options = read_options(row.get(column, ""), column)
    if kind == "discrete" and points is None:
        return NotCarried("a discrete question without forecasts: the download does not say how many values it has")
    opens, closes = (instant_of(row[column], column) for column in ("Open Time", "Scheduled Close Time"))
    reveals, closed, known = (
        instant_of(row[column], column) if row.get(column) else None
        for column in ("CP Reveal Time", "Actual Close Time", "Resolution Known Time")
    )
    if reveals is not None and not read_instant(opens) < read_instant(reveals) <= read_instant(closes):
        reveals = None  # it is never hidden, or always
    question = DownloadedQuestion(
        id=row["Question ID"],
        kind=kind,
        contest=unicodedata.normalize("NFC", row.get("Default Project", "")) or "metaculus",
        outcomes=options,
        range=_range(row, kind, points) if kind in CONTINUOUS else None,
        opens=opens,
        closes=closes,
        reveals=reveals,
        closed=closed,
        known=known,
        row=row,
        options=options,
    ).without_early_end()
    if row.get(_HISTORY):
        question = _with_changes(question, _history(row[_HISTORY]), now)
    list(question.answers())  # refuse what cannot be read before anything is recorded of the question
    question.tags()
    return question


def _history(text: str) -> list[tuple[int, tuple[str, ...]]]:
    """Return the options of a question with the instant from which it had them, µs; without an offset, it is in UTC.

    Refuses: bad_source, bad_instant.

    >>> _history("[('1970-01-01T00:00:00', ['a', 'other']), ('1970-01-01T00:00:01+00:00', ['other'])]")
    [(0, ('a', 'other')), (1000000, ('other',))]
    """
    history = []
    for entry in read_list(text, _HISTORY):
        if not (isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[0], str)):
            raise Refused("bad_source", _HISTORY, text[:80], "not a list of instants with options")
        try:
            since = instant_of(entry[0], _HISTORY)
        except Refused as refused:
            if refused.code != "naive_instant":
                raise
            since = instant_of(f"{entry[0]}+00:00", _HISTORY)
        history.append((read_instant(since, _HISTORY), read_options(repr(entry[1]), _HISTORY)))
    return history


def _with_changes(
    question: DownloadedQuestion, history: Sequence[tuple[int, tuple[str, ...]]], now: int
) -> DownloadedQuestion:
    """Return a question with the changes of its options while it was open. Refuses: bad_source.

    A download says when an added option began to count, not when it was added, and prints forecasts of the grace period
    without the option. So it is added in the last microsecond of that period: each forecast is as the download has it.
    """
    ends, current = question.ends_at, history[0][1] if history else question.outcomes
    opened_with, gone = current, set[str]()
    changes, left_out = list[OptionsChange](), list[NotCarried]()
    for since, options in history[1:]:
        added = tuple(option for option in options if option not in current)
        removed = tuple(option for option in current if option not in options)
        if (added and removed) or gone & {*added}:
            detail = "options are added and removed at once, or added again after they were removed"
            raise Refused("bad_source", _HISTORY, str(options), detail)
        if since <= question.opened_at:
            opened_with = options
        elif since > now:
            left_out.append(NotCarried(FUTURE_CHANGE))
        elif removed and since >= ends:
            left_out.append(NotCarried(LATE_REMOVAL))
        elif added or removed:
            changes.append(OptionsChange(min(since, ends) - 1 if added else since, since, added, removed))
        gone |= {*removed}
        current = options
    early = bool(history) and opened_with != history[0][1]
    return question._replace(
        outcomes=opened_with, changes=tuple(changes), left_out=(*question.left_out, *left_out), changed_early=early
    )


def _range(row: Row, kind: str, points: int | None) -> Range:
    """Return the range of a question. Refuses: bad_source, bad_number, bad_instant."""
    lower, upper = (read_bound(row.get(f"{side} Bound", ""), f"{side} Bound", kind) for side in ("Lower", "Upper"))
    locations = row.get("Continuous Range", "")
    zero = None
    if locations and kind == "numeric":
        zero = zero_point(locations, lower, upper)
    elif locations and kind == "date":
        zero = date_zero_point(locations, lower, upper)
    return Range(
        lower=lower,
        upper=upper,
        bins=points - 1 if kind == "discrete" and points is not None else None,
        open_lower=row.get("Open Lower Bound") == "True",
        open_upper=row.get("Open Upper Bound") == "True",
        zero_point=zero,
    )


# --- cells: lists as Python writes them, dates, and the scale of a range

LONGEST_LIST = 100_000  # characters of a list of options
_DIGITS = Context(prec=40)
_CLOSE = Decimal("1e-9")  # of the range: how well the scale that is found must give the locations that are said
DAY = 86_400  # s
_MOST_DAYS = 100_000  # that are tried as zero point
_NICE = Context(prec=9)  # digits of a zero point


def read_list(text: str, field: str) -> list[Any]:
    r"""Return a list as Python writes it; nothing in it is run. Refuses: bad_source.

    >>> read_list("['red, dark', \"blue's\"]", "MC Options (All)")
    ['red, dark', "blue's"]
    """
    try:
        if len(text) > LONGEST_LIST:
            raise ValueError
        items = ast.literal_eval(text)
        if not isinstance(items, list | tuple):
            raise TypeError
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Refused("bad_source", field, text, "not a list as Python writes it") from None
    return list(items)


def read_options(text: str, field: str) -> tuple[str, ...]:
    """Return the names of options. Refuses: bad_source."""
    options = read_list(text, field)
    if not all(isinstance(option, str) for option in options):
        raise Refused("bad_source", field, text, "not a list of names")
    return tuple(options)


def split_numbers(text: str) -> list[str]:
    """Return the items of a list of numbers as texts; None is kept.

    >>> split_numbers("[0.25, None, 0.75]")
    ['0.25', 'None', '0.75']
    """
    inner = text.strip("[]() ")
    return [item.strip() for item in inner.split(",")] if inner else []


def read_bound(text: str, field: str, kind: str) -> Decimal:
    """Return a bound or an answer: of a date, the seconds since 1970. Refuses: bad_number, bad_instant, naive_instant.

    >>> read_bound("2026-03-01", "Lower Bound", "date"), read_bound("1.5", "Lower Bound", "numeric")
    (Decimal('1772323200'), Decimal('1.5'))
    """
    if kind == "date":
        return Decimal(read_instant(instant_of(text, field), field)).scaleb(-6).normalize() + 0
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise Refused("bad_number", field, text)
    return number


def zero_point(locations: str, lower: Decimal, upper: Decimal) -> Decimal | None:
    """Return the zero point of a range with a logarithmic scale, or None if the scale is linear. Refuses: bad_source.

    locations: the points at which the cdf is given, equally far apart on the scale. On a logarithmic scale the middle m
    satisfies (m - lower) / (upper - lower) = 1 / (1 + sqrt(r)), with r = (upper - zero) / (lower - zero). A download
    prints these points as binary fractions; the zero point is rounded to nine digits, and must give every point again.
    Source: Metaculus's published code, `utils/the_math/formulas.py`, scaled and unscaled locations.

    >>> zero_point("[1.0, 10.0, 100.0]", Decimal(1), Decimal(100)), zero_point("[0, 5, 10]", Decimal(0), Decimal(10))
    (Decimal('0'), None)
    """
    try:
        points = [Decimal(item) for item in split_numbers(locations)]
    except InvalidOperation:
        raise Refused("bad_source", "Continuous Range", locations[:80], "not a list of numbers") from None
    if len(points) < 3 or len(points) % 2 == 0:
        return None
    width, middle = upper - lower, points[len(points) // 2]
    if abs(middle - lower - width / 2) <= _CLOSE * width:
        return None
    if not lower < middle < upper:
        raise Refused("bad_source", "Continuous Range", str(middle), "its middle is not between the bounds")
    zero = _zero_of(middle, lower, upper)
    for candidate in (Decimal(0), _NICE.plus(zero), zero):
        if not lower <= candidate <= upper and _gives(candidate, points, lower, upper):
            return candidate.normalize() + 0
    raise Refused("bad_source", "Continuous Range", str(middle), "the places are on no logarithmic scale")


def _zero_of(middle: Decimal, lower: Decimal, upper: Decimal) -> Decimal:
    """Return the zero point of a logarithmic scale whose middle this is; see `zero_point`."""
    exact = _DIGITS
    root = exact.subtract(exact.divide(upper - lower, middle - lower), Decimal(1))
    ratio = exact.multiply(root, root)
    return exact.divide(exact.subtract(exact.multiply(ratio, lower), upper), exact.subtract(ratio, Decimal(1)))


def _gives(zero: Decimal, points: list[Decimal], lower: Decimal, upper: Decimal) -> bool:
    """Return whether a zero point gives the points of a quarter, the middle and three quarters of the scale."""
    last = len(points) - 1
    some = (last // 4, last // 2, 3 * last // 4)
    return all(abs(_point(at, last, (zero, lower, upper)) - points[at]) <= _CLOSE * (upper - lower) for at in some)


def _point(at: int, last: int, scale: tuple[Decimal, Decimal, Decimal]) -> Decimal:
    """Return the point number `at` of `last` on a logarithmic scale: zero point, lower and upper end."""
    exact, (zero, lower, upper) = _DIGITS, scale
    ratio = exact.divide(upper - zero, lower - zero)
    power = exact.power(ratio, exact.divide(Decimal(at), Decimal(last)))
    return lower + (upper - lower) * exact.divide(power - 1, ratio - 1)


def _gives_days(zero: Decimal, points: list[Decimal], lower: Decimal, upper: Decimal) -> bool:
    """Return whether a zero point gives every point, each of which is known to a day."""
    last = len(points) - 1
    some = (last // 4, last // 2, 3 * last // 4, *range(last + 1))  # those that most zero points miss first
    return not lower <= zero <= upper and all(
        points[at] - 1 <= _point(at, last, (zero, lower, upper)) < points[at] + DAY + 1 for at in some
    )


def date_zero_point(locations: str, lower: Decimal, upper: Decimal) -> Decimal | None:
    """Return the zero point of a range of dates with a logarithmic scale, or None if it is linear. Refuses: bad_source.

    A download prints the points as dates, so that each is known to a day. The zero point is the beginning of a day,
    UTC, that gives every point again; of several, the one in the middle. See `zero_point`.

    >>> date_zero_point("['2026-01-01', '2026-01-06', '2026-01-11']", Decimal(1767225600), Decimal(1768089600))
    """
    points = [read_bound(item.strip("'\""), "Continuous Range", "date") for item in split_numbers(locations)]
    if len(points) < 3 or len(points) % 2 == 0:
        return None
    width, middle = upper - lower, points[len(points) // 2]
    if middle - lower <= width / 2 < middle - lower + DAY:
        return None
    if not lower < middle < upper - DAY:
        raise Refused("bad_source", "Continuous Range", str(middle), "its middle is not between the bounds")
    ends = [_zero_of(point, lower, upper) for point in (middle, middle + DAY)]
    days = range(int(min(ends) // DAY), int(max(ends) // DAY) + 2)
    if len(days) > _MOST_DAYS:
        raise Refused("bad_source", "Continuous Range", str(middle), "its middle gives no zero point")
    zeros = [zero for day in days if _gives_days(zero := Decimal(day * DAY), points, lower, upper)]
    if not zeros:
        raise Refused("bad_source", "Continuous Range", locations[:80], "the dates are on no logarithmic scale")
    return zeros[len(zeros) // 2]
