"""The target data of a hub: the values that were observed, as of each of their versions, and the answers they give.

Source: hubverse, Documentation, "Target (observed) data" (docs.hubverse.io): an oracle value is what a model would have
given had it known the answer; for a pmf 1 at the category that happened, for a cdf 1 from the answer on.
"""

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model.commands import AnyCommand, ResolveQuestion, RevokeResolution
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.ledger.model.task_ids import HORIZON
from forecast_ledger.replay.importing.hub_config import HubConfig, as_number, same_number, spelled, spellings
from forecast_ledger.replay.importing.hub_questions import VALUES, HubQuestion
from forecast_ledger.replay.importing.source_files import (
    MISSING,
    TABLE_ENDINGS,
    SourceFiles,
    check_columns,
    location_in,
    read_table,
)
from forecast_ledger.replay.importing.source_items import (
    Columns,
    NotCarried,
    SourceItem,
    Unread,
    fitting_id,
    instant_of,
    start_of_day,
)

AS_OF = "as_of"
SNAPSHOT = "a dated snapshot of target data: the latest values count, and their earlier versions are not recorded"
LATEST = "target data that are not read: the answers are those of the uppermost latest-* files"
BESIDE = "target data that are not read: the answers are those of target-data/oracle-output and target-data/time-series"
NO_TARGET_DATA = (
    "target data in a form that is not read: for answers, give them as target-data/oracle-output.csv, with a column "
    "for each task id, and oracle_value"
)
NO_ROWS = (
    "a file of target data without a row: it answers nothing, and no answer is taken back; if it had rows, get it again"
)
ORACLE, SERIES = "target-data/oracle-output", "target-data/time-series"
_FOLDER, _LATEST = "target-data/", "latest-"
_VALUE = {ORACLE: "oracle_value", SERIES: "observation"}
_LABELS = ("output_type", "output_type_id")
_DATES = ("target_end_date", "target_date", "time_idx", "date")  # of target data, if the configuration does not say it
NO_TASK_ID = "that is no task id, so that no answer depends on it"
_SYNONYMS = {"truth_date": _DATES[:2], "value": ("observation",)}  # of columns in files of the latest values


class Observed(NamedTuple):
    """A row of target data: the version ("" if it has none), the output type id, the value, and its location."""

    as_of: str
    id: str
    value: str
    location: InputLocation


class _Observations:
    """The rows of one file, by task ids, and by date if that is none of these. labelled: each row says its output type.

    A model's date is then that of its round and horizon.
    """

    def __init__(self, kind: str, columns: Sequence[str], *, labelled: bool, dated: bool) -> None:
        self.kind, self.columns, self.labelled, self.dated = kind, columns, labelled, dated
        self.rows: dict[tuple[str, ...], list[Observed]] = {}

    def of(self, question: HubQuestion) -> list[Observed]:
        """Return the rows that are about a question, oldest version first."""
        key = tuple(question.row.get(column, MISSING) for column in self.columns)
        if self.dated:
            key = (*key, question.target_date)
        types = [question.output_type] * self.labelled
        if self.labelled and question.output_type in VALUES:
            types += VALUES  # the value that was observed is the same for each of them
        keys = [(*key, each) for each in types] or [key]
        observed = next((rows for each in keys if (rows := self.rows.get(each))), [])
        return sorted(observed, key=lambda row: (row.as_of == "", row.as_of))


class HubTruth:
    """All target data of a hub. is_there: whether there are files of them. is_cut: whether some cannot be read."""

    def __init__(self, files: SourceFiles, config: HubConfig) -> None:
        self._tables: dict[tuple[str, str, tuple[str, ...], bool], _Observations] = {}
        self.faults: list[SourceItem] = []
        self.is_cut = False
        self._config = config
        keys = {
            key for each in config.rounds for task in each.model_tasks for key in _target_keys(task.target_metadata)
        }
        kinds = target_files(files.names)
        self.is_there = bool(kinds)
        for name, kind in kinds.items():
            begun, is_told = len(self.faults), False
            try:
                is_told = self._read(files, name, kind, keys)
            except Refused as refused:
                self.faults.append((location_in(name, 0), refused))
            if not is_told and len(self.faults) == begun:
                self.faults.append((location_in(name, 1), NotCarried(NO_ROWS)))
            if not is_told or any(isinstance(item, Refused) for _, item in self.faults[begun:]):
                self.is_cut = True

    def commands(self, question: HubQuestion) -> Iterator[tuple[str, InputLocation, AnyCommand | Refused]]:
        """Return each version of the answer to a question with its instant; one that replaces another revokes it.

        A version whose rows differ is refused and left out; nothing counts if it is the last one.
        """
        before, at = None, question.closes_at
        day = question.row.get(self._config.date_column or "target_end_date", question.target_date)
        rows = self._versions(question)
        disputed: dict[str, Refused] = {}
        for row, after in pairwise(rows):
            if row.as_of == after.as_of and row.as_of not in disputed and not _agree(question, row, after):
                detail = f"{row.location.where()} says otherwise for the same task ids and version; neither counts"
                remedy = "take the row that is wrong out, or ask the hub which one that is"
                disputed[row.as_of] = Refused("bad_source", "value", after.value, detail, remedy=remedy)
                yield at, after.location, disputed[row.as_of]
        if rows and rows[-1].as_of in disputed:
            return  # what counts now is not known
        for row in rows:
            if row.as_of in disputed:
                continue
            try:
                answer = _answer(question, row.id, row.value)
                since = instant_of(row.as_of, AS_OF) if row.as_of else _day_after(day)
            except Refused as refused:
                yield at, row.location, refused
                continue
            if answer == before:
                continue
            at = max(at, since or at, key=read_instant)
            name = f"{row.value if question.range else row.id} {row.as_of}".strip()
            if before is not None:
                revoke = fitting_id(f"hub revoke before {name} {question.id}")
                reason = f"revised as of {row.as_of}" if row.as_of else "revised"
                yield at, row.location, RevokeResolution(id=revoke, at=at, question=question.id, reason=reason)
            resolve = fitting_id(f"hub answer {name} {question.id}")
            fields = {"value": answer} if isinstance(answer, Decimal) else {"outcome": answer}
            yield at, row.location, ResolveQuestion(id=resolve, at=at, question=question.id, **fields)
            before = answer

    def _versions(self, question: HubQuestion) -> list[Observed]:
        """Return the rows to believe: the oracle's, after a time series with versions if the oracle has none."""
        oracle = [row for table in self._tables.values() if table.kind == ORACLE for row in table.of(question)]
        oracle = _happened(question, oracle)
        if oracle and oracle[0].as_of:
            return oracle
        numeric = question.output_type in VALUES
        series = [
            row for table in self._tables.values() if table.kind == SERIES and numeric for row in table.of(question)
        ]
        series = [row for row in series if row.value != MISSING]
        return [*(row for row in series if row.as_of), *oracle] if oracle else series

    def _read(self, files: SourceFiles, name: str, kind: str, target_keys: set[str]) -> bool:
        """Read a file; return whether it has rows, and its columns say what they are about.

        Raises Refused: it cannot be read, or lacks a column.
        """
        value, is_latest = _VALUE[kind], _is_latest(name)
        columns, rows = read_table(files, name, [])
        if kind == ORACLE and value not in columns:  # some hubs write it as in their time series
            columns = [value if column == _VALUE[SERIES] else column for column in columns]
        check_columns(name, columns, [] if is_latest else [value])
        if is_latest:
            columns = self._renamed(columns)
            if lacking := self._lacking(columns, target_keys):
                said = f"files of the latest values without a column {lacking}, which a question is told by"
                remedy = (
                    "give the values as target-data/time-series.csv, with a column for each task id, and observation"
                )
                self.faults.append((location_in(name, 1), NotCarried(f"{said}; {remedy}")))
                return False
        keys = tuple(column for column in self._config.task_ids() if column in columns)
        labelled = kind == ORACLE and all(label in columns for label in _LABELS)
        date = next((each for each in (self._config.date_column, *_DATES) if each in columns and each not in keys), "")
        if reason := self._not_told(columns, date, target_keys if kind == SERIES else None, labelled=labelled):
            self.faults.append((location_in(name, 0), NotCarried(reason)))
            return False
        table = _Observations(kind, keys, labelled=labelled, dated=bool(date))
        table = self._tables.setdefault((kind, name, keys, labelled), table)
        indices = [columns.index(key) for key in (*keys, *[date] * bool(date), *_LABELS[:1] * labelled)]
        at_value, at_version = columns.index(value), columns.index(AS_OF) if AS_OF in columns else None
        at_id = columns.index(_LABELS[1]) if labelled else None
        known = [
            (columns.index(key), values, spellings(values)) for key in keys if (values := self._values_in_tasks(key))
        ]
        read, unread = (
            {*keys, date, value, AS_OF, *_LABELS * labelled} - {""},
            Unread(Columns((), {}), is_not=NO_TASK_ID),
        )
        others, has_rows = [at for at, column in enumerate(columns) if column not in read], False
        for line, cells in rows:
            if isinstance(cells, Refused):
                self.faults.append((location_in(name, line), cells))
                continue
            has_rows = True
            plain = [*cells]
            for at, _, as_spelled in known:
                plain[at] = as_spelled[cells[at]]
            if any(plain[at] not in values for at, values, _ in known):
                continue  # of a location or date that no task asks for
            self.faults += (
                unread.of(location_in(name, line), {columns[at]: cells[at] for at in others}) if others else ()
            )
            version = "" if at_version is None else cells[at_version]
            row = Observed(
                version, MISSING if at_id is None else cells[at_id], cells[at_value], location_in(name, line)
            )
            kept = table.rows.setdefault(tuple([plain[index] for index in indices]), [])
            if labelled or not kept or (kept[-1].value, kept[-1].as_of) != (row.value, row.as_of):
                kept.append(row)
        return has_rows

    def _not_told(self, columns: Sequence[str], date: str, series_by: set[str] | None, *, labelled: bool) -> str:
        """Return why the rows of a file do not say what they are about; "" if they do.

        date: the column of dates, unless it is a task id. series_by: of a time series, the keys of the targets.
        """
        types = {output for each in self._config.rounds for task in each.model_tasks for output in task.output_type}
        if series_by is None and not (labelled or types <= {*VALUES}):
            return "oracle output without output_type and output_type_id, in a hub of categories or steps"
        if series_by is not None and not series_by <= {*columns} and self._several_targets():
            return "a time series without the column that names the target, in a hub of several targets"
        dates = {self._config.date_column, *_DATES[:2]} & {*self._config.task_ids()}
        if series_by is not None and dates and {*columns}.isdisjoint((self._config.date_column, *_DATES)):
            return f"a time series without the column {min(dates)}"
        if date and not self._steps_ahead():
            return (
                f"target data by the column {date}, which is no task id, in a hub that does not say the steps of rounds"
            )
        return ""

    def _renamed(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of a file of the latest values under the names that a time series has for them."""
        known = {*self._config.task_ids(), *_VALUE.values()}
        renamed = []
        for column in columns:
            names = [name for name in _SYNONYMS.get(column, ()) if name in known and name not in columns]
            renamed.append(next(iter(names), _DATES[-1] if column == "truth_date" else column))
        return renamed

    def _lacking(self, columns: Sequence[str], target_keys: set[str]) -> str:
        """Return the first column that a file lacks, and without which rows do not say what they are about, if any."""
        rounds = {each.round_id for each in self._config.rounds}
        told = {*rounds, HORIZON, *_DATES, self._config.date_column, *(() if self._several_targets() else target_keys)}
        needed = [*(task_id for task_id in self._config.task_ids() if task_id not in told), _VALUE[SERIES]]
        if not {*columns} & {self._config.date_column, *_DATES}:
            needed.append(self._config.date_column or _DATES[0])
        return next((column for column in needed if column not in columns), "")

    def _values_in_tasks(self, key: str) -> set[str]:
        """Return the values of a task id in all tasks; empty if one of them takes any value."""
        value_sets = [
            task.values[key] for each in self._config.rounds for task in each.model_tasks if key in task.values
        ]
        return {value for values in value_sets for value in values} if all(value_sets) else set()

    def _steps_ahead(self) -> bool:
        """Return whether the date of some target follows from its round and horizon."""
        tasks = [task for each in self._config.rounds for task in each.model_tasks if HORIZON in task.task_ids]
        return any(target.is_step_ahead for task in tasks for target in task.target_metadata)

    def _several_targets(self) -> bool:
        numeric = {
            target.target_id
            for each in self._config.rounds
            for task in each.model_tasks
            if {*VALUES} & {*task.output_type}
            for target in task.target_metadata
        }
        return len(numeric) > 1


def _target_keys(targets: Sequence[object]) -> Iterator[str]:
    for target in targets:
        yield from getattr(target, "target_keys", None) or ()


def _happened(question: HubQuestion, rows: list[Observed]) -> list[Observed]:
    """Return one row for each version of an oracle: of a pmf or cdf, that of the answer."""
    if question.output_type in VALUES:
        return [row for row in rows if row.value != MISSING]
    by_version: dict[str, list[Observed]] = {}
    for row in rows:
        by_version.setdefault(row.as_of, []).append(row)
    chosen = []
    for versions in by_version.values():
        ones = [row for row in versions if as_number(row.value) == 1]
        if ones and question.output_type == "pmf":
            chosen += ones
        elif ones:
            chosen.append(min(ones, key=lambda row: (as_number(row.id) or Decimal(0), row.location.line)))
        elif question.output_type == "cdf" and versions:
            chosen.append(versions[-1]._replace(id="beyond"))
    return chosen


def _agree(question: HubQuestion, first: Observed, second: Observed) -> bool:
    """Return whether two rows say the same of a question."""
    if question.output_type in VALUES:
        return same_number(first.value, second.value)
    return same_number(first.id, second.id)


def _answer(question: HubQuestion, named: str, value: str) -> Decimal | str:
    """Return the outcome or the value of an answer. Refuses: bad_number.

    The oracle of a cdf says only between which two steps the answer lies: the upper one stands for it, and a step more
    than the last, or one less than the first, for an answer beyond them.
    """
    if question.range is None:
        return spelled(named, question.ids)
    if question.output_type in VALUES:
        number = as_number(value)
        if number is None:
            raise Refused("bad_number", "value", value)
        return number
    steps = sorted(question.numbers)
    step = as_number(named)
    if step is None:
        return 2 * steps[-1] - steps[-2]
    return 2 * steps[0] - steps[1] if step == steps[0] else step


def _day_after(day: str) -> str | None:
    """Return the beginning of the day after a date; None if the text is not a date."""
    try:
        return start_of_day(day, "date", 1)
    except Refused:
        return None


def target_files(names: Collection[str]) -> dict[str, str]:
    """Return the files of a hub that are read as target data, and the kind of each.

    A hub without a time series and oracle output may have its latest values in files such as `latest-cases.csv`. If
    several have one name, those in the uppermost folder count: the folders below have the sources of these.

    >>> target_files(["target-data/time-series.csv", "target-data/latest-cases.csv"])
    {'target-data/time-series.csv': 'target-data/time-series'}
    >>> target_files(["target-data/latest-cases.csv", "target-data/who/latest-cases.csv", "target-data/notes.csv"])
    {'target-data/latest-cases.csv': 'target-data/time-series'}
    """
    usual = {name: kind for kind in (SERIES, ORACLE) for name in names if _is_of(kind, name)}
    latest = sorted((name for name in names if _is_latest(name)), key=lambda name: (name.count("/"), name))
    depths = {name.rpartition("/")[2]: name.count("/") for name in reversed(latest)}
    return usual or {name: SERIES for name in latest if name.count("/") == depths[name.rpartition("/")[2]]}


def unread_target_files(names: Collection[str]) -> Iterator[tuple[str, NotCarried]]:
    """Yield the tables of target data that are not read, and why.

    >>> for name in ("time-series", "latest-cases", "cases"):
    ...     unread = unread_target_files([f"target-data/{name}.csv", "target-data/b.csv"])
    ...     print([left.reason[:39] for _, left in unread])
    ['target data that are not read: the answ']
    ['target data that are not read: the answ']
    ['target data in a form that is not read:', 'target data in a form that is not read:']
    """
    read = target_files(names)
    beside = LATEST if any(map(_is_latest, read)) else BESIDE if read else NO_TARGET_DATA
    for name in names:
        if name.startswith(_FOLDER) and name.endswith(TABLE_ENDINGS) and name not in read:
            yield name, NotCarried(SNAPSHOT if read and "/snapshots/" in name else beside)


def _is_of(kind: str, name: str) -> bool:
    return name.startswith((f"{kind}.", f"{kind}/")) and name.endswith(TABLE_ENDINGS)


def _is_latest(name: str) -> bool:
    return name.startswith(_FOLDER) and name.rpartition("/")[2].startswith(_LATEST) and name.endswith(TABLE_ENDINGS)
