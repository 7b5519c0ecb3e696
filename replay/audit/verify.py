"""Verify a log from any source, read-only: every row, every decision and every prize."""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from os import PathLike
from typing import NamedTuple

from forecast_ledger.ledger.auditing.audit import Audit
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model.events import TextKept
from forecast_ledger.ledger.model.log import Checkpoint, Recorded, unseal_row
from forecast_ledger.ledger.model.mismatch import mismatch, money_text, short_repr
from forecast_ledger.ledger.storing.store import Store
from forecast_ledger.projections.facts import from_log
from forecast_ledger.projections.facts.columns import Facts, Payment
from forecast_ledger.projections.tables.projection import Projections
from forecast_ledger.replay.audit.row_checks import INDEPENDENT_CHECKS, ROW_CHECKS, RowChecker
from forecast_ledger.replay.reading.log import AsOf, Log, Watch

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
    location: str | PathLike[str], name: str = "main", as_of: AsOf = None, watch: Watch = lambda _: None
) -> Checkpoint:
    """Run every check on a log as of a cut, and return the end of the log.

    Raises, first that applies: Refused (as_of is not an instant, or beyond the log), Unavailable, Corrupt (the first
    damage, else the first difference).

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import commands, open, verify
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     verify(f"{folder}/season.db").position
    1
    """
    report = run_checks(Log(location, name, as_of, watch))
    for wrong in report.damage + report.differences:
        raise wrong
    return report.head


def run_checks(log: Log, only: Collection[str] = ()) -> Verification:
    """Run all checks, or only some, on a log as of its cut, and return their results.

    A check that fails does not stop the others, except those that need it. Raises, first that applies: KeyError (no
    such check), Refused (as_of is not an instant, or beyond the log), Unavailable.
    """
    checks = sorted({*(only or CHECKS)}, key=_ORDER.index)
    cut, cut_short = log.cut(), isinstance(log.as_of, int)
    rows, differences, told = RowChecker(cut), list[Corrupt](), ""
    with log.opened() as store:
        for fault in store.faults() if "store" in checks else ():
            rows.note(Corrupt(fault.position or 1, fault.message, "store"))
        pages = cut.pages(rows.pages(store.pages_with_types()))
        damage = rows.damage
        if not {*checks} <= {*ROW_CHECKS}:
            audit = Audit(lambda position: _text(store, position))
            facts = _read_facts(audit.pages(pages, cut=cut_short), damage)
            told = _first_forms(audit)
            if facts is not None and "payouts" in checks and not damage.keys() - INDEPENDENT_CHECKS:
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


def _text(store: Store, position: int) -> TextKept:
    """Return the text at a log position."""
    event = unseal_row(store.at([position])[0], position).event
    assert isinstance(event, TextKept)  # noqa: S101 - as when it was first read
    return event


def _log_order(damage: Corrupt) -> tuple[int, int]:
    return damage.position, _ORDER.index(damage.check)


def _read_facts(pages: Iterator[Sequence[Recorded]], damage: dict[str, Corrupt]) -> Facts | None:
    """Return the facts of the events; if there is damage, note it and return None."""
    try:
        facts = from_log.facts(pages)
        Projections(facts).standing  # noqa: B018 - checks that no forecasts go back in time
    except Corrupt as wrong:
        damage.setdefault(_READING, Corrupt(wrong.position, wrong.args[1], _READING))
        return None
    return facts


def _result(check: str, rows: RowChecker, differences: list[Corrupt]) -> CheckResult:
    if check in rows.damage:
        return CheckResult(check, "damaged", rows.damage[check].position, str(rows.damage[check].args[1]))
    if check == "payouts" and differences:
        first, more = differences[0], len(differences) - 1
        return CheckResult(check, "differs", first.position, f"{first.args[1]}{f' (and {more} more)' if more else ''}")
    stops = [wrong for name, wrong in rows.damage.items() if name not in INDEPENDENT_CHECKS]
    if stops and (check not in ROW_CHECKS or rows.stopped):
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
        places = ", ".join(map(str, listed)) + f" and {lossy - len(listed):,} more" * (lossy > len(listed))
        says += f"; {_commands(lossy)} had fields that the events do not record, and were not compared: {places}"
    return says


def _commands(count: int) -> str:
    return "1 command" if count == 1 else f"{count:,} commands"


def check_payouts(facts: Facts, *, cut_short: bool) -> list[Corrupt]:
    """Return each payment that differs from the sealed board, and each winner who is not paid.

    cut_short: whether the log may end between two payments of a contest, which are recorded together.
    """
    projections = Projections(facts)
    wrong: list[Corrupt] = []
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
