"""An export as one SQLite file, for queries, search and datasette."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.columns import (
    FLOATS,
    Column,
    Ids,
    Values,
    all_missing,
    plain_values,
    printed_values,
)
from forecast_ledger.projections.core.number_texts import instant_characters, lines
from forecast_ledger.replay.files.formats import (
    FOREIGN_KEYS,
    ExportTable,
    describe_columns,
    dictionary_table,
    nearest_floats,
)
from forecast_ledger.replay.files.manifest import Complete, Manifest, ManifestEntry
from forecast_ledger.replay.readmodel.part_store import sql_type
from forecast_ledger.replay.readmodel.sqlite_statements import NULL, create_indexes, create_table, insert_values

if TYPE_CHECKING:
    from sqlite_utils import Database

_PAGE_SIZE = 4_096  # bytes; explicit, so that the file does not depend on the library's default


class SqlView(NamedTuple):
    """A view for a common query. tables: the tables that it needs."""

    meaning: str
    tables: frozenset[str]
    query: str


VIEWS = {
    "current_leaderboard": SqlView(
        "the boards with the titles of their contests: ranked participants, best first",
        frozenset({"leaderboard"}),
        """
        SELECT contest, title, rank, participant, score, coverage, take, prize, currency, sealed_at, score_real
        FROM leaderboard JOIN contests USING (contest) WHERE rank IS NOT NULL ORDER BY contest, rank, participant
        """,
    ),
    "latest_forecasts": SqlView(
        "the last forecast of each participant on each question that stood, as it was made, and what ended it",
        frozenset({"forecasts"}),
        """
        SELECT question, title, state, answer AS outcome, participant, made_at, from_at, to_at, ended_by, log_position,
        (
            SELECT json_group_object(name, json(number)) FROM (
                SELECT coalesce(nullif(outcome, ''), level) AS name, coalesce(probability, value) AS number
                FROM forecasts AS said WHERE said.question = made.question AND said.participant = made.participant
                AND said.log_position = made.log_position ORDER BY said.number
            )
        ) AS forecast
        FROM (
            SELECT *, max(log_position) FROM forecasts WHERE from_at IS NOT NULL GROUP BY question, participant
        ) AS made
        JOIN (SELECT question, title, state, outcome AS answer FROM questions) USING (question)
        ORDER BY question, participant
        """,
    ),
    "scores_by_question": SqlView(
        "the scores with the titles and answers of their questions",
        frozenset({"scores"}),
        """
        SELECT contest, question, title, outcome, value, participant, score, coverage, score_real
        FROM scores JOIN questions USING (question) ORDER BY contest, question, score_real DESC, participant
        """,
    ),
    "current_arena_leaderboard": SqlView(
        "the trading boards with the titles of their contests, largest profit first",
        frozenset({"arena_leaderboard"}),
        """
        SELECT contest, title, rank, participant, family, "release", total, profit, return_percent, brier, win_rate,
               profit_real
        FROM arena_leaderboard JOIN contests USING (contest) ORDER BY contest, rank, participant
        """,
    ),
}


def write_database(path: Path, sheets: Iterable[ExportTable], complete: Complete) -> tuple[Manifest, list[ExportTable]]:
    """Write a new database, the manifest last, and return this and its tables.

    complete: called when all tables are written. Raises Refused (a count with more than 64 bits), OSError (the file
    cannot be written).
    """
    from sqlite_utils import Database  # noqa: PLC0415 - late: it imports pandas where there is one

    done, parts = list[ExportTable](), dict[str, ManifestEntry]()
    database = Database(path)
    try:
        database.conn.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        database.conn.execute("PRAGMA synchronous = OFF")  # safe: the file gets its name only when it is complete
        with database.atomic():
            for sheet in sheets:
                parts[sheet.name] = _table(database.conn, sheet)
                done.append(sheet.without_rows())
                del sheet
            last = describe_columns(done, [twin for sheet in done for twin in _float_columns(sheet)])
            parts[last.name] = _table(database.conn, last)
            _add_search_and_views(database)
            manifest = complete(parts)
            database.table("manifest").insert({"manifest": manifest.encoded().decode()})
    except OverflowError as error:
        detail = f"a count is too large for SQLite: {error}"
        raise Refused("out_of_range", "export", None, detail, remedy="export as csv or jsonl") from None
    except sqlite3.OperationalError as error:
        raise OSError(str(error)) from None
    finally:
        database.close()
    return manifest, [*done, last]


def changed_tables(database: sqlite3.Connection, sheets: Iterable[ExportTable], manifest: Manifest) -> Iterator[str]:
    """Return the tables of an export that differ from those computed from its log.

    sheets: the computed tables. A table of another version is not compared; the data dictionary is compared with the
    digest in the manifest.
    """
    for sheet in sheets:
        part, joined = manifest.tables[sheet.name], _joined(sheet)
        if part.version == sheet.version:
            names = [name for column in sheet.columns for name, _ in _types(column, sheet.floats)]
            there = database.execute(f'SELECT * FROM "{sheet.name}" ORDER BY rowid')  # noqa: S608 - as the export names it
            computed = chain.from_iterable(zip(*columns, strict=True) for columns in _columns(sheet, joined))
            same = all(row == other for row, other in zip_longest(there, computed, fillvalue=()))
            if not same or names != [name for name, *_ in there.description] or part.digest != sheet.chunks.digest:
                yield sheet.name
    rows = database.execute("SELECT * FROM data_dictionary ORDER BY rowid").fetchall()
    if dictionary_table(rows).digest() != manifest.tables["data_dictionary"].digest:
        yield "data_dictionary"


def _table(connection: sqlite3.Connection, sheet: ExportTable) -> ManifestEntry:
    """Create and fill a table, with its key, its foreign keys, and an index for each column that it is joined by."""
    joined = _joined(sheet)
    types = [each for column in sheet.columns for each in _types(column, sheet.floats)]
    connection.execute(create_table(sheet.name, types, sheet.key, dict(_references(sheet)), rowid=True))
    insert_values(connection, sheet.name, len(types), map(_row_by_row, _columns(sheet, joined, NULL)))
    for statement in create_indexes(sheet.name, (name for name in joined if name != sheet.key[0])).values():
        connection.execute(statement)
    return ManifestEntry(sheet.chunks.rows, sheet.chunks.digest, sheet.version)


def _joined(sheet: ExportTable) -> list[str]:
    """Return the columns that a table is joined by: they have an index, and NULL where they are empty."""
    return [name for name, *_ in sheet.columns if sheet.name != FOREIGN_KEYS.get(name, (sheet.name,))[0]]


def _references(sheet: ExportTable) -> Iterator[tuple[str, tuple[str, str]]]:
    """Return the columns that refer to another table, each with that table and column.

    The events refer to none: they are written first, and the other tables refer to them.
    """
    if sheet.name != "events":
        yield from ((name, FOREIGN_KEYS[name]) for name in _joined(sheet))


def _types(column: Column, floats: bool) -> list[tuple[str, str]]:
    """Return the name and type of the column, and of the float column that is beside each decimal.

    floats: whether the column itself has floats, too; views and queries find the other one all the same.
    """
    if column.kind not in FLOATS:
        return [(column.name, sql_type(column))]
    return [(column.name, "REAL" if floats else sql_type(column)), (f"{column.name}_real", "REAL")]


def _float_columns(sheet: ExportTable) -> Iterator[tuple[str, Column]]:
    for column in sheet.columns:
        if column.kind in FLOATS:
            meaning = f"{column.name} as a float, which is not exact: {column.meaning}"
            yield sheet.name, Column(f"{column.name}_real", "real", meaning)


def _columns(sheet: ExportTable, joined: Sequence[str], null: float | None = None) -> Iterator[list[list[Any]]]:
    """Yield the columns as they are stored, some rows at a time. null: in place of what is missing; see `NULL`."""
    for chunk in sheet.chunks:
        named = zip(sheet.columns, chunk.values, strict=True)
        filled = {column.name for column, values in named if isinstance(values, Ids) and not _has_empty(values)}
        for page in chunk.pages():
            columns = list[list[Any]]()
            for column, values in zip(page.columns, page.values, strict=True):
                if all_missing(values):
                    columns += [[null] * len(page)] * len(_types(column, floats=False))
                    continue
                stored = _stored(values, column.kind, floats=sheet.floats)
                if column.name in joined and column.name not in filled:
                    stored = [[value or null for value in each] for each in stored]
                elif isinstance(values, list) and null is not None:
                    stored = [[null if value is None else value for value in each] for each in stored]
                columns += stored
            yield columns
        del chunk  # before the next one is read


def _has_empty(values: Ids) -> bool:
    """Return whether a row has no id."""
    return "" in values.labels and bool((values.codes == values.labels.index("")).any())


def _row_by_row(columns: list[list[Any]]) -> list[Any]:
    """Return the values of the columns row after row."""
    values = [None] * (len(columns) * len(columns[0]))
    for index, column in enumerate(columns):
        values[index :: len(columns)] = column
    return values


def _stored(values: Values, kind: str, *, floats: bool) -> list[list[Any]]:
    """Return a column as it is stored, and if it has decimals, its float column."""
    if kind == "instant":
        return [_sortable(values)]
    printed = printed_values(values, kind)
    if kind in FLOATS:
        near = nearest_floats(values, kind, printed)
        return [near if floats else printed, near]
    return [printed]


def _sortable(instants: Values) -> list[Any]:
    """Return the instants with six decimals, so that the texts sort like the instants."""
    if isinstance(instants, np.ndarray):
        return lines(instant_characters(instants, fractions=True))
    plain = plain_values(instants)
    distinct = [*{*plain} - {None}]
    texts: dict[int | None, str | None] = {None: None}
    texts |= zip(distinct, _sortable(int64_array(distinct)), strict=True)
    return [*map(texts.__getitem__, plain)]


def _add_search_and_views(database: "Database") -> None:
    database.table("questions").enable_fts(["title", "group", "category", "tags", "source"])
    there = frozenset(database.table_names())
    for name, view in VIEWS.items():
        if view.tables <= there:
            database.create_view(name, dedent(view.query).strip())


def datasette_metadata(manifest: Manifest, database: str, described: Iterable[ExportTable]) -> bytes:
    """Return the `metadata.json` of datasette for a database of this name: the meanings of its tables and columns."""
    tables: dict[str, Any] = {
        sheet.name: {
            "description": sheet.meaning,
            "columns": {
                column.name: column.meaning for column in (*sheet.columns, *(twin for _, twin in _float_columns(sheet)))
            },
        }
        for sheet in described
    }
    tables |= {name: {"description": view.meaning} for name, view in VIEWS.items() if view.tables <= tables.keys()}
    end = f"as of log position {manifest.log_position}, digest {manifest.log_digest}"
    description = "; ".join([f"Ledger {manifest.ledger!r} {end}", *manifest.notes])
    contents = {
        "title": "Forecast Ledger",
        "description": description,
        "databases": {database: {"description": description, "tables": tables}},
    }
    return msgspec.json.format(msgspec.json.encode(contents), indent=2) + b"\n"
