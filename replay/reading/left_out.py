"""What a board of a contest leaves out: questions without an answer that counts, and participants without a row."""

from forecast_ledger.projections.facts.columns import Contest, Forecasts
from forecast_ledger.projections.tables.projection import Projections


def left_out(projections: Projections, name: str) -> list[str]:
    """Say how many questions and participants of a contest are not in the numbers of its board, and why; [] if none.

    >>> from forecast_ledger import commands, open, replay
    >>> times = {"at": "2026-03-01T00:00:00Z", "opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-03-09T00:00:00Z"}
    >>> said = [commands.OpenQuestion(question="rain", kind="binary", **times)]
    >>> said += [commands.OpenContest(at=times["at"], contest="march", rules="baseline")]
    >>> said += [commands.AddQuestion(at=times["at"], contest="march", question="rain")]
    >>> with open(":memory:") as ledger:
    ...     receipts = [ledger.handle(command, command_id=str(number)) for number, command in enumerate(said)]
    ...     left_out(replay(ledger).projections, "march")
    ['0 of the 1 questions of march have an answer that counts']
    """
    facts, notes = projections.facts, list[str]()
    contest = facts.contests[name]
    counted = len(projections.scored(name).questions.answers)
    if counted < len(contest.entries):
        notes.append(f"{counted:,} of the {len(contest.entries):,} questions of {name} have an answer that counts")
    hidden = {who for who in {*contest.levels, *contest.enrolments} if contest.level_of(who) == "hidden"}
    if hidden:
        see = f"log LOG --type participant_excluded --contest {name}"
        notes.append(f"not on the board: {len(hidden):,} excluded as hidden; to see exclusions: {see}")
    if name not in projections.traded:
        forecasts = facts.forecasts.named(contest.as_of(facts))
        people = [facts.participant_codes.labels[code] for code in _forecasters(forecasts, contest)]
        waiting = {*people} - {row.participant for row in projections.board(name)} - hidden
        if waiting:
            notes.append(f"not on the board: {len(waiting):,} with forecasts on its questions, none of which counts")
    return notes


def _forecasters(forecasts: Forecasts, contest: Contest) -> set[int]:
    """Return the codes of those who made a forecast on a question of the contest."""
    found: set[int] = set()
    for question in contest.entries:
        rows = slice(*forecasts.question.searchsorted([question, question + 1]))
        found.update(forecasts.participant[rows][forecasts.made[rows]].tolist())
    return found
