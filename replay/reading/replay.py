"""Replay a log up to a cut: its projections, and each score as a row with its forecast and the answer."""

import logging
from collections import deque
from collections.abc import Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.hints import listed, nearest
from forecast_ledger.ledger.core.values import Instant, read_instant
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.model.task_ids import HORIZON, LOCATION, task_values
from forecast_ledger.ledger.storing import instrumentation
from forecast_ledger.ledger.storing.sealed_log import UNREAD
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.threads import can_start
from forecast_ledger.projections.boards.contest_groups import ScoredGroup
from forecast_ledger.projections.core.arrays import Int64Array, run_starts
from forecast_ledger.projections.core.columns import Ids, Values, ids, join_values, none_where_negative, plain_values
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.columns import CHANCE, Facts, ForecastPage
from forecast_ledger.projections.facts.from_log import facts_after, file_page, status_of
from forecast_ledger.projections.facts.from_segments import FRAME_UNREAD
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import QUANTILES, Answer
from forecast_ledger.projections.tables.analysis import Analysis, CachedResults
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, Projections
from forecast_ledger.projections.tables.schemas import schema
from forecast_ledger.projections.tables.scores import names_in_parts
from forecast_ledger.replay.engines.engines import ENGINES, Choice, scored
from forecast_ledger.replay.engines.pool import check_guard
from forecast_ledger.replay.reading.board_notes import every_seal_note
from forecast_ledger.replay.reading.log import AsOf, Cut, Log, LogParts, OnProgress, Trust, WithSegments, end_of_date
from forecast_ledger.replay.reading.studies import Clusters, leave_one_out, study, without

_SCORED_FORECASTS = schema("""
    each score, with its question, the forecast that counted last, and the answer

    contest*
    question*
    participant*
    probability   probability  what the forecast gave to the answer; empty for quantiles, payouts and the consensus
    outcome       text         the answer that counts on the board; on a range, the index of its bin; empty for payouts
    value         text         the answer on a range
    score         points       as in the table `scores`
    coverage      share        as in the table `scores`
    made_at       instant      when the forecast was made that stood last in scored time, by the clock of the rules;
                               empty for the consensus, which nobody made
    log_position  count        its log position, as in the table `forecasts`; empty for reference forecasters
    weight        points       the weight of the question in the contest
    kind          id           the kind of the question
    group         id           its group
    category      id           its category
    tags          text         further words about it, with a comma and a space between them
    location      id           the task id `location` of a hub's question; empty for other questions
    horizon       id           its task id `horizon`
""")
_UNIT = 10**11 // CHANCE  # of published probabilities in one of the facts
_WEIGHT = 10**3  # points in 1e-9 of a weight of 1e-6
MANY = 4_096  # events; of fewer, threads that wait for each other build the tables later than one


def scored_forecasts(projections: Projections) -> Table:
    """Return a row for each row of the table `scores`, in its order."""
    pages = [_group(projections, group) for group in projections.scored_groups]
    columns = _SCORED_FORECASTS.columns
    empty: list[Values] = [ids([]) if column.kind == "id" else [] for column in columns]
    values = tuple(join_values(column) for column in zip(empty, *pages, strict=True))
    return Table("scored_forecasts", 1, columns, values).sorted_by(*_SCORED_FORECASTS.key)


def _group(analysis: Analysis, group: ScoredGroup) -> list[Values]:
    """Return the columns of some contests."""
    questions, rows = group.questions, group.rows
    scored_questions = [answer.question for answer in questions.answers]
    tasks = [task_values(question.question) or {} for question in scored_questions]
    settled = status_of(analysis.facts, questions.code, questions.as_of)
    names, on = names_in_parts(analysis.facts), rows.question
    at, position, probability = map(none_where_negative, _last(analysis, group))
    return [
        _named([group.names[contest] for contest in questions.contest.tolist()], on),
        Ids(questions.code[on], names["question"]),
        Ids(rows.participant, names["participant"]),
        probability,
        _taken([*map(_outcome, questions.answers)], on),
        _taken(settled.values, on),
        time_weighted.points(group.rules, questions, rows).published(),
        time_weighted.coverages(questions, rows).published(),
        at,
        position,
        questions.weight[on] * _WEIGHT,
        *(
            _named([getattr(question, name) for question in scored_questions], on)
            for name in ("kind", "group", "category")
        ),
        _taken([", ".join(question.tags) for question in scored_questions], on),
        *(_named([task.get(name, "") for task in tasks], on) for name in (LOCATION, HORIZON)),
    ]


def _outcome(answer: Answer) -> str:
    """Return the outcome of an answer as the table `questions` has it."""
    names = answer.question.outcomes
    return "" if answer.outcome < 0 else names[answer.outcome] if names else str(answer.outcome)


def _last(analysis: Analysis, group: ScoredGroup) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return made_at, log_position and probability of the forecast that stood last in scored time; -1 for none."""
    questions, rows = group.questions, group.rows
    at, position, probability = np.full((3, len(rows.question)), -1)
    people = len(names_in_parts(analysis.facts)["participant"])
    known = rows.question * people + rows.participant
    every = standing_in_chunks(analysis.facts, group.contests, questions, analysis.chunk)
    for first, chunk_questions, forecasts, standing in every:
        if not len(standing.row):
            continue
        starts = run_starts(standing.question, standing.participant)
        last = standing.of(np.append(starts[1:], len(standing.row)) - 1)
        index = np.searchsorted(known, (first + last.question) * people + last.participant)
        at[index], position[index] = forecasts.at[last.row], forecasts.position[last.row]
        named = np.flatnonzero(
            (chunk_questions.form != QUANTILES)[last.question] & (chunk_questions.outcome[last.question] >= 0)
        )
        outcome, bins = (column[last.question[named]] for column in (chunk_questions.outcome, chunk_questions.bins))
        probability[index[named]] = forecasts.chance(last.row[named], outcome, bins) * _UNIT
    position[rows.participant >= len(analysis.facts.participant_codes.codes)] = -1
    return at, position, probability


def _named(texts: list[str], index: Int64Array) -> Ids:
    """Return a column of ids: the text at each index."""
    column = ids(texts)
    return Ids(column.codes[index], column.labels)


def _taken(texts: list[str], index: Int64Array) -> list[Any]:
    return [texts[number] for number in index.tolist()]


CLOSE = "close"


def standing_at(projections: Projections, at: Instant) -> Table:
    """Return the rows of the table `forecasts` of what stands at an instant, or when each question closes.

    at: a plain date is the last instant of that day, UTC. Raises Refused: not an instant.
    """
    table = projections.table("forecasts")
    begin, end = (plain_values(table.numbers(column)) for column in ("from_at", "to_at"))
    if at == CLOSE:
        ended = plain_values(table.numbers("ended_by"))
        chosen = [start is not None and why is None for start, why in zip(begin, ended, strict=True)]
    else:
        instant = read_instant(end_of_date(at) if isinstance(at, str) else at, "at")
        spans = zip(begin, end, strict=True)
        chosen = [start is not None and start <= instant < stop for start, stop in spans]
    return table.rows_at(np.flatnonzero(chosen))


_logger = logging.getLogger(__name__)


@runtime_checkable
class Readable(Protocol):
    """An object that returns its events page by page, with digests checked: an open Ledger."""

    @property
    def name(self) -> str:
        """The name of the ledger in its store."""

    def read(self) -> Iterator[Sequence[Recorded]]:
        """Return all events in log order."""


@checked("at")
@dataclass(frozen=True, slots=True)
class Replay:
    """The projections of a log, with the log position and digest up to which they were computed.

    >>> from forecast_ledger import Replay, open_ledger, replay
    >>> with open_ledger(":memory:") as ledger:
    ...     season: Replay = replay(ledger)
    >>> season.checkpoint.position, len(season.table("leaderboard"))
    (0, 0)
    """

    checkpoint: Checkpoint
    projections: Projections

    def table(self, name: str, **where: str) -> Table:
        """Return the table of a projection, or its rows that have these ids in these columns.

        Raises KeyError, first that applies: the catalogue has no such projection; the table has no such column of ids;
        neither the table nor the log has such an id. The message lists those that there are, the nearest first.

        >>> from forecast_ledger import open_ledger, replay
        >>> with open_ledger(":memory:") as ledger:
        ...     replay(ledger).table("leaderboard", contest="spring")
        Traceback (most recent call last):
        KeyError: "leaderboard has no contest 'spring'; it has none"
        """
        with gc_pause.paused():
            table = self.projections.table(name)
        for column, label in where.items():
            known = {*table.ids(column).labels, *names_in_parts(self.projections.facts).get(column, ())}
            if label not in known:
                raise KeyError(f"{name} has no {column} {label!r}; it has {listed(str(label), known)}")
            table = table.only(column, label)
        return table

    def scored_forecasts(self) -> Table:
        """Return every score with its question, the forecast that counted last, and the answer, in one table.

        It is made for a data frame, and not in the catalogue: exports have the tables that it joins. Each of its
        `columns` says what it means.

        >>> from pathlib import Path
        >>> from forecast_ledger import append, open_ledger, replay
        >>> with open_ledger(":memory:") as ledger, Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
        ...     counts = append(ledger, file)
        ...     frame = replay(ledger).scored_forecasts()
        >>> last = next(row for row in frame if row["participant"] == "B")
        >>> last["question"], last["probability"], last["score"]
        ('gdp-next-year', '0.48', '1.459385616')
        """
        return scored_forecasts(self.projections)

    def standing_at(self, at: Instant) -> Table:
        """Return what stands at an instant, of all questions: rows of the table `forecasts`, on which `scores` rest.

        at: an instant in claimed time; a plain date is the last instant of that day, UTC; "close" is the close of each
        question. Events recorded after the cut of the replay are left out. Raises Refused: not an instant.

        >>> from pathlib import Path
        >>> from forecast_ledger import append, open_ledger, replay
        >>> with open_ledger(":memory:") as ledger, Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
        ...     counts = append(ledger, file)
        ...     season = replay(ledger)
        >>> said = season.standing_at("2021-07-21T00:00:00Z").only("question", "olympics-2021").only("outcome", "yes")
        >>> [(row["participant"], row["probability"]) for row in said]
        [('A', '0.1'), ('B', '0.9'), ('C', '0.25')]
        """
        return standing_at(self.projections, at)

    def study(
        self,
        table: str,
        *,
        contest: str | None = None,
        by: str | None = None,
        cluster: Clusters | None = None,
    ) -> Table:
        """Return a table such as `pairwise` for each value of a detail of the questions, or with other clusters.

        by: group, category, tag, location or horizon; for each of its values, the table is as if the contest had only
        the questions with this value, and has the columns `by` and `name` after the contest. A question with several
        tags is in several parts. cluster: what is drawn together, in intervals, pairs and calibration, in place of what
        the rules name: the questions of a `group`, `category`, `location` or `horizon`, or with the same value of
        a tag NAME=VALUE, `tag:NAME`; `question` draws each alone; two of these in a list draw by both; a dict has the
        cluster of questions by id. A question without a cluster is drawn alone.

        The seed follows from what is scored on these questions, and from their clusters. Raises, first that applies:
        ValueError (no such study, detail, contest or question; the
        message lists those that there are; clusters in a table without draws, or against the rules), Refused as of the
        table.

        >>> from pathlib import Path
        >>> from forecast_ledger import append, open_ledger, replay
        >>> with open_ledger(":memory:") as ledger, Path("data/question-groups/commands.jsonl").open("rb") as file:
        ...     counts = append(ledger, file)
        ...     season = replay(ledger)
        >>> for row in season.study("pairwise", by="category", cluster="question"):
        ...     print(row["name"], row["participant"], row["other"], row["questions"], row["difference"])
        weather bo ada 2 0.060833333
        """
        return study(self.projections, table, contest, by, cluster)

    def without(self, *names: str, before_close: str | None = None) -> "Replay":
        """Return a replay of the same log as if somebody had made no forecast, or some questions were in no contest.

        names: of participants; `bots` stands for all who are enrolled as such; `group=NAME`, and in the same way
        category, tag, location and horizon, for the questions that have it. before_close: such as 30m, 24h or 7d;
        what was forecast or withdrawn later than that before the close of a question is left out, too, by the clock of
        the contest's rules. Consensus and peers are those of the forecasts that are left. Accounts of trading contests
        and prizes that were paid stay as they are. Raises, first that applies: ValueError (no such participant or
        detail, nobody is a bot; not a duration).

        >>> from pathlib import Path
        >>> from forecast_ledger import append, open_ledger, replay
        >>> with open_ledger(":memory:") as ledger, Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
        ...     counts = append(ledger, file)
        ...     season = replay(ledger)
        >>> season.without("bot").table("leaderboard", contest="plain")["participant"]
        ['B', 'A', 'C']
        """
        return Replay(self.checkpoint, without(self.projections, names, before_close))

    def leave_one_out(self, contest: str, table: str = "leaderboard") -> dict[str, Table]:
        """Return the board of a contest without each of its participants in turn, by who is left out, best first.

        table: another table of the contest. Raises Refused: unknown_contest; KeyError: no such table.

        >>> from pathlib import Path
        >>> from forecast_ledger import append, open_ledger, replay
        >>> with open_ledger(":memory:") as ledger, Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
        ...     counts = append(ledger, file)
        ...     boards = replay(ledger).leave_one_out("plain")
        >>> {who: board["participant"] for who, board in boards.items()}
        {'B': ['A', 'bot', 'C'], 'A': ['B', 'bot', 'C'], 'bot': ['B', 'A', 'C'], 'C': ['B', 'A', 'bot']}
        """
        return dict(leave_one_out(self.projections, contest, table))

    def __getattr__(self, name: str) -> Table:
        """Return the table of this name, as `table` does: `season.leaderboard`."""
        if name not in CATALOGUE:
            near = nearest(name, CATALOGUE)
            raise AttributeError(f"a replay has no table {name!r}" + f"; the nearest is {near!r}" * bool(near))
        return self.table(name)

    def __dir__(self) -> list[str]:
        """Return the names of tables too, so that an editor or a notebook completes them."""
        return [*object.__dir__(self), *CATALOGUE]

    def __repr__(self) -> str:
        """Say up to where the log was read, and what it has."""
        facts, position = self.projections.facts, self.checkpoint.position
        counted = f"{len(facts.contests):,} contests, {len(facts.questions):,} questions"
        return f"<Replay up to log position {position:,}: {counted}, {len(CATALOGUE)} tables; see dir()>"

    def notes(self) -> list[str]:
        """Return what a reader of its boards should know, as commands say it on stderr: which answers changed after
        a board was sealed that rests on them, and what that board would be now. No table says so.

        >>> from forecast_ledger import open_ledger, replay
        >>> with open_ledger(":memory:") as ledger:
        ...     replay(ledger).notes()
        []
        """
        return every_seal_note(self.projections)


@checked("name", "as_of")
def replay(  # noqa: PLR0913 - what has a default is named
    log: str | PathLike[str] | Readable,
    name: str = "main",
    as_of: AsOf = None,
    on_progress: OnProgress = lambda _: None,
    *,
    segments: str | PathLike[str] | None = None,
    trust: Trust = "rows",
    engine: Choice | None = None,
    tables: Collection[str] = BUILT,
    memory: int | None = None,
) -> Replay:
    """Read a log up to a cut, check its digests, and prepare its projections.

    log: the location of a store, of which `name` selects a ledger; it can be `WithSegments`; or an open ledger, which
    stays open. as_of: see `Cut`.
    segments: a folder that has the beginning of the log of a store; only the rest is read from the store.
    trust: of segments. With `rows`, each row is rebuilt and its digest checked, by several processes if there are many,
    but not with the engine `local` or memory. With `files`, the SHA-256 of each file is the one that the folder states:
    enough for a folder that you sealed yourself. Its columns are used as they are, if each event fits those before it.
    engine: reads and scores some questions at a time, before this returns: in this thread (`local`), in one for each
    processor (`threads`), in one of these as the number of forecasts suggests (`auto`), in a process for each processor
    (`processes`), or in those of Apache Spark (`spark`). By default all forecasts are read at once, and scored when a
    table needs it. Processes need a guard, `if __name__ == "__main__":`, because each imports the main module.
    tables: for which an engine computes what they need; the fewer, the less is scored and sent. Others can be asked for
    too, and then have all forecasts read.
    memory: bytes for forecasts and large tables, about. An engine, by default `auto`, scores as many questions together
    as fit, and `Projections.parts` computes large tables in parts. Forecasts that are not read from segments have to
    fit, and with the trust `rows` the columns of a segment, too.
    Raises, first that applies: ValueError (no such trust, or nothing that it could be of; no such engine), Refused
    (as_of is not an instant, or beyond the log; too little memory), RuntimeError (processes without that guard),
    Unavailable (also if the segments are of another log, or end after it), Corrupt.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import append, open_ledger, replay
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     season = replay(f"{folder}/season.db")
    >>> for row in season.table("leaderboard", contest="plain"):
    ...     print(row["rank"], row["participant"], row["prize"])
    1 B 779.30
    2 A 108.00
    3 bot 67.90
    4 C 44.80
    """
    begun, cut = instrumentation.now_ns(), Cut(as_of, on_progress)
    if segments is not None or trust != "rows":
        log = _with_segments(log, segments, trust)
    _check_engine(engine)
    whole = engine is None and memory is None
    several = memory is None and engine != "local"
    with gc_pause.paused():
        with _read(log, name, cut, UNREAD if whole else UNREAD | FRAME_UNREAD, side_by_side=several) as parts:
            read = parts.facts() if whole else parts.frame(memory)
        head = cut.reached()
        projections = Projections(read) if isinstance(read, Facts) else scored(read, engine or "auto", tables, memory)
    name = name if isinstance(log, str | PathLike) else log.name
    return _replayed(name, head, projections, begun)


class ReplayedPage(NamedTuple):
    """A page of rows, the events in them, and the columns of its forecasts, if it has any.

    questions, participants: those of the log up to here, by code.
    """

    rows: Sequence[bytes]
    events: Sequence[Recorded]
    forecasts: ForecastPage | None
    questions: Sequence[str]
    participants: Sequence[str]


def replay_of_rows(store: StoredLog, cut: Cut) -> Generator[ReplayedPage, None, Replay]:
    """Yield the rows of a store up to a cut, page by page, with the events in them; return the replay of these events.

    So the log is read once by whoever writes its rows, too. Raises as `replay` does.
    """
    begun, facts, forecasts = instrumentation.now_ns(), Facts(), list[ForecastPage]()
    for rows, events in cut.rows(store.pages()):
        if (filed := file_page(facts, events)) is not None:
            forecasts.append(filed)
        yield ReplayedPage(rows, events, filed, facts.question_codes.labels, facts.participant_codes.labels)
    return _replayed(store.name, cut.reached(), Projections(facts_after(facts, forecasts, ())), begun)


def _replayed(name: str, head: Checkpoint, projections: Projections, begun: int) -> Replay:
    instrumentation.log_event(_logger, logging.INFO, "replayed", lambda: {"ledger": name, **head._asdict()}, begun)
    return Replay(head, projections)


def _check_engine(engine: Choice | None) -> None:
    """Raise ValueError if there is no such engine; end a process that would start processes without end."""
    if engine not in {None, "auto", *ENGINES}:
        raise ValueError(f"no engine named {engine!r}: give {', '.join(ENGINES)} or auto")
    if engine == "processes":
        check_guard()  # before the log is read again


def _with_segments(
    log: str | PathLike[str] | Readable, segments: str | PathLike[str] | None, trust: Trust
) -> WithSegments:
    if not isinstance(log, str | PathLike):
        raise ValueError(f"trust {trust!r}: an open ledger has no segments; give the location of its store")
    return WithSegments(log, segments, trust)


@contextmanager
def _read(
    log: str | PathLike[str] | Readable, name: str, cut: Cut, without: Collection[str], *, side_by_side: bool
) -> Iterator[LogParts]:
    if isinstance(log, str | PathLike):
        with Log(log, name).parts(cut, without, side_by_side=side_by_side) as parts:
            yield parts
    else:
        yield LogParts(iter(()), cut.pages(log.read()))


class TableSummary(NamedTuple):
    """The version of a projection, the number of rows of its table, and the table's digest."""

    version: int
    rows: int
    digest: str


def summarize_tables(
    facts: Facts, cached: CachedResults | None = None, names: Collection[str] = BUILT
) -> dict[str, TableSummary]:
    """Build every projection except those that are built only by name, in the catalogue's order.

    cached: results that need not be computed again. names: of the projections, if not of all those.

    If there are many events, a second thread builds the tables that depend on scores: the two groups are independent,
    and NumPy releases the interpreter lock. The thread ends with the call.
    """
    if facts.as_of < MANY or not can_start():
        every = Projections(facts, cached=cached and cached.copy())
        with gc_pause.paused():
            return {name: _summarize(every, name) for name in names}
    with gc_pause.paused(), ThreadPoolExecutor(1) as aside:
        scores, others = (Projections(facts, cached=cached and cached.copy()) for _ in range(2))
        second = [name for name in names if CATALOGUE[name].division in {"scores", "boards"}]
        beside = {name: aside.submit(_summarize, scores, name) for name in second}
        try:
            here = {name: _summarize(others, name) for name in names if name not in beside}
            return {name: beside[name].result() if name in beside else here[name] for name in names}
        finally:
            aside.shutdown(wait=False, cancel_futures=True)


def summarize_parts(projections: Projections, names: Collection[str]) -> dict[str, TableSummary]:
    """Compute projections one after the other, of which only a part has to be in memory at a time."""
    return {name: _summarize_parts(projections, name) for name in names}


def _summarize_parts(projections: Projections, name: str) -> TableSummary:
    with gc_pause.paused():
        parts = projections.parts(name)
        deque(parts, maxlen=0)
        return TableSummary(CATALOGUE[name].version, parts.rows, parts.digest)


def _summarize(projections: Projections, name: str) -> TableSummary:
    table = projections.table(name)
    return TableSummary(table.version, len(table), table.digest())
