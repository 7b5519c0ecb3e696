"""The files of a source: a folder, a zip, or one file, and the rows of tables, CSV or Parquet, as texts by column.

They are only read; nothing is unpacked.
"""

import os
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.extras import pyarrow
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.ledger.core.hints import in_list
from forecast_ledger.ledger.core.parquet_files import REMEDY, TooLargeError, read_batches
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.mapping.csv_reader import read_records

MOST_FILES = 200_000
MOST_BYTES = 2**34  # of a source, unpacked
FREE_BYTES, MOST_RATIO = 2**26, 200  # a zip, and a file in it, may unpack to this, or to this many times its size
_UNPACK = "unpack it and give the folder, if you trust it"
_LINK = stat.S_IFLNK
_POINTER = b"version https://git-lfs.github.com/"  # what Git LFS leaves in the place of a large file


class SourceFiles:
    """The files of a source by their paths inside it, with `/`; sorted.

    links: paths that are links, which are not followed. partial: those files of which a part cannot be read, or has
    another form than its format: the readers note them, and what such a file lacks is not gone.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     written = Path(folder, "a.csv").write_text("1")
    ...     SourceFiles(folder).names
    ['a.csv']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Find the files. Raises, first that applies: OSError (no such path), Refused (bad_source)."""
        self.path = Path(path)
        self.links: list[str] = []
        self.partial: set[str] = set()
        self._zip: zipfile.ZipFile | None = None
        self._inside: dict[str, str] = {}  # path inside the source -> path inside the folder or zip
        if self.path.is_dir():
            names = list(self._walk())
        elif not stat.S_ISREG(self.path.stat().st_mode):
            raise Refused("bad_source", "path", str(path), "not a folder, a zip or a regular file")
        elif zipfile.is_zipfile(self.path):
            names = list(self._open_zip())
        else:
            names = [self.path.name]
            self.path = self.path.parent
        self._inside |= {name: name for name in names if name not in self._inside}
        self.names = sorted(self._inside)

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file of the source. Raises OSError; Refused (bad_source): a damaged zip, a pointer of Git LFS."""
        inside = self._inside[name]
        if self._zip is None:
            with open_regular(self.path / inside) as file:
                _check_content(file.peek(len(_POINTER)), name)
                yield file
            return
        try:
            with self._zip.open(inside) as packed:
                _check_content(packed.peek(len(_POINTER)), name)  # type: ignore[attr-defined]
                yield packed
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise Refused("bad_source", name, None, f"the zip is damaged or not supported: {error}") from None

    @contextmanager
    def open_whole(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file to be read in any order: one in a zip is unpacked into memory. Raises what `open` raises."""
        with self.open(name) as file:
            yield file if self._zip is None else BytesIO(file.read())

    def read(self, name: str, most: int) -> bytes:
        """Return the bytes of a file. Refuses: bad_source (it has more than `most`)."""
        with self.open(name) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise Refused("bad_source", name, None, f"the file has more than {most:,} bytes")
        return content

    def close(self) -> None:
        """Close the zip."""
        if self._zip is not None:
            self._zip.close()

    def _walk(self) -> Iterator[str]:
        """Return the files of the folder. Hidden files and folders, such as .git, are not part of a source."""
        count = 0
        for folder, folders, files in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            within = Path(folder).relative_to(self.path).as_posix()
            for name in sorted(files):
                inside = name if within == "." else f"{within}/{name}"
                if Path(folder, name).is_symlink():
                    self.links.append(inside)
                elif not name.startswith("."):
                    yield inside
                    count += 1
                    if count > MOST_FILES:
                        raise Refused("bad_source", "path", str(self.path), f"it has more than {MOST_FILES:,} files")

    def _open_zip(self) -> Iterator[str]:
        """Open the zip and return its files, without the folder that holds all of them, if there is one."""
        try:
            self._zip = zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise Refused("bad_source", "path", str(self.path), f"the zip is damaged: {error}") from None
        entries = [entry for entry in self._zip.infolist() if not entry.is_dir()]
        if len(entries) > MOST_FILES:
            raise Refused("bad_source", "path", str(self.path), f"the zip has more than {MOST_FILES:,} files")
        names = [self._checked(entry) for entry in entries]
        most = min(MOST_BYTES, max(FREE_BYTES, MOST_RATIO * self.path.stat().st_size))
        if sum(entry.file_size for entry in entries) > most:
            detail = f"the zip has more than {most:,} bytes when unpacked"
            raise Refused("bad_source", "path", str(self.path), detail, remedy=_UNPACK)
        [(name, times)] = Counter(names).most_common(1) or [("", 1)]
        if times > 1:
            raise Refused("bad_source", name, None, "the zip has two files of this name")
        top = {name.partition("/")[0] for name in names}
        prefix = f"{top.pop()}/" if len(top) == 1 and all("/" in name for name in names) else ""
        for name, entry in zip(names, entries, strict=True):
            if not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts):
                self._inside[name.removeprefix(prefix)] = entry.filename
                yield name.removeprefix(prefix)

    def _checked(self, entry: zipfile.ZipInfo) -> str:
        """Return the name of a file in the zip. Refuses: bad_source (it leads outside, or it is a bomb)."""
        name = entry.filename
        parts = PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name or ":" in (parts or ("",))[0]:
            raise Refused("bad_source", name, None, "the zip has a path that leads outside it")
        if entry.external_attr >> 16 & 0o170000 == _LINK:
            raise Refused("bad_source", name, None, "the zip has a link; links are not followed")
        if entry.flag_bits & 1:
            raise Refused("bad_source", name, None, "the zip is encrypted; unpack it and give the folder")
        if entry.file_size > max(FREE_BYTES, MOST_RATIO * entry.compress_size):
            detail = f"it unpacks to {entry.file_size:,} bytes, more than {MOST_RATIO} times its size"
            raise Refused("bad_source", name, None, detail, remedy=_UNPACK)
        return name


def is_readme(name: str) -> bool:
    """Return whether a file says what the others are.

    >>> is_readme("hub/target-data/README.md"), is_readme("hub/tasks.json")
    (True, False)
    """
    return name.rpartition("/")[2].lower().startswith("readme")


def _check_content(begin: bytes, name: str) -> None:
    """Refuse (bad_source) a file that stands for another one."""
    if begin.startswith(_POINTER):
        remedy = "run `git lfs pull` in the repository"
        raise Refused("bad_source", name, None, "a pointer of Git LFS, not the file itself", remedy=remedy)


TableRow = tuple[int, Sequence[str] | Refused]  # the line, and the cells
# --- tables

CORRECT = "get the file again, or correct this line; until then, nothing that the file lacks is taken back"
MISSING = "NA"  # how a hub writes that a task id does not apply
TABLE_ENDINGS = (".csv", ".parquet")


class SourceTable(NamedTuple):
    """A table: its columns, and its rows in the order of the file; an empty cell is "NA" if the table is a hub's."""

    columns: list[str]
    rows: Iterator[TableRow]


def read_table(files: SourceFiles, name: str, needed: Sequence[str]) -> SourceTable:
    """Read a table; columns of a folder such as `as_of=2026-03-01` in the path are added.

    Raises, first that applies: Refused (bad_source: no such column, empty, not readable), Unavailable (no pyarrow).
    """
    columns, rows = _parquet(files, name) if name.endswith(".parquet") else read_csv(files, name)
    parts = [part.partition("=") for part in name.split("/")[:-1] if "=" in part]
    added = [(column, value) for column, _, value in parts if column not in columns]
    columns = [*columns, *(column for column, _ in added)]
    check_columns(name, columns, needed)
    values = tuple(value for _, value in added)
    return SourceTable(
        columns, ((line, cells if isinstance(cells, Refused) else _filled(cells, values)) for line, cells in rows)
    )


def read_csv(files: SourceFiles, name: str, lacking: int = 0) -> tuple[list[str], Iterator[TableRow]]:
    """Return the columns and the rows of a CSV. Refuses: bad_source (no header that can be read).

    lacking: how many cells a row may lack at its end; they are empty.
    """
    rows = _csv_rows(files, name)
    _, header = next(rows, (1, Refused("bad_csv", "", None, "the file is empty")))
    if isinstance(header, Refused):
        raise Refused("bad_source", name, None, header.detail, remedy=CORRECT)
    return list(header), _even_rows(rows, len(header), lacking)


def check_columns(name: str, columns: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse (bad_source) a table that lacks a column, or has it twice."""
    for column in needed:
        if columns.count(column) != 1:
            fault = "appears twice" if column in columns else "is missing"
            detail = f"the column {column!r} {fault}; the columns are: {in_list(columns)}"
            raise Refused("bad_source", name, None, detail)


def location_in(name: str, line: int, command: str = "") -> InputLocation:
    """Return the file and the line of a row."""
    return InputLocation(line, command, file=name)


def _filled(cells: Sequence[str], added: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([cell or MISSING for cell in cells]) + added


def _csv_rows(files: SourceFiles, name: str) -> Iterator[TableRow]:
    with files.open(name) as file:
        for line, cells in read_records(file):
            if isinstance(cells, Refused):
                yield line, Refused("bad_source", "", None, cells.detail, remedy=CORRECT)
            else:
                yield line, cells


def _even_rows(rows: Iterator[TableRow], width: int, lacking: int) -> Iterator[TableRow]:
    """Refuse rows that have another number of cells than the header; fill up those that may lack some."""
    for line, cells in rows:
        if isinstance(cells, Refused) or len(cells) == width:
            yield line, cells
        elif width - lacking <= len(cells) < width:
            yield line, [*cells, *[""] * (width - len(cells))]
        else:
            detail = f"the row has {len(cells)} cells, the header has {width}"
            yield line, Refused("bad_source", "", None, detail, remedy=CORRECT)


def _parquet(files: SourceFiles, name: str) -> tuple[list[str], Iterator[TableRow]]:
    arrow = pyarrow()
    from pyarrow import parquet  # noqa: PLC0415 - late: an extra

    try:
        with files.open_whole(name) as file, parquet.ParquetFile(file) as table:
            columns = list(table.schema_arrow.names)
    except (arrow.ArrowException, ValueError, OSError) as error:
        raise Refused("bad_source", name, None, f"not a Parquet file that can be read: {error}") from None
    return columns, _parquet_rows(files, name)


def _parquet_rows(files: SourceFiles, name: str) -> Iterator[TableRow]:
    """Return the rows; the line is that of the row, counted from 1."""
    arrow = pyarrow()
    line = 0
    try:
        with files.open_whole(name) as file:
            for batch in read_batches(file):
                for cells in zip(*(map(text_of, column.to_pylist()) for column in batch.columns), strict=True):
                    line += 1
                    yield line, cells
    except (arrow.ArrowException, ValueError, OSError) as error:
        detail = f"not readable: {error}; the rows after {line:,} are not read"
        remedy = REMEDY if isinstance(error, TooLargeError) else ""
        yield line + 1, Refused("bad_source", name, None, detail, remedy=remedy)


def text_of(value: Any) -> str:
    """Return a value of a configuration or a Parquet file as a CSV has it.

    >>> text_of(1), text_of(0.25), text_of(2.0), text_of(None), text_of("US")
    ('1', '0.25', '2', 'NA', 'US')
    """
    if value is None or value == "":
        return MISSING
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
