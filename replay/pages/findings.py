"""What a working paper lists: entries that ask for a second look, and what corrections moved."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import UNSET

from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.facts import from_log
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.incremental.refresh import IncrementalTables
from forecast_ledger.replay.reading.blocks import Number, Table
from forecast_ledger.replay.reading.board_notes import BOARDS
from forecast_ledger.replay.reading.event_text import OutcomeNames, event_type, origin, sentence
from forecast_ledger.replay.reading.log import Log, find_contest

DECIDED = "Who decided, and on what evidence"
Listed = Callable[..., list[Table]]  # a caption, columns, rows, types of event -> a table, the newest rows of many
HOUR = 3_600 * 10**6  # µs
MOST_AFTER_CLOSE = 50  # forecasts after the close that are listed
WORST = 10  # late entries that are listed
_ANSWERS = (events.QuestionResolved, events.QuestionAnnulled)
_MOVED = (events.QuestionRescheduled, events.QuestionClosed)
_FOLLOWS = (events.PositionSettled, events.PositionRefunded, events.TradesVoided, events.SettlementReversed)


@dataclass(slots=True)
class Lateness:
    """The entries of one type, or of one contest, that were late or ahead.

    furthest: how late the one is that is farthest from 0, µs. after_close: forecasts after the close of their question.
    """

    late: int = 0
    ahead: int = 0
    furthest: int = 0
    after_close: int = 0

    def count(self, recorded: Recorded, allowed: int) -> None:
        """Count an entry that is late or ahead."""
        late = lateness(recorded)
        self.late += late > allowed
        self.ahead += late < 0
        self.furthest = max(self.furthest, late, key=abs)

    def join(self, other: "Lateness") -> None:
        """Count the entries of another one, too."""
        self.late, self.ahead = self.late + other.late, self.ahead + other.ahead
        self.after_close += other.after_close
        self.furthest = max(self.furthest, other.furthest, key=abs)


@dataclass(slots=True)
class Revocation:
    """A revocation, the answer that it undid, and the next answer, None without one."""

    recorded: Recorded
    undone: Recorded
    again: Recorded | None = None


class Correction(NamedTuple):
    """Revocations and the new answers to their questions, from one log position to another, with nothing between."""

    first: int
    last: int
    questions: tuple[str, ...]


class MovedTime(NamedTuple):
    """An event that moved the times of a question, or closed it early; closed_at: its end before, µs."""

    recorded: Recorded
    closed_at: int


class About(NamedTuple):
    """A contest and its questions, about which events are listed."""

    contest: str
    questions: frozenset[str]

    def has(self, event: object) -> bool:
        """Return whether an event names the contest or, without a contest, one of its questions."""
        contest, question = subject_of(event)
        return contest == self.contest if contest else question in self.questions


def subject_of(event: object) -> tuple[str, str]:
    """Return the contest that an event names and, if it names none, the question; empty if there is none."""
    contest, question = (str(getattr(event, name, "") or "") for name in ("contest", "question"))
    return contest, "" if contest else question


def about_contest(facts: Facts, name: str) -> About:
    """Return a contest and its questions. Raises Refused (unknown_contest)."""
    return About(name, frozenset(facts.questions[code].question for code in find_contest(facts, name).entries))


@dataclass(slots=True)
class Findings:
    """The events that a working paper lists, of the whole log or, with `about`, of a contest.

    allowed: how late an entry may be, µs. events: how many there are; imported: how many have a time of receipt from
    elsewhere. late: how many were recorded longer after the instant that they claim than is allowed; worst: the
    latest of them, and of those that claim an instant after their recording (ahead), without forecasts after the close;
    by_type: both by type of event; by_subject: by the contest or, without one, the question that an event names.
    after_close: how many forecasts were recorded at or after the close of their
    question, which they claim to precede; last_after_close: those farthest from it, each after the close.
    exclusions, annulments, moves, revocations, corrections: in log order; moves are of the times of questions. asked:
    by who asked for them, how many events there are of each type.
    """

    allowed: int
    about: About | None = None
    events: int = 0
    imported: int = 0
    late: int = 0
    ahead: int = 0
    after_close: int = 0
    last_after_close: list[tuple[int, Recorded]] = field(default_factory=list)
    by_type: dict[str, Lateness] = field(default_factory=dict)
    by_subject: dict[tuple[str, str], Lateness] = field(default_factory=dict)
    worst: list[Recorded] = field(default_factory=list)
    exclusions: list[Recorded] = field(default_factory=list)
    annulments: list[Recorded] = field(default_factory=list)
    moves: list[MovedTime] = field(default_factory=list)
    revocations: list[Revocation] = field(default_factory=list)
    corrections: list[Correction] = field(default_factory=list)
    asked: dict[str, Counter[str]] = field(default_factory=dict)
    names: OutcomeNames = field(default_factory=OutcomeNames)
    _closes_at: dict[str, int] = field(default_factory=dict)  # by question, as far as the log is read
    _ended_at: int = 0  # the end of the question whose times were moved last, before that
    _answers: dict[str, Recorded] = field(default_factory=dict)  # by question
    _revoked: dict[str, Revocation] = field(default_factory=dict)  # by question without a new answer
    _running: Correction | None = None  # the last of the corrections, for as long as it grows

    def add(self, page: Sequence[Recorded]) -> None:
        """Read the next page of the log."""
        listed = page if self.about is None else [each for each in page if self.about.has(each.event)]
        self.events += len(listed)
        self.imported += sum(recorded.imported is True for recorded in listed)
        apart = [recorded for recorded in listed if lateness(recorded) > self.allowed or lateness(recorded) < 0]
        self.ahead += sum(lateness(recorded) < 0 for recorded in apart)
        self.late += sum(lateness(recorded) > self.allowed for recorded in apart)
        for recorded in apart:
            self._count(recorded)
        after = [*self.last_after_close]
        for recorded in page:
            self.names.learn(recorded.event)
            late = self._after_close(recorded)
            self._follow_answers(recorded)
            if self.about is not None and not self.about.has(recorded.event):
                continue
            if late is not None:
                self.after_close += 1
                self._subject(recorded).after_close += 1
                after.append((late, recorded))
            if isinstance(recorded.event, _MOVED):
                self.moves.append(MovedTime(recorded, self._ended_at))
            if recorded.provenance is not UNSET and recorded.provenance.by:
                self.asked.setdefault(recorded.provenance.by, Counter())[event_type(recorded.event)] += 1
            if isinstance(recorded.event, events.ParticipantExcluded):
                self.exclusions.append(recorded)
            elif isinstance(recorded.event, events.QuestionAnnulled):
                self.annulments.append(recorded)
        self.last_after_close = nlargest(MOST_AFTER_CLOSE, after, key=lambda each: (each[0], -each[1].position))
        closed = {each.position for _, each in after}
        others = [each for each in apart if each.position not in closed]
        self.worst = nlargest(WORST, [*self.worst, *others], key=lambda each: (abs(lateness(each)), -each.position))

    def _count(self, recorded: Recorded) -> None:
        """Count an entry that is late or ahead with those of its type."""
        self.by_type.setdefault(event_type(recorded.event), Lateness()).count(recorded, self.allowed)
        self._subject(recorded).count(recorded, self.allowed)

    def _subject(self, recorded: Recorded) -> Lateness:
        """Return the counts of the contest or question that an event names."""
        return self.by_subject.setdefault(subject_of(recorded.event), Lateness())

    def by_contest(self, facts: Facts) -> dict[str, Lateness]:
        """Return the counts by contest; an entry about a question counts in each contest that has it."""
        totals: dict[str, Lateness] = {}
        for name in sorted(facts.contests) if self.about is None else [self.about.contest]:
            questions = about_contest(facts, name).questions
            for (contest, question), counts in self.by_subject.items():
                if contest == name or (not contest and question in questions):
                    totals.setdefault(name, Lateness()).join(counts)
        return totals

    def _after_close(self, recorded: Recorded) -> int | None:
        """Follow the close of each question; return how long after it a forecast was recorded, µs, else None."""
        event = recorded.event
        match event:
            case events.QuestionOpened():
                self._closes_at[event.question] = event.closes_at
            case events.QuestionRescheduled():
                self._ended_at = self._closes_at[event.question]
                if event.closes_at is not None:
                    self._closes_at[event.question] = event.closes_at
            case events.QuestionClosed():
                self._ended_at = self._closes_at[event.question]
                self._closes_at[event.question] = event.at
            case events.ForecastMade() if recorded.recorded_at >= self._closes_at[event.question]:
                return recorded.recorded_at - self._closes_at[event.question]
        return None

    def select(self) -> None:
        """Leave out the revocations and corrections of other questions, once all of the log is read."""
        if (about := self.about) is not None:
            self.revocations = [each for each in self.revocations if about.has(each.recorded.event)]
            self.corrections = [each for each in self.corrections if about.questions.intersection(each.questions)]

    def answer(self, question: str) -> Recorded | None:
        """Return the answer or annulment of a question that is not revoked."""
        return None if question in self._revoked else self._answers.get(question)

    def answers(self) -> list[Recorded]:
        """Return the answers and annulments that are not revoked, in log order."""
        standing = [recorded for question, recorded in self._answers.items() if question not in self._revoked]
        if self.about is not None:
            standing = [recorded for recorded in standing if self.about.has(recorded.event)]
        return sorted(standing, key=attrgetter("position"))

    def _follow_answers(self, recorded: Recorded) -> None:
        """Keep answers and revocations, and join those that follow each other."""
        event, run = recorded.event, self._running
        if isinstance(event, events.ResolutionRevoked):
            revocation = Revocation(recorded, self._answers[event.question])
            self.revocations.append(revocation)
            self._revoked[event.question] = revocation
            before = run or Correction(recorded.position, 0, ())
            questions = tuple(dict.fromkeys((*before.questions, event.question)))
            self._run(Correction(before.first, recorded.position, questions))
        elif isinstance(event, _ANSWERS):
            self._answers[event.question] = recorded
            if (revoked := self._revoked.pop(event.question, None)) is not None:
                revoked.again = recorded
            belongs = run is not None and event.question in run.questions
            self._run(run._replace(last=recorded.position) if run is not None and belongs else None)
        elif run is not None:
            self._run(run._replace(last=recorded.position) if isinstance(event, _FOLLOWS) else None)

    def _run(self, correction: Correction | None) -> None:
        """Begin, lengthen or end a correction."""
        if correction is not None:
            self.corrections[len(self.corrections) - (self._running is not None) :] = [correction]
        self._running = correction


def collect(source: Log, until: int, allowed: int, contest: str | None = None) -> tuple[Facts, Findings]:
    """Read a log up to a log position, and no row after it: it may be damaged. allowed: how late an entry may be, µs.

    contest: only events about it are listed; the log is then read twice. Raises, first that applies: Refused
    (unknown_contest), Unavailable, Corrupt.
    """
    about = None
    if contest is not None:
        whole = source._replace(as_of=until)
        about = about_contest(whole.facts(whole.cut()), contest)
    findings = Findings(allowed, about)

    def read(pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        for page in pages:
            findings.add(page)
            source.on_progress(page[-1].position)
            yield page

    with source.opened() as store:
        facts = from_log.facts(read(log.unseal_pages(log.pages_up_to(store.pages(), until))))
    findings.select()
    return facts, findings


def answer_text(recorded: Recorded, findings: Findings) -> str:
    """Return an answer in words, with its log position."""
    event: Any = recorded.event
    words = "annulled"
    if isinstance(event, events.QuestionResolved):
        words = sentence(event, findings.names.of).removeprefix(f"{event.question}: ").rpartition(", known at ")[0]
    return f"{words} (#{recorded.position})"


def lateness(recorded: Recorded) -> int:
    """Return how long after the instant that it claims an event was recorded, µs."""
    return recorded.recorded_at - recorded.event.at


_MOVES = 2  # columns of which one must differ: a score can change without consequence
Row = dict[str, Any]
_Boards = dict[tuple[str, str], dict[str, Row]]  # table and contest -> participant -> row


class Move(NamedTuple):
    """A row of a board that a correction moved; None if the participant is not on the board."""

    table: str
    contest: str
    participant: str
    before: Row | None
    after: Row | None


def moves(source: Log, corrections: Sequence[Correction]) -> Iterator[list[Move]]:
    """Yield the rows that each correction moved: from the log as of just before its first event to that as of its last.

    A row moves if its rank, its prize or, for trading, its total differs. corrections: in log order. The log
    is read once. Raises Unavailable, Corrupt.
    """
    if not corrections:
        return
    grows, boards, before = IncrementalTables(BOARDS), _Boards(), _Boards()
    starts, ends = {each.first - 1 for each in corrections}, {each.last for each in corrections}
    with source.opened() as store:
        pages = log.unseal_pages(log.pages_up_to(store.pages(), corrections[-1].last))
        for part in _parts(pages, sorted(starts | ends)):
            grows.add(part)
            source.on_progress(part[-1].position)
            position = part[-1].position
            if position not in starts and position not in ends:
                continue
            boards = boards | _changed(grows)
            if position in ends:
                yield _moved(before, boards)
            before = boards


def _parts(pages: Iterator[Sequence[Recorded]], cuts: Sequence[int]) -> Iterator[Sequence[Recorded]]:
    """Yield the pages in parts that end at these log positions."""
    for page in pages:
        first = page[0].position
        ends = [cut - first + 1 for cut in cuts if first <= cut < page[-1].position]
        for begin, end in zip([0, *ends], [*ends, len(page)], strict=True):
            yield page[begin:end]


def _changed(grows: IncrementalTables) -> _Boards:
    """Return the boards that changed since the last time."""
    changed = _Boards()
    for update in grows.updates():
        if update.table.name in BOARDS:
            rows = [*update.table.rows()]
            for contest in {str(key[0]) for key in update.keys} | {row["contest"] for row in rows}:
                rows_of_contest = {row["participant"]: row for row in rows if row["contest"] == contest}
                changed[update.table.name, contest] = rows_of_contest
    grows.forget()
    return changed


def _moved(before: _Boards, after: _Boards) -> list[Move]:
    board_moves = []
    for (table, contest), new in sorted(after.items()):
        old = before.get((table, contest), {})
        if old is new:
            continue
        for participant in [*new, *(name for name in old if name not in new)]:
            rows = old.get(participant), new.get(participant)
            if len({_standing(row, table) for row in rows}) > 1:
                board_moves.append(Move(table, contest, participant, *rows))
    return board_moves


def _standing(row: Row | None, table: str) -> tuple[Any, ...] | None:
    return None if row is None else tuple(row[name] for name in BOARDS[table][:_MOVES])


def decided_by(findings: Findings, listed: Listed) -> tuple[list[str], list[tuple[str, str]], list[Table]]:
    """Return the words, facts and tables of the section. Answers are listed only if one of them has evidence.

    Nobody has checked the names: the section of what was not checked says so.
    """
    answers = findings.answers()
    without = [(each, said) for each in answers for said in [origin(each)] if not said.evidence]
    rows = [
        [who, f"{counts.total():,}", ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items()))]
        for who, counts in sorted(findings.asked.items())
    ]
    unsaid = findings.events - sum(counts.total() for counts in findings.asked.values())
    words = [f"Entries that do not say who asked for them: {unsaid:,} of {findings.events:,}."]
    words.append(f"Answers in force without evidence: {len(without):,} of {len(answers):,}.")
    sheets = [Table(["asked by", Number("events"), "types"], rows, "Who asked for what")] * bool(rows)
    if len(without) < len(answers):
        columns = ["log position", "question", "answer", "by", "reason"]
        rows = [[str(each.position), _question(each.event), answer_text(each, findings), said.by, said.reason]
                for each, said in without]  # fmt: skip
        sheets += listed("Answers without evidence", columns, rows, "question_resolved", "question_annulled")
    return words, [], sheets


def _question(answer: Any) -> str:
    return str(answer.question)
