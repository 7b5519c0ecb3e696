"""The sections of a report: what each contest is, its board, its pictures and its participants."""

from collections import Counter
from collections.abc import Iterable, Sequence

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.model.rules import NEVER_LATE
from forecast_ledger.projections.boards.leaderboard import TAKES
from forecast_ledger.projections.facts.columns import Contest as ContestFacts
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.tables.projection import Projections
from forecast_ledger.replay.reading.board_notes import counted_answers, seal_notes, sentences
from forecast_ledger.replay.reading.descriptions import describe_board, describe_order, describe_score, further_rules
from forecast_ledger.replay.report.account_sections import account_parts, accounts, trading_facts
from forecast_ledger.replay.report.board_sections import leaderboard_part
from forecast_ledger.replay.report.chart_parts import count, percent, rows_of
from forecast_ledger.replay.report.charts import CHARTS
from forecast_ledger.replay.report.page_parts import (
    MOST_PARTICIPANTS,
    Cell,
    Cells,
    Contest,
    Figure,
    Heading,
    Part,
    Participant,
    beyond,
    by_participant,
    digits_of,
    ends_of,
    in_table,
    kinds_of,
    row_anchor,
    short_table,
)
from forecast_ledger.replay.report.pictures import Picture, Row, to_svg

LEAST_FORECASTS = 5  # of a picture of calibration
MOST_NAMED = 10  # participants who are excluded for one reason
MOST_LISTED = 60  # questions
_ONE_FORECASTER = "only one participant made forecasts besides trading, so there are no scores to compare"
_REVIEWED = (
    "Each table has the questions on which a participant gained most and least: “gained” is by how much the score is "
    "better than “median”, the median of all participants' scores on the question."
)
_CLOCKS = {
    "claimed": "a forecast counts from the instant at which it was made, as its author claims",
    "recorded": "a forecast counts from the instant at which the ledger recorded it",
}
_STATES = {
    "open": "open: its board is not sealed, and may change",
    "sealed": "sealed: its board does not change any more",
}
FORECAST_CHARTS = {"board", "score", "pairwise", "calibration", "coverage"}


def contest_section(
    projections: Projections, name: str, anchor: str, same: Sequence[str] = ()
) -> tuple[Contest, dict[str, Picture]]:
    """Return the section of a contest, and its pictures by kind. Raises Unavailable: pictures cannot be drawn.

    same: other contests with the same questions.
    """
    pictures, left_out = _pictures(projections, name)
    [row] = rows_of(projections, "contests", name)
    traded, has_board = name in projections.traded, _has_board(projections, name)
    ranking, *others = account_parts(projections, name) if traded else [None]
    parts = [] if ranking is None else [ranking]
    findings = ["Nothing has been scored"]
    if has_board:
        part, findings = leaderboard_part(projections, name, anchor)
        parts.append(part)
    if traded and "profit" in pictures:
        findings = [pictures["profit"].title]
    if notes := seal_notes(projections, name):
        findings = [sentences(notes[:1]).removesuffix("."), *findings]
    parts += _questions_part(projections, name) + [part for part in others if part is not None]
    figures = [
        Figure(picture.title, picture.note, to_svg(picture), _table(picture.columns, picture.rows))
        for kind, picture in pictures.items()
        if kind not in {"board", "prizes"}  # they are in the board's own rows
        and not _says_little(kind, picture)
        and (has_board or kind not in FORECAST_CHARTS)
    ]
    people = accounts(projections, name, anchor) if traded else []
    if traded:
        left_out += beyond(len(rows_of(projections, "arena_leaderboard", name)), "accounts", "positions")
    if has_board:
        people += _participants(projections, name, anchor)
        left_out += beyond(len(rows_of(projections, "leaderboard", name)), "participants", "participant_review")
    if has_board and "calibration" in pictures and _says_little("calibration", pictures["calibration"]):
        few = f"it would be drawn from fewer than {LEAST_FORECASTS} forecasts; {in_table('calibration')}"
        left_out.append(f"Not shown: {CHARTS['calibration'].words}. Reason: {few}.")
    facts = contest_facts(projections, row)
    if same:
        facts.insert(3, ("Same questions", f"in {listed('', same)}, under other rules"))
    title = row["title"] or f"Contest {name}"
    reviewed = _REVIEWED if has_board else ""
    section = Contest(anchor, title, findings, left_out, facts, parts, figures, reviewed, people)
    return section, pictures


def _has_board(projections: Projections, name: str) -> bool:
    """Return whether the leaderboard of scores is shown: one row of it says nothing beside accounts."""
    return len(rows_of(projections, "leaderboard", name)) > (name in projections.traded)


def _questions_part(projections: Projections, name: str) -> list[Part]:
    """Return the questions of a contest with their answers, if they are few."""
    asked = {projections.facts.questions[code].question for code in projections.facts.contests[name].entries}
    if not 0 < len(asked) <= MOST_LISTED:
        return []
    rows = [row for row in projections.table("questions").rows() if row["question"] in asked]
    for row in rows:
        is_paid = row["state"] == "resolved" and row["outcome"] is None and row["value"] is None
        row["answer"] = "by payouts" if is_paid else row["value"] or row["outcome"]
    columns = ["question", *["title"] * any(row["title"] for row in rows), "state", "answer"]
    kinds = kinds_of(projections, "questions") | {"answer": "text", "counted": "text"}
    counted = counted_answers(projections.facts, projections.facts.contests[name])
    for row in rows:
        row["counted"] = counted.get(row["question"], "")
    note = ""
    if counted:
        columns.append("counted")
        note = "“State” and “answer” are of now; “counted” is the answer that the sealed board rests on, if it changed."
    return [Part("Questions", note, "Questions", short_table(kinds, rows, columns))]


def _pictures(projections: Projections, name: str) -> tuple[dict[str, Picture], list[str]]:
    """Return the pictures of a contest by kind, and why others are left out: a contest is too large for some tables."""
    pictures: dict[str, Picture] = {}
    left_out = []
    for kind, chart in CHARTS.items():
        try:
            picture = chart.draw(projections, name)
        except Refused as error:
            left_out.append(f"Not shown: {chart.words}. Reason: {error.detail}.")
        else:
            pictures |= {} if picture is None else {kind: picture}
    return pictures, left_out


def _says_little(kind: str, picture: Picture) -> bool:
    """Return whether a page is better without a picture, because it is drawn from few numbers."""
    if kind == "calibration":
        return sum(int(row["n"]) for row in picture.rows) < LEAST_FORECASTS
    return kind == "coverage" and len(picture.rows) == 1


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
    if notes := seal_notes(projections, row["contest"]):
        told.append(("Changed since", sentences(notes)))
    told.append(("Rules", rules.name))
    if rules.trading is not None:
        told += trading_facts(rules.trading, row["currency"])
        if not _has_board(projections, row["contest"]):
            return told + [("Forecasts", _ONE_FORECASTER)] * bool(rows_of(projections, "leaderboard", row["contest"]))
    kernels = {"A score is": rules.kernel, "On a range": rules.cdf_kernel, "By quantiles": rules.quantile_kernel}
    words = {form: describe_score(rules, kernel) for form, kernel in kernels.items() if kernel != "none"}
    if len({*words.values()}) == 1:
        words = {"A score is": next(iter(words.values()))}
    told += words.items()
    if order := describe_order(rules, (facts.questions[code] for code in contest.entries)):
        told.append(("Order of outcomes", order))
    own = (
        sum(bool(entry.spot_at or entry.spots) for entry in contest.entries.values()) if rules.sampling == "spot" else 0
    )
    told.append(
        ("Clock", _CLOCKS[rules.clock] + f"; {own:,} questions have an instant of their own that counts" * bool(own))
    )
    if rules.late_minutes != NEVER_LATE:
        late = f"{rules.late_minutes:,} minutes after the instant that it claims counts from its recording"
        told.append(("Late", f"a forecast or withdrawal that is recorded more than {late}"))
    told.append(("The board", f"{describe_board(rules)}, the {'least' if lower_is_better(rules) else 'largest'} first"))
    if rules.take != "none":
        told.append(("A take is", TAKES[rules.take].words))
    told.append(("Further rules", "; ".join(further_rules(rules))))
    if excluded := _excluded(projections, row["contest"]):
        told.append(("Excluded", excluded))
    return [(name, words) for name, words in told if words]


def _excluded(projections: Projections, name: str) -> str:
    """Say who has no rank or no prize, by level or reason; of many only the first."""
    found: dict[str, list[str]] = {}
    for row in rows_of(projections, "leaderboard", name):
        if row["excluded"]:
            found.setdefault(row["excluded"], []).append(row["participant"])
    contest = projections.facts.contests[name]
    hidden = [who for who in sorted({*contest.levels, *contest.enrolments}) if contest.level_of(who) == "hidden"]
    found |= {"hidden": hidden} if hidden else {}
    return "; ".join(f"{len(who):,} as {reason}: {listed('', who, MOST_NAMED)}" for reason, who in found.items())


def _participants(projections: Projections, name: str, anchor: str) -> list[Participant]:
    """Return a section for each row of the board: the questions on which most was gained and lost, and the coverage."""
    reviewed = by_participant(projections, "participant_review", name)
    scored = by_participant(projections, "scores", name)
    sign = 1 if lower_is_better(projections.facts.contests[name].opened.rules) else -1
    titles = {row["question"]: row["title"] for row in projections.table("questions").rows()}
    found = []
    for number, row in enumerate(rows_of(projections, "leaderboard", name)[:MOST_PARTICIPANTS]):
        who, of_scores = row["participant"], scored.get(row["participant"], [])
        counted = [each for each in reviewed.get(who, []) if each["gained"] is not None]
        own = counted or sorted(of_scores, key=lambda each: sign * float(each["score"]))
        digits = digits_of([float(each["score"]) for each in of_scores])
        done, every = row["completion"].split("/")
        rank = "has no rank" if row["rank"] is None else f"has rank {row['rank']}"
        words = (
            f"{rank} with a score of {float(row['score']):,.{digits}f}; forecasts on {done} of "
            f"{count(int(every), 'question')}, coverage {percent(float(row['coverage']))} of "
            f"{percent(float(row['attainable']))} attainable"
        )
        words += f"; excluded: {row['excluded']}." if row["excluded"] else "."
        ends, caption = ends_of(own, "questions", "participant_review" if counted else "scores")
        table = _questions(ends, titles, digits, bool(counted))
        found.append(Participant(row_anchor(anchor, "participant", number), who, words, caption, table))
    return found


def _questions(rows: Sequence[Row], titles: dict[str, str], digits: int, reviewed: bool) -> Cells:
    """Return questions of a participant. reviewed: whether the rows are of `participant_review`, not of `scores`."""

    def number(value: str | None) -> Cell:
        return Cell("-" if value is None else f"{float(value):,.{digits}f}")

    cells = []
    for row in rows:
        name = Cell(": ".join(filter(None, (row["question"], titles.get(row["question"])))))
        line = [name, number(row["score"]), Cell(percent(float(row["coverage"])))]
        if reviewed:
            place = Cell("no forecast" if row["rank"] is None else f"{row['rank']} of {row['forecasters']}")
            line[2:2] = [place, number(row["median"]), number(row["gained"])]
        cells.append(line)
    names = ["score", *(["rank", "median", "gained"] if reviewed else []), "coverage"]
    return Cells([Heading("question", text=True), *map(Heading, names)], cells)


def _table(columns: Iterable[str], rows: Sequence[Row]) -> Cells:
    """Return rows as they are printed."""
    names = [*columns]
    texts = {name for name in names if any(isinstance(row[name], str) and not _is_number(row[name]) for row in rows)}
    headings = [Heading(name.replace("_", " "), text=name in texts) for name in names]
    return Cells(headings, [[Cell("" if row[name] is None else str(row[name])) for name in names] for row in rows])


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdecimal()


def _questions_words(projections: Projections, contest: ContestFacts, scored: int) -> str:
    """Say how many questions a contest has, in which states, and how many of them are scored."""
    asked = {projections.facts.questions[code].question: None for code in contest.entries}
    rows = projections.table("questions").rows()
    states = Counter(row["state"] for row in rows if row["question"] in asked)
    told = ", ".join(f"{number:,} {state}" for state, number in sorted(states.items()))
    words = f"{len(asked):,}: {told}" if asked else "0"
    if contest.opened.rules.trading is None and scored != states["resolved"]:
        words += f"; {scored:,} scored"
    if len(asked) <= MOST_LISTED:
        return words
    first, *_, last = asked
    return f"{words}; from {first} to {last}; {in_table('questions')}"
