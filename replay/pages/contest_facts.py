"""The facts of a contest that begin a report and a working paper: its state, its questions, its rules in words."""

from collections import Counter

from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.core.values import format_count
from forecast_ledger.ledger.model.rules import NEVER_LATE
from forecast_ledger.projections.boards.leaderboard import TAKES
from forecast_ledger.projections.facts.columns import Contest
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.tables.catalogue import Projections, Row
from forecast_ledger.replay.pages.account_sections import trading_facts
from forecast_ledger.replay.pages.page_parts import (
    BY_QUANTILES,
    NAMED,
    ON_RANGE,
    form_of,
    in_table,
    plain_words,
    short_name,
)
from forecast_ledger.replay.pages.pictures import leaderboard_rows
from forecast_ledger.replay.pages.possible_ranks import known_intervals
from forecast_ledger.replay.reading.descriptions import (
    FURTHER,
    describe_board,
    describe_order,
    describe_score,
    further_rules,
)

MOST_NAMED = 10  # participants who are excluded for one reason
MOST_LISTED = 60  # questions
_ONE_FORECASTER = "only one participant made forecasts besides trading, so there are no scores to compare"
_CLOCKS = {
    "claimed": "a forecast counts from the instant at which it was made, as its author claims",
    "recorded": "a forecast counts from the instant at which the ledger recorded it",
}
_FORMULAS = {"A score is", "On a range", "By quantiles", "The board", "A take is", "Rules of trading"}
_STATES = {
    "open": "open: its board is not sealed, and may change",
    "sealed": "sealed: its board does not change any more",
}


def contest_facts(projections: Projections, row: Row) -> list[tuple[str, str]]:
    """Return what a contest is, and its rules in words."""
    facts = projections.facts
    contest = facts.contests[row["contest"]]
    rules = contest.opened.rules
    scored = len(projections.scored(row["contest"]).questions.answers)
    told = [("Contest", row["contest"]), ("State", _STATES.get(row["state"], row["state"]))]
    told.append(("Questions", _questions_words(projections, contest, scored)))
    if float(row["pool"] or 0):
        told.append(("Pool", f"{float(row['pool']):,.2f} {row['currency']}".rstrip()))
    if row["sealed_at"]:
        told.append(
            ("Sealed", f"at log position {row['sealed_at']}, when the log had the digest {row['sealed_digest']}")
        )
    told.append(("Rules", rules.name))
    if rules.trading is not None:
        told += trading_facts(rules.trading, row["currency"])
        if not shows_board(projections, row["contest"]):
            return told + [("Forecasts", _ONE_FORECASTER)] * bool(leaderboard_rows(projections, row["contest"]))
    kernels = {NAMED: rules.kernel, ON_RANGE: rules.cdf_kernel, BY_QUANTILES: rules.quantile_kernel}
    forms = {form_of(facts.questions[code]) for code in contest.entries} or {*kernels}
    words = {
        form: describe_score(rules, kernel) for form, kernel in kernels.items() if kernel != "none" and form in forms
    }
    if len({*words.values()}) == 1:
        words = {NAMED: next(iter(words.values()))}
    told += plain_words(rules, {kernels[form] for form in forms if kernels[form] != "none"})
    told += words.items()
    if order := describe_order(rules, (facts.questions[code] for code in contest.entries)):
        told.append(("Order of outcomes", order))
    at_instants = (
        sum(bool(entry.spot_at or entry.spots) for entry in contest.entries.values()) if rules.sampling == "spot" else 0
    )
    scored_so = f"{format_count(at_instants, 'question')} {'is' if at_instants == 1 else 'are each'} scored"
    told.append(("Clock", _CLOCKS[rules.clock] + f"; {scored_so} at one instant" * bool(at_instants)))
    if rules.late_minutes != NEVER_LATE:
        late = f"{rules.late_minutes:,} minutes after the instant that it claims counts from its recording"
        told.append(("Late", f"a forecast or withdrawal that is recorded more than {late}"))
    told.append(("The board", f"{describe_board(rules)}, the {'least' if lower_is_better(rules) else 'largest'} first"))
    if rules.take != "none":
        told.append(("A take is", f"what prizes are in proportion to: {TAKES[rules.take].words}"))
    drawn = any(sure["score_low"] is not None for sure in known_intervals(projections, row["contest"]))
    unsaid = "" if drawn else FURTHER["level_ppm"](rules)
    told.append(("Further rules", "; ".join(words for words in further_rules(rules) if words != unsaid)))
    if excluded := _excluded(projections, row["contest"]):
        told.append(("Excluded", excluded))
    times = " \N{MULTIPLICATION SIGN} "
    told = [(name, words.replace("in the base of the kernel", "with the same logarithm")) for name, words in told]
    return [(name, words.replace(" x ", times) if name in _FORMULAS else words) for name, words in told if words]


def _excluded(projections: Projections, name: str) -> str:
    """Say who has no rank or no prize, by level or reason; of many only the first."""
    excluded: dict[str, list[str]] = {}
    for row in leaderboard_rows(projections, name):
        if row["excluded"]:
            excluded.setdefault(row["excluded"], []).append(row["participant"])
    contest = projections.facts.contests[name]
    hidden = [who for who in sorted({*contest.levels, *contest.enrolments}) if contest.level_of(who) == "hidden"]
    excluded |= {"hidden": hidden} if hidden else {}
    return "; ".join(f"{len(who):,} as {reason}: {listed('', who, MOST_NAMED)}" for reason, who in excluded.items())


def shows_board(projections: Projections, name: str) -> bool:
    """Return whether the leaderboard of scores is shown: one row of it says nothing beside accounts."""
    return len(leaderboard_rows(projections, name)) > (name in projections.traded)


def _questions_words(projections: Projections, contest: Contest, scored: int) -> str:
    """Say how many questions a contest has, in which states, and how many of them are scored."""
    questions = {projections.facts.questions[code].question: None for code in contest.entries}
    table = projections.table("questions")
    stated = zip(table["question"], table["state"], strict=True)
    states = Counter(state for question, state in stated if question in questions)
    told = ", ".join(f"{number:,} {state}" for state, number in sorted(states.items()))
    words = f"{len(questions):,}: {told}" if questions else "0"
    if contest.opened.rules.trading is None and scored != states["resolved"]:
        words += f"; {scored:,} scored"
    if len(questions) <= MOST_LISTED:
        return words
    first, *_, last = (short_name(projections.facts.questions[code]) for code in contest.entries)
    return f"{words}; from {first} to {last}; {in_table('questions')}"
