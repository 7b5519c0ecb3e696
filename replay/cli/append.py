"""The command that appends a file of commands, or a CSV by a map; it imports tables only if a contest is finalized."""

import io
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.replay.cli.shell import (
    emit,
    errors_option,
    fail,
    log_argument,
    name_option,
    progress,
    refusal_printer,
    report_errors,
    require_columns,
    say,
    say_as_of,
)
from forecast_ledger.replay.cli.terminal import Look, View, table_options
from forecast_ledger.replay.reference.exit_codes import FINDINGS, USAGE

if TYPE_CHECKING:
    from forecast_ledger.ledger.batching.checks import Claims
    from forecast_ledger.ledger.model.input_locations import InputLocation, ReadCommand
    from forecast_ledger.ledger.storing.writer import Ledger
    from forecast_ledger.replay.importing.record_copy import FollowedCopy
    from forecast_ledger.replay.importing.source_items import Source
    from forecast_ledger.replay.writing.append import OnProgress, Outcome
    from forecast_ledger.replay.writing.command_lines import SentBlocks

LARGEST_MAP = 2**20  # bytes
COUNT_COLUMNS = ["accepted", "duplicate", "refused", "log_position", "digest"]
TRIAL_COLUMNS = ["line", "id", "type", "outcome", "code", "field"]


class _Source(NamedTuple):
    """The commands of a file, one by one or by blocks.

    header: the bytes before the first of them. total: how many, if all have been read. size: the bytes of a regular
    file that is read by blocks. left_out: says of which rows the map made no command, "" if of none. form: what the
    file is, if its refused rows are written in another form. copy: the commands, if the map names the source of which
    the file is a copy. followed: what records them.
    """

    commands: "Iterable[ReadCommand] | SentBlocks[Any]"
    file: IO[bytes]
    header: bytes = b""
    total: int | None = None
    size: int | None = None
    left_out: Callable[[], str] = str
    form: str = ""
    copy: "Source | None" = None
    followed: "FollowedCopy | None" = None

    def lines(self) -> list[str]:
        """Say of which rows the map made no command, and what of a copy was changed or not carried over."""
        followed = [] if self.followed is None else self.followed.lines()
        return [*filter(None, [self.left_out()]), *followed]


@click.command(epilog="Example: forecast-ledger append season.db commands.jsonl --dry-run")
@log_argument
@click.argument("file", type=click.File("rb"))
@click.option(
    "--map", "map_", type=click.Path(dir_okay=False), help="Read FILE, a CSV, Parquet or .xlsx, by this map in TOML."
)
@click.option("--dry-run", is_flag=True, help="Print the outcome of each command, and record nothing.")
@click.option("--strict", is_flag=True, help="With --map: refuse each row of which the map makes no command.")
@click.option("--keep-missing", is_flag=True, help="Keep what a newer copy of a source does not have, and count it.")
@click.option("--take-back", is_flag=True, help="Take back what a newer copy lacks, also if it is more than half.")
@click.option("--atomic", is_flag=True, help="Record all commands in FILE or, if one is refused, none.")
@click.option(
    "--refused",
    "refused_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the lines that are refused to this file, to be corrected and sent again.",
)
@click.option(
    "--recorded-at",
    "received",
    metavar="COLUMN|FIELD",
    default="",
    help="Keep the times of receipt in this column of a CSV, or field of each line; only in a new ledger.",
)
@click.option(
    "--claims",
    metavar="BEFORE[,AFTER]",
    help="Refuse a command that claims an instant further from its recording than this, such as 5m or 1h,0s.",
)
@click.option(
    "--segments",
    metavar="FOLDER",
    help="Read the beginning of LOG from this folder, which `seal` made of it; the SHA-256 of its files is checked.",
)
@click.option("--verbose", "-v", is_flag=True, help="Print the log lines of the ledger to stderr.")
@name_option
@table_options
@errors_option
@report_errors
def append(
    log: str,
    file: IO[bytes],
    map_: str | None,
    dry_run: bool,
    strict: bool,
    keep_missing: bool,
    take_back: bool,
    atomic: bool,
    refused_path: Path | None,
    received: str,
    claims: str | None,
    segments: str | None,
    verbose: bool,
    name: str,
    view: View,
    errors: str,
) -> None:
    """Append the commands in FILE to a log.

    FILE has one JSON object per line, or is a CSV, Parquet or .xlsx file if --map is given; - is stdin. If LOG does not
    exist, it is created. Commands that are already recorded count as duplicates and change nothing. The first three
    refusals of each code are printed on stderr, with line, field and remedy, and the number of all; the exit code is
    then 1, also if quotes with skip_bad are refused. With --refused, the header and all refused lines are written to a
    file; of Parquet and .xlsx as a CSV. If the map has `source`, FILE is a copy of that source: what changed since
    earlier copies is corrected, and what is gone is taken back, unless --keep-missing.

    LOG may be a folder of segments, an empty folder, or the path of a new one that ends in a slash: the commands go
    straight into its segments, and are recorded when a segment is full and at the end of FILE.

    With --recorded-at, a history keeps the times at which it was received, and its rows say that they are imported. The
    ledger must be empty, or have only such rows; the times must not fall.
    """
    from forecast_ledger.replay.writing.append import Uncounted, outcome_row, tally

    require_columns(view, TRIAL_COLUMNS if dry_run else COUNT_COLUMNS)
    _check_options(trial=dry_run, segments=segments, strict=strict, map_=map_)
    limits = _limits(claims)
    _configure_logging(verbose=verbose)
    by_block = not (dry_run or atomic or received)
    source = _read(file, map_, received, keep=refused_path is not None, by_block=by_block, strict=strict)
    source = _as_copy(source, keep_missing=keep_missing, take_back=take_back, alone=not (received or refused_path))
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    with (
        _refused_kept(refused_path, source, log) as keep,
        opened(log, name, dry_run=dry_run, segments=segments) as (ledger, base),
        summed_refusals(errors) as on_refusal,
        nullcontext(lambda _: None) if dry_run else _shown(source, counts) as on_progress,
    ):
        ledger.claims = limits
        uncounted = Uncounted(ledger)
        handled = uncounted.noted(_handled(ledger, source, on_progress, counts, atomic=atomic))
        outcomes = tally(keep(handled), on_refusal, counts)
        if base is not None:
            emit(TRIAL_COLUMNS, map(outcome_row, outcomes), view, Look(keep=("line", "outcome")))
        deque(outcomes, 0)
        head, boards = base or ledger.head(), uncounted.boards()
    say_lines(source.lines(), boards)
    if _print_counts(counts, head, view, dry_run=dry_run) or (source.followed and source.followed.others):
        sys.exit(FINDINGS)


def _check_options(*, trial: bool, segments: str | None, strict: bool, map_: str | None) -> None:
    """Exit with USAGE if options do not fit each other."""
    if trial and segments is not None:
        fail("--dry-run reads the whole log: leave --segments out", USAGE)
    if strict and map_ is None:
        fail("--strict is about the rows of a CSV: name its map with --map", USAGE)


def _print_counts(counts: dict[str, int], head: Checkpoint, view: View, *, dry_run: bool) -> bool:
    """Print how many commands were accepted, duplicate and refused, and where the log ends.

    Return whether any, or a quote of one, was refused.
    """
    skipped = counts.pop("refused_quotes", 0)
    if dry_run:
        say(", ".join(f"{count:,} {outcome}" for outcome, count in counts.items()))
        say("nothing was written")
        say_as_of(head)
    else:
        emit(COUNT_COLUMNS, [{**counts, "log_position": head.position, "digest": head.digest}], view)
    if skipped:
        say(f"refused quotes, of commands whose other quotes are recorded: {skipped:,}")
    return bool(counts["refused"] or skipped)


def _limits(claims: str | None) -> "Claims":
    """Return how far a claimed instant may lie from its recording; anything else is wrong usage."""
    from forecast_ledger.ledger.batching.checks import FREE, Claims

    try:
        return FREE if claims is None else Claims.read(claims)
    except ValueError as wrong:
        fail(f"--claims {wrong}", USAGE)


def _handled(
    ledger: "Ledger", source: _Source, on_progress: "OnProgress", counts: dict[str, int], *, atomic: bool
) -> "Iterator[Outcome]":
    """Append commands; of those read by blocks, count the recorded ones, and yield the outcomes of the others.

    Only a file is read ahead: what comes slowly through a pipe would have to wait for the block after it.
    """
    from forecast_ledger.replay.writing.append import append_batches, append_blocks
    from forecast_ledger.replay.writing.command_lines import reading_ahead

    if source.followed is not None:
        yield from source.followed.outcomes(ledger, on_progress, atomic=atomic)
        counts["duplicate"] += source.followed.left_out.known
    elif isinstance(source.commands, Iterable):
        yield from append_batches(ledger, source.commands, on_progress, atomic=atomic)
    elif source.size is None:
        yield from append_blocks(ledger, source.commands, on_progress, counts)
    else:
        with reading_ahead(source.commands, source.size) as blocks:
            yield from append_blocks(ledger, blocks, on_progress, counts)


@contextmanager
def opened(
    log: str, name: str, *, dry_run: bool, segments: str | None = None
) -> "Iterator[tuple[Ledger, Checkpoint | None]]":
    """Open a ledger to append to; for a dry run a branch of it in memory, with the checkpoint that it begins at.

    log: also a folder of segments, or an empty one; what is recorded is durable after the block.

    segments: a folder that has the beginning of the log; not for a dry run.
    """
    from forecast_ledger.ledger.storing.stored_log import has_segments_beside
    from forecast_ledger.replay.writing.provisional_stores import check_not_sealed, open_lazily, open_overlay

    check_not_sealed(log if "://" in log else log.rstrip("/"), segments)
    if dry_run:
        from forecast_ledger.ledger.segments.sealing import check_listed

        if os.path.isdir(log):  # noqa: PTH112 - as below
            check_listed(Path(log))
        with open_overlay(log, name, board_prizes) as branch:
            yield branch
        return
    if os.path.isdir(log) or (log.endswith("/") and "://" not in log):  # noqa: PTH112 - any text may be given
        from forecast_ledger.ledger.storing.segment_appender import appended

        if segments is not None:
            fail("LOG is a folder of segments itself: leave --segments out", USAGE)
        beside = log.rstrip("/").removesuffix(".segments")
        if beside != log.rstrip("/") and has_segments_beside(beside) and Path(beside).exists():
            fail(f"{log} has the segments of {beside}: append to that, then seal it", USAGE)
        with appended(Path(log), name, prizes=board_prizes) as ledger:
            yield ledger, None
        return
    with open_lazily(log, name, board_prizes, segments) as ledger:
        yield ledger, None


def board_prizes(pages: Iterable[Sequence[Recorded]], contest: str) -> dict[str, int]:
    """Compute the prizes of a sealed board; the module that does is imported only when prizes are paid."""
    from forecast_ledger.replay.writing.store import prizes_from_log

    return prizes_from_log(pages, contest)


@contextmanager
def _refused_kept(
    path: Path | None, source: _Source, log: str
) -> "Iterator[Callable[[Iterable[Outcome]], Iterator[Outcome]]]":
    """Yield a function that passes outcomes on; with a path, the records that are refused are written to it."""
    if path is None:
        yield iter
        return
    if _is_part_of(path, log):
        fail(f"--refused {path} is a file of LOG: name another one", USAGE)
    from forecast_ledger.replay.files.manifest import refused_file

    with refused_file(path) as refused:
        yield lambda outcomes: refused.keep_refused(source.header, outcomes)
        refused.keep_rest(source.file)
    say(f"refused and written to {path}{', as a CSV' * bool(source.form)}: {refused.records:,}")
    if refused.too_long:
        say(f"too long to be written to {path}: line {', '.join(map(str, refused.too_long))}")


def _read(file: IO[bytes], map_: str | None, received: str, *, keep: bool, by_block: bool, strict: bool) -> _Source:
    """Read the commands in a file, which is a CSV if there is a map. keep: keep the bytes of each row.

    received: the column or field that says when a command was received. by_block: read blocks of commands, if possible.
    strict: refuse rows of which the map makes no command.
    """
    from forecast_ledger.replay.files.table_rows import JSON_LINES, form_of, looks_like_csv, table_records
    from forecast_ledger.replay.importing.map_copy import table_copy
    from forecast_ledger.replay.mapping.csv_mapping import map_records, parse_map
    from forecast_ledger.replay.mapping.csv_reader import with_line_feeds
    from forecast_ledger.replay.mapping.row_blocks import RowBlocks
    from forecast_ledger.replay.writing.command_lines import LineBlocks, read_lines, size_of

    form, size = form_of(file, tables=map_ is not None), size_of(file)
    if map_ is None and form:
        fail(f"FILE is {form}: name with --map the map that says which columns make the fields of a command", USAGE)
    if map_ is None and looks_like_csv(file):
        begin = "FILE looks like a CSV: score it with `forecast-ledger score FILE`"
        fail(
            f"{begin}, or name with --map the map that says what its columns are; see `forecast-ledger help csv`", USAGE
        )
    if map_ is None:
        commands = LineBlocks(file) if by_block else read_lines(file, received)
        return _Source(commands, file, size=size)

    try:
        with Path(map_).open("rb") as opened:
            text = opened.read(LARGEST_MAP + 1)
    except OSError as error:
        fail(f"{map_}: {error.strerror}", USAGE)
    if len(text) > LARGEST_MAP:
        fail(f"{map_}: a map has at most {LARGEST_MAP:,} bytes, and this file has more", USAGE)
    mapping, unit = parse_map(text, Path(map_).parent), "row" if form and form != JSON_LINES else "line"

    def reads(name: str) -> bool:
        return mapping.reads(name) or name == received

    file, shape = file if form else with_line_feeds(file), mapping.description
    records = table_records(
        file, form, reads, delimiter=shape.delimiter, encoding=shape.encoding, sheet=shape.sheet, keep=keep
    )
    if form:
        file = io.BytesIO()  # nothing is left of it
    if by_block and mapping.is_of_forecasts:
        blocks = RowBlocks(mapping, records, keep=keep, unit=unit)
        return _Source(blocks, file, blocks.header, size=size, form=form)
    rows = map_records(mapping, records, keep=keep, recorded_at=received, strict=strict)
    located = ((location._replace(unit=unit), command) for location, command in rows.commands)
    copy = table_copy(mapping.description, located) if mapping.description.source else None
    return _Source(
        located, file, rows.header, rows.total, left_out=lambda: rows.left_out.words(unit), form=form, copy=copy
    )


def _as_copy(source: _Source, *, keep_missing: bool, take_back: bool, alone: bool) -> _Source:
    """Return a copy with what records it; any other file as it is.

    alone: whether no option is given that a whole copy does not take. Exits with USAGE if options do not fit.
    """
    if source.copy is None:
        if keep_missing or take_back:
            fail("--keep-missing and --take-back are for copies of a source: name it in the map with `source`", USAGE)
        return source
    from forecast_ledger.replay.importing.question_forecasts import Following
    from forecast_ledger.replay.importing.record_copy import FollowedCopy

    if not alone:
        fail("the map has `source`, so that FILE is a whole copy: leave --refused and --recorded-at out", USAGE)
    following = Following(time.time_ns() // 1_000, keep_missing=keep_missing, take_back=take_back)
    return source._replace(followed=FollowedCopy(source.copy, following))


def _is_part_of(path: Path, log: str) -> bool:
    """Return whether a path is that of a log, or is in its folder."""
    log_path = Path(log.removeprefix("sqlite:///")).resolve()
    return path.resolve() == log_path or log_path in path.resolve().parents


def _shown(source: _Source, counts: dict[str, int]) -> AbstractContextManager[Callable[[int], None]]:
    """Show how much of a file is recorded: of its bytes or, if all of it has been read, of its commands."""
    from forecast_ledger.replay.writing.command_lines import size_of

    if source.total is None:
        return progress("lines", size_of(source.file), source.file.tell)
    return progress("lines", source.total, lambda: sum(counts.values()))


def _configure_logging(*, verbose: bool) -> None:
    """Log warnings to stderr or, if verbose, everything with its fields."""
    import logging

    if not verbose:
        logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
        return
    from structlog import processors, stdlib

    before: list[Any] = [stdlib.add_log_level, stdlib.ExtraAdder(), processors.TimeStamper("iso")]
    shown = processors.KeyValueRenderer(key_order=["timestamp", "event"])
    last: list[Any] = [stdlib.ProcessorFormatter.remove_processors_meta, shown]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=last))
    logging.basicConfig(handlers=[handler], level=logging.DEBUG)


def say_lines(lines: Iterable[str], boards: Sequence[str]) -> None:
    """Say some lines, and which sealed boards do not count what was recorded."""
    for line in lines:
        say(line)
    if boards:
        from forecast_ledger.replay.reading.board_notes import unmoved_note

        say(unmoved_note(boards, ""))


@contextmanager
def summed_refusals(errors: str) -> "Iterator[Callable[[InputLocation, Refused], None]]":
    """Yield a function that prints the first refusals of each code; at the end, print how many there are of each.

    As JSON every refusal is printed, one object a line, and no text.
    """
    from forecast_ledger.replay.writing.append import RefusalSummary

    if errors == "json":
        yield refusal_printer(errors)
        return
    summary = RefusalSummary(refusal_printer(errors))
    yield summary
    for line in summary.lines():
        say(line)
