"""A working paper: the verdict on a log, its contests and their money, and the entries that ask for a second look."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from os import PathLike, fspath
from pathlib import Path
from shlex import join
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.replay.audit.verify import Verification, run_checks
from forecast_ledger.replay.explain.diff import Diff
from forecast_ledger.replay.papers.evidence import (
    HOUR,
    MOST_REVOCATIONS,
    Evidence,
    Revocation,
    collect,
    lateness,
    moved,
)
from forecast_ledger.replay.reading.event_text import event_type, sentence
from forecast_ledger.replay.reading.replay import AsOf, Replay, Watch, replay
from forecast_ledger.replay.reading.version import code_version
from forecast_ledger.replay.report.chart_parts import count, rows_of
from forecast_ledger.replay.report.sections import contest_facts

MOST_CHANGES = 20  # rows of leaderboards that are listed for a revocation
DIGESTS = ("questions", "scores", "leaderboard", "prizes", "arena_leaderboard", "journal", "trial_balance")
_FINE = (("day", 24 * HOUR), ("hour", HOUR), ("minute", HOUR // 60), ("second", 10**6))


class Sheet(NamedTuple):
    """A table of a paper. numbers: the columns that are aligned to the right."""

    caption: str
    columns: list[str]
    rows: list[list[str]]
    numbers: frozenset[str] = frozenset()


class Section(NamedTuple):
    """A section of a paper: sentences, names with values, and tables. level: 2, or 3 within the section above."""

    title: str
    words: list[str]
    facts: list[tuple[str, str]]
    sheets: list[Sheet]
    level: int = 2


class Paper(NamedTuple):
    """A working paper. command: makes it again."""

    title: str
    verdict: str
    sections: list[Section]
    command: str


class Audit(NamedTuple):
    """A working paper, and the verification that it begins with."""

    paper: Paper
    verification: Verification


def working_paper(  # noqa: PLR0913 - the arguments with a default are keywords
    log: str | PathLike[str],
    out: str | PathLike[str],
    *,
    late: int = HOUR,
    name: str = "main",
    as_of: AsOf = None,
    watch: Watch = lambda _: None,
) -> Audit:
    """Check a log and return the working paper of it. out: where it will be written; the paper names it.

    late: how long after the instant that it claims an entry may be recorded, µs. If the log is damaged, the paper says
    where, and nothing else. log, name, as_of, watch: as in `replay`. Raises, first that applies: Refused (as_of is not
    an instant, or beyond the log), Unavailable.
    """
    verification = run_checks(log, name, as_of, watch=watch)
    position = verification.head.position
    command = ["forecast-ledger", "audit", Path(fspath(log)).name, Path(out).name]
    command += ["--as-of", str(position)] * (not verification.damage)
    command += ["--late", f"{late // 10**6}s"] * (late != HOUR) + ["--name", name] * (name != "main")
    sections = [_checks(verification)]
    if not verification.damage:
        at = position if position else None
        season, evidence = replay(log, name, at, watch), collect(log, name, at, late, watch)
        sections += [_checkpoint(season, name), *_contests(season.projections), _trial_balance(season)]
        sections += [_late(evidence, late), _revocations(evidence, lambda each: moved(log, name, at, each))]
        sections.append(_exclusions(evidence))
    sections += [_unchecked(verification), _signature()]
    title = f"Working paper: {Path(fspath(log)).name}" + f", ledger {name}" * (name != "main")
    return Audit(Paper(title, verdict(verification), sections, join(command)), verification)


def verdict(verification: Verification) -> str:
    """Say in a sentence what the checks found."""
    head, wrong = verification.head.position, len(verification.differences)
    if verification.damage:
        return f"The log is damaged: {verification.damage[0]}. No number of it can be relied on."
    if not head:
        return "The log has no events."
    if wrong:
        return f"The log can be read, but there {'is' if wrong == 1 else 'are'} {count(wrong, 'finding')}."
    return f"All {len(verification.results)} checks of {count(head, 'event')} found no fault."


def _checks(verification: Verification) -> Section:
    rows = [[each.check, each.found, _text(each.position), each.says] for each in verification.results]
    sheet = Sheet("Checks", ["check", "found", "log position", "says"], rows)
    findings = [str(each) for each in (*verification.damage, *verification.differences)]
    return Section("What was checked", findings, [], [sheet])


def _checkpoint(season: Replay, name: str) -> Section:
    end = season.checkpoint
    facts = [("ledger", name), ("log position", str(end.position)), ("digest", end.digest), ("code", code_version())]
    rows = [
        [each, str(table.version), f"{len(table):,}", table.digest()]
        for each in DIGESTS
        for table in [season.table(each)]
    ]
    columns = ["table", "version", "rows", "SHA-256"]
    sheet = Sheet("Digests of tables", columns, rows, frozenset({"version", "rows"}))
    words = ["Whoever has this position and digest can find out whether a log is the same up to there."]
    return Section("Checkpoint", words, facts, [sheet])


def _contests(projections: Projections) -> Iterator[Section]:
    names = sorted(projections.facts.contests)
    yield Section("Contests", [] if names else ["There is none."], [], [])
    boards, prizes = projections.table("leaderboard"), projections.table("prizes")
    accounts = projections.table("arena_leaderboard")
    for name in names:
        [row] = rows_of(projections, "contests", name)
        facts = [*contest_facts(projections, row), ("Digest of the board", boards.only("contest", name).digest())]
        if name in projections.traded:
            facts.append(("Digest of the accounts", accounts.only("contest", name).digest()))
        rows = [*prizes.only("contest", name).rows()]
        owed = [[each["participant"], *_prize(each)] for each in rows]
        sheet = Sheet("Prizes", ["participant", "prize", "paid", "owed"], owed, frozenset({"prize", "paid", "owed"}))
        yield Section(row["title"] or name, [], facts, [sheet] if rows else [], level=3)


def _prize(row: dict[str, Any]) -> list[str]:
    return [row["prize"], row["paid"], str(Decimal(row["prize"]) - Decimal(row["paid"]))]


def _trial_balance(season: Replay) -> Section:
    columns = ["contest", "account", "postings", "added", "taken", "balance"]
    rows = [[str(row[name]) for name in columns] for row in season.table("trial_balance").rows()]
    if not rows:
        return Section("Trial balance", ["No money has moved."], [], [])
    sums: dict[str, Decimal] = {}
    for contest, *_, balance in rows:
        sums[contest] = sums.get(contest, Decimal(0)) + Decimal(balance)
    wrong = [f"The balances of {contest} add up to {total}, and not to 0." for contest, total in sums.items() if total]
    words = wrong or ["The balances of each contest add up to 0."]
    return Section("Trial balance", words, [], [Sheet("Trial balance", columns, rows, frozenset(columns[2:]))])


def _late(evidence: Evidence, allowed: int) -> Section:
    """Return how many entries were recorded late, ahead of the instant that they claim, or imported; and the worst."""
    late, ahead, imported = evidence.late, evidence.ahead, evidence.imported
    after = f"recorded more than {duration(allowed)} after the instant {_claimed(late)}"
    words = [f"{_entries(late)} of {evidence.events:,}, {after}."]
    if ahead:
        words.append(f"{_entries(ahead)}, recorded before the instant {_claimed(ahead)}.")
    if imported:
        words.append(f"{_entries(imported)}, imported with a time of receipt that the ledger's clock did not see.")
    columns = ["log position", "type", "claims", "recorded", "late by", "says"]
    rows = [
        [
            str(each.position),
            event_type(each.event),
            format_instant(each.event.at),
            format_instant(each.recorded_at),
            duration(lateness(each)),
            sentence(each.event),
        ]
        for each in evidence.worst
    ]
    sheets = [Sheet(f"The worst {len(rows)}", columns, rows, frozenset({"late by"}))] * bool(rows)
    return Section("Late and back-dated entries", words, [], sheets)


def _claimed(number: int) -> str:
    return "it claims" if number == 1 else "they claim"


def _entries(number: int) -> str:
    return count(number, "entry", "entries")


def _revocations(evidence: Evidence, effect: Callable[[Revocation], Diff]) -> Section:
    """Return the answers that were revoked. effect: returns what changed on leaderboards."""
    revoked = evidence.revocations
    if not revoked:
        return Section("Answers that were revoked", ["None."], [], [])
    rows = [[str(each.position), each.question, each.reason, _text(each.again)] for each in revoked]
    sheets = [Sheet("Answers that were revoked", ["log position", "question", "reason", "answered again at"], rows)]
    for each in revoked[:MOST_REVOCATIONS]:
        sheets += _changes(each, effect(each))
    words = ["Below are the ranks, scores and prizes that differ between the revoked answer and the next one, or now."]
    if len(sheets) == 1:
        words = ["No rank, score or prize differs between a revoked answer and the next one, or now."]
    if len(revoked) > MOST_REVOCATIONS:
        words.append(f"Only the first {MOST_REVOCATIONS} of {len(revoked):,} were followed.")
    return Section("Answers that were revoked, and what they moved", words, [], sheets)


def _changes(revocation: Revocation, found: Diff) -> list[Sheet]:
    """Return the ranks, scores and prizes that differ between two points of the log."""
    columns = ["contest", "participant", "column", "before", "after"]
    rows = [
        [change.difference.key["contest"], change.difference.key["participant"], column, *map(_text, pair)]
        for change in found.changes
        for column, pair in change.difference.columns.items()
        if column in {"rank", "score", "prize"}
    ]
    if not rows:
        return []
    caption = f"Moved from log position {revocation.position - 1} to {found.new.position}"
    shown = rows[:MOST_CHANGES]
    if len(shown) < len(rows):
        caption += f": the first {len(shown)} of {len(rows):,} numbers"
    return [Sheet(caption, columns, shown, frozenset({"before", "after"}))]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _exclusions(evidence: Evidence) -> Section:
    columns = ["log position", "contest", "participant", "level", "reason"]
    rows = [
        [str(each.position), *(str(getattr(each.event, name)) for name in columns[1:])] for each in evidence.exclusions
    ]
    words = [] if rows else ["Nobody was excluded."]
    return Section("Exclusions", words, [], [Sheet("Exclusions", columns, rows)] * bool(rows))


def _unchecked(verification: Verification) -> Section:
    words = [
        "Whether the newest events were removed: only a checkpoint that was kept elsewhere shows that.",
        "Whether answers, quotes and attestations are true, and who stands behind an id.",
        "Whether the clock of the ledger was right; recorded times are compared only with one another.",
        "Whether amounts that the log says were paid have reached anybody.",
    ]
    words += [f"{each.check}: {each.says}" for each in verification.results if each.found == "not checked"]
    return Section("What was not checked", words, [], [])


def _signature() -> Section:
    return Section("Signature", [], [(name, "." * 40) for name in ("Prepared by", "Date", "Signature")], [])


def duration(micros: int) -> str:
    """Return a length of time in words, in its largest unit and the next one.

    >>> duration(90 * 10**6), duration(-26 * HOUR), duration(1_500)
    ('1 minute 30 seconds', '-1 day 2 hours', '0.0015 seconds')
    """
    rest, sign = abs(micros), "-" * (micros < 0)
    for place, (unit, size) in enumerate(_FINE[:-1]):
        if rest >= size:
            smaller, below = _FINE[place + 1]
            parts = [
                count(rest // size, unit),
                *([count(rest % size // below, smaller)] if rest % size // below else []),
            ]
            return sign + " ".join(parts)
    seconds = f"{rest / 10**6:.6f}".rstrip("0").rstrip(".")
    return f"{sign}{seconds} second{'s' * (seconds != '1')}"
