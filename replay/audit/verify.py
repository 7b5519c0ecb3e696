"""Verify a log from any source, read-only: every row, every decision and every prize."""

import tomllib
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from forecast_ledger.ledger.auditing.audit import Audit
from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Corrupt, NewerVersion, Refused
from forecast_ledger.ledger.core.version import code_version
from forecast_ledger.ledger.model.events import TextKept
from forecast_ledger.ledger.model.log import Checkpoint, Recorded, unseal_row
from forecast_ledger.ledger.model.mismatch import mismatch, money_text, short_repr
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.projections.core.table import PART_ROWS
from forecast_ledger.projections.facts import from_log
from forecast_ledger.projections.facts.columns import Facts, Payment
from forecast_ledger.replay.checking.row_checker import INDEPENDENT_CHECKS, ROW_CHECKS, RowChecker
from forecast_ledger.replay.checking.side_by_side import Beginning, verified_beginning
from forecast_ledger.replay.reading.log import AsOf, Cut, Log, OnProgress

if TYPE_CHECKING:
    from forecast_ledger.replay.reading.replay import TableSummary

# --- Checkpoints: small texts to keep elsewhere, against which a log can be checked later.


LARGEST_CHECKPOINT = 2**20  # bytes of a checkpoint
_MADE = "`forecast-ledger checkpoint LOG > FILE` makes one, which is a text of TOML"
_HEAD = "# `forecast-ledger verify LOG --checkpoint FILE` checks a log against this\n"
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class SavedTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The version of a projection, and the rows and digest of its table.

    part_rows: if the digest is made of those of parts, the rows of each part; else 0.
    """

    version: int
    rows: int
    digest: Digest
    part_rows: int = 0


class SavedCheckpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A ledger as of a log position. recorded_at: by its clock, None if it is empty; code: the package's version."""

    ledger: str
    log_position: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    digest: Digest
    recorded_at: str | None = None
    code: str
    projections: dict[str, SavedTable]


class CheckpointDifferences(NamedTuple):
    """The differences between a log and a checkpoint, and the projections that this version cannot compare."""

    apart: list[str]
    skipped: list[str]


def take_checkpoint(log: Log) -> SavedCheckpoint:
    """Return the checkpoint of a log as of its cut, with every projection that is built by default.

    Raises, first that applies: Refused (as_of is not an instant, or beyond the log), Unavailable, Corrupt.
    """
    from forecast_ledger.replay.reading.replay import summarize_tables  # noqa: PLC0415 - late: all tables

    cut = log.cut()
    facts = log.facts(cut)
    return checkpoint_at(cut, log.name, summarize_tables(facts))


def checkpoint_at(cut: Cut, name: str, tables: "Mapping[str, TableSummary]") -> SavedCheckpoint:
    """Return the checkpoint at a cut that was reached. name: of the ledger. tables: built as of there.

    Raises Refused: the log ends before the cut.
    """
    position, digest = cut.reached()
    return SavedCheckpoint(
        ledger=name,
        log_position=position,
        digest=digest,
        recorded_at=None if cut.recorded_at is None else values.format_instant(cut.recorded_at),
        code=code_version(),
        projections={each: _saved(summary) for each, summary in tables.items()},
    )


def _saved(table: "TableSummary") -> SavedTable:
    return SavedTable(**table._asdict(), part_rows=PART_ROWS if table.rows > PART_ROWS else 0)


def checkpoint_text(checkpoint: SavedCheckpoint) -> str:
    """Return the checkpoint as TOML; the same log and code give the same text."""
    plain = msgspec.to_builtins(checkpoint)
    tables = plain.pop("projections")
    lines = [f"{field} = {_toml_value(value)}" for field, value in plain.items()]
    lines += ["", "[projections]"]
    for name, table in tables.items():
        lines.append(f"{name} = {{ {', '.join(f'{field} = {_toml_value(value)}' for field, value in table.items())} }}")
    return _HEAD + "\n".join(lines) + "\n"


def read_checkpoint(text: bytes) -> SavedCheckpoint:
    """Read a checkpoint. Raises ValueError: not a checkpoint."""
    if len(text) > LARGEST_CHECKPOINT:
        raise ValueError(f"longer than {LARGEST_CHECKPOINT} bytes; {_MADE}")
    try:
        return msgspec.convert(tomllib.loads(text.decode("utf-8-sig")), SavedCheckpoint)
    except UnicodeDecodeError:
        raise ValueError(f"it is not a text; {_MADE}") from None
    except (ValueError, RecursionError) as error:  # not TOML, or wrong fields
        raise ValueError(str(error) or type(error).__name__) from None


def compare_with_checkpoint(checkpoint: SavedCheckpoint, log: Log) -> CheckpointDifferences:
    """Compare a log as of the checkpoint's position with the checkpoint. Raises Unavailable, Corrupt."""
    try:
        now = take_checkpoint(log._replace(as_of=checkpoint.log_position))
    except Refused as refused:
        return CheckpointDifferences(
            [f"the checkpoint was made at log position {checkpoint.log_position}; {refused.detail}"], []
        )
    apart = [
        f"{field}: the checkpoint has {was}, the log has {here}"
        for field, was, here in (
            ("ledger", checkpoint.ledger, now.ledger),
            ("digest", checkpoint.digest, now.digest),
            ("recorded_at", checkpoint.recorded_at, now.recorded_at),
        )
        if was != here
    ]
    skipped = []
    for projection, was in checkpoint.projections.items():
        here = now.projections.get(projection)
        if here is None or (here.version, here.part_rows) != (was.version, was.part_rows):
            what = "none" if here is None else f"version {here.version}"
            if here is not None and here.version == was.version:
                what = "another digest of tables with as many rows"
            skipped.append(
                f"{projection}: the checkpoint has version {was.version}, this code has {what}; "
                f"code {checkpoint.code} can compare"
            )
        elif here != was:
            rows = "" if here.rows == was.rows else f" ({was.rows} rows in the checkpoint, {here.rows} in the log)"
            apart.append(
                f"projection {projection}: the checkpoint has digest {was.digest}, the log has {here.digest}{rows}"
            )
    return CheckpointDifferences(apart, skipped)


def _toml_value(value: str | int) -> str:
    """Return a number, or a text quoted as in both TOML and JSON."""
    return msgspec.json.encode(value).decode()


CHECKS = {
    "positions": "log positions are 1, 2, 3 … without gaps",
    "digests": "each row matches its digest and follows the row before",
    "schemas": "each row is an event of a known type, in canonical bytes",
    "clock": "recorded_at never decreases",
    "store": "the store's files are as they were written, and its column of types agrees with the events",
    "decided": "each command, rebuilt from its events and decided again, leads to the same events, and occurs once",
    "payouts": "each prize paid is the amount on the contest's sealed board, and every winner is paid",
}
_ORDER = list(CHECKS)
_READING = "decided"  # the check that stops reading at the first event that fails


class CheckResult(NamedTuple):
    """The result of a check: ok, damaged, differs or not checked; its log position, and an explanation."""

    check: str
    found: str
    position: int | None
    says: str


class Verification(NamedTuple):
    """The end of a verification, and the result of each check that was asked for.

    damage: the damage that these checks, and the checks that they need, found. differences: what can be read, but
    differs from what it should be. Both are in order of log position.
    """

    head: Checkpoint
    results: list[CheckResult]
    damage: list[Corrupt]
    differences: list[Corrupt]


@checked("name", "as_of")
def verify(
    location: str | PathLike[str], name: str = "main", as_of: AsOf = None, on_progress: OnProgress = lambda _: None
) -> Checkpoint:
    """Run every check on a log as of a cut, and return the end of the log.

    Raises, first that applies: Refused (as_of is not an instant, or beyond the log), Unavailable, Corrupt (the first
    damage, else the first difference).

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import commands, open_ledger, verify
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     verify(f"{folder}/season.db").position
    1
    """
    report = run_checks(Log(location, name, as_of, on_progress))
    for wrong in report.damage + report.differences:
        raise wrong
    return report.head


def run_checks(log: Log, only: Collection[str] = (), *, side_by_side: bool = False) -> Verification:
    """Run all checks, or only some, on a log as of its cut, and return their results.

    A check that fails does not stop the others, except those that need it. side_by_side: a long log is checked by every
    processor; only for a program whose main module can be imported again. Raises, first that applies: KeyError (no such
    check), Refused (as_of is not an instant, or beyond the log), Unavailable.
    """
    checks = sorted({*(only or CHECKS)}, key=_ORDER.index)
    cut, cut_short = log.cut(), isinstance(log.as_of, int)
    differences, told = list[Corrupt](), ""
    with log.opened() as store:
        begun = _begun(log, store, cut, side_by_side=side_by_side, files="store" in checks)
        rows, audit = begun.rows, begun.audit
        pages = cut.pages(rows.pages(store.pages_with_types(after=rows.last.position)))
        damage = rows.damage
        if not {*checks} <= {*ROW_CHECKS}:
            facts = _read_facts(begun, _decided_pages(begun, pages, cut_short=cut_short))
            told = _first_forms(audit)
            if facts is not None and "payouts" in checks and not _stops(rows):
                differences = check_payouts(facts, cut_short=cut_short)
        deque(pages, maxlen=0)
    if not damage:
        cut.reached()
    results = [_result(check, rows, differences) for check in checks]
    results = [
        result._replace(says=result.says + told) if (result.check, result.found) == (_READING, "ok") else result
        for result in results
    ]
    needed = {*checks, *(() if {*checks} <= {*ROW_CHECKS} else ("positions", "digests", "schemas", _READING))}
    reported = [wrong for check, wrong in damage.items() if check in needed]
    return Verification(rows.last, results, sorted(reported, key=_log_order), differences)


def _begun(log: Log, store: StoredLog, cut: Cut, *, side_by_side: bool, files: bool) -> Beginning:
    """Return the beginning of a log that is verified side by side, or by its columns; an empty one if it is not.

    files: check the store's own files, and note their faults.
    """

    def text(position: int) -> TextKept:
        return _text(store, position)

    beginning = verified_beginning(log, store, Audit(text), files=files, side_by_side=side_by_side)
    if beginning is not None:
        return beginning
    rows = RowChecker(cut)
    for fault in store.faults() if files else ():
        rows.note(Corrupt(fault.position or 1, fault.message, "store"))
    return Beginning(rows, Audit(text), Facts(), [])


def _text(store: StoredLog, position: int) -> TextKept:
    """Return the text at a log position."""
    event = unseal_row(store.at([position])[0], position).event
    assert isinstance(event, TextKept)  # noqa: S101 - as when it was first read
    return event


def _log_order(damage: Corrupt) -> tuple[int, int]:
    return damage.position, _ORDER.index(damage.check)


def _decided_pages(
    begun: Beginning, pages: Iterator[Sequence[Recorded]], *, cut_short: bool
) -> Iterator[Sequence[Recorded]]:
    """Yield the rows of all pages, after their commands are decided; not the last one where damage stops the reading.

    cut_short: whether the log may end within its last command.
    """
    for page in pages:
        if decided := begun.audit.decide(page):
            yield decided
    if not _stops(begun.rows):
        yield from begun.audit.pages(iter(()), cut=cut_short)


def _stops(rows: RowChecker) -> list[Corrupt]:
    """Return the damage behind which rows are not read, or not decided."""
    stops = [wrong for name, wrong in rows.damage.items() if name not in INDEPENDENT_CHECKS]
    return stops if rows.stopped is None else [*stops, rows.stopped]


def _read_facts(begun: Beginning, pages: Iterator[Sequence[Recorded]]) -> Facts | None:
    """Return the facts of a beginning and the events after it; if there is damage, note it and return None.

    Without the forecasts, which fit if they are decided again, if nothing needs them: no prize is paid, which would be
    compared with the board, and no command is cut, of which nothing is decided.
    """
    try:
        after = from_log.filed_pages(begun.facts, pages)
        if begun.audit.is_cut or any(contest.paid for contest in begun.facts.contests.values()):
            return from_log.facts_after(begun.facts, [*begun.columns, *after], ())
    except Corrupt as wrong:
        begun.rows.damage.setdefault(_READING, Corrupt(wrong.position, wrong.args[1], _READING))
        return None
    return begun.facts


def _result(check: str, rows: RowChecker, differences: list[Corrupt]) -> CheckResult:
    if check in rows.damage:
        damage = rows.damage[check]
        if isinstance(damage, NewerVersion):
            return CheckResult(check, "not checked", damage.position, f"{damage.args[1]}; {damage.remedy}")
        return CheckResult(check, "damaged", damage.position, str(damage.args[1]))
    if check == "payouts" and differences:
        first, more = differences[0], len(differences) - 1
        return CheckResult(check, "differs", first.position, f"{first.args[1]}{f' (and {more} more)' if more else ''}")
    if (stops := _stops(rows)) and (check not in ROW_CHECKS or rows.stopped):
        first = min(stops, key=_log_order)
        return CheckResult(check, "not checked", first.position, f"the check {first.check} stops the reading there")
    if check == "clock" and rows.imported:
        says = f"{CHECKS[check]}; imported up to log position {rows.imported}, after that by this ledger's clock"
        return CheckResult(check, "ok", None, says)
    return CheckResult(check, "ok", None, CHECKS[check])


def _first_forms(audit: Audit) -> str:
    """Say how many commands are known by the first form, and how many of them were not compared; empty if none are."""
    (count, last), lossy, listed = audit.first_forms, audit.lossy_commands, audit.lossy_positions
    if not count:
        return ""
    says = f"; {_commands(count)}, up to log position {last}, are known by digests from before the normal form"
    if lossy:
        positions = ", ".join(map(str, listed)) + f" and {lossy - len(listed):,} more" * (lossy > len(listed))
        says += f"; {_commands(lossy)} had fields that the events do not record, and were not compared: {positions}"
    return says


def _commands(count: int) -> str:
    return "1 command" if count == 1 else f"{count:,} commands"


def check_payouts(facts: Facts, *, cut_short: bool) -> list[Corrupt]:
    """Return each payment that differs from the sealed board, and each winner who is not paid.

    cut_short: whether the log may end between two payments of a contest, which are recorded together.
    """
    if not any(contest.paid for contest in facts.contests.values()):
        return []
    from forecast_ledger.projections.tables.catalogue import Projections  # noqa: PLC0415 - late: all tables

    projections, wrong = Projections(facts), list[Corrupt]()
    for name, contest in facts.contests.items():
        if contest.paid:
            worth = {prize.participant: prize.prize for prize in projections.prizes(name)}
            last = max(payment.position for payment in contest.paid.values())
            whole = not (cut_short and last == facts.as_of)
            unpaid = {winner: Payment(last, 0) for winner in worth if whole and winner not in contest.paid}
            for winner, (position, amount) in (contest.paid | unpaid).items():
                if amount != worth.get(winner, 0):
                    expected = f"{money_text(worth.get(winner, 0))} for {short_repr(winner)}, as on the sealed board"
                    detail = f"contest {short_repr(name)}: {mismatch(expected, money_text(amount))}"
                    wrong.append(Corrupt(position, detail, "payouts"))
    return sorted(wrong, key=lambda damage: damage.position)  # stable: the winner that the row pays stays first
