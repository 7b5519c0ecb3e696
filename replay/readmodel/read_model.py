"""Reading a read model: rows of its tables, as of a position of the log that the reader asks for."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from threading import Lock
from typing import Any, Self

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Behind, Unavailable
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.model.log import START, Checkpoint
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.readmodel.part_store import TRACKING
from forecast_ledger.replay.readmodel.stored_model import StoredModel

TIMEOUT = 5.0  # s to wait for a position
_POLL = 0.02  # s between looks at how far a read model is


@checked()
class ReadModel:
    """The tables that a runner keeps up to date, to be read: an SQLite file, or a schema of a PostgreSQL database.

    Any thread may call it; each call that runs at the same time has a connection of its own, and connections are used
    again. A forked process opens its own.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import ReadModel, Runner, commands, open_ledger
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline", pool=100)
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/log.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     with Runner(f"{folder}/log.db", f"{folder}/tables.db") as runner:
    ...         refreshed = runner.refresh()
    ...     with ReadModel.open(f"{folder}/tables.db") as tables:
    ...         [row] = tables.rows("contests", contest="spring", at_least=receipt.last)
    >>> row["pool"], row["currency"]
    ('100.00', '')
    """

    def __init__(self, location: str | PathLike[str]) -> None:
        """location: as in `open`, which also looks whether there is a read model."""
        self._location = fspath(location)
        self._process, self._lock = os.getpid(), Lock()
        self._idle: list[StoredModel] = []
        self._is_closed = False

    @classmethod
    def open(cls, location: str | PathLike[str]) -> Self:
        """Open the read model at a path, or at `postgresql://USER@HOST/DATABASE?schema=NAME`.

        Raises Unavailable: it cannot be opened, or is not a read model. A PostgreSQL schema may be one that its runner
        has not filled yet, whose tables are all empty until then.
        """
        model = cls(location)
        with model._one():
            return model

    def rows(
        self, table: str, *, at_least: int = 0, timeout: int | float = TIMEOUT, **equal: str | int | None
    ) -> list[dict[str, Any]]:
        """Return the rows of a table that have given values in some columns, as `Table.rows` has them, and in the order
        of the table's key; those of a board in its own order.

        equal: the columns and their values, as published; None for a value that is missing. at_least: wait until the
        tables have the events up to this log position, such as `Receipt.last` of a command whose effect is to be seen.
        timeout: s to wait for it at most. All rows are of one state of the read model.

        Raises, first that applies: ValueError (no such table or column, or one that the read model does not keep),
        Unavailable (the read model cannot be read, or has not reached the position in time, which its meaning says).
        """
        _check(table, equal)
        deadline = time.monotonic() + timeout
        with self._one() as model:
            while (rows := _rows(model, table, equal, at_least)) is None:
                if time.monotonic() >= deadline:
                    wrong = f"the read model has not reached log position {at_least} in {timeout:g} s"
                    raise Behind(f"{model.location}: {wrong}; {Behind.remedy}")
                time.sleep(_POLL)
        return rows

    def reached(self) -> Checkpoint:
        """Return the checkpoint that the tables are as of. Raises Unavailable."""
        with self._one() as model, model.reading([TRACKING]):
            tracking = model.tracking()
            return START if tracking is None else tracking.reached

    def close(self) -> None:
        """Close the connections; those in use are closed by whoever uses them."""
        with self._lock:
            self._is_closed, idle, self._idle = True, self._idle, []
        if self._process == os.getpid():
            for model in idle:
                model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _one(self) -> Iterator[StoredModel]:
        """Use a connection; after an error it is not used again."""
        if self._process != os.getpid():
            self._process, self._lock, self._idle = os.getpid(), Lock(), []
        with self._lock:
            if self._is_closed:
                raise Unavailable(f"{self._location}: the read model is closed")
            model = self._idle.pop() if self._idle else None
        model = model or StoredModel(self._location, read_only=True)
        try:
            yield model
        except BaseException:
            model.close()
            raise
        with self._lock:
            if not self._is_closed:
                self._idle.append(model)
                return
        model.close()


def _check(table: str, equal: Mapping[str, str | int | None]) -> None:
    """Raise ValueError unless there is such a table, with these columns of these types."""
    if table not in CATALOGUE:
        raise ValueError(f"there is no table {table!r}; there is {listed(table, CATALOGUE)}")
    kinds = {column.name: column.kind for column in CATALOGUE[table].columns}
    for name, value in equal.items():
        if name not in kinds:
            raise ValueError(f"{table} has no column {name!r}; it has {listed(name, kinds)}")
        kind = int if kinds[name] == "count" else str
        if value is not None and type(value) is not kind:
            raise ValueError(f"{table}.{name} is compared with {kind.__name__}, not with {value!r}")


def _rows(
    model: StoredModel, table: str, equal: Mapping[str, str | int | None], at_least: int
) -> list[dict[str, Any]] | None:
    """Return the rows, all of one state; None if it has not reached the position. Raises ValueError, Unavailable."""
    names = [column.name for column in CATALOGUE[table].columns]
    with model.reading([TRACKING, table]) as stored:
        position = model.position()
        if position < at_least:
            return None
        if position and not model.keeps(table):
            raise ValueError(
                f"{model.location}: {table} is not in this read model; `follow --with` lists those that can be"
            )
        return [{name: row[name] for name in names} for row in stored.selected(table, equal)] if position else []
