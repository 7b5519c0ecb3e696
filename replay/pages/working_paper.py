"""A working paper: the verdict on a log, its contests and their money, and the entries that ask for a second look."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from os import PathLike, fspath
from pathlib import Path
from shlex import join, quote
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.values import format_count, format_instant
from forecast_ledger.ledger.core.version import code_version
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import LEVELS, RuleSet
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.audit.verify import (
    CheckpointDifferences,
    CheckResult,
    SavedCheckpoint,
    Verification,
    compare_with_checkpoint,
    run_checks,
)
from forecast_ledger.replay.pages.contest_facts import contest_facts
from forecast_ledger.replay.pages.findings import (
    DECIDED,
    HOUR,
    WORST,
    Correction,
    Findings,
    Move,
    Revocation,
    answer_text,
    collect,
    decided_by,
    lateness,
    moves,
)
from forecast_ledger.replay.pages.lookalikes import lookalikes, plain_id
from forecast_ledger.replay.reading.blocks import Block, Heading, Number, Pairs, Table
from forecast_ledger.replay.reading.board_notes import (
    BOARDS,
    Subsequent,
    changed_answers,
    changed_rows,
    changed_since,
    present_id,
    seal_notes,
    sentences,
    subsequent_events,
)
from forecast_ledger.replay.reading.descriptions import money
from forecast_ledger.replay.reading.event_text import event_type, sentence
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import Replay
from forecast_ledger.replay.reference.rule_fields import fields_of

MOST_REVOCATIONS = 100  # that are listed
MOST_CORRECTIONS = 200  # of which it is worked out what they moved
MOST_LISTED = 100  # annulments, moved times, exclusions
MOST_CHANGED = 100  # rows of a sealed board that are listed
MOST_CHANGES = 20  # rows of boards that are listed for a correction
DIGESTS = ("questions", "scores", "leaderboard", "prizes", "arena_leaderboard", "journal", "trial_balance")
_ORDER = "those of answers that a sealed board rests on first, then the newest"
_FINE = (("day", 24 * HOUR), ("hour", HOUR), ("minute", HOUR // 60), ("second", 10**6))


class Section(NamedTuple):
    """A section of a paper: sentences, names with values, and tables. level: 2, or 3 within the section above."""

    title: str
    words: list[str]
    facts: list[tuple[str, str]]
    sheets: list[Table]
    level: int = 2

    def blocks(self) -> list[Block]:
        """Return the section as blocks of a document."""
        return [Heading(self.title, self.level), *self.words, *[Pairs(self.facts)] * bool(self.facts), *self.sheets]


class Paper(NamedTuple):
    """A working paper. command: makes it again."""

    title: str
    verdict: str
    sections: list[Section]
    command: str


class Audit(NamedTuple):
    """A working paper, and the verification that it begins with.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Audit, append, audit, open_ledger
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     audited = audit(f"{folder}/season.db", f"{folder}/paper.md")
    >>> isinstance(audited, Audit), audited.verification.damage
    (True, [])
    """

    paper: Paper
    verification: Verification


def working_paper(
    log: Log,
    out: str | PathLike[str],
    *,
    late: int = HOUR,
    checkpoint: SavedCheckpoint | None = None,
    contest: str | None = None,
) -> Audit:
    """Check a log and return the working paper of it. out: where it will be written; the paper names it.

    late: how long after the instant that it claims an entry may be recorded, µs. If the log is damaged, the paper says
    where, and nothing else. checkpoint: an earlier one to compare the log with. contest: the whole log is checked, and
    the rest is about this contest alone. Raises, first that applies: Refused (as_of is not an instant, or beyond the
    log; unknown_contest), Unavailable.
    """
    verification = run_checks(log)
    if checkpoint is not None and not verification.damage:
        verification = _compared(verification, compare_with_checkpoint(checkpoint, log), checkpoint.log_position)
    position, shown = verification.head.position, Path(redacted(fspath(log.location))).name
    command = ["forecast-ledger", "audit", shown, Path(out).name]
    command += ["--as-of", str(position)] * (not verification.damage)
    command += ["--late", f"{late // 10**6}s"] * (late != HOUR) + ["--name", log.name] * (log.name != "main")
    command += ["--checkpoint", "FILE"] * (checkpoint is not None)
    command += [] if contest is None else ["--contest", contest]
    sections, says = [_checks(verification)], verdict(verification)
    if not verification.damage:
        facts, findings = collect(log, position, late, contest)
        season = Replay(verification.head, Projections(facts))
        names = sorted(facts.contests) if contest is None else [contest]
        changed = {name: what for name in names if (what := changed_since(facts, facts.contests[name]).what())}
        answers = (answer for name in changed for answer in changed_answers(facts, facts.contests[name]))
        sealed = {answer.first.position for answer in answers}
        corrected = _followed(findings.corrections, sealed)
        effects = [
            (correction, [each for each in board_moves if each.contest in names])
            for correction, board_moves in zip(corrected, moves(log, corrected), strict=True)
        ]
        since = {name: subsequent for name in names if (subsequent := subsequent_events(facts, facts.contests[name]))}
        if changed:
            verb = "board rests" if len(changed) == 1 else "boards rest"
            whats = " or ".join(dict.fromkeys(each for what in changed.values() for each in what.split(" and ")))
            says += f" {len(changed):,} sealed {verb} on {whats} that changed since."
        if since:
            sections.append(_subsequent(season.projections, [*changed], since))
        sections += [
            _checkpoint(season, log.name),
            *_contests(season.projections, names),
            _trial_balance(season, names),
        ]
        sections += [_late(findings, facts), _revocations(findings, effects, sealed)]
        sections += [Section(DECIDED, *decided_by(findings, _listed)), _annulments(findings), _moved_times(findings)]
        sections += [_exclusions(findings, facts), _alike(season, names)]
    sections += [_unchecked(verification), _signature()]
    title = f"Working paper: {shown}" + f", ledger {log.name}" * (log.name != "main")
    title += "" if contest is None else f", contest {contest}"
    return Audit(Paper(title, says, sections, join(command)), verification)


def _compared(verification: Verification, differences: CheckpointDifferences, position: int) -> Verification:
    """Add the comparison with an earlier checkpoint, at its log position, to the checks."""
    says = "; ".join(
        differences.apart or [f"the log as of {position} matches the earlier checkpoint", *differences.skipped]
    )
    result = CheckResult("checkpoint", "differs" if differences.apart else "ok", position, says)
    wrong = [Corrupt(position, difference, "checkpoint") for difference in differences.apart]
    return verification._replace(
        results=[*verification.results, result], differences=[*verification.differences, *wrong]
    )


def verdict(verification: Verification) -> str:
    """Say in a sentence what the checks found."""
    head, wrong = verification.head.position, len(verification.differences)
    if verification.damage:
        return f"The log is damaged: {verification.damage[0]}. No number of it can be relied on."
    if not head:
        return "The log has no events."
    if wrong:
        return f"The log can be read, but there {'is' if wrong == 1 else 'are'} {format_count(wrong, 'finding')}."
    return f"All {len(verification.results)} checks of {format_count(head, 'event')} found no fault."


def _checks(verification: Verification) -> Section:
    rows = [[each.check, each.found, _text(each.position), each.says] for each in verification.results]
    sheet = _sheet("Checks", ["check", "found", "log position", "says"], rows)
    findings = [str(each) for each in (*verification.damage, *verification.differences)]
    return Section("What was checked", findings, [], [sheet])


def _subsequent(projections: Projections, names: Sequence[str], since: Mapping[str, list[Subsequent]]) -> Section:
    """Return what is recorded about sealed contests since, and what changed ones would be now, with what was paid.

    names: of those whose board rests on what changed. since: the events of each contest.
    """
    rests = "What is listed here rests on answers, forecasts or ids that no longer count."
    words = [f"A sealed board does not change. {rests}" if names else "No board rests on what is recorded since."]
    listed = [(name, *each) for name, recorded in since.items() for each in recorded]
    caption = "Recorded after a seal"
    if len(listed) > MOST_LISTED:
        caption += f": the newest {MOST_LISTED} of {len(listed):,}"
        listed = sorted(listed, key=itemgetter(1))[-MOST_LISTED:]
    told = [[name, str(position), f"after {after}", says] for name, position, after, says in sorted(listed)]
    sheets = [_sheet(caption, ["contest", "log position", "when", "says"], told)]
    for name in names:
        words.append(sentences(seal_notes(projections, name)[:1]))
        moved, paid = changed_rows(projections, name), projections.facts.contests[name].paid
        rows = [
            [
                name,
                each.participant,
                *(_moved(row, column) for column in BOARDS["leaderboard"] for row in (each.sealed, each.now)),
                money(paid[each.participant].amount if each.participant in paid else 0),
            ]
            for each in moved
        ]
        if not rows:
            words.append(f"With what is recorded now, every rank, prize and score of {name} would be the same.")
            continue
        columns = [f"{column} {when}" for column in BOARDS["leaderboard"] for when in ("sealed", "now")] + ["paid"]
        caption = f"{name}, sealed and with the answers of now"
        sheets.append(_cut(_sheet(caption, ["contest", "participant", *columns], rows, frozenset(columns)), name))
    return Section("Subsequent events", words, [], sheets)


def _cut(sheet: Table, contest: str) -> Table:
    """Return the first rows of the differences of a board; the caption says how many there are and how to see all."""
    if len(sheet.rows) <= MOST_CHANGED:
        return sheet
    told = f"{sheet.caption}: the first {MOST_CHANGED} of {len(sheet.rows):,} rows"
    shown = f"`forecast-ledger what-if LOG --unsealed --contest {quote(contest)} --show leaderboard` prints all"
    return sheet._replace(caption=f"{told}; {shown}", rows=sheet.rows[:MOST_CHANGED])


def _checkpoint(season: Replay, name: str) -> Section:
    end = season.checkpoint
    facts = [("ledger", name), ("log position", str(end.position)), ("digest", end.digest), ("code", code_version())]
    rows = [
        [each, str(table.version), f"{len(table):,}", table.digest()]
        for each in DIGESTS
        for table in [season.table(each)]
    ]
    columns = ["table", "version", "rows", "SHA-256"]
    sheet = _sheet("Digests of tables", columns, rows, frozenset({"version", "rows"}))
    words = ["Whoever has this position and digest can find out whether a log is the same up to there."]
    return Section("Checkpoint", words, facts, [sheet])


def _contests(projections: Projections, names: Sequence[str]) -> Iterator[Section]:
    yield Section("Contests", [] if names else ["There is none."], [], [])
    boards, prizes = projections.table("leaderboard"), projections.table("prizes")
    accounts = projections.table("arena_leaderboard")
    for name in names:
        [row] = projections.rows_of("contests", name)
        facts = [*contest_facts(projections, row), ("Digest of the board", boards.only("contest", name).digest())]
        if name in projections.traded:
            facts.append(("Digest of the accounts", accounts.only("contest", name).digest()))
        rows = [*prizes.only("contest", name).rows()]
        owed = [[each["participant"], *_prize(each, sealed=row["sealed_at"] is not None)] for each in rows]
        words = ["The board is not sealed: prizes can change, and nothing is owed yet."]
        sheet = _sheet("Prizes", ["participant", "prize", "paid", "owed"], owed, frozenset({"prize", "paid", "owed"}))
        words = words if rows and row["sealed_at"] is None else []
        sheets = [*[sheet] * bool(rows), _rules(projections.facts.contests[name].opened.rules)]
        yield Section(row["title"] or name, words, facts, sheets, level=3)


def _rules(rules: RuleSet) -> Table:
    """Return the fields of a rule set that differ from their defaults, and all those of its trading rules."""
    columns = ["field", "value", "meaning"]
    rows = [
        [_text(each[column]) for column in columns]
        for each in fields_of(rules)
        if each["value"] != each["default"] or each["field"].startswith("trading.")
    ]
    told = "Rules that differ from their defaults"
    return _sheet(told if rules.trading is None else f"{told}, and rules of trading", columns, rows)


def _prize(row: dict[str, Any], *, sealed: bool) -> list[str]:
    return [row["prize"], row["paid"], str(Decimal(row["prize"]) - Decimal(row["paid"])) if sealed else ""]


def _trial_balance(season: Replay, names: Sequence[str]) -> Section:
    columns = ["contest", "account", "postings", "added", "taken", "balance"]
    table = season.table("trial_balance")
    rows = [[str(row[name]) for name in columns] for row in table.rows() if row["contest"] in names]
    if not rows:
        return Section("Trial balance", ["No money has moved."], [], [])
    sums: dict[str, Decimal] = {}
    for contest, *_, balance in rows:
        sums[contest] = sums.get(contest, Decimal(0)) + Decimal(balance)
    wrong = [f"The balances of {contest} add up to {total}, and not to 0." for contest, total in sums.items() if total]
    words = wrong or ["The balances of each contest add up to 0."]
    return Section("Trial balance", words, [], [_sheet("Trial balance", columns, rows, frozenset(columns[2:]))])


def _late(findings: Findings, facts: Facts) -> Section:
    """Return how many entries were recorded late, ahead of the instant that they claim, or imported; and the worst."""
    late, ahead, imported = findings.late, findings.ahead, findings.imported
    after = f"recorded more than {duration(findings.allowed)} after the instant {_claimed(late)}"
    words = [f"{_entries(late)} of {findings.events:,}, {after}."]
    if ahead:
        words.append(f"{_entries(ahead)}, recorded before the instant {_claimed(ahead)}.")
    if imported:
        words.append(f"{_entries(imported)}, imported with a time of receipt that the ledger's clock did not see.")
    if findings.after_close:
        told = f"{format_count(findings.after_close, 'forecast')}, recorded at or after the close of the question"
        words.append(f"{told}, and {'claims' if findings.after_close == 1 else 'claim'} to be made before it.")
    sheets = [_after_close(findings)] * bool(findings.after_close)
    columns = ["log position", "type", "claims", "recorded", "late by", "says"]
    rows = [
        [str(each.position), event_type(each.event), *_times(each, lateness(each)), _says(each, findings)]
        for each in findings.worst
    ]
    told = f"The worst {len(rows)}" + " besides" * bool(findings.after_close)
    told += "; `log LOG` lists every entry with both instants" * (len(rows) == WORST)
    sheets += [_sheet(told, columns, rows, frozenset({"late by"}))] * bool(rows)
    counts = [
        [name, f"{each.late:,}", f"{each.ahead:,}", duration(each.furthest)]
        for name, each in sorted(findings.by_type.items())
    ]
    numbers = ["late", "ahead", "farthest by"]
    sheets += [_sheet("By type of entry", ["type", *numbers], counts, frozenset(numbers))] * bool(counts)
    columns = ["contest", "late", "ahead", "after the close", "farthest by"]
    rows_by_contest = [
        [name, f"{each.late:,}", f"{each.ahead:,}", f"{each.after_close:,}", duration(each.furthest)]
        for name, each in findings.by_contest(facts).items()
    ]
    sheets += [_sheet("By contest", columns, rows_by_contest, frozenset(columns[1:]))] * bool(rows_by_contest)
    return Section("Late and back-dated entries", words, [], sheets)


def _after_close(findings: Findings) -> Table:
    """Return the forecasts that were recorded at or after the close of their question, the latest first."""
    columns = ["log position", "claims", "recorded", "after the close by", "says"]
    rows = [
        [str(each.position), *_times(each, late), _says(each, findings)] for late, each in findings.last_after_close
    ]
    caption = "Forecasts recorded at or after the close"
    if len(rows) < findings.after_close:
        caption += f": the latest {len(rows)} of {findings.after_close:,}; `log LOG --type forecast_made` lists all"
    return _sheet(caption, columns, rows, frozenset(columns[3:4]))


def _times(recorded: Recorded, late: int) -> list[str]:
    return [format_instant(recorded.event.at), format_instant(recorded.recorded_at), duration(late)]


def _says(recorded: Recorded, findings: Findings) -> str:
    return sentence(recorded.event, findings.names.of)


def _claimed(number: int) -> str:
    return "it claims" if number == 1 else "they claim"


def _entries(number: int) -> str:
    return format_count(number, "entry", "entries")


def _followed(corrections: Sequence[Correction], sealed: set[int]) -> list[Correction]:
    """Return the corrections whose effects are worked out, in log order.

    sealed: log positions of revocations of answers that sealed boards rest on.
    """
    matters = {each for each in corrections for position in sealed if each.first <= position <= each.last}
    chosen = sorted(corrections, key=lambda each: (each not in matters, -each.first))[:MOST_CORRECTIONS]
    return sorted(chosen)


def _revocations(findings: Findings, effects: Sequence[tuple[Correction, list[Move]]], sealed: set[int]) -> Section:
    """Return the answers that were revoked. effects: corrections, and what each moved on boards.

    sealed: as in `_followed`.
    """
    revoked, corrections = findings.revocations, findings.corrections
    if not revoked:
        return Section("Answers that were revoked", ["None."], [], [])
    columns = ["log position", "question", "answer", "reason", "next answer"]
    ordered = sorted(revoked, key=lambda each: (each.recorded.position not in sealed, -each.recorded.position))
    rows = [_revoked(each, findings) for each in ordered[:MOST_REVOCATIONS]]
    sheets = [_sheet("Answers that were revoked", columns, rows)]
    for correction, board_moves in effects:
        sheets += _changes(correction, board_moves)
    words = [
        "Revocations and new answers that are recorded without a break are one correction.",
        "Rows of boards are listed whose rank, prize or total differs from just before a correction to just after it.",
    ]
    if len(sheets) == 1:
        followed = " in the corrections that were followed" * (len(effects) < len(corrections))
        words.append(f"No rank, prize or total differs{followed}.")
    if len(rows) < len(revoked):
        words.append(
            f"Only {len(rows)} of {len(revoked):,} are listed: {_ORDER}; `log LOG --type resolution_revoked` lists all."
        )
    if len(effects) < len(corrections):
        words.append(
            f"Only {len(effects)} of {len(corrections):,} corrections were followed: {_ORDER}; "
            "`diff LOG @FROM @TO`, from just before a revocation to the new answer, follows any other."
        )
    return Section("Answers that were revoked, and what they moved", words, [], sheets)


def _revoked(revocation: Revocation, findings: Findings) -> list[str]:
    event: Any = revocation.recorded.event
    again = "" if revocation.again is None else answer_text(revocation.again, findings)
    return [
        str(revocation.recorded.position),
        event.question,
        answer_text(revocation.undone, findings),
        event.reason,
        again,
    ]


def _changes(correction: Correction, board_moves: Sequence[Move]) -> Iterator[Table]:
    """Yield a table for each kind of board of which a correction moved rows."""
    for board, names in BOARDS.items():
        rows = [
            [
                each.contest,
                each.participant,
                *(_moved(row, name) for name in names for row in (each.before, each.after)),
            ]
            for each in board_moves
            if each.table == board
        ]
        if not rows:
            continue
        moved = [f"{name} {when}" for name in names for when in ("before", "after")]
        caption = f"Moved on {board} from log position {correction.first - 1} to {correction.last}"
        if len(rows) > MOST_CHANGES:
            see = f"`diff LOG @{correction.first - 1} @{correction.last}` prints all"
            caption += f": the first {MOST_CHANGES} of {len(rows):,} rows; {see}"
        yield _sheet(caption, ["contest", "participant", *moved], rows[:MOST_CHANGES], frozenset(moved))


def _moved(row: Mapping[str, Any] | None, name: str) -> str:
    return "not listed" if row is None else _text(row[name])


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _annulments(findings: Findings) -> Section:
    """Return the questions that were annulled, with their reasons."""
    columns = ["log position", "question", "trades", "reason", "in force"]
    rows = []
    for annulled in findings.annulments:
        event: Any = annulled.event
        in_force = findings.answer(event.question) is annulled
        rows.append([str(annulled.position), event.question, event.policy, event.reason, "yes" if in_force else "no"])
    words = [] if rows else ["No question was annulled."]
    return Section("Questions that were annulled", words, [], _listed("Annulments", columns, rows, "question_annulled"))


def _moved_times(findings: Findings) -> Section:
    """Return the times of questions that were moved, and the questions that were closed early."""
    columns = ["log position", "at", "recorded", "end before", "says"]
    rows = [
        [
            str(each.position),
            format_instant(each.event.at),
            format_instant(each.recorded_at),
            format_instant(ended),
            _says(each, findings) + ", closed early" * isinstance(each.event, events.QuestionClosed),
        ]
        for each, ended in findings.moves
    ]
    words = [] if rows else ["No times were moved, and no question was closed early."]
    sheets = _listed("Moved times", columns, rows, "question_rescheduled", "question_closed")
    return Section("Moved times", words, [], sheets)


def _listed(caption: str, columns: list[str], rows: list[list[str]], *types: str) -> list[Table]:
    """Return rows about events of these types, in log order if they are many, as a table, the newest of many."""
    if len(rows) > MOST_LISTED:
        see = " and ".join(f"`log LOG --type {each}`" for each in types)
        caption += f": the newest {MOST_LISTED} of {len(rows):,}; {see} {'list' if len(types) > 1 else 'lists'} all"
    return [_sheet(caption, columns, rows[-MOST_LISTED:])] * bool(rows)


def _exclusions(findings: Findings, facts: Facts) -> Section:
    columns = ["log position", "contest", "participant", "level", "reason", "in force"]
    told = [(each.position, event) for each in findings.exclusions for event in [_exclusion(each)]]
    if len(told) <= MOST_LISTED:
        told.sort(key=lambda each: (each[1].contest, LEVELS.index(each[1].level), each[0]))
    who = {position: present_id(facts, event.participant, facts.contests[event.contest].as_of(facts))[0]
           for position, event in told}  # fmt: skip
    last = {(event.contest, who[position]): position for position, event in sorted(told, key=itemgetter(0))}
    rows = [
        [str(position), event.contest, event.participant, event.level, event.reason,
         "yes" if last[event.contest, who[position]] == position else "replaced"]
        for position, event in told
    ]  # fmt: skip
    counts = Counter((event.contest, event.level) for position, event in told
                     if last[event.contest, who[position]] == position)  # fmt: skip
    words = [f"In force in {contest}: {count:,} as {level}." for (contest, level), count in counts.items()]
    sheets = _listed("Exclusions", columns, rows, "participant_excluded")
    return Section("Exclusions", words or ["Nobody was excluded."], [], sheets)


def _exclusion(recorded: Recorded) -> events.ParticipantExcluded:
    assert isinstance(recorded.event, events.ParticipantExcluded)  # noqa: S101 - it was collected as one
    return recorded.event


def _alike(season: Replay, names: Sequence[str]) -> Section:
    """Return the ids that look alike: of contests, and in each contest of participants, questions and outcomes."""
    facts = season.projections.facts
    people = facts.participant_codes.labels
    question_codes = facts.forecasts.question
    named: list[tuple[str, str, Iterable[str]]] = [("", "contest", facts.contests)]
    for name, contest in ((name, facts.contests[name]) for name in names):
        questions = [facts.questions[code] for code in contest.entries]
        made_by = facts.forecasts.named(contest.as_of(facts)).participant
        forecasters = np.unique(made_by[np.isin(question_codes, [*contest.entries])]).tolist()
        named.append((name, "participant", {*contest.enrolments, *(people[code] for code in forecasters)}))
        named.append((name, "question", [each.question for each in questions]))
        named += [(name, f"outcome of {each.question}", each.outcomes) for each in questions]
    rows = [[name, what, ", ".join(map(plain_id, group))] for name, what, ids in named for group in lookalikes(ids)]
    words = [] if rows else ["None in the same contest."]
    return Section("Ids that look alike", words, [], [_sheet("Ids", ["contest", "of a", "ids"], rows)] * bool(rows))


def _unchecked(verification: Verification) -> Section:
    compared = any(each.check == "checkpoint" for each in verification.results)
    rewritten = (
        "Whether somebody rewrote the log as a whole, with new digests, or it is another history: "
        "only a checkpoint that was kept elsewhere shows that (--checkpoint)."
    )
    removed = (
        "Whether the newest events were removed: only a checkpoint that was kept elsewhere shows that (--checkpoint)."
    )
    later = (
        "Whether events after the log position of the checkpoint were rewritten or removed: only a later checkpoint "
        "shows that (`forecast-ledger checkpoint` makes one to keep elsewhere)."
    )
    words = [
        *([later] if compared else [rewritten, removed]),
        "Whether answers, quotes, attestations and evidence are true, and who stands behind an id or a name.",
        "Whether the clock of the ledger was right; recorded times are compared only with one another.",
        "Whether amounts that the log says were paid have reached anybody.",
    ]
    words += [f"{each.check}: {each.says}" for each in verification.results if each.found == "not checked"]
    if verification.damage and (first := verification.damage[0].position) > 1:
        words.append(f"The events before the damage: --as-of {first - 1} makes a paper about them.")
    return Section("What was not checked", words, [], [])


def _signature() -> Section:
    return Section("Signature", [], [(name, "." * 40) for name in ("Prepared by", "Date", "Signature")], [])


def duration(micros: int) -> str:
    """Return a length of time in words, in its largest unit and the next one.

    >>> duration(90 * 10**6), duration(-26 * HOUR), duration(1_500)
    ('1 minute 30 seconds', '-1 day 2 hours', '0.0015 seconds')
    """
    remaining, sign = abs(micros), "-" * (micros < 0)
    for index, (unit, size) in enumerate(_FINE[:-1]):
        if remaining >= size:
            smaller, below = _FINE[index + 1]
            parts = [
                format_count(remaining // size, unit),
                *([format_count(remaining % size // below, smaller)] if remaining % size // below else []),
            ]
            return sign + " ".join(parts)
    seconds = f"{remaining / 10**6:.6f}".rstrip("0").rstrip(".")
    return f"{sign}{seconds} second{'s' * (seconds != '1')}"


def _sheet(caption: str, columns: Sequence[str], rows: list[list[str]], numbers: Collection[str] = ()) -> Table:
    """Return a table of a paper. numbers: the columns that are aligned to the right."""
    return Table([Number(column) if column in numbers else column for column in columns], rows, caption)
