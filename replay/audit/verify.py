"""Checking a log that somebody else may have written: read-only eyes on every row, and on what the rows add up to."""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from os import PathLike
from typing import NamedTuple

from forecast_ledger.ledger.auditing.audit import Audit
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model.events import TextKept
from forecast_ledger.ledger.model.log import Checkpoint, Recorded, unseal_row
from forecast_ledger.ledger.model.mismatch import mismatch, money_text, short_repr
from forecast_ledger.ledger.storing.store import Store
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.facts.columns import Facts, Payment
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.replay.audit.row_checks import ASIDE, ROWS, Rows
from forecast_ledger.replay.reading.replay import AsOf, Cut, Watch, opened

CHECKS = {
    "positions": "1, 2, 3 … without a gap, each row in its place",
    "digests": "each row matches its digest and follows the row before",
    "schemas": "each row is an event of a known type, in its canonical bytes",
    "clock": "recorded_at never decreases",
    "store": "an SQLite file passes SQLite's own integrity_check, and the type beside each row is its event's",
    "decided": "each command, rebuilt from its events and decided again, leads to the same events, and is there once",
    "payouts": "each prize paid is what the contest's sealed board is worth to the winner, and no winner is left out",
}
_ORDER = list(CHECKS)
_READING = "decided"  # the check that stops the reading of events at the first that fails


class Result(NamedTuple):
    """What a check found: ok, damaged, differs, or not checked; where, and what it says."""

    check: str
    found: str
    position: int | None
    says: str


class Verification(NamedTuple):
    """Where a verification ended, and what each check that was asked for found.

    damage: what the log is damaged by, also in checks that those asked for rest on. differences: what can be read and
    is not what it should be. Both in order of log position.
    """

    head: Checkpoint
    results: list[Result]
    damage: list[Corrupt]
    differences: list[Corrupt]


def verify(
    location: str | PathLike[str], name: str = "main", as_of: AsOf = None, watch: Watch = lambda _: None
) -> Checkpoint:
    """Run every check over a log as of a cut; returns where the reading ended.

    Raises, first that applies: Refused (as_of is no instant, or beyond the log), Unavailable, Corrupt (the first
    damage, else the first difference).

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import commands, open, verify
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     verify(f"{folder}/season.db").position
    1
    """
    found = verified(location, name, as_of, watch=watch)
    for wrong in found.damage + found.differences:
        raise wrong
    return found.head


def verified(
    location: str | PathLike[str],
    name: str = "main",
    as_of: AsOf = None,
    only: Collection[str] = (),
    watch: Watch = lambda _: None,
) -> Verification:
    """Run checks over a log as of a cut, all or only those named, and say what each found.

    A check goes on where another fails, but for those that rest on it. Raises, first that applies: KeyError (no such
    check), Refused (as_of is no instant, or beyond the log), Unavailable.
    """
    asked = sorted({*(only or CHECKS)}, key=_ORDER.index)
    cut = Cut(as_of)
    rows, differences, rounded = Rows(cut), list[Corrupt](), 0
    with opened(location, name) as store:
        for fault in store.faults() if "store" in asked else ():
            rows.note(Corrupt(fault.position or 1, fault.says, "store"))
        pages = cut.pages(rows.pages(store.labelled()), watch)
        damage = rows.found
        if not {*asked} <= {*ROWS}:
            audit = Audit(lambda position: _text(store, position))
            found = _read(audit.pages(pages, cut=isinstance(as_of, int)), damage)
            rounded = audit.rounded
            if found is not None and "payouts" in asked and not damage.keys() - ASIDE:
                differences = payouts(found, cut_short=isinstance(as_of, int))
        deque(pages, maxlen=0)
    if not damage:
        cut.reached()
    results = [_result(check, rows, differences) for check in asked]
    if rounded and "decided" in asked:
        results = [_more_said(result, rounded) for result in results]
    needed = {*asked, *(() if {*asked} <= {*ROWS} else ("positions", "digests", "schemas", _READING))}
    told = [each for check, each in damage.items() if check in needed]
    return Verification(rows.last, results, sorted(told, key=_place), differences)


def _text(store: Store, position: int) -> TextKept:
    """The text that is kept at a log position."""
    event = unseal_row(store.at([position])[0], position).event
    assert isinstance(event, TextKept)  # noqa: S101 - it was when it was read
    return event


def _place(damage: Corrupt) -> tuple[int, int]:
    return damage.position, _ORDER.index(damage.check)


def _read(pages: Iterator[Sequence[Recorded]], damage: dict[str, Corrupt]) -> Facts | None:
    """What the events say, up to the first damage, which is noted."""
    try:
        found = facts(pages)
        Projections(found).standing  # noqa: B018 - it holds that nobody's forecasts go back in time
    except Corrupt as wrong:
        damage.setdefault(_READING, Corrupt(wrong.position, wrong.args[1], _READING))
        return None
    return found


def _result(check: str, rows: Rows, differences: list[Corrupt]) -> Result:
    if check in rows.found:
        return Result(check, "damaged", rows.found[check].position, str(rows.found[check].args[1]))
    if check == "payouts" and differences:
        first, more = differences[0], len(differences) - 1
        return Result(check, "differs", first.position, f"{first.args[1]}{f' (and {more} more)' if more else ''}")
    stops = [wrong for name, wrong in rows.found.items() if name not in ASIDE]
    if stops and (check not in ROWS or rows.stopped):
        first = min(stops, key=_place)
        return Result(check, "not checked", first.position, f"{first.check}: the reading stops there")
    return Result(check, "ok", None, CHECKS[check])


def _more_said(result: Result, rounded: int) -> Result:
    """What deciding again has found, with how many digests it could not rebuild."""
    if (result.check, result.found) != (_READING, "ok"):
        return result
    commands = "1 command" if rounded == 1 else f"{rounded} commands"
    return result._replace(says=f"{result.says}; {commands} said more than the events keep")


def payouts(found: Facts, *, cut_short: bool) -> list[Corrupt]:
    """Each payment that the sealed board does not say, and the payments after which a winner is left unpaid.

    cut_short: whether the reading may have ended between the payments of one contest, which are recorded together.
    """
    projections = Projections(found)
    wrong: list[Corrupt] = []
    for name, contest in found.contests.items():
        if contest.paid:
            worth = {prize.participant: prize.prize for prize in projections.prizes(name)}
            last = max(payment.position for payment in contest.paid.values())
            whole = not (cut_short and last == found.as_of)
            unpaid = {winner: Payment(last, 0) for winner in worth if whole and winner not in contest.paid}
            for winner, (position, amount) in (contest.paid | unpaid).items():
                if amount != worth.get(winner, 0):
                    expected = f"{money_text(worth.get(winner, 0))} for {short_repr(winner)}, as the sealed board says"
                    said = f"contest {short_repr(name)}: {mismatch(expected, money_text(amount))}"
                    wrong.append(Corrupt(position, said, "payouts"))
    return sorted(wrong, key=lambda each: each.position)  # of one position, the first: whom the row itself pays
