"""Packs: a log, what follows from it, and how to check both without this program, in one zip; the check of a pack."""

import os
import platform
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import file_digest
from importlib.metadata import PackageNotFoundError, requires, version
from operator import itemgetter
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

import msgspec
from msgspec import structs

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.ledger.core.version import DISTRIBUTION, code_version
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.projections.boards.totals import may_take_reference_label
from forecast_ledger.projections.core.table import PART_ROWS, Table, TableParts
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, Projections
from forecast_ledger.replay.audit.verify import (
    checkpoint_at,
    checkpoint_text,
    compare_with_checkpoint,
    read_checkpoint,
)
from forecast_ledger.replay.files.export import default_tables, manifest_of, write_folder
from forecast_ledger.replay.files.formats import ExportTable, StoredEvents, export_tables
from forecast_ledger.replay.files.manifest import Manifest, clear_leftovers, move_into_place, scratch_folder
from forecast_ledger.replay.files.restore import restore
from forecast_ledger.replay.pages import check_pack
from forecast_ledger.replay.pages.report import audit
from forecast_ledger.replay.reading.log import AsOf, Log, OnProgress
from forecast_ledger.replay.reading.replay import Replay, TableSummary

SUMS, PAPER, CHECKPOINT, EXPORT = "SHA256SUMS", "paper.md", "checkpoint.toml", "log"
_FIRST = ("README.txt", "check.py", SUMS, "versions.json", CHECKPOINT, PAPER, "tables.json", "score.json")
_NAME = re.compile(r"(?:log/)?[A-Za-z][A-Za-z0-9_]{0,99}(?:\.[a-z]{1,5})?", re.ASCII)
_TYPE = re.compile(rb'"type":"([a-z_.0-9]+)"')  # of the event of a line; in texts, quotation marks are escaped
MOST_MEMBERS = 500  # files of a pack
LARGEST, RATIO = 2**28, 200  # bytes of all files together that may be more than so many times those of the zip
_WHEN = (1980, 1, 1, 0, 0, 0)  # of every file in a zip: the first instant that it can have
_SCRIPT = Path(check_pack.__file__)


class Packed(NamedTuple):
    """A pack that was written: the end of its log, its number of files, and the SHA-256 of the zip.

    verdict: that of the working paper. found: whether it names findings, or the log has no events.
    """

    checkpoint: Checkpoint
    verdict: str
    has_findings: bool
    files: int
    sha256: str


@checked("name", "as_of")
def pack(
    log: str | PathLike[str],
    out: str | PathLike[str],
    name: str = "main",
    as_of: AsOf = None,
    on_progress: OnProgress = lambda _: None,
) -> Packed:
    """Verify a log and pack it. out: the zip, which replaces a file of that name at once, or not at all.

    log, name, as_of, on_progress: as in `replay`. The same log, program, packages and zlib give the same bytes.

    Raises, first that applies: Refused (as_of is not an instant, or beyond the log), Unavailable (also: the log as of
    there ends in the middle of a command), Corrupt, OSError.
    """
    out = Path(out)
    clear_leftovers(out)
    with scratch_folder(out) as scratch:
        folder = scratch / "pack"
        folder.mkdir()
        paper, verification = audit(log, folder / PAPER, name=name, as_of=as_of, on_progress=on_progress)
        if verification.damage:
            raise verification.damage[0]
        end = verification.head
        manifest = _export(Log(log, name, end.position, on_progress), folder)
        _write(folder / "versions.json", _versions(manifest, folder))
        _write_texts(folder, manifest)
        zipped = scratch / "zip"
        _zip(folder, zipped)
        with zipped.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        files = sum(path.is_file() for path in folder.rglob("*"))
        move_into_place(zipped, out)
    has_findings = bool(verification.differences) or not end.position
    return Packed(end, paper.verdict, has_findings, files, digest)


def _write(path: Path, value: object) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def _export(source: Log, folder: Path) -> Manifest:
    """Write the export, the checkpoint, and how to check tables and scores; each table is computed once.

    Raises Unavailable (the log as of there ends in the middle of a command), Corrupt, OSError.
    """
    cut, columns = source.cut(), dict[str, list[tuple[str, str, str]]]()
    projections = Projections(source.facts(cut))
    season = Replay(cut.reached(), projections)
    with source.opened() as store:
        without_tables = manifest_of(season, store, "jsonl")
        if not without_tables.whole:
            wrong = f"log position {season.checkpoint.position} is in the middle of a command"
            raise Unavailable(f"{wrong}; pack an earlier or later one")
        sheets = _noted(export_tables(StoredEvents(store, season), default_tables()), columns)
        manifest = write_folder(
            folder / EXPORT, sheets, "jsonl", lambda parts: structs.replace(without_tables, tables=parts)
        )
    tables = {name: entry for name, entry in manifest.tables.items() if name in CATALOGUE}
    built = {name: TableSummary(each.version, each.rows, each.digest) for name, each in tables.items()}
    saved = checkpoint_at(cut, source.name, {name: built[name] for name in BUILT})
    (folder / CHECKPOINT).write_bytes(checkpoint_text(saved).encode())
    told = {name: {**summary._asdict(), "columns": columns[name]} for name, summary in built.items()}
    _write(folder / "tables.json", told)
    if keys := _score_keys(projections):
        _write(folder / "score.json", [_score(projections, *key) for key in keys])
    return manifest


def _noted(sheets: Iterable[ExportTable], columns: dict[str, list[tuple[str, str, str]]]) -> Iterator[ExportTable]:
    """Pass tables on, and note the columns of each once it is written: name, kind and form."""
    for sheet in sheets:
        yield sheet
        if isinstance(sheet.chunks, TableParts):
            forms = zip(sheet.columns, sheet.chunks.forms, strict=True)
            columns[sheet.name] = [(column.name, column.kind, form) for column, form in forms]
        del sheet


_Key = tuple[str, str, str]


def _score_keys(projections: Projections) -> list[_Key]:
    """Return the contest, question and participant of the scores to check: for each kernel and reference, one.

    The first is the one farthest from 0 of who won most in a sealed contest, on a question with outcomes if there is
    one; the others are chosen likewise.
    """
    facts = projections.facts
    best = dict[str, tuple[tuple[bool, int, bool, int], _Key]]()
    plain = {each.question for each in facts.questions if each.kind in {"binary", "multiple_choice"}}
    prizes = {(row[0], row[1]): row[2] for row in projections.table("prizes").plain()}
    rules = {name: each.opened.rules for name, each in facts.contests.items()}
    for contest, question, participant, points, *_ in _rows(projections.table("scores")):
        if may_take_reference_label(participant):  # perhaps the score of no participant, but of a reference
            continue
        sealed = facts.contests[contest].sealed is not None
        rule_set = rules[contest]
        kernel = (
            rule_set.kernel if question in plain else f"{rule_set.cdf_kernel} {rule_set.quantile_kernel} of a range"
        )
        kernel += f" against {rule_set.reference}"
        worth = sealed, prizes.get((contest, participant), 0), question in plain, abs(points)
        if kernel not in best or worth > best[kernel][0]:
            best[kernel] = worth, (contest, question, participant)
    return [key for _, key in sorted(best.values(), key=itemgetter(0), reverse=True)]


def _rows(table: Table) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table, some at a time."""
    for begin in range(0, len(table), PART_ROWS):
        yield from table.slice(begin, begin + PART_ROWS).plain()


def _score(projections: Projections, contest: str, question: str, participant: str) -> dict[str, object]:
    parts = projections.score_parts(participant, contest=contest, question=question)
    key = {"contest": contest, "question": question, "participant": participant}
    return key | {"parts": [*parts.rows()]}


def _versions(manifest: Manifest, folder: Path) -> dict[str, object]:
    with (folder / EXPORT / "events.jsonl").open("rb") as file:
        types = {match[1].decode() for line in file if (match := _TYPE.search(line))}
    return {
        "pack": 1,
        "ledger": manifest.ledger,
        "log_position": manifest.log_position,
        "log_digest": manifest.log_digest,
        "program": f"{DISTRIBUTION} {code_version()}",
        "python": platform.python_version(),
        "packages": dict(_packages()),
        "log_format": sorted(types),
        "tables": {name: entry.version for name, entry in manifest.tables.items()},
    }


def _packages() -> Iterator[tuple[str, str]]:
    """Yield the packages that the program needs, with the versions that are installed."""
    try:
        needed = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return
    for requirement in sorted(needed):
        if "extra ==" not in requirement:
            package = re.split(r"[^A-Za-z0-9._-]", requirement)[0]
            with suppress(PackageNotFoundError):  # what only another system needs is not installed
                yield package, version(package)


def _write_texts(folder: Path, manifest: Manifest) -> None:
    """Write the text, the script, and the digests of all files."""
    template = _SCRIPT.with_name("pack_readme.txt").read_text("utf-8")
    told = {"ledger": manifest.ledger, "position": str(manifest.log_position), "digest": manifest.log_digest}
    for word, text in (told | {"version": code_version()}).items():
        template = template.replace(f"{{{word}}}", text)
    (folder / "README.txt").write_text(template, "utf-8")
    shutil.copyfile(_SCRIPT, folder / "check.py")
    sums = []
    for name, path in _files(folder).items():
        with path.open("rb") as file:
            sums.append(f"{file_digest(file, 'sha256').hexdigest()}  {name}\n")
    (folder / SUMS).write_text("".join(sums), "utf-8")


def _files(folder: Path) -> dict[str, Path]:
    """Return the files of a pack in their order in the zip, by name."""
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: paths.pop(name) for name in _FIRST if name in paths} | paths


def _zip(folder: Path, out: Path) -> None:
    """Write a zip whose bytes depend on the files alone."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in _files(folder).items():
            member = zipfile.ZipInfo(name, _WHEN)
            member.compress_type, member.create_system = zipfile.ZIP_DEFLATED, 3
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            member.file_size = path.stat().st_size
            with path.open("rb") as file, archive.open(member, "w") as to:
                shutil.copyfileobj(file, to)


# --- Check a pack that somebody else may have made: nothing of it is run, or written outside of a scratch folder.


def check(path: str | PathLike[str], on_progress: OnProgress = lambda _: None) -> list[check_pack.Check]:
    """Check a pack, and return what was checked with what is wrong, "" if nothing is.

    The checks are those of the script in it, made by this program's copy; then the log is imported, which decides each
    command again, and compared with the checkpoint, and its working paper is made again.

    Raises, first that applies: Unavailable (not a pack, or a zip that is not safe to unpack), OSError.
    """
    path = Path(path)
    with TemporaryDirectory() as made:
        scratch = Path(made)
        folder = scratch / "pack"
        unpack(path, folder)
        results = [*check_pack.checks(folder)]
        try:
            results += _recomputed(folder, scratch / "copy.db", on_progress)
        except (Unavailable, FileExistsError) as error:
            results.append(("the log, imported and decided again", str(error)))
    return results


def unpack(path: Path, folder: Path) -> None:
    """Unpack a pack into a new folder. Raises Unavailable: not a pack, or not safe to unpack."""
    try:
        with open_regular(path.absolute()) as file, zipfile.ZipFile(file) as archive:
            for member in _members(archive, os.fstat(file.fileno()).st_size):
                target = folder / member.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as read, target.open("xb") as written:
                    _copy(read, written, member.file_size)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        raise Unavailable(f"{path}: not a pack: {error}") from None


def _members(archive: zipfile.ZipFile, size: int) -> list[zipfile.ZipInfo]:
    """Return the files of a zip of this size. Raises ValueError: a name, a kind, sizes or a number that no pack has."""
    members, names = archive.infolist(), archive.namelist()
    if len(members) > MOST_MEMBERS:
        raise ValueError(f"it has {len(members):,} files, and a pack at most {MOST_MEMBERS}")
    if missing := {*_FIRST[:-1], f"{EXPORT}/events.jsonl", f"{EXPORT}/manifest.json"}.difference(names):
        raise ValueError(f"it has no file {sorted(missing)[0]}")
    if len({name.casefold() for name in names}) < len(names):
        raise ValueError("it has two files of the same name")
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> 16)
        if not _NAME.fullmatch(member.filename) or kind not in {0, stat.S_IFREG}:
            raise ValueError(f"{member.filename[:100]!r} is no name of a file of a pack, or no regular file")
    if (whole := sum(member.file_size for member in members)) > max(LARGEST, RATIO * size):
        raise ValueError(f"its files would take {whole:,} bytes")
    return members


def _copy(read: IO[bytes], written: IO[bytes], size: int) -> None:
    """Copy a file of this size. Raises ValueError: it has another one."""
    left = size
    while block := read.read(min(2**20, left + 1)):
        left -= len(block)
        if left < 0:
            break
        written.write(block)
    if left:
        raise ValueError("a file has another size than the zip says")


def _recomputed(folder: Path, copy: Path, on_progress: OnProgress) -> Iterator[check_pack.Check]:
    """Import the log of a pack, and make its checkpoint and working paper again."""
    versions: Mapping[str, object] = msgspec.json.decode(
        (folder / "versions.json").read_bytes(), type=dict[str, object]
    )
    name, same = str(versions.get("ledger")), versions.get("program") == f"{DISTRIBUTION} {code_version()}"
    count = restore(folder / EXPORT, copy, name, on_progress)
    yield f"the log, imported and decided again: {count} events", ""
    saved = read_checkpoint((folder / CHECKPOINT).read_bytes())
    compared = compare_with_checkpoint(saved, Log(copy, name))
    skipped = f"; {len(compared.skipped)} of another version not compared" * bool(compared.skipped)
    yield f"the checkpoint: {len(saved.projections)} tables computed again{skipped}", "; ".join(compared.apart)
    paper = (folder / PAPER).read_text("utf-8")
    again = copy.with_name(PAPER)
    audit(copy, again, name=name, as_of=saved.log_position)
    told = [_without_title(text) for text in (paper, again.read_text("utf-8"))]
    if same:
        yield "the working paper, made again", "" if told[0] == told[1] else "it differs"


def _without_title(paper: str) -> list[str]:
    """Return a paper without its first and last lines, which name the file of the log."""
    return paper.splitlines()[1:-1]
