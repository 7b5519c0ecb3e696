"""What a reader of a board should know and no table says: other ids, answers that changed since, what is left out."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.projections.facts.columns import (
    Contest,
    Facts,
    Forecasts,
    Rename,
    codes_of,
    enrolled_as,
    moved,
)
from forecast_ledger.projections.facts.settlements import Settlement
from forecast_ledger.projections.scores.scored_questions import scored_questions
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.reading.event_text import answer_text


def renames_of(facts: Facts, participant: str, as_of: int) -> list[Rename]:
    """Return the renames by which records of other ids count as a participant's, as of a log position, in log order."""
    code, renames = facts.participant_codes.codes.get(participant, -1), _up_to(facts, as_of)
    codes = codes_of(renames, code)
    return [rename for rename in renames if rename.old in codes and rename.new in codes]


def ids_of(facts: Facts, participant: str, as_of: int) -> set[str]:
    """Return every id under which the records of a participant are, as of a log position."""
    labels = facts.participant_codes.labels
    return {participant, *(labels[rename.old] for rename in renames_of(facts, participant, as_of))}


def says_ids(facts: Facts, participant: str, as_of: int) -> list[str]:
    """Say which records of other ids count as a participant's as of a log position; [] if none."""
    labels = facts.participant_codes.labels
    return [
        f"since log position {rename.position}, what is recorded of {labels[rename.old]} counts as of "
        f"{labels[rename.new]}"
        for rename in renames_of(facts, participant, as_of)
    ]


def says_present_id(facts: Facts, participant: str, as_of: int) -> str:
    """Say which id a participant has as of a log position, if it is another one; "" if it is not."""
    now, since = present_id(facts, participant, as_of)
    return "" if now == participant else f"{participant} is {now} since log position {since}"


def present_id(facts: Facts, participant: str, as_of: int) -> tuple[str, int]:
    """Return which id a participant has as of a log position, and since which; 0 if it never had another one."""
    labels, now, since = facts.participant_codes.labels, participant, 0
    for rename in _up_to(facts, as_of):
        if labels[rename.old] == now:
            now, since = labels[rename.new], rename.position
    return now, since


def _renamed(facts: Facts, contest: Contest) -> dict[int, str]:
    """Return which participants of a sealed contest have other ids since, in words by log position."""
    if contest.sealed is None or not facts.renames or facts.renames[-1].position <= contest.sealed.position:
        return {}
    labels, sealed = facts.participant_codes, contest.sealed.position
    rows = np.isin(facts.forecasts.question, [*contest.entries]) & (facts.forecasts.position <= sealed)
    people = {*facts.forecasts.rows(np.flatnonzero(rows)).named(sealed).participant.tolist()}
    people |= {labels.codes[who] for who in {*contest.enrolments, *contest.levels} if who in labels.codes}
    notes = dict[int, str]()
    for rename in facts.renames:
        if rename.position > sealed and rename.old in people:
            people.add(rename.new)
            notes[rename.position] = f"{labels.labels[rename.old]} is {labels.labels[rename.new]}"
    return notes


def with_ids_of_now(facts: Facts, contest: Contest) -> Contest:
    """Return a sealed contest with what is recorded of its participants under the ids that they have now."""
    labels, sealed = facts.participant_codes.labels, contest.as_of(facts)
    enrolments, levels = contest.enrolments, contest.levels
    for rename in facts.renames:
        if rename.position > sealed:
            old, new = labels[rename.old], labels[rename.new]
            enrolments, levels = enrolled_as(enrolments, old, new), moved(levels, old, new)
    return replace(contest, enrolments=enrolments, levels=levels)


def _up_to(facts: Facts, as_of: int) -> list[Rename]:
    return [rename for rename in facts.renames if rename.position <= as_of]


# Table -> what a changed answer can move of a row; the first two say that it moved in consequence.
BOARDS = {"leaderboard": ("rank", "prize", "score"), "arena_leaderboard": ("rank", "total")}
MOST_SEALED = 2  # contests of which everything is said
MOST_SAID = 5  # answers, and rows of boards, in a sentence
Row = dict[str, Any]


class ChangedAnswer(NamedTuple):
    """An answer that a sealed board rests on, and what the log says since.

    counted: the settlement that the board uses. first: the first settlement or revocation since. now: the last one.
    """

    question: str
    counted: Settlement
    first: Settlement
    now: Settlement

    def words(self, facts: Facts) -> str:
        """Say which answer counted, what became of it, and what the answer is now, with their log positions."""
        revoked = f", revoked by #{self.first.position}" * (not self.first.settles)
        told = f"{self.question}: {answer_words(facts, self.counted)}{revoked}"
        return told + f", now {answer_words(facts, self.now)}" * (self.now is not self.first or self.first.settles)


class ChangedRow(NamedTuple):
    """A row of a sealed leaderboard, and the same row if it were not sealed; None if it is not on the board."""

    participant: str
    sealed: Row | None
    now: Row | None

    def words(self) -> str:
        """Say what would differ.

        >>> row = {"rank": 2, "prize": "1.00", "score": "3.0"}
        >>> ChangedRow("ada", row, row | {"rank": 1, "prize": "9.00"}).words()
        'ada: rank 1 for 2, prize 9.00 for 1.00'
        """
        if self.sealed is None or self.now is None:
            return f"{self.participant}: {'on the board' if self.sealed is None else 'not on the board'}"
        names = [name for name in BOARDS["leaderboard"] if self.sealed[name] != self.now[name]]
        told = [f"{name} {_value(self.now[name])} for {_value(self.sealed[name])}" for name in names]
        return f"{self.participant}: {', '.join(told)}"


def changed_answers(facts: Facts, contest: Contest) -> list[ChangedAnswer]:
    """Return the answers on which a sealed board rests and which changed since, in the order of the changes."""
    if contest.sealed is None or not facts.settlements or facts.settlements[-1].position <= contest.sealed.position:
        return []
    counted: dict[int, Settlement] = {}  # the last up to the seal, by question
    since: dict[int, list[Settlement]] = {}
    for settlement in facts.settlements:
        if settlement.question in contest.entries:
            if settlement.position <= contest.sealed.position:
                counted[settlement.question] = settlement
            elif settlement.question in counted and counted[settlement.question].settles:
                since.setdefault(settlement.question, []).append(settlement)
    return [
        ChangedAnswer(facts.questions[code].question, counted[code], later[0], later[-1])
        for code, later in since.items()
    ]


def _restated(facts: Facts, contest: Contest) -> dict[int, str]:
    """Return whose forecasts on questions of a sealed board were restated since, in words by log position."""
    if contest.sealed is None:
        return {}
    people, sealed = facts.participant_codes.labels, contest.sealed.position
    forecasts = dict[int, str]()
    for code in facts.retractions.keys() & contest.entries.keys():
        for position, who in facts.retractions[code]:  # of several ids, the present one first
            if position > sealed:
                forecasts.setdefault(position, f"{people[who]} on {facts.questions[code].question}")
    return dict(sorted(forecasts.items()))


class Subsequent(NamedTuple):
    """An event that a sealed board does not count. after: what it came after, the seal or the payment of prizes."""

    position: int
    after: str
    says: str


def subsequent_events(facts: Facts, contest: Contest) -> list[Subsequent]:
    """Return what is recorded about a sealed contest after its seal, in log order.

    Answers, revocations and annulments of its questions, forecasts on them that were restated, and new ids of its
    participants. The first payment of a prize is the payment.
    """
    if contest.sealed is None:
        return []
    notes = {
        each.position: f"{facts.questions[each.question].question}: {_answered(facts, each)}"
        for each in facts.settlements
        if each.question in contest.entries and each.position > contest.sealed.position
    }
    restated = _restated(facts, contest)
    notes |= {at: f"forecasts of {words} are restated" for at, words in restated.items()} | _renamed(facts, contest)
    paid = min((payment.position for payment in contest.paid.values()), default=facts.as_of)
    return [Subsequent(at, "the payment" if at > paid else "the seal", notes[at]) for at in sorted(notes)]


def unmoved(facts: Facts, after: int, names: Collection[str] | None = None) -> list[str]:
    """Return the contests, by default of all, whose sealed boards do not count some event after a log position."""
    contests = facts.contests
    return [
        name
        for name in sorted(contests if names is None else names)
        if any(each.position > after for each in subsequent_events(facts, contests[name]))
    ]


def unmoved_note(names: Sequence[str], command: str) -> str:
    """Say that sealed boards do not change. command: the one that shows them as if they were not sealed."""
    shown = quote(names[0]) if len(names) == 1 else "CONTEST"
    boards = listed("", names, MOST_SAID)
    return (
        f"sealed boards do not count these events: {boards}; to see one as if it were not sealed: "
        f"forecast-ledger what-if LOG {command}--unsealed --contest {shown}"
    )


def _answered(facts: Facts, answer: Settlement) -> str:
    """Say what a settlement does."""
    words = answer_words(facts, answer).rpartition(" (#")[0]
    return f"the answer is {'revoked' if not answer.settles else words}" if words != "annulled" else words


class Changed(NamedTuple):
    """What a sealed board rests on and changed since: answers; forecasts and ids in words, with log positions."""

    answers: list[ChangedAnswer]
    restated: list[str]
    renamed: list[str]

    def what(self, answers: str = "answers") -> str:
        """Return which of them changed, "" if none did. answers: the word for these."""
        return " and ".join(kind for kind, each in zip((answers, "forecasts", "ids"), self, strict=True) if each)


def changed_since(facts: Facts, contest: Contest) -> Changed:
    """Return what a sealed board rests on and changed since, in log order; nothing of one that is not sealed."""
    both = _restated(facts, contest), _renamed(facts, contest)
    restated, renamed = ([f"{words} (#{position})" for position, words in each.items()] for each in both)
    return Changed(changed_answers(facts, contest), restated, renamed)


def counted_answers(facts: Facts, contest: Contest) -> dict[str, str]:
    """Return what a sealed board counts of each question whose answer changed or came since, in words, by question."""
    if contest.sealed is None:
        return {}
    known = {each.question: answer_words(facts, each.counted) for each in changed_answers(facts, contest)}
    new = {facts.questions[each.question].question for each in facts.settlements
           if each.question in contest.entries and each.position > contest.sealed.position}  # fmt: skip
    return {question: known.get(question, "not answered yet") for question in sorted(new)}


def unsealed(projections: Projections, name: str, *, alone: bool = False) -> Projections:
    """Return the projections as if a contest were not sealed: with the answers, forecasts and ids that there are now.

    alone: without the other contests. Accounts stay as they are: positions of a sealed contest are not settled again.
    """
    facts = projections.facts
    others = {} if alone else facts.contests
    opened = replace(with_ids_of_now(facts, facts.contests[name]), sealed=None)
    return Projections(replace(facts, contests=others | {name: opened}))


def changed_rows(projections: Projections, name: str) -> list[ChangedRow]:
    """Return the rows of a sealed leaderboard that would differ if it were not sealed, in the order of the board."""
    old, new = (_rows(each, name) for each in (projections, unsealed(projections, name, alone=True)))
    both = [ChangedRow(who, old.get(who), new.get(who)) for who in dict.fromkeys([*old, *new])]
    return [row for row in both if _compared(row.sealed) != _compared(row.now)]


def seal_notes(projections: Projections, name: str, participant: str | None = None) -> list[str]:
    """Say which answers, forecasts and ids that a sealed board rests on changed since, and what it would be now.

    Nothing if nothing changed. participant: only the row of this one.
    """
    facts, contest = projections.facts, projections.facts.contests[name]
    changed, restated, renamed = since = changed_since(facts, contest)
    if contest.sealed is None or not any(since):
        return []
    which = "an answer that changed since" if len(changed) == 1 else f"{len(changed):,} answers that changed since"
    rests = [f"{which}: {_some([each.words(facts) for each in changed])}"] if changed else []
    rests += [f"forecasts that were restated since: {_some(restated)}"] if restated else []
    rests += [f"ids of participants that changed since: {_some(renamed)}"] if renamed else []
    notes = [
        f"the board of {name} was sealed at log position {contest.sealed.position} with {', and with '.join(rests)}"
    ]
    rows = [each for each in changed_rows(projections, name) if participant in {None, each.participant}]
    seen = "" if participant is None else f" for {participant}"
    words = _some([each.words() for each in rows]) if rows else f"rank, prize and score would be the same{seen}"
    notes.append(f"with the {since.what()} of now, if {name} were not sealed: {words}")
    if name in projections.traded:
        notes.append(f"accounts in {name} stay as they were settled")
    see = f"forecast-ledger what-if LOG --unsealed --contest {quote(name)} --show leaderboard"
    return [*notes, f"to see every difference: {see}"]


def every_seal_note(projections: Projections, names: Collection[str] | None = None) -> list[str]:
    """Say of contests, by default all of them, what `seal_notes` says; of more than a few, only which they are."""
    contests = projections.facts.contests
    every = sorted(contests) if names is None else names
    changed = [name for name in every if any(changed_since(projections.facts, contests[name]))]
    if len(changed) <= MOST_SEALED:
        return [note for name in changed for note in seal_notes(projections, name)]
    told = f"{len(changed):,} contests were sealed with answers, forecasts or ids that changed since: "
    told += listed("", changed, MOST_SAID)
    see = "forecast-ledger leaderboard LOG CONTEST, and of all contests: forecast-ledger audit LOG paper.md"
    return [told, f"to see what changed: {see}"]


def sentences(notes: Sequence[str]) -> str:
    """Return notes as sentences.

    >>> sentences(["rain: yes", "more"])
    'Rain: yes. More.'
    """
    return " ".join(f"{note[:1].upper()}{note[1:]}." for note in notes)


def answer_words(facts: Facts, answer: Settlement) -> str:
    """Return an answer in words, with its log position."""
    words = "annulled" if answer.settles else "no answer"
    if answer.outcome >= 0 or answer.payouts:
        names = facts.questions[answer.question].outcomes
        words = answer_text(answer.outcome, answer.value, answer.payouts, names)
    return f"{words} (#{answer.position})"


def _some(words: Sequence[str]) -> str:
    """Return the first of some clauses, and how many there are besides."""
    more = f"; and {len(words) - MOST_SAID:,} more" * (len(words) > MOST_SAID)
    return "; ".join(words[:MOST_SAID]) + more


def _rows(projections: Projections, name: str) -> dict[str, Row]:
    rows = projections.rows_of("leaderboard", name)
    return {row["participant"]: row for row in rows}


def _compared(row: Row | None) -> list[Any]:
    return [] if row is None else [row[name] for name in BOARDS["leaderboard"]]


def _value(value: Any) -> str:
    return "none" if value is None else str(value)


def left_out(projections: Projections, name: str) -> list[str]:
    """Say how many questions and participants of a contest are not in the numbers of its board, and why, and whether it
    has a pool that its rules never pay; [] if there is nothing to say.

    >>> from forecast_ledger import commands, open_ledger, replay
    >>> times = {"at": "2026-03-01T00:00:00Z", "opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-03-09T00:00:00Z"}
    >>> said = [commands.OpenQuestion(question="rain", kind="binary", **times)]
    >>> said += [commands.OpenContest(at=times["at"], contest="march", rules="baseline")]
    >>> said += [commands.AddQuestion(at=times["at"], contest="march", question="rain")]
    >>> with open_ledger(":memory:") as ledger:
    ...     receipts = [ledger.handle(command, command_id=str(number)) for number, command in enumerate(said)]
    ...     left_out(replay(ledger).projections, "march")
    ['0 of the 1 questions of march have an answer that counts']
    """
    facts, notes = projections.facts, list[str]()
    contest = facts.contests[name]
    counted = len(scored_questions(facts, contest).answers)
    if counted < len(contest.entries):
        notes.append(f"{counted:,} of the {len(contest.entries):,} questions of {name} have an answer that counts")
    if contest.opened.pool and contest.opened.rules.take == "none":
        notes.append(f"the pool of {name} is never paid: the rules {contest.opened.rules.name} have no take")
    hidden = {who for who in {*contest.levels, *contest.enrolments} if contest.level_of(who) == "hidden"}
    if hidden:
        see = f"forecast-ledger log LOG --type participant_excluded --contest {quote(name)}"
        notes.append(f"not on the board: {len(hidden):,} excluded as hidden; to see exclusions: {see}")
    if name not in projections.traded:
        boards, names = projections.boards(name), facts.participant_codes.labels
        on_board = boards.person[boards.span(boards.names.index(name))].tolist()
        others = {*names} - {boards.labels[code] for code in on_board} - hidden
        if others:  # else forecasts in segments need not be read again
            made = _forecasters(facts.forecasts.named(contest.as_of(facts)), contest)
            others &= {names[code] for code in made}
        if others:
            notes.append(f"not on the board: {len(others):,} with forecasts on its questions, none of which counts")
    return notes


def _forecasters(forecasts: Forecasts, contest: Contest) -> set[int]:
    """Return the codes of those who made a forecast on a question of the contest."""
    codes: set[int] = set()
    for question in contest.entries:
        rows = slice(*forecasts.question.searchsorted([question, question + 1]))
        codes.update(forecasts.participant[rows][forecasts.made[rows]].tolist())
    return codes
